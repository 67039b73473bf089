"""
Hardware made on purpose, as it was measured: what a node was asked to be, and what it is.

A *dial* is one thing that is limited on a node, by its name: ``cores`` in cores, the others
(``disk_write``, ``disk_read``, ``network_out``, ``network_in``) in bytes per second.
"""

from __future__ import annotations

from pydantic import PositiveFloat, TypeAdapter

from harness.records.trial import Hardware, Record
from harness.units import format_bit_rate, format_rate

CORES, DISK_WRITE, DISK_READ = "cores", "disk_write", "disk_read"
NETWORK_OUT, NETWORK_IN = "network_out", "network_in"
# The dials of each limit, by its field in `Hardware`; those of one limit are measured together.
DIALS: dict[str, tuple[str, ...]] = {
    "cores": (CORES,),
    "disk_bytes_per_s": (DISK_WRITE, DISK_READ),
    "network_bytes_per_s": (NETWORK_OUT, NETWORK_IN),
    "memory_bytes": (),  # the kernel counts it: there is nothing to measure, nor to correct
}
TOLERANCE = 0.1  # what is measured may differ from what was asked by so much of it
_FELT = 1.5  # writing that is not waited for is faster by what memory takes up


class Limit(Record):
    """
    One dial of one node: what was *asked*, the *setting* that gives it, what was *measured*.

    *unwaited* is measured for writing alone: the rate at which a disk takes what nobody waits for,
    once memory has taken up the first of it; tasks and DataNodes write so.
    """

    asked: PositiveFloat
    setting: PositiveFloat
    measured: PositiveFloat
    unwaited: PositiveFloat | None = None

    @property
    def met(self) -> bool:
        """Whether what is measured is near what was asked."""
        return abs(self.measured / self.asked - 1) <= TOLERANCE

    @property
    def felt(self) -> bool:
        """Whether tasks feel it: `False` where the page cache takes all that they write."""
        return self.unwaited is None or self.unwaited <= _FELT * self.asked


class LimitedCluster(Record):
    """
    What the nodes of one start of a cluster were: an entry ``limits`` of a run's manifest.

    *cluster* is the id of its specification, *measured_s* seconds since the epoch; *nodes* maps a
    node to its dials.
    """

    cluster: str
    measured_s: float
    nodes: dict[str, dict[str, Limit]]


ENTRY = "limits"  # of the manifest: a list of limited clusters, in the order of their starts

# node -> dial -> what it was asked to be and what it is, as files hold it
LIMITS = TypeAdapter(dict[str, dict[str, Limit]])


def asked_dials(hardware: Hardware) -> dict[str, float]:
    """
    What each dial of a node is asked to be; what is not limited is left out.

    >>> asked_dials(Hardware(cores=0.5, network_bytes_per_s=10**6))
    {'cores': 0.5, 'network_out': 1000000.0, 'network_in': 1000000.0}
    """
    given = {field: value for field, value in hardware.limits().items() if value is not None}
    return {dial: float(value) for field, value in given.items() for dial in DIALS[field]}


def written(dial: str, value: float) -> str:
    """
    Value of a dial for people.

    >>> written("cores", 0.5), written("disk_read", 20 * 2**20), written("network_in", 125e6)
    ('0.5 cores', '20 MiB/s', '1 Gbit/s')
    """
    if dial == CORES:
        return f"{value:.3g} cores"
    return format_bit_rate(value) if dial.startswith("network") else format_rate(value)
