"""
Wait for a cluster from the inside: one process that looks, and answers once.

    python -I -S waiter.py < QUESTION      (one JSON object; the answer is one JSON line)

    {"until": "healthy", "master", "services", "workers": {...}, "limit_s",
     "deaths": FILE?, "control": PIPE?, "start": KEY?}
        healthy: live DataNodes = active NodeManagers = workers, and the history server answers.
        *services* says where to ask, {"nn", "rm", "jhs"} as "host:port"; *master* is the name of
        the node that they are on, for what is told.  *workers* maps names to what the masters
        call their daemons, {"datanode", "nodemanager"} as "host" or "host:port".
        With *control*, the history server is started by a line to that pipe once HDFS answers
        (started earlier it sleeps 10 s between its tries).
    {"until": "idle", "master", "services", "limit_s", "deaths": FILE?}
        idle: no application runs or waits, and none holds a container.

    answer: {"ok": bool, "silent": [daemon, ...], "died": [key, ...], "seen": {...}, "seconds"}
"""

from __future__ import annotations

import http.client
import json
import sys
import time

from collections.abc import Iterable
from pathlib import Path
from typing import Any

PAUSE_S = 0.05


def main() -> None:
    """Answer the question on standard input."""
    question = json.load(sys.stdin)
    look = Healthy(question).look if question["until"] == "healthy" else Idle(question).look
    sys.stdout.write(json.dumps(wait(look, question)) + "\n")


def wait(look: Any, question: dict[str, Any]) -> dict[str, Any]:
    """Look until it is so, until a daemon has died, or until the time is over."""
    begin = time.monotonic()
    while True:
        silent = look()
        seconds = time.monotonic() - begin
        died = deaths(question.get("deaths"))
        if not silent or died or seconds > question["limit_s"]:
            ok = not silent and not died
            return {"ok": ok, "silent": silent, "died": died, "seconds": seconds}
        time.sleep(PAUSE_S)


class Healthy:
    """
    The health gate: each daemon is asked until it has answered once.

    All are asked for their JMX beans: the first request to a REST service costs its daemon a second
    of work, which would be taken from the others' start.
    """

    def __init__(self, question: dict[str, Any]) -> None:
        self.master, self.workers = question["master"], question["workers"]
        self.services = question["services"]
        self.question = question
        self.left = ["namenode", "resourcemanager", "datanode", "nodemanager", "historyserver"]

    def look(self) -> list[str]:
        """Names of the daemons that are still silent."""
        silent: list[str] = []
        for kind in list(self.left):
            missing = self._missing(kind)
            if not missing:
                self.left.remove(kind)
                if kind == "namenode":
                    self._start_history()
            silent += [f"{kind} on {host}" for host in missing]
        return silent

    def _missing(self, kind: str) -> list[str]:
        """Hosts on which *kind* is silent; who is known by another only is not asked for early."""
        known_by = {"datanode": "namenode", "nodemanager": "resourcemanager"}.get(kind)
        if known_by in self.left:
            return sorted(self.workers)
        if kind == "historyserver" and "namenode" in self.left:
            return [self.master]
        hosts: list[str] = getattr(self, kind)()
        return hosts

    def namenode(self) -> list[str]:
        """The NameNode is out of safe mode."""
        state = bean(self.services["nn"], "NameNode", "FSNamesystemState").get("FSState")
        active = bean(self.services["nn"], "NameNode", "NameNodeStatus").get("State")
        return [] if (state, active) == ("Operational", "active") else [self.master]

    def datanode(self) -> list[str]:
        """The NameNode hears every DataNode."""
        info = bean(self.services["nn"], "NameNode", "NameNodeInfo")
        live = json.loads(info.get("LiveNodes") or "{}")
        return self._absent("datanode", live)

    def resourcemanager(self) -> list[str]:
        """The ResourceManager counts its nodes."""
        counts = bean(self.services["rm"], "ResourceManager", "ClusterMetrics")
        return [] if "NumActiveNMs" in counts else [self.master]

    def nodemanager(self) -> list[str]:
        """The ResourceManager hears every NodeManager."""
        info = bean(self.services["rm"], "ResourceManager", "RMNMInfo")
        listed = json.loads(info.get("LiveNodeManagers") or "[]")
        running = [n for n in listed if n.get("State") == "RUNNING"]
        return self._absent("nodemanager", [str(n.get("NodeId")) for n in running])

    def historyserver(self) -> list[str]:
        """The history server answers."""
        info = bean(self.services["jhs"], "JobHistoryServer", "JvmMetrics")
        return [] if info else [self.master]

    def _absent(self, kind: str, heard: Iterable[str]) -> list[str]:
        """Workers whose *kind* is not among those *heard*, ``host:port`` each."""
        known = {form for name in heard for form in (name, name.rpartition(":")[0])}
        asked = {worker: names[kind] for worker, names in self.workers.items() if kind in names}
        return sorted(worker for worker, name in asked.items() if name not in known)

    def _start_history(self) -> None:
        if self.question.get("control"):
            with Path(self.question["control"]).open("w") as control:
                control.write(f"start {self.question['start']}\n")


class Idle:
    """
    Nothing runs: the last application master, which lingers after its job, has gone too.

    Asked of the REST service: the metrics beans are up to 10 s old.
    """

    def __init__(self, question: dict[str, Any]) -> None:
        self.master, self.service = question["master"], question["services"]["rm"]

    def look(self) -> list[str]:
        """What is still there; the beans would not do: they are up to 10 s old."""
        path = "/ws/v1/cluster/metrics"
        counts = fetch(self.service, path).get("clusterMetrics") or {}
        names = (
            "appsRunning", "appsPending",
            "containersAllocated", "containersPending", "containersReserved",
        )  # fmt: skip
        if any(name not in counts for name in names):
            return [f"resourcemanager on {self.master}"]
        return [f"{counts[name]} {name}" for name in names if counts[name]]


def bean(where: str, service: str, name: str) -> dict[str, Any]:
    """A JMX bean of a daemon, empty while there is none."""
    beans = fetch(where, f"/jmx?qry=Hadoop:service={service},name={name}").get("beans")
    return next(iter(beans or []), {})


def fetch(where: str, path: str) -> dict[str, Any]:
    """The JSON object that the daemon at ``host:port`` answers, empty while it does not."""
    connection = http.client.HTTPConnection(where, timeout=5)
    try:
        connection.request("GET", path, headers={"Accept": "application/json"})
        with connection.getresponse() as reply:
            value = json.loads(reply.read()) if reply.status == 200 else {}
        return value if isinstance(value, dict) else {}
    except (OSError, http.client.HTTPException, ValueError):
        return {}  # silence is an answer here
    finally:
        connection.close()


def deaths(file: str | None) -> list[str]:
    """Keys of the daemons that the holder has seen die."""
    try:
        lines = Path(file).read_text().splitlines() if file else []
    except FileNotFoundError:
        return []
    return [json.loads(line)["key"] for line in lines]


if __name__ == "__main__":
    main()
