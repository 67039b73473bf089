"""
What a cluster that is not ours reports over HTTP: JSON of its services, and logs of containers.

A NodeManager serves the logs that are on its node; where the cluster gathers them in HDFS, the
history server does.  Nothing that comes back is trusted: sizes are bounded, and names become parts
of paths only where they look like what they should be.
"""

from __future__ import annotations

import io
import re

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import ClusterError
from harness.providers.host import CONTAINER, LOG, from_json, system_reason
from harness.providers.survey import RanOn, version_text
from harness.text import excerpt

TIMEOUT_S = 30.0
MOST_JSON = 256 * 2**20
MOST_LOG = 2**30
_OK = 200
_CHUNK = 2**18
_HEADER_LINES = 50
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,253}", re.ASCII)
_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,253}:\d{1,5}", re.ASCII)
_LENGTH = re.compile(rb"LogLength:\s*(\d{1,15})\s*")


@dataclass(frozen=True, slots=True)
class Container:
    """A container whose logs are wanted, and the host on which it ran."""

    id: str
    host: str


@dataclass(frozen=True, slots=True)
class Server:
    """A NodeManager: its host, and the address of its web service."""

    host: str
    address: str


def get_json(address: str, url_path: str) -> Any:
    """JSON that a service answers; `ClusterError` where it does not."""
    content = bytearray()
    with _get(address, url_path, "application/json") as response:
        for piece in response.iter_content(_CHUNK):
            content += piece
            if len(content) > MOST_JSON:
                raise _answer_error(address, url_path, f"more than {MOST_JSON} bytes")
    try:
        return from_json(bytes(content))
    except ValueError as error:
        raise _answer_error(address, url_path, "the answer is not JSON") from error


def elements(answer: Any, *names: str) -> list[dict[str, Any]]:
    """
    The list at the end of *names* in a REST answer: Hadoop writes one element without its list.

    >>> elements({"apps": {"app": {"id": 1}}}, "apps", "app")
    [{'id': 1}]
    >>> elements({"apps": None}, "apps", "app")
    []
    """
    for key in names:
        answer = answer.get(key) if isinstance(answer, Mapping) else None
    listed = answer if isinstance(answer, list) else [answer]
    return [element for element in listed if isinstance(element, dict)]


def servers(nodes: Iterable[Mapping[str, Any]]) -> list[Server]:
    """NodeManagers among the *nodes* that the ResourceManager lists."""
    keys = ("nodeHostName", "nodeHTTPAddress")
    every = [Server(*(str(node.get(key)) for key in keys)) for node in nodes]
    return [
        each for each in every if _NODE.fullmatch(each.host) and _ADDRESS.fullmatch(each.address)
    ]


def ran_on(server: Server, hadoop: str) -> RanOn:
    """What tasks run on beside a NodeManager: Java and kernel, as its JVM reports them."""

    def bean(kind: str) -> Mapping[str, Any]:
        try:
            answer = get_json(server.address, f"/jmx?qry=java.lang:type={kind}")
        except ClusterError:
            return {}
        return next(iter(elements(answer, "beans")), {})

    runtime, system = bean("Runtime"), bean("OperatingSystem")
    properties = {
        str(entry.get("key")): entry.get("value") for entry in elements(runtime, "SystemProperties")
    }
    java = properties.get("java.runtime.version") or runtime.get("VmVersion")
    return RanOn(hadoop, version_text(java), version_text(system.get("Version")))


def copy_logs(
    containers: Iterable[Container], known: Iterable[Server], history: str, into: Path
) -> list[Path]:
    """
    Copy all logs of *containers* to ``into/<host>/<container>/<file>``.

    Asks the NodeManagers on the container's host (all, where none has its name), then the history
    server at *history*.  A container whose logs nobody has is left out.
    """
    copied, every_server = [], list(known)
    for container in containers:
        if not CONTAINER.fullmatch(container.id) or not _NODE.fullmatch(container.host):
            continue
        near = [server for server in every_server if server.host == container.host]
        on_node = f"/ws/v1/node/containers/{container.id}/logs"
        # address, path of the listing, and path below which the files are
        sources = [(server.address, on_node, on_node) for server in near or every_server]
        gathered = f"/ws/v1/history/containers/{container.id}/logs"
        sources.append((history, gathered, f"/ws/v1/history/containerlogs/{container.id}"))
        for address, listing, content in sources:
            if log_names := _log_names(address, listing):
                folder = into / container.host / container.id
                folder.mkdir(parents=True, exist_ok=True)
                for log_name in log_names:
                    _copy_log(address, f"{content}/{log_name}", folder / log_name)
                    copied.append(folder / log_name)
                break
    return copied


def _log_names(address: str, url_path: str) -> list[str]:
    """Names of a container's logs; none where they are not here, whatever the reason."""
    try:
        answer = get_json(address, url_path)
    except ClusterError:
        return []
    infos = elements(answer, "containerLogsInfo") or elements(
        answer, "containerLogsInfoes", "containerLogsInfo"
    )
    files = [file for info in infos for file in elements(info, "containerLogInfo")]
    log_names = {str(file.get("fileName")) for file in files}
    return sorted(log_name for log_name in log_names if LOG.fullmatch(log_name))


def _copy_log(address: str, url_path: str, target: Path) -> None:
    """
    Copy one log, without what the service writes around it.

    The lines before it end with ``LogContents:``; one of them is its length in bytes.
    """
    with _get(address, url_path, "*/*") as response:
        response.raw.auto_close = False  # or the end of the answer would close the reader
        stream = io.BufferedReader(response.raw, _CHUNK)
        missing = -1
        for _ in range(_HEADER_LINES):
            header_line = stream.readline(_CHUNK)
            if match := _LENGTH.fullmatch(header_line):
                missing = int(match[1])
            if header_line.startswith(b"LogContents:"):
                break
        else:
            missing = -1
        if not 0 <= missing <= MOST_LOG:
            raise _answer_error(
                address, url_path, "a log without its length, or one that is too long"
            )
        with target.open("wb") as copy:
            while missing:
                content = stream.read(min(missing, _CHUNK))
                if not content:
                    raise _answer_error(address, url_path, f"a log ends {missing} bytes early")
                copy.write(content)
                missing -= len(content)


@contextmanager
def _get(address: str, url_path: str, accept: str) -> Iterator[Any]:
    """The answer to a GET, to be read as it comes; any failure meanwhile is `ClusterError`."""
    import requests
    import urllib3

    headers = {"Accept": accept, "Accept-Encoding": "identity"}
    try:
        with requests.Session() as session:
            session.trust_env = False  # neither proxies nor credentials of this user
            with session.get(
                f"http://{address}{url_path}", headers=headers, timeout=TIMEOUT_S, stream=True,
                allow_redirects=False,
            ) as response:  # fmt: skip
                if response.status_code != _OK:
                    raise _answer_error(address, url_path, f"status {response.status_code}")
                yield response
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise _answer_error(address, url_path, system_reason(error)) from error


def _answer_error(address: str, url_path: str, reason: str) -> ClusterError:
    return ClusterError(
        f"no answer from {address}: {excerpt(reason, 200)}",
        where=f"http://{address}{url_path}",
        fix="see whether the cluster runs, and whether this machine can reach it",
    )
