"""The self-test's checks: each passes what is true, and finds what is not."""

from dataclasses import replace

import pytest

from harness.base.records.tasks import RecordLoop, Span, SpillLog, TaskLog, TaskSpans
from harness.base.records.trace import TASK_COUNTER, JobTrace, TaskAttempt
from harness.tracer.checks import (
    Observed,
    check_counts,
    check_cover,
    check_killed,
    check_large,
    check_origins,
    check_output,
    check_parts,
    check_sleeps,
    check_spills,
    check_untraced,
    check_whole,
    checks,
)

MAP = "attempt_1_0001_m_000000_0"
REDUCE = "attempt_1_0001_r_000000_0"
PROCESS = (
    "configuration", "metrics", "login", "get_task", "configure_task", "local_folders", "job_file",
    "file_system", "task", "initialize", "done", "shut_down",
)  # fmt: skip
MAP_PARTS = ("run_mapper", "split", "reader_open", "reader_close", "collector_open", "flush")
REDUCE_PARTS = (
    "shuffle_open", "shuffle", "events", "connect", "close_merges", "final_merge", "run_reducer",
    "writer_open", "reduce_loop", "writer_close", "commit",
)  # fmt: skip
MAP_COUNTS = {
    f"{TASK_COUNTER}.MAP_INPUT_RECORDS": 7,
    f"{TASK_COUNTER}.MAP_OUTPUT_RECORDS": 70,
    f"{TASK_COUNTER}.MAP_OUTPUT_MATERIALIZED_BYTES": 900,
    "mapreduce.harness.jobs.Sleep$Slept.READ_NS": 1_000_000_000,
    "mapreduce.harness.jobs.Sleep$Slept.MAP_NS": 2_000_000_000,
    "mapreduce.harness.jobs.Sleep$Slept.WORK_NS": 700_000_000,
    "mapreduce.harness.jobs.Sleep$Slept.COMBINE_NS": 500_000_000,
}
REDUCE_COUNTS = {
    f"{TASK_COUNTER}.REDUCE_INPUT_RECORDS": 60,
    f"{TASK_COUNTER}.REDUCE_OUTPUT_RECORDS": 6,
    f"{TASK_COUNTER}.SHUFFLED_MAPS": 1,
    f"{TASK_COUNTER}.REDUCE_SHUFFLE_BYTES": 900,
    "mapreduce.harness.jobs.Sleep$Slept.REDUCE_NS": 3_000_000_000,
}


def loop(records, outputs, read_s, function_s, spilling_s=0.0):
    """Sums of a record loop."""
    return RecordLoop(records, read_s, function_s, spilling_s, 0.0, 0, outputs, 0.0, 0, 0.0, 0, ())


def span(name, start_s, wall_s, parent=0, thread="main", **more):
    """A span of so many seconds."""
    return Span(name, thread, start_s, wall_s, wall_s, parent, **more)


def map_spans(**changes):
    """A map of two spills and a merge of two passes."""
    spans = (
        span("main", 100.0, 9.0, -1),
        span("map_loop", 101.0, 5.0),
        span("spill", 102.0, 1.0, -1, "SpillThread", details=(40, 600, 0, 1, 9)),
        span("sort", 102.0, 0.2, 2, "SpillThread", amount=40),
        span("combine", 102.2, 0.3, 2, "SpillThread"),
        span("spill", 106.0, 1.0, details=(30, 450, 1, 0, 0)),
        span("sort", 106.0, 0.2, 5, amount=30),
        span("combine", 106.2, 0.2, 5),
        span("merge", 107.0, 1.0, details=(45, 900, 5, 100, 0)),
        span("merge_pass", 107.0, 0.5, 8),
        span("write_file", 107.1, 0.4, 9, amount=100),
        span("write_file", 107.6, 0.4, 8, amount=900),
        span("pretended work", 102.0, 0.7, 1),
        *(span(name, 100.0, 0.0) for name in (*PROCESS, *MAP_PARTS)),
    )
    whole = TaskSpans(MAP, "closed", 100.0, 99.5, 0.004, 0, 5, loop(7, 70, 1.0, 1.5, 0.5), spans)
    return replace(whole, **changes)


def reduce_spans(**changes):
    """A reduce of one segment."""
    spans = (
        span("main", 110.0, 9.0, -1),
        span("visit", 111.0, 1.0, -1, "fetcher#1", text="w:13562"),
        span("segment", 111.0, 1.0, 1, "fetcher#1", text=MAP, details=(900, 1000, 0)),
        *(span(name, 110.0, 0.0) for name in (*PROCESS, *REDUCE_PARTS)),
    )
    whole = TaskSpans(REDUCE, "closed", 110.0, 109.5, 0.0, 0, 5, loop(60, 6, 1.0, 3.0), spans)
    return replace(whole, **changes)


def attempt(name, kind, start_s, counters, state="succeeded", *, finish_s=None):
    """An attempt of ten seconds."""
    task = name.replace("attempt", "task", 1)[:-2]
    end = start_s + 10 if finish_s is None else finish_s
    return TaskAttempt(name, task, kind, state, start_s, end, "w", counters=counters)


def job(tasks=None, attempts=None, spills=2, state="SUCCEEDED", **counters):
    """A job of one map and one reduce, all of it as it should be."""
    if tasks is None:
        tasks = (map_spans(), reduce_spans())
    if attempts is None:
        attempts = (
            attempt(MAP, "map", 99.0, MAP_COUNTS),
            attempt(REDUCE, "reduce", 109.0, REDUCE_COUNTS),
        )
    counts = {f"{TASK_COUNTER}.{name}": value for name, value in counters.items()}
    trace = JobTrace("job_1_0001", "n", "u", state, 98, 99, 120, 1, 1, attempts, counts)
    log = TaskLog(spills=(SpillLog(1.0, 2.0, last=False),) * spills)
    return Observed("small", trace, {t.attempt_id: t for t in tasks}, {MAP: log})


def failed(results):
    """Names of the checks that found something wrong."""
    return [check.name for check in results if not check.ok]


def test_a_true_recording_passes():
    """
    All checks, and those of the sleeps: nothing is wrong.
    """
    good = job()

    assert failed([*checks(good), *check_sleeps(good)]) == []


@pytest.mark.parametrize(
    "tasks",
    [
        (reduce_spans(),),
        (map_spans(state="open"), reduce_spans()),
        (map_spans(lost=1), reduce_spans()),
    ],
    ids=["missing", "open", "lost"],
)
def test_a_recording_that_is_not_whole_is_named(tasks):
    """
    Missing, not closed, or with spans lost: the attempt stands in what was found.
    """
    check = check_whole(job(tasks))

    assert (check.ok, check.observed) == (False, f"1; wrong: {MAP}")


def test_a_job_without_attempts_proves_nothing():
    """
    Where there is nothing to compare, no check passes.
    """
    empty = job((), ())

    assert not any(check.ok for check in [*checks(empty), *check_sleeps(empty)])


@pytest.mark.parametrize(
    ("change", "missing_ms", "ok"),
    [
        ({"finish_s": 109.05}, 50, True),
        ({"finish_s": 109.2}, 200, False),
        ({"start_s": 99.6}, 100, False),
    ],
    ids=["50 ms", "end", "launched after its process"],
)
def test_time_that_no_piece_covers(change, missing_ms, ok):
    """
    50 ms or 1 % may be missing, whichever is more; pieces that overlap miss as much.
    """
    given = {"start_s": 99.0, "finish_s": 109.0, **change}
    start_s = given.pop("start_s")
    attempts = (attempt(MAP, "map", start_s, MAP_COUNTS, **given),)

    check = check_cover(job((map_spans(),), attempts))

    assert check.ok is ok
    assert check.observed.startswith(f"{missing_ms} ms of ")


@pytest.mark.parametrize(
    ("counter", "name"),
    [
        ("MAP_INPUT_RECORDS", "map: records read"),
        ("MAP_OUTPUT_MATERIALIZED_BYTES", "map: bytes of outputs"),
        ("REDUCE_INPUT_RECORDS", "reduce: records read"),
        ("REDUCE_OUTPUT_RECORDS", "reduce: write calls"),
        ("SHUFFLED_MAPS", "reduce: segments copied"),
        ("REDUCE_SHUFFLE_BYTES", "reduce: bytes copied"),
    ],
)
def test_a_count_that_is_one_off(counter, name):
    """
    Counts are equal to the last record and byte, or the check fails.
    """
    key = f"{TASK_COUNTER}.{counter}"
    attempts = tuple(
        attempt(a, kind, start, {k: v + (k == key) for k, v in counts.items()})
        for a, kind, start, counts in (
            (MAP, "map", 99.0, MAP_COUNTS),
            (REDUCE, "reduce", 109.0, REDUCE_COUNTS),
        )
    )

    assert failed(check_counts(job(attempts=attempts))) == [name]


def test_a_sort_that_was_not_seen():
    """
    Calls of collect and records of sorts are two counts of the same records.
    """
    spans = [s for s in map_spans().spans if s.name != "sort"]
    unseen = map_spans(spans=tuple(s._replace(parent=min(s.parent, 0)) for s in spans))

    names = failed(check_counts(job((unseen, reduce_spans()))))

    assert "map: records sorted" in names
    assert "map: collect calls" not in names


def test_a_spill_that_only_the_log_tells_of():
    """
    Three lines, two spans.
    """
    check = check_spills(job(spills=3))

    assert (check.ok, check.observed) == (False, f"2; wrong: 2 for 3 in {MAP}")


@pytest.mark.parametrize(
    ("counter", "phase"),
    [
        ("READ_NS", "map: slept in reader"),
        ("MAP_NS", "map: slept in map function"),
        ("COMBINE_NS", "map: slept in combiner"),
        ("REDUCE_NS", "reduce: slept in reduce function"),
    ],
)
@pytest.mark.parametrize(("factor", "ok"), [(1.015, True), (1.03, False), (0.97, False)])
def test_a_sleep_in_the_wrong_phase(counter, phase, factor, ok):
    """
    2 % off is allowed, to either side, and no phase pays for another.
    """
    key = f"mapreduce.harness.jobs.Sleep$Slept.{counter}"
    attempts = tuple(
        replace(a, counters={k: v * factor if k == key else v for k, v in a.counters.items()})
        for a in job().trace.attempts
    )

    assert failed(check_sleeps(job(attempts=attempts))) == ([] if ok else [phase])


def killed(**changes):
    """A job whose first map was killed in record 61 and made up for."""
    lost = MAP[:-1] + "9"
    spans = (
        span("main", 100.0, 2.0, -1, open=True),
        span("map_loop", 101.0, 1.0, open=True),
    )
    task = map_spans(attempt_id=lost, state="open", spans=spans, loop=loop(50, 50, 1.0, 1.0))
    attempts = (*job().trace.attempts, attempt(lost, "map", 99.0, {}, "failed"))
    return job((replace(task, **changes), map_spans(), reduce_spans()), attempts)


def test_a_killed_attempt_is_read():
    """
    It ends within its loop, and tells of records up to the kill.
    """
    check = check_killed(killed(), 61)

    assert (check.ok, check.observed) == (True, "1 of 1 recorded, 1 open, 50 records")


@pytest.mark.parametrize(
    "observed",
    [
        job(),
        killed(state="closed"),
        killed(loop=loop(0, 0, 0.0, 0.0)),
        killed(loop=loop(62, 0, 0.0, 0.0)),
        killed(attempt_id="attempt_1_0001_m_000007_0"),
        killed(spans=map_spans().spans),
    ],
    ids=["none killed", "closed", "no records", "too many", "not recorded", "loop over"],
)
def test_what_no_killed_attempt_leaves(observed):
    """
    A recording that says something else than a kill within the loop.
    """
    assert not check_killed(observed, 61).ok


@pytest.mark.parametrize(
    ("state", "records", "ok"),
    [("SUCCEEDED", 200, True), ("SUCCEEDED", 199, False), ("FAILED", 200, False)],
)
def test_the_job_of_a_killed_attempt(state, records, ok):
    """
    It is done, and has read all there was.
    """
    assert check_output(job(state=state, MAP_INPUT_RECORDS=records), 200).ok is ok


def without(task, name):
    """A task that lacks the spans of one name."""
    return replace(task, spans=tuple(s for s in task.spans if s.name != name))


def test_a_part_that_no_hook_has_seen():
    """
    A part without a span is named, with its attempt.
    """
    check = check_parts(job((without(map_spans(), "get_task"), reduce_spans())))

    assert (check.ok, check.observed) == (False, f"1 attempts have all; wrong: get_task in {MAP}")


def test_a_segment_without_its_map():
    """
    What a segment came from is no map of the job's, or another host than that map ran on.
    """
    anonymous = tuple(s._replace(text="") for s in reduce_spans().spans)
    check = check_origins(job((map_spans(), reduce_spans(spans=anonymous))))

    assert (check.ok, check.observed) == (False, "0; wrong: no map of no host")


def test_a_record_too_large():
    """
    Its spill has a span of its own, as many as the log tells of; none at all proves nothing.
    """
    extra = (*map_spans().spans, span("spill_single", 108.0, 0.1, amount=1))
    large = job((map_spans(spans=extra), reduce_spans()))
    logged = large._replace(logs={MAP: replace(large.logs[MAP], large_records=1)})

    assert [check_large(j).ok for j in (logged, large, job())] == [True, False, False]


def test_an_untraced_job():
    """
    It succeeds, and nothing is recorded.
    """
    untraced = job(())

    assert [check_untraced(j).ok for j in (untraced, job())] == [True, False]


def test_a_job_without_reduces():
    """
    Nothing is sorted, spilled or copied; outputs are opened, closed and committed.
    """
    direct = ("writer_open", "collector_close", "commit")
    spans = (*map_spans().spans, *(span(name, 100.0, 0.0) for name in direct))
    whole = job((map_spans(spans=spans),), (attempt(MAP, "map", 99.0, MAP_COUNTS),))
    only = whole._replace(trace=replace(whole.trace, num_reduces=0))

    assert [(check.name, check.ok) for check in checks(only)] == [
        ("recordings", True),
        ("main thread covers each attempt", True),
        ("parts", True),
        ("map: records read", True),
        ("map: collect calls", True),
    ]
