"""
Stochastic Petri nets as data: places, transitions, weighted arcs, tokens.

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
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.errors import ModelError

Arc = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Transition:
    """A transition: its mean delay (0: immediate), its weight among immediate ones."""

    name: str
    mean: float = 0.0
    weight: float = 1.0

    @property
    def is_immediate(self) -> bool:
        """Whether it fires without delay."""
        return self.mean == 0


@dataclass(frozen=True)
class Net:
    """
    A net: arcs are (place, transition, weight) and (transition, place, weight).

    *initial* holds the tokens of the places that are not empty.  `ModelError` for a name that two
    nodes have, an arc between nodes that do not exist, a mean, weight or number of tokens that is
    not valid, and a transition without input, which would fire forever.
    """

    places: tuple[str, ...]
    transitions: tuple[Transition, ...]
    input_arcs: tuple[Arc, ...]
    output_arcs: tuple[Arc, ...]
    initial: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        places, transitions = set(self.places), {node.name for node in self.transitions}
        problems = [
            f"{name!r} names {count} nodes"
            for name, count in Counter(self.names).items()
            if count > 1
        ]
        for arcs, sources, targets in (
            (self.input_arcs, places, transitions),
            (self.output_arcs, transitions, places),
        ):
            for source, target, weight in arcs:
                if source not in sources or target not in targets:
                    problems.append(f"no nodes for the arc {source!r} -> {target!r}")
                elif not isinstance(weight, int) or weight < 1:
                    problems.append(f"arc {source!r} -> {target!r} of weight {weight!r}")
        fed_transitions = {target for _, target, _ in self.input_arcs}
        for node in self.transitions:
            if node.name not in fed_transitions:
                problems.append(f"transition {node.name!r} has no input")
            if not (0 <= node.mean < math.inf and 0 < node.weight < math.inf):
                problems.append(
                    f"transition {node.name!r} has mean {node.mean!r} and weight {node.weight!r}"
                )
        for place, tokens in self.initial.items():
            if place not in places or not isinstance(tokens, int) or tokens < 0:
                problems.append(f"{tokens!r} tokens in {place!r}")
        if problems:
            raise ModelError(problems[0], where="Petri net")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all nodes: places, then transitions."""
        return (*self.places, *(node.name for node in self.transitions))

    @property
    def arcs(self) -> tuple[Arc, ...]:
        """All arcs: into transitions, then out of them."""
        return (*self.input_arcs, *self.output_arcs)

    def marking(self) -> tuple[int, ...]:
        """Tokens of all places at the start, in the order of the places."""
        return tuple(self.initial.get(name, 0) for name in self.places)
