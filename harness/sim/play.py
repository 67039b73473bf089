"""
The token game: an event loop over one run of a net, and many runs at once.

`play` is the obvious form: a clock for each enabled exponential transition, set when it becomes
enabled and dropped when another transition takes its tokens.  `simulate` plays many runs in step:
exponential delays forget how long they have lasted, so that the next firing of a marking comes
after an exponential delay of the sum of all rates, and is each transition's with its rate's share.
"""

from __future__ import annotations

import heapq

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from numpy.typing import NDArray

from harness.errors import ModelError
from harness.sim.petri import WHERE, Marking, Net

MOST_FIRINGS = 1_000_000
_BLOCK = 4096  # runs in step: their markings stay in a core's cache


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
    parts = [
        _in_step(net, min(_BLOCK, replications - begin), rng, most_firings)
        for begin in range(0, replications, _BLOCK)
    ]
    return np.concatenate([np.zeros(0), *parts])


def _in_step(
    net: Net, replications: int, rng: np.random.Generator, most_firings: int
) -> NDArray[np.float64]:
    change = _changes(net)
    marking = np.tile(np.array(net.marking(), dtype=np.int64)[:, None], (1, replications))
    alive, end = np.arange(replications), np.zeros(replications)
    for _ in range(most_firings):
        upto, at_once = _shares(net, marking)
        going = upto[-1] > 0
        if not going.all():
            alive, marking, upto, at_once = (
                alive[going], marking[:, going], upto[:, going], at_once[going],
            )  # fmt: skip
        if not len(alive):
            return end
        waits = rng.standard_exponential(len(alive)) / upto[-1]
        end[alive] += np.where(at_once, 0.0, waits)
        chosen = (upto <= rng.random(len(alive)) * upto[-1]).sum(axis=0)
        marking += change[:, chosen]
    raise _endless(most_firings)


def _changes(net: Net) -> NDArray[np.int64]:
    """What each transition (column) adds to each place (row)."""
    change = np.zeros((len(net.places), len(net.transitions)), dtype=np.int64)
    for t, (inputs, outputs) in enumerate(zip(net.inputs, net.outputs, strict=True)):
        for p, w in inputs:
            change[p, t] -= w
        for p, w in outputs:
            change[p, t] += w
    return change


def _shares(net: Net, marking: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """
    Rates of the transitions of each run, added up; weights, where an immediate one is enabled.

    The second array tells where: there the firing takes no time.
    """
    at_once = np.zeros(marking.shape[1], dtype=bool)
    for t, node in enumerate(net.transitions):
        if node.immediate:
            at_once |= _able(net, t, marking)
    upto = np.empty((len(net.transitions), marking.shape[1]))
    total = np.zeros(marking.shape[1])
    for t, node in enumerate(net.transitions):
        able = _able(net, t, marking)
        if node.immediate:
            total += able * node.weight
        else:
            total += (able & ~at_once) / node.mean
        upto[t] = total
    return upto, at_once


def _able(net: Net, transition: int, marking: NDArray[np.int64]) -> NDArray[np.bool_]:
    """In which runs it is enabled, were there no immediate ones."""
    (first, weight), *others = net.inputs[transition]
    able: NDArray[np.bool_] = marking[first] >= weight
    for p, w in others:
        able &= marking[p] >= w
    return able
