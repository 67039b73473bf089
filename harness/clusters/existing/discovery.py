"""
A cluster that is not ours, over HTTP: its active masters, what it can hold, logs of containers.

Nothing that comes back is trusted: sizes are bounded, and names become parts of paths only where
they look like what they should be.
"""

from __future__ import annotations

import getpass
import os
import re
import time

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from harness.base.errors import ClusterError, ParseError, SpecError
from harness.base.extras import CLUSTERS, extra
from harness.base.hadoop import given, site
from harness.base.hadoop.site import read_properties
from harness.base.hadoop.slots import effective
from harness.base.records.trial import ClusterSpec
from harness.base.text import excerpt, read_json
from harness.clusters.archives import RefusedArchiveError, in_time
from harness.clusters.host import CONTAINER, LOG, system_reason
from harness.clusters.survey import RanOn, version_text

ACTIVE_LIMIT_S = 60.0
_POLL_S = 0.2
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@-]{0,63}", re.ASCII)
_MOST_CONF = 16 * 2**20
TIMEOUT_S = 30.0
MOST_JSON = 256 * 2**20
MOST_LOG = 2**30
_OK = 200
_CHUNK = 2**18
_MOST_HEADER = 2**14
_HEADER = re.compile(rb"(?:[^\n]*\n){0,50}?LogContents:[^\n]*\n")
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,253}", re.ASCII)
ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,253}:\d{1,5}", re.ASCII)
_LENGTH = re.compile(rb"^LogLength:\s*(\d{1,15})\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Discovery:
    """
    A cluster that answers: its configuration *files*, addresses of its active *services*.

    The services are ``nn``, ``rm`` and ``jhs``; *nodes* are those that run, as the ResourceManager
    lists them.
    """

    files: dict[str, dict[str, str]]
    services: dict[str, str]
    nodes: list[dict[str, Any]]
    version: str

    def __str__(self) -> str:
        return f"Hadoop {self.version}, {len(self.nodes)} nodes, at {self.services['rm']}"


def discover(overrides: Mapping[str, str], limit_s: float = ACTIVE_LIMIT_S) -> Discovery:
    """
    The cluster of ``HADOOP_CONF_DIR`` with the properties *overrides*, which have the last word.

    `HarnessError` where they lead to none that answers and that we can speak with.  Where no master
    is active yet, it is waited for *limit_s* seconds at most.
    """
    files = read_conf()
    configured = given.services({**site.merged(files), **overrides})
    managers = configured.resourcemanagers
    role = "ResourceManager"
    services = {
        "nn": _find_active(configured.namenodes, namenode_state, "NameNode", limit_s),
        "rm": _find_active(managers, _resourcemanager_state, role, limit_s),
        "jhs": configured.historyserver,
    }
    info = inner(get_json(services["rm"], "/ws/v1/cluster/info"), "clusterInfo")
    version = excerpt(info.get("hadoopVersion", "unknown"), 40)
    return Discovery(files, services, running_nodes(services["rm"]), version)


def read_conf() -> dict[str, dict[str, str]]:
    """Properties in the files of ``HADOOP_CONF_DIR``; none where it is not set."""
    folder = os.environ.get("HADOOP_CONF_DIR")
    if not folder:
        return {}
    files = {}
    for file_name in given.FILES:
        file_path = Path(folder, file_name)
        try:
            with file_path.open("rb") as stream:
                files[file_name] = read_properties(stream.read(_MOST_CONF), str(file_path))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise _conf_error(file_path, error.strerror) from error
        except ParseError as error:
            raise _conf_error(error.where, error.what) from error
    if not files:
        missing = "it has no core-site.xml or other file of Hadoop's configuration"
        raise _conf_error(folder, missing if Path(folder).is_dir() else "no such folder")
    return files


def _conf_error(path: Path | str, reason: str | None) -> SpecError:
    return SpecError(
        f"the cluster's configuration cannot be read: {reason}",
        where=f"{path} (HADOOP_CONF_DIR)",
        fix="set HADOOP_CONF_DIR to the folder that its clients use",
    )


def active_namenode() -> str:
    """Web address of the active NameNode of ``HADOOP_CONF_DIR``; `HarnessError` where none is."""
    configured = given.services(site.merged(read_conf()))
    return _find_active(configured.namenodes, namenode_state, "NameNode", 0.0)


def user_name() -> str:
    """The user of the cluster: ``HADOOP_USER_NAME``, or this process's; `SpecError` if invalid."""
    user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    if not _USER.fullmatch(user):
        raise SpecError(
            f"{user!r:.80} is not a valid name of a user",
            where="HADOOP_USER_NAME",
            fix="use letters, digits, and . _ - @",
        )
    return user


def inner(answer: Any, key: str) -> dict[str, Any]:
    """The object *key* of a REST answer; empty where there is none."""
    value = answer.get(key) if isinstance(answer, dict) else None
    return value if isinstance(value, dict) else {}


def _find_active(
    addresses: Sequence[str], state_of: Callable[[str], str], kind: str, limit_s: float
) -> str:
    """
    The one of several services that is active; `ClusterError` with the state of each.

    As long as one of them answers it is waited for, *limit_s* seconds at most: a service that was
    just started, or takes the place of another, becomes active in a moment.
    """
    deadline = time.monotonic() + limit_s
    while True:
        states = list[str]()
        has_answered = False
        for address in addresses:
            try:
                service_state = state_of(address)
            except ClusterError as error:
                states.append(error.what)
            else:
                if service_state.lower() == "active":
                    return address
                has_answered = True
                states.append(f"{address} is {excerpt(service_state, 40) or 'in an unknown state'}")
        if not has_answered or time.monotonic() > deadline:
            break
        time.sleep(_POLL_S)
    raise ClusterError(
        f"no {kind} is active: {'; '.join(states)}",
        where="existing cluster",
        fix="see whether the cluster runs, and whether HADOOP_CONF_DIR is its configuration",
    )


def namenode_state(address: str, limit_s: float = TIMEOUT_S) -> str:
    """What a NameNode reports of itself: ``active`` or ``standby``."""
    url_path = "/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus"
    beans = elements(get_json(address, url_path, limit_s), "beans")
    return str(beans[0].get("State", "")) if beans else ""


def _resourcemanager_state(address: str) -> str:
    """What a ResourceManager reports of itself: ``ACTIVE`` or ``STANDBY``."""
    info = inner(get_json(address, "/ws/v1/cluster/info"), "clusterInfo")
    return str(info.get("haState", ""))


def running_nodes(resourcemanager: str, limit_s: float = TIMEOUT_S) -> list[dict[str, Any]]:
    """The nodes that run, as the ResourceManager lists them."""
    answer = get_json(resourcemanager, "/ws/v1/cluster/nodes?states=RUNNING", limit_s)
    return elements(answer, "nodes", "node")


def refuse(spec: ClusterSpec, nodes: Sequence[Mapping[str, Any]], where: str) -> None:
    """`ClusterError` for what the cluster cannot hold: Hadoop itself would wait for ever."""
    if len(nodes) != spec.workers:
        raise ClusterError(
            f"{len(nodes)} nodes run there, and cluster.workers is {spec.workers}",
            where=where,
            fix=f"set cluster.workers to {len(nodes)}",
        )
    least_gpus = min(map(gpus, nodes), default=0)
    if least_gpus < spec.node.gpus:
        raise ClusterError(
            f"a node offers {least_gpus or 'no'} GPUs ({site.GPU}), and cluster.node.gpus is"
            f" {spec.node.gpus}",
            where=where,
            fix="request no more than each node has, or have its administrator offer them",
        )
    # offered to containers, whoever uses it now
    keys = ("availMemoryMB", "usedMemoryMB")
    sizes_mb = [sum(whole(node.get(key)) for key in keys) for node in nodes]
    task_mb = site.container_mb(spec.node.task_memory_bytes)
    slots = effective(spec, {})
    at_once = max(slots.map_slots, slots.reduce_slots)
    room = sum(size // task_mb for size in sizes_mb) - 1  # the application master takes one
    if room < at_once:
        raise ClusterError(
            f"{at_once} tasks of {task_mb} MiB at once beside their master, and there is room for"
            f" {max(room, 0)}: its nodes offer {', '.join(map(str, sizes_mb[:8]))} MiB",
            where=where,
            fix="lower cluster.node.task_memory or the slots",
        )


def gpus(node: Mapping[str, Any]) -> int:
    """GPUs that a node offers to containers, whoever uses them now."""
    keys = ("totalResource", "resourceInformations", "resourceInformation")
    resources = elements(node, *keys)
    offered = {str(resource.get("name")): resource.get("value") for resource in resources}
    return whole(offered.get(site.GPU))


def whole(value: Any) -> int:
    """A whole number of a REST answer; 0 for anything else."""
    return value if type(value) is int else 0  # a truth is none


def get_json(address: str, url_path: str, limit_s: float = TIMEOUT_S) -> Any:
    """JSON that a service answers; `ClusterError` where it does not, for *limit_s* seconds."""
    content = bytearray()
    with _get(address, url_path, "application/json", limit_s) as pieces:
        for piece in pieces:
            content += piece
            if len(content) > MOST_JSON:
                raise _answer_error(address, url_path, f"more than {MOST_JSON} bytes")
    try:
        return read_json(bytes(content))
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


def servers(nodes: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Host and web address of each NodeManager among the *nodes* that are listed."""
    listed = [(str(node.get("nodeHostName")), str(node.get("nodeHTTPAddress"))) for node in nodes]
    return [pair for pair in listed if _NODE.fullmatch(pair[0]) and ADDRESS.fullmatch(pair[1])]


def ran_on(address: str, hadoop: str) -> RanOn:
    """What tasks run on beside the NodeManager at *address*: Java and kernel by its JVM."""

    def bean(kind: str) -> Mapping[str, Any]:
        try:
            answer = get_json(address, f"/jmx?qry=java.lang:type={kind}")
        except ClusterError:
            return {}
        return next(iter(elements(answer, "beans")), {})

    runtime = bean("Runtime")
    system = bean("OperatingSystem")
    listed = elements(runtime, "SystemProperties")
    properties = {str(entry.get("key")): entry.get("value") for entry in listed}
    java = properties.get("java.runtime.version") or runtime.get("VmVersion")
    return RanOn(hadoop, version_text(java), version_text(system.get("Version")))


class _LogSource(NamedTuple):
    """Where logs of a container may be: the path that lists them, that below which they are."""

    address: str
    listing: str
    content: str

    def log_names(self) -> list[str]:
        """Plain names of the logs that are there; none where the service does not answer."""
        try:
            answer = get_json(self.address, self.listing)
        except RefusedArchiveError:
            raise
        except ClusterError:  # the logs are not here, whatever the reason
            return []
        infos = elements(answer, "containerLogsInfo") or elements(
            answer, "containerLogsInfoes", "containerLogsInfo"
        )
        log_names = set[str]()
        for info in infos:
            listed = elements(info, "containerLogInfo")
            log_names |= {str(log_file.get("fileName")) for log_file in listed}
        return sorted(filter(LOG.fullmatch, log_names))


def copy_logs(
    hosts: Mapping[str, str], managers: Sequence[tuple[str, str]], history: str, into: Path
) -> list[Path]:
    """
    Copy all logs of containers, which ran on *hosts*, to ``into/<host>/<container>/<file>``.

    Asks the NodeManagers on a container's host (*managers* are hosts and addresses), all where
    none has its name, then the history server at *history*.  A container whose logs nobody has is
    left out.
    """
    copied = []
    for container, host in hosts.items():
        if not CONTAINER.fullmatch(container) or not _NODE.fullmatch(host):
            continue
        for source in _log_sources(container, host, managers, history):
            log_names = source.log_names()
            folder = into / host / container
            for log_name in log_names:
                folder.mkdir(parents=True, exist_ok=True)
                _copy_log(source.address, f"{source.content}/{log_name}", folder / log_name)
                copied.append(folder / log_name)
            if log_names:
                break
    return copied


def _log_sources(
    container: str, host: str, managers: Sequence[tuple[str, str]], history: str
) -> list[_LogSource]:
    """Where logs of a *container* may be, the likeliest place first."""
    near = [manager for manager in managers if manager[0] == host]
    on_node = f"/ws/v1/node/containers/{container}/logs"
    gathered = f"/ws/v1/history/containers/{container}/logs"
    content = f"/ws/v1/history/containerlogs/{container}"
    return [
        *(_LogSource(address, on_node, on_node) for _, address in near or managers),
        _LogSource(history, gathered, content),
    ]


def _copy_log(address: str, url_path: str, target: Path) -> None:
    """Copy one log, without what the service writes around it: its length is in a line before."""
    with _get(address, url_path, "*/*") as pieces:
        begin = b""
        header = None
        for piece in pieces:
            begin += piece
            if (header := _HEADER.match(begin)) or len(begin) > _MOST_HEADER:
                break
        lengths = _LENGTH.findall(header[0]) if header else []
        missing = int(lengths[-1]) if lengths else -1
        if header is None or not 0 <= missing <= MOST_LOG:
            raise _answer_error(
                address, url_path, "a log without its length, or one that is too long"
            )
        with target.open("wb") as copy:
            for piece in chain([begin[header.end() :]], pieces):
                missing -= copy.write(piece[:missing])
                if not missing:
                    return
        raise _answer_error(address, url_path, f"a log ends {missing} bytes early")


def list_in_hdfs(namenode: str, folder: str) -> list[dict[str, Any]]:
    """Entries of a folder in HDFS, as its REST interface lists them; `ClusterError` where not."""
    return elements(
        get_json(namenode, _hdfs_path(folder, "LISTSTATUS")), "FileStatuses", "FileStatus"
    )


@contextmanager
def open_in_hdfs(namenode: str, path: str) -> Iterator[Iterator[bytes]]:
    """Pieces of a file in HDFS as they come; any failure meanwhile is `ClusterError`."""
    with _get(namenode, _hdfs_path(path, "OPEN"), "*/*", is_redirected=True) as pieces:
        yield pieces


def _hdfs_path(path: str, operation: str) -> str:
    return f"/webhdfs/v1{quote(path)}?{urlencode({'op': operation, 'user.name': user_name()})}"


@contextmanager
def _get(
    address: str,
    url_path: str,
    accept: str,
    limit_s: float = TIMEOUT_S,
    *,
    is_redirected: bool = False,
) -> Iterator[Iterator[bytes]]:
    """
    Pieces of the answer to a GET as they come; any failure meanwhile is `ClusterError`.

    One that *is_redirected* comes from another server, whose address is the first answer.
    """
    with extra(CLUSTERS):
        import requests
        import urllib3

        from harness.clusters.existing.patience import PatientAdapter, slowness_in

    headers = {"Accept": accept, "Accept-Encoding": "identity"}
    try:
        with requests.Session() as session:
            session.trust_env = False  # neither proxies nor credentials of this user
            session.mount("http://", PatientAdapter())
            get = partial(_open, session, headers=headers, timeout=limit_s)
            url = f"http://{address}{url_path}"
            if is_redirected:
                with get(url) as response:
                    if (moved := response.headers.get("Location", "")).startswith("http://"):
                        url = moved
            with get(url) as response:
                if response.status_code != _OK:
                    reason = f"status {response.status_code}{_refusal(response)}"
                    raise _answer_error(address, url_path, reason)
                yield in_time(_received(response), f"http://{address}{url_path}")
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        if (slow := slowness_in(error)) is not None:
            fix = "see what slows the host or its network down; then repeat"
            where = f"http://{address}{url_path}"
            raise RefusedArchiveError(str(slow), where=where, fix=fix) from error
        raise _answer_error(address, url_path, system_reason(error)) from error


def _open(session: Any, url: str, **options: Any) -> Any:
    """Ask for *url*; `RequestException` also for a head of an answer that nobody can read."""
    import requests

    try:
        return session.get(url, stream=True, allow_redirects=False, **options)
    except requests.RequestException:
        raise
    except ValueError as error:  # of an address in it, which is looked at in any case
        raise requests.exceptions.InvalidHeader(f"a malformed answer: {error}") from error


def _received(response: Any) -> Iterator[bytes]:
    """Pieces of an answer; `RequestException` where one has a size that there is not."""
    import requests

    try:
        yield from iter(lambda: response.raw.read1(_CHUNK), b"")
    except (ValueError, OverflowError) as error:
        raise requests.exceptions.ChunkedEncodingError(f"a malformed answer: {error}") from error


def _refusal(response: Any) -> str:
    """What Hadoop says in an answer that is a refusal, if anything."""
    try:
        message = inner(read_json(response.raw.read(_MOST_HEADER)), "RemoteException")["message"]
    except (ValueError, KeyError):
        return ""
    return f", {str(message).partition(chr(10))[0]}"


def _answer_error(address: str, url_path: str, reason: str) -> ClusterError:
    return ClusterError(
        f"no answer from {address}: {excerpt(reason, 200)}",
        where=f"http://{address}{url_path}",
        fix="see whether the cluster runs, and whether this machine can reach it",
    )
