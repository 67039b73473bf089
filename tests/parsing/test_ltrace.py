"""Recordings of tasks, made by hand."""

import re
import struct

from pathlib import Path

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ParseError
from harness.base.records.tasks import SPAN_NAMES
from harness.observe.parsing.ltrace import CHUNK, HEAD, SLOT, read_ltrace

JAVA = Path(__file__).parents[2] / "workloads/ltrace/src/main/java"
RECORDER = JAVA / "mapreduce/harness/ltrace/record"

ATTEMPT = b"attempt_1700000000000_0001_m_000003_0"
WALL_US = 1_700_000_000_000_000


def span(kind, start, end, cpu=(0, 0), amount=0):
    """A slot that holds a span."""
    return struct.pack("<iiqqqqq", kind, 0, start, end, *cpu, amount)


def text(value):
    """A slot that holds text, which ends with it or with the first zero."""
    return struct.pack("<ii40s", -1, 0, value)


def numbers(*values):
    """A slot that holds numbers."""
    return struct.pack("<ii5q", -2, 0, *values, *[0] * (5 - len(values)))


def chunk(thread, name, *slots):
    """Slots of one thread."""
    head = struct.pack("<ii40s", thread, len(name), name)
    return (head + b"".join(slots)).ljust(CHUNK, b"\0")


def header(sums=(), histogram=(), attempt=ATTEMPT, *, state=1, used=8, process_ms=(0, 0)):
    """Head of a recording whose clock shows 1000 at the anchor."""
    head = struct.pack(
        "<8siiqqqqiiii",
        b"LTRACE01", 3, 5, WALL_US, 1000, WALL_US // 1000 - 500, 4_000_000, 0, state, used,
        len(attempt),
    )  # fmt: skip
    data = bytearray(HEAD)
    data[: len(head)] = head
    data[64 : 64 + len(attempt)] = attempt
    struct.pack_into("<2q", data, 192, *process_ms)
    struct.pack_into(f"<{len(sums)}q", data, 256, *sums)
    struct.pack_into(f"<{len(histogram)}q", data, 1024, *histogram)
    return bytes(data)


def read(*parts):
    """Read a recording."""
    return read_ltrace(parts, "ltrace.spans")


class TestSpans:
    def test_nest_by_thread_in_the_order_of_their_begin(self):
        """
        A span's parent is the one of its thread that is not over; chunks of a thread join.
        """
        job = read(
            header(),
            chunk(1, b"main", span(1, 1000, 9000), span(6, 2000, 5000)),
            chunk(9, b"SpillThread", span(11, 2500, 4000), span(12, 2600, 3000)),
            chunk(1, b"main", span(9, 5000, 8000)),
        )

        shown = [(s.name, s.thread, s.parent) for s in job.spans]
        assert shown == [
            ("main", "main", -1),
            ("map_loop", "main", 0),
            ("spill", "SpillThread", -1),
            ("sort", "SpillThread", 2),
            ("flush", "main", 0),
        ]

    def test_times_are_brought_to_the_wall_clock(self):
        """
        A nanoTime of 1000 is the anchor; CPU time is absent where it was not read.
        """
        map_loop = span(6, 2_000_001_000, 5_000_001_000, (7, 9))
        flush = span(9, 6_000_001_000, 6_000_001_000)
        job = read(header(), chunk(1, b"main", map_loop, flush))

        assert [(s.start_s, s.wall_s, s.cpu_s) for s in job.spans] == [
            (1_700_000_002.0, 3.0, 2e-9),
            (1_700_000_006.0, 0.0, None),
        ]

    def test_open_spans_reach_to_the_last_moment_told(self):
        """
        A killed JVM leaves the spans that were not over, and what came after their begin.
        """
        job = read(
            header(state=0),
            chunk(1, b"main", span(1, 1000, 0), span(6, 2000, 0)),
            chunk(9, b"SpillThread", span(11, 3000, 7000)),
        )

        assert [(s.open, round(s.wall_s * 1e9)) for s in job.spans] == [
            (True, 6000),
            (True, 5000),
            (False, 4000),
        ]

    def test_text_and_numbers_belong_to_the_span_before(self):
        """
        A copied segment has its map and its sizes; a long text takes several slots.
        """
        job = read(
            header(),
            chunk(
                5,
                b"fetcher#1",
                span(32, 1000, 9000),
                text(b"a" * 40),
                text(b"b"),
                span(34, 2000, 3000),
                text(ATTEMPT),
                numbers(10, 30, 1),
            ),
        )

        assert [(s.text, s.details) for s in job.spans] == [
            ("a" * 40 + "b", ()),
            (ATTEMPT.decode(), (10, 30, 1, 0, 0)),
        ]

    def test_names_cannot_steer_a_terminal(self):
        """
        What a workload calls its spans is text from outside.
        """
        job = read(header(), chunk(1, b"ma\x1b[31min", span(100, 1000, 2000), text(b"copy\r\n")))

        assert [(s.name, s.thread) for s in job.spans] == [("copy??", "ma?[31min")]

    @pytest.mark.parametrize(
        ("slot", "what"),
        [
            (span(77, 1, 2), "unknown kind 77"),
            (span(6, 9, 2), "ends before it starts"),
            (span(6, 1, 2, (9, 3)), "CPU time below zero"),
            (span(6, 2**62, 0), "an impossible time"),
        ],
    )
    def test_contradictions_are_refused(self, slot, what):
        """
        A span that cannot be is an error, not a figure.
        """
        with pytest.raises(ParseError, match=what):
            read(header(), chunk(1, b"main", slot))


def test_names_are_those_of_the_recorder():
    """
    Every kind that the recorder writes has a name here, and no other.
    """
    text = (RECORDER / "Kind.java").read_text()
    kinds = {int(number) for number in re.findall(r"int [A-Z_]+ = (\d+);", text)}

    assert kinds == SPAN_NAMES.keys()


class TestLoop:
    def test_a_sample_splits_a_total_and_is_marked(self):
        """
        12 of 1200 collects took 60 ns: 6000 ns of them all.
        """
        loop = read(header(sums=(100, 5000, 30_000, 9000, 20, 1200, 60, 12))).loop

        assert (loop.records, loop.read_s, loop.function_s, loop.spilling_s) == (
            100,
            5e-6,
            3e-5,
            9e-6,
        )
        assert (loop.overlapped, loop.outputs, loop.output_s, loop.sampled) == (
            20,
            1200,
            6e-6,
            ("output_s",),
        )

    @pytest.mark.parametrize(
        ("timed", "names"), [(0, ()), (30, ("read_s", "function_s")), (101, ())]
    )
    def test_reads_that_were_not_all_timed_are_marked(self, timed, names):
        """
        What is whose of a loop's time is then an estimate; the read that finds the end counts, too.
        """
        loop = read(header(sums=(100, 5000, 30_000, *[0] * 14, timed))).loop

        assert loop.sampled == names

    def test_a_sample_never_exceeds_the_total_that_it_splits(self):
        """
        One slow sample must not make collecting longer than the function it is part of.
        """
        loop = read(header(sums=(100, 5000, 30_000, 9000, 20, 1200, 6_000_000, 12))).loop

        assert loop.output_s == 39e-6

    def test_exact_sums_are_taken_as_they_are(self):
        """
        A reduce's writes are timed one by one.
        """
        sums = [10, 500, 0, 0, 0, 10, 0, 0, 700, 0, 0, 0, 0, 0, 0, 900]
        loop = read(header(sums=sums, histogram=[0, 3, 7])).loop

        assert (loop.output_s, loop.sampled, loop.function_s) == (7e-7, (), 9e-7)
        assert loop.histogram == (0, 3, 7)


class TestForeignFiles:
    @pytest.mark.parametrize(
        "data",
        [b"", b"LTRACE02" + bytes(HEAD), header()[:-1], header(attempt=b"../x"), header(state=3)],
    )
    def test_are_refused(self, data):
        """
        What is no recording is told so, with its name.
        """
        with pytest.raises(ParseError) as error:
            read(data)
        assert "ltrace.spans" in str(error.value)

    @given(st.binary(max_size=400), st.integers(0, HEAD + 2 * SLOT))
    def test_any_bytes_give_a_recording_or_the_error(self, noise, at):
        """
        Damage gives records or `ParseError`, and nothing else.
        """
        whole = bytearray(header() + chunk(1, b"main", span(6, 1000, 2000), span(9, 2500, 2600)))
        whole[at : at + len(noise)] = noise
        try:
            job = read(bytes(whole))
        except ParseError:
            return
        assert job.attempt_id == ATTEMPT.decode() or job.attempt_id.startswith("attempt_")

    @given(st.integers(HEAD, HEAD + CHUNK))
    def test_a_cut_file_gives_what_is_there(self, size):
        """
        The file may end anywhere behind its header.
        """
        whole = header() + chunk(1, b"main", *(span(6, n, n + 1) for n in range(1000, 1600)))
        job = read(whole[:size])

        assert len(job.spans) == max(
            0, (size - HEAD - SLOT) // SLOT if size < HEAD + SLOT * 601 else 600
        )


class TestProcess:
    """Processor time of the task's process, read when the recorder opens and when it closes."""

    def test_is_read_in_milliseconds(self):
        """
        Of a recorder that read none, and of a JVM that was killed, it is not known.
        """
        both = read(header(process_ms=(640, 2_350)))
        killed = read(header(process_ms=(640, 0), state=0))
        older = read(header())

        assert (both.cpu_at_main_s, both.cpu_at_end_s) == (0.64, 2.35)
        assert (killed.cpu_at_main_s, killed.cpu_at_end_s) == (0.64, None)
        assert (older.cpu_at_main_s, older.cpu_at_end_s) == (None, None)

    @pytest.mark.parametrize("process_ms", [(-10, 20), (10, -20), (30, 20), (10, 2**62)])
    def test_that_no_process_has_used_is_refused(self, process_ms):
        """
        Less at the end than at main, less than none, or more than a year.
        """
        with pytest.raises(ParseError, match="processor time"):
            read(header(process_ms=process_ms))
