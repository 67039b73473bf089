"""
Tests for `harness.clusters.monitor.machine`.
"""

import json
import os
import shutil
import subprocess
import sys
import time

from dataclasses import asdict, replace

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import MachineError
from harness.base.records.trace import MachineSample
from harness.base.units import MIB
from harness.clusters.monitor.machine import (
    MOST_SHIFT_S,
    MachineSampler,
    Stopwatch,
    find_disturbance,
    machine_facts,
    machine_load,
    read_counters,
)
from harness.clusters.node import sample as node_sample
from harness.observe.parsing.lines import read_machine

QUIET = MachineSample(
    at_s=0.0, busy=0.9, steal=0.0, iowait=0.0, runnable=4, available_bytes=2**32, own=0.9
)
# Half a second of CPU time, and what it was in the end.
BURN = """
import time
while time.process_time() < 0.5: pass
print(time.process_time())
"""


def proc(root, *, cpu="100 0 50 800 20 5 5 20 0 0", running=3, pressure=1_000_000):
    """
    A folder like /proc with these counters.
    """
    root.mkdir(exist_ok=True)
    (root / "stat").write_text(f"cpu  {cpu}\ncpu0 {cpu}\nintr 7\nprocs_running {running}\n")
    (root / "vmstat").write_text("nr_free_pages 9\npswpin 5\npswpout 7\nnr_swap 1\n")
    (root / "meminfo").write_text("MemTotal: 2048 kB\nMemFree: 1 kB\nMemAvailable:    1024 kB\n")
    if pressure is not None:
        (root / "pressure").mkdir(exist_ok=True)
        total = f"some avg10=0.00 avg60=0.00 avg300=0.00 total={pressure}\nfull total=9\n"
        (root / "pressure" / "memory").write_text(total)
    return root


def processes(root, described, flags=4194304):
    """
    Put processes into such a folder: id -> parent, ticks, and those of ended children.
    """
    for process_id, (parent, ticks, below) in described.items():
        (root / str(process_id)).mkdir()
        times = f"{ticks - ticks // 2} {ticks // 2} 0 {below}"
        text = f"{process_id} (a ) name) S {parent} 1 1 0 -1 {flags} 98 0 0 0 {times} 20 0 1 0 9\n"
        (root / str(process_id) / "stat").write_text(text)
    return root


def between(before, after):
    """
    The sample between two readings, if there is one.
    """
    shares = node_sample.between(before, after)
    return None if shares is None else MachineSample(**shares)


def test_reads_the_kernels_counters(tmp_path):
    """
    Ticks, runnable processes, available memory, the time that tasks waited for memory, swapping.
    """
    reading = read_counters(proc(tmp_path / "proc"))

    assert reading[1:] == (1000, 800, 20, 20, 3, 1024 * 1024, 1_000_000, 12, {}, {})


def test_reads_a_kernel_without_pressure(tmp_path):
    """
    Pressure accounting is an option of the kernel.
    """
    reading = read_counters(proc(tmp_path / "proc", pressure=None))

    assert reading.waited_us is None
    assert between(reading, reading._replace(total=2000)).memory_pressure is None


class TestBetween:
    """Shares of the time between two readings."""

    def test_shares(self, tmp_path):
        """
        Of 200 ticks 100 idle, 10 waiting for disks and 20 stolen leave 70 busy; memory was waited
        for in half of the two seconds.
        """
        before = read_counters(proc(tmp_path / "proc"))
        cpu = "140 0 70 900 30 10 10 40 0 0"
        after = read_counters(proc(tmp_path / "proc", cpu=cpu, running=6, pressure=2_000_000))

        after = after._replace(processes={7: (1, 60, 0)}, swapped_pages=before.swapped_pages + 2)
        sample = between(before, after._replace(at_s=before.at_s + 2))

        assert asdict(sample) == pytest.approx(
            {
                "at_s": before.at_s + 2,
                "busy": 0.35,
                "steal": 0.1,
                "iowait": 0.05,
                "runnable": 6,
                "available_bytes": 2**20,
                "memory_pressure": 0.5,
                "own": 0.3,
                "kernel": 0.0,
                "swapped_bytes": 2 * os.sysconf("SC_PAGE_SIZE"),
            }
        )

    @given(st.lists(st.integers(0, 10**9), min_size=7, max_size=7), st.integers(1, 10**6))
    def test_are_shares_whatever_the_kernel_says(self, counts, ticks):
        """
        Counters that run backwards give no negative share and none above one.
        """
        before = read_counters()._replace(at_s=0.0)
        after = before._replace(
            at_s=float(counts[0]),
            total=before.total + ticks,
            idle=counts[1],
            iowait=counts[2],
            steal=counts[3],
            waited_us=counts[4],
        )
        sample = between(before._replace(waited_us=counts[5]), after)

        shares = (sample.busy, sample.steal, sample.iowait, sample.memory_pressure)
        assert all(0 <= share <= 1 for share in shares)

    def test_nothing_between_equal_readings(self):
        """
        Within one tick there is no share to tell.
        """
        reading = read_counters()

        assert between(reading, reading) is None


class TestOwnProcesses:
    """CPU time of our own processes, from one reading to the next."""

    def test_are_those_of_a_tree(self, tmp_path):
        """
        The first and all below it, each with the time of its ended children; others are left out.
        """
        all_processes = {1: (0, 1000, 5), 50: (1, 7, 0), 51: (50, 20, 9), 52: (51, 3, 1)}
        root = processes(proc(tmp_path / "proc"), all_processes | {60: (1, 500, 0)})

        own, kernel_threads = node_sample.read_processes(root, 50)
        assert own == {entry: all_processes[entry] for entry in (50, 51, 52)}
        assert kernel_threads == {}

    @pytest.mark.parametrize("tree", [0, 50])
    def test_threads_of_the_kernel_are_nobodys(self, tmp_path, tree):
        """
        Whoever they belong to: they are told by a flag, as a process 2 need not be theirs.
        """
        root = processes(proc(tmp_path / "proc"), {50: (1, 7, 0)})
        processes(root, {2: (0, 40, 0), 71: (2, 30, 0)}, flags=0x00208040)

        own, kernel_threads = node_sample.read_processes(root, tree)
        assert own == {50: (1, 7, 0)}
        assert kernel_threads == {2: 40, 71: 30}

    def test_time_of_the_kernels_threads(self, tmp_path):
        """
        Those of a second that are there at its end; one that has ended takes none away.
        """
        before = read_counters(proc(tmp_path / "proc"))._replace(kernel_threads={2: 40, 9: 500})
        after = before._replace(total=1200, kernel_threads={2: 60, 71: 30})

        assert between(before, after).kernel == pytest.approx(0.25)
        load = machine_load([replace(QUIET, own=0.6, kernel=0.28)])
        assert load.others == pytest.approx(0.02)

    def test_are_those_of_our_user_without_a_tree(self, tmp_path):
        """
        On a node, and in a container, where there are no others.
        """
        everything = {1: (0, 10, 4), 9: (1, 5, 0)}

        root = processes(proc(tmp_path / "proc"), everything)
        assert node_sample.read_processes(root, 0)[0] == everything

    @pytest.mark.parametrize(
        ("before", "after", "ticks"),
        [
            # a child used 30 and ended: its parent has them, with the 5 of its last moment
            ({1: (0, 10, 0), 2: (1, 30, 0)}, {1: (0, 10, 35)}, 5),
            # so has a parent's parent, where both ended
            ({1: (0, 10, 0), 2: (1, 30, 0), 3: (2, 4, 0)}, {1: (0, 12, 38)}, 6),
            # a command that others started took its time, and its child's, with it
            ({1: (0, 10, 0), 7: (0, 30, 0), 8: (7, 100, 0)}, {1: (0, 12, 0)}, 2),
            # one that has just begun has used all of its time since
            ({1: (0, 10, 0)}, {1: (0, 10, 0), 9: (0, 3, 0)}, 3),
            # one that was never seen, too
            ({1: (0, 10, 0)}, {1: (0, 10, 8)}, 8),
            # what a parent that ignores its children does not have is not missed
            ({1: (0, 10, 0), 2: (1, 3000, 0)}, {1: (0, 14, 0)}, 4),
            # an orphan has another parent, and its time goes on
            ({1: (0, 1, 0), 2: (1, 5, 0), 3: (2, 7, 0)}, {1: (0, 1, 5), 3: (1, 9, 0)}, 2),
        ],
    )
    def test_time_of_ended_processes(self, tmp_path, before, after, ticks):
        """
        What they used is counted once, whoever has it.
        """
        reading = read_counters(proc(tmp_path / "proc"))

        readings = (reading._replace(processes=before), reading._replace(processes=after))

        assert node_sample.own_ticks(*readings) == ticks

    def test_are_no_more_than_the_machine(self, tmp_path):
        """
        A parent that gets a child's time a moment late brings what was counted before.
        """
        before = read_counters(proc(tmp_path / "proc"))
        after = before._replace(total=2000, idle=before.idle + 400, processes={1: (0, 0, 9000)})

        assert between(before, after).own == pytest.approx(0.6)

    @pytest.mark.process
    def test_a_child_counts_before_and_after_its_end(self):
        """
        A process of ours that uses half a second of a core: seen while it runs, and kept.
        """
        before = read_counters()
        burner = subprocess.run(
            [sys.executable, "-c", BURN], capture_output=True, text=True, check=True
        )
        after = read_counters()

        used_s = node_sample.own_ticks(before, after) / os.sysconf("SC_CLK_TCK")
        assert used_s >= float(burner.stdout) - 0.05


class TestDisturbed:
    """The rule that marks a trial."""

    def test_our_own_load_is_none(self):
        """
        All cores busy with our own tasks, and more of them than cores, is what a trial looks like.
        """
        load = machine_load([replace(QUIET, busy=1.0, own=0.98, runnable=40)] * 10)

        assert load.model_dump() == pytest.approx(
            {"busy": 1.0, "steal": 0.0, "others": 0.02, "swap_bytes_per_s": 0.0}
        )
        assert find_disturbance({"this machine": load}) == ""

    @pytest.mark.parametrize(
        ("change", "mark"),
        [
            ({"own": 0.8}, "others used 10.0% of the processors, above 3%"),
            ({"steal": 0.06}, "steal 6.0% of the time, above 5%"),
            ({"swapped_bytes": 3 * MIB}, "swapping 3 MiB/s, above 1 MiB/s"),
        ],
    )
    def test_names_the_rule(self, change, mark):
        """
        The machine, the rule and its numbers stand in the trial's record.
        """
        changed = [replace(QUIET, **change, at_s=float(second)) for second in range(10)]
        loads = {"a": machine_load([QUIET]), "b": machine_load(changed)}

        assert find_disturbance(loads) == f"b: {mark}"

    def test_is_about_means(self):
        """
        A moment of steal, or of others, is noise.
        """
        samples = [*[QUIET] * 38, replace(QUIET, steal=0.4), replace(QUIET, own=0.0)]
        load = machine_load(
            [replace(sample, at_s=float(second)) for second, sample in enumerate(samples)]
        )

        assert find_disturbance({"a": load}) == ""

    def test_a_moment_counts_for_what_it_lasts(self):
        """
        The last sample is of a hundredth of a second, in which one tick is a whole processor.
        """
        last = replace(QUIET, busy=1.0, own=0.0, at_s=1.01)
        load = machine_load([replace(QUIET, busy=0.1, own=0.1, at_s=1.0), last])

        assert load.others == pytest.approx(0.01 / 1.01)
        assert find_disturbance({"a": load}) == ""

    def test_views_of_one_machine_are_added(self):
        """
        Each container's processes are ours, and none sees those of another.
        """
        views = [[replace(QUIET, own=share)] * 3 for share in (0.3, 0.4, 0.2)]

        assert machine_load(*views).others == pytest.approx(0.0)
        assert machine_load(*views[:2]).others == pytest.approx(0.2)

    @pytest.mark.parametrize("views", [([replace(QUIET, own=None)],), ([QUIET], [])])
    def test_what_others_used_may_be_unknown(self, views):
        """
        Samples of an older run have no processes, and a view may have ended: nothing is assumed.
        """
        load = machine_load(*views)

        assert load.others is None
        assert find_disturbance({"a": load}) == ""

    def test_no_samples(self):
        """
        A machine that was not sampled has no load.
        """
        assert machine_load([]) is None


class TestMachineSampler:
    """Samples while a trial runs."""

    @pytest.mark.process
    def test_writes_what_the_parser_reads(self, tmp_path):
        """
        One line per interval and one at the end, of this machine as it is.
        """
        with MachineSampler(tmp_path / "machine.jsonl", interval_s=0.1):
            time.sleep(0.35)
        with (tmp_path / "machine.jsonl").open("rb") as lines:
            samples = list(read_machine(lines, "machine.jsonl"))

        assert len(samples) >= 2
        assert samples == sorted(samples, key=lambda s: s.at_s)
        assert all(0 <= s.busy <= 1 and s.available_bytes > 0 for s in samples)
        assert max(s.runnable for s in samples) >= 1

    def test_a_short_block_has_a_sample(self, tmp_path):
        """
        The end of the block does not wait for the interval, and is sampled.
        """
        started_s = time.monotonic()
        with MachineSampler(tmp_path / "machine.jsonl", interval_s=600):
            time.sleep(0.1)

        assert time.monotonic() - started_s < 60
        assert (tmp_path / "machine.jsonl").read_text().count("\n") == 1

    def test_costs_little(self, tmp_path):
        """
        A sample of a machine's hundred processes takes less than 10 ms of CPU time: 1 % of a core.
        """
        started_s = time.thread_time()
        for _ in range(50):
            read_counters()

        assert (time.thread_time() - started_s) / 50 < 1e-2

    def test_needs_proc(self, tmp_path):
        """
        Without the kernel's counters nothing begins.
        """
        with (
            pytest.raises(MachineError, match="cannot be sampled: No such file"),
            MachineSampler(tmp_path / "machine.jsonl", root=tmp_path),
        ):
            pytest.fail("the body must not run")

    def test_failure_is_raised_where_it_is_awaited(self, tmp_path):
        """
        Counters that vanish during the block end it with the error, not with silence.
        """
        root = proc(tmp_path / "proc")

        with (
            pytest.raises(MachineError, match="cannot be sampled"),
            MachineSampler(tmp_path / "machine.jsonl", interval_s=0.01, root=root),
        ):
            shutil.rmtree(root)


def test_facts_say_what_the_machine_is(tmp_path):
    """
    The manifest gets cores, memory, kernel, system and disk, as JSON.
    """
    facts = machine_facts(tmp_path)

    assert json.loads(json.dumps(facts)) == facts
    assert facts["cores"] == os.cpu_count()
    assert facts["kernel"] == os.uname().release
    assert facts["memory_bytes"] > 2**28
    assert 0 < facts["disk"]["free_bytes"] <= facts["disk"]["total_bytes"]
    assert {"architecture", "load", "cores_usable", "virtual"} <= facts.keys()


class Clock:
    """
    A wall clock that can be set.
    """

    def __init__(self):
        self.shift_s = 0.0

    def __call__(self):
        return time.time() + self.shift_s


def test_a_stopwatch_starts_by_the_wall_clock():
    """
    When it was made is reason in seconds since the epoch.
    """
    assert Stopwatch().at_s == pytest.approx(time.time(), abs=1.0)


@pytest.mark.parametrize("shift_s", [-3600.0, 3600.0])
def test_a_duration_does_not_follow_the_wall_clock(shift_s):
    """
    However the clock is set, no time is negative and none an hour too long.
    """
    wall = Clock()
    watch = Stopwatch(wall)

    wall.shift_s = shift_s

    assert 0.0 <= watch.elapsed_s < 5.0


@pytest.mark.parametrize(
    ("shift_s", "reason"),
    [
        (0.0, ""),
        (MOST_SHIFT_S / 2, ""),
        (-3600.0, "the machine's clock was set 3600.0 s back during the trial"),
        (
            7.5,
            "the machine's clock was set 7.5 s forward (or the machine slept) during the trial",
        ),
    ],
)
def test_a_clock_that_was_set_is_a_reason(shift_s, reason):
    """
    By how much and which way; slewing is no setting.
    """
    wall = Clock()
    watch = Stopwatch(wall)

    wall.shift_s = shift_s

    assert watch.find_shift() == reason
