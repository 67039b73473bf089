"""
The speed probe: fixed work on every core while trials run, which shows the machine's speed.

It is one small Java class (``workloads/probe``), started outside the cluster's namespaces: one
thread per core does about 1 ms of work every 100 ms and reads its own CPU clock.  Each is pinned to
its core: one that is free to move wakes on an idle core, and does not see what slows the others.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

from harness.errors import MachineError
from harness.hadoop_home.home import find_java
from harness.node.sample import pin_threads
from harness.text import first_line

FLAGS = (
    # One fast compiler and a tiny heap: the probe must not disturb what it measures.
    "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx16m", "-Xss256k",
    "-XX:-UsePerfData",  # leaves no file in the system's temporary folder
    "-XX:+DisplayVMOutputToStderr",  # standard output holds samples alone
)  # fmt: skip
_START_LIMIT_S = 60.0
_STOP_LIMIT_S = 5.0
_NAMES_LIMIT_S, _NAMES_POLL_S = 5.0, 0.01


def probe_jar(environment: Mapping[str, str] = os.environ) -> Path:
    """Path of the probe's jar: ``HARNESS_PROBE_JAR``, or what ``make setup`` builds here."""
    root = Path(__file__).resolve().parents[2]
    built_jar = root / "workloads" / "probe" / "target" / "harness-probe.jar"
    jar_path = Path(environment.get("HARNESS_PROBE_JAR") or built_jar)
    if not jar_path.is_file():
        is_chosen = jar_path != built_jar
        raise MachineError(
            "the jar of the speed probe is missing",
            where=f"{jar_path} (HARNESS_PROBE_JAR)" if is_chosen else str(jar_path),
            fix="unset HARNESS_PROBE_JAR; make setup" if is_chosen else "make setup",
        )
    return jar_path


class SpeedProbe:
    """
    Runs the probe inside a ``with`` block; its samples are appended to *log*.

    Once the block begins the probe is warm and measures.  The probe ends with the block, and with
    this process however it dies: its standard input is a pipe that only we hold open.
    """

    def __init__(self, *, log: Path, threads: int | None = None) -> None:
        """Have *threads* append their samples to *log*: one per core, unless it is given."""
        self.log, self.threads = log, threads or usable_cores()
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes]

    @property
    def pid(self) -> int | None:
        """Process id while the probe runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def __enter__(self) -> Self:
        jar, java = probe_jar(), str(find_java().launcher)
        argv = [java, *FLAGS, "-jar", str(jar), str(self.threads)]
        self._errors = tempfile.TemporaryFile()
        with self.log.open("ab") as log:
            start = log.tell()
            try:
                self._process = subprocess.Popen(
                    argv, stdin=subprocess.PIPE, stdout=log, stderr=self._errors
                )
            except OSError as error:
                self._errors.close()
                what = f"the speed probe does not start: {error.strerror}"
                raise MachineError(what, where=java, fix="harness doctor") from error
        try:
            # The probe writes its first line when it is warm.
            deadline = time.monotonic() + _START_LIMIT_S
            while self.log.stat().st_size <= start:
                status = self._process.poll()
                if status is not None or time.monotonic() > deadline:
                    self._errors.seek(0)
                    ending = "no sample after 60 s" if status is None else f"exit status {status}"
                    reason = first_line(self._errors.read().decode("utf-8", "replace"), ending)
                    what = f"the speed probe does not measure: {reason}"
                    raise MachineError(what, where=str(jar), fix="make setup, then harness doctor")
                time.sleep(0.01)
            # A thread gets its name, by which it is found, when it first runs, which on a busy
            # machine may be a moment later.
            pinned, deadline = set[str](), time.monotonic() + _NAMES_LIMIT_S
            while len(pinned) < self.threads and self.pid and time.monotonic() < deadline:
                with suppress(FileNotFoundError):  # it has ended
                    pinned |= set(pin_threads(self._process.pid, sorted(os.sched_getaffinity(0))))
                time.sleep(_NAMES_POLL_S if len(pinned) < self.threads else 0)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _stop(self) -> None:
        """End the probe by the end of its input; kill it where that does not help."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._errors.close()


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))
