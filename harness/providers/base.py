"""
What is the same for every provider: a cluster as a gateway, hosts and a layout.

A provider says where its nodes lie (`Cluster.hosts`, `Cluster.layout`), makes and removes them, and
brings evidence; all else, from the health gate to the client of a job, is done here through the
hosts' doors.  The *gateway* is the host on which clients run: the master, unless a provider says
otherwise.

Nothing here takes for granted that a host sees this machine's files, or has Java and Hadoop where
this machine has them.
"""

from __future__ import annotations

import json
import time

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from harness.errors import ClusterError, SpecError
from harness.hadoop import daemons, site
from harness.hadoop.layout import Layout, Member
from harness.hadoop.tracing import task_properties
from harness.hadoop_home.checksums import file_digest
from harness.hadoop_home.home import HadoopHome
from harness.providers import gate
from harness.providers import state as states
from harness.providers.hdfs import Hdfs
from harness.providers.host import Host, HostTimeoutError, Running, ended, from_json, put_down
from harness.providers.ids import application_name
from harness.providers.limits.calibrate import unsupported_limits
from harness.providers.versions import RanOn, ask
from harness.records.hardware import Limit
from harness.records.trial import ClusterSpec, Tracing

UP_LIMIT_S = 180.0
_LOOK_S = 0.5

State = Literal["ok", "note", "lacking"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What `harness doctor` found of one thing, and *fix*, the command that repairs it."""

    name: str
    state: State
    what: str
    fix: str = ""


class Cluster(ABC):
    """
    A Hadoop cluster, whoever makes it; use it as a context manager.

    A provider is a subclass and its line in `harness.providers.PROVIDERS`; all that others need to
    know of it is declared here, and has a default.
    """

    provider: ClassVar[str]
    description: ClassVar[str]
    # names of the findings of `harness doctor` without which it cannot work, its own included
    needs: ClassVar[tuple[str, ...]] = ("system", "disk", "java", "hadoop home", "speed probe")
    # keys of `cluster` in an experiment file that it takes and others refuse; those it insists on
    extra_fields: ClassVar[frozenset[str]] = frozenset()
    required_fields: ClassVar[frozenset[str]] = frozenset()
    # whether it sets addresses, folders and slots itself, so that `cluster.site` cannot
    sets_site: ClassVar[bool] = True
    waiter_sees_all: ClassVar[bool] = True  # deaths on every node, not on its own alone
    user = "root"  # in whose name Hadoop is asked
    limitable: ClassVar[frozenset[str]] = frozenset()  # the fields of `Hardware` that it can set
    root = "/harness"  # of HDFS: all that experiments write lies below it
    traces: ClassVar[frozenset[str]] = frozenset({"spans", "units", "logs", "off"})
    on_this_machine: ClassVar[bool] = False  # its memory and disk are what the cluster lives on

    def __init__(self, name: str, spec: ClusterSpec, home: HadoopHome) -> None:
        """Describe a cluster; *home* is the Hadoop home of this machine."""
        self.name, self.spec, self.home = name, spec, home
        self.folder = states.cluster_folder(name)
        self.hdfs = Hdfs(lambda: self.gateway, self._door)
        self._brought: dict[tuple[str, Path], str] = {}

    # what each provider says in its own way

    @classmethod
    @abstractmethod
    def attach(cls, name: str) -> Self:
        """
        The cluster of that name, started by whichever process.

        `down` works whatever is left of it; all else raises `ClusterError` unless it `is_up`.
        """

    @staticmethod
    @abstractmethod
    def remove(name: str) -> bool:
        """Take a cluster down and remove all of it; `False`: there was none.  Safe to repeat."""

    @abstractmethod
    def is_up(self) -> bool:
        """Whether the cluster was started and can be entered; says nothing of its health."""

    @abstractmethod
    def _start(self) -> None:
        """
        Start nodes and daemons; all or nothing: what was begun is removed before an error leaves.

        `ClusterError` where the name is taken by a cluster that is up.  What a killed process left
        under the name is removed first.
        """

    @property
    @abstractmethod
    def hosts(self) -> Sequence[Host]:
        """The nodes, master first."""

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """Where the nodes find Hadoop, their configuration and their data."""

    @property
    @abstractmethod
    def java(self) -> str:
        """The ``java`` command of the gateway."""

    @abstractmethod
    def dead_daemons(self) -> list[str]:
        """Daemons that have ended (``datanode on worker2``); asked each second: to be cheap."""

    @abstractmethod
    def daemon_logs(self, lines: int = 20) -> dict[str, str]:
        """The last lines of every daemon's log, by its name; safe to print."""

    @abstractmethod
    def container_logs(self, application_id: str, into: Path) -> list[Path]:
        """Copy an application's logs of all nodes to ``into/<node>/<container>/<file>``."""

    # what a provider may have, too

    @staticmethod
    def doctor_checks() -> Mapping[str, Callable[[], Finding]]:
        """
        Checks of what this provider alone works with, for `harness doctor`, by finding.

        Each takes a few seconds at most and changes nothing.  A thing that nobody else needs is a
        note where it is missing; the provider `needs` it all the same.
        """
        return {}

    @staticmethod
    def gpus_per_node(workers: int) -> int:
        """GPUs that each of so many workers would have."""
        del workers
        return 0

    @classmethod
    def require_limits(cls, spec: ClusterSpec) -> None:
        """`MachineError` that names what of *spec* cannot be had here, by this user."""
        del spec

    @classmethod
    def look(cls, spec: ClusterSpec) -> str:
        """
        What is there already of the cluster that is asked for, in words; else nothing.

        `HarnessError` where it is there, or should be, and cannot be used.
        """
        del spec
        return ""

    @property
    def limits(self) -> dict[str, dict[str, Limit]]:
        """Limits of each limited node by their names: requested and measured."""
        return {}

    def forget(self) -> list[str]:
        """Let nodes with limited disks read blocks from there next, not from memory; who does."""
        return []

    def disk_bytes(self) -> dict[str, dict[str, int]]:
        """Bytes ``read`` and ``written`` by each limited disk since its cluster was started."""
        return {}

    @property
    def gateway(self) -> Host:
        """The host on which clients run."""
        return self.hosts[0]

    @property
    def python(self) -> str:
        """Python 3.9 or newer, on the gateway and on every node."""
        return "python3"

    def python_on(self, host: Host) -> str:
        """Python of one of the nodes."""
        del host
        return self.python

    def java_on(self, host: Host) -> str:
        """The ``java`` command of one of the nodes."""
        del host
        return self.java

    @property
    def watched(self) -> Sequence[Host] | None:
        """
        The hosts, master first, through which machines are asked for their speed and load.

        `None`: all nodes are on this machine, which is asked itself, outside of their limits.
        """
        return None if self.on_this_machine else self.hosts

    @property
    def tasks_archive(self) -> str | None:
        """The class-data archive of traced tasks, as nodes see it; `None`: they do without."""
        return None

    @property
    def losses(self) -> tuple[str, ...]:
        """What measurements on this cluster cannot show, or are distorted by; for people."""
        return ()

    def ran_on(self) -> dict[str, RanOn]:
        """What tasks run on, by the worker's name: the workers are asked."""
        workers, hadoop = self.hosts[1:], self.home.versions().hadoop

        def command(host: Host) -> list[str]:
            return self.agent(host, "facts", "versions")

        return {h.name: r for h, r in zip(workers, ask(workers, command, hadoop), strict=True)}

    @property
    def way_in(self) -> str:
        """What stands before a command that is to run in the cluster's network, for people."""
        return ""

    def out_of_memory(self) -> list[str]:
        """Where the kernel ended processes for want of memory since this was last asked; a text."""
        return []

    def daemon_pids(self) -> dict[str, int]:
        """Process id on this machine of each running daemon; nothing where they run elsewhere."""
        return {}

    def thread_dumps(self, into: Path) -> list[Path]:
        """
        Have every JVM of the cluster say what its threads do; one file each in the folder *into*.

        A provider that cannot ask has no files.
        """
        del into
        return []

    def _supervision(self) -> dict[str, Any]:
        """What the waiter is told of the daemons' supervisor: files of the gateway."""
        return {}

    # life

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.down()

    @classmethod
    def names(cls) -> list[str]:
        """Names of this provider's clusters that are up, or left something behind."""
        return [
            name for name in states.known_names() if states.provider_of(name) in (cls.provider, "")
        ]

    def up(self, limit_s: float = UP_LIMIT_S) -> None:
        """
        Start everything and return when it is healthy.

        `ClusterError` says who is silent or has died, with the last lines of its log; whatever was
        started is removed then.
        """
        if refused := site.refused_overrides(self.spec) if self.sets_site else []:
            raise SpecError("; ".join(refused), where="cluster.site", fix="leave them out")
        if refused := unsupported_limits(self.spec, self.limitable):
            raise SpecError("; ".join(refused), where=self.where, fix="leave them out")
        self._start()
        try:
            self._await_healthy(limit_s)
        except BaseException:
            self.down()
            raise

    def down(self) -> None:
        """End every process and remove every file of this cluster; safe to call twice."""
        self.remove(self.name)

    def _await_healthy(self, limit_s: float) -> None:
        question = {
            **self._question(limit_s),
            "workers": self._expected(),
        }
        gate.await_healthy(
            self._ask, question, where=self.where, log=lambda name: self.daemon_logs().get(name, "")
        )

    def _expected(self) -> dict[str, dict[str, str]]:
        """Which workers must be healthy, and what the masters call their daemons."""
        return {m.name: _known_as(m) for m in self.layout.workers}

    # doors

    @property
    def where(self) -> str:
        """The cluster, for errors."""
        return f"{self.provider} cluster {self.name!r}"

    @property
    def services(self) -> dict[str, str]:
        """Where the master's web services answer the gateway: ``nn``, ``rm`` and ``jhs``."""
        master = self.layout.master
        daemons_by = {"nn": "namenode", "rm": "resourcemanager", "jhs": "historyserver"}
        return {short: master.at(f"{daemon}_http") for short, daemon in daemons_by.items()}

    @property
    def endpoints(self) -> dict[str, str]:
        """Addresses, as the nodes know them."""
        master = self.layout.master
        return {
            "hdfs": f"hdfs://{master.at('namenode')}",
            **{
                kind: f"http://{master.address}:{master.port(f'{kind}_http')}"
                for kind in ("namenode", "resourcemanager", "historyserver")
            },
        }

    def gateway_path(self, path: Path) -> str:
        """Where the gateway has this machine's file *path*; it is brought there if need be."""
        return self.host_path(self.gateway, path)

    def host_path(self, host: Host, path: Path) -> str:
        """Where *host* has this machine's file *path*: once per content, in its own folder."""
        key = host.name, path
        if key not in self._brought:
            target = f"brought-{file_digest(path)[:12]}-{path.name}"
            host.put(path, target)
            self._brought[key] = f"{host.folder}/{target}"
        return self._brought[key]

    def agent_path(self, host: Host) -> str:
        """Where *host* has the node agent."""
        return self.host_path(host, states.agent_file())

    def agent(self, host: Host, verb: str, *arguments: str) -> list[str]:
        """Command line that runs one verb of the node agent (`harness.node`) on *host*."""
        return [self.python_on(host), "-I", "-S", self.agent_path(host), verb, *arguments]

    def not_up(self) -> ClusterError:
        """The error for what takes a cluster that is up."""
        return ClusterError(
            f"cluster {self.name!r} is not up",
            where=self.where,
            fix=f"harness cluster up --name {self.name}",
        )

    def _door(self, operation: Sequence[str]) -> list[str]:
        services = json.dumps({**self.services, "user": self.user})
        return self.agent(self.gateway, "hdfs", services, *operation)

    def _question(self, limit_s: float) -> dict[str, Any]:
        return {
            "master": self.layout.master.name,
            "services": self.services,
            "limit_s": limit_s,
            **self._supervision(),
        }

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Put a question to the waiter; an empty answer when the cluster is gone."""
        body, limit_s = json.dumps(question).encode(), question["limit_s"] + 60
        try:
            if self.waiter_sees_all:
                health = self.agent(self.gateway, "health")
                answer = from_json(self.gateway.run(health, limit_s, body).out)
            else:
                answer = self._ask_and_watch(body, time.monotonic() + limit_s)
        except (HostTimeoutError, BrokenPipeError, ValueError):
            return {}
        return answer if isinstance(answer, dict) else {}

    def _ask_and_watch(self, question: bytes, deadline: float) -> Any:
        """As `_ask`; deaths that the waiter cannot see end the wait from here."""
        waiter = self.gateway.open(self.agent(self.gateway, "health"))
        assert waiter.stdin is not None
        assert waiter.stdout is not None
        try:
            with waiter.stdin as stdin:
                stdin.write(question)
            while not ended(waiter, _LOOK_S):
                if dead := self.dead_daemons():
                    return {"ok": False, "died": [name.replace(" on ", "-") for name in dead]}
                if time.monotonic() > deadline:
                    return {}
            return from_json(waiter.stdout.read())
        finally:
            put_down(waiter)

    # work

    def client(
        self, main_class: str, args: Sequence[str], *, log: Path, jars: Sequence[Path] = ()
    ) -> Running:
        """
        Start a client JVM on the gateway, its output into *log*; *jars* join its class path.

        The caller polls it, limits its time, and may kill it: the JVM there ends with it.
        """
        more = [self.gateway_path(jar) for jar in jars]
        argv = daemons.client_argv(self.java, self.layout, main_class, args, more)
        return self.gateway.start(argv, log)

    def http_json(self, url_path: str, service: str = "rm") -> Any:
        """JSON that a daemon of the master answers: *service* is rm, nn or jhs."""
        try:
            return from_json(self.hdfs.call("get", service, url_path))
        except ValueError as error:
            raise ClusterError(
                "it answers no JSON",
                where=f"web service: {service} {url_path}",
                fix="harness cluster logs",
            ) from error

    def kill_application(self, application_id: str) -> None:
        """Ask the ResourceManager to end an application."""
        application = application_name(application_id)
        path = f"/ws/v1/cluster/apps/{application}/state?user.name={self.user}"
        self.hdfs.call("put", "rm", path, body=b'{"state": "KILLED"}')

    def silent_daemons(self) -> list[str]:
        """
        Daemons that the masters hear no more, whatever their processes do.

        A node whose network is lost is given up after some 10 s.
        """
        question = {**self._question(0.0), "workers": self._expected()}
        question.pop("control", None)  # nothing is to be started
        return gate.silent_daemons(self._ask, question)

    def await_idle(self, timeout_s: float = 60.0) -> None:
        """Return when no application runs or holds a container; `ClusterError` at the time-out."""
        gate.await_idle(self._ask, self._question(timeout_s), where=self.where)

    def site_properties(self) -> dict[str, str]:
        """The cluster-wide properties in force, as a client on the gateway sees them."""
        return site.merged(site.site_files(self.spec, self.layout, self.layout.master))

    def history_folders(self, job: str) -> Sequence[str]:
        """Folders of HDFS below which the history of *job* lies when it has ended."""
        del job
        known = self.site_properties()
        return [known[key] for key in site.HISTORY_KEYS]

    def trace_properties(
        self, tracing: Tracing, configuration: Mapping[str, str]
    ) -> dict[str, str]:
        """Properties to add to a job's own, *configuration*, so that its tasks are traced."""
        return task_properties(
            tracing.mode, self.layout, self.spec, configuration,
            archive=self.tasks_archive, unit=tracing.unit_records,
        )  # fmt: skip


def _known_as(member: Member) -> dict[str, str]:
    """What the masters call the daemons of *member*: its host, or its ports where all share one."""
    kinds = daemons.WORKER_KINDS
    return {kind: member.at(kind) if member.first_port else member.host for kind in kinds}
