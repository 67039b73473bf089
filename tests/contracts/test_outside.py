"""
Nobody but its user reaches a cluster: every listening port is tried from outside, on each provider.

The same tries from inside, with the secret, succeed: the attacker is no paper tiger.
"""

import os
import sys

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from harness import clusters as providers
from harness.base.hadoop.daemons import WORKER_PORTS
from harness.base.records.trial import ClusterSpec
from harness.clusters.hadoop_home.home import HadoopHome
from tests.contracts import outside
from tests.contracts.cases import CASES, FILE, apps, of_members, start_job

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(os.geteuid() != 0, reason="root alone can be somebody else"),
]

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
PROOF = "X-Harness-Proof"


EVERY = [
    pytest.param(case, id=name, marks=[pytest.mark.long] * (name != "local"))
    for name, case in CASES.items()
]


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
        insider = outside.as_insider(known, on_worker, worker.address, layout.secret(worker), data)
        places = made.places(cluster)
        others = made.outsiders(places)
        port = stack.enter_context(outside.open_service({port for _, port in places}))
        ways = {
            name: outside.statuses(
                [(each.machine, port, "/", {}, "")], each.vantage, each.tools.python
            )
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


@dataclass(frozen=True)
class Web:
    """
    A cluster whose pages are asked for; 0 is the master, 1 the worker.
    """

    cluster: providers.Cluster
    application: str
    secret: str
    header: str

    def ask(self, page, *tries, by=None):
        """
        How a page (node, port and path) answers each of some headers, or proofs of a secret; asked
        on its own node, or on another one.
        """
        node, port, path = page
        member = self.cluster.layout.members[node]
        number = member.port(port) if isinstance(port, str) else port
        place = member.address, number, path.replace("APPLICATION", self.application)
        requests = [
            (*place, {}, each) if isinstance(each, str) else (*place, each, "") for each in tries
        ]
        host = self.cluster.hosts[node if by is None else by]
        return outside.statuses(requests, outside.on(host), self.cluster.python_on(host))


@pytest.fixture(scope="module")
def web(folder):
    """
    A local cluster with a running job.
    """
    home = HadoopHome.find()
    with providers.PROVIDERS["local"]("web", ClusterSpec(workers=1), home) as cluster:
        cluster.hdfs.put(FILE, [b"ours"])
        client, application = start_job(cluster, folder)
        layout, on_worker = cluster.layout, outside.on(cluster.hosts[1])
        name, secret = outside.secret_line(on_worker, layout.secret(layout.workers[0]))
        yield Web(cluster, application, secret, name)
        client.kill()
        client.wait(60)


@pytest.mark.parametrize("service", PAGES)
def test_a_web_service_refuses_whoever_lacks_the_secret(service, web):
    """
    Without it, with one that is wrong, cut or too long, or with the right one elsewhere.
    """
    name, secret = web.header, web.secret
    other = f"{secret[:-1]}{'1' if secret.endswith('0') else '0'}"
    wrong = [
        {}, {name: ""}, {name: other}, {name: secret[:-1]}, {name: secret + "0"},
        {name: secret.upper()}, {"Authorization": f"Bearer {secret}"},
        {"Cookie": f"{name}={secret}"}, {PROOF: secret}, {PROOF: f"0 0 {secret}"}, other,
    ]  # fmt: skip

    assert web.ask(PAGES[service], *wrong) == [FORBIDDEN] * len(wrong)
    assert web.ask(PAGES[service], {name: secret}) == [OK]


@pytest.mark.parametrize("service", PAGES)
def test_a_web_service_takes_a_proof_from_elsewhere_and_no_secret(service, web):
    """
    Who shows the secret on a network has shown it to others.
    """
    page = PAGES[service]
    answers = web.ask(page, {web.header: web.secret}, web.secret, by=1 - page[0])

    assert answers == [FORBIDDEN, OK]


def test_the_page_of_an_application_master_is_for_the_proxy(web):
    """
    Whoever asks itself is sent there, with the secret, too.
    """
    listening = outside.listening(outside.on(web.cluster.hosts[1]))
    ports = set(listening) - {*WORKER_PORTS.values()}
    tries = {}, {web.header: web.secret}, web.secret
    answers = {port: web.ask((1, port, "/ws/v1/mapreduce/info"), *tries) for port in ports}

    assert [each for each in answers.values() if OK in each] == []
    assert [each for each in answers.values() if 302 in each] == [[302, 302, 302]]
