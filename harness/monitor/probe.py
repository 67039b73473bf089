"""
The speed probe: fixed work on every core while trials run, and what it says of the machine's speed.

It is one small Java class (``workloads/probe``), started outside the cluster's namespaces: one
thread per core does about 1 ms of work every 100 ms and reads its own CPU clock.  Each is tied to
its core: one that is free to move wakes on an idle core, and hears nothing of what slows the rest.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from harness.errors import MachineError
from harness.hadoop_home.java import find_java
from harness.node.sample import pin_threads
from harness.records.trace import SpeedSample

SAMPLE_S = 1.0  # a sample sums over the second that ends at its time
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
    built = root / "workloads" / "probe" / "target" / "harness-probe.jar"
    jar = Path(environment.get("HARNESS_PROBE_JAR") or built)
    if not jar.is_file():
        chosen = jar != built
        raise MachineError(
            "the jar of the speed probe is missing",
            where=f"{jar} (HARNESS_PROBE_JAR)" if chosen else str(jar),
            fix="unset HARNESS_PROBE_JAR; make setup" if chosen else "make setup",
        )
    return jar


class SpeedProbe:
    """
    Runs the probe inside a ``with`` block; its samples are appended to *log*.

    Once the block begins the probe is warm and measures.  The probe ends with the block, and with
    this process however it dies: its standard input is a pipe that only we hold open.
    """

    def __init__(
        self,
        jar: Path | None = None,
        java: Path | None = None,
        *,
        log: Path,
        threads: int | None = None,
    ) -> None:
        """Take the jar and the `java` command (found by default), and *threads*: one per core."""
        self.jar, self.java, self.log, self.threads = jar, java, log, threads
        self._process: subprocess.Popen[bytes] | None = None
        self._complaints: IO[bytes]

    @property
    def pid(self) -> int | None:
        """Process id while the probe runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def __enter__(self) -> Self:
        jar = self.jar or probe_jar()
        java = str(self.java or find_java().launcher)
        argv = [java, *FLAGS, "-jar", str(jar), str(self.threads or usable_cores())]
        self._complaints = tempfile.TemporaryFile()
        with self.log.open("ab") as log:
            start = log.tell()
            try:
                self._process = subprocess.Popen(
                    argv, stdin=subprocess.PIPE, stdout=log, stderr=self._complaints
                )
            except OSError as error:
                self._complaints.close()
                raise MachineError(
                    f"the speed probe does not start: {error.strerror}",
                    where=java,
                    fix="harness doctor",
                ) from error
        self._await_header(start)
        self._tie_to_cores()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def _await_header(self, start: int) -> None:
        """Wait for the probe's first line, which it writes when it is warm."""
        assert self._process is not None
        deadline = time.monotonic() + _START_LIMIT_S
        try:
            while self.log.stat().st_size <= start:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise MachineError(
                        f"the speed probe does not measure: {self._last_words()}",
                        where=str(self.jar or probe_jar()),
                        fix="make setup, then harness doctor",
                    )
                time.sleep(0.01)
        except BaseException:
            self._stop()
            raise

    def _tie_to_cores(self) -> None:
        """
        Give each thread of the probe (``probe-0`` ...) a core of its own.

        A thread gets its name when it first runs, which on a busy machine may be a moment later.
        """
        assert self._process is not None
        count, tied = self.threads or usable_cores(), set[str]()
        deadline = time.monotonic() + _NAMES_LIMIT_S
        while len(tied) < count and self.pid is not None and time.monotonic() < deadline:
            with suppress(FileNotFoundError):  # it has ended
                tied |= set(pin_threads(self._process.pid, sorted(os.sched_getaffinity(0))))
            time.sleep(_NAMES_POLL_S if len(tied) < count else 0)

    def _last_words(self) -> str:
        """Last line that the probe wrote to its standard error, or how it ended."""
        assert self._process is not None
        self._complaints.seek(0)
        lines = self._complaints.read().decode("utf-8", "replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        if said:
            return ascii(said[0])
        status = self._process.poll()
        return "no sample after 60 s" if status is None else f"exit status {status}"

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
        self._complaints.close()


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def rate(samples: Iterable[SpeedSample], start_s: float, end_s: float) -> float | None:
    """
    Units of work per CPU second between two moments, or `None` where nothing was sampled.

    A sample counts where the middle of its second lies in the window, ends included.
    """
    inside = [s for s in samples if start_s <= s.at_s - SAMPLE_S / 2 <= end_s]
    cpu_s = sum(s.cpu_s for s in inside)
    return sum(s.units for s in inside) / cpu_s if cpu_s > 0 else None
