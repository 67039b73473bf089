"""``harness cluster``: a cluster by hand."""

from __future__ import annotations

import json

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli import completion
from harness.cli.console import clean, table
from harness.cli.experiment import session

if TYPE_CHECKING:
    from harness.providers.base import Cluster
    from harness.records.trial import ClusterSpec

_NAME = click.option(
    "--name",
    help="Name of the cluster; without it, the one that is up.",
    shell_complete=completion.clusters,
)

_MOST_NODES, _MOST_TEXT, _MOST_COUNT = 1000, 200, 2**53  # of what a ResourceManager tells


@click.group("cluster")
def command() -> None:
    """
    Start, look at and stop a cluster by hand.

    \b
    Example:
        harness cluster up --workers 2
        harness cluster status
        harness cluster down
    """


@command.command("up")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--provider",
    help="What makes the cluster (harness list providers).",
    shell_complete=completion.providers,
)
@click.option("--workers", type=click.IntRange(1, 200), help="Number of worker nodes.")
@click.option("--name", default="default", show_default=True, help="Name of the cluster.")
def up(file: Path | None, provider: str | None, workers: int | None, name: str) -> None:
    """
    Start a cluster, that of the experiment FILE when one is given.

    \b
    Example:
        harness cluster up --workers 2
        harness cluster up experiments/demo.yaml
    """
    from harness.hadoop_home.home import HadoopHome
    from harness.providers import PROVIDERS

    spec = _spec(file, provider, workers)
    _require_known(spec.provider, list(PROVIDERS))
    cluster = PROVIDERS[spec.provider](name, spec, HadoopHome.find())
    click.echo(f"starting cluster {name!r}: {spec.workers} workers", err=True)
    cluster.up()
    for loss in cluster.limitations:
        click.echo(clean(f"warning: {loss}"), err=True)
    for service, address in cluster.endpoints.items():
        click.echo(f"{service:<16} {address}")
    click.echo(
        f"\nask one:     {_asking(cluster)}"
        f"\nlook at it:  harness cluster status --name {name}"
        f"\nits logs:    harness cluster logs --name {name}"
        f"\nstop it:     harness cluster down --name {name}",
        err=True,
    )


@command.command("status")
@_NAME
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def status(name: str | None, as_json: bool) -> None:
    """
    Nodes, daemons, slots, disks, GPUs, clocks and versions of a cluster.

    A clock is told as seconds ahead of this machine's, with how far that may be off.

    \b
    Example:
        harness cluster status --json
    """
    cluster = _attach(name)
    facts = _facts(cluster)
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    click.echo(_heading(cluster, facts))
    for daemon in facts["daemons"]:
        click.echo(f"  {daemon['name']:<28} {_state(daemon)}")
    for service, address in facts["endpoints"].items():
        click.echo(clean(f"  {service:<28} {address}"))
    _show_hosts(facts["hosts"])
    for host in facts["hosts"]:
        _show_gpus(host)
    _show_nodes(facts["nodes"])
    for line in _limits(cluster):
        click.echo(line)
    for loss in facts["losses"]:
        click.echo(clean(f"  note: {loss}"))


@command.command("logs")
@click.argument("daemon", required=False, shell_complete=completion.daemons)
@_NAME
@click.option("--lines", type=click.IntRange(1, 100_000), default=20, show_default=True)
def logs(daemon: str | None, name: str | None, lines: int) -> None:
    """
    The last lines of the daemons' logs; DAEMON is part of a name, as `status` shows it.

    \b
    Example:
        harness cluster logs "datanode on worker1"
        harness cluster logs namenode --lines 200
    """
    from harness.errors import SpecError

    cluster = _attach(name)
    wanted = {k: v for k, v in cluster.daemon_logs(lines).items() if (daemon or "") in k}
    if not wanted:
        raise SpecError(
            f"no daemon is called {daemon!r}",
            where=f"cluster {cluster.name!r}",
            fix=_choice(daemon or "", {k.partition(" ")[0] for k in cluster.daemon_logs(1)}),
        )
    for title, text in wanted.items():
        click.echo(f"==> {title} <==\n{text}\n")


@command.command("down")
@_NAME
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="All clusters of this user, those of running experiments among them.",
)
def down(name: str | None, everything: bool) -> None:
    """
    Stop a cluster and remove all of it; one that is down already is fine.

    \b
    Example:
        harness cluster down
        harness cluster down --all
    """
    from harness import providers
    from harness.errors import HarnessError

    known, failed = providers.names(), list[HarnessError]()
    names = known if everything else [name or _only(known)]
    for each in names or [""]:
        try:
            there = bool(each) and providers.remove(each)
        except HarnessError as error:  # a host or an engine is away: the others can still go
            failed.append(error)
            continue
        nothing = f"no cluster {each!r} is up" if each else "no cluster is up"
        others = f"; there are: {', '.join(known)}" if known and not there else ""
        click.echo(f"cluster {each!r} is down" if there else nothing + others, err=True)
    for one in failed[:-1]:
        click.echo(f"error: {one}", err=True)
    if failed:
        raise failed[-1]


def _spec(file: Path | None, provider: str | None, workers: int | None) -> ClusterSpec:
    """The cluster that FILE describes, the first where it describes several; options win."""
    from harness.records.trial import ClusterSpec, NodeSpec

    fields: dict[str, Any] = {}
    if file is not None:
        axes = session(file, Path(), ()).experiment.cluster
        node = NodeSpec(
            map_slots=axes.node.map_slots[0],
            reduce_slots=axes.node.reduce_slots[0],
            task_memory_bytes=axes.node.task_memory_bytes[0],
            gpus=axes.node.gpus[0],
            cores=axes.node.cores[0],
            disk_bytes_per_s=axes.node.disk_bytes_per_s[0],
            network_bytes_per_s=axes.node.network_bytes_per_s[0],
            memory_bytes=axes.node.memory_bytes[0],
        )
        site = {key: values[0] for key, values in axes.site.items()}
        fields = {
            "provider": axes.provider, "workers": axes.workers[0], "node": node, "site": site,
            "nodes": axes.nodes,
            "hosts": axes.hosts, "ssh": axes.ssh,
        }  # fmt: skip
    given = {"provider": provider, "workers": workers}
    return ClusterSpec(**fields | {k: v for k, v in given.items() if v is not None})


def _asking(cluster: Cluster) -> str:
    """Command that asks a web service of *cluster*, for people."""
    url = f"{cluster.endpoints['resourcemanager']}/cluster"
    if not cluster.exec_prefix:
        return f"curl {url}"
    return f"{cluster.exec_prefix} curl {url}  (addresses hold in the cluster's own network)"


def _require_known(provider: str, known: list[str]) -> None:
    from harness.errors import SpecError

    if provider not in known:
        raise SpecError(
            f"no provider is called {provider!r}",
            where="--provider, or cluster.provider in the file",
            fix=_choice(provider, known),
        )


def _choice(name: str, known: Collection[str]) -> str:
    """Fix for an unknown *name*: the nearest known one, or all of them."""
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"choose one of: {', '.join(sorted(known))}"


def _attach(name: str | None) -> Cluster:
    from harness import providers
    from harness.errors import ClusterError

    known = providers.names()
    cluster = providers.attach(name or _only(known) or "default")
    others = [other for other in known if other != cluster.name]
    if not cluster.is_up():
        raise ClusterError(
            f"no cluster {cluster.name!r} is up",
            where=str(cluster.folder),
            fix=_choice(cluster.name, others)
            if others
            else f"harness cluster up --name {cluster.name}",
        )
    return cluster


def _only(names: list[str]) -> str:
    """The one name that there is, empty when there is none."""
    from harness.errors import SpecError

    if len(names) > 1:
        raise SpecError(
            f"several clusters are known: {', '.join(names)}",
            where="harness cluster",
            fix=f"say which: --name {names[0]}",
        )
    return names[0] if names else ""


def _heading(cluster: Cluster, facts: dict[str, Any]) -> str:
    node, workers = cluster.spec.node, facts["workers"]
    slots = f"{node.map_slots} map and {node.reduce_slots} reduce slots each"
    version = f", Hadoop {facts['hadoop']}" if facts["hadoop"] else ""
    return f"cluster {cluster.name!r}, {facts['provider']}, {workers} workers, {slots}{version}"


def _show_hosts(hosts: list[dict[str, Any]]) -> None:
    from harness.units import format_bytes

    columns = ["host", "address", "clock, s", "cores", "memory", "disk free", "java", "kernel"]
    rows = [
        (
            h["name"], h["address"], f"{h['clock_s']:+.3f} \u00b1 {h['clock_within_s']:.3f}",
            h["cores"], format_bytes(h["memory_bytes"]),
            f"{format_bytes(h['disk_free_bytes'])} of {format_bytes(h['disk_bytes'])}",
            h["java"], h["kernel"],
        )
        for h in hosts
        if not h["error"]
    ]  # fmt: skip
    if rows:
        table(columns, rows)
    for h in hosts:
        if h["error"]:
            click.echo(clean(f"  {h['name']:<28} {h['error']}"))


def _show_gpus(host: dict[str, Any]) -> None:
    """The GPUs that a host has; nodes on one machine see the same ones."""
    found = host["gpus"]
    for gpu in found.get("devices", ()):
        title = f"GPU of {host['name']}"
        click.echo(clean(f"  {title:<28} {_gpu(gpu)}"))
    if found.get("message"):
        click.echo(clean(f"  note: nvidia-smi on {host['name']}: {found['message']}"))


def _gpu(gpu: dict[str, Any]) -> str:
    from harness.units import format_bytes

    told = [gpu["name"]]
    if "memory_bytes" in gpu:
        told.append(format_bytes(gpu["memory_bytes"]))
    if "driver" in gpu:
        told.append(f"driver {gpu['driver']}")
    if "pcie_generation_max" in gpu and "pcie_width_max" in gpu:
        told.append(f"PCIe {gpu['pcie_generation_max']} x{gpu['pcie_width_max']}")
    if links := gpu.get("nvlink_gb_per_s"):
        told.append(f"{len(links)} NVLinks, {sum(links):g} GB/s")
    return ", ".join(told)


def _show_nodes(nodes: list[dict[str, Any]]) -> None:
    columns = ["YARN node", "state", "containers", "memory used, MiB", "of", "Hadoop"]
    rows = [
        (n["id"], n["state"], n["containers"], n["used_mb"], n["memory_mb"], n["version"])
        for n in nodes
    ]
    if rows:
        table(columns, rows)


def _nodes(cluster: Cluster) -> list[dict[str, Any]]:
    """What the ResourceManager says of its nodes; nothing where it does not answer."""
    from harness.errors import ClusterError
    from harness.providers.existing.rest import elements

    try:
        answer = cluster.http_json("/ws/v1/cluster/nodes")
    except (ClusterError, ValueError):
        return []
    return [
        {
            "id": _short(n.get("id")), "state": _short(n.get("state")),
            "containers": _count(n.get("numContainers")), "used_mb": _count(n.get("usedMemoryMB")),
            "memory_mb": _count(n.get("usedMemoryMB")) + _count(n.get("availMemoryMB")),
            "version": _short(n.get("version")),
        }
        for n in elements(answer, "nodes", "node")[:_MOST_NODES]
    ]  # fmt: skip


def _short(value: object) -> str:
    """Text of somebody else's, as much of it as a table holds."""
    return clean(str(value))[:_MOST_TEXT]


def _count(value: object) -> int:
    """Somebody else's number, 0 where it is none."""
    return value if type(value) is int and 0 <= value < _MOST_COUNT else 0


def _facts(cluster: Cluster) -> dict[str, Any]:
    from dataclasses import asdict

    from harness.providers.survey import survey

    nodes = _nodes(cluster)
    pids, dead, silent = cluster.daemon_pids(), cluster.dead_daemons(), _silent(cluster)
    return {
        "schema_version": 1,
        "name": cluster.name,
        "provider": cluster.provider,
        "workers": cluster.spec.workers,
        "daemons": [
            {
                "name": daemon,
                "running": daemon not in dead,
                "answers": daemon not in silent,
                "pid": pids.get(daemon),
            }
            for daemon in cluster.daemon_logs(1)
        ],
        "endpoints": cluster.endpoints,
        "hadoop": ", ".join(sorted({n["version"] for n in nodes})),
        "hosts": [asdict(host) for host in survey(cluster)],
        "nodes": nodes,
        "losses": list(cluster.limitations),
        "limits": {
            node: {dial: limit.model_dump(exclude_none=True) for dial, limit in dials.items()}
            for node, dials in cluster.limits.items()
        },
        "folder": str(cluster.folder),
    }


def _silent(cluster: Cluster) -> list[str]:
    """Daemons that do not answer, or that the masters have given up; nobody where none can ask."""
    from harness.errors import ClusterError

    try:
        return cluster.missing_daemons()
    except ClusterError:
        return []


def _state(daemon: dict[str, Any]) -> str:
    if not daemon["running"]:
        return "not running"
    known = f"process {daemon['pid']}" if daemon["pid"] else "runs"
    if daemon["answers"]:
        return known
    return f"{known}, does not answer" if daemon["pid"] else "does not answer"


def _limits(cluster: Cluster) -> Iterator[str]:
    """What limited nodes were asked to be, and what they were when they were measured."""
    from harness.records.hardware import format_control

    for node, dials in cluster.limits.items():
        for dial, limit in dials.items():
            enforced = "" if limit.is_enforced else ", not enforced on buffered writes"
            yield (
                f"  {f'{dial} of {node}':<28} {format_control(dial, limit.requested)} asked,"
                f" {format_control(dial, limit.measured)} measured{enforced}"
            )
