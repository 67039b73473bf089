"""
Tests for the tracer's recorder, workloads/ltrace: what it records, and that it harms no task.
"""

import os
import shutil
import signal
import subprocess
import time

import pytest

from harness.clusters.hadoop_home import home as homes
from harness.observe.parsing.ltrace import read_ltrace
from tests.ltrace.spanfile import read_spans, read_units

pytestmark = pytest.mark.process

LIMIT_S = 120
ATTEMPT = "attempt_1795249792446_0003_m_000000_0"
MAIN, TASK, MAP_LOOP, SPILL, SORT = 1, 2, 6, 11, 12
MERGE, WRITE_FILE, VISIT, SEGMENT, WAIT_MEMORY, STALL, WORK = 14, 15, 32, 34, 35, 36, 100
MS = 1_000_000


@pytest.fixture(scope="session")
def drive_classes(compiled):
    """
    The program `Drive`.
    """
    return compiled("Drive")


@pytest.fixture
def command(java, drive_classes, tmp_path):
    """
    A function that gives the command line of one of `Drive`'s parts, recording into `tmp_path`.
    """

    def line(*arguments, mode="spans", task=ATTEMPT, folder=tmp_path, options=()):
        return [
            java.launcher,
            "-XX:TieredStopAtLevel=1",  # as tasks have it
            "-XX:+UseSerialGC",
            f"-Dltrace={mode}",
            f"-Dltrace.task={task}",
            f"-Dltrace.dir={folder}",
            *options,
            "-cp",
            f"{homes.TRACER}:{drive_classes}",
            "mapreduce.harness.ltrace.record.Drive",
            *map(str, arguments),
        ]

    return line


@pytest.fixture
def drive(command, tmp_path):
    """
    A function that runs one of `Drive`'s parts to its end and returns what was recorded.
    """

    def run(*arguments, **settings):
        finished = run_command(command(*arguments, **settings))
        assert finished.stdout.endswith("alive\n"), finished.stderr
        return read_spans(tmp_path / "ltrace.spans")

    return run


def run_command(argv):
    """
    Run a command; a JVM that throws has another status.
    """
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=LIMIT_S)


def contents(recording):
    """
    Contents of the recorded spans, without their times.
    """
    return [(s.thread, s.kind, s.flags, s.amount, s.text, s.numbers) for s in recording.spans]


class TestSpans:
    def test_what_was_recorded(self, drive):
        """
        Spans are in the order of their start, by threads, each with its text and numbers.
        """
        recording = drive("spans")

        assert contents(recording) == [
            ("main", MAIN, 0, 0, "", ()),
            ("main", VISIT, 1, 0, "worker1:13562", ()),
            ("main", SEGMENT, 0, 100, "attempt_1_0001_m_000002_0", (100, 200, 1, 0, 0)),
            ("main", MERGE, 0, 2, "", (8, 80, 5, 50, 0)),
            ("main", WRITE_FILE, 0, 70, "", ()),
            ("main", WAIT_MEMORY, 0, 0, "", ()),
            ("main", STALL, 0, 4096, "", ()),
            ("Gerät", WORK, 0, 64, "host to device", ()),
        ]

    def test_read_by_the_product(self, drive, tmp_path):
        """
        The reader of recordings returns the same texts, and a workload's span by its name.
        """
        drive("spans")
        recording = read_ltrace([(tmp_path / "ltrace.spans").read_bytes()], "ltrace.spans")

        assert [(s.name, s.text, s.details) for s in recording.spans if s.text] == [
            ("visit", "worker1:13562", ()),
            ("segment", "attempt_1_0001_m_000002_0", (100, 200, 1, 0, 0)),
            ("host to device", "host to device", ()),
        ]

    def test_times(self, drive):
        """
        Each span is within the one around it, and its CPU time is no longer than itself.
        """
        recording = drive("spans")
        main = recording.spans[0]

        assert all(
            (main.start <= s.start or s.kind == WAIT_MEMORY)
            and 0 < s.end <= main.end
            and s.cpu_end - s.cpu_start <= s.end - s.start + MS
            for s in recording.spans
        )

    def test_header(self, drive):
        """
        The header names the attempt, relates the clocks, and has the state at the end.
        """
        before = time.time()
        recording = drive("spans", mode="units", options=["-Dltrace.unit=7"])
        after = time.time()

        assert (recording.task, recording.mode, recording.unit) == (ATTEMPT, 3, 7)
        assert (recording.lost, recording.state, recording.chunks) == (0, 1, 2)
        assert before <= recording.wall / 1e6 <= after
        starts = [recording.process_start / 1e3, recording.jvm_start / 1e3]
        assert all(before - 0.1 <= start <= after for start in starts)
        assert starts[0] <= starts[1] + 0.1
        assert 0 < recording.opening < (after - before) * 1e9
        assert recording.size == 4096 + 2 * 32768  # nothing is reserved before it is used

    def test_processor_time_of_the_process(self, drive, tmp_path):
        """
        It is read when the recording opens and when it closes: more than its thread's, to a tick.
        """
        drive("spans")
        recording = read_ltrace([(tmp_path / "ltrace.spans").read_bytes()], "ltrace.spans")
        main_s = max(span.cpu_s or 0.0 for span in recording.spans)

        assert 0 < recording.cpu_at_main_s <= recording.cpu_at_end_s
        assert main_s <= recording.cpu_at_end_s - recording.cpu_at_main_s + 0.02

    def test_off(self, command, tmp_path):
        """
        Nothing is made where the recorder is off.
        """
        run_command(command("spans", mode="off"))

        assert list(tmp_path.iterdir()) == []

    def test_full_file(self, drive):
        """
        A full file keeps what it has, and counts what it lost.
        """
        recording = drive("many", 512 * 681 + 10)

        assert (len(recording.spans), recording.lost, recording.chunks) == (512 * 681, 10, 512)
        assert [s.amount for s in recording.spans] == list(range(512 * 681))


class TestRecordLoop:
    def test_sums(self, drive):
        """
        Records and calls are counted, read and function add up to the loop.
        """
        recording = drive("loop", 13)
        (loop,) = recording.of(MAP_LOOP)
        records, read_ns, alone_ns, spilling_ns, _, calls = recording.sums[:6]

        assert (records, calls, spilling_ns, sum(recording.histogram), loop.amount) == (
            13,
            26,
            0,
            13,
            13,
        )
        assert read_ns >= 14 * MS
        assert alone_ns >= 26 * MS
        # What lies between two looks at the clock is in neither: more of it on a busy machine.
        assert 0.85 <= (read_ns + alone_ns) / (loop.end - loop.start) <= 1

    def test_histogram(self, drive):
        """
        A record of 3 ms and a little more counts as one of 2^21 ns or above.
        """
        recording = drive("loop", 5)

        assert sum(recording.histogram[21:]) == 5

    def test_units(self, drive, tmp_path):
        """
        Units are the loop's time in pieces of 5 records; the rest is counted.
        """
        recording = drive("loop", 13, mode="units")
        unit, units = read_units(tmp_path / "ltrace.units")
        (loop,) = recording.of(MAP_LOOP)

        assert (unit, len(units), recording.sums[9], recording.sums[10]) == (5, 2, 2, 3)
        assert (tmp_path / "ltrace.units").stat().st_size == recording.sums[13]
        assert all(32 * u >= 15 * MS for u in units)
        assert 32 * sum(units) <= loop.end - loop.start

    def test_sampled_calls(self, drive):
        """
        Some calls are measured, at random distances of 33 to 96.
        """
        recording = drive("allocation")
        calls, _, samples, exact = recording.sums[5:9]

        assert (calls, exact, recording.sums[14]) == (1_020_000, 0, 64)
        assert 1 / 70 <= samples / calls <= 1 / 60

    def test_short_records(self, command, tmp_path):
        """
        Of short records few reads are timed. Their sum is right all the same, for what readers
        wait for is always counted; with the functions' it is the loop's, to the clock's own cost.
        """
        read, usual, both = map(int, run_command(command("short", 200_000)).stdout.split()[:3])
        sums = read_spans(tmp_path / "ltrace.spans").sums

        assert (sums[0], sums[18]) == (200_000, 400)
        assert sums[19] >= 400 * 300_000
        assert sums[17] < 80_000
        # The program's clocks lie within the recorder's: a pause between two counts in one alone.
        assert 0.95 * usual <= sums[1] <= 1.2 * read
        assert sums[1] + sums[2] == pytest.approx(both, rel=0.1)

    def test_short_records_in_units(self, command, tmp_path):
        """
        Where units are recorded, every read is timed, and one more that reaches the end.
        """
        read = int(run_command(command("short", 50_000, mode="units")).stdout.split()[0])
        sums = read_spans(tmp_path / "ltrace.spans").sums

        assert (sums[0], sums[9], sums[17]) == (50_000, 10_000, 50_001)
        assert 0.98 * read <= sums[1] <= 1.3 * read  # a pause between the two clocks counts in one

    def test_spill(self, drive):
        """
        Function time is split by whether a spill runs, and waiting is none of it.
        """
        recording = drive("spill")
        (spill,) = recording.of(SPILL)
        _, _, alone_ns, spilling_ns, records = recording.sums[:5]

        assert (spill.amount, spill.numbers, records) == (5, (5, 50, 3, 1, 0), 2)
        assert alone_ns >= 20 * MS
        assert 10 * MS <= spilling_ns <= spill.end - spill.start - recording.sums[11]
        assert 1 * MS <= recording.sums[16] <= recording.sums[1] - 2 * MS
        assert (recording.sums[11] >= 10 * MS, recording.sums[12]) == (True, 1)

    def test_reduce(self, drive):
        """
        In a reduce the function's time is one sum, with its writes.
        """
        recording = drive("loop", 5, task="attempt_1_0001_r_000000_0")

        assert (recording.sums[0], recording.sums[2], recording.sums[15] >= 10 * MS) == (5, 0, True)

    def test_exact_writes(self, drive):
        """
        Every write of a reduce is measured where the options demand it.
        """
        options = ["-Dltrace.writes=exact"]
        recording = drive("loop", 5, task="attempt_1_0001_r_000000_0", options=options)

        assert (recording.sums[5], recording.sums[6], recording.sums[7], recording.sums[8] > 0) == (
            10,
            0,
            0,
            True,
        )


class TestHarmless:
    def test_allocates_nothing(self, command):
        """
        A million records and 125 000 spans, with new chunks, allocate next to nothing.
        """
        finished = run_command(command("allocation", mode="units"))

        assert int(finished.stdout.split()[0]) < 10_000

    def test_killed(self, command, tmp_path):
        """
        A killed process leaves what it recorded: open spans, and sums not long ago.
        """
        with subprocess.Popen(command("hang", mode="units"), stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"ready\n"
            process.kill()
        recording = read_spans(tmp_path / "ltrace.spans")

        assert [(s.kind, s.end > 0) for s in recording.spans] == [
            (MAIN, False), (TASK, True), (MAP_LOOP, False),
        ]  # fmt: skip
        assert (recording.state, recording.sums[0]) == (0, 2048)
        assert len(read_units(tmp_path / "ltrace.units")[1]) == 410

    def test_ended(self, command, tmp_path):
        """
        A process that SIGTERM ends keeps its last sums.
        """
        with subprocess.Popen(command("hang"), stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            process.send_signal(signal.SIGTERM)
        recording = read_spans(tmp_path / "ltrace.spans")

        assert (recording.state, recording.sums[0]) == (1, 2051)

    @pytest.mark.parametrize("part", ["spans", "loop", "spill", "many"])
    def test_no_folder(self, command, tmp_path, part):
        """
        A task that cannot be recorded runs, and warns once that it is not traced.
        """
        line = command(part, 3, mode="units", folder=tmp_path / "missing")
        finished = run_command(line)

        assert (finished.stdout, finished.stderr.count("tracing of this task ends")) == (
            "alive\n",
            1,
        )

    @pytest.mark.skipif(os.geteuid() != 0, reason="a small file system is root's to mount")
    @pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
    @pytest.mark.parametrize(
        ("size", "chunks"),
        [("4k", None), ("90k", 2)],
        ids=["none of it", "some of it"],
    )
    def test_full_disk(self, command, tmp_path, size, chunks):
        """
        A full disk ends the recording with one warning; what was recorded stays.
        """
        disk, kept = tmp_path / "disk", tmp_path / "kept"
        for folder in (disk, kept):
            folder.mkdir()
        script = 'mount -t tmpfs -o "size=$1" none "$0" && shift && "$@"; cp "$0"/* "$KEPT"'
        line = command("many", 5000, folder=disk)
        finished = subprocess.run(
            ["unshare", "-m", "sh", "-c", script, disk, size, *line],
            check=False, capture_output=True, text=True, timeout=LIMIT_S,
            env={**os.environ, "KEPT": str(kept)},
        )  # fmt: skip
        kept_file = kept / "ltrace.spans"
        recording = read_spans(kept_file) if chunks else None

        assert (finished.stdout, finished.stderr.count("tracing of this task ends")) == (
            "alive\n",
            1,
        )
        assert recording is None or (recording.state, recording.chunks, len(recording.spans)) == (
            2,
            2,
            2 * 681,
        )
