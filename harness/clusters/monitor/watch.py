"""
Speed and load of the machines that do the work of a cluster, sampled while its trials run.

Where all nodes are on this machine it is sampled from here, outside of the nodes and their limits.
Where nodes are reached over a connection, `harness.clusters.node.sample` runs on one node of each
machine. What it reports is checked line by line; whatever else it writes, or writes without end,
ends its
sampling and no trial.  A cluster whose nodes cannot be reached has no samples, and its times stay
as measured.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO

from harness.base.errors import ClusterError, HarnessError
from harness.base.records.manifest import MonitoredMachine
from harness.base.records.trial import MachineLoad
from harness.base.text import first_line
from harness.base.units import MIB
from harness.clusters.base import Cluster
from harness.clusters.host import Host, Running, at_once, time_limit
from harness.clusters.monitor.machine import (
    MACHINE_LOG,
    PROBE_LOG,
    THIS_MACHINE,
    VIEW_LOG,
    MachineSampler,
    copy_tail,
    machine_load,
    named_after,
    read_samples,
)
from harness.clusters.monitor.probe import FLAGS, SpeedProbe, probe_jar
from harness.clusters.node.sample import identity
from harness.observe.parsing.lines import read_machine, read_speed

INTERVAL_S = 1.0
HARNESS = "harness"  # in the place of a node's name, for samples of our own processes
START_LIMIT_S = 30.0
_END_LIMIT_S = 5.0
_MOST_LINE = 1024
_MOST_CORES = 4096
_BURST = MIB
_MOST_BPS = 64 * 1024  # a thousand cores report half of it

# The first word of a line -> what reads the rest of it.
_PARSERS: Mapping[bytes, Callable[[list[bytes], str], Iterator[object]]] = {
    b"load": read_machine,
    b"speed": read_speed,
}

Report = Callable[[str], None]


@contextmanager
def monitor_cluster(
    cluster: Cluster, scratch: Path, say: Report, add_limitation: Report
) -> Iterator[Monitor]:
    """
    Sample the machines of *cluster* during a ``with`` block, with files in the folder *scratch*.

    *say* is called with what happens meanwhile, *add_limitation* with what cannot be measured.
    """
    hosts = cluster.watched
    with ExitStack() as stack:
        if hosts is None:
            yield LocalMonitor(scratch / PROBE_LOG, say, stack)
            return
        connected = connect_machines(cluster, hosts, scratch, add_limitation)
        for machine in connected:
            stack.callback(machine.stop)
            # A master runs no tasks: its speed does not matter.  All probes start at once.
            machine.start(with_speed=machine.nodes != [hosts[0].name])
            for view in machine.views:
                stack.callback(view.stop)
                view.start(with_speed=False)
        sampled = []
        for machine in connected:
            machine.await_first_sample()
            if machine.failure:
                add_limitation(_not_measured(machine.nodes, machine.failure))
            else:
                sampled.append(machine)
        yield RemoteMonitor(sampled, say)


class LocalMonitor:
    """Samples this machine, on which all nodes are; `RemoteMonitor` has the same methods."""

    def __init__(self, log: Path, say: Report, stack: ExitStack) -> None:
        """Have the speed probe run until *stack* is closed, its samples in *log*."""
        self._log = log
        self._say = say
        self._stack = stack
        self.machines: dict[str, MonitoredMachine] = {}  # none: the manifest describes this one
        self._probe = stack.enter_context(SpeedProbe(log=log))

    @contextmanager
    def sample(self, raw: Path) -> Iterator[None]:
        """Sample while a block runs; the samples are files in the folder *raw* afterwards."""
        if self._probe.pid is None:  # somebody has killed it: no trial runs without
            self._say("the speed probe has ended: starting it again")
            self._probe = self._stack.enter_context(SpeedProbe(log=self._log))
        start_bytes = file_size(self._log)
        with MachineSampler(raw / MACHINE_LOG):
            yield
        copy_tail(self._log, start_bytes, raw / PROBE_LOG)

    def loads(self, raw: Path) -> dict[str, MachineLoad]:
        """How this machine was used during the trial with samples in *raw*."""
        load = machine_load(read_samples(raw / MACHINE_LOG))
        return {} if load is None else {THIS_MACHINE: load}


class RemoteMonitor:
    """Samples the machines of nodes that are reached over a connection."""

    def __init__(self, sampled: Sequence[RemoteMachine], say: Report) -> None:
        """Copy what *sampled* report; `machines` are those, by the name in their samples."""
        self.sampled = sampled
        self._say = say
        self._our_identity = identity()
        self.machines = {
            machine.host.name: MonitoredMachine(nodes=tuple(machine.nodes), cores=machine.cores)
            for machine in sampled
        }

    @contextmanager
    def sample(self, raw: Path) -> Iterator[None]:
        """Sample while a block runs."""
        log_files = []
        for machine in self.sampled:
            log_files += self._logs(machine, MACHINE_LOG)
            for view in machine.views:
                log_files += self._logs(view, VIEW_LOG)
        starts = [file_size(source) for source, _ in log_files]
        # Clients, and what carries their commands, may be processes of ours on one of the machines.
        is_shared = any(map(self._has_our_processes, self.sampled))
        harness_log = raw / named_after(VIEW_LOG, HARNESS)
        with MachineSampler(harness_log) if is_shared else nullcontext():
            yield
        for (source, name), start_bytes in zip(log_files, starts, strict=True):
            copy_tail(source, start_bytes, raw / name)

    def _logs(self, machine: RemoteMachine, load_name: str) -> list[tuple[Path, str]]:
        """Files to which *machine* is sampled, and their names in a trial; started if it ended."""
        if machine.failure:
            what = f"the sampling of {machine.host.name} has ended ({machine.failure})"
            self._say(f"{what}: starting it again")
            machine.restart()
        log_files = [(machine.load_log, named_after(load_name, machine.host.name))]
        if machine.has_probe:
            log_files.append((machine.speed_log, named_after(PROBE_LOG, machine.host.name)))
        return log_files

    def loads(self, raw: Path) -> dict[str, MachineLoad]:
        """How each machine was used during the trial with samples in *raw*."""
        machine_loads = {}
        for machine in self.sampled:
            names = [view.host.name for view in machine.views]
            if self._has_our_processes(machine):
                names.append(HARNESS)
            views = [read_samples(raw / named_after(VIEW_LOG, name)) for name in names]
            samples = read_samples(raw / named_after(MACHINE_LOG, machine.host.name))
            if (load := machine_load(samples, *views)) is not None:
                machine_loads[machine.host.name] = load
        return machine_loads

    def _has_our_processes(self, machine: RemoteMachine) -> bool:
        """Whether we run on *machine*, and none of its nodes sees our processes as its own."""
        ours = self._our_identity
        views = (machine, *machine.views)
        is_seen = any(view.identity["view"] == ours["view"] for view in views)
        return machine.identity["machine"] == ours["machine"] and not is_seen


Monitor = LocalMonitor | RemoteMonitor


class RemoteMachine:
    """
    One machine, sampled through *host*, the first of its *nodes*.

    Samples are appended to the files *speed_log* and *load_log*; *failure* says why no more come.
    *views* are nodes of the same machine that see others of our processes.
    """

    def __init__(self, host: Host, argv: Sequence[str], folder: Path) -> None:
        """*argv* is the program's command line on *host*; the samples are kept in *folder*."""
        self.host = host
        self.nodes = [host.name]
        self.speed_log, self.load_log = (folder / f"{log}-{host.name}" for log in ("speed", "load"))
        self.identity: Mapping[str, str] = {}
        self.views: list[RemoteMachine] = []
        self.cores = 1
        self.failure = ""
        self.has_probe = False
        self._argv = argv
        self._process: Running | None = None
        self._reader: threading.Thread | None = None
        self._has_sample = threading.Event()

    def connect(self) -> None:
        """Start the program and read what the machine is; `HarnessError` where none answers."""
        process = self._process = self.host.open(self._argv)
        self.failure = ""
        with ExitStack() as undo:
            undo.callback(self.stop)
            assert process.stdout is not None
            with time_limit(START_LIMIT_S, process.kill):
                report_line = process.stdout.readline(_MOST_LINE)
            try:
                greeting = json.loads(report_line)
                self.identity = {word: str(greeting[word]) for word in ("machine", "view")}
                self.cores = int(greeting["cores"])
            except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
                text = first_line(report_line.decode(errors="replace"))
                raise ClusterError(f"it does not say what it is: {text}") from error
            if not 0 < self.cores <= _MOST_CORES:
                raise ClusterError(f"it claims {self.cores:.3g} cores")
            undo.pop_all()

    def start(self, *, with_speed: bool) -> None:
        """Have the machine sampled, with the speed probe or without."""
        process = self._process
        self.has_probe = with_speed
        assert process is not None
        assert process.stdin is not None
        self._has_sample.clear()
        with suppress(BrokenPipeError):  # it has ended: its last lines are still to be read
            process.stdin.write(b"speed\n" if with_speed else b"load\n")
            process.stdin.flush()
        self._reader = threading.Thread(
            target=self._read, args=(process,), name=f"watch {self.host.name}", daemon=True
        )
        self._reader.start()

    def await_first_sample(self) -> None:
        """Return when the first sample has come, or `failure` says why there is none."""
        if not self._has_sample.wait(START_LIMIT_S):
            self.failure = self.failure or f"no sample after {START_LIMIT_S:g} s"

    def restart(self) -> None:
        """Start it again; `failure` says so where that is in vain."""
        self.stop()
        try:
            self.connect()
        except (HarnessError, OSError) as error:
            self.failure = first_line(str(error))
        else:
            self.start(with_speed=self.has_probe)
            self.await_first_sample()

    def stop(self) -> None:
        """End the program on the node; it ends with our connection anyway."""
        process = self._process
        self._process = None
        if process is None:
            return
        with suppress(HarnessError, OSError):
            process.kill()
        if self._reader is not None:
            self._reader.join(_END_LIMIT_S)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(OSError, ValueError):  # nobody reads what is still in it
                    pipe.close()
        with suppress(HarnessError, subprocess.TimeoutExpired):
            process.wait(_END_LIMIT_S)

    def _read(self, process: Running) -> None:
        """Keep samples until the program ends, or writes what is none; `failure` says which."""
        assert process.stdout is not None
        failure = "it has ended"
        try:
            with self.speed_log.open("ab", 0) as speed, self.load_log.open("ab", 0) as load:
                logs = {b"load": load, b"speed": speed}
                awaited_kind = b"speed" if self.has_probe else b"load"
                for report_line in _bounded_lines(process.stdout):
                    sample_kind, _, sample_text = report_line.partition(b" ")
                    if sample_kind not in logs:
                        reason = report_line.removeprefix(b"failed ").decode(errors="replace")
                        raise ClusterError(reason)
                    # Raises an error for what is no sample; a line of spaces holds none.
                    if any(_PARSERS[sample_kind]([sample_text], sample_kind.decode())):
                        logs[sample_kind].write(sample_text)
                    if sample_kind == awaited_kind:
                        self._has_sample.set()
        except (HarnessError, OSError, ValueError) as error:
            failure = first_line(str(error))
        finally:
            self.failure = self.failure or failure
            self._has_sample.set()


def _bounded_lines(output: IO[bytes]) -> Iterator[bytes]:
    """Lines of *output*; `ClusterError` at one without an end, and where too much is written."""
    started = time.monotonic()
    reported_bytes = 0
    while report_line := output.readline(_MOST_LINE):
        reported_bytes += len(report_line)
        if reported_bytes > _BURST + _MOST_BPS * (time.monotonic() - started):
            raise ClusterError("it writes more than a machine has to report")
        if not report_line.endswith(b"\n"):
            raise ClusterError("one of its lines has no end")
        yield report_line


def connect_machines(
    cluster: Cluster, hosts: Sequence[Host], folder: Path, add_limitation: Report
) -> list[RemoteMachine]:
    """Connect to the machines of *hosts*, all at once; of hosts that share one, to the first."""

    def connect(host: Host) -> RemoteMachine | str:
        try:
            jar = cluster.host_path(host, probe_jar())
            argv = cluster.agent(host, "sample", f"{INTERVAL_S:g}", *FLAGS, "-jar", jar)
            machine = RemoteMachine(host, argv, folder)
            machine.connect()
        except (HarnessError, OSError) as error:
            return _not_measured([host.name], str(error))
        return machine

    machines: dict[str, RemoteMachine] = {}
    for host, machine in zip(hosts, at_once(connect, hosts), strict=True):
        if isinstance(machine, str):
            add_limitation(machine)
            continue
        sampled = machines.setdefault(machine.identity["machine"], machine)
        if sampled is machine:
            continue
        sampled.nodes.append(host.name)
        if machine.identity in [sampled.identity, *(view.identity for view in sampled.views)]:
            machine.stop()  # what it would see is sampled already
        else:
            sampled.views.append(machine)
    return list(machines.values())


def file_size(file: Path) -> int:
    """Bytes that *file* has so far; 0 where it does not exist."""
    return file.stat().st_size if file.exists() else 0


def _not_measured(nodes: Sequence[str], reason: str) -> str:
    """The limitation that a machine is not sampled, by the names of its *nodes*."""
    return f"speed and load of {', '.join(nodes)} are not measured: {first_line(reason)}"
