"""Logs of whole tasks: the marks of the sort buffer, the merge, the shuffle."""

from contextlib import suppress

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ParseError
from harness.base.records.tasks import CopyLog, MergeTimes, ShuffleLog, SpillLog, TaskLog, VisitLog
from harness.observe.parsing.task_log import read_shuffle_log, read_task_log
from tests.parsing.recorded import JOBS, every, named, reported, text

AT = 1768471200.0  # 2026-01-15 10:00:00 UTC
REDUCE = "org.apache.hadoop.mapreduce.task.reduce"
MAP = "attempt_1_0001_m_000003_0"
FILE = "Local output file is /data/x of size 77"


def log(*events):
    """A container's log of (milliseconds, thread, class, message)."""
    return [
        f"2026-01-15 10:00:00,{ms:03} INFO [{thread}] {logger}: {message}\n".encode()
        for ms, thread, logger, message in events
    ]


def task(*events):
    """A map's log of (milliseconds, message), by the main thread or a spill's end."""
    return log(
        *(
            (ms, "SpillThread" if m.startswith("Finished") else "main", f"{MAPRED}.MapTask", m)
            for ms, m in events
        )
    )


MAPRED = "org.apache.hadoop.mapred"
# A ring of 1600 bytes (400 ints): 20 records took 1000 bytes, the equator leaves 5 records or 80
# bytes of metadata, and 200 bytes of data.
SPILL = (
    (0, "kvstart = 396; length = 100"),
    (10, "Spilling map output"),
    (10, "bufstart = 0; bufend = 1000; bufvoid = 1600"),
    (10, "kvstart = 396(1584); kvend = 320(1280); length = 77/100"),
    (11, "(EQUATOR) 1080 kvi 264(1056)"),
)


RING = 4800  # bytes


def boundaries(equator, spills):
    """Lines of *spills* (records, bytes, records collected meanwhile), as MapTask computes them."""
    yield 0, f"kvstart = {RING // 4 - 4}; length = {RING // 16}"
    for number, (records, size, collected) in enumerate(spills):
        end = (equator + size) % RING
        kv = (equator - equator % 16 - 16) % RING // 4
        yield 1, "Spilling map output"
        yield 1, f"bufstart = {equator}; bufend = {end}; bufvoid = {RING}"
        last = (kv - 4 * (records - 1)) % (RING // 4)
        length = 4 * (records - 1) + 1
        yield 1, f"kvstart = {kv}({4 * kv}); kvend = {last}({4 * last}); length = {length}/{RING}"
        equator = (end + 160) % RING
        kv = (equator - equator % 16 - 16) % RING // 4
        yield 1, f"(EQUATOR) {equator} kvi {kv}({4 * kv})"
        yield 2, f"Finished spill {number}"
        index = (kv - 4 * collected) % (RING // 4)
        yield 3, f"(RESET) equator {equator} kv {kv}({4 * kv}) kvi {index}({4 * index})"


class TestMaps:
    """The ``syslog`` of a map."""

    @pytest.mark.parametrize("seen", every("map"), ids=named)
    def test_spills_hold_all_that_the_map_emitted(self, seen):
        """
        Records and bytes of the spills are those of Hadoop's counters, to the last one.
        """
        records = sum(s.records for s in seen.log.spills)
        size = sum(s.buffer_bytes for s in seen.log.spills)

        assert records == seen.counter("MAP_OUTPUT_RECORDS")
        assert size == seen.counter("MAP_OUTPUT_BYTES")

    @pytest.mark.parametrize("seen", every("map"), ids=named)
    def test_no_spill_is_overlapped_by_more_than_fits(self, seen):
        """
        What is collected while a spill runs finds room, and what fills the room comes near to it.
        """
        behind = [s for s in seen.log.spills if not s.last]
        shares = [s.collected / s.room_records for s in behind]

        assert all(0 <= share <= 1 for share in shares)
        assert any(share > 0.998 for share in shares)

    @pytest.mark.parametrize("seen", every("map"), ids=named)
    def test_moments_follow(self, seen):
        """
        A task goes through its moments in their order.
        """
        t = seen.log
        moments = [t.split_s, t.collector_s, t.spills[0].start_s, t.flush_s, t.done_s, t.ended_s]

        assert moments == sorted(moments)
        assert t.attempt_id == seen.attempt.attempt_id

    def test_merge_without_compression(self):
        """
        The merge reads what was spilled: TeraSort's records with two bytes for their lengths.
        """
        for seen in every("map", "stalled", "uneven"):
            spilled = sum(s.buffer_bytes + 2 * s.records for s in seen.log.spills)

            assert seen.log.merged_bytes == pytest.approx(spilled, rel=1e-4)

    def test_marks_of_a_ring(self):
        """
        Records, bytes and room follow from the marks, and so does what was collected meanwhile.
        """
        lines = task(
            *SPILL, (20, "Finished spill 0"), (22, "(RESET) equator 1080 kv 264(1056) kvi 248(992)")
        )

        (spill,) = read_task_log(lines, "x").spills

        assert spill == SpillLog(
            AT + 0.01, AT + 0.02, last=False, records=20, buffer_bytes=1000,
            collected=4, reset_s=AT + 0.022, room_records=5, room_bytes=200,
        )  # fmt: skip

    def test_marks_around_the_end_of_the_ring(self):
        """
        Keys and values that go on at the ring's begin are counted once around.
        """
        lines = task(
            (0, "kvstart = 396; length = 100"), (1, "Spilling map output"),
            (1, "bufstart = 1500; bufend = 100; bufvoid = 1590"),
            (1, "kvstart = 20(80); kvend = 380(1520); length = 41/100"),
            (2, "(EQUATOR) 260 kvi 60(240)"), (3, "Finished spill 0"),
            (4, "(RESET) equator 260 kv 60(240) kvi 380(1520)"),
        )  # fmt: skip

        (spill,) = read_task_log(lines, "x").spills

        assert (spill.records, spill.buffer_bytes) == (11, 190)
        assert (spill.room_records, spill.room_bytes, spill.collected) == (10, 1260, 20)

    @given(
        st.integers(0, RING // 16 - 1),
        st.lists(st.tuples(*[st.integers(1, RING // 48)] * 2, st.integers(0, 99)), max_size=9),
    )
    def test_any_spills(self, begin, spills):
        """
        Wherever in the ring a spill lies, its marks give back what it took and what came after.
        """
        result = read_task_log(task(*boundaries(16 * begin, spills)), "x").spills

        assert [(s.records, s.buffer_bytes, s.collected) for s in result] == spills

    def test_large_records(self):
        """
        Records that do not fit the buffer are counted: they are in no spill.
        """
        lines = task((0, "Record too large for in-memory buffer: 99 bytes"))

        assert read_task_log(lines, "x") == TaskLog(large_records=1)

    def test_wrong_sum_of_a_merge(self):
        """
        Hadoop subtracts unpacked from packed bytes where it merges compressed spills in passes.
        """
        (seen,) = every("map", "passes")

        assert (seen.log.merge_passes, seen.log.merged_bytes) == (20, 0)

    def test_map_that_was_killed(self):
        """
        A real map that got SIGKILL: its spills are there, and nothing of an end.
        """
        result = read_task_log(text("killed", "m_000000_0.syslog"), "x")

        assert result.spills
        assert all(s.collected and not s.last for s in result.spills)
        assert (result.flush_s, result.done_s, result.merged_bytes) == (None, None, 0)

    @pytest.mark.parametrize("job", JOBS)
    @pytest.mark.parametrize("share", [0.1, 0.5, 0.62, 0.7, 0.9])
    def test_log_that_was_cut(self, job, share):
        """
        However far the log came, its spills are the first ones of the whole log.
        """
        data = b"".join(text(job, "m_000000_0.syslog"))
        cut = data[: int(len(data) * share)].splitlines(keepends=True)
        whole = next(t.log for t in reported(job) if t.attempt.kind == "map")

        result = read_task_log(cut, "x")

        alike = [(s.start_s, s.finish_s, s.records) for s in result.spills]
        assert alike == [(s.start_s, s.finish_s, s.records) for s in whole.spills][: len(alike)]
        assert result.ended_s in {None, whole.ended_s}

    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            (task((0, "bufstart = 0; bufend = 9; bufvoid = 99")), "marks of a spill out of order"),
            (task(*SPILL[:2], (11, "bufstart = 0; bufend = 9; bufvoid = 8")), "out of order"),
            (task(*SPILL[:2], (11, "kvstart = 1(4); kvend = 1(4); length = 4/9")), "out of order"),
            (task(*SPILL[:2], (11, "(RESET) equator 1 kv 1(4) kvi 1(4)")), "space given back"),
            (task(*[(0, "Processing split: hdfs://a/b:0+1")] * 2), "a second task"),
            (task((0, "(EQUATOR) 0 kvi x(1)")), "not a line of a task's log"),
            (task((0, "kvstart = 1; length = 99999999999999999")), "not a line of a task's log"),
        ],
    )
    def test_refused(self, lines, message):
        """
        What does not follow is refused at its line.
        """
        with pytest.raises(ParseError, match=message) as error:
            read_task_log(lines, "syslog")

        assert error.value.where == f"syslog:{len(lines)}"

    def test_others_may_quote(self):
        """
        A line of another class is none of ours, whatever it says.
        """
        quoted = "org.apache.hadoop.mapred.MapTask: Finished spill nine"

        assert read_task_log(log((0, "main", "com.example.Job", quoted)), "x") == TaskLog()


class TestReduces:
    """The ``syslog.shuffle`` of a reduce."""

    @pytest.mark.parametrize("seen", every("reduce"), ids=named)
    def test_copies_are_all_that_was_sent(self, seen):
        """
        Lengths and number of the copies are those of Hadoop's counters.
        """
        copies = seen.shuffle.copies

        assert sum(c.sent_bytes for c in copies) == seen.counter("REDUCE_SHUFFLE_BYTES")
        assert len({c.map_attempt for c in copies}) == seen.counter("SHUFFLED_MAPS")
        assert len(copies) == seen.counter("SHUFFLED_MAPS")

    @pytest.mark.parametrize("seen", every("reduce"), ids=named)
    def test_copies_lie_in_visits(self, seen):
        """
        Every copy came from a host, while a fetcher visited it.
        """
        shuffle = seen.shuffle

        for copy in shuffle.copies:
            visit = shuffle.visits[copy.visit]
            assert visit.start_s <= copy.start_s <= copy.finish_s <= visit.finish_s
            assert visit.host in {"worker1:13562", "worker2:13562"}

    @pytest.mark.parametrize("seen", every("reduce"), ids=named)
    def test_ends_where_the_history_does(self, seen):
        """
        The last line of the final merge is the history's end of the sort, to milliseconds.
        """
        assert seen.shuffle.merged_s == pytest.approx(seen.attempt.sort_finish_s, abs=0.01)
        assert seen.shuffle.copied_s == pytest.approx(seen.attempt.shuffle_finish_s, abs=0.1)

    def test_kinds_of_merges(self):
        """
        Real reduces merged in memory, on disk, and at the end.
        """
        kinds = {
            job: [m.kind for m in next(t for t in reported(job) if t.shuffle).shuffle.merges]
            for job in JOBS
        }

        assert kinds == {
            "disk": ["disk"] * 4 + ["final"],
            "passes": ["final"],
            "stalled": ["memory"] * 3 + ["final"],
            "uneven": ["final"],
        }

    def test_full_memory(self):
        """
        Fetchers that found no memory say when.
        """
        counts = [len(t.shuffle.full_s) for t in every("reduce", "stalled")]

        assert counts == [9, 10]

    def test_one_visit(self):
        """
        A copy, the host it came from, and a copy that failed and was fetched again.
        """
        begin = (
            "fetcher#1", f"{REDUCE}.Fetcher",
            f"fetcher#1 about to shuffle output of map {MAP} decomp: 90 len: 40 to DISK",
        )  # fmt: skip
        read = "fetcher#1", f"{REDUCE}.OnDiskMapOutput", f"Read 40 bytes from map-output for {MAP}"
        freed = "fetcher#1", f"{REDUCE}.ShuffleSchedulerImpl", "w:1 freed by fetcher#1 in 8ms"

        result = read_shuffle_log(log((5, *begin), (7, *begin), (8, *read), (12, *freed)), "x")

        assert result == ShuffleLog(
            copies=(CopyLog(MAP, 40, 90, "disk", AT + 0.007, AT + 0.008, visit=0),),
            visits=(VisitLog("w:1", pytest.approx(AT + 0.004), AT + 0.012),),
        )

    def test_merge_that_was_not_over(self):
        """
        What has no end yet is left out.
        """
        begin = "Initiating in-memory merge with 3 segments..."
        end = "attempt_1_0001_r_000000_0 Merge of the 3 files in-memory complete. " + FILE.replace(
            "output ", ""
        )
        logger = f"{REDUCE}.MergeManagerImpl"

        result = read_shuffle_log(
            log((1, "m", logger, begin), (4, "m", logger, end), (6, "m", logger, begin)), "x"
        )

        assert result.merges == (MergeTimes("memory", AT + 0.001, AT + 0.004, 3, 77),)

    @pytest.mark.parametrize(
        ("logger", "message"),
        [
            ("InMemoryMapOutput", f"Read 40 bytes from map-output for {MAP}"),
            (
                "MergeManagerImpl",
                f"a Finished merging 3 map output files on disk of total-size 9. {FILE}",
            ),
        ],
    )  # fmt: skip
    def test_end_without_begin(self, logger, message):
        """
        A log with a hole is refused at its line.
        """
        with pytest.raises(ParseError, match="out of order") as error:
            read_shuffle_log(log((0, "x", f"{REDUCE}.{logger}", message)), "syslog.shuffle")

        assert error.value.where == "syslog.shuffle:1"


LINES = [
    *(line for job in JOBS for line in text(job, "m_000000_0.syslog")),
    *text("stalled", "r_000002_0.syslog.shuffle"),
    *text("disk", "r_000000_0.syslog.shuffle"),
]


@given(
    picked=st.lists(st.sampled_from(LINES) | st.binary(max_size=60), max_size=30),
    flips=st.lists(st.tuples(st.integers(0, 10**4), st.integers(1, 255)), max_size=4),
)
def test_any_bytes_are_read_or_refused(picked, flips):
    """
    Whatever a log holds, the answer is a record or `ParseError`.
    """
    data = bytearray(b"".join(picked) or b"\n")
    for at, bits in flips:
        data[at % len(data)] ^= bits

    for read, kind in ((read_task_log, TaskLog), (read_shuffle_log, ShuffleLog)):
        with suppress(ParseError):
            assert isinstance(read(bytes(data).splitlines(keepends=True), "x"), kind)


@given(st.integers(0, len(LINES)))
def test_cut_anywhere(size):
    """
    A log that ends in the middle of a line is read up to the line before.
    """
    whole = text("stalled", "r_000002_0.syslog.shuffle")
    data = b"".join(whole)[: size * 37]

    assert isinstance(read_shuffle_log(data.splitlines(keepends=True), "x"), ShuffleLog)
