"""
Limits: settings are corrected until nodes achieve what was requested.

What the kernel is set to and what a task gets differ: headers take their part of a network's rate,
a burst adds to it, a quota loses the rest of each period.
"""

from __future__ import annotations

import math

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass

from harness.base.errors import ClusterError
from harness.base.records.trial import (
    CONTROLS,
    CORES,
    DISK_WRITE,
    ClusterSpec,
    Limit,
    format_control,
    requested_controls,
)
from harness.base.text import excerpt, read_json
from harness.clusters.host import Host, at_once, end_command

ROUNDS = 5
# Of what was requested.  Further away, it is not the setting that holds a node back but others on
# the machine, and once they are gone the node would be faster than requested.
MOST_CORRECTION = 1.25
LOAD_LIMIT_S = 180.0
_CORES_S = 2.0
_MOST_LINE = 1000

Rates = dict[str, float]  # by control: ``cores`` in cores, all others in bytes per second


def requested_by_worker(spec: ClusterSpec) -> dict[str, Rates]:
    """Rates requested of each worker that has limits."""
    workers = [f"worker{number}" for number in range(1, spec.workers + 1)]
    requested = {worker: requested_controls(spec.hardware(worker)) for worker in workers}
    return {worker: rates for worker, rates in requested.items() if rates}


def requested_names(spec: ClusterSpec) -> set[str]:
    """Names of all controls that are requested of any worker."""
    return set().union(*requested_by_worker(spec).values())


def unsupported_limits(spec: ClusterSpec, limitable: AbstractSet[str]) -> list[str]:
    """Sentences on the limits of *spec* that are not among the fields its provider can set."""
    refused = []
    for field in CONTROLS.keys() - limitable:
        limit = field.partition("_")[0]
        on_all_nodes = spec.node.limits()[field] is not None
        on_single_nodes = any(
            hardware.limits()[field] is not None for hardware in spec.nodes.values()
        )
        if on_all_nodes or on_single_nodes:
            key = f"cluster.node.{limit}" if on_all_nodes else "cluster.nodes"
            refused.append(f"{key}: provider {spec.provider} cannot limit the {limit} of its nodes")
    return sorted(refused)


def adjust(
    requested: Mapping[str, Rates],
    apply: Callable[[Mapping[str, Rates]], None],
    load: NodeLoad,
    *,
    where: str,
) -> dict[str, dict[str, Limit]]:
    """
    Set limits by *apply* and correct them until *load* measures what is *requested* of each node.

    `ClusterError` names the nodes that cannot be made so, with the best that was measured.
    """
    adjusted: dict[str, dict[str, Limit]] = {worker: {} for worker in requested}
    for field, controls in CONTROLS.items():
        field_rates = _rates_of(controls, requested)
        if field_rates:
            for worker, limits in _adjust_field(field, field_rates, apply, load, where).items():
                adjusted[worker] |= limits
    disk_rates = _rates_of([DISK_WRITE], requested)
    if disk_rates:
        for worker, buffered in load.measure_buffered(disk_rates).items():
            limit = adjusted[worker][DISK_WRITE]
            adjusted[worker][DISK_WRITE] = limit.model_copy(update={"buffered_write": buffered})
    return adjusted


def _rates_of(controls: Sequence[str], requested: Mapping[str, Rates]) -> dict[str, Rates]:
    """The rates of these *controls* alone, of each worker that has any of them."""
    chosen = {}
    for worker, rates in requested.items():
        chosen_rates = {control: rates[control] for control in controls if control in rates}
        if chosen_rates:
            chosen[worker] = chosen_rates
    return chosen


def _adjust_field(
    field: str,
    requested: Mapping[str, Rates],
    apply: Callable[[Mapping[str, Rates]], None],
    load: NodeLoad,
    where: str,
) -> dict[str, dict[str, Limit]]:
    """Calibrate the limits of one *field*, on all nodes together."""
    settings = {worker: dict(rates) for worker, rates in requested.items()}
    rounds: list[dict[str, dict[str, Limit]]] = []
    for _ in range(ROUNDS):
        apply(settings)
        limits = _compare(requested, settings, load.measure(field, requested))
        corrections = 0
        for worker, worker_limits in limits.items():
            for control, limit in worker_limits.items():
                if not limit.is_met:
                    settings[worker][control] = _corrected_setting(limit)
                    corrections += 1
        if not corrections:
            return limits
        rounds.append(limits)
    missed = _missed_limits(rounds)
    raise ClusterError(
        "nodes do not achieve their limits: "
        + ("; ".join(missed) or "measurements vary too much from one to the next"),
        where=f"{where}, {len(rounds)} settings tried",
        fix="request less in cluster.node, start fewer workers, or wait for a quiet machine",
    )


def _compare(
    requested: Mapping[str, Rates], settings: Mapping[str, Rates], measured: Mapping[str, Rates]
) -> dict[str, dict[str, Limit]]:
    """What was requested, set and measured of each control, by worker."""
    limits = {}
    for worker, rates in requested.items():
        limits[worker] = {
            control: Limit(
                requested=rate,
                setting=settings[worker][control],
                measured=measured[worker][control],
            )
            for control, rate in rates.items()
        }
    return limits


def _corrected_setting(limit: Limit) -> float:
    """The next setting, in proportion to what the last one achieved, within `MOST_CORRECTION`."""
    corrected = limit.setting * limit.requested / limit.measured
    lowest = limit.requested / MOST_CORRECTION
    highest = limit.requested * MOST_CORRECTION
    return min(highest, max(lowest, corrected))


def _missed_limits(rounds: Sequence[Mapping[str, Mapping[str, Limit]]]) -> list[str]:
    """A phrase on each control that was met in no round, with the nearest that was measured."""
    missed = []
    for worker, controls in rounds[-1].items():
        for control in controls:
            tried = [limits[worker][control] for limits in rounds]
            best = min(tried, key=lambda limit: abs(limit.measured / limit.requested - 1))
            if not best.is_met:
                missed.append(
                    f"{worker}, {control}: {format_control(control, best.requested)} requested,"
                    f" {format_control(control, best.measured)} measured at best"
                )
    return missed


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """
    Loads for *hosts*, master first; *command* makes the command line of the load on one of them.

    *disk* is the folder below a node's own one that lies on the disk which tasks use.
    """

    hosts: Sequence[Host]
    command: Callable[[Host], list[str]]
    disk: str = "."

    def measure(self, field: str, requested: Mapping[str, Rates]) -> dict[str, Rates]:
        """Measure the limits of one *field* of `Hardware` on all nodes of *requested* at once."""
        if field == "cores":
            # One process more than cores, so that it is the share that holds them.
            return self._run_on_all(
                requested,
                lambda _, rates: ["cores", str(math.ceil(rates[CORES]) + 1), str(_CORES_S)],
            )
        if field == "disk_bytes_per_s":
            return self._run_on_disks("disk", requested)
        with self._serve() as port:  # on the master, which is not limited
            master = [self.hosts[0].address, str(port)]
            return self._run_on_all(
                requested, lambda _, rates: ["network", *master, str(min(rates.values()))]
            )

    def measure_buffered(self, requested: Mapping[str, Rates]) -> dict[str, float]:
        """Measure the rate at which each node's disk takes what no writer waits for."""
        measured = self._run_on_disks("buffered", requested)
        return {worker: rates["buffered_write"] for worker, rates in measured.items()}

    def _run_on_disks(self, load_verb: str, requested: Mapping[str, Rates]) -> dict[str, Rates]:
        return self._run_on_all(
            requested,
            lambda host, rates: [load_verb, f"{host.folder}/{self.disk}", str(rates[DISK_WRITE])],
        )

    def _run_on_all(
        self, requested: Mapping[str, Rates], arguments: Callable[[Host, Rates], list[str]]
    ) -> dict[str, Rates]:
        """Run one load on each node at the same time; what each achieved."""

        def run(host: Host) -> Rates:
            argv = [*self.command(host), *arguments(host, requested[host.name])]
            completed = host.run(argv, LOAD_LIMIT_S)
            try:
                rates = {name: float(rate) for name, rate in read_json(completed.out).items()}
            except (ValueError, TypeError, AttributeError):
                raise _load_error(host, completed.err) from None
            if not all(0 < rate < math.inf for rate in rates.values()):
                raise _load_error(host, f"it measured {rates}")
            return rates

        hosts = [host for host in self.hosts if host.name in requested]
        measured = at_once(run, hosts, most_threads=len(hosts))
        return dict(zip([host.name for host in hosts], measured, strict=True))

    @contextmanager
    def _serve(self) -> Iterator[int]:
        """Port of the master to which nodes send and from which they take."""
        master = self.hosts[0]
        server = master.open([*self.command(master), "serve", master.address])
        assert server.stdout is not None
        assert server.stderr is not None
        try:
            line = server.stdout.readline(_MOST_LINE)
            if not line:
                raise _load_error(master, server.stderr.read(2000).decode(errors="replace"))
            try:
                port = int(read_json(line)["port"])
            except (ValueError, KeyError, TypeError, OverflowError):
                raise _load_error(master, f"no port: {excerpt(line)}") from None
            yield port
        finally:
            end_command(server)


def _load_error(host: Host, reported: str) -> ClusterError:
    last_line = reported.strip().splitlines()[-1:] or ["no message"]
    return ClusterError(
        f"what {host.name} achieves cannot be measured: {excerpt(last_line[0], 300)}",
        where=f"node load on {host.name}",
        fix="the message above comes from the load that was run",
    )
