"""``harness cluster``: a cluster by hand."""

from __future__ import annotations

import json

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from harness.clusters.local import LocalCluster
    from harness.records.trial import ClusterSpec

_NAME = click.option("--name", help="Name of the cluster; without it, the one that is up.")


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
@click.option("--provider", help="What makes the cluster (harness list providers).")
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
    from harness.clusters import PROVIDERS
    from harness.clusters.home import HadoopHome

    spec = _spec(file, provider, workers)
    _require_known(spec.provider, list(PROVIDERS))
    cluster = PROVIDERS[spec.provider](name, spec, HadoopHome.find())
    click.echo(f"starting cluster {name!r}: {spec.workers} workers", err=True)
    cluster.up()
    for service, address in cluster.endpoints.items():
        click.echo(f"{service:<16} {address}")
    click.echo(
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
    Which daemons of a cluster run.

    \b
    Example:
        harness cluster status --json
    """
    cluster = _attach(name)
    facts = _facts(cluster)
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    click.echo(f"cluster {cluster.name!r}, {facts['provider']}, {facts['workers']} workers")
    for daemon in facts["daemons"]:
        pid = f"process {daemon['pid']}" if daemon["running"] else "not running"
        click.echo(f"  {daemon['name']:<28} {pid}")
    for service, address in facts["endpoints"].items():
        click.echo(f"  {service:<28} {address}")


@command.command("logs")
@click.argument("daemon", required=False)
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
            fix="harness cluster status",
        )
    for title, text in wanted.items():
        click.echo(f"==> {title} <==\n{text}\n")


@command.command("down")
@_NAME
@click.option("--all", "everything", is_flag=True, help="All clusters of this user.")
def down(name: str | None, everything: bool) -> None:
    """
    Stop a cluster and remove all of it; one that is down already is fine.

    \b
    Example:
        harness cluster down
        harness cluster down --all
    """
    from harness.clusters.local import LocalCluster

    names = LocalCluster.names() if everything else [name or _only(LocalCluster.names())]
    for each in names:
        there = bool(each) and LocalCluster.remove(each)
        click.echo(f"cluster {each!r} is down" if there else "no cluster is up", err=True)


def _spec(file: Path | None, provider: str | None, workers: int | None) -> ClusterSpec:
    """The cluster that FILE describes, the first where it describes several; options win."""
    from harness.records.trial import ClusterSpec, NodeSpec

    fields: dict[str, Any] = {}
    if file is not None:
        axes = _read(file).cluster
        node = NodeSpec(
            map_slots=axes.node.map_slots[0],
            reduce_slots=axes.node.reduce_slots[0],
            task_memory_bytes=axes.node.task_memory_bytes[0],
        )
        site = {key: values[0] for key, values in axes.site.items()}
        fields = {
            "provider": axes.provider, "workers": axes.workers[0], "node": node, "site": site,
        }  # fmt: skip
    given = {"provider": provider, "workers": workers}
    return ClusterSpec(**fields | {k: v for k, v in given.items() if v is not None})


def _read(file: Path) -> Any:
    from harness.errors import SpecError
    from harness.records.codec import read_experiment

    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(
            f"cannot read {file}: {error}", where=str(file), fix="name an experiment file"
        ) from error
    return read_experiment(text, str(file), [])


def _require_known(provider: str, known: list[str]) -> None:
    from harness.errors import SpecError

    if provider not in known:
        raise SpecError(
            f"no provider is called {provider!r}",
            where="--provider, or cluster.provider in the file",
            fix=f"choose one of: {', '.join(known)}",
        )


def _attach(name: str | None) -> LocalCluster:
    from harness.clusters.local import LocalCluster
    from harness.errors import ClusterError

    cluster = LocalCluster.attach(name or _only(LocalCluster.names()) or "default")
    if not cluster.is_up():
        raise ClusterError(
            f"no cluster {cluster.name!r} is up",
            where=str(cluster.folder),
            fix=f"harness cluster up --name {cluster.name}",
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


def _facts(cluster: LocalCluster) -> dict[str, Any]:
    pids = cluster.daemon_pids()
    return {
        "schema_version": 1,
        "name": cluster.name,
        "provider": cluster.provider,
        "workers": cluster.spec.workers,
        "daemons": [
            {"name": daemon, "running": daemon in pids, "pid": pids.get(daemon)}
            for daemon in cluster.daemon_logs(1)
        ],
        "endpoints": cluster.endpoints,
        "folder": str(cluster.folder),
    }
