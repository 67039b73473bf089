"""
The machines of a cluster's nodes, watched through the nodes' doors while trials run.

`harness.node.sample` runs on one node of each machine: nodes that share a machine share
its speed, too.  What it tells is checked line by line and kept as `harness.parsing` reads it;
whatever else comes, or comes without end, ends the watching and no trial.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Protocol

from harness.errors import ClusterError, HarnessError
from harness.monitor.probe import FLAGS, probe_jar
from harness.parsing.samples import read_machine, read_speed
from harness.providers.host import Host, Running, printable
from harness.units import MIB

INTERVAL_S = 0.5
START_LIMIT_S = 30.0
_END_LIMIT_S = 5.0
_MOST_LINE, _MOST_HOSTS, _MOST_CORES = 1024, 32, 4096
_BURST, _MOST_BPS = MIB, 64 * 1024  # a thousand cores tell half of it


class WatchedCluster(Protocol):
    """What watching its machines asks of a cluster."""

    def host_path(self, host: Host, path: Path) -> str:
        """Return where *host* has this machine's file *path*; it is brought there if need be."""
        ...

    def agent(self, host: Host, verb: str, *arguments: str) -> list[str]:
        """Return the command line that runs one verb of the node agent on *host*."""
        ...


class Machine:
    """
    One machine, watched through *door*, the first of its *nodes*.

    Samples are appended to the files *speed* and *load*; *failure* says why no more come.
    """

    def __init__(self, door: Host, argv: Sequence[str], folder: Path) -> None:
        """*argv* is the program's command line on *door*; the samples will lie in *folder*."""
        self.door, self.nodes = door, [door.name]
        self.speed, self.load = (folder / f"{what}-{door.name}" for what in ("speed", "load"))
        self.identity, self.cores, self.failure = "", 1, ""
        self.probed = False
        self._argv = argv
        self._process: Running | None = None
        self._reader: threading.Thread | None = None
        self._warm = threading.Event()

    def greet(self) -> None:
        """Start the program and hear what the machine is; `HarnessError` where nothing answers."""
        self._process, self.failure = self.door.open(self._argv), ""
        try:
            self.identity, self.cores = _greeting(self._process)
        except BaseException:
            self.end()
            raise

    def begin(self, *, speed: bool) -> None:
        """Have it sampled, with the speed probe or without."""
        process, self.probed = self._process, speed
        assert process is not None
        assert process.stdin is not None
        self._warm.clear()
        with suppress(BrokenPipeError):  # it has ended: its last words are still to be read
            process.stdin.write(b"speed\n" if speed else b"load\n")
            process.stdin.flush()
        name = f"watch {self.door.name}"
        self._reader = threading.Thread(target=self._read, args=(process,), name=name, daemon=True)
        self._reader.start()

    def await_warm(self) -> None:
        """Return when the first sample has come, or `failure` says why there is none."""
        if not self._warm.wait(START_LIMIT_S):
            self.failure = self.failure or f"no sample after {START_LIMIT_S:g} s"

    def again(self) -> None:
        """Start it again; `failure` says so where that is in vain."""
        self.end()
        try:
            self.greet()
        except (HarnessError, OSError) as error:
            self.failure = _shown(str(error))
        else:
            self.begin(speed=self.probed)
            self.await_warm()

    def end(self) -> None:
        """End the program on the node; it ends with our connection anyway."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(HarnessError, OSError):
            process.kill()
        if self._reader is not None:
            self._reader.join(_END_LIMIT_S)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(OSError, ValueError):  # what was still to be said has no hearer
                    pipe.close()
        with suppress(HarnessError, subprocess.TimeoutExpired):
            process.wait(_END_LIMIT_S)

    def _read(self, process: Running) -> None:
        assert process.stdout is not None
        try:
            with self.speed.open("ab") as speed, self.load.open("ab") as load:
                self._copy(process.stdout, speed, load)
            self.failure = self.failure or "it has ended"
        except (HarnessError, OSError, ValueError) as error:
            self.failure = self.failure or _shown(str(error))
        finally:
            self._warm.set()

    def _copy(self, told: IO[bytes], speed: IO[bytes], load: IO[bytes]) -> None:
        """Keep samples until there are no more, or something else."""
        began, taken = time.monotonic(), 0
        while line := told.readline(_MOST_LINE):
            taken += len(line)
            if taken > _BURST + _MOST_BPS * (time.monotonic() - began):
                raise ClusterError("it tells more than a machine has to tell")
            if not line.endswith(b"\n"):
                raise ClusterError("a line of it has no end")
            kind, _, rest = line.partition(b" ")
            if kind == b"load":
                for moment in read_machine([rest], "load"):
                    _append(load, json.dumps(asdict(moment)))
            elif kind == b"speed":
                for s in read_speed([rest], "speed"):
                    sample = round(1e3 * s.at_s), s.thread, s.units, round(1e9 * s.cpu_s)
                    _append(speed, " ".join(map(str, sample)))
            else:
                raise ClusterError(line.removeprefix(b"failed ").decode(errors="replace"))
            if kind == (b"speed" if self.probed else b"load"):
                self._warm.set()


def _append(file: IO[bytes], line: str) -> None:
    file.write(line.encode("ascii") + b"\n")
    file.flush()


def greet_all(
    cluster: WatchedCluster, hosts: Sequence[Host], folder: Path, lack: Callable[[str], None]
) -> list[Machine]:
    """
    The machines of *hosts*, asked all at once; of several hosts on one the first is its door.

    *lack* hears of those that do not answer.
    """

    def greeted(host: Host) -> Machine | str:
        try:
            machine = Machine(host, _argv(cluster, host), folder)
            machine.greet()
        except (HarnessError, OSError) as error:
            return unmeasured([host.name], str(error))
        return machine

    found: dict[str, Machine] = {}
    with ThreadPoolExecutor(_MOST_HOSTS) as pool:
        for host, answer in zip(hosts, pool.map(greeted, hosts), strict=True):
            if isinstance(answer, str):
                lack(answer)
            elif answer.identity in found:
                found[answer.identity].nodes.append(host.name)
                answer.end()
            else:
                found[answer.identity] = answer
    return list(found.values())


def unmeasured(nodes: Iterable[str], why: str) -> str:
    """What cannot be shown of *nodes*, for people."""
    return f"speed and load of {', '.join(nodes)} are not measured: {_shown(why)}"


def _argv(cluster: WatchedCluster, host: Host) -> list[str]:
    jar = cluster.host_path(host, probe_jar())
    return cluster.agent(host, "sample", f"{INTERVAL_S:g}", *FLAGS, "-jar", jar)


def _greeting(process: Running) -> tuple[str, int]:
    """Which machine it is, and its cores."""
    assert process.stdout is not None
    patience = threading.Timer(START_LIMIT_S, process.kill)
    patience.start()
    try:
        line = process.stdout.readline(_MOST_LINE)
    finally:
        patience.cancel()
    try:
        told = json.loads(line)
        machine, cores = str(told["machine"]), int(told["cores"])
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        said = _shown(line.decode(errors="replace"))
        raise ClusterError(f"it does not tell what it is: {said}") from error
    if not 0 < cores <= _MOST_CORES:
        raise ClusterError(f"it tells of {cores:.3g} cores")
    return machine, cores


def _shown(text: str) -> str:
    return printable(text).strip().partition("\n")[0][:200] or "it says nothing"
