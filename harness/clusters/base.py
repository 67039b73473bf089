"""
What is the same for every provider: a cluster as a gateway, hosts and a layout.

Nothing here assumes that a host sees this machine's files, or has Java and Hadoop where this
machine has them.
"""

from __future__ import annotations

import json

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

from harness.base.errors import ClusterError, SpecError
from harness.base.extras import CLUSTERS, require
from harness.base.hadoop import daemons, site
from harness.base.hadoop.daemons import Daemon, Layout
from harness.base.hadoop.site import task_properties
from harness.base.records.trial import LIMITS, ClusterSpec, Limit, Tracing
from harness.base.text import excerpt
from harness.clusters import masters
from harness.clusters import state as states
from harness.clusters.adjust import (
    NodeLoad,
    Rates,
    adjust,
    requested_by_worker,
    unsupported_limits,
)
from harness.clusters.collect import Source, collect
from harness.clusters.hadoop_home.home import HadoopHome, file_digest
from harness.clusters.host import (
    CONTAINER,
    LOG,
    Host,
    LocalHost,
    Running,
    application_name,
    at_once,
    log_tail,
)
from harness.clusters.lease import Controls, HostControl, Lease, renew, tell
from harness.clusters.masters import Hdfs
from harness.clusters.state import StateFile
from harness.clusters.survey import Finding, HostFacts, RanOn, node_versions, survey

UP_LIMIT_S = 180.0


class Cluster(ABC):
    """A Hadoop cluster; a provider is a subclass and its line in `harness.clusters.PROVIDERS`."""

    provider: ClassVar[str]
    description: ClassVar[str]
    state_class: ClassVar[type[StateFile]] = StateFile
    # names of the findings of `harness doctor` without which it cannot work, its own included
    needs: ClassVar[tuple[str, ...]] = ("system", "disk", "java", "hadoop home", "speed probe")
    own_need: ClassVar[str] = ""  # the finding about what it alone works with
    libraries: ClassVar[tuple[str, ...]] = ()  # of the extra `clusters`: it cannot work without
    # keys of `cluster` in an experiment file that it takes and others refuse; those it insists on
    extra_fields: ClassVar[frozenset[str]] = frozenset()
    required_fields: ClassVar[frozenset[str]] = frozenset()
    # whether it sets addresses, folders and slots itself, so that `cluster.site` cannot
    sets_site: ClassVar[bool] = True
    # whether the health check sees deaths on every node, not on its own alone
    health_sees_all: ClassVar[bool] = True
    limitable: ClassVar[frozenset[str]] = frozenset()  # the fields of `Hardware` that it can set
    traces: ClassVar[frozenset[str]] = frozenset({"spans", "units", "logs", "off"})
    on_this_machine: ClassVar[bool] = False  # whether it uses this machine's memory and disk
    user = daemons.USER  # in whose name requests are made to Hadoop
    # the plain account of daemons, tasks and clients, where we are root: its ``uid`` and ``gid``
    account: dict[str, int] | None = None
    root = "/harness"  # of HDFS: all that experiments write lies below it

    def __init__(self, name: str, spec: ClusterSpec, home: HadoopHome) -> None:
        """Describe a cluster; *home* is the Hadoop home of this machine."""
        self.name = name
        self.spec = spec
        self.home = home
        self.folder = states.cluster_folder(name)
        self.hdfs = Hdfs(lambda: self.gateway, self._hdfs_argv)
        self._state: StateFile | None = None
        self._copied: dict[tuple[str, Path], str] = {}
        self._lease: Lease | None = None  # of a cluster that this process made

    # what each provider does in its own way

    @classmethod
    @abstractmethod
    def _end(cls, name: str) -> None:
        """End all that runs of a cluster, and remove what it has outside its folder here."""

    @abstractmethod
    def is_up(self) -> bool:
        """Whether the cluster was started and can be reached; not whether it is healthy."""

    @abstractmethod
    def _start(self) -> None:
        """Start nodes and daemons, all or nothing; `ClusterError` where the name is taken."""

    @property
    @abstractmethod
    def hosts(self) -> Sequence[Host]:
        """The nodes, master first."""

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """Where the nodes find Hadoop, their configuration and their data."""

    @abstractmethod
    def dead_daemons(self) -> dict[str, str]:
        """Daemons that ``died`` or that hang (``has not answered for 15 s``); asked each second."""

    # what a provider may have, too

    @staticmethod
    def doctor_check() -> Finding:
        """A quick check for `harness doctor`, of a provider with a finding of its own."""
        raise NotImplementedError

    @classmethod
    def require_libraries(cls) -> None:
        """`MachineError` that names a library of an extra without which it cannot work."""
        for library in cls.libraries:
            require(library, CLUSTERS)

    @staticmethod
    def gpus_per_node(workers: int) -> int:
        """GPUs that each of so many workers would have."""
        return 0

    @classmethod  # noqa: B027 - some can give all
    def require_limits(cls, spec: ClusterSpec) -> None:
        """`MachineError` that names what of *spec* cannot be had here, by this user."""

    @classmethod
    def look(cls, spec: ClusterSpec) -> str:
        """What is there already of the requested cluster; `HarnessError` if it cannot be used."""
        return ""

    @classmethod
    def reach(cls, spec: ClusterSpec) -> str:
        """Who can reach what of the requested cluster, in one sentence, for `plan` and `up`."""
        return "its network and its own configuration decide who reaches it: nothing is fenced"

    @property
    def limits(self) -> dict[str, dict[str, Limit]]:
        """Each limit of each limited node, requested and measured."""
        file = self.folder / "limits.json"  # it is not there while the nodes are still measured
        return LIMITS.validate_json(file.read_text()) if file.is_file() else {}

    def _limit_nodes(self) -> None:
        """Limit the nodes as requested, while nothing runs on them."""
        raise NotImplementedError

    def _adjust(self, apply: Callable[[Mapping[str, Rates]], None], disk: str = ".") -> None:
        """Correct the limits that *apply* sets until they are as requested; write them down."""
        load = NodeLoad(self.hosts, lambda host: self.agent(host, "load"), disk)
        measured = adjust(requested_by_worker(self.spec), apply, load, where=self.where)
        content = LIMITS.dump_json(measured, indent=1, exclude_none=True)
        (self.folder / "limits.json").write_bytes(content)

    def drop_page_cache(self) -> list[str]:
        """Drop the page cache of nodes with limited disks, so that they read from these; names."""
        return []

    def disk_bytes(self) -> dict[str, dict[str, int]]:
        """Bytes ``read`` and ``written`` by each limited disk since its cluster was started."""
        return {}

    @property
    def gateway(self) -> Host:
        """The host on which clients run."""
        return self.hosts[0]

    def java_on(self, host: Host) -> str:
        """The ``java`` command of one of the nodes: that of this machine, where they see it."""
        return self.home.java.launcher

    def python_on(self, host: Host) -> str:
        """Python of one of the nodes: 3.6 or newer."""
        return "python3"

    @property
    def watched(self) -> Sequence[Host] | None:
        """Hosts whose speed and load are sampled, master first; `None`: this machine, for all."""
        return None if self.on_this_machine else self.hosts

    @property
    def tasks_archive(self) -> str | None:
        """The class-data archive of traced tasks, as nodes see it; `None`: they do without."""
        return None

    @property
    def limitations(self) -> tuple[str, ...]:
        """Sentences on what measurements on this cluster cannot show, or are distorted by."""
        return ()

    def survey(self) -> list[HostFacts]:
        """Facts that the hosts report; one that does not answer has its error."""
        return survey(
            self.hosts,
            lambda host: self.agent(host, "facts", "survey", host.folder, self.java_on(host)),
        )

    def ran_on(self) -> Mapping[str, RanOn]:
        """Versions that tasks run with, by the worker's name, as the workers report them."""
        workers = self.hosts[1:]
        hadoop = self.home.versions().hadoop
        return node_versions(workers, lambda host: self.agent(host, "facts", "versions"), hadoop)

    @property
    def exec_prefix(self) -> str:
        """Words before a command that make it run in the cluster's network, to show to users."""
        return ""

    def out_of_memory(self) -> list[str]:
        """Sentences on processes that the kernel killed for want of memory since the last call."""
        return []

    def daemon_pids(self) -> dict[str, int]:
        """Process id on this machine of each running daemon; nothing where they run elsewhere."""
        return {}

    def daemon_names(self) -> list[str]:
        """Every daemon that belongs to the cluster (``datanode on worker2``), as it is called."""
        return [daemon.name for daemon in daemons.daemons(self.layout)]

    def daemon_logs(self, lines: int = 20) -> dict[str, str]:
        """The last lines of every daemon's log, by its name; safe to print."""
        all_daemons = daemons.daemons(self.layout)
        hosts = {host.name: host for host in self.hosts}

        def tail(daemon: Daemon) -> str:
            log = f"{self.layout.base}/logs/{daemon.key}.log"
            return log_tail(hosts[daemon.member.name], log, lines)

        texts = at_once(tail, all_daemons)
        return {daemon.name: text for daemon, text in zip(all_daemons, texts, strict=True)}

    def container_logs(self, application_id: str, into: Path) -> list[Path]:
        """Copy an application's logs of all nodes to ``into/<node>/<container>/<file>``."""
        application = application_name(application_id)
        sources = [
            Source(host, f"{host.folder}/userlogs/{application}", into / host.name)
            for host in self.hosts[1:]
        ]
        wanted = f"{CONTAINER.pattern}/{LOG.pattern}"
        return collect(sources, lambda host: self.agent(host, "pack"), wanted)

    def dump_threads(self, into: Path) -> list[Path]:
        """Have every JVM dump its threads, one file each in *into*; none where it cannot be."""
        return []

    def _supervision(self) -> dict[str, Any]:
        """Files of the gateway's supervisor, which starts the history server when told to."""
        base = self.layout.base
        started = f"historyserver-{self.layout.master.name}"
        return {"deaths": f"{base}/deaths", "control": f"{base}/control", "start": started}

    def _expected_daemons(self) -> dict[str, dict[str, str]]:
        """Workers that must be healthy, and what the masters call the daemons of each."""
        expected = {}
        for member in self.layout.workers:
            if member.first_port:  # all workers share their host: ports tell their daemons apart
                expected[member.name] = {kind: member.at(kind) for kind in daemons.WORKER_KINDS}
            else:
                expected[member.name] = dict.fromkeys(daemons.WORKER_KINDS, member.host)
        return expected

    @classmethod
    def attach(cls, name: str) -> Self:
        """The cluster of that name, whoever started it; only `down` works unless it `is_up`."""
        state = cls.state_class.load(name)
        cluster = cls(name, state.spec if state is not None else ClusterSpec(), HadoopHome.find())
        cluster._state = state
        return cluster

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.down()

    def up(self, limit_s: float = UP_LIMIT_S, lifetime_s: int = 0) -> None:
        """
        Start all of the cluster, or nothing; it is healthy within *limit_s* seconds.

        It lasts for *lifetime_s* seconds; without them, as long as this process.  `SpecError` for
        settings that this provider refuses, `ClusterError` where the start fails.
        """
        self._refuse_settings()
        try:
            self._start()
        except BaseException:
            if self._lease is not None:
                self._lease.end()
            raise
        try:
            if self._lease is not None and not lifetime_s:
                self._lease.keep_renewing(self.controls())
            if self.spec.limited:
                self._limit_nodes()
                self._start_daemons()
            request = self._health_request(limit_s)
            masters.await_healthy(
                self._check_health,
                request,
                where=self.where,
                log=lambda daemon: self.daemon_logs().get(daemon, ""),
            )
            if self._lease is not None and lifetime_s:
                renew(self.name, lifetime_s, self.controls())
                self._lease.end(b"free\n")
        except BaseException:
            self.down()
            raise

    def _refuse_settings(self) -> None:
        """`SpecError` for settings that this provider makes itself, and limits it cannot set."""
        if refused := site.refused_overrides(self.spec) if self.sets_site else []:
            raise SpecError("; ".join(refused), where="cluster.site", fix="leave them out")
        if refused := unsupported_limits(self.spec, self.limitable):
            raise SpecError("; ".join(refused), where=self.where, fix="leave them out")

    def _start_daemons(self) -> None:
        """Have supervisors start what waited for limits; the history server waits for HDFS."""
        keys = [
            daemon.key for daemon in daemons.daemons(self.layout) if daemon.kind != "historyserver"
        ]
        tell(self.controls(), *(f"start {key}\n".encode() for key in keys))

    def controls(self) -> Controls:
        """What opens the control pipe of each supervisor, by the name of its host."""
        path = f"{self.layout.base}/control"
        return {host.name: partial(HostControl, host, path) for host in self.hosts}

    @classmethod
    def names(cls) -> list[str]:
        """Names of this provider's clusters that are up, or left something behind."""
        providers = (cls.provider, "")  # where no file names the provider, it may have been ours
        return [name for name in states.known_names() if states.provider_of(name) in providers]

    @classmethod
    def remove(cls, name: str, token: str = "") -> bool:
        """
        Take a cluster down and remove it; `False` where there is none.

        `NotOursError` for one that is not ours, or does not have the *token*, where that is given.
        """
        with states.exclusive():
            states.require_ours(name, token)
            return cls._remove(name)

    @classmethod
    def _remove(cls, name: str) -> bool:
        """Take a cluster down and remove it, while the caller keeps other processes out."""
        folder = states.cluster_folder(name)
        if not folder.exists():
            return False
        with states.DeferredInterrupt():  # half a removal helps nobody
            cls._end(name)
            states.remove_folder(name)
        return True

    def down(self) -> None:
        """End every process and remove every file of this cluster; safe to call twice."""
        if self._lease is not None:
            self._lease.stop()
        try:
            self.remove(self.name)
        finally:
            self._state = None
            if self._lease is not None:
                self._lease.end()

    @contextmanager
    def _claiming(self) -> Iterator[None]:
        """Make the cluster's folder, other processes kept out; an error removes the cluster."""
        with states.exclusive():
            self._require_free()
            self._remove(self.name)
            try:
                self._make_folder()
                yield
            except BaseException:
                self._remove(self.name)
                raise

    def _make_folder(self) -> None:
        """Make the cluster's folder, once there is a watchdog to remove it."""
        self._lease = Lease(self.name)
        states.make_folder(self.folder, self.provider)
        self._lease.record()

    def _require_free(self) -> None:
        """`ClusterError` where the name is taken: by a cluster that is up, or another's."""
        states.require_ours(self.name)
        provider = states.provider_of(self.name)
        if provider not in ("", self.provider):
            used = f"the name {self.name!r} is taken by a cluster of {excerpt(provider, 80)}"
        else:  # its state alone is asked: the Hadoop home of an earlier start may be gone
            self._state = self.state_class.load(self.name)
            used = f"cluster {self.name!r} is up already" if self.is_up() else ""
            self._state = None
        if used:
            fix = f"harness cluster down --name {self.name}, or choose another name"
            raise ClusterError(used, where=str(self.folder), fix=fix)

    def missing_daemons(self) -> list[str]:
        """Daemons that the masters have lost (after some 10 s), whatever their processes do."""
        request = {**self._health_request(0.0), "control": ""}  # nothing is to be started
        return masters.missing_daemons(self._check_health, request)

    def await_idle(self, timeout_s: float = 60.0, ended: Sequence[str] = ()) -> None:
        """
        Return when no application runs or has a container; `ClusterError` at the time-out.

        Application masters of the jobs that have *ended* are sent away: they would sleep for 5 s.
        """
        request = self._health_request(timeout_s) | {"ended": [*ended], "user": self.user}
        masters.await_idle(self._check_health, request, where=self.where)

    def _health_request(self, limit_s: float) -> dict[str, Any]:
        return {
            "master": self.layout.master.name,
            "workers": self._expected_daemons(),
            "services": self.services,
            "limit_s": limit_s,
            **self._supervision(),
        }

    def _check_health(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer of the gateway's node agent; an empty one when the cluster is gone."""
        dead_daemons = None if self.health_sees_all else self.dead_daemons
        argv = self.agent(self.gateway, "health")
        return masters.check_health(self.gateway, argv, request, dead_daemons)

    @property
    def where(self) -> str:
        """The cluster, for errors."""
        return f"{self.provider} cluster {self.name!r}"

    @property
    def services(self) -> dict[str, str]:
        """Where the master's web services answer (nn, rm, jhs), and the file with the secret."""
        master = self.layout.master
        kinds = {"nn": "namenode", "rm": "resourcemanager", "jhs": "historyserver"}
        addresses = {short: master.at(f"{kind}_http") for short, kind in kinds.items()}
        return {**addresses, "secret": self.layout.secret(master)}

    @property
    def endpoints(self) -> dict[str, str]:
        """Addresses of HDFS and of the masters' web pages, as the nodes know them."""
        master = self.layout.master
        addresses = {"hdfs": f"hdfs://{master.at('namenode')}"}
        for kind in ("namenode", "resourcemanager", "historyserver"):
            addresses[kind] = f"http://{master.address}:{master.port(f'{kind}_http')}"
        return addresses

    def host_path(self, host: Host, path: Path) -> str:
        """Where *host* has this machine's file *path*: in its own folder, unless it sees ours."""
        if isinstance(host, LocalHost):
            return str(path)
        file_key = host.name, path
        if file_key not in self._copied:
            target_name = f"copied-{file_digest(path)[:12]}-{path.name}"
            host.put(path, target_name)
            self._copied[file_key] = f"{host.folder}/{target_name}"
        return self._copied[file_key]

    def agent_path(self, host: Host) -> str:
        """Where *host* has the node agent."""
        return self.host_path(host, states.agent_file())

    def agent(self, host: Host, verb: str, *arguments: str) -> list[str]:
        """Command line that runs one verb of the node agent (`harness.clusters.node`) on *host*."""
        return [self.python_on(host), "-I", "-S", self.agent_path(host), verb, *arguments]

    def not_up_error(self) -> ClusterError:
        """The error for an action that needs a cluster that is up."""
        return ClusterError(
            f"cluster {self.name!r} is not up",
            where=self.where,
            fix=f"harness cluster up --name {self.name}",
        )

    def _hdfs_argv(self, operation: Sequence[str]) -> list[str]:
        services = json.dumps({**self.services, "user": self.user})
        return self.agent(self.gateway, "hdfs", services, *operation)

    def client(
        self, main_class: str, args: Sequence[str], *, log: Path, jars: Sequence[Path] = ()
    ) -> Running:
        """Start a client JVM on the gateway, its output into *log*; *jars* join its class path."""
        extra_jars = [self.host_path(self.gateway, jar) for jar in jars]
        java = self.java_on(self.gateway)
        client_argv = daemons.client_argv(java, self.layout, main_class, args, extra_jars)
        return self.gateway.start(self._as_account(client_argv), log)

    def put_secret(self, text: str) -> str:
        """Write *text* to a file of the gateway that only its account reads; return its path."""
        path = f"{self.layout.data(self.layout.master)}/jtmp/secret.xml"
        argv = ["sh", "-c", 'rm -f "$0" && umask 077 && cat > "$0"', path]
        done = self.gateway.run(self._as_account(argv), stdin=text.encode())
        if done.status != 0:
            what = f"{path} cannot be written: {excerpt(done.err, 200)}"
            raise ClusterError(what, where=self.where, fix="check the disk of the master")
        return path

    def _as_account(self, argv: list[str]) -> list[str]:
        """*argv* as a command of the plain account on the gateway, where there is one."""
        if self.account is None:
            return argv
        numbers = (str(self.account["uid"]), str(self.account["gid"]))
        return self.agent(self.gateway, "become", *numbers, *argv)

    def kill_application(self, application_id: str) -> None:
        """Have the ResourceManager end an application."""
        application = application_name(application_id)
        path = f"/ws/v1/cluster/apps/{application}/state?user.name={self.user}"
        self.hdfs.call("put", "rm", path, body=b'{"state": "KILLED"}')

    def site_properties(self) -> dict[str, str]:
        """The cluster-wide properties in force, as a client on the gateway sees them."""
        return site.merged(site.site_files(self.spec, self.layout, self.layout.master))

    def history_folders(self, job: str) -> Sequence[str]:
        """Folders of HDFS below which the history of *job* lies when it has ended."""
        properties = self.site_properties()
        return [properties[key] for key in site.HISTORY_KEYS]

    def trace_properties(
        self, tracing: Tracing, configuration: Mapping[str, str]
    ) -> dict[str, str]:
        """Properties to add to a job's own, *configuration*, so that its tasks are traced."""
        return task_properties(
            tracing.mode,
            self.layout,
            self.spec,
            configuration,
            archive=self.tasks_archive,
            unit=tracing.unit_records,
        )
