"""
What the owner of a cluster waits for while others do something to it.
"""

import statistics
import subprocess
import time

from dataclasses import dataclass
from pathlib import Path

from harness import clusters as providers
from tests.live.runs import PROGRAM

MOST_S = 3.0
LIMIT_S = 240


@dataclass(frozen=True)
class Owner:
    """
    Who asks a cluster, as the harness does and as a client of Hadoop.
    """

    cluster: providers.Cluster
    folder: Path

    def ask(self):
        """
        Seconds until there is an answer to each question.
        """
        return {
            "files by HTTP": seconds_of(lambda: self.cluster.hdfs.list("/")),
            "files by RPC": seconds_of(self.list_by_rpc),
            "status": seconds_of(self.status),
        }

    def ask_until(self, future):
        """
        All of each kind, asked again and again until *future* is done.
        """
        asked = [self.ask()]
        while not future.done():
            asked.append(self.ask())
        return {kind: [answers[kind] for answers in asked] for kind in asked[0]}

    def list_by_rpc(self):
        """
        `hdfs dfs -ls /`, with the start of its JVM.
        """
        log = self.folder / "ls.log"
        client = self.cluster.client("org.apache.hadoop.fs.FsShell", ["-ls", "/"], log=log)
        assert client.wait(LIMIT_S) == 0, log.read_text()

    def status(self):
        """
        `harness cluster status`, with the start of its Python.
        """
        argv = [*PROGRAM, "cluster", "status", "--name", self.cluster.name]
        subprocess.run(argv, check=True, capture_output=True, timeout=LIMIT_S)


def seconds_of(action):
    """
    How long it takes.
    """
    started = time.monotonic()
    action()
    return round(time.monotonic() - started, 1)


def slower(before, meanwhile):
    """
    What took too long, as a rule; a machine that others use takes a multiple of it anyway.
    """
    return [
        kind
        for kind, seconds in meanwhile.items()
        if statistics.median(seconds) > MOST_S + 2 * before[kind]
    ]
