"""
Facts that the hosts of a cluster report, all at once: clocks, resources, versions, GPUs.

Clocks are compared as NTP does it: each host reports its time a few times, the quickest answer
counts, and half of its round trip bounds the error of the offset.
"""

from __future__ import annotations

import math
import threading
import time

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import IO, Any, Protocol

from harness.errors import ClusterError, HarnessError
from harness.providers.gpus import find_on
from harness.providers.host import Host, end_command, from_json
from harness.text import excerpt

LIMIT_S = 30.0
_ROUNDS = 5
_MOST_LINE = 65536
_MOST_HOSTS = 32
_MOST_VERSION, _MOST_ERROR = 80, 200
_WHOLE_NUMBERS = ("cores", "memory_bytes", "disk_bytes", "disk_free_bytes")


@dataclass(frozen=True, slots=True)
class HostFacts:
    """
    One host, as it reports itself.

    *clock_s* is how far its clock is ahead of ours, *clock_within_s* the bound of its error, both
    in seconds.  Sizes are bytes.  *error* says why there is nothing else, where there is not.
    """

    name: str
    address: str
    clock_s: float | None = None
    clock_within_s: float | None = None
    cores: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0
    disk_free_bytes: int = 0
    load: float = 0.0
    kernel: str = ""
    python: str = ""
    java: str = ""
    gpus: dict[str, Any] = field(default_factory=dict)
    error: str = ""


class Surveyed(Protocol):
    """What a survey needs of a cluster."""

    @property
    def hosts(self) -> Sequence[Host]:
        """The nodes."""

    def agent(self, host: Host, verb: str, *arguments: str) -> list[str]:
        """Command line that runs one verb of the node agent on *host*."""

    def java_on(self, host: Host) -> str:
        """The ``java`` command of *host*."""


def survey(cluster: Surveyed) -> list[HostFacts]:
    """Facts of all hosts of *cluster*; one that does not answer within `LIMIT_S` has its error."""

    def survey_host(host: Host) -> HostFacts:
        empty = HostFacts(host.name, host.address)
        try:
            survey_argv = cluster.agent(host, "facts", "survey", host.folder, cluster.java_on(host))
            host_facts = _survey(empty, host, survey_argv)
            devices = find_on(host)  # only of one that answers: so its time is bounded
            return replace(host_facts, gpus=devices.described()) if devices.gpus else host_facts
        except (HarnessError, OSError, ValueError, TypeError, OverflowError) as error:
            return replace(empty, error=excerpt(str(error).partition("\n")[0], _MOST_ERROR))

    with ThreadPoolExecutor(min(len(cluster.hosts), _MOST_HOSTS)) as pool:
        return list(pool.map(survey_host, cluster.hosts))


def _survey(empty: HostFacts, host: Host, argv: Sequence[str]) -> HostFacts:
    process = host.open(argv)
    # when it is killed, our reading ends as well
    watchdog = threading.Timer(LIMIT_S, process.kill)
    watchdog.start()
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout
        offset, within = min(
            (_clock_offset(stdin, stdout) for _ in range(_ROUNDS)), key=lambda pair: pair[1]
        )
        host_facts = from_json(_request(stdin, stdout, b"facts"))
    finally:
        watchdog.cancel()
        end_command(process)
    if not isinstance(host_facts, dict):
        raise TypeError("its answer is not an object")
    checked: dict[str, Any] = {name: int(host_facts.get(name, 0)) for name in _WHOLE_NUMBERS}
    checked |= {
        name: excerpt(host_facts.get(name, ""), 60) for name in ("kernel", "python", "java")
    }
    load = float(host_facts.get("load", 0.0))
    return replace(
        empty, clock_s=offset, clock_within_s=within, load=load if math.isfinite(load) else 0.0,
        **checked,
    )  # fmt: skip


def _clock_offset(stdin: IO[bytes], stdout: IO[bytes]) -> tuple[float, float]:
    """Seconds by which the host's clock is ahead of ours, and the bound of that."""
    before, started = time.time(), time.monotonic()
    host_time = float(_request(stdin, stdout, b"time"))
    round_trip = time.monotonic() - started
    if not math.isfinite(host_time):
        raise ValueError("its clock reports no time")
    return host_time - (before + round_trip / 2), round_trip / 2


def _request(stdin: IO[bytes], stdout: IO[bytes], word: bytes) -> bytes:
    stdin.write(word + b"\n")
    stdin.flush()
    answer_line = stdout.readline(_MOST_LINE)
    if not answer_line.endswith(b"\n"):
        raise ValueError(f"no answer within {LIMIT_S:g} s, or no Python there")
    return answer_line


@dataclass(frozen=True, slots=True)
class RanOn:
    """Versions of Hadoop, Java and the kernel on one node; empty where it reports none."""

    hadoop: str
    java: str
    kernel: str


def node_versions(
    hosts: Sequence[Host], command: Callable[[Host], list[str]], hadoop: str
) -> Mapping[str, RanOn]:
    """
    Versions on *hosts*, by their names; *command* makes the command line of ``facts versions``.

    A host that does not answer has empty texts: its health is checked elsewhere.
    """

    def versions_of(host: Host) -> RanOn:
        try:
            answer = from_json(host.run(command(host)).out)
        except (ClusterError, OSError, ValueError):
            answer = None
        stated = answer if isinstance(answer, dict) else {}
        return RanOn(hadoop, version_text(stated.get("java")), version_text(stated.get("kernel")))

    if not hosts:
        return {}
    with ThreadPoolExecutor(min(len(hosts), _MOST_HOSTS)) as pool:
        names = [host.name for host in hosts]
        return dict(zip(names, pool.map(versions_of, hosts), strict=True))


def version_text(value: object) -> str:
    """A version that a host reports, short and safe to print; empty where it is not a text."""
    return excerpt(value, _MOST_VERSION) if isinstance(value, str) else ""
