"""
Speed and load of the machines that do the work of a cluster, sampled while its trials run.

Where all nodes are on this machine it is sampled from here, outside of the nodes and their limits.
Where they have doors, each machine is sampled through one (`harness.monitor.nodes`).  A cluster
whose nodes have no door has no samples, and its times stand as measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from harness.monitor.machine import MachineSampler, disturbed
from harness.monitor.nodes import Machine, WatchedCluster, greet_all, unmeasured
from harness.monitor.probe import SpeedProbe
from harness.monitor.samples import MACHINE_LOG, PROBE_LOG, named_after, slice_file
from harness.parsing.samples import read_machine
from harness.providers.host import Host

Say = Callable[[str], None]


class Watching(Protocol):
    """Machines that are sampled."""

    @property
    def told(self) -> dict[str, dict[str, Any]]:
        """Nodes and cores of each machine, by the name that its samples bear; this one has none."""
        ...

    def during(self, raw: Path) -> AbstractContextManager[None]:
        """Sample them while a block runs; its samples are files in the folder *raw* then."""
        ...

    def disturbed(self, raw: Path) -> str:
        """By which rule the trial with samples in *raw* was disturbed; nothing: it was not."""
        ...


class SampledCluster(WatchedCluster, Protocol):
    """What sampling the machines of a cluster asks of it."""

    @property
    def watched(self) -> Sequence[Host] | None:
        """Hosts, master first, whose machines are watched; `None`: they are on this machine."""
        ...


@contextmanager
def watching(cluster: SampledCluster, scratch: Path, say: Say, lack: Say) -> Iterator[Watching]:
    """
    Watch the machines of *cluster* during a ``with`` block, with files in the folder *scratch*.

    *say* hears what happens to the watching, *lack* what cannot be watched at all.
    """
    hosts = cluster.watched
    with ExitStack() as stack:
        if hosts is None:
            yield Here(scratch / PROBE_LOG, say, stack)
        else:
            machines = greet_all(cluster, hosts, scratch, lack)
            for machine in machines:
                stack.callback(machine.end)
            master = next((host.name for host in hosts), "")
            yield Nodes(list(_begun(machines, master, lack)), say)


class Here:
    """This machine, on which all nodes are."""

    def __init__(self, log: Path, say: Say, stack: ExitStack) -> None:
        """Have the speed probe run until *stack* is closed, its samples in *log*."""
        self._log, self._say, self._stack = log, say, stack
        self._probe = stack.enter_context(SpeedProbe(log=log))

    @property
    def told(self) -> dict[str, dict[str, Any]]:
        """Nothing: the manifest describes this machine."""
        return {}

    @contextmanager
    def during(self, raw: Path) -> Iterator[None]:
        """Sample while a block runs."""
        if self._probe.pid is None:  # something has ended it: no trial is without
            self._say("the speed probe has ended: starting it again")
            self._probe = self._stack.enter_context(SpeedProbe(log=self._log))
        at = _size(self._log)
        with MachineSampler(raw / MACHINE_LOG):
            yield
        slice_file(self._log, at, raw / PROBE_LOG)

    def disturbed(self, raw: Path) -> str:
        """By which rule it was disturbed."""
        return _disturbed(raw / MACHINE_LOG)


class Nodes:
    """The machines of nodes with doors."""

    def __init__(self, machines: Sequence[Machine], say: Say) -> None:
        """Of *machines* that are watched."""
        self.machines, self._say = machines, say

    @property
    def told(self) -> dict[str, dict[str, Any]]:
        """Of each machine its nodes, and its cores."""
        return {m.door.name: {"nodes": m.nodes, "cores": m.cores} for m in self.machines}

    @contextmanager
    def during(self, raw: Path) -> Iterator[None]:
        """Sample while a block runs."""
        for machine in self.machines:
            if machine.failure:
                node, why = machine.door.name, machine.failure
                self._say(f"the watching of {node} has ended ({why}): starting it again")
                machine.again()
        marks = [(m, _size(m.speed), _size(m.load)) for m in self.machines]
        yield
        for machine, speed, load in marks:
            node = machine.door.name
            slice_file(machine.load, load, raw / named_after(MACHINE_LOG, node))
            if machine.probed:
                slice_file(machine.speed, speed, raw / named_after(PROBE_LOG, node))

    def disturbed(self, raw: Path) -> str:
        """By which rule each was disturbed."""
        marks = {
            m.door.name: _disturbed(raw / named_after(MACHINE_LOG, m.door.name), m.cores)
            for m in self.machines
        }
        return "; ".join(f"{node}: {mark}" for node, mark in marks.items() if mark)


def _begun(machines: Sequence[Machine], master: str, lack: Say) -> Iterator[Machine]:
    """Those of *machines* that tell samples; all probes start at once."""
    for machine in machines:
        machine.begin(speed=machine.nodes != [master])  # a master runs no tasks
    for machine in machines:
        machine.await_warm()
        if machine.failure:
            lack(unmeasured(machine.nodes, machine.failure))
        else:
            yield machine


def _disturbed(log: Path, cores: int | None = None) -> str:
    with log.open("rb") as lines:
        return disturbed(list(read_machine(lines, log.name)), cores)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
