"""
The reachability graph of a small net, and the Markov chain that it is.

What the simulation of small nets is held against: mean and variance of the time until nothing is
enabled, solved and not drawn ([Mar95], chapter 6, with markings of no duration left in the chain).

    m        marking; s(m) its mean duration: 1 / sum of rates, 0 where an immediate one is enabled
    p(m, n)  share of the rates, or of the weights, of the transitions that lead from m to n
    T(m)     time from m to a dead marking

    E[T(m)]   = s + sum_n p(m, n) E[T(n)]
    E[T(m)^2] = 2 s^2 + 2 s sum_n p(m, n) E[T(n)] + sum_n p(m, n) E[T(n)^2]
"""

from __future__ import annotations

import math

from collections.abc import Mapping
from dataclasses import dataclass

from harness.errors import ModelError
from harness.sim.petri import WHERE, Marking, Net

MOST_MARKINGS = 100_000


@dataclass(frozen=True)
class Graph:
    """
    Reachable markings in the order in which they are found, the initial one first.

    *steps* gives, for each marking, the chance of each next marking by its number; *stay* its mean
    duration.
    """

    net: Net
    markings: tuple[Marking, ...]
    steps: tuple[Mapping[int, float], ...]
    stay: tuple[float, ...]

    @property
    def dead(self) -> list[Marking]:
        """Markings in which nothing is enabled."""
        return [m for m, step in zip(self.markings, self.steps, strict=True) if not step]


def explore(net: Net, most_markings: int = MOST_MARKINGS) -> Graph:
    """
    All markings that *net* can reach.

    ``ModelError`` above *most_markings*: the net is too large, or tokens grow without end.
    """
    number = {net.marking(): 0}
    markings, steps, stay = list(number), [], []
    for marking in markings:  # which grows meanwhile
        able = net.enabled(marking)
        chances = [_chance(net, t) for t in able]
        total = sum(chances)
        step: dict[int, float] = {}
        for t, chance in zip(able, chances, strict=True):
            after = net.fire(marking, t)
            if after not in number:
                number[after] = len(markings)
                markings.append(after)
            step[number[after]] = step.get(number[after], 0.0) + chance / total
        if len(markings) > most_markings:
            raise ModelError(
                f"more than {most_markings} markings can be reached",
                where=WHERE,
                fix="simulate the net, or look for a place whose tokens grow without end",
            )
        timed = able and not net.transitions[able[0]].immediate
        steps.append(step)
        stay.append(1 / total if timed else 0.0)
    return Graph(net, tuple(markings), tuple(steps), tuple(stay))


def time_to_end(graph: Graph) -> tuple[float, float]:
    """
    Mean and standard deviation of the time from the initial marking until nothing is enabled.

    ``ModelError`` where some run never ends.
    """
    import numpy as np

    from scipy.sparse import csc_array, eye_array
    from scipy.sparse.linalg import splu

    _check_ends(graph)
    size = len(graph.markings)
    entries = [(m, n, p) for m, step in enumerate(graph.steps) for n, p in step.items()]
    rows, columns, chances = zip(*entries, strict=True) if entries else ((), (), ())
    chain = csc_array((chances, (rows, columns)), shape=(size, size), dtype=float)
    solve = splu((eye_array(size, format="csc") - chain).tocsc()).solve
    stay = np.array(graph.stay)
    mean = solve(stay)
    square = solve(2 * stay * (stay + chain @ mean))
    return float(mean[0]), math.sqrt(max(0.0, float(square[0] - mean[0] ** 2)))


def _chance(net: Net, transition: int) -> float:
    node = net.transitions[transition]
    return node.weight if node.immediate else 1 / node.mean


def _check_ends(graph: Graph) -> None:
    """Refuse a graph in which a dead marking cannot be reached from everywhere."""
    before: list[list[int]] = [[] for _ in graph.markings]
    for m, step in enumerate(graph.steps):
        for n in step:
            before[n].append(m)
    ends = [m for m, step in enumerate(graph.steps) if not step]
    seen = set(ends)
    for m in ends:  # which grows meanwhile
        new = set(before[m]) - seen
        seen |= new
        ends += sorted(new)
    if len(seen) < len(graph.markings):
        stuck = next(m for m in range(len(graph.markings)) if m not in seen)
        held = graph.net.tokens(graph.markings[stuck])
        raise ModelError(f"no run ends that has come to {held}", where=WHERE)
