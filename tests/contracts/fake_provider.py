"""
A provider whose nodes are folders of this machine: the least that the contract asks for.

Its daemons are processes that do nothing (`tests.contracts.fake_hadoop`).
"""

import json
import os
import signal
import subprocess
import sys
import time

from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from harness import clusters as providers
from harness.base.hadoop import daemons
from harness.base.hadoop.daemons import Layout, Member, make_members
from harness.base.records.trial import ClusterSpec
from harness.clusters import state
from harness.clusters.base import Cluster
from harness.clusters.host import LocalHost

PROJECT = Path(__file__).parents[2]
FATAL = "dfs.datanode.failed.volumes.tolerated"


class FakeCluster(Cluster):
    """
    A cluster of small processes.
    """

    provider = "fake"
    description = "for tests"
    supervisors: ClassVar = {}

    @classmethod
    def attach(cls, name):
        saved_state = state.StateFile.load(name)
        return cls(name, saved_state.spec if saved_state else ClusterSpec(), None)

    @classmethod
    def _end(cls, name):
        with suppress(FileNotFoundError, ProcessLookupError):
            group = int((state.cluster_folder(name) / "keeper").read_text())
            os.killpg(group, signal.SIGKILL)
            while living(group):
                time.sleep(0.01)
        if supervisor := cls.supervisors.pop(name, None):
            supervisor.stdout.close()
            supervisor.wait()

    def is_up(self):
        try:
            os.kill(int((self.folder / "keeper").read_text()), 0)
        except (FileNotFoundError, ProcessLookupError):
            return False
        return True

    @property
    def layout(self):
        names = [m.name for m in make_members(self.spec.workers)]
        members = tuple(Member(name, "127.0.0.1") for name in names)
        return Layout(members, str(self.folder), "/no/home")

    @property
    def hosts(self):
        return [
            LocalHost(m.name, m.address, self.layout.data(m), self._wrap, dict(os.environ))
            for m in self.layout.members
        ]

    def _wrap(self, argv):
        if not self.is_up():
            raise self.not_up_error()
        return list(argv)

    @property
    def services(self):
        address = f"127.0.0.1:{(self.folder / 'port').read_text()}"
        return dict.fromkeys(("nn", "rm", "jhs"), address)

    def _supervision(self):
        return {"deaths": str(self.folder / "deaths")}

    def _start(self):
        with self._claiming():
            state.StateFile(name=self.name, spec=self.spec).save()
        for member in self.layout.members:
            Path(self.layout.data(member)).mkdir(parents=True)
        plan = {"deaths": str(self.folder / "deaths"), "daemons": list(map(self._plan, self._all))}
        (self.folder / "plan.json").write_text(json.dumps(plan))
        program = [sys.executable, "-m", "tests.contracts.fake_hadoop"]
        supervisor = subprocess.Popen(
            [*program, str(self.folder / "plan.json")], cwd=PROJECT, stdout=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        self.supervisors[self.name] = supervisor
        (self.folder / "keeper").write_text(str(supervisor.pid))
        (self.folder / "port").write_text(supervisor.stdout.readline().decode().strip())

    @property
    def _all(self):
        return daemons.daemons(self.layout)

    def _plan(self, daemon):
        return {
            "key": daemon.key,
            "marks": [f"-Dproc_{daemon.kind}", self.layout.conf(daemon.member)],
            "fails": daemon.kind == "datanode" and FATAL in self.spec.site,
        }

    def java_on(self, host):
        return "java"

    def python_on(self, host):
        return sys.executable

    def dead_daemons(self):
        names = {d.key: d.name for d in self._all}
        try:
            lines = (self.folder / "deaths").read_text().splitlines()
        except FileNotFoundError:
            return {} if self.is_up() else dict.fromkeys(names.values(), "died")
        return {names[json.loads(line)["key"]]: "died" for line in lines}

    def daemon_logs(self, lines=20):
        return {d.name: "its last line" for d in self._all}

    def container_logs(self, application_id, into):
        return []


def living(group):
    """
    Processes of a group that have not ended.
    """
    processes = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit():
                status, _, process_group = (
                    (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                )
                processes += [entry.name] * (int(process_group) == group and status not in "ZX")
    return processes


def register():
    """
    Make it known in this process.
    """
    providers.PROVIDERS = {**providers.PROVIDERS, "fake": FakeCluster}
