"""Logs of lines: spills, garbage collection, speed probe, machine."""

import itertools
import json

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ParseError
from harness.base.records.tasks import TaskLog
from harness.base.records.trace import MachineSample, SpeedSample
from harness.observe.parsing.lines import read_machine, read_speed
from harness.observe.parsing.task_log import read_task_log, read_zone

DATA = Path(__file__).parent / "data"
# When clocks of a zone jump, in UTC: forward, back, back by half an hour, never.
JUMPS = [
    ("America/St_Johns", datetime(2026, 3, 8, 5, 30, tzinfo=UTC)),
    ("America/St_Johns", datetime(2026, 11, 1, 4, 30, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    ("Asia/Tokyo", datetime(2026, 11, 1, 4, 30, tzinfo=UTC)),
]


def lines(name):
    """Lines of a recorded log."""
    return (DATA / name).read_bytes().splitlines(keepends=True)


def syslog(*events):
    """A container's log with (seconds, thread, message) as MapTask writes them."""
    return [
        f"2026-01-15 10:00:{s:02},500 INFO [{t}] org.apache.hadoop.mapred.MapTask: {m}\n".encode()
        for s, t, m in events
    ]


def read_spills(log, source, zone=UTC):
    """Start, finish and place of each spill of a map's log."""
    spills = read_task_log(log, source, zone).spills
    return [(spill.start_s, spill.finish_s, spill.last) for spill in spills]


BEGIN = "Spilling map output"
AT = 1768471200.5  # 2026-01-15 10:00:00.500 UTC


class TestSpills:
    """Spills from the log of a map task."""

    def test_terasort_map(self):
        """
        A real map task of three spills: two behind the map function, the last one by the flush.
        """
        spills = read_spills(lines("terasort-map.syslog"), "syslog")

        assert spills == [
            (1795224643.048, 1795224643.394, False),
            (1795224643.473, 1795224643.587, False),
            (1795224643.65, 1795224643.666, True),
        ]

    def test_wordcount_map(self):
        """
        The ten spills of a real map task do not overlap, and only the tenth is the last.
        """
        spills = read_spills(lines("wordcount-map.syslog"), "syslog")

        assert [last for *_, last in spills] == [False] * 9 + [True]
        assert all(one[1] <= after[0] for one, after in itertools.pairwise(spills))

    def test_reduces_spill_nothing(self):
        """
        The log of a reduce task holds no spill.
        """
        assert read_spills(lines("terasort-reduce.syslog"), "syslog") == []

    def test_zone_of_the_node(self):
        """
        The log's local time is read in the zone of its node.
        """
        log = syslog((0, "main", BEGIN), (2, "main", "Finished spill 0"))

        utc = read_spills(log, "x")
        east = read_spills(log, "x", timezone(timedelta(hours=2)))

        assert utc == [(AT, AT + 2, True)]
        assert east == [(AT - 7200, AT - 7198, True)]

    @given(st.sampled_from(JUMPS), st.integers(-150, 90), st.lists(st.integers(0, 890)))
    def test_moments_around_a_jump_of_the_clock(self, jump, minute, pauses):
        """
        They are read as they were, through the hour that is left out in spring and the one that
        comes twice in autumn: what of it is meant follows from the attempt's own time.
        """
        zone = jump[0]
        start = jump[1] + timedelta(minutes=minute)
        moments = [start + timedelta(seconds=sum(pauses[:end])) for end in range(len(pauses) + 1)]
        events = ["Spilling map output", "Finished spill {}"] * len(moments)
        log = [
            f"{moment.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M:%S},000 INFO [main]"
            f" org.apache.hadoop.mapred.MapTask: {event.format(place // 2)}\n".encode()
            for place, (moment, event) in enumerate(zip(moments, events, strict=False))
        ]
        window = start.timestamp() - 3, moments[-1].timestamp() + 3

        spills = read_task_log(log, "x", ZoneInfo(zone), window).spills
        observed = [at_s for spill in spills for at_s in (spill.start_s, spill.finish_s)]
        assert observed == [m.timestamp() for m in moments[: len(moments) // 2 * 2]]

    def test_a_moment_at_which_the_task_did_not_run(self):
        """
        It is refused by file and line, with the zone in which it was read.
        """
        log = syslog((0, "main", BEGIN), (2, "main", "Finished spill 0"))
        message = r"in the zone UTC is 32403 s into an attempt of 8 s\n  at:  syslog:1\n"

        with pytest.raises(ParseError, match=message):
            read_task_log(log, "syslog", window=(AT - 32403, AT - 32395))

    def test_the_zone_that_a_task_names(self):
        """
        Its JVM names it before its work; what the task writes later does not count.
        """
        work = syslog((0, "main", BEGIN))
        later = b"user.timezone: Asia/Tokyo\n"

        assert read_zone([b"user.name: me\n", b"user.timezone: GMT-03:30\n", *work]) == "GMT-03:30"
        assert read_zone([b"user.name: me\n", *work, later]) == ""

    def test_task_killed_while_it_spills(self):
        """
        A spill without an end, and a line without an end, are left out.
        """
        log = syslog((0, "main", BEGIN), (2, "SpillThread", "Finished spill 0"), (3, "main", BEGIN))

        assert len(read_spills(log, "x")) == 1
        assert len(read_spills([*log, b"2026-01-15 ... .MapTask: Finished spill "], "x")) == 1

    def test_record_larger_than_the_buffer(self):
        """
        Such a record is a spill with an index and without lines: the count may jump.
        """
        log = syslog(
            (0, "main", BEGIN), (1, "SpillThread", "Finished spill 0"),
            (1, "main", "Record too large for in-memory buffer: 7000000 bytes"),
            (2, "main", BEGIN), (3, "main", "Finished spill 2"),
        )  # fmt: skip

        assert len(read_spills(log, "x")) == 2

    @pytest.mark.parametrize(
        ("log", "message"),
        [
            (syslog((0, "main", "Finished spill 0")), "out of order"),
            (syslog((0, "main", BEGIN), (1, "main", BEGIN)), "out of order"),
            (
                syslog(*((n, "main", m) for n, m in enumerate([BEGIN, "Finished spill 0"] * 2))),
                "out of order",
            ),
            (
                syslog((0, "main", BEGIN), (1, "main", "Finished spill 1")),
                "spill 1 follows 0 others: lines are missing",
            ),
            (syslog((0, "main", "Finished spill x")), "not a line of a task's log"),
            (
                [b"org.apache.hadoop.mapred.MapTask: Finished spill 0\n"],
                "not a line of a task's log",
            ),
            ([syslog((0, "main", BEGIN))[0].replace(b"01-15", b"02-30")], "no such time"),
        ],
    )
    def test_lost_lines(self, log, message):
        """
        A log with a hole is refused at its line.
        """
        with pytest.raises(ParseError, match=message) as error:
            read_spills([b"something else\n", *log], "syslog")

        assert error.value.where == f"syslog:{len(log) + 1}"


class TestSpeed:
    """Samples of the speed probe."""

    def test_samples(self):
        """
        Header and blank lines are skipped, and CPU time is given in seconds.
        """
        log = [b"# epoch_ms thread units cpu_ns\n", b"\n", b"1768471200500 1 40 1500000\n"]

        assert list(read_speed(log, "x")) == [SpeedSample(AT, 1, 40, 0.0015)]

    @given(st.integers(0, 26))
    def test_killed_while_it_writes(self, size):
        """
        However much of the last line was written, it is left out.
        """
        line = b"1768471200500 1 40 1500000\n"

        assert len(list(read_speed([line, line[:size]], "x"))) == 1

    @pytest.mark.parametrize(
        "line", [b"1 2 3\n", b"a b c d\n", b"1 2 3 4 5\n", b"1 2 3 -4\n", b"9" * 16 + b" 1 1 1\n"]
    )
    def test_refused(self, line):
        """
        A whole line that is no sample is refused, with its number.
        """
        with pytest.raises(ParseError, match=r"(?s)not a sample.*probe\.log:1"):
            list(read_speed([line], "probe.log"))


SAMPLE = {
    "at_s": 1.5, "busy": 0.5, "steal": 0, "iowait": 0.0, "runnable": 3,
    "available_bytes": 10**9, "memory_pressure": None, "own": 0.3, "swapped_bytes": 0,
}  # fmt: skip


class TestMachine:
    """Samples of the machine."""

    @given(
        st.builds(
            MachineSample,
            at_s=st.floats(0, 2e9), busy=st.floats(0, 1), steal=st.floats(0, 1),
            iowait=st.floats(0, 1), runnable=st.integers(0, 999),
            available_bytes=st.integers(0, 2**50), memory_pressure=st.none() | st.floats(0, 1),
            own=st.none() | st.floats(0, 1), swapped_bytes=st.integers(0, 2**40),
        )
    )  # fmt: skip
    def test_round_trip(self, sample):
        """
        What was written as JSON reads back as it was; half a line behind it is left out.
        """
        fields = {name: getattr(sample, name) for name in SAMPLE}

        assert list(read_machine([json.dumps(fields).encode() + b"\n", b'{"at'], "x")) == [sample]

    def test_of_an_older_run(self):
        """
        Nobody looked whose processes they were.
        """
        older = {name: SAMPLE[name] for name in SAMPLE if name not in {"own", "swapped_bytes"}}

        (sample,) = read_machine([json.dumps(older).encode() + b"\n"], "x")
        assert (sample.own, sample.swapped_bytes) == (None, 0)

    @pytest.mark.parametrize(
        "line",
        [
            b"[]\n", b"x\n", b"\xff\n", b"[" * 100_000 + b"\n",
            json.dumps({**SAMPLE, "more": 1}).encode() + b"\n",
            *(json.dumps({**SAMPLE, **bad}).encode() + b"\n" for bad in (
                {"busy": "1"}, {"busy": True}, {"busy": float("nan")}, {"busy": -1},
                {"runnable": 1.5}, {"available_bytes": 10**400}, {"at_s": None}, {"at_s": [[]]},
                {"swapped_bytes": -1}, {"own": float("nan")}, {"own": "1"},
            )),
        ],
    )  # fmt: skip
    def test_refused(self, line):
        """
        A whole line that is no sample is refused, with its number.
        """
        with pytest.raises(ParseError, match=r"(?s)not a sample.*machine\.jsonl:2"):
            list(read_machine([b"\n", line], "machine.jsonl"))


RECORDED = [
    line for name in ("terasort-map.syslog", "terasort-reduce.syslog") for line in lines(name)
]
HARNESS_LINES = [
    *syslog((1, "main", BEGIN), (2, "main", "Finished spill 0")),
    b"1768471200500 1 40 1500000\n",
    json.dumps(SAMPLE).encode() + b"\n",
]


@pytest.mark.parametrize("read", [read_task_log, read_machine, read_speed])
@given(
    log=st.lists(
        st.sampled_from([*RECORDED, *HARNESS_LINES]) | st.binary(max_size=60), max_size=20
    ),
    flips=st.lists(st.tuples(st.integers(0, 10**4), st.integers(1, 255)), max_size=4),
)
def test_any_bytes_are_read_or_refused(read, log, flips):
    """
    Whatever a log holds, the answer is records or `ParseError`.
    """
    data = bytearray(b"".join(log) or b"\n")
    for at, bits in flips:
        data[at % len(data)] ^= bits

    with suppress(ParseError):
        records = read(bytes(data).splitlines(keepends=True), "x")
        assert isinstance(records, TaskLog) or list(records) is not None
