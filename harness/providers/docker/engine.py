"""
The Docker engine: where it is, what it says no to, and everything that bears our labels.

``DOCKER_HOST`` (with ``DOCKER_TLS_VERIFY`` and ``DOCKER_CERT_PATH``) names another engine than this
machine's, near or far: nothing here takes for granted that it sees our files or we its ports.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import platform
import re
import socket
import ssl

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from harness.errors import ClusterError, MachineError, SpecError
from harness.providers import state as states
from harness.providers.host import printable

LABEL = "mapreduce-harness"  # before each of our labels
DEFAULT = "unix:///var/run/docker.sock"
_VARIABLES = ("DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH")
_LIMIT_S = 120.0
_VERSION = "1.44"  # of the first question, which every engine answers: which versions it has
_AT_ONCE, _POOL = 8, 32
_WEB = re.compile(r"(unix|tcp|http|https)://")


class EngineError(ClusterError):
    """The engine says no; *status* is its HTTP status, 0 where it does not answer at all."""

    def __init__(self, what: str, *, where: str = "", fix: str = "", status: int = 0) -> None:
        super().__init__(what, where=where, fix=fix)
        self.status = status


@dataclass(frozen=True)
class Engine:
    """A Docker engine that answers; *settings* are the variables that lead to it."""

    client: Any
    settings: Mapping[str, str]

    @classmethod
    def connect(cls, environment: Mapping[str, str] = os.environ) -> Engine:
        """The engine of ``DOCKER_HOST``, or this machine's; `MachineError` where none answers."""
        from docker.errors import DockerException
        from requests import RequestException

        settings = {n: environment[n] for n in _VARIABLES if environment.get(n)}
        address = settings.get("DOCKER_HOST", DEFAULT)
        if not _WEB.match(address):
            raise SpecError(
                f"{address!r:.200} is no address of an engine that can be used here",
                where="DOCKER_HOST",
                fix="name a socket or a port; for an engine behind SSH, carry its socket here: "
                "ssh -nNT -L /tmp/docker.sock:/var/run/docker.sock HOST, and "
                "DOCKER_HOST=unix:///tmp/docker.sock",
            )
        _knock(address)
        try:
            first = _client(settings, _VERSION)
            try:
                version = first.api.version(api_version=False)["ApiVersion"]
            finally:
                first.close()
        except (DockerException, RequestException) as error:
            raise _unreachable(address, _cause(error)) from error
        return cls(_client(settings, version), settings)

    @property
    def address(self) -> str:
        """Where it listens."""
        return self.settings.get("DOCKER_HOST", DEFAULT)

    @property
    def near(self) -> bool:
        """Whether it runs on this machine; a socket may be carried here from another one."""
        return self.address.startswith("unix://") and self.facts.get("Name") == platform.node()

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What it says of itself and its machine (``docker info``)."""
        with self.asked():
            found: dict[str, Any] = self.client.info()
        return found

    @contextmanager
    def asked(self, what: str = "") -> Iterator[None]:
        """A block of requests, about *what*: errors of the client's libraries become ours."""
        import requests
        import urllib3

        from docker.errors import APIError, DockerException

        try:
            yield
        except APIError as error:
            raise self._refused(what, error) from error
        except (
            DockerException, requests.RequestException, urllib3.exceptions.HTTPError,
            http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError,
        ) as error:  # fmt: skip
            raise EngineError(
                f"the Docker engine does not answer: {_words(error)}",
                where=self._where(what),
                fix="start it again, then: harness cluster down",
            ) from error

    def _refused(self, what: str, error: Any) -> EngineError:
        said = _words(error.explanation or error)
        fix = next((f for sign, f in _FIXES.items() if sign in said), "read the engine's log")
        status = error.response.status_code if error.response is not None else 0
        return EngineError(said, where=self._where(what), fix=fix, status=int(status))

    def _where(self, what: str) -> str:
        return f"Docker engine at {self.address}" + (f", {what}" if what else "")

    # what is ours

    def labels(self, cluster: str) -> dict[str, str]:
        """Labels of all that belongs to this user's cluster of that name."""
        return {LABEL: "node", f"{LABEL}.owner": owner(), f"{LABEL}.cluster": cluster}

    def containers(self, cluster: str) -> list[Any]:
        """Containers of a cluster, running or not, in the order of their names."""
        with self.asked(f"containers of cluster {cluster!r}"):
            found = self.client.containers.list(
                all=True, filters=self._filter(cluster), ignore_removed=True
            )
        return sorted(found, key=lambda c: str(c.name))

    def reap(self, cluster: str) -> bool:
        """Remove all that bears the labels of a cluster; `False`: there was nothing."""
        containers = self.containers(cluster)
        together([partial(self._away, c.remove, v=True, force=True) for c in containers])
        with self.asked(f"networks and volumes of cluster {cluster!r}"):
            rest = self.client.networks.list(filters=self._filter(cluster))
            volumes = self.client.volumes.list(filters=self._filter(cluster))
        for network in rest:
            self._away(network.remove)
        for volume in volumes:
            self._away(volume.remove, force=True)
        return bool(containers or rest or volumes)

    def _away(self, remove: Callable[..., Any], **how: Any) -> None:
        """Remove one thing; what is gone or going already is fine."""
        try:
            with self.asked("removing a part of a cluster"):
                remove(**how)
        except EngineError as error:
            if error.status != 404 and "already in progress" not in error.what:
                raise

    def _filter(self, cluster: str) -> dict[str, Any]:
        return {"label": [f"{name}={value}" for name, value in self.labels(cluster).items()]}


def together(tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    """Do all *tasks*, some at once; their answers, or, once all have ended, the first error."""
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="docker") as pool:
        futures = [pool.submit(task) for task in tasks]
    return [future.result() for future in futures]


def owner() -> str:
    """Whose clusters these are: this user's with this state folder on this machine."""
    machine = Path("/etc/machine-id")
    try:
        identity = machine.read_text().strip() or platform.node()
    except OSError:
        identity = platform.node()
    text = f"{identity}\n{os.getuid()}\n{states.clusters_folder().resolve()}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


_FIXES = {
    "Could not find the file": "harness cluster logs tells what the node has written",
    "no space left": "make room on the engine's disk: docker system df, docker system prune",
    "no available IPv4": "remove networks that nobody needs: docker network prune",
    "permission denied": "look at the rights of the engine's data folder",
    "Conflict. The container name": "remove that container, or choose another name for the cluster",
}


def _client(settings: Mapping[str, str], version: str) -> Any:
    """
    A client that asks in one version of the interface, and listens to *settings* alone.

    Left to itself, its library takes ``REQUESTS_CA_BUNDLE`` for the engine's authority.
    """
    from docker.client import DockerClient

    client = DockerClient.from_env(
        environment=settings, timeout=_LIMIT_S, version=version, max_pool_size=_POOL
    )
    client.api.trust_env = False
    return client


def _knock(address: str) -> None:
    """Connect to a socket of this machine, to tell by the system's own error why it cannot be."""
    if not address.startswith("unix://"):
        return
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(address.removeprefix("unix://"))
    except PermissionError as error:
        raise MachineError(
            "this user may not use the Docker engine",
            where=address,
            fix="sudo usermod -aG docker $USER, then log in again (that group is as good as root)",
        ) from error
    except OSError as error:
        raise _unreachable(address, error.strerror or error) from error


def _unreachable(address: str, said: object) -> MachineError:
    """The error for an engine that does not answer at all."""
    here = (
        "sudo systemctl start docker, or set DOCKER_HOST; who has none: apt-get install docker.io"
    )
    there = "see that it listens there (DOCKER_CERT_PATH where it wants TLS), or unset DOCKER_HOST"
    return MachineError(
        f"no Docker engine answers: {_words(said)}",
        where=f"{address} (DOCKER_HOST names another one)",
        fix=here if address.startswith("unix:") else there,
    )


def _cause(error: BaseException) -> object:
    """The system's own error below those of the libraries; theirs where there is none."""
    found: object = error
    step: BaseException | None = error
    while step is not None:
        if isinstance(step, OSError) and (step.strerror or type(step) is TimeoutError):
            found = step.strerror or step
        step = step.__cause__ or step.__context__
    return found


def _words(error: object) -> str:
    """What a library's error says in the end, as one line that is safe to print."""
    text = " ".join(printable(str(error)).split())
    return text.removeprefix("Error while fetching server API version: ")[:500] or "no message"
