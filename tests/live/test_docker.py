"""
Docker as it really is: an engine near and far, what becomes of clusters when it, or we, die.

What every provider keeps to is in `tests.contracts.test_providers`.
"""

import contextlib
import gc
import io
import json
import os
import signal
import socket
import ssl
import subprocess
import threading
import time

from types import SimpleNamespace

import pytest

from harness.base.errors import ClusterError, MachineError
from harness.base.records.trial import ClusterSpec, NodeSpec
from harness.clusters import archives
from harness.clusters.docker import image as images
from harness.clusters.docker import nodes
from harness.clusters.docker.cluster import DockerCluster
from harness.clusters.docker.engine import LABEL, DeathLog, Engine, EngineError, owner
from harness.clusters.docker.host import USER, DockerHost, memory_kills, state_of
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.node import agent_bytes
from harness.core.store import Store
from tests.live import engine as engines
from tests.live.runs import CLIENT, LIMIT_S, command, mapping, settings, start, wait_for

pytestmark = pytest.mark.live
long = pytest.mark.long
PATIENCE_S = 120.0
SMALL = 2176 * 2**20  # holds two tasks and the daemons of a node, and no more


@pytest.fixture(scope="module")
def engine():
    """
    An engine that has the image of a node: its address, and itself where it is the tests' own.
    """
    with engines.ready() as ready_engine:
        yield ready_engine


@pytest.fixture
def address(engine):
    """
    Where the engine is.
    """
    return engine[0]


@pytest.fixture
def environment(tmp_path, address):
    """
    A harness of its own with that engine.
    """
    return {**settings(tmp_path), "DOCKER_HOST": address}


@pytest.fixture
def alone(tmp_path, address, monkeypatch):
    """
    The same for this process; answers the engine.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("DOCKER_HOST", address)
    engine = Engine.connect()
    yield engine
    engine.client.close()


@pytest.fixture
def node(alone):
    """
    Makes nodes without Hadoop: one plan each, and limits as the engine knows them.
    """
    made = []

    def make(node_plan=None, engine=alone, labels=None, **limits):
        api = alone.client.api
        name = f"bare-{owner()}-{len(made)}"
        files = {"node.pyz": agent_bytes()}
        whole = {
            "control": "/cluster/control", "deaths": "/cluster/deaths",
            "daemons_folder": "/cluster/daemons", "daemons": [], **(node_plan or {}),
        }  # fmt: skip
        files["plan.json"] = json.dumps(whole).encode()
        container = api.create_container(
            images.ensure(alone, HadoopHome.find()), name=name,
            labels=labels,
            host_config=api.create_host_config(**{"network_mode": "none", **limits}),
        )["Id"]  # fmt: skip
        made.append(container)
        packed = io.BytesIO()
        archives.pack({"inside": None, "daemons": None, **files}, packed, owner=USER)
        api.put_archive(container, "/cluster", packed.getvalue())
        api.start(container)
        return DockerHost("bare", "", "/cluster", container, engine, {"PATH": "/usr/bin:/bin"})

    yield make
    for container in made:
        alone.client.api.remove_container(container, force=True, v=True)


def until(condition):
    """
    The condition's first true value.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return value


@contextlib.contextmanager
def forwarded(address, context=None):
    """
    A port of this machine that leads to the engine, with TLS where there is a *context*.
    """
    path = address.removeprefix("unix://")
    server = socket.create_server(("127.0.0.1", 0))
    over, threads = threading.Event(), []

    def serve():
        while not over.is_set():
            with contextlib.suppress(OSError):
                client, _ = server.accept()
                threads.append(threading.Thread(target=connect, args=[client]))
                threads[-1].start()

    def connect(client):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as behind:
            behind.connect(path)
            with context.wrap_socket(client, server_side=True) if context else client as front:
                ways = [(front, behind), (behind, front)]
                both = [threading.Thread(target=carry, args=way) for way in ways]
                for thread in both:
                    thread.start()
                for thread in both:
                    thread.join()

    def carry(source, target):
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                target.sendall(piece)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield server.getsockname()[1]
    over.set()
    with contextlib.suppress(OSError):
        socket.create_connection(server.getsockname()).close()
    server.close()


@pytest.fixture
def certificates(tmp_path):
    """
    A folder as ``DOCKER_CERT_PATH`` wants it: an authority, a certificate for 127.0.0.1, its key.
    """
    folder = tmp_path / "certificates"
    folder.mkdir()
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", folder / "key.pem", "-out", folder / "cert.pem",
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    (folder / "ca.pem").write_bytes((folder / "cert.pem").read_bytes())
    return folder


@long
class TestFar:
    @pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
    def test_commands_and_files_over_a_port(self, address, node, certificates, tmp_path, tls):
        """
        Streams of any size in both directions, an end of input, a kill, files: as on a socket.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")
        content = bytes(range(256)) * 8000
        with forwarded(address, context if tls else None) as port:
            far = {"DOCKER_HOST": f"tcp://127.0.0.1:{port}"}
            if tls:
                far |= {"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": str(certificates)}
            engine = Engine.connect(far)
            host = node(engine=engine)
            done = host.run(["sha256sum"], stdin=content)
            both = host.open(["cat"])
            writer = threading.Thread(
                target=lambda: (both.stdin.write(content), both.stdin.close())
            )
            writer.start()
            back = both.stdout.read()
            writer.join()
            status = both.wait(PATIENCE_S)
            endless = host.open(["sleep", "600"])
            endless.kill()
            killed = endless.wait(PATIENCE_S)
            for pipe in (both.stdout, both.stderr, endless.stdin, endless.stdout, endless.stderr):
                pipe.close()
            (tmp_path / "there").write_bytes(content)
            host.put(tmp_path / "there", "there")
            there = host.run(["sha256sum", f"{host.folder}/there"]).out.split()[0]
            engine.client.close()

        expected = subprocess.run(["sha256sum"], input=content, capture_output=True, check=True)
        assert (done.status, done.out) == (0, expected.stdout.decode())
        assert (back == content, status, killed) == (True, 0, -9)
        assert there == expected.stdout.decode().split()[0]
        assert engine.is_near is False


class TestNode:
    def test_runs_as_a_plain_user_without_rights(self, node):
        """
        Not root, no capability, none to be had.
        """
        host = node(cap_drop=["ALL"], security_opt=["no-new-privileges"])
        facts = dict(
            line.split(":\t")
            for line in host.run(["cat", "/proc/self/status"]).out.splitlines()
            if line.startswith(("Uid", "CapEff", "NoNewPrivs"))
        )

        assert facts["Uid"].split() == [str(USER)] * 4
        assert (int(facts["CapEff"], 16), facts["NoNewPrivs"]) == (0, "1")

    def test_endless_output_ends(self, node):
        """
        A node that never stops talking is ended, and reported as that; nothing of it runs on.
        """
        host = node()

        with pytest.raises(ClusterError, match="has written more than 67108864 bytes"):
            host.run(["yes"])
        assert until(lambda: "yes" not in host.run(["cat", "/proc/2/cmdline"]).out)

    def test_want_of_memory_is_reported(self, alone, node):
        """
        A daemon that ran out of memory is distinguished from one that was killed by hand.
        """
        eater = "x = []\nwhile True: x.append(bytearray(10**6))"
        daemon = {"env": {}, "cwd": "/cluster", "log": "/cluster/log", "at_once": True}
        argv = {"eater": ["/usr/bin/python3", "-c", eater], "sleeper": ["/bin/sleep", "600"]}
        plan = [{"key": key, "argv": words, **daemon} for key, words in argv.items()]
        host = node({"daemons": plan}, mem_limit="100m", memswap_limit="100m")
        log = DeathLog(alone, {"bare": host.container})

        first = until(log.deaths)

        assert [(k, how.partition(":")[0]) for k, how in first.items()] == [
            ("eater", "has ended with signal 9")
        ]
        assert "OOMKilled" in first["eater"]
        assert memory_kills(host) == 1
        alone.client.api.kill(host.container)
        assert until(log.ended_nodes) == {"bare"}
        assert "OOMKilled" in state_of(alone, host.container)
        assert memory_kills(host) == 1
        log.close()

    @long
    def test_jvms_tell_their_threads(self, node, tmp_path, monkeypatch):
        """
        Each JVM of a node, by the name of its daemon, in a file here.
        """
        argv = [
            "/opt/java/bin/java", "-Xmx128m", "-cp", "/opt/hadoop/path.jar",
            "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager",
        ]  # fmt: skip
        daemon = {"env": {}, "cwd": "/cluster", "log": "/cluster/log", "at_once": True}
        host = node({"daemons": [{"key": "resourcemanager-bare", "argv": argv, **daemon}]})
        until(lambda: "hadoop" in host.run(["cat", "/cluster/log"]).out)  # it takes signals now

        dumper = DockerCluster("asked", ClusterSpec(provider="docker"), HadoopHome.find())
        monkeypatch.setattr(DockerCluster, "hosts", (host,))
        (dump,) = dumper.dump_threads(tmp_path / "dumps")

        assert dump.name == "resourcemanager-bare.txt"
        assert "Full thread dump" in dump.read_text()

    def test_a_container_that_ended_says_so(self, alone, node):
        """
        No command runs there, and why is reported.
        """
        host = node()
        alone.client.api.kill(host.container)

        with pytest.raises(ClusterError, match="bare does not run: its container has ended"):
            until(lambda: host.run(["true"]) and None)


LISTEN = """
import socket
server = socket.create_server(("", 8088))
print("ready", flush=True)
while True:
    server.accept()[0].sendall(b"here")
"""
CONNECT = """
import socket, sys
try:
    print(socket.create_connection((sys.argv[1], 8088), 3).recv(4).decode())
except OSError:
    print("nobody")
"""


@pytest.fixture
def networks(alone):
    """
    Subnet and name of a cluster's network, and the name of somebody else's.
    """
    subnet = nodes.make_network(alone, "fenced")
    other = alone.client.networks.create(f"beside-{owner()}", driver="bridge")
    yield subnet, nodes.network_name("fenced"), other.name
    other.remove()
    alone.reap("fenced")


def test_nobody_outside_its_network_reaches_a_node(alone, networks, node):
    """
    Not root of the engine's machine, no other user of it, no container in the machine's own network
    or in another one; a node beside it does.
    """
    subnet, own_network, other_network = networks
    listener = node(network_mode=own_network)
    serving = listener.open(["python3", "-c", LISTEN])
    assert serving.stdout.readline() == b"ready\n"
    facts = alone.client.api.inspect_container(listener.container)
    target = facts["NetworkSettings"]["Networks"][own_network]["IPAddress"]

    answers = {
        mode: node(network_mode=mode).run(["python3", "-c", CONNECT, target]).out.strip()
        for mode in (own_network, "host", other_network)
    }
    if alone.is_near:
        read = f"exec 2> /dev/null; head -c 4 < /dev/tcp/{target}/8088 || echo nobody"
        for user in ("0", "65534"):
            identity = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"]
            argv = [*identity, "timeout", "5", "bash", "-c", read]
            answers[user] = subprocess.run(
                argv, capture_output=True, text=True, check=False
            ).stdout.strip()
    own_links = listener.run(["cat", "/proc/net/if_inet6"]).out
    serving.kill()
    for pipe in (serving.stdin, serving.stdout, serving.stderr):
        pipe.close()

    assert target.rpartition(".")[0] == subnet.rpartition(".")[0]
    assert answers.pop(own_network) == "here"
    assert set(answers.values()) <= {"nobody", ""}
    assert "eth0" not in own_links  # nor by an address of the link alone


class TestRefusals:
    def cluster(self, name, **more):
        """
        A cluster of one worker.
        """
        return DockerCluster(
            name, ClusterSpec(provider="docker", workers=1, **more), HadoopHome.find()
        )

    def test_a_name_that_somebody_else_has(self, alone):
        """
        Another's container of the name stays; our own are all gone; the fix is another name.
        """
        api, name = alone.client.api, nodes.name_of("taken", "worker1")
        image = images.ensure(alone, HadoopHome.find())
        other = api.create_container(image, name=name)["Id"]
        try:
            with pytest.raises(EngineError, match="already in use") as caught:
                self.cluster("taken").up()
            assert "another name" in caught.value.fix
            assert engines.left("taken") == []
            assert api.inspect_container(other)["Id"] == other
        finally:
            api.remove_container(other)

    def test_a_cluster_of_somebody_with_our_labels_that_runs(self, alone, node):
        """
        Its state folder is elsewhere, as that of another machine with the same engine: it runs on,
        and who started it is named.
        """
        other = node(labels={**alone.labels("elsewhere"), f"{LABEL}.host": "build-7"})

        with pytest.raises(ClusterError, match="was started elsewhere, on build-7") as caught:
            self.cluster("elsewhere").up()
        assert f"--filter label={LABEL}.cluster=elsewhere" in caught.value.fix
        assert other.run(["true"]).status == 0

    def test_networks_that_are_all_taken(self, alone, monkeypatch):
        """
        Nothing is left, and how to free some is reported.
        """
        monkeypatch.setattr(nodes, "free_subnets", lambda used: [])

        with pytest.raises(
            ClusterError, match=r"no free network within 198\.18\.64\.0/18"
        ) as caught:
            self.cluster("nowhere").up()
        assert "docker network prune" in caught.value.fix
        assert engines.left("nowhere") == []

    def test_a_network_that_is_taken_meanwhile(self, alone, monkeypatch):
        """
        What another took between our look and our request is passed over.
        """
        from docker.types import IPAMConfig, IPAMPool

        pool = IPAMConfig(pool_configs=[IPAMPool(subnet="198.18.127.0/24")])
        other = alone.client.networks.create(f"other-{owner()}", ipam=pool, internal=True)
        subnets = ["198.18.127.0/24", "198.18.126.0/24"]
        monkeypatch.setattr(nodes, "free_subnets", lambda used: subnets)
        try:
            assert nodes.make_network(alone, "beside") == "198.18.126.0/24"
        finally:
            alone.reap("beside")
            other.remove()
        assert engines.left("beside") == []

    def test_gpus_that_the_engine_cannot_give(self, alone):
        """
        Refused before anything is made, with what to install.
        """
        if nodes.offers_gpus(alone):
            pytest.skip("this engine has the NVIDIA runtime")

        with pytest.raises(MachineError, match="no NVIDIA runtime") as caught:
            self.cluster("gpus", node=NodeSpec(gpus=1)).up()
        assert "nvidia-ctk" in caught.value.fix
        assert engines.left("gpus") == []
        assert DockerCluster.gpus_per_node(1) == 0


def start_or_skip(cluster):
    """
    Start its nodes; where others leave nothing of what was requested, the error is to report it.
    """
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("harness.clusters.masters.await_healthy", lambda *_, **__: None)
            return cluster.up()
    except ClusterError as error:
        message = str(error)
    assert "nodes do not achieve their limits: worker1" in message
    assert engines.left(cluster.name) == []
    assert os.getloadavg()[0] > len(os.sched_getaffinity(0)), message
    return pytest.skip(f"others keep this machine busy: {message}")


@long
@pytest.mark.parametrize(
    "hardware",
    [
        pytest.param({"network_bytes_per_s": 12_500_000}, id="network"),
        pytest.param({"disk_bytes_per_s": 20 * 2**20}, id="disk"),
        pytest.param({"cores": 0.2}, id="cores"),
        pytest.param({"memory_bytes": 3 * 2**30}, id="memory"),
    ],
)
def test_nodes_achieve_their_limits(alone, hardware):
    """
    Measured on the node within a tenth, while nothing else runs there; then its daemons start, and
    no helper is left.  (Nothing waits here until these daemons are healthy.)
    """
    spec = ClusterSpec(provider="docker", workers=1, node=NodeSpec(**hardware))
    one = DockerCluster("limited", spec, HadoopHome.find())
    try:
        start_or_skip(one)
        are_met = [limit.is_met for by_name in one.limits.values() for limit in by_name.values()]
        began = until(lambda: len(one.hosts[1].run(["ls", "/cluster/daemons"]).out.split()) == 2)
        node_names = [c.labels[f"{LABEL}.node"] for c in alone.containers("limited")]
        memory = alone.client.api.inspect_container(one.hosts[1].container)["HostConfig"]["Memory"]
    finally:
        one.down()

    count = 0 if "memory_bytes" in hardware else 1 if "cores" in hardware else 2
    assert are_met == [True] * count
    assert memory == hardware.get("memory_bytes", 0)
    assert (bool(began), sorted(node_names)) == (True, ["master", "worker1"])
    assert engines.left("limited") == []


@long
def test_a_job_that_outgrows_its_node(environment, results, log, alone):
    """
    The trial fails, and its reason names the node, its limit and what the kernel did.
    """
    greedy = "configuration={yarn.app.mapreduce.am.command-opts: -Xms3g -Xmx3g -XX:+AlwaysPreTouch}"
    argv = docker_run("run", results, f"cluster.node.memory={SMALL >> 20} MiB", greedy)
    process = start(log, environment, *argv, "--on-error", "stop")

    assert process.wait(timeout=LIMIT_S) == 5, log.read_text()
    (failed,) = trial_records(results)
    assert "which may use 2.12 GiB of memory (cluster.node.memory)" in failed.reason
    # the kernel kills the process with most memory: the task, or a daemon before it
    assert "exitCode: 137" in failed.reason or "died during the trial" in failed.reason
    assert "which may use 2.12 GiB of memory" in log.read_text()
    assert everything(alone) == []


@pytest.fixture
def results(tmp_path):
    """
    A folder for results.
    """
    return tmp_path / "results"


@pytest.fixture
def log(tmp_path):
    """
    Output of a harness in the background.
    """
    return tmp_path / "log"


def docker_run(name, results, *more):
    """
    A command on the smoke experiment, one line changed, and *more* options.
    """
    changes = ["cluster.provider=docker", "trial_limit=10 min", *more]
    return command(name, results, *(word for each in changes for word in ("--set", each)))


def own_containers(engine):
    """
    All containers of this test's clusters.
    """
    label = {"label": f"{LABEL}.owner={owner()}"}
    return engine.client.containers.list(all=True, filters=label, ignore_removed=True)


def everything(engine):
    """
    Their names.
    """
    return [c.name for c in own_containers(engine)]


@long
def test_killed_while_it_starts(environment, log, alone):
    """
    Its nodes made and its keeper gone, another process takes all of it down.
    """
    up = SimpleNamespace(argv=command("cluster", "up")[:3])
    process = start(log, environment, *up.argv, "cluster", "up", "--provider", "docker")
    wait_for(lambda: everything(alone), process, log)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = everything(alone)
    time.sleep(2)  # what the engine was asked for last is still done
    done = subprocess.run(
        [*up.argv, "cluster", "down", "--name", "default"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert before
    assert done.returncode == 0, done.stderr
    assert (everything(alone), engines.left("default")) == ([], [])


def lose(engine, what):
    """
    Lose a container, its network, or a daemon in it, which is killed or stands still.
    """
    name = next(n for n in everything(engine) if n.endswith(what.rpartition(" ")[2]))
    daemon = what.partition(" on ")[0]
    if what.startswith("container"):
        engine.client.api.kill(name)
    elif what.startswith("network"):
        (network,) = engine.client.api.inspect_container(name)["NetworkSettings"]["Networks"]
        engine.client.networks.get(network).disconnect(name, force=True)
    else:
        number = "STOP" if daemon.startswith("still ") else "9"
        pid = f"$(cat /cluster/daemons/{daemon.removeprefix('still ')}-*)"
        made = engine.client.api.exec_create(name, ["sh", "-c", f"kill -{number} {pid}"])
        engine.client.api.exec_start(made["Id"])


LOST = {
    "container on worker1": ("datanode on worker1, nodemanager on worker1 died", 15.0),
    "datanode on worker2": ("datanode on worker2 died", 15.0),
    "nodemanager on worker1": ("nodemanager on worker1 died", 15.0),
    "resourcemanager on master": ("resourcemanager on master died", 15.0),
    "network on worker1": ("nodemanager on worker1 has not answered for 15 s", 60.0),
    "still namenode on master": ("namenode on master has not answered for 15 s", 30.0),
}


@long
@pytest.mark.parametrize("fault", LOST)
def test_what_is_lost_in_a_trial(environment, results, log, alone, fault):
    """
    The trial fails in bounded time, by the name of what was lost; nothing stays.
    """
    message, within_s = LOST[fault]
    process = start(log, environment, *docker_run("run", results), "--on-error", "stop")
    wait_for(lambda: mapping(results), process, log)
    lose(alone, fault)
    lost_s = time.time()

    assert process.wait(timeout=LIMIT_S) == 5, log.read_text()
    (failed,) = [r for r in trial_records(results) if r.state != "done"]
    assert message in failed.reason
    assert failed.finished_s - lost_s < within_s
    assert everything(alone) == []


def trial_records(results):
    """
    The trials of the newest run.
    """
    return list(Store(results).latest("smoke").trials().values())


def close_broken():
    """
    Close the connections to an engine that has died: its client's library lets go of them open.
    """
    gc.collect()
    for each in gc.get_objects():
        if type(each) is socket.socket and each.family == socket.AF_UNIX:
            each.close()


# some of them are collected before
@long
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_engine_that_dies_under_us(engine, alone, node, tmp_path):
    """
    A command and a cluster on it end with what happened; what is left goes once it is back.
    """
    private = engine[1]
    if private is None:
        pytest.skip("this engine must not be killed: stop it, and the tests start their own")
    one = DockerCluster("dying", ClusterSpec(provider="docker", workers=1), HadoopHome.find())
    one._start()
    before = one.dead_daemons()
    command_ = node().start(["sleep", "600"], tmp_path / "log")
    private.kill()

    with pytest.raises(EngineError, match="does not answer"):
        command_.wait(PATIENCE_S)
    with pytest.raises(EngineError, match="does not answer"):
        until(lambda: one.dead_daemons() and None)
    assert {"does not answer" in text for text in one.daemon_logs().values()} == {True}
    with pytest.raises(MachineError, match="no Docker engine answers"):
        one.down()
    private.start()
    assert before == {}
    assert len(engines.left("dying")) > 0  # the engine removes the containers alone
    assert [DockerCluster.remove("dying") for _ in range(2)] == [True, False]
    assert engines.left("dying") == []
    close_broken()


@long
def test_an_engine_that_dies_during_a_trial(engine, environment, results, log, alone):
    """
    The run ends in bounded time and says that the engine does not answer; with the engine back the
    same command takes away what was left, unless the watchdog came first, and goes on.
    """
    private = engine[1]
    if private is None:
        pytest.skip("this engine must not be killed: stop it, and the tests start their own")
    process = start(log, environment, *docker_run("run", results))
    wait_for(lambda: list(results.glob(CLIENT)), process, log)
    private.kill()
    killed_s = time.monotonic()
    status = process.wait(timeout=LIMIT_S)
    took_s, message = time.monotonic() - killed_s, log.read_text()
    failed = [r.reason for r in trial_records(results) if r.state == "failed"]
    private.start()
    left = {c.id for c in alone.client.containers.list(all=True, ignore_removed=True)}
    again = start(log, environment, *docker_run("run", results))
    wait_for(lambda: (now := own_containers(alone)) and not left & {c.id for c in now}, again, log)
    again.send_signal(signal.SIGINT)
    again.wait(timeout=LIMIT_S)

    assert (status, took_s < 60) == (3, True), message
    assert "no Docker engine answers" in message
    assert ["engine does not answer" in reason for reason in failed] == [True], failed
    assert (len(left) in {0, 3}, everything(alone)) == (True, []), log.read_text()
