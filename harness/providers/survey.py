"""
What the hosts of a cluster tell of themselves, asked all at once through their doors.

Clocks are compared as NTP does it: each host is asked for its time a few times, the quickest answer
counts, and half of what it took is how far the offset may be off.
"""

from __future__ import annotations

import math
import threading
import time

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import IO, Any

from harness.errors import HarnessError
from harness.providers.base import Cluster
from harness.providers.gpus import find_on
from harness.providers.host import Host, from_json, printable

LIMIT_S = 30.0
_ROUNDS = 5
_MOST_LINE = 65536
_MOST_HOSTS = 32


@dataclass(frozen=True, slots=True)
class HostFacts:
    """
    One host, as it was found.

    *clock_s* is how far its clock is ahead of ours, *clock_within_s* how far that may be off, both
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


def survey(cluster: Cluster) -> list[HostFacts]:
    """Ask all hosts of *cluster*; one that does not answer within `LIMIT_S` has its error."""
    hosts = cluster.hosts
    with ThreadPoolExecutor(min(len(hosts), _MOST_HOSTS)) as pool:
        return list(pool.map(lambda host: _asked(cluster, host), hosts))


def _asked(cluster: Cluster, host: Host) -> HostFacts:
    empty = HostFacts(host.name, host.address)
    try:
        argv = cluster.agent(host, "facts", "survey", host.folder, cluster.java_on(host))
        found = _talk(empty, host, argv)
        devices = find_on(host)  # of one that answers: it bounds what it says, and when
        return replace(found, gpus=devices.described()) if devices.gpus else found
    except (HarnessError, OSError, ValueError, TypeError, OverflowError) as error:
        return replace(empty, error=printable(str(error)).partition("\n")[0][:200])


def _talk(empty: HostFacts, host: Host, argv: Sequence[str]) -> HostFacts:
    process = host.open(argv)
    # whatever it waits for, it ends then, and with it our reading
    watch = threading.Timer(LIMIT_S, process.kill)
    watch.start()
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        offset, within = min(
            (_clock(process.stdin, process.stdout) for _ in range(_ROUNDS)), key=lambda one: one[1]
        )
        facts = from_json(_answer(process.stdin, process.stdout, b"facts"))
    finally:
        watch.cancel()
        process.kill()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):  # what was still to be said has no hearer any more
                    pipe.close()
        process.wait()
    return replace(empty, clock_s=offset, clock_within_s=within, **_checked(facts))


def _clock(question: IO[bytes], answer: IO[bytes]) -> tuple[float, float]:
    before, began = time.time(), time.monotonic()
    there = float(_answer(question, answer, b"time"))
    took = time.monotonic() - began
    if not math.isfinite(there):
        raise ValueError("its clock tells no time")
    return there - (before + took / 2), took / 2


def _answer(question: IO[bytes], answer: IO[bytes], word: bytes) -> bytes:
    question.write(word + b"\n")
    question.flush()
    line = answer.readline(_MOST_LINE)
    if not line.endswith(b"\n"):
        raise ValueError(f"no answer within {LIMIT_S:g} s, or no Python there")
    return line


def _checked(facts: Any) -> dict[str, Any]:
    """Facts of their types, texts short and printable; `ValueError` for anything else."""
    if not isinstance(facts, dict):
        raise TypeError("its answer is no object")
    numbers = {name: int(facts[name]) for name in _WHOLE if name in facts}
    texts = {n: printable(str(facts.get(n, "")))[:60] for n in ("kernel", "python", "java")}
    load = float(facts.get("load", 0.0))
    return {**numbers, **texts, "load": load if math.isfinite(load) else 0.0}


_WHOLE = ("cores", "memory_bytes", "disk_bytes", "disk_free_bytes")
