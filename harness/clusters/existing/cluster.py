"""
A cluster that runs already and is not ours: the harness does what a user may do, and no more.

All that is written there lies in one folder of our own, and jobs carry a tag, by which `down` finds
those that still run.  Only our own jobs are started and ended.
"""

from __future__ import annotations

import os
import time

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.base.errors import ClusterError, HarnessError, SpecError
from harness.base.hadoop import daemons, given, site
from harness.base.hadoop.daemons import Layout, Member
from harness.base.hadoop.secrets import SECRETS
from harness.base.records.trial import ClusterSpec
from harness.clusters import state as states
from harness.clusters.base import Cluster
from harness.clusters.existing import discovery
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.host import Host, LocalHost, application_name
from harness.clusters.lease import Controls
from harness.clusters.node.answers import UNANSWERED_S
from harness.clusters.node.health import describe_ending
from harness.clusters.survey import Finding, RanOn
from harness.observe.parsing.history import read_history

_CLIENT_CLASS = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
_RUNNING = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
_CLIENT_LIMIT_S = 120.0
_POLL_S = 0.2
_NODES_POLL_S = 3.0
_GATHERING = ("NOT_START", "RUNNING", "RUNNING_WITH_FAILURE")
_GATHER_LIMIT_S = 60.0
LIMITATIONS = (
    "only jobs run on its nodes: rates of disks and memory are missing for models that need them",
    "tasks are not traced: Hadoop's logs show their parts, but no times of records",
    "speed and load of its nodes are not measured: times at reference speed are the raw ones",
    "it has no slots: it spreads a job's tasks by its own rules, up to the number at once",
    "other users' jobs may have run at the same time",
)


class ExistingState(states.StateFile):
    """
    What was discovered of a cluster that runs already.

    Our jobs and our folder there are known by *user* and *token*.
    """

    files: dict[str, dict[str, str]]
    services: dict[str, str]
    nodes: list[str]
    version: str
    user: str
    token: str


class ExistingCluster(Cluster):
    """Somebody else's Hadoop; use it as a context manager."""

    provider = "existing"
    own_need = "existing cluster"
    needs = ("system", "java", "hadoop home", "speed probe", own_need)
    libraries = ("requests",)
    sets_site = False
    description = "a cluster that runs already: its HADOOP_CONF_DIR, or addresses in cluster.site"
    traces = frozenset({"logs", "off"})
    watched = ()  # the load of this machine shows nothing of the nodes
    state_class = ExistingState
    _state: ExistingState | None

    def __init__(self, name: str, spec: ClusterSpec, home: HadoopHome) -> None:
        """Describe what is to be discovered; nothing is asked yet."""
        super().__init__(name, spec, home)
        self._checked_s = 0.0
        self._dead = dict[str, str]()

    @classmethod
    def _end(cls, name: str) -> None:
        """End our jobs that still run, and remove our folder there; else our folder here stays."""
        for client in states.stray_processes(states.cluster_folder(name)):
            client.kill()  # those of a killed harness would wait for a ResourceManager for minutes
        cluster = cls.attach(name)
        if not cluster.is_up():
            return
        try:
            for application in cluster.own_applications(_RUNNING):
                cluster.kill_application(application)
            cluster.hdfs.delete(cluster.root)
        except ClusterError as error:
            raise ClusterError(
                f"our folder {cluster.root} and our jobs are still there: {error.what}",
                where=error.where,
                fix=f"harness cluster down --name {name}, when the cluster answers again;"
                f" if it is gone for good: rm -r {cluster.folder}",
            ) from error

    @classmethod
    def look(cls, spec: ClusterSpec) -> str:
        """Version, nodes and address of the cluster; an error where it cannot hold *spec*."""
        discovery.user_name()
        discovered = discovery.discover(spec.site)
        discovery.refuse(spec, discovered.nodes, f"existing cluster: {discovered}")
        return f"{discovered}"

    @staticmethod
    def doctor_check() -> Finding:
        """Whether the cluster that ``HADOOP_CONF_DIR`` leads to can be used."""
        name = ExistingCluster.own_need
        if not os.environ.get("HADOOP_CONF_DIR"):
            fix = "export HADOOP_CONF_DIR=/etc/hadoop/conf"
            return Finding(name, "note", "none: HADOOP_CONF_DIR is not set", fix)
        try:
            return Finding(name, "ok", str(discovery.discover({}, limit_s=0.0)))
        except HarnessError as error:
            return Finding(name, "lacking", error.what, error.fix)

    @staticmethod
    def gpus_per_node(workers: int) -> int:
        """GPUs that each node of the cluster of ``HADOOP_CONF_DIR`` offers, by YARN's own count."""
        if not os.environ.get("HADOOP_CONF_DIR"):
            raise SpecError(
                f"the GPUs of {workers} nodes can only be detected by HADOOP_CONF_DIR",
                where="cluster.node.gpus",
                fix="set HADOOP_CONF_DIR, or write how many each node has",
            )
        return min(map(discovery.gpus, discovery.discover({}).nodes), default=0)

    def controls(self) -> Controls:
        """An empty mapping: no supervisor of ours is there."""
        return {}

    def is_up(self) -> bool:
        """Whether it was discovered, and not yet left."""
        return self._state is not None and ExistingState.load(self.name) is not None

    def _start(self) -> None:
        """Check that the cluster can hold what is requested, then make our folders."""
        user = discovery.user_name()
        discovered = discovery.discover(self.spec.site)
        discovery.refuse(self.spec, discovered.nodes, self.where)
        files = {name: SECRETS.conceal_all(pairs) for name, pairs in discovered.files.items()}
        with self._claiming():
            self._state = ExistingState(
                name=self.name,
                spec=self.spec,
                files=files,
                services=discovered.services,
                nodes=sorted(str(listed_node.get("id")) for listed_node in discovered.nodes),
                version=discovered.version,
                user=user,
                token=os.urandom(4).hex(),
            )
            self._state.save()
        try:
            layout = self.layout
            master = self.layout.master
            conf = Path(layout.conf(master))
            conf.mkdir(mode=0o700, parents=True, exist_ok=True)
            for file_name, text in site.conf_texts(self._client_files()).items():
                (conf / file_name).write_text(text)
            (Path(layout.data(master)) / "jtmp").mkdir(parents=True, exist_ok=True)
            self.hdfs.make(self.root)
        except BaseException:
            self.down()
            raise

    @property
    def _known(self) -> ExistingState:
        """The state of a cluster that is up."""
        if self._state is None:
            raise self.not_up_error()
        return self._state

    @property
    def user(self) -> str:  # type: ignore[override]
        """The user in whose name the cluster is used."""
        return self._known.user

    @property
    def root(self) -> str:  # type: ignore[override]
        """Our folder in HDFS, below the user's own."""
        return f"/user/{self.user}/{self._tag}"

    @property
    def _tag(self) -> str:
        """The tag of our jobs, which nobody else's have; YARN keeps tags in lower case."""
        return f"mapreduce-harness-{self.name.lower()}-{self._known.token}"

    @property
    def services(self) -> dict[str, str]:
        """Where the masters answer."""
        return self._known.services

    @property
    def endpoints(self) -> dict[str, str]:
        """Web addresses of the masters."""
        names = {"nn": "namenode", "rm": "resourcemanager", "jhs": "historyserver"}
        return {names[short]: f"http://{address}" for short, address in self.services.items()}

    @property
    def limitations(self) -> tuple[str, ...]:
        """What such a cluster cannot show."""
        sentences = []
        client = self.home.versions().hadoop
        cluster = self._known.version
        if client != cluster:
            sentences.append(f"Hadoop {cluster} runs there, as trials say; the client is {client}")
        if ignored := given.daemon_properties(self.spec):
            sentences.append(f"what daemons read is the cluster's own, not {', '.join(ignored)}")
        return (*sentences, *LIMITATIONS)

    @property
    def layout(self) -> Layout:
        """Our client's folders here; the nodes' own are not known."""
        host = self.services["rm"].rpartition(":")[0] if self._state else "master"
        archive = str(self.home.archive) if self.home.archive else None
        return Layout((Member(host, host),), str(self.folder), str(self.home.path), archive)

    @property
    def hosts(self) -> tuple[Host, ...]:
        """This machine, on which clients run: the nodes cannot be reached."""
        layout = self.layout
        variables = daemons.environment(os.environ, str(self.home.java.home), layout, layout.master)
        if self._state:
            variables["HADOOP_USER_NAME"] = self.user

        def enter(argv: Sequence[str]) -> list[str]:
            if not self._state:
                raise self.not_up_error()
            return list(argv)

        data = layout.data(layout.master)
        return (LocalHost("gateway", "127.0.0.1", data, enter, variables),)

    def _expected_daemons(self) -> dict[str, dict[str, str]]:
        """The nodes that ran when the cluster was discovered; where blocks are is not checked."""
        return {node_id: {"nodemanager": node_id} for node_id in self._known.nodes}

    def _client_files(self) -> Mapping[str, Mapping[str, str]]:
        return given.client_files(self._known.files, self.spec, self.layout, self.root)

    def _supervision(self) -> dict[str, Any]:
        """An empty request: its daemons are not ours to watch."""
        return {}

    def site_properties(self) -> dict[str, str]:
        """The properties of our client."""
        return site.merged(self._client_files())

    def history_folders(self, job: str) -> list[str]:
        """The job's staging folder, which it keeps: the history server's may be closed to users."""
        return [f"{self.root}/staging/{self.user}/.staging/{job}"]

    def kill_application(self, application_id: str) -> None:
        """End one of our applications, as a user does."""
        log = self.folder / "kill.log"
        argv = ["application", "-kill", application_name(application_id)]
        self.client(_CLIENT_CLASS, argv, log=log).wait(timeout=_CLIENT_LIMIT_S)

    def await_idle(self, timeout_s: float = 60.0, ended: Sequence[str] = ()) -> None:
        """
        Return when none of our own applications runs; others' are not ours to wait for.

        Nobody is sent away: masters of jobs that have *ended* sleep as on any such cluster.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            # masters may still hold their containers when their applications have ended
            containers = self.own_applications()
            running = self.own_applications(_RUNNING)
            busy = [name for name, count in containers.items() if name in running or count > 0]
            if not busy:
                return
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"our own {', '.join(busy)} still runs after {timeout_s:g} s",
                    where=self.where,
                    fix=f"harness cluster down --name {self.name}",
                )
            time.sleep(_POLL_S)

    def own_applications(self, in_states: str = "") -> dict[str, int]:
        """Containers (below 0: none) of each of our applications, of those in some states alone."""
        url_path = f"/ws/v1/cluster/apps?applicationTags={self._tag}"
        url_path += f"&states={in_states}" if in_states else ""
        answer = discovery.get_json(self.services["rm"], url_path)
        listed = discovery.elements(answer, "apps", "app")
        return {
            str(application.get("id")): discovery.whole(application.get("runningContainers"))
            for application in listed
            if self._tag in str(application.get("applicationTags"))
        }

    def ran_on(self) -> dict[str, RanOn]:
        """What tasks run on, by the node's name, as the nodes' JVMs report over HTTP."""
        servers = discovery.servers(discovery.running_nodes(self.services["rm"]))
        version = self._known.version
        return {host: discovery.ran_on(address, version) for host, address in servers}

    def dead_daemons(self) -> dict[str, str]:
        """Nodes that ran at first and do not now, masters without an answer; asked each 3 s."""
        now = time.monotonic()
        if self._checked_s and now - self._checked_s < _NODES_POLL_S:
            return self._dead
        self._checked_s = now
        kind = "namenode"
        address = self.services["nn"]
        try:
            discovery.namenode_state(address, UNANSWERED_S)
            kind = "resourcemanager"
            address = self.services["rm"]
            nodes = discovery.running_nodes(address, UNANSWERED_S)
        except ClusterError:
            waited_s = time.monotonic() - now
            unanswered_s = UNANSWERED_S if waited_s >= UNANSWERED_S else None
            host = address.rpartition(":")[0]
            self._dead = {f"{kind} on {host}": describe_ending(unanswered_s)}
        else:
            running = {str(node.get("id")) for node in nodes}
            lost = [node_id for node_id in self._known.nodes if node_id not in running]
            self._dead = dict.fromkeys((f"nodemanager on {node_id}" for node_id in lost), "died")
        return self._dead

    def daemon_names(self) -> list[str]:
        """The daemons that are known of a cluster that others run."""
        return [*self.daemon_logs()]

    def daemon_logs(self, lines: int = 20) -> dict[str, str]:
        """Where the daemons' logs can be read: they are not ours."""
        host = self.layout.master.name
        texts = {f"{kind} on {host}": f"see {url}/logs/" for kind, url in self.endpoints.items()}
        unreadable = {f"nodemanager on {node}": "not ours to read" for node in self._known.nodes}
        return texts | unreadable

    def container_logs(self, application_id: str, into: Path) -> list[Path]:
        """Fetch the logs of a job's tasks and of its application masters, over HTTP."""
        application = application_name(application_id)
        manager = self.services["rm"]
        deadline = time.monotonic() + _GATHER_LIMIT_S
        while time.monotonic() < deadline:  # until the logs are where they stay
            answer = discovery.get_json(manager, f"/ws/v1/cluster/apps/{application}")
            if discovery.inner(answer, "app").get("logAggregationStatus") not in _GATHERING:
                break
            time.sleep(_POLL_S)
        answer = discovery.get_json(manager, f"/ws/v1/cluster/apps/{application}/appattempts")
        hosts = {
            str(attempt.get("containerId")): str(attempt.get("nodeId")).rpartition(":")[0]
            for attempt in discovery.elements(answer, "appAttempts", "appAttempt")
        }
        (staging_folder,) = self.history_folders(application.replace("application", "job", 1))
        try:
            names = [name for name, _, _ in self.hdfs.list(staging_folder)]
        except ClusterError:  # the job has left no history
            names = []
        for history in [name for name in names if name.endswith(".jhist")][-1:]:
            trace = read_history(self.hdfs.open(f"{staging_folder}/{history}"), history)
            hosts |= {attempt.container_id: attempt.host for attempt in trace.attempts}
        servers = discovery.servers(discovery.running_nodes(manager))
        return discovery.copy_logs(hosts, servers, self.services["jhs"], into)
