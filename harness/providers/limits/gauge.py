"""
Measures what nodes are: a small real load on each, on all of them at once (`harness.node.load`).

The network is measured between each node and the master, which is not limited.
"""

from __future__ import annotations

import math

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from harness.errors import ClusterError
from harness.providers.host import Host, from_json, printable
from harness.providers.limits.correct import Dials
from harness.records.hardware import CORES, DISK_WRITE

LIMIT_S = 180.0
_CORES_S = 2.0
_MOST_LINE = 1000


@dataclass(frozen=True, slots=True)
class Gauge:
    """
    Loads for *hosts*, master first; *command* makes the command line of `harness.node.load` on one.

    *disk* is the folder below a node's own one that lies on the disk which tasks use.
    """

    hosts: Sequence[Host]
    command: Callable[[Host], list[str]]
    disk: str = "."

    def measure(self, field: str, asked: Mapping[str, Dials]) -> dict[str, Dials]:
        """Measure the dials of *field* on all nodes of *asked*; see `Limiter.measure`."""
        if field == "cores":
            return self._together(asked, lambda _, dials: self._cores(dials))
        if field == "disk_bytes_per_s":
            return self._together(asked, partial(self._disk, "disk"))
        with self._server() as port:
            peer = [self.hosts[0].address, str(port)]
            return self._together(asked, lambda _, d: ["network", *peer, str(min(d.values()))])

    def unwaited(self, asked: Mapping[str, Dials]) -> dict[str, float]:
        """Measure the disks of all nodes of *asked*; see `Limiter.unwaited`."""
        found = self._together(asked, partial(self._disk, "buffered"))
        return {node: rates["buffered_write"] for node, rates in found.items()}

    def _cores(self, dials: Dials) -> list[str]:
        """One process more than cores: the share must be what holds them."""
        return ["cores", str(math.ceil(dials[CORES]) + 1), str(_CORES_S)]

    def _disk(self, load: str, host: Host, dials: Dials) -> list[str]:
        return [load, f"{host.folder}/{self.disk}", str(dials[DISK_WRITE])]

    def _together(
        self, asked: Mapping[str, Dials], load: Callable[[Host, Dials], list[str]]
    ) -> dict[str, Dials]:
        """Run one load on each node, all at the same time."""
        hosts = [host for host in self.hosts if host.name in asked]
        with ThreadPoolExecutor(len(hosts)) as pool:
            loads = [(host, [*self.command(host), *load(host, asked[host.name])]) for host in hosts]
            answers = pool.map(lambda of: _answer(*of), loads)
            return {host.name: answer for host, answer in zip(hosts, answers, strict=True)}

    @contextmanager
    def _server(self) -> Iterator[int]:
        """Port of the master at which nodes send and take."""
        master = self.hosts[0]
        running = master.open([*self.command(master), "serve", master.address])
        try:
            assert running.stdout is not None
            line = running.stdout.readline(_MOST_LINE)
            if not line:
                assert running.stderr is not None
                raise _failed(master, running.stderr.read(2000).decode(errors="replace"))
            yield _port(master, line)
        finally:
            running.kill()
            running.wait()
            for pipe in (running.stdin, running.stdout, running.stderr):
                if pipe is not None:
                    pipe.close()


def _port(host: Host, line: bytes) -> int:
    try:
        return int(from_json(line)["port"])
    except (ValueError, KeyError, TypeError, OverflowError):
        raise _failed(host, f"no port: {line[:100].decode(errors='replace')}") from None


def _answer(host: Host, argv: Sequence[str]) -> Dials:
    """What one load achieved."""
    done = host.run(argv, LIMIT_S)
    try:
        rates = {str(name): float(rate) for name, rate in from_json(done.out).items()}
    except (ValueError, TypeError, AttributeError):
        raise _failed(host, done.err) from None
    if not all(0 < rate < math.inf for rate in rates.values()):
        raise _failed(host, f"it measured {rates}")
    return rates


def _failed(host: Host, said: str) -> ClusterError:
    last = printable(said).strip().splitlines()[-1:] or ["no message"]
    return ClusterError(
        f"what {host.name} is cannot be measured: {last[0][:300]}",
        where=f"gauge.py on {host.name}",
        fix="the words above are those of the load that was tried",
    )
