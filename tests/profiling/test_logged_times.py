"""What logs show of the inside of tasks: real ones, and some whose truth is known."""

import pytest

from harness.base.records.tasks import CopyLog, MergeTimes, ShuffleLog, SpillLog, TaskLog, VisitLog
from harness.base.records.trace import TASK_COUNTER, TaskAttempt
from harness.observe.profiling.task_times import logged_map_times, logged_reduce_times
from tests.parsing.recorded import every, named

ROOM, WIDTH = 1000, 84  # records, and bytes of each, that fit beside a running spill


def attempt(kind="map", **counters):
    """An attempt from second 0 to second 100."""
    return TaskAttempt(
        "attempt_1_0001_m_000000_0", "task_1_0001_m_000000", kind, "succeeded", 0.0, 100.0, "w1",
        counters={f"{TASK_COUNTER}.{name}": value for name, value in counters.items()},
    )  # fmt: skip


def spill(start, finish, *, collected=None, reset=None, last=False, records=4000):
    """A spill of *records*; without *last*, the buffer has room for `ROOM` more."""
    return SpillLog(
        start, finish, last, records, records * WIDTH, collected, reset,
        None if last else ROOM, None if last else ROOM * WIDTH,
    )  # fmt: skip


def mapped(*spills, emitted=8000, read=4000, **others):
    """A map that reads for ten seconds, from second 10."""
    log = TaskLog(
        split_s=9.0, collector_s=10.0, flush_s=20.0, spills=spills, done_s=29.0, ended_s=30.0,
        merged_bytes=5000, **others,
    )  # fmt: skip
    counters = {"MAP_INPUT_RECORDS": read, "MAP_OUTPUT_RECORDS": emitted, "CPU_MILLISECONDS": 7500}
    return log, attempt(**counters)


class TestMaps:
    """Maps of which all is known."""

    def test_without_being_blocked(self):
        """
        The map function ran all the time: the buffer's marks divide its records.
        """
        behind = spill(12.0, 14.0, collected=600, reset=15.0)
        task = logged_map_times(*mapped(behind, spill(20.0, 21.0, last=True)))

        assert (task.spilling_s, task.alone_s, task.blocked_s) == (2.0, 8.0, 0.0)
        # Two records emitted for each read; 600 in three seconds, two of them beside the spill.
        assert (task.spilling_records, task.alone_records) == (200, 3800)
        assert [s.overlapped for s in task.spills] == [200, 0]
        assert task.sampled == ()

    def test_blocked_beside_others(self):
        """
        A spill that blocked costs as much for a record as those that did not, and then it stood.
        """
        free = spill(12.0, 13.0, collected=500, reset=13.001)
        full = spill(14.0, 18.0, collected=ROOM - 2, reset=18.0)
        task = logged_map_times(*mapped(free, full, spill(20.0, 21.0, last=True)))

        cost = 1.0 / 500
        assert task.spilling_s == pytest.approx(1.0 + cost * 998, rel=1e-3)
        assert task.blocked_s == pytest.approx(4.0 - cost * 998, rel=2e-3)
        assert task.alone_s == pytest.approx(5.0)
        assert task.sampled == ("spilling_s", "blocked_s")

    def test_always_blocked(self):
        """
        When the map function stood still, and how long, no log of such a task shows.
        """
        full = spill(12.0, 16.0, collected=ROOM - 2, reset=16.0)
        task = logged_map_times(*mapped(full, spill(20.0, 21.0, last=True)))

        assert (task.spilling_s, task.blocked_s) == (None, None)
        assert (task.spilling_records, task.alone_records, task.alone_s) == (499, 3501, 6.0)

    def test_room_of_keys_and_values(self):
        """
        Records wider than those before them fill the room by their bytes.
        """
        full = spill(12.0, 16.0, collected=ROOM // 2, reset=16.0)
        wide = SpillLog(20.0, 21.0, last=True, records=4000, buffer_bytes=4000 * 2 * WIDTH)

        assert logged_map_times(*mapped(full, wide)).blocked_s is None

    def test_spill_beyond_the_end(self):
        """
        A spill that still runs when the input ends is overlapped up to there, at others' cost.
        """
        free, cut = spill(12.0, 13.0, collected=500, reset=13.0), spill(18.0, 24.0, collected=600)
        task = logged_map_times(*mapped(free, cut, spill(24.0, 25.0, last=True)))

        assert task.spilling_s == pytest.approx(1.0 + 600 / 500)
        assert (task.spilling_records, task.alone_s, task.blocked_s) == (550, 7.0, 0.0)
        assert (task.flush_s, task.merge_s) == (5.0, 4.0)

    def test_nothing_but_the_end(self):
        """
        Where the only spill is cut short by the input's end, no line shows what a record costs.
        """
        cut = spill(18.0, 24.0, collected=600, reset=24.0)
        task = logged_map_times(*mapped(cut, spill(24.0, 25.0, last=True)))

        assert (task.spilling_s, task.spilling_records, task.blocked_s) == (None, 300, None)

    def test_parts_around(self):
        """
        Start-up, flush, merge and end cover the attempt with the map function between them.
        """
        task = logged_map_times(*mapped(spill(20.0, 21.0, last=True)))

        parts = (task.start_up_s, task.alone_s, task.flush_s, task.merge_s, task.end_s)
        assert parts == (10.0, 10.0, 1.0, 8.0, 71.0)
        assert (task.read_s, task.collect_s) == (None, None)

    def test_bytes_of_files(self):
        """
        One spill is the output; more are what their merge read, by the bytes that each took.
        """
        log, _ = mapped(spill(12.0, 14.0, last=True))
        one = logged_map_times(log, attempt(MAP_OUTPUT_MATERIALIZED_BYTES=99))
        more = mapped(
            spill(12.0, 14.0, collected=600, reset=15.0, records=6000),
            spill(20.0, 21.0, last=True),
        )
        passes = mapped(*more[0].spills, merge_passes=2)

        assert [s.file_bytes for s in one.spills] == [99]
        assert [s.file_bytes for s in logged_map_times(*more).spills] == [3000, 2000]
        assert [s.file_bytes for s in logged_map_times(*passes).spills] == [3000, 2000]
        reported = logged_map_times(*passes, is_compressed=True)
        assert [s.file_bytes for s in reported.spills] == [None, None]

    def test_killed(self):
        """
        Of a map that was killed there is what its log had come to, and no sum over it.
        """
        log = TaskLog(split_s=9.0, collector_s=10.0, spills=(spill(12.0, 14.0),))
        task = logged_map_times(log, attempt())

        assert (task.alone_s, task.spilling_s, task.merge_s, task.end_s) == (None,) * 4
        assert (task.start_up_s, task.spills[0].overlapped) == (10.0, None)

    def test_without_reduces(self):
        """
        A map without a sort buffer maps from its split to its end.
        """
        log = TaskLog(split_s=9.0, done_s=29.0, ended_s=30.0)
        task = logged_map_times(log, attempt(MAP_INPUT_RECORDS=10))

        assert (task.start_up_s, task.alone_s, task.alone_records) == (9.0, 20.0, 10)
        assert (task.flush_s, task.spills) == (None, ())


class TestRealMaps:
    """Maps of real jobs."""

    @pytest.mark.parametrize("seen", every("map"), ids=named)
    def test_parts_are_the_whole(self, seen):
        """
        What the log shows covers the attempt to a millisecond.
        """
        task = logged_map_times(seen.log, seen.attempt)
        spilling = sum(
            min(s.finish_s, seen.log.flush_s) - s.start_s for s in task.spills if not s.last
        )

        parts = (task.start_up_s, task.alone_s, spilling, task.flush_s, task.merge_s, task.end_s)
        assert sum(parts) == pytest.approx(seen.attempt.duration_s, abs=0.002)
        assert task.alone_records + task.spilling_records == seen.counter("MAP_INPUT_RECORDS")

    def test_cost_while_a_spill_runs(self):
        """
        Maps whose spills blocked now and then show both costs: the first one has the start of the
        JVM's compiler in it, and they are of one size.
        """
        tasks = [logged_map_times(t.log, t.attempt) for t in every("map", "uneven")]

        ratios = [t.spilling_s / t.spilling_records * t.alone_records / t.alone_s for t in tasks]
        assert all(0.25 < ratio < 4 for ratio in ratios)
        assert all(t.blocked_s > 0 for t in tasks)


class TestReduces:
    """Reduces of which all is known, and real ones."""

    def test_times(self):
        """
        Waiting is what neither visits nor stalls cover of the time before the last copy.
        """
        shuffle = ShuffleLog(
            begin_s=10.0, copied_s=20.0, merged_s=25.0,
            copies=(
                CopyLog("m0", 40, 90, "memory", 12.0, 12.5, 0),
                CopyLog("m1", 4, 9, "disk", 12.5, 13.0, 0),
            ),
            visits=(VisitLog("w2:13562", 11.0, 13.0),),
            merges=(MergeTimes("memory", 14.5, 16.0, 1, 70), MergeTimes("final", 21.0, 25.0, 2)),
            full_s=(14.0, 15.0, 24.0),
        )  # fmt: skip
        log = TaskLog(shuffle_s=9.0, done_s=60.0, allowed_s=60.5, saved_s=61.5, ended_s=62.0)

        task = logged_reduce_times(log, shuffle, attempt("reduce", REDUCE_INPUT_RECORDS=5))

        assert (task.start_up_s, task.shuffle_s, task.loop_s) == (10.0, 15.0, 35.0)
        assert (task.waited_s, task.stalled_s) == (6.0, 2.0)
        assert (task.commit_s, task.end_s, task.records) == (1.0, 40.0, 5)
        assert [(s.host, s.connect_s) for s in task.segments] == [("w2", 1.0), ("w2", 0.0)]
        assert [(m.kind, m.bytes) for m in task.merges] == [("memory", 70), ("final", None)]
        assert (task.read_s, task.function_s, task.write_s) == (None, None, None)

    @pytest.mark.parametrize("seen", every("reduce"), ids=named)
    def test_real(self, seen):
        """
        What the logs show covers the attempt to a few milliseconds, and waiting is a part of it.
        """
        task = logged_reduce_times(seen.log, seen.shuffle, seen.attempt)

        parts = (task.start_up_s, task.shuffle_s, task.loop_s, task.end_s)
        assert sum(parts) == pytest.approx(seen.attempt.duration_s, abs=0.002)
        assert 0 <= task.stalled_s + task.waited_s <= task.shuffle_s
        assert (task.stalled_s > 0) == bool(seen.shuffle.full_s)
        assert sum(s.sent_bytes for s in task.segments) == seen.counter("REDUCE_SHUFFLE_BYTES")
