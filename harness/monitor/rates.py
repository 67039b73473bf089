"""
Rates of a node's disk and memory, which SPN-GC asks for: measured once in a run, on a worker.

A Java class (``workloads/probe``) does it through the node's own door, in the folder in which its
daemons write: a file of 64 MiB past the page cache, and 128 MiB of memory on one core.  It takes
a second or two and no more than about twenty.
"""

from __future__ import annotations

import statistics

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.errors import MachineError
from harness.models import MODELS
from harness.providers.host import Host
from harness.records.profile import Statistic
from harness.stats.spread import standard_deviation

RATES = ("disk_read_bps", "disk_write_bps", "mem_read_bps", "mem_write_bps")
CLASS = "mapreduce.harness.probe.Rates"
_FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:-UsePerfData")
_LIMIT_S = 120.0
_MOST_BPS = 10**15


def wanted(models: Iterable[str]) -> bool:
    """Whether one of *models* asks for rates."""
    return any(not MODELS[m].required.isdisjoint(RATES) for m in models if m in MODELS)


def measure_rates(host: Host, java: str, jar: str, part: str = "") -> dict[str, Any]:
    """
    Measure on *host*, in its own folder: bytes per second of each pass, by the statistics' names.

    *part* is the folder in it that lies on the node's disk, where that is another one's.  *java*
    and *jar* are where the host has its ``java`` command and the probe's jar.
    `how` is ``direct``, or ``cached`` where the file system allows no direct reading and writing.
    `MachineError` says what the measurement said where it failed.
    """
    folder = f"{host.folder}/{part}" if part else host.folder
    argv = [java, *_FLAGS, "-cp", jar, CLASS, folder]
    done = host.run(argv, timeout=_LIMIT_S)
    found = read_rates(done.out)
    if done.status != 0 or not found:
        said = next((line for line in done.err.splitlines() if line.strip()), "no message")
        raise MachineError(
            f"the rates of {host.name} cannot be measured: {said[:200]!a}",
            where=folder,
            fix="make setup, then run it again",
        )
    return found


def read_rates(text: str) -> dict[str, Any]:
    """Read what the measurement printed; nothing where a rate is missing or is no rate."""
    rates: dict[str, list[int]] = {name: [] for name in RATES}
    how = ""
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == "how" and value in ("direct", "cached"):
            how = value
        elif f"{name}_bps" in rates and value.isascii() and value.isdigit():
            rates[f"{name}_bps"].append(int(value))
    whole = how and all(_are_rates(passes) for passes in rates.values())
    return {**rates, "how": how} if whole else {}


def rate_statistics(nodes: Any) -> dict[str, Statistic]:
    """
    Median of all passes on all *nodes*, as the manifest of a run has them (``rates``).

    What does not look like rates is left out: then they are absent, as where nothing was measured.
    """
    told = {n: v for n, v in nodes.items() if _is_whole(v)} if isinstance(nodes, Mapping) else {}
    found = {}
    for name in RATES if told else ():
        passes = [float(p) for node in told.values() for p in node[name]]
        found[name] = Statistic(
            value=statistics.median(passes),
            count=len(passes),
            spread=standard_deviation(passes),
            source=f"{_what(name, told.values())}, on {', '.join(told)}",
            nodes={node: statistics.median(values[name]) for node, values in told.items()},
        )
    return found


def _what(name: str, nodes: Iterable[Mapping[str, Any]]) -> str:
    if name.startswith("mem"):
        return "128 MiB of memory on one core"
    ways = {node["how"] for node in nodes}
    return f"a file of 64 MiB, {'direct' if ways == {'direct'} else 'through the page cache'}"


def _is_whole(node: Any) -> bool:
    if not isinstance(node, Mapping) or node.get("how") not in ("direct", "cached"):
        return False
    return all(isinstance(node.get(n), list) and _are_rates(node[n]) for n in RATES)


def _are_rates(passes: Sequence[Any]) -> bool:
    return bool(passes) and all(type(p) is int and 0 < p <= _MOST_BPS for p in passes)
