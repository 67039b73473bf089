"""
Wait for a cluster on one of its nodes: one process that looks, and answers once.

    node.pyz health < REQUEST      (one JSON object; the answer is one JSON line)

    {"until": "healthy", "master", "services", "workers": {...}, "limit_s",
     "deaths": FILE?, "control": PIPE?, "start": KEY?}
        healthy: live DataNodes = active NodeManagers = workers, and the history server answers.
        *services* says where daemons answer, {"nn", "rm", "jhs"} as "host:port", and perhaps the
        file with the cluster's "secret"; *master* is the name of their node in the answer.
        *workers* maps names of nodes to what the masters call their daemons, {"datanode",
        "nodemanager"} as "host" or "host:port".
        With *control*, the history server is started by a line to that pipe once HDFS answers
        (started earlier it sleeps 10 s between its tries).
    {"until": "idle", "master", "services", "limit_s", "deaths": FILE?, "ended": [job, ...], "user"}
        idle: no application runs or waits, and none has a container.  The application masters of
        jobs that have *ended* are sent away: each would sleep for 5 s, with its memory.

    answer: {"ok": bool, "missing": [daemon, ...], "died": {key: "died" or what else it has done}}
"""

import json
import sys
import time

from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Tuple
from urllib.parse import urlencode

from .hdfs import WebError, read_json, send

_PAUSE_S = 0.05
_WORKER_KINDS = ("datanode", "nodemanager")
# whose answer a daemon waits for, or is known by
_NEEDS = {"historyserver": "namenode", "datanode": "namenode", "nodemanager": "resourcemanager"}


def main(_arguments: List[str]) -> None:
    """Answer the request on standard input: look until it is so, a daemon died, or time is over."""
    request = json.load(sys.stdin)
    look = HealthCheck(request).look if request["until"] == "healthy" else IdleCheck(request).look
    started = time.monotonic()
    while True:
        missing = look()
        died = dict(read_deaths(request.get("deaths")))
        if not missing or died or time.monotonic() - started > request["limit_s"]:
            break
        time.sleep(_PAUSE_S)
    print(json.dumps({"ok": not missing and not died, "missing": missing, "died": died}))


def read_deaths(deaths: Optional[str]) -> List[Tuple[str, str]]:
    """Keys of the daemons that the supervisor has seen end or hang, and which, from its file."""
    try:
        lines = Path(deaths).read_text().splitlines() if deaths else []
    except FileNotFoundError:
        return []
    entries = map(json.loads, lines)
    return [(death["key"], describe_ending(death.get("unanswered_s"))) for death in entries]


def describe_ending(unanswered_s: Any) -> str:
    """What a daemon has done, behind its name: it died, unless it does not answer since then."""
    return f"has not answered for {unanswered_s} s" if unanswered_s else "died"


class HealthCheck:
    """
    Each daemon has to answer once.

    Masters are asked for their JMX beans: the first request to a REST service costs its daemon a
    second of work, which would be taken from the others' start.
    """

    def __init__(self, request: Dict[str, Any]) -> None:
        self.request = request
        self.services = request["services"]
        self.master = request["master"]
        self.workers = request["workers"]
        self.left = ["namenode", "resourcemanager", "datanode", "nodemanager", "historyserver"]

    def look(self) -> List[str]:
        """Names of the daemons that have not answered yet."""
        missing: List[str] = []
        for daemon_kind in list(self.left):
            nodes = self.missing_nodes(daemon_kind)
            if not nodes:
                self.left.remove(daemon_kind)
                if daemon_kind == "namenode" and self.request.get("control"):
                    with Path(self.request["control"]).open("w") as control:
                        control.write(f"start {self.request['start']}\n")
            missing += [f"{daemon_kind} on {node_name}" for node_name in nodes]
        return missing

    def missing_nodes(self, daemon_kind: str) -> List[str]:
        """Nodes whose *daemon_kind* does not answer, or is not known to its master."""
        nodes = sorted(self.workers) if daemon_kind in _WORKER_KINDS else [self.master]
        if _NEEDS.get(daemon_kind) in self.left:
            return nodes
        if daemon_kind in _WORKER_KINDS:
            return self.absent_workers(daemon_kind, self.live_daemons(daemon_kind))
        return [] if self.master_answers(daemon_kind) else nodes

    def master_answers(self, daemon_kind: str) -> bool:
        """Whether a daemon of the master answers, and the NameNode has left its safe mode."""
        if daemon_kind == "namenode":
            state = self.bean("nn", "NameNode", "FSNamesystemState").get("FSState")
            role = self.bean("nn", "NameNode", "NameNodeStatus").get("State")
            return (state, role) == ("Operational", "active")
        if daemon_kind == "resourcemanager":
            return "NumActiveNMs" in self.bean("rm", "ResourceManager", "ClusterMetrics")
        return bool(self.bean("jhs", "JobHistoryServer", "JvmMetrics"))

    def live_daemons(self, daemon_kind: str) -> List[str]:
        """What their master calls the daemons of workers that it knows as live: ``host:port``."""
        if daemon_kind == "datanode":
            info = self.bean("nn", "NameNode", "NameNodeInfo")
            return list(json.loads(info.get("LiveNodes") or "{}"))
        info = self.bean("rm", "ResourceManager", "RMNMInfo")
        listed = json.loads(info.get("LiveNodeManagers") or "[]")
        return [str(node.get("NodeId")) for node in listed if node.get("State") == "RUNNING"]

    def bean(self, service_key: str, service: str, bean: str) -> Dict[str, Any]:
        """A JMX bean of a master's daemon, empty while there is none."""
        address = self.services.get(service_key, "")
        return jmx_bean(address, self.services.get("secret", ""), service, bean)

    def absent_workers(self, daemon_kind: str, live: Iterable[str]) -> List[str]:
        """Workers whose *daemon_kind* is not among those *live*, ``host:port`` each."""
        live_names = set()
        for bean_name in live:
            live_names |= {bean_name, bean_name.rpartition(":")[0]}
        return sorted(
            worker
            for worker, names in self.workers.items()
            if daemon_kind in names and names[daemon_kind] not in live_names
        )


class IdleCheck:
    """
    What still runs; also the last application master, which lingers after its job.

    The ResourceManager is asked by REST: metrics beans are up to 10 s old.
    """

    def __init__(self, request: Dict[str, Any]) -> None:
        self.master = request["master"]
        self.services = request["services"]
        self.user = request["user"]
        self.ids_left = [job.partition("_")[2] for job in request["ended"]]

    def look(self) -> List[str]:
        """Counts of what has not ended, each with its name; none where all is idle."""
        self.ids_left = [app_id for app_id in self.ids_left if not self.send_away(app_id)]
        counts = self.cluster_object("/metrics").get("clusterMetrics") or {}
        names = (
            "appsRunning",
            "appsPending",
            "containersAllocated",
            "containersPending",
            "containersReserved",
        )
        if any(count_name not in counts for count_name in names):
            return [f"resourcemanager on {self.master}"]
        return [f"{counts[count_name]} {count_name}" for count_name in names if counts[count_name]]

    def send_away(self, app_id: str) -> bool:
        """
        Tell the master of an application to end, once it only sleeps; whether it was told.

        Before the ResourceManager calls the application finished, its end would be a failure.  One
        that has another number than a first one, or that is refused, sleeps on.
        """
        application = self.cluster_object(f"/apps/application_{app_id}").get("app") or {}
        if application.get("state") != "FINISHED":
            return False
        container = f"container_{app_id}_01_000001"
        query = urlencode({"user.name": self.user})
        path = f"/ws/v1/cluster/containers/{container}/signal/GRACEFUL_SHUTDOWN?{query}"
        with suppress(OSError, WebError):
            send(self.services["rm"], "POST", path, b"", self.secret, timeout_s=5).close()
        return True

    def cluster_object(self, path: str) -> Dict[str, Any]:
        """What the ResourceManager answers about the cluster, empty while it does not."""
        return fetch_object(self.services["rm"], f"/ws/v1/cluster{path}", self.secret)

    @property
    def secret(self) -> str:
        """The file with the header that the cluster asks for, if any."""
        return str(self.services.get("secret", ""))


def jmx_bean(address: str, secret: str, service: str, bean: str) -> Dict[str, Any]:
    """A JMX bean of a daemon, empty while there is none."""
    query = f"/jmx?qry=Hadoop:service={service},name={bean}"
    beans = fetch_object(address, query, secret).get("beans")
    return next(iter(beans or []), {})


def fetch_object(address: str, path: str, secret: str) -> Dict[str, Any]:
    """The JSON object that the daemon at ``host:port`` answers, empty while it does not."""
    try:
        headers = {"Accept": "application/json"}
        with send(address, "GET", path, secret=secret, headers=headers, timeout_s=5) as reply:
            answer = read_json(reply) if reply.status == 200 else {}
    except (OSError, WebError, ValueError):
        return {}
    return answer if isinstance(answer, dict) else {}
