"""Logs of a cluster in containers: read as archives, so that they outlive their processes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness.hadoop.daemons import Daemon
from harness.providers.docker import archive as archives
from harness.providers.docker import plan as plans
from harness.providers.docker.engine import EngineError
from harness.providers.docker.host import AGENT, PYTHON, DockerHost, state_of
from harness.providers.docker.watch import Death

_DUMP_S = 20.0


def tails_of(host: DockerHost, lines: int) -> dict[str, str]:
    """Ends of the logs of one node, by file name; they outlive its processes."""
    engine = host.engine
    try:
        with engine.asked(f"logs of {host.name}"):
            pieces, _ = engine.client.api.get_archive(host.container, plans.LOGS)
            tails = archives.last_lines(pieces, lines, host.name)
        state = state_of(engine, host.container)
    except EngineError as error:
        if error.status == 404:
            return {}
        raise
    if state != "it runs":
        return {name: f"{text}\n[{host.name}: {state}]".lstrip() for name, text in tails.items()}
    return tails


def logs_of(host: DockerHost, application: str, into: Path) -> list[Path]:
    """Logs of an application's containers on one node; none where it ran nothing."""
    try:
        with host.engine.asked(f"container logs of {host.name}"):
            place = f"{host.folder}/userlogs/{application}"
            pieces, _ = host.engine.client.api.get_archive(host.container, place)
            return archives.unpack_logs(pieces, application, into, f"{host.name}: {place}")
    except EngineError as error:
        if error.status == 404:
            return []
        raise


def dumps_of(host: DockerHost, into: Path) -> list[Path]:
    """Thread dumps of the JVMs on one node."""
    place = f"{host.folder}/threads"
    argv = [*PYTHON, AGENT, "dump", plans.PIDS, place]
    if host.run(argv, _DUMP_S).status != 0:
        return []
    with host.engine.asked(f"thread dumps of {host.name}"):
        pieces, _ = host.engine.client.api.get_archive(host.container, place)
        return archives.unpack_texts(pieces, into, f"{host.name}: {place}")


def with_death(text: str, daemon: Daemon, deaths: Mapping[str, Death]) -> str:
    """The end of a daemon's log, and how the daemon has ended, if it has."""
    death = deaths.get(daemon.key)
    if death is None:
        return text
    how = f"signal {-death.status}" if death.status < 0 else f"status {death.status}"
    why = ": its node ran out of the memory that it may use (OOMKilled)" if death.oom else ""
    return f"{text}\n[{daemon.name} has ended with {how}{why}]".lstrip()
