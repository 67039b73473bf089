"""Nodes whose clock is off: their moments are moved or left out, and nothing else is."""

import json

from dataclasses import replace

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.records.trace import NodeClock, TaskAttempt
from harness.observe.parsing.clocks import clock_notes, settled
from harness.observe.parsing.history import read_history
from harness.observe.profiling.measured import measured
from tests.parsing.histories import JSON, RECORDED

REPORTED = ("mapFinishTime", "shuffleFinishTime", "sortFinishTime")
MOMENTS = ("map_finish_s", "shuffle_finish_s", "sort_finish_s")


def shifted(history, host, offset_ms):
    """A history in which the moments that tasks report from *host* are ahead by *offset_ms*."""
    lines = []
    for line in history.splitlines():
        if b"ATTEMPT_FINISHED" not in line[:60]:
            lines.append(line)
            continue
        event = json.loads(line)
        ((_, fields),) = event["event"].items()
        if fields["hostname"] == host:
            fields |= {name: fields[name] + offset_ms for name in REPORTED if name in fields}
        lines.append(json.dumps(event, separators=(",", ":")).encode())
    return b"\n".join(lines) + b"\n"


def elsewhere(job, host):
    """The attempts that ran on other nodes than *host*."""
    return [attempt for attempt in job.attempts if attempt.host != host]


@given(
    name=st.sampled_from(["wordcount", "terasort", "teragen"]),
    offset_ms=st.integers(-1_000_000_000, 10**12),
    host_number=st.integers(0, 1),
)
def test_a_nodes_clock_removes_no_job_and_changes_no_other_node(name, offset_ms, host_number):
    """
    Nor the times of the job, of its tasks, or of phases elsewhere, however far it is off.
    """
    right = read_history([JSON[name]], "x")
    host = sorted({attempt.host for attempt in right.attempts})[-host_number]

    off = read_history([shifted(JSON[name], host, offset_ms)], "x")

    assert (off.job_s, off.submit_s, off.launch_s) == (right.job_s, right.submit_s, right.launch_s)
    assert elsewhere(off, host) == elsewhere(right, host)
    ends = {attempt.attempt_id: (0.0, 0.0) for attempt in right.attempts}
    times, times_there = (measured([job], ends) for job in (off, right))
    for quantity in ("job_s", "makespan_s", "map_task_s", "reduce_task_s"):
        assert times.get(quantity) == times_there.get(quantity)
    for attempt in off.attempts:
        moments = [getattr(attempt, moment) for moment in MOMENTS]
        assert all(at_s is None or attempt.window[0] <= at_s <= attempt.window[1]
                   for at_s in moments)  # fmt: skip


def reduce(number, *, shuffled, merged, finish, host="a"):
    """A reduce on *host* that starts at 100 s, and reports these moments."""
    return TaskAttempt(
        f"attempt_1_0001_r_{number:06d}_0", "t", "reduce", "succeeded", 100.0, finish, host,
        shuffle_finish_s=shuffled, sort_finish_s=merged,
    )  # fmt: skip


def test_moments_are_moved_where_they_tell_the_offset():
    """
    A moment soon behind the start and one soon before the end leave half a second on each side.
    """
    other = reduce(1, shuffled=101.0, merged=102.0, finish=110.0, host="b")
    off = reduce(2, shuffled=108.5, merged=117.75, finish=110.0)

    (kept, moved), (clock,) = settled([off, other])

    assert kept == other
    assert clock == NodeClock("a", 8.125, 1, moved=True)
    assert (moved.shuffle_finish_s, moved.sort_finish_s) == (100.375, 109.625)
    assert (moved.start_s, moved.finish_s) == (100.0, 110.0)


@pytest.mark.parametrize(
    "others",
    [
        [],  # between 8 and 17 s ahead
        [reduce(3, shuffled=101.0, merged=102.0, finish=110.0)],  # it was set right between
    ],
)
def test_moments_do_not_count_where_they_do_not(others):
    """
    All of the node's: which of them are right nobody knows.
    """
    attempts, (clock,) = settled([reduce(2, shuffled=117.0, merged=118.0, finish=110.0), *others])

    assert clock == NodeClock("a", 8.0, len(attempts), moved=False)
    assert {getattr(attempt, name) for attempt in attempts for name in MOMENTS} == {None}


def test_moments_that_contradict_each_other_are_refused():
    """
    A merge that ends before the shuffle, by one clock.
    """
    (attempt,), clocks = settled([reduce(1, shuffled=105.0, merged=104.0, finish=110.0)])

    assert (attempt.shuffle_finish_s, attempt.sort_finish_s) == (None, None)
    (note,) = clock_notes(clocks)
    assert "behind" not in note


def test_attempts_whose_host_is_not_known_stand_for_themselves():
    """
    One of them whose moments cannot be says nothing of the others.
    """
    right = reduce(1, shuffled=101.0, merged=102.0, finish=110.0, host="")
    wrong = reduce(2, shuffled=201.0, merged=202.0, finish=110.0, host="")

    kept, (clock,) = settled([right, wrong])

    assert kept[0] == right
    assert (kept[1].shuffle_finish_s, clock.tasks) == (None, 1)


def test_recorded_histories_are_read_as_they_are():
    """
    Of clocks that agree no moment is changed.
    """
    for history in (*JSON.values(), *RECORDED.values()):
        assert read_history([history], "x").clocks == ()


def test_notes():
    """
    By how much, and how many tasks; those of most tasks first, others as a number, names as shown.
    """
    clocks = [
        NodeClock("w1", 8.2, 3, moved=True),
        NodeClock("w1", 7.6, 1, moved=False),
        NodeClock("w2", -40.0, 2, moved=False),
        NodeClock("w\x1b3", 1e9, 1, moved=False),
        NodeClock("w4", 9.0, 1, moved=False),
        NodeClock("", 9.0, 1, moved=False),
    ]

    notes = [*clock_notes(clocks, lambda host: host.replace("w1", "worker9"))]

    assert notes[0] == (
        "the clock of worker9 is 8.2 s (give or take 0.5 s) ahead of that of its jobs' masters:"
        " the phases of"
        " 3 tasks there were moved by that, the phases of 1 task there do not count"
    )
    assert "w2 is at least 40.0 s behind" in notes[1]
    assert "a node without a name" in notes[2]
    assert notes[3:] == [
        "so are the clocks of 2 more nodes: the phases of 2 tasks there do not count"
    ]
    (least,) = clock_notes([NodeClock("w1", shown_s, 1, moved=False) for shown_s in (6.6, 7.7)])
    assert least.startswith("the clock of w1 is at least 7.7 s ahead of")
    (unsteady,) = clock_notes([replace(clocks[0], ahead_s=0.2)])
    assert unsteady.startswith("the clock of w1 is not")
