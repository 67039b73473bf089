"""
Clusters of each provider with others around them: where these are, and what they reach.
"""

import time

from contextlib import suppress

import pytest

from harness.base.errors import ClusterError
from harness.base.hadoop import site
from harness.base.hadoop.daemons import MASTER_PORTS, WORKER_PORTS
from harness.base.records.trial import ClusterSpec, SshAccess
from harness.clusters.docker import image, nodes
from harness.clusters.docker.engine import LABEL, Engine, owner
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.ssh.connection import trust
from tests.contracts import outside
from tests.contracts.outside import Outsider
from tests.live import bare_hosts
from tests.live import engine as engines
from tests.live.open_clone import skip_where_closed

SSHD = 22
FILE = "/harness/outside/file"


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

    brought = outside.Tools("python3", nodes.JAVA_COMMAND, f"{nodes.HOME}/path.jar")

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
            return (out or b"").decode()

        return run

    def crafted(self, cluster, **what):
        """
        TCP by hand in the machine's network, on the bridge of the cluster, from an address that is
        none of its nodes'.
        """
        labels = f"{LABEL}.cluster={cluster.name}"
        (network,) = self.engine.client.networks.list(filters={"label": labels})
        source = f"{cluster.layout.master.address.rpartition('.')[0]}.200"
        facts = {"interface": f"br-{network.id[:12]}", "source": source, "hop": "", **what}
        return outside.told("crafted.py", facts, self.containers[0], "python3")

    def outsiders(self, places):
        """
        Also root of this machine, whom an engine makes a member of its other networks.
        """
        near, far = self.containers
        return {
            **super().outsiders(places),
            "root": Outsider(outside.run, places, self.here),
            "a container in the machine's network": Outsider(near, places, self.brought),
            "a container in another network": Outsider(far, places, self.brought, self.gateway),
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
        self.container = stack.enter_context(outside.container_behind(self.entered(1)))
        self.spec = ClusterSpec(
            provider="ansible", workers=1, hosts=tuple(host.address for host in self.bare[:2]),
            ssh=SshAccess(key=str(made.key)),
        )  # fmt: skip

    def places(self, cluster):
        """
        Without that of sshd.
        """
        return [place for place in super().places(cluster) if place[1] != SSHD]

    def crafted(self, _cluster, **what):
        """
        TCP by hand in the container, from an address beside its own.
        """
        own = {"interface": "eth0", "source": f"{outside.CONTAINER_NET}.77"}
        facts = {**own, "hop": outside.CONTAINER_GATEWAY, **what}
        return outside.told("crafted.py", facts, self.container, self.here.python)

    def entered(self, number):
        """
        What leads into the network of a host.
        """
        return ["nsenter", "-n", "-t", str(self.bare[number].pid)]

    def outsiders(self, places):
        """
        The last of the hosts is none of the cluster's.
        """
        outsiders = {}
        for number, name in enumerate(("master", "worker1")):
            address = self.bare[number].address
            everything = [*places, *(("127.0.0.1", port) for a, port in places if a == address)]
            users = {
                "another user": outside.stranger(self.home, self.entered(number)),
                "root without a right": outside.after([*self.entered(number), *outside.POWERLESS]),
            }
            for user, vantage in users.items():
                outsiders[f"{user} of {name}"] = Outsider(
                    vantage, everything, self.here, self.machine
                )
        worker = self.bare[1].address
        gateway = [(outside.CONTAINER_GATEWAY, port) for a, port in places if a == worker]
        beside = outside.after(self.entered(2))
        return {
            **outsiders,
            "another host beside them": Outsider(beside, places, self.here, self.machine),
            "a container behind worker1": Outsider(
                self.container, [*places, *gateway], self.here, self.machine
            ),
            "root of this machine": Outsider(outside.run, places, self.here),
        }


CASES = {"local": Local, "local on ports": OnPorts, "docker": Docker, "ansible": Ansible}


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


def of_members(layout):
    """
    Pairs of a node and its services.
    """
    return [(layout.master, MASTER_PORTS), *((worker, WORKER_PORTS) for worker in layout.workers)]
