"""
What every provider keeps to: on a fake of small processes (`process`), on `local` (`live`), and on
each other one (`long`).

Every provider of `PROVIDERS` is tried; `BENCHES` adds what some of them need around them.
"""

import hashlib
import inspect
import os
import re
import subprocess
import sys
import tempfile
import time

from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness import clusters as providers
from harness.base.errors import ClusterError, SpecError
from harness.base.records.trial import ClusterSpec
from harness.clusters import state
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.host import HostTimeoutError
from harness.clusters.masters import RefusedError
from harness.clusters.ssh.connection import trust
from tests.contracts import fake_provider
from tests.live import bare_hosts, engine
from tests.live.foreign import as_anybodys_are
from tests.live.open_clone import skip_where_closed

PROJECT = Path(__file__).parents[2]
PATIENCE_S = 300.0
WORKERS = 2
# A DataNode that is told to do without more folders than it has ends at once.
FATAL = {fake_provider.FATAL: "-7"}


@dataclass(frozen=True)
class Bench:
    """
    How a provider is tried.

    *home* finds what its clusters are made of; *place* is where they are made: a context that
    answers variables of the environment, and skips where there is none; *register* makes it known,
    and *known_by* does so in another process; *left* tells what a cluster left outside the folder
    of all clusters; *fields* are those of a specification that it asks for, *variables* those of
    the environment.  A cluster that is not *ours* is neither started nor ended, and its nodes have
    no connection.
    """

    home: Callable[[], object] = HadoopHome.find
    place: Callable[[], AbstractContextManager] = lambda: nullcontext({})
    register: Callable[[], None] = lambda: None
    registration: str = "pass"
    left: Callable[[str], list] = lambda name: []
    fields: dict = field(default_factory=dict)
    variables: dict = field(default_factory=dict)
    is_ours: bool = True


@contextmanager
def on_ports():
    """
    This machine without namespaces.
    """
    skip_where_closed()
    yield {}


@contextmanager
def docker_place():
    """
    An engine with the image of a node.
    """
    with engine.ready() as (address, _):
        yield {"DOCKER_HOST": address}


@contextmanager
def somebody_elses():
    """
    A cluster that runs, of which only the configuration is known.
    """
    with pytest.MonkeyPatch.context() as patch:
        as_anybodys_are(patch)
        name = f"theirs-{os.getpid()}"
        cluster = providers.PROVIDERS["local"](
            name, ClusterSpec(workers=WORKERS), HadoopHome.find()
        )
        with cluster as up:
            conf = up.layout.conf(up.layout.master)
            yield {"HADOOP_CONF_DIR": conf, "HADOOP_USER_NAME": "root"}


BARE: dict = {}
BARE_HOSTS: list = []


@contextmanager
def bare_place():
    """
    Hosts with sshd and nothing else, trusted.
    """
    if why := bare_hosts.lacking():
        pytest.skip(why)
    with bare_hosts.BareHosts() as place:
        for _ in range(1 + WORKERS):
            place.add(wait=False)
        for host in place.hosts:
            bare_hosts.await_listening(host)
            trust(host.address, host.fingerprint)
        access = {"key": str(place.key)}
        BARE.update(hosts=tuple(h.address for h in place.hosts), ssh=access)
        BARE_HOSTS[:] = place.hosts
        yield {}
    BARE.clear()


def left_on_hosts(name):
    """
    Files on bare hosts that belong to a cluster.
    """
    lines = []
    for host in BARE_HOSTS:
        lines += host.written().splitlines()
    return [line for line in lines if f"/clusters/{name}" in line or f"harness {name}" in line]


BENCHES = {
    "fake": Bench(
        home=lambda: None,
        register=fake_provider.register,
        registration="from tests.contracts import fake_provider; fake_provider.register()",
    ),
    **{name: Bench() for name in providers.PROVIDERS},
    "local on ports": Bench(
        fields={"provider": "local"},
        variables={"HARNESS_LOCAL_NETWORK": "ports"},
        place=on_ports,
    ),
    "existing": Bench(place=somebody_elses, is_ours=False),
    "docker": Bench(place=docker_place, left=engine.left),
    "ansible": Bench(place=bare_place, left=left_on_hosts, fields=BARE),
}
# What takes an engine, bare hosts or a second cluster takes many minutes.
RINGS = {"fake": pytest.mark.process, "local": pytest.mark.live}
LONG = (pytest.mark.live, pytest.mark.long)
EVERY = [pytest.param(name, marks=RINGS.get(name, LONG)) for name in BENCHES]


@pytest.fixture(scope="module")
def alone():
    """
    A folder for all clusters of these tests, which the account of daemons may enter.
    """
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        Path(folder).chmod(0o755)
        patch.setenv("XDG_STATE_HOME", folder)
        yield patch


@pytest.fixture(scope="module", params=EVERY)
def maker(request, alone):
    """
    A function that describes a cluster of the provider; what it left running is taken down.
    """
    bench = BENCHES[request.param]
    clusters = []
    before = providers.PROVIDERS
    bench.register()

    def make(name, **more):
        spec = {"provider": request.param, "workers": WORKERS, **bench.fields, **more}
        provider = providers.PROVIDERS[spec["provider"]]
        clusters.append(provider(name, ClusterSpec(**spec), bench.home()))
        return clusters[-1]

    make.bench = bench
    with bench.place() as more:
        variables = {**bench.variables, **more}
        for variable, value in variables.items():
            alone.setenv(variable, value)
        yield make
        for made_cluster in clusters:
            made_cluster.down()
    providers.PROVIDERS = before
    for variable in variables:
        alone.delenv(variable)


@pytest.fixture(scope="module")
def cluster(maker):
    """
    A healthy cluster, for tests that leave it so.
    """
    with maker("shared") as up:
        yield up


@pytest.fixture
def is_ours(maker):
    """
    Only for clusters that we start.
    """
    if not maker.bench.is_ours:
        pytest.skip("the cluster is not ours to start, and its nodes have no connection")


def node(cluster):
    """
    A worker; of a cluster without connections the machine on which clients run.
    """
    return cluster.hosts[-1]


def left(maker, name):
    """
    What is left of the cluster *name*: files, processes that name them, what the provider knows of.
    """
    folder = state.cluster_folder(name)
    seen = [str(folder)] if folder.exists() else []
    return seen + processes_of(folder) + maker.bench.left(name)


def processes_of(folder):
    """
    Processes whose command line names *folder*.
    """
    seen = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if f"{folder}/".encode() in words:
            seen.append(words.replace(b"\0", b" ").decode()[:200])
    return seen


def elsewhere(maker, program):
    """
    What *program* prints in another process.
    """
    code = f"{maker.bench.registration}\nfrom harness import clusters as providers\n{program}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def until(condition):
    """
    The condition's first true value.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return value


def test_a_provider_is_registered_by_its_own_name():
    """
    A cluster's folder names the class that takes it down; a subclass must not go by its parent's.
    """
    registered = providers.PROVIDERS.items()

    assert [name for name, provider in registered if provider.provider != name] == []
    assert [name for name, provider in registered if not provider.description] == []
    assert [name for name, provider in registered if inspect.isabstract(provider)] == []


class TestLife:
    def test_another_process_attaches_and_takes_the_cluster_down(self, maker):
        """
        Another process finds it up and takes it down; further times nothing happens.
        """
        started_cluster = maker("life")
        started_cluster.up()
        seen_elsewhere = elsewhere(
            maker, "c = providers.attach('life'); print(c.provider, c.is_up())"
        )
        took = elsewhere(maker, "print(providers.remove('life'), providers.remove('life'))")
        started_cluster.down()
        started_cluster.down()

        assert seen_elsewhere == [started_cluster.provider, "True"]
        assert took == ["True", "False"]
        assert (
            started_cluster.is_up(),
            "life" in started_cluster.names(),
            left(maker, "life"),
        ) == (False, False, [])

    def test_a_failed_start_names_the_daemon_and_leaves_nothing(self, maker, is_ours):
        """
        Who died or is silent, on which node; all that was started is gone.
        """
        failing_cluster = maker("failing", site=FATAL)

        with pytest.raises(ClusterError, match=r"datanode on worker[12]") as caught:
            failing_cluster.up()
        assert "failing" in caught.value.where
        assert caught.value.fix
        assert left(maker, "failing") == []

    def test_an_interrupted_start_leaves_nothing(self, maker, monkeypatch):
        """
        Ctrl-C while it comes up takes it down.
        """
        interrupted_cluster = maker("interrupted")

        def interrupt(request):
            raise KeyboardInterrupt

        monkeypatch.setattr(interrupted_cluster, "_check_health", interrupt)
        with pytest.raises(KeyboardInterrupt):
            interrupted_cluster.up()

        assert left(maker, "interrupted") == []

    def test_a_cluster_that_is_not_up_accepts_only_down(self, maker, tmp_path):
        """
        Everything else says so, and how to start one.
        """
        nothing = type(maker("nothing")).attach("nothing")
        nothing.down()

        assert not nothing.is_up()
        with pytest.raises(ClusterError, match="'nothing' is not up") as caught:
            nothing.hosts[0].run(["true"])
        assert caught.value.fix.startswith("harness cluster up")

    def test_properties_that_the_provider_sets_are_refused(self, maker, is_ours):
        """
        Before anything is started.
        """
        with pytest.raises(SpecError, match=r"cluster\.site\.fs\.defaultFS"):
            maker("refused", site={"fs.defaultFS": "file:///"}).up()

        assert left(maker, "refused") == []

    def test_a_second_start_of_a_name_is_refused(self, maker, cluster):
        """
        A second start of the name is refused, and the first goes on.
        """
        with pytest.raises(ClusterError, match="'shared' is up already"):
            maker("shared").up()

        assert cluster.dead_daemons() == {}
        assert type(cluster).attach("shared").is_up()

    def test_the_name_of_another_providers_cluster_is_refused(self, maker):
        """
        Its cluster would lose its state, and run for ever.
        """
        folder = state.cluster_folder("theirs")
        state.make_folder(folder, "another")
        (folder / "state.json").write_text("{}")
        try:
            with pytest.raises(ClusterError, match="'theirs' is taken by a cluster of another"):
                maker("theirs").up()

            assert (state.provider_of("theirs"), (folder / "state.json").read_text()) == (
                "another",
                "{}",
            )
        finally:
            state.remove_tree(folder)


class TestHosts:
    def test_hosts_are_the_master_and_then_the_workers(self, cluster, is_ours):
        """
        Each with its name.
        """
        workers = [f"worker{n + 1}" for n in range(cluster.spec.workers)]
        assert [h.name for h in cluster.hosts] == ["master", *workers]

    def test_run(self, cluster):
        """
        Arguments arrive unchanged, no shell reads them; status and both outputs come back.
        """
        program = "import sys; print(sys.argv[1], sys.stdin.read()); sys.stderr.write('e'); exit(3)"
        argv = [cluster.python_on(node(cluster)), "-c", program, "$HOME; ls 'x\n\" *"]
        for host in cluster.hosts:
            done = host.run(argv, stdin="ü".encode())

            assert (done.status, done.out, done.err) == (3, "$HOME; ls 'x\n\" * ü\n", "e")

    def test_run_without_input_reads_nothing(self, cluster):
        """
        Standard input ends at once.
        """
        assert node(cluster).run(["cat"], timeout=60).out == ""

    def test_run_ends_at_its_time_limit(self, cluster):
        """
        A command that takes too long is ended on the host, too, and named.
        """
        host = node(cluster)
        mark = "600.125"

        with pytest.raises(HostTimeoutError, match=r"has not ended after 0\.5 s") as caught:
            host.run(["sleep", mark], timeout=0.5)
        assert host.name in caught.value.where
        assert until(lambda: not running(cluster, mark))

    def test_start_writes_to_a_log_on_this_machine(self, cluster, tmp_path):
        """
        Standard output and errors, in their order, behind what was there.
        """
        log = tmp_path / "log"
        log.write_bytes(b"before\n")
        program = "import sys; print('out', flush=True); sys.stderr.write('err\\n'); sys.exit(4)"
        process = node(cluster).start([cluster.python_on(node(cluster)), "-c", program], log)

        assert process.wait(timeout=PATIENCE_S) == 4
        assert (process.poll(), process.returncode) == (4, 4)
        assert log.read_text() == "before\nout\nerr\n"

    @pytest.mark.parametrize("how", ["start", "open"])
    def test_kill_ends_the_command_on_the_host(self, cluster, tmp_path, how):
        """
        With what it has started itself.
        """
        host = node(cluster)
        mark = f"600.{25 + ord(how[0])}"
        argv = ["sh", "-c", 'sleep "$1" & wait', "sh", mark]
        process = host.start(argv, tmp_path / "log") if how == "start" else host.open(argv)
        began = until(lambda: running(cluster, mark))
        during = process.poll()
        process.kill()
        status = process.wait(timeout=PATIENCE_S)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()

        assert (bool(began), during) == (True, None)
        assert status != 0
        assert until(lambda: not running(cluster, mark))

    def test_wait_ends_at_its_time_limit(self, cluster, tmp_path):
        """
        As that of a process of ours.
        """
        process = node(cluster).start(["sleep", "600"], tmp_path / "log")
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=0.1)
        finally:
            process.kill()
            process.wait()

    def test_open_connects_the_commands_streams(self, cluster):
        """
        Any bytes go in and come out; errors have a pipe of their own.
        """
        content = bytes(range(256)) * 4096
        process = node(cluster).open(["sh", "-c", "cat; echo done >&2"])
        head = content[:1000]
        process.stdin.write(head)
        process.stdin.flush()
        first = process.stdout.read(1000)
        process.stdin.write(content[1000:20_000])
        process.stdin.close()
        rest = process.stdout.read()
        errors = process.stderr.read()
        status = process.wait(timeout=PATIENCE_S)
        process.stdout.close()
        process.stderr.close()

        assert (first + rest, errors, status) == (content[:20_000], b"done\n", 0)

    def test_put(self, cluster, tmp_path):
        """
        A file goes to the node's own folder, whatever is in it.
        """
        source = tmp_path / "source"
        source.write_bytes(os.urandom(3 * 2**20 + 1))
        digest = hashlib.sha256(source.read_bytes()).hexdigest()
        for host in cluster.hosts:
            host.put(source, "there")

            assert host.run(["sha256sum", f"{host.folder}/there"]).out.split()[0] == digest

    def test_a_file_of_this_machine_is_copied_to_the_gateway_once(self, cluster, tmp_path):
        """
        It is where the answer says, the second time, too.
        """
        file = tmp_path / "jar"
        file.write_bytes(b"content")
        paths = {cluster.host_path(cluster.gateway, file) for _ in range(2)}

        assert len(paths) == 1
        assert cluster.gateway.run(["cat", *paths]).out == "content"


class TestServices:
    def test_files_in_hdfs(self, cluster):
        """
        HDFS keeps what is put there, lists it, and forgets it again.
        """
        content = os.urandom(2**20 + 3)
        folder = f"{cluster.root}/contract"
        cluster.hdfs.put(f"{folder}/a b", [content[:1000], content[1000:]])
        listed = cluster.hdfs.list(folder)
        back = b"".join(cluster.hdfs.open(f"{folder}/a b"))
        cluster.hdfs.delete(f"{folder}/a b")

        assert (listed, back == content) == ([("a b", len(content), False)], True)
        with pytest.raises(ClusterError, match="does not exist"):
            list(cluster.hdfs.open(f"{folder}/a b"))

    def test_a_large_file_that_hdfs_refuses(self, cluster):
        """
        In the middle of it, in HDFS's own words: they say what to do about it.
        """
        folder = f"{cluster.root}/little"
        cluster.hdfs.make(folder)
        quota = f"op=SETQUOTA&storagespacequota={8 * 2**20}&user.name={cluster.user}"
        cluster.hdfs.call("put", "nn", f"/webhdfs/v1{folder}?{quota}", body=b"")

        with pytest.raises(RefusedError, match=r"quota of .*/little is exceeded"):
            cluster.hdfs.put(f"{folder}/large", (bytes(2**20) for _ in range(64)))
        cluster.hdfs.delete(folder)

    def test_web_services(self, cluster):
        """
        The ResourceManager answers in JSON.
        """
        metrics = cluster.hdfs.get_json("rm", "/ws/v1/cluster/metrics")["clusterMetrics"]

        assert metrics["appsRunning"] == 0

    def test_await_idle(self, cluster):
        """
        Nothing runs.
        """
        cluster.await_idle(timeout_s=PATIENCE_S)

    def test_no_daemon_is_missing(self, cluster):
        """
        The masters hear all of their daemons.
        """
        assert cluster.missing_daemons() == []

    def test_site_properties(self, cluster):
        """
        What a client sees.
        """
        assert cluster.site_properties()["mapreduce.framework.name"] == "yarn"

    @pytest.mark.parametrize("name", ["..", "application_1_2/../..", "", "application_1_2\n"])
    def test_invalid_application_ids_are_refused(self, cluster, name):
        """
        No other text becomes part of an address.
        """
        with pytest.raises(ClusterError, match="not the id of an application"):
            cluster.kill_application(name)


class TestEvidence:
    def test_hosts_report_their_facts(self, cluster):
        """
        Each its clock, its disk and its versions.
        """
        reported = cluster.survey()

        assert [(h.name, h.error) for h in reported] == [(h.name, "") for h in cluster.hosts]
        assert all(abs(h.clock_s) < 60 and h.disk_free_bytes > 0 and h.python for h in reported)

    def test_every_daemon_has_a_log(self, cluster, is_ours):
        """
        By its name; nothing in it moves a terminal's cursor.
        """
        logs = cluster.daemon_logs(5)

        assert set(cluster.daemon_names()) == set(logs)
        assert set(logs) == {
            "namenode on master", "resourcemanager on master", "historyserver on master",
            *(
                f"{kind} on worker{n + 1}"
                for kind in ("datanode", "nodemanager")
                for n in range(cluster.spec.workers)
            ),
        }  # fmt: skip
        assert not re.search(r"[\x00-\x08\x0b-\x1f]", "".join(logs.values()))

    def test_a_dead_daemon_is_named(self, cluster, is_ours):
        """
        The last of the tests: it leaves the cluster ill.
        """
        before = cluster.dead_daemons()
        worker = cluster.layout.workers[-1]
        killed = node(cluster).run(
            [
                cluster.python_on(node(cluster)),
                "-c",
                KILLER,
                "-Dproc_datanode",
                cluster.layout.conf(worker),
            ]
        )

        assert (before, killed.out.split()) == ({}, ["1"]), killed.err
        dead = {f"datanode on {worker.name}": "died"}
        assert until(cluster.dead_daemons) == dead
        assert type(cluster).attach("shared").dead_daemons() == dead


FIND = """
import os, sys
def found(*marks):
    for name in os.listdir("/proc"):
        try:
            words = open(f"/proc/{name}/cmdline", "rb").read() if name.isdigit() else b""
        except OSError:
            continue
        own = int(name) == os.getpid() if words else True
        if not own and all(os.fsencode(m) in words for m in marks) and b"import os" not in words:
            yield int(name)
"""
KILLER = FIND + "pids = list(found(*sys.argv[1:]))\nfor p in pids: os.kill(p, 9)\nprint(len(pids))"


def running(cluster, mark):
    """
    Process ids on the first worker whose command line holds *mark*.
    """
    program = FIND + "print(*found(sys.argv[1]))"
    return node(cluster).run([cluster.python_on(node(cluster)), "-c", program, mark]).out.split()
