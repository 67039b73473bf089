"""
The token game: an event loop over one run of a net, and many runs at once.

`play` is the obvious form: a clock for each enabled exponential transition, set when it becomes
enabled and dropped when another transition takes its tokens.  `simulate` plays many runs in step:
exponential delays forget how long they have lasted, so that the next firing of a marking comes
after an exponential delay of the sum of all rates, and is each transition's with its rate's share.
"""

from __future__ import annotations

import heapq
import math

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from numpy.typing import NDArray

from harness.errors import ModelError
from harness.sim.petri import WHERE, Marking, Net

MOST_FIRINGS = 1_000_000


@dataclass(frozen=True, slots=True)
class Run:
    """One run: when it ended, where the tokens were, and what fired when."""

    end: float
    marking: Marking
    firings: tuple[tuple[float, str], ...]


def play(
    net: Net,
    rng: np.random.Generator,
    delay: Callable[[str], float] | None = None,
    most_firings: int = MOST_FIRINGS,
) -> Run:
    """
    Play *net* until nothing is enabled.

    *delay* gives the delay of an exponential transition by its name, each time it is enabled
    anew; by default it is drawn.  ``ModelError`` after *most_firings*: such a run may never end.
    """
    means = {t.name: t.mean for t in net.transitions}
    game = _Game(net, delay or (lambda name: rng.exponential(means[name])))
    firings: list[tuple[float, str]] = []
    now = 0.0
    while game.immediate or game.clocks:
        if len(firings) >= most_firings:
            raise _endless(most_firings)
        if game.immediate:
            transition = _choose(net, sorted(game.immediate), rng)
        else:
            now, transition = game.next()
        game.fire(transition, now)
        firings.append((now, net.transitions[transition].name))
    return Run(now, tuple(game.marking), tuple(firings))


class _Game:
    """Marking, enabled immediate transitions, and clocks of the exponential ones."""

    def __init__(self, net: Net, delay: Callable[[str], float]) -> None:
        self.net, self.delay = net, delay
        self.marking = list(net.marking())
        self.immediate: set[int] = set()
        self.clocks: dict[int, float] = {}
        self.heap: list[tuple[float, int]] = []
        self._look(range(len(net.transitions)), 0.0)

    def next(self) -> tuple[float, int]:
        """Time and transition of the clock that ends first; clocks that were dropped are passed."""
        while True:
            at, transition = heapq.heappop(self.heap)
            if self.clocks.get(transition) == at:
                return at, transition

    def fire(self, transition: int, now: float) -> None:
        """Move the tokens; *transition* itself starts anew where it is still enabled."""
        self.clocks.pop(transition, None)
        touched = {transition}
        for p, w in self.net.inputs[transition]:
            self.marking[p] -= w
            touched.update(self.net.consumers[p])
        for p, w in self.net.outputs[transition]:
            self.marking[p] += w
            touched.update(self.net.consumers[p])
        self._look(sorted(touched), now)

    def _look(self, transitions: Iterable[int], now: float) -> None:
        for t in transitions:
            able = all(self.marking[p] >= w for p, w in self.net.inputs[t])
            node = self.net.transitions[t]
            if node.immediate:
                (self.immediate.add if able else self.immediate.discard)(t)
            elif not able:
                self.clocks.pop(t, None)
            elif t not in self.clocks:
                self.clocks[t] = now + self.delay(node.name)
                heapq.heappush(self.heap, (self.clocks[t], t))


def _choose(net: Net, transitions: list[int], rng: np.random.Generator) -> int:
    """One of the enabled immediate *transitions*, by their weights."""
    if len(transitions) == 1:
        return transitions[0]
    weights = np.array([net.transitions[t].weight for t in transitions])
    return int(rng.choice(transitions, p=weights / weights.sum()))


def _endless(most: int) -> ModelError:
    return ModelError(
        f"a run has not ended after {most} firings",
        where=WHERE,
        fix="look for a cycle that no token leaves, or allow more firings",
    )


def simulate(
    net: Net,
    replications: int,
    rng: np.random.Generator,
    most_firings: int = MOST_FIRINGS,
) -> NDArray[np.float64]:
    """
    End times of so many runs of *net*, all played in step.

    A step costs one look at every transition of every run that goes on: for small nets and many
    runs.  ``ModelError`` as from `play`.
    """
    takes, change, chance = _matrices(net)
    marking = np.tile(np.array(net.marking(), dtype=np.int64)[:, None], (1, replications))
    alive, end = np.arange(replications), np.zeros(replications)
    for _ in range(most_firings):
        able = np.array([(marking[p] >= w).all(axis=0) for p, w in takes])
        shares, rate = _shares(able, chance)
        going = rate > 0
        if not going.all():
            alive, marking, shares, rate = (
                alive[going], marking[:, going], shares[:, going], rate[going],
            )  # fmt: skip
        if not len(alive):
            return end
        end[alive] += np.where(np.isinf(rate), 0.0, rng.standard_exponential(len(alive)) / rate)
        upto = np.cumsum(shares, axis=0)
        chosen = (upto <= rng.random(len(alive)) * upto[-1]).sum(axis=0)
        marking = marking + change[:, chosen]
    raise _endless(most_firings)


def _matrices(
    net: Net,
) -> tuple[
    list[tuple[NDArray[np.int64], NDArray[np.int64]]], NDArray[np.int64], NDArray[np.float64]
]:
    """Places and weights that each transition takes, its change of the marking, its chances."""
    takes = []
    change = np.zeros((len(net.places), len(net.transitions)), dtype=np.int64)
    for t, (inputs, outputs) in enumerate(zip(net.inputs, net.outputs, strict=True)):
        places, weights = np.array(inputs, dtype=np.int64).T
        takes.append((places, weights[:, None]))
        for p, w in inputs:
            change[p, t] -= w
        for p, w in outputs:
            change[p, t] += w
    # Weight of immediate transitions, rate of exponential ones: one of the two is 0.
    chance = [(t.weight, 0.0) if t.immediate else (0.0, 1 / t.mean) for t in net.transitions]
    return takes, change, np.array(chance).T


def _shares(
    able: NDArray[np.bool_], chance: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Chance of each transition in each run, and the run's rate: infinite where it is at once."""
    weights, rates = (c[:, None] * able for c in chance)
    at_once = weights.any(axis=0)
    shares = np.where(at_once, weights, rates)
    return shares, np.where(at_once, math.inf, rates.sum(axis=0))
