"""
Tests for `harness.monitor.machine`.
"""

import json
import os
import shutil
import time

from dataclasses import asdict, replace

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.errors import MachineError
from harness.monitor.machine import (
    MOST_SHIFT_S,
    MachineSampler,
    Stopwatch,
    between,
    find_disturbance,
    machine_facts,
    read_counters,
)
from harness.parsing.lines import read_machine
from harness.records.trace import MachineSample
from harness.units import MIB

QUIET = MachineSample(at_s=0.0, busy=0.9, steal=0.0, iowait=0.0, runnable=4, available_bytes=2**32)


def proc(root, *, cpu="100 0 50 800 20 5 5 20 0 0", running=3, pressure=1_000_000):
    """
    A folder like /proc with these counters.
    """
    root.mkdir(exist_ok=True)
    (root / "stat").write_text(f"cpu  {cpu}\ncpu0 {cpu}\nintr 7\nprocs_running {running}\n")
    (root / "meminfo").write_text("MemTotal: 2048 kB\nMemFree: 1 kB\nMemAvailable:    1024 kB\n")
    if pressure is not None:
        (root / "pressure").mkdir(exist_ok=True)
        total = f"some avg10=0.00 avg60=0.00 avg300=0.00 total={pressure}\nfull total=9\n"
        (root / "pressure" / "memory").write_text(total)
    return root


def test_reads_the_kernels_counters(tmp_path):
    """
    Ticks, runnable processes, available memory and the time that tasks waited for memory.
    """
    reading = read_counters(proc(tmp_path / "proc"))

    assert reading[1:] == (1000, 800, 20, 20, 3, 1024 * 1024, 1_000_000)


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


class TestDisturbed:
    """The rule that marks a trial."""

    def test_quiet_trial_is_not_marked(self):
        """
        All cores busy with our own tasks is what a trial looks like; so is no sample at all.
        """
        assert find_disturbance([QUIET] * 10, cores=4) == ""
        assert find_disturbance([], cores=4) == ""

    @pytest.mark.parametrize(
        ("change", "mark"),
        [
            ({"steal": 0.06}, "steal 6.0% of the time, above 5%"),
            ({"memory_pressure": 0.2}, "memory pressure 20.0% of the time, above 10%"),
            ({"available_bytes": 100 * MIB}, "100 MiB of memory available, below 256 MiB"),
            ({"runnable": 9}, "2.2 runnable threads per core, above 2"),
        ],
    )
    def test_names_the_rule(self, change, mark):
        """
        The rule and its numbers stand in the trial's record.
        """
        assert find_disturbance([replace(QUIET, **change)] * 3, cores=4) == mark

    def test_is_about_means(self):
        """
        A moment of steal is noise; a moment without memory is not.
        """
        stolen = replace(QUIET, steal=0.4)
        short = replace(QUIET, available_bytes=MIB)

        assert find_disturbance([*[QUIET] * 9, stolen], cores=4) == ""
        assert find_disturbance([*[QUIET] * 9, short], cores=4) != ""


class TestMachineSampler:
    """Samples while a trial runs."""

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
        A sample takes less than 1 ms of CPU time: 0.2 % of a core at two a second.
        """
        started_s = time.thread_time()
        for _ in range(50):
            read_counters()

        assert (time.thread_time() - started_s) / 50 < 1e-3

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
