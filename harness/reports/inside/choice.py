"""Which tasks of a job are shown one by one: a page has room for some."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from harness.records.trace import AttemptState, JobTrace, TaskAttempt, TaskKind

# A job of more attempts than this shows its slots as the history tells, and a few tasks in detail.
MOST_DETAILED = 150
# Of a job that takes so many times as long as its tasks, their parts would be too small to be seen.
_LONGEST_JOB = 30
_LOST: dict[AttemptState, str] = {"failed": "failed", "killed": "was killed"}
_KINDS: tuple[TaskKind, ...] = ("map", "reduce")


def typical(job: JobTrace) -> Iterator[tuple[str, TaskAttempt]]:
    """Of each kind the attempt that took the median time and the slowest, with what it is."""
    for kind in _KINDS:
        ordered = sorted(job.succeeded(kind), key=lambda a: (a.duration_s, a.attempt_id))
        if not ordered:
            continue
        middle = ordered[(len(ordered) - 1) // 2]
        if len(ordered) == 1:
            yield f"the only {kind}", middle
            continue
        yield f"the median of {len(ordered)} {kind}s", middle
        if ordered[-1] is not middle:
            yield f"the slowest {kind}", ordered[-1]


def lost(job: JobTrace) -> Iterator[tuple[str, list[TaskAttempt]]]:
    """Of each kind the attempts that failed and those that were killed, the earliest first."""
    for kind in _KINDS:
        for state, text in _LOST.items():
            mine = [a for a in job.attempts if (a.kind, a.state) == (kind, state)]
            if mine:
                yield f"a {kind} that {text}", sorted(mine, key=_by_start)


def _by_start(attempt: TaskAttempt) -> tuple[float, str]:
    return attempt.start_s, attempt.attempt_id


def detailed(job: JobTrace) -> bool:
    """Whether the timeline of *job* has room for the inside of every task, and could show it."""
    if not 0 < len(job.attempts) <= MOST_DETAILED:
        return False
    return median(a.duration_s for a in job.attempts) * _LONGEST_JOB >= job.job_s


def chosen(job: JobTrace) -> frozenset[str]:
    """Ids of the attempts whose inside is drawn."""
    if detailed(job):
        return frozenset(a.attempt_id for a in job.attempts)
    shown = [a for _, a in typical(job)] + [first for _, (first, *_) in lost(job)]
    return frozenset(a.attempt_id for a in shown)
