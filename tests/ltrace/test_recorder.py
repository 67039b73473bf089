"""
Tests for the tracer's recorder, workloads/ltrace: what it leaves, and what it never does.
"""

import os
import shutil
import signal
import subprocess
import time

import pytest

from harness.hadoop_home import home as homes
from harness.parsing.ltrace import read_ltrace
from tests.ltrace.spanfile import read_spans, read_units

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
    A function that runs one of `Drive`'s parts to its end; it answers what was recorded.
    """

    def run(*arguments, **settings):
        done = run_(command(*arguments, **settings))
        assert done.stdout.endswith("alive\n"), done.stderr
        return read_spans(tmp_path / "ltrace.spans")

    return run


def run_(argv):
    """
    Run a command; a JVM that throws has another status.
    """
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=LIMIT_S)


def told(found):
    """
    What the recorded spans say, times apart.
    """
    return [(s.thread, s.kind, s.flags, s.amount, s.text, s.numbers) for s in found.spans]


class TestSpans:
    def test_what_was_recorded(self, drive):
        """
        Spans stand in the order of their begin, by threads, with what belongs to them.
        """
        found = drive("spans")

        assert told(found) == [
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
        The reader of recordings finds the same texts, and a workload's span by its name.
        """
        drive("spans")
        found = read_ltrace([(tmp_path / "ltrace.spans").read_bytes()], "ltrace.spans")

        assert [(s.name, s.text, s.details) for s in found.spans if s.text] == [
            ("visit", "worker1:13562", ()),
            ("segment", "attempt_1_0001_m_000002_0", (100, 200, 1, 0, 0)),
            ("host to device", "host to device", ()),
        ]

    def test_times(self, drive):
        """
        Each span lies in the one around it, and its CPU time is no longer than itself.
        """
        found = drive("spans")
        main = found.spans[0]

        assert all(
            (main.start <= s.start or s.kind == WAIT_MEMORY)
            and 0 < s.end <= main.end
            and s.cpu_end - s.cpu_start <= s.end - s.start + MS
            for s in found.spans
        )

    def test_header(self, drive):
        """
        The header names the attempt, ties the clocks, and tells how it ended.
        """
        before = time.time()
        found = drive("spans", mode="units", options=["-Dltrace.unit=7"])
        after = time.time()

        assert (found.task, found.mode, found.unit, found.lost, found.state, found.chunks) == (
            ATTEMPT, 3, 7, 0, 1, 2,
        )  # fmt: skip
        assert before <= found.wall / 1e6 <= after
        starts = [found.process_start / 1e3, found.jvm_start / 1e3]
        assert all(before - 0.1 <= start <= after for start in starts)
        assert starts[0] <= starts[1] + 0.1
        assert 0 < found.opening < (after - before) * 1e9
        assert found.size == 4096 + 2 * 32768  # nothing is reserved before it is used

    def test_off(self, command, tmp_path):
        """
        Nothing is made where the recorder is off.
        """
        run_(command("spans", mode="off"))

        assert list(tmp_path.iterdir()) == []

    def test_full_file(self, drive):
        """
        A full file keeps what it has, and counts what it lost.
        """
        found = drive("many", 512 * 681 + 10)

        assert (len(found.spans), found.lost, found.chunks) == (512 * 681, 10, 512)
        assert [s.amount for s in found.spans] == list(range(512 * 681))


class TestRecordLoop:
    def test_sums(self, drive):
        """
        Records and calls are counted, read and function add up to the loop.
        """
        found = drive("loop", 13)
        (loop,) = found.of(MAP_LOOP)
        records, read, alone, meanwhile, _, calls = found.sums[:6]

        assert (records, calls, meanwhile, sum(found.histogram), loop.amount) == (13, 26, 0, 13, 13)
        assert read >= 14 * MS
        assert alone >= 26 * MS
        assert 0.95 <= (read + alone) / (loop.end - loop.start) <= 1

    def test_histogram(self, drive):
        """
        A record of 3 ms and a little more counts as one of 2^21 ns or above.
        """
        found = drive("loop", 5)

        assert sum(found.histogram[21:]) == 5

    def test_units(self, drive, tmp_path):
        """
        Units are the loop's time in pieces of 5 records; the rest is counted.
        """
        found = drive("loop", 13, mode="units")
        unit, units = read_units(tmp_path / "ltrace.units")
        (loop,) = found.of(MAP_LOOP)

        assert (unit, len(units), found.sums[9], found.sums[10]) == (5, 2, 2, 3)
        assert (tmp_path / "ltrace.units").stat().st_size == found.sums[13]
        assert all(32 * u >= 15 * MS for u in units)
        assert 32 * sum(units) <= loop.end - loop.start

    def test_sampled_calls(self, drive):
        """
        Some calls are measured, at random distances of 33 to 96.
        """
        found = drive("allocation")
        calls, _, samples, exact = found.sums[5:9]

        assert (calls, exact, found.sums[14]) == (1_020_000, 0, 64)
        assert 1 / 70 <= samples / calls <= 1 / 60

    def test_short_records(self, command, tmp_path):
        """
        Of short records few reads are looked at. Their sum is right all the same, for what readers
        wait for is always counted; with the functions' it is the loop's, to the clock's own cost.
        """
        read, usual, both = map(int, run_(command("short", 200_000)).stdout.split()[:3])
        sums = read_spans(tmp_path / "ltrace.spans").sums

        assert (sums[0], sums[18]) == (200_000, 400)
        assert sums[19] >= 400 * 300_000
        assert sums[17] < 80_000
        assert 0.95 * usual <= sums[1] <= 1.05 * read
        assert sums[1] + sums[2] == pytest.approx(both, rel=0.03)

    def test_short_records_in_units(self, command, tmp_path):
        """
        Where units are recorded, every read is looked at, and one more that finds the end.
        """
        read = int(run_(command("short", 50_000, mode="units")).stdout.split()[0])
        sums = read_spans(tmp_path / "ltrace.spans").sums

        assert (sums[0], sums[9], sums[17]) == (50_000, 10_000, 50_001)
        assert sums[1] == pytest.approx(read, rel=0.08)

    def test_spill(self, drive):
        """
        Function time is split by whether a spill runs, and waiting is none of it.
        """
        found = drive("spill")
        (spill,) = found.of(SPILL)
        _, _, alone, meanwhile, records = found.sums[:5]

        assert (spill.amount, spill.numbers, records) == (5, (5, 50, 3, 1, 0), 2)
        assert alone >= 20 * MS
        assert 10 * MS <= meanwhile <= spill.end - spill.start - found.sums[11]
        assert 1 * MS <= found.sums[16] <= found.sums[1] - 2 * MS
        assert (found.sums[11] >= 10 * MS, found.sums[12]) == (True, 1)

    def test_reduce(self, drive):
        """
        In a reduce the function's time is one sum, with its writes.
        """
        found = drive("loop", 5, task="attempt_1_0001_r_000000_0")

        assert (found.sums[0], found.sums[2], found.sums[15] >= 10 * MS) == (5, 0, True)

    def test_exact_writes(self, drive):
        """
        Every write of a reduce is measured where that is asked for.
        """
        options = ["-Dltrace.writes=exact"]
        found = drive("loop", 5, task="attempt_1_0001_r_000000_0", options=options)

        assert (found.sums[5], found.sums[6], found.sums[7], found.sums[8] > 0) == (10, 0, 0, True)


class TestHarmless:
    def test_allocates_nothing(self, command):
        """
        A million records and 125 000 spans, with new chunks, allocate next to nothing.
        """
        done = run_(command("allocation", mode="units"))

        assert int(done.stdout.split()[0]) < 10_000

    def test_killed(self, command, tmp_path):
        """
        A killed process leaves what it recorded: open spans, and sums not long ago.
        """
        with subprocess.Popen(command("hang", mode="units"), stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"ready\n"
            process.kill()
        found = read_spans(tmp_path / "ltrace.spans")

        assert [(s.kind, s.end > 0) for s in found.spans] == [
            (MAIN, False), (TASK, True), (MAP_LOOP, False),
        ]  # fmt: skip
        assert (found.state, found.sums[0]) == (0, 2048)
        assert len(read_units(tmp_path / "ltrace.units")[1]) == 410

    def test_ended(self, command, tmp_path):
        """
        A process that is asked to end keeps its last sums.
        """
        with subprocess.Popen(command("hang"), stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            process.send_signal(signal.SIGTERM)
        found = read_spans(tmp_path / "ltrace.spans")

        assert (found.state, found.sums[0]) == (1, 2051)

    @pytest.mark.parametrize("part", ["spans", "loop", "spill", "many"])
    def test_no_folder(self, command, tmp_path, part):
        """
        A task that cannot be recorded runs, and says once that it is not traced.
        """
        line = command(part, 3, mode="units", folder=tmp_path / "missing")
        done = run_(line)

        assert (done.stdout, done.stderr.count("tracing of this task ends")) == ("alive\n", 1)

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
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", script, disk, size, *line],
            check=False, capture_output=True, text=True, timeout=LIMIT_S,
            env={**os.environ, "KEPT": str(kept)},
        )  # fmt: skip
        kept_file = kept / "ltrace.spans"
        found = read_spans(kept_file) if chunks else None

        assert (done.stdout, done.stderr.count("tracing of this task ends")) == ("alive\n", 1)
        assert found is None or (found.state, found.chunks, len(found.spans)) == (2, 2, 2 * 681)
