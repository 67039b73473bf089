"""
The Docker engine: where it is, why it refuses, what bears our labels, and what has ended there.

``DOCKER_HOST`` (with ``DOCKER_TLS_VERIFY`` and ``DOCKER_CERT_PATH``) names another engine than this
machine's, near or far: nothing here assumes that it sees our files or that we see its ports.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import platform
import re
import socket
import ssl
import threading

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.base.errors import ClusterError, MachineError, SpecError
from harness.base.extras import CLUSTERS, extra
from harness.base.text import excerpt, read_json
from harness.clusters import state as states
from harness.clusters.host import at_once, system_reason
from harness.clusters.node.health import describe_ending

LABEL = "mapreduce-harness"  # before each of our labels
DEFAULT = "unix:///var/run/docker.sock"
_VARIABLES = ("DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH")
_LIMIT_S = 120.0
_VERSION = "1.44"  # of the first request, which every engine answers: which versions it has
_CONNECTIONS = 32
_JOIN_LIMIT_S = 5.0
_RETRY_S = 1.0
_ADDRESS = re.compile(r"(unix|tcp|http|https)://")
_FIXES = {
    "Could not find the file": "harness cluster logs shows what the node has written",
    "no space left": "free some space on the engine's disk: docker system df, docker system prune",
    "no available IPv4": "remove networks that nobody needs: docker network prune",
    "permission denied": "look at the rights of the engine's data folder",
    "Conflict. The container name": "remove that container, or choose another name for the cluster",
}


class EngineError(ClusterError):
    """The engine refuses; *status* is its HTTP status, 0 where it does not answer at all."""

    def __init__(self, what: str, *, where: str = "", fix: str = "", status: int = 0) -> None:
        super().__init__(what, where=where, fix=fix)
        self.status = status


@dataclass(frozen=True)
class Engine:
    """A Docker engine of that *version*; *settings* are the variables that lead to it."""

    client: Any
    settings: Mapping[str, str]
    version: str = ""

    @classmethod
    def connect(
        cls, environment: Mapping[str, str] = os.environ, limit_s: float = _LIMIT_S
    ) -> Engine:
        """The engine of ``DOCKER_HOST``, or this machine's; `MachineError` where none answers."""
        with extra(CLUSTERS):
            from docker.client import DockerClient
            from docker.errors import DockerException
            from requests import RequestException

        settings = {name: environment[name] for name in _VARIABLES if environment.get(name)}
        address = settings.get("DOCKER_HOST", DEFAULT)
        if not _ADDRESS.match(address):
            raise SpecError(
                f"{address!r:.200} is not an address of an engine that can be used here",
                where="DOCKER_HOST",
                fix="name a socket or a port; for an engine behind SSH, forward its socket: "
                "ssh -nNT -L /tmp/docker.sock:/var/run/docker.sock HOST, and "
                "DOCKER_HOST=unix:///tmp/docker.sock",
            )

        if address.startswith("unix://"):  # the system's own errors are clearer than the client's
            try:
                with socket.socket(socket.AF_UNIX) as connection:
                    connection.connect(address.removeprefix("unix://"))
            except PermissionError as error:
                raise MachineError(
                    "this user may not use the Docker engine",
                    where=address,
                    fix="sudo usermod -aG docker $USER, then log in again (this group is equivalent"
                    " to root)",
                ) from error
            except OSError as error:
                raise _no_engine_error(address, error) from error

        def client(api_version: str) -> Any:
            new_client = DockerClient.from_env(
                version=api_version,
                timeout=limit_s,
                max_pool_size=_CONNECTIONS,
                environment=settings,
            )
            # or REQUESTS_CA_BUNDLE would be the engine's authority
            new_client.api.trust_env = False
            return new_client

        try:
            with closing(client(_VERSION)) as first:
                versions = first.api.version(api_version=False)
        except (DockerException, RequestException) as error:
            raise _no_engine_error(address, error) from error
        return cls(client(versions["ApiVersion"]), settings, str(versions.get("Version", "")))

    @property
    def address(self) -> str:
        """Where it listens."""
        return self.settings.get("DOCKER_HOST", DEFAULT)

    @property
    def is_near(self) -> bool:
        """Whether it runs on this machine; a socket may be carried here from another one."""
        return self.address.startswith("unix://") and self.facts.get("Name") == platform.node()

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What it reports of itself and its machine (``docker info``)."""
        with self.translate_errors():
            facts: dict[str, Any] = self.client.info()
        return facts

    @contextmanager
    def translate_errors(self, subject: str = "") -> Iterator[None]:
        """Turn the client's errors into `EngineError`; *subject* is what the requests are about."""
        import requests
        import urllib3

        from docker.errors import APIError, DockerException

        where = f"Docker engine at {self.address}" + (f", {subject}" if subject else "")
        try:
            yield
        except APIError as error:
            reason = excerpt(error.explanation or error, 500) or "no message"
            status = error.response.status_code if error.response is not None else 0
            raise EngineError(
                reason, where=where, fix=_remedy(reason), status=int(status)
            ) from error
        except (
            DockerException,
            requests.RequestException,
            urllib3.exceptions.HTTPError,
            http.client.HTTPException,
            ConnectionError,
            TimeoutError,
            ssl.SSLError,
        ) as error:
            raise EngineError(
                f"the Docker engine does not answer: {excerpt(error, 500) or 'no message'}",
                where=where,
                fix="start it again, then: harness cluster down",
            ) from error

    def labels(self, cluster: str) -> dict[str, str]:
        """Labels of all that belongs to this user's cluster of that name."""
        return {LABEL: "node", f"{LABEL}.owner": owner(), f"{LABEL}.cluster": cluster}

    def containers(self, cluster: str) -> list[Any]:
        """Containers of a cluster, running or not, in the order of their names."""
        with self.translate_errors(f"containers of cluster {cluster!r}"):
            wanted = self._filter(cluster)
            listing = self.client.containers.list
            containers = listing(all=True, filters=wanted, ignore_removed=True)
        return sorted(containers, key=lambda container: str(container.name))

    def reap(self, cluster: str) -> None:
        """Remove all that bears the labels of a cluster."""

        def remove(part: Any, **options: Any) -> None:
            try:
                with self.translate_errors("removing a part of a cluster"):
                    part.remove(**options)
            except EngineError as error:  # what is removed already, or is being removed, is fine
                if error.status != 404 and "already in progress" not in error.what:
                    raise

        at_once(lambda part: remove(part, v=True, force=True), self.containers(cluster))
        with self.translate_errors(f"networks and volumes of cluster {cluster!r}"):
            networks = self.client.networks.list(filters=self._filter(cluster))
            volumes = self.client.volumes.list(filters=self._filter(cluster))
        for part in networks:
            remove(part)
        for part in volumes:
            remove(part, force=True)

    def _filter(self, cluster: str) -> dict[str, Any]:
        return {"label": [f"{label}={value}" for label, value in self.labels(cluster).items()]}


class DeathLog:
    """
    Daemons and nodes that have ended in *containers* (node -> name of its container).

    One thread per node follows its container's log, in which the node's supervisor writes a line
    of JSON for each daemon that ends; the end of the log is the end of the node.  So nothing runs
    in the containers for it, and the engine has nothing to do while all is well.
    """

    def __init__(self, engine: Engine, containers: Mapping[str, str]) -> None:
        """Read what has happened so far, then follow."""
        self._engine = engine
        # threads add to these, and whoever asks gets a copy: either is one step of the interpreter
        self._deaths: dict[str, str] = {}
        self._ended: set[str] = set()
        self._error: EngineError | None = None
        self._closed = threading.Event()
        for container in containers.values():
            with engine.translate_errors(f"log of {container}"):
                self._read(engine.client.api.logs(container, stdout=True, stderr=False))
        self._threads = [
            threading.Thread(target=self._follow, args=pair, daemon=True, name="docker-deaths")
            for pair in containers.items()
        ]
        for thread in self._threads:
            thread.start()

    def deaths(self) -> dict[str, str]:
        """What daemons that ended or hang have done, by key; `EngineError`: the engine was lost."""
        if self._error is not None:
            raise self._error
        return dict(self._deaths)

    def ended_nodes(self) -> set[str]:
        """Nodes that have ended."""
        return set(self._ended)

    def close(self) -> None:
        """Wait for the threads; the logs of removed containers have ended."""
        self._closed.set()
        for thread in self._threads:
            thread.join(_JOIN_LIMIT_S)

    def _follow(self, node_name: str, container: str) -> None:
        """Read the log of one node until the node ends, again where the connection is lost."""
        client = self._engine.client.api
        while not self._closed.is_set():
            with suppress(EngineError), self._engine.translate_errors(container):
                rest = b""
                log = client.logs(container, stdout=True, stderr=False, stream=True, follow=True)
                for piece in log:
                    lines, _, rest = (rest + piece).rpartition(b"\n")
                    self._read(lines)
            if self._closed.is_set():
                return
            try:
                with self._engine.translate_errors(f"state of {node_name}"):
                    is_running = client.inspect_container(container)["State"]["Running"]
            except EngineError as error:
                is_running = False
                if error.status != 404:
                    self._error = error
                    return
            if not is_running:
                self._ended.add(node_name)
                return
            self._closed.wait(_RETRY_S)

    def _read(self, lines: bytes) -> None:
        """Take the supervisor's lines; any other text is skipped."""
        for line in lines.splitlines():
            with suppress(ValueError, KeyError, TypeError, AttributeError):
                fields: Any = read_json(line)
                daemon_key = str(fields["key"])
                unanswered_s = fields.get("unanswered_s")
                if unanswered_s:
                    self._deaths[daemon_key] = describe_ending(int(unanswered_s))
                    continue
                status = int(fields["status"])
                how = f"signal {-status}" if status < 0 else f"status {status}"
                why = ": its node ran out of the memory that it may use (OOMKilled)"
                ending = f"has ended with {how}{why if fields.get('oom') else ''}"
                self._deaths[daemon_key] = ending


def _remedy(reason: str) -> str:
    """What to do about a refusal of the engine, by signs in its *reason*."""
    matching = (remedy for sign, remedy in _FIXES.items() if sign in reason)
    return next(matching, "read the engine's log")


def owner() -> str:
    """A short hash of this user with this state folder on this machine, who owns its clusters."""
    machine = ""
    with suppress(OSError):
        machine = Path("/etc/machine-id").read_text().strip()
    text = f"{machine or platform.node()}\n{os.getuid()}\n{states.clusters_folder().resolve()}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _no_engine_error(address: str, error: BaseException) -> MachineError:
    """The error for an engine that does not answer, with the system's reason if there is one."""
    text = excerpt(system_reason(error), 500)
    return MachineError(
        f"no Docker engine answers: {text}",
        where=f"{address} (DOCKER_HOST names another one)",
        fix="sudo systemctl start docker, or set DOCKER_HOST; if none is installed:"
        " apt-get install docker.io"
        if address.startswith("unix:")
        else "check that it listens there (with DOCKER_CERT_PATH if it uses TLS), or unset"
        " DOCKER_HOST",
    )
