"""
Tests for `harness.clusters.monitor.probe` and the Java class that it runs (`make setup` builds it).
"""

import os
import signal
import subprocess
import sys
import time

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.base.errors import MachineError
from harness.clusters.hadoop_home.home import find_java
from harness.clusters.monitor import probe
from harness.clusters.monitor.probe import SpeedProbe, probe_jar
from harness.observe.parsing.lines import read_speed

pytestmark = pytest.mark.process

LIMIT_S = 60  # for what takes a second on an idle machine


def wait_until(condition):
    """
    Wait for *condition*, and fail after a minute.
    """
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, "nothing happened for a minute"
        time.sleep(0.02)


def lines(log):
    """
    Whole lines of samples in *log*, without headers.
    """
    return [line for line in log.read_bytes().splitlines() if not line.startswith(b"#")]


def is_running(pid):
    """
    Does the process *pid* exist, and is it more than a zombie?
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class TestJar:
    """Where the probe is found."""

    def test_missing_is_an_error_with_its_cure(self, tmp_path, monkeypatch):
        """
        The error names the file and the command that makes it.
        """
        monkeypatch.setattr(probe, "PROBE", tmp_path / "none.jar")

        with pytest.raises(MachineError, match=r"(?s)missing.*none\.jar.*make setup"):
            probe_jar()


class TestSpeedProbe:
    """The running probe."""

    def test_measures_on_every_thread(self, tmp_path):
        """
        Each thread gives a sample a second, of at most ten units that took CPU time, and all of
        them are gone when the block ends.
        """
        log = tmp_path / "speed.txt"
        with SpeedProbe(log=log, threads=2) as probe:
            pid = probe.pid
            wait_until(lambda: len(lines(log)) >= 4)
        with log.open("rb") as stream:
            taken = list(read_speed(stream, "speed.txt"))

        assert not is_running(pid)
        assert probe.pid is None
        assert {s.thread for s in taken} == {0, 1}
        assert all(1 <= s.units <= 10 and s.cpu_s > 0 for s in taken)
        assert abs(taken[-1].at_s - time.time()) < LIMIT_S

    def test_ties_each_thread_to_its_core(self, tmp_path):
        """
        Thread n may run on the nth usable core alone: else it would wake on an idle one.
        """
        cores = sorted(os.sched_getaffinity(0))
        with SpeedProbe(log=tmp_path / "speed.txt", threads=len(cores) + 1) as probe:
            tied = {
                (task / "comm").read_text().strip(): os.sched_getaffinity(int(task.name))
                for task in Path(f"/proc/{probe.pid}/task").iterdir()
            }

        expected = {f"probe-{n}": {core} for n, core in enumerate([*cores, cores[0]])}
        assert {name: where for name, where in tied.items() if name in expected} == expected

    def test_goes_on_in_the_same_log(self, tmp_path):
        """
        A run that is continued keeps the samples that it has, and waits for its own header.
        """
        log = tmp_path / "speed.txt"
        for _ in range(2):
            with SpeedProbe(log=log, threads=1):
                pass

        assert log.read_bytes().count(b"# epoch_ms thread units cpu_ns\n") == 2

    def test_dies_with_its_parent(self, tmp_path):
        """
        A harness that is killed leaves no probe behind.
        """
        code = (
            "import sys, time, pathlib; from harness.clusters.monitor.probe import SpeedProbe\n"
            "with SpeedProbe(log=pathlib.Path(sys.argv[1]), threads=1) as probe:\n"
            "    print(probe.pid, flush=True)\n"
            "    time.sleep(600)\n"
        )
        argv = [sys.executable, "-c", code, str(tmp_path / "speed.txt")]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as parent:
            pid = int(parent.stdout.readline())
            assert is_running(pid)
            parent.send_signal(signal.SIGKILL)

        wait_until(lambda: not is_running(pid))

    def test_ends_after_its_longest_time(self):
        """
        The second argument bounds the probe even where its input never ends.
        """
        argv = [find_java().launcher, "-Xmx16m", "-jar", str(probe_jar()), "1", "1"]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
            assert process.wait(LIMIT_S) == 0

    @pytest.mark.parametrize(
        ("java", "complaint"),
        [(None, "does not measure: .*jar"), (Path("/no/java"), "does not start: No such file")],
    )
    def test_says_why_it_does_not_run(self, tmp_path, java, complaint, monkeypatch):
        """
        A broken jar or Java is an error of the machine, before any trial.
        """
        broken = tmp_path / "broken.jar"
        broken.write_text("no jar")
        monkeypatch.setattr(probe, "PROBE", broken)
        if java is not None:
            monkeypatch.setattr(probe, "find_java", lambda: SimpleNamespace(launcher=java))

        with pytest.raises(MachineError, match=complaint), SpeedProbe(log=tmp_path / "speed.txt"):
            pytest.fail("the body must not run")
