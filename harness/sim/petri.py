"""
Stochastic Petri nets: places, transitions, weighted arcs, tokens.

    [Mar95] M. Ajmone Marsan, G. Balbo, G. Conte, S. Donatelli, G. Franceschinis. "Modelling with
    Generalized Stochastic Petri Nets". Wiley, 1995.

A transition is *enabled* when each of its input places holds at least as many tokens as the arc's
weight.  Firing takes these tokens and puts the output arcs' weights into the output places.  An
exponential transition fires after a delay of its *mean*; it is one server: several sets of tokens
in front of it wait for one another.  An immediate transition (mean 0) fires at once, before any
exponential one; among several enabled ones each is chosen with its *weight*'s share.
"""

from __future__ import annotations

import math

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from harness.errors import ModelError

Marking = tuple[int, ...]
Arc = tuple[str, str, int]
WHERE = "Petri net"


@dataclass(frozen=True, slots=True)
class Transition:
    """A transition: its mean delay (0: immediate), its weight among immediate ones."""

    name: str
    mean: float = 0.0
    weight: float = 1.0

    @property
    def immediate(self) -> bool:
        """Whether it fires without delay."""
        return self.mean == 0


@dataclass(frozen=True)
class Net:
    """
    A net as data: arcs are (place, transition, weight) and (transition, place, weight).

    *initial* holds the tokens of the places that are not empty.  ``ModelError`` for a name given
    twice, an arc between things that are not there, a mean, weight or number of tokens that is
    none, and a transition without input, which would fire for ever.
    """

    places: tuple[str, ...]
    transitions: tuple[Transition, ...]
    input_arcs: tuple[Arc, ...]
    output_arcs: tuple[Arc, ...]
    initial: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [*self.places, *(t.name for t in self.transitions)]
        for name, times in Counter(names).items():
            if times > 1:
                raise ModelError(f"{name!r} names {times} nodes", where=WHERE)
        _check_arcs(self.input_arcs, self.place_index, self.transition_index)
        _check_arcs(self.output_arcs, self.transition_index, self.place_index)
        for t, inputs in zip(self.transitions, self.inputs, strict=True):
            if not inputs:
                raise ModelError(f"transition {t.name!r} has no input", where=WHERE)
            if not (0 <= t.mean < math.inf and 0 < t.weight < math.inf):
                what = f"transition {t.name!r} has mean {t.mean!r} and weight {t.weight!r}"
                raise ModelError(what, where=WHERE)
        for place, tokens in self.initial.items():
            if place not in self.place_index or not isinstance(tokens, int) or tokens < 0:
                raise ModelError(f"{tokens!r} tokens in {place!r}", where=WHERE)

    @cached_property
    def place_index(self) -> dict[str, int]:
        """Position of each place."""
        return {name: i for i, name in enumerate(self.places)}

    @cached_property
    def transition_index(self) -> dict[str, int]:
        """Position of each transition."""
        return {t.name: i for i, t in enumerate(self.transitions)}

    @cached_property
    def inputs(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each transition the (place, weight) it takes from; parallel arcs are one."""
        arcs = ((t, p, w) for p, t, w in self.input_arcs)
        return self._grouped(arcs)

    @cached_property
    def outputs(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each transition the (place, weight) it puts into."""
        return self._grouped(self.output_arcs)

    @cached_property
    def consumers(self) -> tuple[tuple[int, ...], ...]:
        """For each place the transitions that take from it."""
        found: list[list[int]] = [[] for _ in self.places]
        for t, inputs in enumerate(self.inputs):
            for p, _ in inputs:
                found[p].append(t)
        return tuple(map(tuple, found))

    def marking(self) -> Marking:
        """Tokens of all places at the start, in the order of the places."""
        return tuple(self.initial.get(name, 0) for name in self.places)

    def tokens(self, marking: Marking) -> dict[str, int]:
        """Tokens by place, empty places left out."""
        return {name: n for name, n in zip(self.places, marking, strict=True) if n}

    def enabled(self, marking: Marking) -> list[int]:
        """
        Transitions that may fire next.

        Immediate ones alone, where there are any: no time passes while one is enabled.
        """
        able = [
            t for t, inputs in enumerate(self.inputs) if all(marking[p] >= w for p, w in inputs)
        ]
        return [t for t in able if self.transitions[t].immediate] or able

    def fire(self, marking: Marking, transition: int) -> Marking:
        """Marking after *transition*, which is enabled, has fired."""
        after = list(marking)
        for p, w in self.inputs[transition]:
            after[p] -= w
        for p, w in self.outputs[transition]:
            after[p] += w
        return tuple(after)

    def _grouped(self, arcs: Iterable[Arc]) -> tuple[tuple[tuple[int, int], ...], ...]:
        found: list[Counter[int]] = [Counter() for _ in self.transitions]
        for t, p, w in arcs:
            found[self.transition_index[t]][self.place_index[p]] += w
        return tuple(tuple(sorted(weights.items())) for weights in found)


def _check_arcs(
    arcs: Iterable[Arc], sources: Mapping[str, int], targets: Mapping[str, int]
) -> None:
    for source, target, weight in arcs:
        if source not in sources or target not in targets:
            raise ModelError(f"no nodes for the arc {source!r} -> {target!r}", where=WHERE)
        if not isinstance(weight, int) or weight < 1:
            raise ModelError(f"arc {source!r} -> {target!r} of weight {weight!r}", where=WHERE)
