"""Laws of what was recorded inside tasks: its times lie within each other, and add up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from harness.base.records.tasks import RecordLoop, Span, TaskSpans
from harness.base.records.trace import TaskAttempt
from harness.core.evaluate.laws.measured import Measured

_CLOCK_STEP_S = 0.001
_TICK_S = 0.05  # a few of those in which the kernel counts processors' time
# What parts leave of a whole, as measured in 1389 recordings: of any task at most 0.21 s, in the
# median of a trial 0.14 s.  A machine that is short of memory may
# pause any task for longer.
_MOST_LEFT = (1.0, 0.05)  # of one task: seconds, and share of the whole
_USUALLY_LEFT = (0.2, 0.02)  # in the median over the tasks of a trial
_WITHOUT_PAUSE = frozenset({"task", "run_mapper", "run_reducer"})  # whose parts are all recorded
_LOOPS = frozenset({"map_loop", "reduce_loop"})


class Filled(NamedTuple):
    """A *whole* time of one task by its *name*, and what its *parts* come to; in seconds."""

    name: str
    whole_s: float
    parts_s: float


def spans_within_attempts(measured: Measured) -> Iterator[str]:
    """What was recorded in a task lies within its attempt, fills it, and adds up."""
    for trial_id, jobs in measured.jobs.items():
        attempts = {attempt.attempt_id: attempt for job in jobs for attempt in job.attempts}
        filled = defaultdict[str, list[Filled]](list)
        has_own_code = measured.records[trial_id].trial.cell.workload.code is not None
        for task in measured.recordings[trial_id]:
            attempt = attempts.get(task.attempt_id)
            if attempt is None:
                yield f"{task.attempt_id} was recorded, and no job of trial {trial_id} has it"
                continue
            yield from _outside(task, attempt)
            if is_whole(task, attempt):
                for part in _filled(task, attempt, has_own_code=has_own_code):
                    filled[part.name].append(part)
        if not measured.is_of_this_clock:
            filled.pop("attempt", None)
        yield from _not_filled(trial_id, filled)


def is_whole(task: TaskSpans, attempt: TaskAttempt) -> bool:
    """Whether a *task* was recorded from its begin to its end, and ended well."""
    has_all = task.state == "closed" and not task.lost and len(task.spans) > 0
    return has_all and attempt.state == "succeeded"


def _outside(task: TaskSpans, attempt: TaskAttempt) -> Iterator[str]:
    """What of a *task* lies outside of what it should lie in: a sentence at most."""
    start_s, finish_s = attempt.window
    spans = task.spans
    if not all(start_s <= span.start_s and span.finish_s <= finish_s for span in spans):
        yield f"{task.attempt_id} was recorded outside of the time that it ran"
    elif not all(_is_within(span, spans[span.parent]) for span in spans if span.parent >= 0):
        yield f"{task.attempt_id} has a span that ends after the one around it, or starts before it"
    elif any((span.cpu_s or 0.0) > span.wall_s + _CLOCK_STEP_S for span in spans):
        yield f"{task.attempt_id} has a span whose thread ran for longer than it took"
    elif _used_s(task) < _counted_s(task, attempt) - _TICK_S:
        yield f"{task.attempt_id} used less of a processor than its job counted, or than its spans"


def _is_within(span: Span, around: Span) -> bool:
    """Whether a *span* lies within the one *around* it."""
    return (
        around.start_s <= span.start_s + _CLOCK_STEP_S
        and span.finish_s <= around.finish_s + _CLOCK_STEP_S
    )


def _used_s(task: TaskSpans) -> float:
    """Processor seconds of a task's process, without end where they were not read."""
    return float("inf") if task.cpu_at_end_s is None else task.cpu_at_end_s


def _counted_s(task: TaskSpans, attempt: TaskAttempt) -> float:
    """Processor seconds that a *task* has used at least: by its job's counters, by its spans."""
    spans_s = sum(span.cpu_s or 0.0 for span in task.spans if span.parent < 0)
    return max(attempt.count("CPU_MILLISECONDS") / 1e3, (task.cpu_at_main_s or 0.0) + spans_s)


def _filled(task: TaskSpans, attempt: TaskAttempt, *, has_own_code: bool) -> Iterator[Filled]:
    """Whole times of a *task*, with what their parts come to."""
    first_s = min(span.start_s for span in task.spans)
    last_s = max(span.finish_s for span in task.spans)
    yield Filled("attempt", attempt.finish_s - first_s, last_s - first_s)
    outermost = [span for span in task.spans if span.parent < 0]
    yield Filled("recording", last_s - first_s, _covered_s(outermost))
    parts_s = defaultdict[int, float](float)
    for span in task.spans:
        parts_s[span.parent] += span.wall_s
    for place, span in enumerate(task.spans):
        if span.name in _WITHOUT_PAUSE:
            yield Filled(span.name, span.wall_s, parts_s[place])
        elif span.name in _LOOPS and not has_own_code:  # whose functions may have threads
            yield Filled(span.name, span.wall_s, _looped_s(task.loop, span.name))


def _covered_s(spans: Sequence[Span]) -> float:
    """Seconds in which there was one of the *spans* at least."""
    covered_s = 0.0
    end_s = float("-inf")
    for span in sorted(spans, key=lambda span: span.start_s):
        covered_s += max(0.0, span.finish_s - max(span.start_s, end_s))
        end_s = max(end_s, span.finish_s)
    return covered_s


def _looped_s(loop: RecordLoop, name: str) -> float:
    """Seconds of a loop over records, by its sums."""
    spilling_s = loop.spilling_s if name == "map_loop" else 0.0
    return loop.read_s + loop.function_s + spilling_s + loop.blocked_s


def _not_filled(trial_id: str, filled: Mapping[str, Sequence[Filled]]) -> Iterator[str]:
    """Whole times of a trial that their parts do not fill, in one task or in most of them."""
    for name, wholes in filled.items():
        left_s = [abs(whole.whole_s - whole.parts_s) for whole in wholes]
        if name == "attempt":  # a process ends a moment after its task has said that it is done
            left_s = [max(0.0, whole.whole_s - whole.parts_s) for whole in wholes]
        whole_s = [whole.whole_s for whole in wholes]
        is_broken = median(left_s) > _USUALLY_LEFT[0] + _USUALLY_LEFT[1] * median(whole_s)
        is_broken |= any(
            left > _MOST_LEFT[0] + _MOST_LEFT[1] * whole
            for left, whole in zip(left_s, whole_s, strict=True)
        )
        if is_broken:
            yield (
                f"{name} in the tasks of trial {trial_id}: parts come to"
                f" {sum(whole.parts_s for whole in wholes):.1f} s of {sum(whole_s):.1f} s"
            )
