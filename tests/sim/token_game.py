"""
The token game, an oracle: one run of a net by an event loop, or many runs in step.

`play` is the obvious form: a clock for each enabled exponential transition, set when it becomes
enabled and dropped when another transition takes its tokens.  `simulate` plays many runs in step:
exponential delays forget how long they have lasted, so the next firing of a marking comes after an
exponential delay of the sum of all rates, and is each transition's with its rate's share.
"""

from dataclasses import dataclass

import numpy as np

from tests.sim import nets


@dataclass(frozen=True, slots=True)
class Run:
    """
    One run: when it ended, where the tokens were, and what fired when.
    """

    end: float
    marking: tuple
    firings: tuple


def play(net, rng, delay=None, most_firings=10_000):
    """
    Play *net* until nothing is enabled; *delay* gives that of a transition, else it is drawn.
    """
    means = {node.name: node.mean for node in net.transitions}
    draw = delay or (lambda name: rng.exponential(means[name]))
    marking, clocks, now, firings = net.marking(), {}, 0.0, []
    taken_from, put_into = nets.inputs(net), nets.outputs(net)
    while len(firings) < most_firings:
        able = {
            index
            for index, arcs in enumerate(taken_from)
            if all(marking[place] >= weight for place, weight in arcs)
        }
        clocks = {index: at for index, at in clocks.items() if index in able}
        immediate = [index for index in sorted(able) if net.transitions[index].mean == 0]
        for index in sorted(able - clocks.keys() - set(immediate)):
            clocks[index] = now + draw(net.transitions[index].name)
        if not able:
            return Run(now, marking, tuple(firings))
        if immediate:
            chosen = int(rng.choice(immediate))
        else:
            now, chosen = min((at, index) for index, at in clocks.items())
            del clocks[chosen]
        after = list(marking)
        for place, weight in taken_from[chosen]:
            after[place] -= weight
        for place, weight in put_into[chosen]:
            after[place] += weight
        marking = tuple(after)
        firings.append((now, net.transitions[chosen].name))
    raise RuntimeError(f"a run has not ended after {most_firings} firings")


def simulate(net, replications, rng):
    """
    End times of so many runs of *net*, all played in step.
    """
    taken_from, put_into = nets.inputs(net), nets.outputs(net)
    change = np.zeros((len(net.places), len(net.transitions)), dtype=int)
    for index, (before, after) in enumerate(zip(taken_from, put_into, strict=True)):
        for place, weight in before:
            change[place, index] -= weight
        for place, weight in after:
            change[place, index] += weight
    marking = np.tile(np.array(net.marking())[:, None], (1, replications))
    runs, ends = np.arange(replications), np.zeros(replications)
    immediate = np.array([node.mean == 0 for node in net.transitions])
    speeds = np.array([1.0 if node.mean == 0 else 1 / node.mean for node in net.transitions])
    while True:
        able = np.array([np.all([marking[p] >= w for p, w in arcs], axis=0) for arcs in taken_from])
        at_once = able[immediate].any(axis=0)
        able[~immediate] &= ~at_once
        shares = np.cumsum(able * speeds[:, None], axis=0)
        going = shares[-1] > 0
        runs, marking, shares, at_once = (
            runs[going], marking[:, going], shares[:, going], at_once[going],
        )  # fmt: skip
        if not len(runs):
            return ends
        ends[runs] += np.where(at_once, 0.0, rng.standard_exponential(len(runs)) / shares[-1])
        chosen = (shares <= rng.random(len(runs)) * shares[-1]).sum(axis=0)
        marking = marking + change[:, chosen]
