"""
The daemons of a cluster in small: processes that do nothing, and one that answers for them.

    python fake_hadoop.py PLAN      (prints the port on which it answers, then stays)

It does what a supervisor and the masters of a cluster do as far as it is seen from outside: who has
died is written down, the health beans count who lives, and files are kept as WebHDFS.
"""

import http.server
import json
import subprocess
import sys
import threading
import time

from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from tests.fake_webhdfs import FakeWebHdfs

COUNTS = [
    "appsRunning", "appsPending", "containersAllocated", "containersPending", "containersReserved",
]  # fmt: skip
IDLER = "import time; time.sleep(600)"


class Daemons:
    """
    One process per daemon of the plan; those that *fail* end at once.
    """

    def __init__(self, plan):
        self.deaths = Path(plan["deaths"])
        # They live for a moment, in which they do not register: a health check may be faster.
        self.failing = {d["key"] for d in plan["daemons"] if d["fails"]}
        self.running = {
            d["key"]: subprocess.Popen(
                [sys.executable, "-c", "pass" if d["fails"] else IDLER, *d["marks"]]
            )
            for d in plan["daemons"]
        }

    def bury(self):
        for key, process in list(self.running.items()):
            if process.poll() is not None:
                del self.running[key]
                with self.deaths.open("a") as deaths:
                    deaths.write(json.dumps({"key": key, "status": process.returncode}) + "\n")

    def nodes(self, kind):
        keys = (key for key in list(self.running) if key not in self.failing)
        return [key.partition("-")[2] for key in keys if key.startswith(f"{kind}-")]


class Masters(FakeWebHdfs):
    """
    All web services at one address.
    """

    files: ClassVar = {}
    cut = 0

    def do_GET(self):  # noqa: N802 - the library's name
        url = urlsplit(self.path)
        if url.path == "/ws/v1/cluster/metrics":
            return self.answer(
                200, json.dumps({"clusterMetrics": dict.fromkeys(COUNTS, 0)}).encode()
            )
        if url.path == "/jmx":
            bean = self.bean(url.query.rpartition(":")[2])
            return self.answer(200, json.dumps({"beans": [bean]}).encode())
        return super().do_GET()

    def bean(self, query):
        live = json.dumps({f"{name}:9866": {} for name in self.daemons.nodes("datanode")})
        hosts = [
            {"NodeId": f"{n}:8041", "State": "RUNNING"} for n in self.daemons.nodes("nodemanager")
        ]
        return {
            "service=NameNode,name=FSNamesystemState": {"FSState": "Operational"},
            "service=NameNode,name=NameNodeStatus": {"State": "active"},
            "service=NameNode,name=NameNodeInfo": {"LiveNodes": live},
            "service=ResourceManager,name=ClusterMetrics": {"NumActiveNMs": len(hosts)},
            "service=ResourceManager,name=RMNMInfo": {"LiveNodeManagers": json.dumps(hosts)},
            "service=JobHistoryServer,name=JvmMetrics": {"GcCount": 0},
        }[query]


def main():
    """
    Serve until killed.
    """
    Masters.daemons = Daemons(json.loads(Path(sys.argv[1]).read_text()))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Masters)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    while True:
        Masters.daemons.bury()
        time.sleep(0.02)


if __name__ == "__main__":
    main()
