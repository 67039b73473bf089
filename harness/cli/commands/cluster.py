"""``harness cluster``: a cluster by hand; ``harness trust``: the key of one of its hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import click

from harness import clusters as providers
from harness.base.documents.wording import count
from harness.base.errors import ClusterError, HarnessError, SpecError
from harness.base.records.trial import format_control
from harness.base.text import did_you_mean, excerpt
from harness.base.units import format_bytes, format_duration
from harness.cli.console import completion
from harness.cli.console.command import command, group
from harness.cli.console.options import duration_s, json_option, open_session
from harness.cli.console.present import Note, Part, Rows, present, show
from harness.clusters import lease, state
from harness.clusters.base import Cluster
from harness.clusters.existing.discovery import elements, whole
from harness.clusters.host import at_once

_NAME = click.option(
    "--name",
    help="Name of the cluster; without it, the one that is up.",
    shell_complete=completion.clusters,
)

_LONGEST_S = 30 * 86400
_MOST_NODES = 1000
_MOST_TEXT = 200  # of what a ResourceManager reports


def _lifetime_s(_context: click.Context, _option: click.Parameter, text: str) -> int:
    """Whole seconds of a duration; an error of the command line where it is none."""
    seconds = duration_s(text)
    if not 60 <= seconds <= _LONGEST_S:
        raise click.BadParameter(f"{text} is not between a minute and 30 days")
    return int(seconds)


_LIFETIME = click.option(
    "--lifetime",
    callback=_lifetime_s,
    default="8 h",
    metavar="TIME",
    help="After so long it is removed, unless it is renewed.",
)


@group("cluster")
def cluster() -> None:
    """
    Start, look at and stop a cluster by hand.

    \b
    Example:
        harness cluster up --workers 2
        harness cluster status
        harness cluster down
    """


@cluster.command("up")
@click.argument(
    "file",
    required=False,
    type=click.Path(dir_okay=False, path_type=Path),
    shell_complete=completion.experiments,
)
@click.option(
    "--provider",
    type=click.Choice(list(providers.PROVIDERS)),
    help="What makes the cluster (harness list providers).",
)
@click.option("--workers", type=click.IntRange(1, 200), help="Number of worker nodes.")
@click.option("--name", default="default", help="Name of the cluster.")
@_LIFETIME
@json_option
def up(
    file: Path | None,
    provider: str | None,
    workers: int | None,
    name: str,
    lifetime: int,
    as_json: bool,
) -> None:
    """
    Start a cluster: that of the experiment FILE if given, otherwise a default one.

    \b
    Example:
        harness cluster up --workers 2
        harness cluster up experiments/demo.yaml
    """
    from harness.base.records.trial import ClusterSpec
    from harness.clusters.hadoop_home.home import HadoopHome
    from harness.core.experiment.grid import expand

    spec = ClusterSpec()
    if file is not None:  # the first where it describes several
        spec = expand(open_session(file, Path()).experiment)[0].cluster
    options = {"provider": provider, "workers": workers}
    spec = spec.model_copy(update={key: value for key, value in options.items() if value})
    provider_class = providers.PROVIDERS[spec.provider]
    provider_class.require_libraries()
    new_cluster = provider_class(name, spec, HadoopHome.find())
    show(
        Note(f"starting cluster {name!r}: {count(spec.workers, 'worker')}"),
        Note(f"reach: {provider_class.reach(spec)}"),
    )
    new_cluster.up(lifetime_s=lifetime)
    show(*(Note(f"warning: {limitation}") for limitation in new_cluster.limitations))
    answer = {
        "name": name,
        "provider": spec.provider,
        "workers": spec.workers,
        "endpoints": new_cluster.endpoints,
        "lifetime_s": lifetime,
    }
    present(answer, shown_start(new_cluster, lifetime), as_json=as_json)


def shown_start(started: Cluster, lifetime_s: int) -> Iterator[Part]:
    """How to ask the services of a cluster that was *started*, and what can be done with it."""
    yield from (
        f"{service:<16} {asking(started, address)}"
        for service, address in started.endpoints.items()
    )
    yield Note(next_commands(started, lifetime_s))


def asking(started: Cluster, address: str) -> str:
    """
    The command that asks the service at an *address* of a cluster.

    No address is shown outside of one: typed elsewhere it may lead to another machine.
    """
    secret = started.services.get("secret")
    header = f"-H @{secret} " if secret else ""
    return f"{started.exec_prefix} curl {header}{address}".lstrip()


def next_commands(started: Cluster, lifetime_s: int) -> str:
    """What can be done with a cluster that was *started*, as commands."""
    return (
        f"\nlook at it:  harness cluster status --name {started.name}"
        f"\nstop it:     harness cluster down --name {started.name}"
        f"\nkeep it:     harness cluster renew --name {started.name}"
        f"  (it is removed after {format_duration(lifetime_s)})"
    )


@cluster.command("status")
@_NAME
@json_option
def status(name: str | None, as_json: bool) -> None:
    """
    Nodes, daemons, slots, disks, GPUs, clocks and versions of a cluster.

    Clocks are shown as seconds ahead of this machine's, with the error of that value.

    \b
    Example:
        harness cluster status --json
    """
    running = _attach(name)
    facts = cluster_facts(running)
    present(facts, shown_cluster(running, facts), as_json=as_json)


def shown_cluster(running: Cluster, facts: Mapping[str, Any]) -> Iterator[Part]:
    """*facts* of a *running* cluster for people, from its daemons to its limits."""
    slots = running.spec.node
    version = f", Hadoop {facts['hadoop']}" if facts["hadoop"] else ""
    yield (
        f"cluster {running.name!r}, {facts['provider']}, {count(facts['workers'], 'worker')},"
        f" {slots.map_slots} map and {slots.reduce_slots} reduce slots each{version}"
    )
    yield f"  of {facts['owner']}; its lease ends in {format_duration(facts['lease_s'])}"
    yield from (_line(daemon["name"], daemon_text(daemon)) for daemon in facts["daemons"])
    yield from (_line(service, address) for service, address in facts["endpoints"].items())
    yield from shown_hosts(facts["hosts"])
    if facts["nodes"]:
        columns = ["YARN node", "state", "containers", "memory used, MiB", "of", "Hadoop"]
        yield Rows(columns, [[*node.values()] for node in facts["nodes"]])
    yield from limit_lines(running)
    yield from (f"  note: {limitation}" for limitation in facts["limitations"])


def _line(title: object, text: object) -> str:
    """A fact of a cluster, in a line of two columns."""
    return f"  {title:<28} {text}"


def daemon_text(daemon: Mapping[str, Any]) -> str:
    """Whether a daemon runs, as which process, and whether it answers."""
    if not daemon["running"]:
        return "not running"
    process = f"process {daemon['pid']}" if daemon["pid"] else "runs"
    return process if daemon["answers"] else f"{process}, does not answer"


def limit_lines(running: Cluster) -> Iterator[str]:
    """Each limit of each node: requested, and measured before the daemons started."""
    for host, limits in running.limits.items():
        for control, limit in limits.items():
            effect = "" if limit.is_enforced else ", not enforced on buffered writes"
            requested = format_control(control, limit.requested)
            measured = format_control(control, limit.measured)
            text = f"{requested} requested, {measured} measured{effect}"
            yield _line(f"{control} of {host}", text)


@cluster.command("renew")
@_NAME
@_LIFETIME
@json_option
def renew(name: str | None, lifetime: int, as_json: bool) -> None:
    """
    Let the lifetime of a cluster begin again.

    \b
    Example:
        harness cluster renew --lifetime "24 h"
    """
    running = _attach(name)
    lease.renew(running.name, lifetime, running.controls())
    note = Note(f"cluster {running.name!r} is removed after {format_duration(lifetime)}")
    present({"name": running.name, "lifetime_s": lifetime}, [note], as_json=as_json)


@cluster.command("list")
@json_option
def list_clusters(as_json: bool) -> None:
    """
    All clusters of this user, and whose they are.

    \b
    Example:
        harness cluster list
    """
    facts: list[dict[str, Any]] = [
        {
            "name": name,
            "provider": state.provider_of(name),
            "owner": str(state.Owner.of(name) or "unknown"),
            "lease_s": state.lease_s(name),
        }
        for name in state.known_names()
    ]
    rows = [[*list(fact.values())[:3], format_duration(fact["lease_s"])] for fact in facts]
    shown = Rows(["cluster", "provider", "owner", "lease ends in"], rows)
    present(facts, [shown] if facts else (), as_json=as_json)


@cluster.command("logs")
@click.argument("daemon", default="")
@_NAME
@click.option("--lines", type=click.IntRange(1, 100_000), default=20, help="How many of each log.")
@json_option
def logs(daemon: str, name: str | None, lines: int, as_json: bool) -> None:
    """
    The last lines of the daemons' logs; DAEMON is part of a name, as `status` shows it.

    \b
    Example:
        harness cluster logs "datanode on worker1"
        harness cluster logs namenode --lines 200
    """
    running = _attach(name)
    tails = running.daemon_logs(lines)
    texts = {title: text for title, text in tails.items() if daemon in title}
    if not texts:
        names = sorted({title.partition(" ")[0] for title in tails})
        what = f"no daemon is called {daemon!r}"
        where = f"cluster {running.name!r}"
        raise SpecError(what, where=where, fix=did_you_mean(daemon, names))
    parts = (f"==> {title} <==\n{text}\n" for title, text in texts.items())
    present({"logs": texts}, parts, as_json=as_json)


@cluster.command("down")
@_NAME
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="All clusters of this user, including those of running experiments.",
)
@click.option(
    "--adopt",
    is_flag=True,
    help="Also a cluster of another machine or container that no longer renews its lease.",
)
@json_option
def down(name: str | None, everything: bool, adopt: bool, as_json: bool) -> None:
    """
    Stop a cluster and remove everything that belongs to it; safe to repeat.

    \b
    Example:
        harness cluster down
        harness cluster down --all
    """
    existing_names = state.known_names()
    errors = list[HarnessError]()
    removed = list[str]()
    names = existing_names if everything else [name or _only_name(existing_names)]
    if not any(names):
        show(Note("no cluster is up"))
    for chosen in filter(None, names):
        try:
            if adopt:
                state.adopt(chosen)
            was_there = providers.remove(chosen)
        except HarnessError as error:  # a host or an engine is away: the others can still go
            if everything and _is_foreign(error, chosen):
                show(Note(f"left alone: {error.what}"))
            else:
                errors.append(error)
            continue
        if was_there:
            removed.append(chosen)
            show(Note(f"cluster {chosen!r} is down"))
        else:
            existing = f"; there are: {', '.join(existing_names)}" if existing_names else ""
            show(Note(f"no cluster {chosen!r} is up{existing}"))
    present({"removed": removed}, as_json=as_json)
    if errors:
        raise_errors(errors)


def _is_foreign(error: HarnessError, name: str) -> bool:
    """Whether a cluster could not be removed because another machine keeps it alive."""
    return isinstance(error, state.NotOursError) and bool(state.lease_s(name))


def raise_errors(errors: Sequence[HarnessError]) -> NoReturn:
    """Show all of *errors* but the last one, with which the command ends."""
    show(*(Note(f"error: {error}") for error in errors[:-1]))
    raise errors[-1]


@command("trust")
@click.argument("host")
@click.option("--fingerprint", required=True, help="The host's fingerprint: SHA256:...")
@click.option("--port", type=click.IntRange(1, 65535), default=22, help="The port of its sshd.")
@json_option
def trust(host: str, fingerprint: str, port: int, as_json: bool) -> None:
    """
    Pin the SSH key of HOST, if it has the fingerprint that you give.

    Take the fingerprint from whoever runs the host, or from its console, never from the network:
    ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub prints it. A key pinned before is replaced.

    \b
    Example:
        harness trust node1 --fingerprint SHA256:Hq4Ri3tYD5rGdYMTgVfqnjYhHpyFHfNiqCOSxfkxuM0
    """
    from harness.clusters.ssh.connection import pins_file
    from harness.clusters.ssh.connection import trust as pin_key

    kind = pin_key(host, fingerprint, port)
    note = Note(f"{host}: {kind} key pinned in {pins_file()}")
    present({"host": host, "kind": kind, "pins": pins_file()}, [note], as_json=as_json)


def _attach(name: str | None) -> Cluster:
    """The cluster of that name, or the only one; `ClusterError` where it is not up."""
    existing_names = state.known_names()
    chosen = name or _only_name(existing_names) or "default"
    state.require_ours(chosen)
    attached = providers.attach(chosen)
    if not attached.is_up():
        remaining = sorted(set(existing_names) - {attached.name})
        fix = did_you_mean(attached.name, remaining) if remaining else "harness cluster up"
        what = f"no cluster {attached.name!r} is up"
        raise ClusterError(what, where=str(attached.folder), fix=fix)
    return attached


def _only_name(names: list[str]) -> str:
    """The one name that there is, empty when there is none."""
    if len(names) > 1:
        what = f"several clusters are known: {', '.join(names)}"
        fix = f"choose: --name {names[0]}"
        raise SpecError(what, where="harness cluster", fix=fix)
    return "".join(names)


def shown_hosts(hosts: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    """Hosts as a table, then the errors of those that did not answer, then all GPUs."""
    columns = ["host", "address", "clock, s", "cores", "memory", "disk free", "java", "kernel"]
    rows = [
        (
            host["name"],
            host["address"],
            f"{host['clock_s']:+.3f} \u00b1 {host['clock_within_s']:.3f}",
            host["cores"],
            format_bytes(host["memory_bytes"]),
            f"{format_bytes(host['disk_free_bytes'])} of {format_bytes(host['disk_bytes'])}",
            host["java"],
            host["kernel"],
        )
        for host in hosts
        if not host["error"]
    ]
    if rows:
        yield Rows(columns, rows)
    for host in hosts:  # nodes on one machine see the same devices
        if host["error"]:
            yield _line(host["name"], host["error"])
        for gpu in host["gpus"].get("devices", ()):
            yield _line(f"GPU of {host['name']}", gpu_text(gpu))
        if message := host["gpus"].get("message"):
            yield f"  note: nvidia-smi on {host['name']}: {message}"


def gpu_text(gpu: Mapping[str, Any]) -> str:
    """Name of a GPU, with its memory and driver where they are known."""
    memory = f", {format_bytes(gpu['memory_bytes'])}" if "memory_bytes" in gpu else ""
    driver = f", driver {gpu['driver']}" if "driver" in gpu else ""
    return f"{gpu['name']}{memory}{driver}"


def cluster_facts(running: Cluster) -> dict[str, Any]:
    """
    Everything that `harness cluster status --json` shows of a *running* cluster.

    Daemons, nodes and hosts are asked at once, as each answer of a loaded cluster takes its time.
    """
    asked = (_daemon_facts, _yarn_nodes, _host_facts)
    daemons, nodes, hosts = at_once(lambda ask: ask(running), asked)
    return {
        "name": running.name,
        "provider": running.provider,
        "workers": running.spec.workers,
        "owner": str(state.Owner.of(running.name) or "unknown"),
        "lease_s": state.lease_s(running.name),
        "daemons": daemons,
        "endpoints": running.endpoints,
        "hadoop": ", ".join(sorted({node["version"] for node in nodes})),
        "hosts": hosts,
        "nodes": nodes,
        "limitations": list(running.limitations),
        "limits": {
            node: {key: limit.model_dump(exclude_none=True) for key, limit in limits.items()}
            for node, limits in running.limits.items()
        },
        "folder": str(running.folder),
    }


def _daemon_facts(running: Cluster) -> list[dict[str, Any]]:
    """Each daemon of a cluster: whether it runs and answers, and its process on this machine."""
    pids = running.daemon_pids()
    dead = running.dead_daemons()
    try:
        unanswering = running.missing_daemons()
    except ClusterError:  # nobody can be reached
        unanswering = []
    return [
        {
            "name": daemon,
            "running": daemon not in dead,
            "answers": daemon not in unanswering,
            "pid": pids.get(daemon),
        }
        for daemon in running.daemon_names()
    ]


def _host_facts(running: Cluster) -> list[dict[str, Any]]:
    """What the hosts of a cluster report of themselves."""
    return [asdict(host) for host in running.survey()]


def _yarn_nodes(running: Cluster) -> list[dict[str, Any]]:
    """What the ResourceManager reports of its nodes; nothing where it does not answer."""
    try:
        nodes = elements(running.hdfs.get_json("rm", "/ws/v1/cluster/nodes"), "nodes", "node")
    except ClusterError:
        return []
    return [
        {
            "id": excerpt(node.get("id"), _MOST_TEXT),
            "state": excerpt(node.get("state"), _MOST_TEXT),
            "containers": whole(node.get("numContainers")),
            "used_mb": whole(node.get("usedMemoryMB")),
            "memory_mb": whole(node.get("usedMemoryMB")) + whole(node.get("availMemoryMB")),
            "version": excerpt(node.get("version"), _MOST_TEXT),
        }
        for node in nodes[:_MOST_NODES]
    ]
