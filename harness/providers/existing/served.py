"""
What a cluster that is not ours tells over HTTP: JSON of its services, and logs of containers.

A NodeManager serves the logs that lie on its node; where the cluster gathers them in HDFS, the
history server does.  Nothing that comes back is believed: sizes are bounded, and names become parts
of paths only where they look like what they should be.
"""

from __future__ import annotations

import http.client
import re

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from harness.errors import ClusterError
from harness.providers.host import from_json, printable
from harness.providers.ids import CONTAINER, LOG
from harness.providers.versions import RanOn, short

TIMEOUT_S = 30.0
MOST_JSON = 256 * 2**20
MOST_LOG = 2**30
_CHUNK = 2**18
_HEADER_LINES = 50
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,253}", re.ASCII)
_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,253}:\d{1,5}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Container:
    """A container whose logs are wanted, and the host on which it ran."""

    id: str
    host: str


@dataclass(frozen=True, slots=True)
class Server:
    """A NodeManager: its host, and where it answers."""

    host: str
    address: str


def get_json(address: str, path: str) -> Any:
    """JSON that a service answers; `ClusterError` where it does not."""
    with _Reply(address, path, "application/json") as reply:
        content = reply.read(MOST_JSON)
    try:
        return from_json(content)
    except ValueError as error:
        raise _silent(address, path, "it answers no JSON") from error


def elements(answer: Any, *names: str) -> list[dict[str, Any]]:
    """
    The list at the end of *names* in a REST answer: Hadoop writes one element without its list.

    >>> elements({"apps": {"app": {"id": 1}}}, "apps", "app")
    [{'id': 1}]
    >>> elements({"apps": None}, "apps", "app")
    []
    """
    for name in names:
        answer = answer.get(name) if isinstance(answer, Mapping) else None
    found = answer if isinstance(answer, list) else [answer]
    return [each for each in found if isinstance(each, dict)]


def servers(nodes: Iterable[Mapping[str, Any]]) -> list[Server]:
    """NodeManagers among the *nodes* that the ResourceManager lists."""
    told = ((str(n.get("nodeHostName")), str(n.get("nodeHTTPAddress"))) for n in nodes)
    return [Server(h, a) for h, a in told if _NODE.fullmatch(h) and _ADDRESS.fullmatch(a)]


def ran_on(server: Server, hadoop: str) -> RanOn:
    """What tasks run on beside a NodeManager: its own Java and kernel, as its JVM tells them."""
    runtime, system = _bean(server.address, "Runtime"), _bean(server.address, "OperatingSystem")
    properties = {str(p.get("key")): p.get("value") for p in elements(runtime, "SystemProperties")}
    java = properties.get("java.runtime.version") or runtime.get("VmVersion")
    return RanOn(hadoop, short(java), short(system.get("Version")))


def _bean(address: str, kind: str) -> Mapping[str, Any]:
    """A bean of a daemon's JVM; empty where it shows none."""
    try:
        answer = get_json(address, f"/jmx?qry=java.lang:type={kind}")
    except ClusterError:
        return {}
    return next(iter(elements(answer, "beans")), {})


def copy_logs(
    containers: Iterable[Container], known: Iterable[Server], history: str, into: Path
) -> list[Path]:
    """
    Copy all logs of *containers* to ``into/<host>/<container>/<file>``.

    Asks the NodeManagers on the container's host (all, where none has its name), then the history
    server at *history*.  A container whose logs nobody has is left out.
    """
    copied, every = [], list(known)
    for container in containers:
        if not CONTAINER.fullmatch(container.id) or not _NODE.fullmatch(container.host):
            continue
        near = [s for s in every if s.host == container.host] or every
        for address, listing, content in _places(container.id, near, history):
            if names := _names(address, listing):
                folder = into / container.host / container.id
                folder.mkdir(parents=True, exist_ok=True)
                for name in names:
                    _copy(address, f"{content}/{name}", folder / name)
                    copied.append(folder / name)
                break
    return copied


def _places(container: str, near: Iterable[Server], history: str) -> Iterator[tuple[str, str, str]]:
    """Where to ask: address, path of the listing, and path below which the files are."""
    path = f"/ws/v1/node/containers/{container}/logs"
    for server in near:
        yield server.address, path, path
    base = "/ws/v1/history"
    yield history, f"{base}/containers/{container}/logs", f"{base}/containerlogs/{container}"


def _names(address: str, path: str) -> list[str]:
    """Names of a container's logs; none where they are not here, whatever the reason."""
    try:
        answer = get_json(address, path)
    except ClusterError:
        return []
    one = elements(answer, "containerLogsInfo") or elements(
        answer, "containerLogsInfoes", "containerLogsInfo"
    )
    files = [file for each in one for file in elements(each, "containerLogInfo")]
    names = [str(file.get("fileName")) for file in files]
    return sorted({name for name in names if LOG.fullmatch(name)})


def _copy(address: str, path: str, target: Path) -> None:
    """
    Copy one log, without what the service writes around it.

    Lines before it end with ``LogContents:``; one of them tells its length in bytes.
    """
    with _Reply(address, path, "*/*") as reply:
        left = _length(address, path, reply)
        with target.open("wb") as out:
            while left:
                piece = reply.read(min(left, _CHUNK))
                if not piece:
                    raise _silent(address, path, f"a log ends {left} bytes early")
                out.write(piece)
                left -= len(piece)


def _length(address: str, path: str, reply: _Reply) -> int:
    length = -1
    for _ in range(_HEADER_LINES):
        line = reply.line()
        if match := re.fullmatch(rb"LogLength:\s*(\d{1,15})\s*", line):
            length = int(match[1])
        if line.startswith(b"LogContents:"):
            break
    else:
        length = -1
    if not 0 <= length <= MOST_LOG:
        raise _silent(address, path, "a log without its length, or one that is too long")
    return length


class _Reply:
    """The answer to one GET; any failure is `ClusterError`."""

    def __init__(self, address: str, path: str, accept: str) -> None:
        self.address, self.path, self.accept = address, path, accept
        self._connection = http.client.HTTPConnection(address, timeout=TIMEOUT_S)

    def __enter__(self) -> Self:
        try:
            self._connection.request("GET", self.path, headers={"Accept": self.accept})
            self._reply = self._connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise _silent(self.address, self.path, f"{type(error).__name__}: {error}") from error
        if self._reply.status != 200:
            self.__exit__()
            raise _silent(self.address, self.path, f"status {self._reply.status}")
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._reply.close()  # a server that hangs up leaves the socket to its reply
        self._connection.close()

    def read(self, most: int) -> bytes:
        """At most so many bytes."""
        try:
            return self._reply.read(most)
        except (OSError, http.client.HTTPException) as error:
            raise _silent(self.address, self.path, f"{type(error).__name__}: {error}") from error

    def line(self) -> bytes:
        """The next line."""
        try:
            return self._reply.readline(_CHUNK)
        except (OSError, http.client.HTTPException) as error:
            raise _silent(self.address, self.path, f"{type(error).__name__}: {error}") from error


def _silent(address: str, path: str, why: str) -> ClusterError:
    return ClusterError(
        f"no answer of {address}: {printable(why)[:200]}",
        where=f"http://{address}{path}",
        fix="see whether the cluster runs, and whether this machine can reach it",
    )
