"""
Nobody but its user reaches a cluster: every listening port is tried from outside, on each provider.

The same tries from inside, with the secret, succeed: the attacker is no paper tiger.
"""

import os
import sys
import tempfile
import time

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from harness import clusters as providers
from harness.base.errors import ClusterError
from harness.base.hadoop import site
from harness.base.hadoop.daemons import MASTER_PORTS, WORKER_PORTS
from harness.base.records.trial import ClusterSpec, SshAccess
from harness.clusters.docker import image, nodes
from harness.clusters.docker.engine import Engine, owner
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.ssh.connection import trust
from tests.contracts import outside
from tests.contracts.outside import Outsider
from tests.live import bare_hosts
from tests.live import engine as engines
from tests.live.open_clone import skip_where_closed

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(os.geteuid() != 0, reason="root alone can be somebody else"),
]

FILE = "/harness/outside/file"
# What succeeds from inside, at some port each.
POSSIBLE = {
    "data port: read a block by its token", "http: kill", "http: read /conf", "http: read /jmx",
    "http: read /node/allContainers", "http: read /stacks", "http: read /ws/v1/cluster/apps",
    "http: read /ws/v1/history/mapreduce/jobs", "http: read /ws/v1/node/containers",
    f"http: read /webhdfs/v1{FILE}?op=OPEN&user.name=hadoop", "http: write", "rpc: administer",
    "rpc: be a node", "rpc: kill", "rpc: kill a job", "rpc: list /", "rpc: list jobs",
    "rpc: read a DataNode", "rpc: read a file", "rpc: read a job", "rpc: read a user's groups",
    "rpc: submit", "rpc: write", "shuffle: read a map's output by the job's token",
}  # fmt: skip
# What nobody can, not even with the secret: jobs come by RPC, data are given for tokens.
NEVER = {
    "http: submit", "http: new application", "data port: read a block", "http: read /mapOutput",
}  # fmt: skip
# They take the tokens of running tasks, and nothing else.
BY_TOKEN_ALONE = {"scheduler", "nodemanager", "localizer"}


OF_JOB = 3  # ports of an application master
SSHD = 22


# Web services, each by the node and the port on which it is, and a page of it.
PAGES = {
    "namenode": (0, "namenode_http", "/jmx"),
    "resourcemanager": (0, "resourcemanager_http", "/ws/v1/cluster/info"),
    "historyserver": (0, "historyserver_http", "/ws/v1/history/info"),
    "datanode": (1, "datanode_http", "/jmx"),
    "nodemanager": (1, "nodemanager_http", "/ws/v1/node/info"),
    "files of the namenode": (0, "namenode_http", "/webhdfs/v1/?op=LISTSTATUS&user.name=hadoop"),
    "files of the datanode": (
        1, "datanode_http",
        f"/webhdfs/v1{FILE}?op=OPEN&user.name=hadoop&offset=0&namenoderpcaddress=master:8020",
    ),
    "proxy of the application master": (
        0, "resourcemanager_http", "/proxy/APPLICATION/ws/v1/mapreduce/info",
    ),
}  # fmt: skip
OK, FORBIDDEN = 200, 403


@pytest.fixture(scope="module")
def folder():
    """
    A state folder that the daemons' account may enter.
    """
    with (
        tempfile.TemporaryDirectory(prefix="harness-outside-") as made,
        pytest.MonkeyPatch.context() as patch,
    ):
        Path(made).chmod(0o755)
        patch.setenv("XDG_STATE_HOME", made)
        yield Path(made)


class Local:
    """
    Namespaces of this machine.
    """

    def __init__(self, stack, monkeypatch):
        self.home, self.spec = HadoopHome.find(), ClusterSpec(workers=1)
        self.here = outside.tools_here(self.home)
        self.third, self.machine = stack.enter_context(outside.third_host())

    def places(self, cluster):
        """
        Every listening port of a cluster that is up.
        """
        nodes = zip(cluster.layout.members, cluster.hosts, strict=True)
        return [(m.address, port) for m, h in nodes for port in outside.listening(outside.on(h))]

    def outsiders(self, places):
        """
        By their names.
        """
        ports = sorted({port for _, port in places})
        here, there = ([(a, port) for port in ports] for a in ("127.0.0.1", self.machine))
        return {
            "another user": Outsider(outside.stranger(self.home), [*places, *here], self.here),
            "another host": Outsider(self.third, [*places, *there], self.here, self.machine),
        }

    def tools(self, cluster):
        """
        Those on a node.
        """
        host, jars = cluster.hosts[1], f"{cluster.layout.home}/path.jar"
        return outside.Tools(cluster.python_on(host), cluster.java_on(host), jars)


class OnPorts(Local):
    """
    This machine without namespaces.
    """

    def __init__(self, stack, monkeypatch):
        skip_where_closed()
        super().__init__(stack, monkeypatch)
        monkeypatch.setenv("HARNESS_LOCAL_NETWORK", "ports")

    def places(self, cluster):
        """
        Those of its processes.
        """
        ports = outside.listening_by([*cluster._running.processes()])
        return [("127.0.0.1", port) for port in ports]

    def outsiders(self, places):
        """
        The loopback address of another host is its own.
        """
        there = [(self.machine, port) for _, port in places]
        return {
            "another user": Outsider(outside.stranger(self.home), [*places, *there], self.here),
            "another host": Outsider(self.third, there, self.here, self.machine),
        }


class Docker(Local):
    """
    Containers; others are in the network of the engine's machine, and in a network beside.
    """

    def __init__(self, stack, monkeypatch):
        super().__init__(stack, monkeypatch)
        address, _ = stack.enter_context(engines.ready())
        monkeypatch.setenv("DOCKER_HOST", address)
        self.spec = ClusterSpec(provider="docker", workers=1)
        self.engine = Engine.connect(limit_s=outside.LIMIT_S)
        stack.callback(self.engine.client.close)
        network = self.engine.client.networks.create(f"beside-{owner()}", driver="bridge")
        stack.callback(network.remove)
        self.gateway = network.attrs["IPAM"]["Config"][0]["Gateway"]
        self.containers = [self._container(stack, each) for each in ("host", network.name)]

    def _container(self, stack, network):
        made = self.engine.client.containers.run(
            image.ensure(self.engine, self.home), entrypoint=["sleep", "infinity"], detach=True,
            network_mode=network, user="0",
        )  # fmt: skip
        stack.callback(made.remove, force=True, v=True)

        def run(argv):
            status, (out, err) = made.exec_run(argv, demux=True)
            assert status == 0, (argv[:6], out, err)
            return out.decode()

        return run

    def outsiders(self, places):
        """
        Also root of this machine, whom an engine makes a member of its other networks.
        """
        brought = outside.Tools("python3", nodes.JAVA_COMMAND, f"{nodes.HOME}/path.jar")
        near, far = self.containers
        return {
            **super().outsiders(places),
            "root": Outsider(outside.run, places, self.here),
            "a container in the machine's network": Outsider(near, places, brought),
            "a container in another network": Outsider(far, places, brought, self.gateway),
        }


class Ansible(Local):
    """
    Bare hosts; others are on the same network, on this machine, and on the hosts themselves.
    """

    def __init__(self, stack, monkeypatch):
        super().__init__(stack, monkeypatch)
        if why := bare_hosts.lacking():
            pytest.skip(why)
        made = stack.enter_context(bare_hosts.BareHosts())
        self.machine = f"{made.net}.254"
        self.bare = [made.add(wait=False) for _ in range(3)]
        for host in self.bare:
            bare_hosts.await_listening(host)
            trust(host.address, host.fingerprint)
        self.spec = ClusterSpec(
            provider="ansible", workers=1, hosts=tuple(host.address for host in self.bare[:2]),
            ssh=SshAccess(key=str(made.key)),
        )  # fmt: skip

    def places(self, cluster):
        """
        Without that of sshd.
        """
        return [place for place in super().places(cluster) if place[1] != SSHD]

    def outsiders(self, places):
        """
        The last of the hosts is none of the cluster's.
        """
        entered = [["nsenter", "-n", "-t", str(host.pid)] for host in self.bare]
        outsiders = {}
        for name, host, enter in zip(("master", "worker1"), self.bare, entered, strict=False):
            own = [("127.0.0.1", port) for address, port in places if address == host.address]
            user = outside.stranger(self.home, enter)
            everything = [*places, *own]
            outsiders[f"another user of {name}"] = Outsider(
                user, everything, self.here, self.machine
            )
        outsiders["another host beside them"] = Outsider(
            lambda argv: outside.run([*entered[2], *argv]), places, self.here, self.machine
        )
        return {**outsiders, "root of this machine": Outsider(outside.run, places, self.here)}


CASES = {"local": Local, "local on ports": OnPorts, "docker": Docker, "ansible": Ansible}
EVERY = [
    pytest.param(case, id=name, marks=[pytest.mark.long] * (name != "local"))
    for name, case in CASES.items()
]


def start_job(cluster, folder):
    """
    A job whose map is done, and whose reduce waits for more memory than there is; its application.
    """
    memory = f"mapreduce.reduce.memory.mb={site.node_memory_mb(cluster.spec.node)}"
    log, example = folder / "client.log", "org.apache.hadoop.examples.ExampleDriver"
    client = cluster.client(example, ["pi", "-D", memory, "1", "10"], log=log)
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        with suppress(ClusterError, KeyError, TypeError):  # its application master is on its way
            (app,) = apps(cluster)
            jobs = cluster.hdfs.get_json("rm", f"/proxy/{app['id']}/ws/v1/mapreduce/jobs")
            if jobs["jobs"]["job"][0]["mapsCompleted"] == 1:
                return client, app["id"]
        time.sleep(0.5)
    raise AssertionError(log.read_text()[-3000:])


def apps(cluster):
    """
    All applications, as the ResourceManager knows them.
    """
    return cluster.hdfs.get_json("rm", "/ws/v1/cluster/apps")["apps"]["app"]


@pytest.mark.parametrize("case", EVERY)
def test_nobody_outside_submits_reads_writes_or_kills(case, folder, monkeypatch):
    """
    Not a byte comes back, and the job goes on; the same tries from inside succeed, and end it.
    """
    with ExitStack() as stack:
        made = case(stack, monkeypatch)
        kind = providers.PROVIDERS[made.spec.provider]
        cluster = stack.enter_context(kind("outside", made.spec, made.home))
        layout, worker = cluster.layout, cluster.layout.workers[0]
        cluster.hdfs.put(FILE, [b"ours"])
        client, application = start_job(cluster, folder)
        on_worker, data = outside.on(cluster.hosts[1]), layout.data(worker)
        block = outside.block_on(on_worker, data)
        known = outside.Knowledge(application, FILE, block, layout.master.at("namenode"))
        insider = outside.as_insider(known, on_worker, layout.secret(worker), data)
        places = made.places(cluster)
        others = made.outsiders(places)
        port = stack.enter_context(outside.open_service({port for _, port in places}))
        ways = {
            name: outside.statuses([(each.machine, port, "/", {})], each.vantage, each.tools.python)
            for name, each in others.items()
        }
        outside.classes()  # compiled once for all
        with ThreadPoolExecutor() as pool:
            running = {
                name: pool.submit(outside.attack, each.places, each.vantage, known, each.tools)
                for name, each in others.items()
            }
            by_others = {name: each.result() for name, each in running.items()}
        outcomes = {name: (each.succeeded, each.answered) for name, each in by_others.items()}
        assert outcomes == {name: ({}, []) for name in by_others}
        names = [name for name, _, _ in cluster.hdfs.list("/")]
        states = [(app["id"], app["state"]) for app in apps(cluster)]
        by_us = outside.attack(places, on_worker, insider, made.tools(cluster))
        client.wait(60)
        endings = {app["id"]: app["finalStatus"] for app in apps(cluster)}
    for name, outcome in {**by_others, "us": by_us}.items():
        answers, successes = len(outcome.answered), sum(map(len, outcome.succeeded.values()))
        counts = f"{outcome.tries} tries, {answers} ports answer, {successes} succeed"
        sys.stdout.write(f"{len(places)} ports, {name}: {counts}\n")

    assert ways == {name: [OK] for name in others}  # they are not cut off from everything
    assert states == [(application, "RUNNING")]
    assert not [name for name in names if name.startswith("stolen")]
    # no paper tiger: each of the cluster's own ports is there, and is of use to us
    assert POSSIBLE - by_us.kinds == set()
    assert NEVER & {what.partition("?")[0] for what in by_us.kinds} == set()
    own = {(m.address, m.port(s)): s for m, services in of_members(layout) for s in services}
    assert own.keys() <= set(places)
    idle = {service for (a, p), service in own.items() if f"{a}:{p}" not in by_us.succeeded}
    assert idle <= BY_TOKEN_ALONE
    assert endings[application] == "KILLED"
    assert len(places) >= len(own) + OF_JOB


def of_members(layout):
    """
    Pairs of a node and its services.
    """
    return [(layout.master, MASTER_PORTS), *((worker, WORKER_PORTS) for worker in layout.workers)]


@pytest.fixture(scope="module")
def web(folder):
    """
    A function that says how a page of a node (0 is the master) answers each of some headers, asked
    from the worker; the secret's header; and the ports of the job's master on the worker.
    """
    home = HadoopHome.find()
    with providers.PROVIDERS["local"]("web", ClusterSpec(workers=1), home) as cluster:
        cluster.hdfs.put(FILE, [b"ours"])
        client, application = start_job(cluster, folder)
        layout, worker = cluster.layout, cluster.hosts[1]
        on_worker, python = outside.on(worker), cluster.python_on(worker)
        name, _, secret = (
            on_worker(["cat", layout.secret(layout.workers[0])]).strip().partition(": ")
        )

        def statuses(node, port, path, *headers):
            member, path = layout.members[node], path.replace("APPLICATION", application)
            place = member.address, member.port(port) if isinstance(port, str) else port, path
            return outside.statuses([(*place, each) for each in headers], on_worker, python)

        yield statuses, {name: secret}, set(outside.listening(on_worker)) - {*WORKER_PORTS.values()}
        client.kill()
        client.wait(60)


@pytest.mark.parametrize("service", PAGES)
def test_a_web_service_refuses_whoever_lacks_the_secret(service, web):
    """
    Without it, with one that is wrong, cut or too long, or with the right one elsewhere.
    """
    statuses, header, _ = web
    ((name, secret),) = header.items()
    other = f"{secret[:-1]}{'1' if secret.endswith('0') else '0'}"
    wrong = [
        {}, {name: ""}, {name: other}, {name: secret[:-1]}, {name: secret + "0"},
        {name: secret.upper()}, {"Authorization": f"Bearer {secret}"},
        {"Cookie": f"{name}={secret}"},
    ]  # fmt: skip

    assert statuses(*PAGES[service], *wrong) == [FORBIDDEN] * len(wrong)
    assert statuses(*PAGES[service], header) == [OK]


def test_the_page_of_an_application_master_is_for_the_proxy(web):
    """
    Whoever asks itself is sent there, with the secret, too.
    """
    statuses, header, ports = web
    answers = {port: statuses(1, port, "/ws/v1/mapreduce/info", {}, header) for port in ports}

    assert [each for each in answers.values() if OK in each] == []
    assert [each for each in answers.values() if 302 in each] == [[302, 302]]
