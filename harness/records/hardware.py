"""
Hardware that was limited on purpose: what a node was to have, and what it has as it was measured.

A *control* is one rate by which a node is limited, by its name: ``cores`` in cores, the others
(``disk_write``, ``disk_read``, ``network_out``, ``network_in``) in bytes per second.
"""

from __future__ import annotations

from pydantic import PositiveFloat, TypeAdapter

from harness.records.trial import Hardware, Record
from harness.units import format_bit_rate, format_rate

CORES, DISK_WRITE, DISK_READ = "cores", "disk_write", "disk_read"
NETWORK_OUT, NETWORK_IN = "network_out", "network_in"
# The controls of each field of `Hardware`; those of one field are measured together.
CONTROLS: dict[str, tuple[str, ...]] = {
    "cores": (CORES,),
    "disk_bytes_per_s": (DISK_WRITE, DISK_READ),
    "network_bytes_per_s": (NETWORK_OUT, NETWORK_IN),
    "memory_bytes": (),  # the kernel counts it: there is nothing to measure, nor to calibrate
}
TOLERANCE = 0.1  # relative difference between what was requested and what is measured
# Where buffered writes are faster by more than this, the page cache takes them up.
_BUFFERED_TOLERANCE = 1.5


class Limit(Record):
    """
    One control of one node: what was *requested*, the *setting* that gives it, what was *measured*.

    *buffered_write* is measured for writing alone: the rate at which a disk takes writes that are
    not synced, once memory has taken up the first of them; tasks and DataNodes write so.
    """

    requested: PositiveFloat
    setting: PositiveFloat
    measured: PositiveFloat
    buffered_write: PositiveFloat | None = None

    @property
    def is_met(self) -> bool:
        """Whether what is measured is near what was requested."""
        return abs(self.measured / self.requested - 1) <= TOLERANCE

    @property
    def is_enforced(self) -> bool:
        """Whether tasks are limited by it: not where the page cache takes all that they write."""
        most = _BUFFERED_TOLERANCE * self.requested
        return self.buffered_write is None or self.buffered_write <= most


class LimitedCluster(Record):
    """
    What the nodes of one start of a cluster were.

    *cluster* is the id of its specification, *measured_s* seconds since the epoch; *nodes* maps a
    node to the limits of its controls.
    """

    cluster: str
    measured_s: float
    nodes: dict[str, dict[str, Limit]]


ENTRY = "limits"  # of the manifest
# node -> control -> its limit, as files hold it
LIMITS = TypeAdapter(dict[str, dict[str, Limit]])


def requested_controls(hardware: Hardware) -> dict[str, float]:
    """
    What each control of a node is requested to be; what is not limited is left out.

    >>> requested_controls(Hardware(cores=0.5, network_bytes_per_s=10**6))
    {'cores': 0.5, 'network_out': 1000000.0, 'network_in': 1000000.0}
    """
    given = {field: value for field, value in hardware.limits().items() if value is not None}
    return {control: float(rate) for field, rate in given.items() for control in CONTROLS[field]}


def format_control(control: str, rate: float) -> str:
    """
    Rate of a control for people.

    >>> format_control("cores", 0.5), format_control("disk_read", 20 * 2**20)
    ('0.5 cores', '20 MiB/s')
    """
    if control == CORES:
        return f"{rate:.3g} cores"
    return format_bit_rate(rate) if control.startswith("network") else format_rate(rate)
