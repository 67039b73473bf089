"""
The speed probe: fixed work on every core while trials run, which shows the machine's speed.

It is one small Java class (``workloads/probe``), started outside the cluster's namespaces: one
thread per core does about 1 ms of work every 100 ms and reads its own CPU clock.  Each is pinned to
its core: one that is free to move wakes on an idle core, and does not see what slows the others.
"""

from __future__ import annotations

import os
import time

from pathlib import Path
from typing import Self

from harness.base.errors import MachineError
from harness.base.installed import setup_fix
from harness.clusters.hadoop_home.home import WORKLOADS, find_java
from harness.clusters.node.sample import Probe

FLAGS = (
    # One fast compiler and a tiny heap: the probe must not disturb what it measures.
    "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx16m", "-Xss256k",
    "-XX:-UsePerfData",  # leaves no file in the system's temporary folder
    "-XX:+DisplayVMOutputToStderr",  # standard output holds samples alone
)  # fmt: skip
_START_LIMIT_S = 60.0
PROBE = WORKLOADS / "probe" / "target" / "harness-probe.jar"


def probe_jar() -> Path:
    """Path of the probe's jar; `MachineError` where it is not built."""
    if not PROBE.is_file():
        what = "the jar of the speed probe is missing"
        raise MachineError(what, where=str(PROBE), fix=setup_fix())
    return PROBE


class SpeedProbe:
    """
    Runs the probe inside a ``with`` block; its samples are appended to *log*.

    Once the block begins the probe is warm and measures.  The probe ends with the block, and with
    this process however it dies: its standard input is a pipe that only we hold open.
    """

    def __init__(self, *, log: Path, threads: int | None = None) -> None:
        """Have *threads* append their samples to *log*: one per core, unless it is given."""
        self.log = log
        self.threads = threads or len(os.sched_getaffinity(0))
        self._probe: Probe | None = None

    @property
    def pid(self) -> int | None:
        """Process id while the probe runs."""
        return self._probe.jvm.pid if self._probe and self._probe.jvm.poll() is None else None

    def __enter__(self) -> Self:
        jar = probe_jar()
        java = str(find_java().launcher)
        with self.log.open("ab") as log:
            start = log.tell()
            try:
                probe = Probe(java, [*FLAGS, "-jar", str(jar)], self.threads, log)
            except OSError as error:
                what = f"the speed probe does not start: {error.strerror}"
                raise MachineError(what, where=java, fix="harness doctor") from error
        self._probe = probe
        try:
            # The probe writes its first line when it is warm.
            deadline = time.monotonic() + _START_LIMIT_S
            while self.log.stat().st_size <= start:
                status = probe.jvm.poll()
                if status is not None or time.monotonic() > deadline:
                    ending = "no sample after 60 s" if status is None else f"exit status {status}"
                    what = f"the speed probe does not measure: {probe.error() or ending}"
                    fix = f"{setup_fix()}, then harness doctor"
                    raise MachineError(what, where=str(jar), fix=fix)
                time.sleep(0.01)
            while self.pid and not probe.pin():
                time.sleep(0.01)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        probe = self._probe
        self._probe = None
        if probe is not None:
            probe.end()
