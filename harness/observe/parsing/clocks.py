"""
Nodes whose clock is off, by the moments that their tasks report.

A history has moments of three clocks.  Submission is the ResourceManager's (`APP_SUBMIT_TIME_ENV`),
start and end of an attempt, launch and end of the job are the application master's, and the ends of
map, shuffle and sort are those of the node that ran the task.  So an attempt bounds by how much its
node is ahead of the master: each moment that it reports lies between its start and its end.
"""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from statistics import median

from harness.base.documents.wording import by_number, count, one_line
from harness.base.records.trace import MOST_CLOCK_S, NodeClock, TaskAttempt

_MOMENTS = ("map_finish_s", "shuffle_finish_s", "sort_finish_s")
_reported = attrgetter(*_MOMENTS)
_MOST_NAMED = 3  # nodes, in notes
_LONGEST_NAME = 80


def settled(attempts: Sequence[TaskAttempt]) -> tuple[Sequence[TaskAttempt], tuple[NodeClock, ...]]:
    """
    *attempts* without moments of clocks that are off, and whose these are.

    Where all attempts of a node tell its offset to a second, its moments are moved by it; else they
    are `None`.  Attempts of other nodes stay as they are.
    """
    suspects = {_node_of(attempt) for attempt in attempts if not _is_credible(attempt)}
    if not suspects:
        return attempts, ()
    kept = list[TaskAttempt]()
    of_suspects = defaultdict[str, list[TaskAttempt]](list)
    for attempt in attempts:
        node = _node_of(attempt)
        (of_suspects[node] if node in suspects else kept).append(attempt)
    clocks = [_node_clock(node_attempts) for node_attempts in of_suspects.values()]
    for clock, node_attempts in zip(clocks, of_suspects.values(), strict=True):
        kept += [_corrected(attempt, clock) for attempt in node_attempts]
    return kept, tuple(clocks)


def _node_of(attempt: TaskAttempt) -> str:
    """Host of an attempt; one whose host is not known stands for itself."""
    return attempt.host or attempt.attempt_id


def _moments(attempt: TaskAttempt) -> list[float]:
    return [at_s for at_s in _reported(attempt) if at_s is not None]


def _is_in_order(attempt: TaskAttempt) -> bool:
    """Whether the moments of an attempt, which are of one clock, follow each other."""
    shuffled_s = attempt.shuffle_finish_s
    sorted_s = attempt.sort_finish_s
    return shuffled_s is None or sorted_s is None or shuffled_s <= sorted_s


def _is_credible(attempt: TaskAttempt) -> bool:
    """Whether an attempt reports its moments in their order, and within its window."""
    earliest_s, latest_s = attempt.window
    for at_s in _reported(attempt):
        if at_s is not None and not earliest_s <= at_s <= latest_s:
            return False
    return _is_in_order(attempt)


def _node_clock(attempts: Sequence[TaskAttempt]) -> NodeClock:
    """The clock of the node that ran *attempts*, some of which report what cannot be."""
    least_s = -math.inf
    most_s = math.inf
    tasks = 0
    for attempt in attempts:
        moments = _moments(attempt)
        tasks += bool(moments)
        for at_s in moments:
            least_s = max(least_s, at_s - attempt.finish_s)
            most_s = min(most_s, at_s - attempt.start_s)
    is_bounded = 0 <= most_s - least_s <= MOST_CLOCK_S
    if is_bounded and all(map(_is_in_order, attempts)):
        return NodeClock(attempts[0].host, (least_s + most_s) / 2, tasks, moved=True)
    shown_s = least_s if least_s >= -most_s else most_s
    return NodeClock(attempts[0].host, shown_s, tasks, moved=False)


def _corrected(attempt: TaskAttempt, clock: NodeClock) -> TaskAttempt:
    changes = dict[str, float | None]()
    for name in _MOMENTS:
        at_s = getattr(attempt, name)
        if at_s is not None:
            changes[name] = at_s - clock.ahead_s if clock.moved else None
    return replace(attempt, **changes)  # type: ignore[arg-type]


def clock_notes(clocks: Iterable[NodeClock], shown: Callable[[str], str] = str) -> Iterator[str]:
    """Sentences on nodes whose clock is off, as *clocks* of all jobs tell; *shown* names a host."""
    by_host = defaultdict[str, list[NodeClock]](list)
    for clock in clocks:
        by_host[clock.host].append(clock)
    nodes = sorted(by_host, key=lambda host: (-_tasks(by_host[host]), host))
    for host in nodes[:_MOST_NAMED]:
        name = one_line(shown(host), _LONGEST_NAME) if host else "a node without a name"
        yield f"the clock of {name} is {_reach(by_host[host])}: {_consequence(by_host[host])}"
    if others := nodes[_MOST_NAMED:]:
        clocks_of_others = [*chain.from_iterable(by_host[host] for host in others)]
        nodes_text = by_number(len(others), "1 more node", f"{len(others)} more nodes")
        yield f"so are the clocks of {nodes_text}: {_consequence(clocks_of_others)}"


def _tasks(clocks: Iterable[NodeClock]) -> int:
    return sum(clock.tasks for clock in clocks)


def _reach(clocks: Sequence[NodeClock]) -> str:
    """
    By how much a node's clock is off, and how precisely that is known, in words.

    The jobs that tell it to a second say it; where none does, all that is known is the least.
    """
    told_s = [clock.ahead_s for clock in clocks if clock.moved]
    ahead_s = median(told_s) if told_s else max((clock.ahead_s for clock in clocks), key=abs)
    if abs(ahead_s) < MOST_CLOCK_S:
        return "not steady (its moments contradict each other)"
    amount = f"{abs(ahead_s):.1f} s (give or take {MOST_CLOCK_S / 2:.1f} s)"
    if not told_s:
        amount = f"at least {abs(ahead_s):.1f} s"
    side = "ahead of" if ahead_s > 0 else "behind"
    return f"{amount} {side} that of its jobs' masters"


def _consequence(clocks: Sequence[NodeClock]) -> str:
    """What became of the moments that tasks reported by *clocks*."""
    texts = []
    if moved := _tasks(clock for clock in clocks if clock.moved):
        texts.append(f"the phases of {count(moved, 'task')} there were moved by that")
    if dropped := _tasks(clock for clock in clocks if not clock.moved):
        texts.append(f"the phases of {count(dropped, 'task')} there do not count")
    return ", ".join(texts)
