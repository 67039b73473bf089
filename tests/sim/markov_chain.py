"""
The Markov chain of a small net's reachable markings, an oracle ([Mar95], chapter 6).

    m        marking; s(m) its mean duration: 1 / sum of rates, 0 where an immediate one is enabled
    p(m, n)  share of the rates, or of the weights, of the transitions that lead from m to n
    T(m)     time from m to a dead marking

    E[T(m)]   = s + sum_n p(m, n) E[T(n)]
    E[T(m)^2] = 2 s^2 + 2 s sum_n p(m, n) E[T(n)] + sum_n p(m, n) E[T(n)^2]
"""

import math

from dataclasses import dataclass

import numpy as np

from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import splu

from tests.sim import nets


class TooManyMarkingsError(Exception):
    """
    The net is too large, or its tokens grow without end.
    """


@dataclass(frozen=True)
class Chain:
    """
    Reachable markings, the initial one first; chances of the next ones; mean durations.
    """

    net: object
    markings: tuple
    steps: tuple
    durations: tuple

    @property
    def dead(self):
        """
        Markings in which nothing is enabled.
        """
        return [m for m, step in zip(self.markings, self.steps, strict=True) if not step]


def explore(net, most_markings=100_000):
    """
    All markings that *net* can reach.
    """
    numbers = {net.marking(): 0}
    markings, steps, durations = list(numbers), [], []
    for marking in markings:  # which grows meanwhile
        able = nets.enabled(net, marking)
        nodes = [net.transitions[index] for index in able]
        chances = [1.0 if node.mean == 0 else 1 / node.mean for node in nodes]
        step = {}
        for index, chance in zip(able, chances, strict=True):
            after = nets.fire(net, marking, index)
            if after not in numbers:
                numbers[after] = len(markings)
                markings.append(after)
            step[numbers[after]] = step.get(numbers[after], 0.0) + chance / sum(chances)
        if len(markings) > most_markings:
            raise TooManyMarkingsError
        steps.append(step)
        durations.append(1 / sum(chances) if nodes and nodes[0].mean > 0 else 0.0)
    return Chain(net, tuple(markings), tuple(steps), tuple(durations))


def time_to_end(chain):
    """
    Mean and standard deviation of the time from the initial marking until nothing is enabled.
    """
    size = len(chain.markings)
    entries = [(m, n, p) for m, step in enumerate(chain.steps) for n, p in step.items()]
    rows, columns, chances = zip(*entries, strict=True) if entries else ((), (), ())
    matrix = csc_array((chances, (rows, columns)), shape=(size, size), dtype=float)
    solve = splu((eye_array(size, format="csc") - matrix).tocsc()).solve
    durations = np.array(chain.durations)
    mean = solve(durations)
    square = solve(2 * durations * (durations + matrix @ mean))
    return float(mean[0]), math.sqrt(max(0.0, float(square[0] - mean[0] ** 2)))
