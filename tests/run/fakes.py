"""
A cluster that keeps its state in memory and runs TeraSort, its clients as well.

What it leaves behind is recorded: the history of a real TeraSort of 60 000 rows, under new ids.
"""

from __future__ import annotations

import time

from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from harness.base.errors import ClusterError
from harness.base.hadoop.daemons import Layout, make_members
from harness.base.records.trial import Cell, ClusterSpec, Trial, Versions, WorkloadSpec, trial_id
from harness.clusters.host import LocalHost
from harness.clusters.workloads.terasort import TeraSort

DATA = Path(__file__).parents[1] / "parsing" / "data"
HISTORY = (DATA / "terasort.jhist").read_bytes()
CONF = (DATA / "terasort_conf.xml").read_bytes()
RECORDED = b"1795224441974_0003"
ROWS = 60_000
BLOCK = 2 * 2**20
VERSIONS = Versions(hadoop="3.5.0", java="17.0.1")
CLUSTER = ClusterSpec(workers=2, site={"dfs.blocksize": "2m"})


class Rounds(TeraSort):
    """
    The recorded TeraSort as a workload whose trials have so many jobs; `None`: as it comes.
    """

    name = "rounds"

    def __init__(self, jobs=None):
        self.count = jobs

    def jobs(self, spec):
        return self.count


def terasort(repetition=0, *, profiling=False, workers=2, name="terasort", **configuration):
    """
    One trial of the recorded TeraSort, or of a workload that is made of it.
    """
    cell = Cell(
        cluster=ClusterSpec(workers=workers, site={"dfs.blocksize": "2m"}),
        workload=WorkloadSpec(name=name, input_bytes=ROWS * 100),
        configuration=configuration,
    )
    number = trial_id(cell, repetition, VERSIONS)
    return Trial(id=number, cell=cell, repetition=repetition, profiling=profiling)


@lru_cache(2)
def generated(rows):
    """
    So many rows of 100 bytes, in three pieces.
    """
    table = np.random.default_rng(7).bytes(rows * 100)
    third = -(-len(table) // 300) * 100
    return tuple(table[part * third : (part + 1) * third] for part in range(3))


@lru_cache(2)
def ordered(pieces, *, swaps):
    """
    All rows of the *pieces* by their keys; *swaps*: the first and the last in each other's place.
    """
    table = np.frombuffer(b"".join(pieces), np.uint8).reshape(-1, 100)
    table = table[np.lexsort(table[:, 9::-1].T)]
    if swaps:
        table[[0, -1]] = table[[-1, 0]]
    return table.tobytes()


def recorded_history(number):
    """
    The history as that job of the cluster would have left it, and the job's id.
    """
    new = b"1795224441974_%04d" % number
    return HISTORY.replace(RECORDED, new), f"job_{new.decode()}"


class FakeHdfs:
    """
    Files by path; a folder is there while something lies in it.
    """

    def __init__(self):
        self.files = {}

    def list(self, path):
        below = [p.removeprefix(f"{path}/") for p in self.files if p.startswith(f"{path}/")]
        if not below:
            raise ClusterError(f"{path} does not exist", where="HDFS")
        heads = {p.partition("/")[0]: "/" in p for p in below}
        sizes = {n: 0 if folder else len(self.files[f"{path}/{n}"]) for n, folder in heads.items()}
        return sorted((n, sizes[n], folder) for n, folder in heads.items())

    def open(self, path):
        if path not in self.files:
            raise ClusterError(f"{path} does not exist", where="HDFS")
        yield self.files[path]

    def open_many(self, paths):
        return ((path, self.open(path)) for path in paths)

    def put(self, path, chunks):
        self.files[path] = b"".join(chunks)

    def delete(self, path):
        for name in [p for p in self.files if p == path or p.startswith(f"{path}/")]:
            del self.files[name]

    def make(self, path):
        self.files[f"{path}/.made"] = b""

    def rename(self, source, target):
        if any(p.startswith(f"{target}/") for p in self.files):
            raise ClusterError(f"{target} is there", where="HDFS")
        for name in [p for p in self.files if p.startswith(f"{source}/")]:
            self.files[target + name.removeprefix(source)] = self.files.pop(name)


@dataclass
class Fault:
    """
    What goes wrong with one client, by its number among those of its kind in the whole test.

    It runs *jobs* jobs, one after the other.
    """

    says: str = ""
    status: int = 0
    hangs: bool = False
    kills: str = ""
    swaps: bool = False
    loses: int = 0
    history: bool = True
    jobs: int = 1


class QuickClock:
    """
    The module `time` for who waits for clients in memory: a wait of seconds takes none.
    """

    def __init__(self):
        self.waited_s = 0.0

    def monotonic(self):
        return time.monotonic() + self.waited_s

    def sleep(self, seconds):
        self.waited_s += seconds

    def time_ns(self):
        return time.time_ns()


class Client:
    """
    A client that has written its log: it has ended with a status, or hangs (`None`) until it is
    killed.
    """

    def __init__(self, status):
        self.returncode = status

    def poll(self):
        return self.returncode

    def kill(self):
        self.returncode = -9

    def wait(self):
        return self.returncode


class Clusters:
    """
    Stands for a provider: every start gives a new cluster, and what happened is written down.

    *faults* maps ``teragen`` or ``terasort`` to what goes wrong with their first, second, ... job.
    The first *refusals* starts fail; *on_job* is told the number of each job that starts.
    """

    def __init__(self, **faults):
        self.faults = {kind: list(each) for kind, each in faults.items()}
        self.started, self.running, self.jobs, self.removed = [], 0, [], []
        self.probe = None
        self.refusals, self.attempts = 0, 0
        self.limitations = ()
        self.ran_on, self.starved, self.cut_off = {}, [], []
        self.answers, self.requests = {}, []  # of the node agent, by node
        self.limits, self.limitable, self.forgotten = {}, frozenset(), []
        self.on_job = lambda _: None

    @contextmanager
    def __call__(self, name, spec, home):
        self.attempts += 1
        if self.attempts <= self.refusals:
            raise ClusterError("no NodeManager on worker1 after 180 s\nits last lines")
        cluster = FakeCluster(self, spec)
        self.started.append(cluster)
        self.running += 1
        try:
            yield cluster
        finally:
            self.running -= 1

    def remove(self, name):
        self.removed.append(name)
        return False

    def next_job(self, kind):
        """
        Number of the next job, and what goes wrong with it.
        """
        self.jobs.append(kind)
        self.on_job(len(self.jobs))
        if self.probe:
            self.probe.sample(len(self.jobs))
        planned = self.faults.get(kind, [])
        return len(self.jobs), (planned.pop(0) if planned else None) or Fault()


class FakeCluster:
    """
    A running cluster: its work is done when a client starts, and the client tells of it.
    """

    sets_site = True
    layout = Layout(make_members(1), "/cluster", "/hadoop")

    def __init__(self, clusters=None, spec=CLUSTER):
        self.spec = spec
        self.clusters = clusters or Clusters()
        self.hdfs, self.dead, self.idle_calls = FakeHdfs(), [], 0
        self.clients, self.arguments = [], []
        self.limitations = self.clusters.limitations
        self.limits = self.clusters.limits
        self.root, self.watched = "/harness", None

    def java_on(self, host):
        return "java"

    def host_path(self, host, path):
        return str(path)

    def ran_on(self):
        return self.clusters.ran_on

    @property
    def hosts(self):
        return [LocalHost(name, "127.0.0.1", "/", list, {}) for name in self.clusters.answers]

    def agent(self, host, *words):
        self.clusters.requests.append((host.name, *words))
        return ["printf", "%s", self.clusters.answers.get(host.name, "{}")]

    def out_of_memory(self):
        return [self.clusters.starved.pop()] if self.clusters.starved else []

    def missing_daemons(self):
        return self.clusters.cut_off

    def drop_page_cache(self):
        self.clusters.forgotten.append(len(self.clusters.jobs))

    def disk_bytes(self):
        jobs = len(self.clusters.jobs)
        return {node: {"read": 10 * jobs, "written": jobs} for node in self.limits}

    def client(self, main_class, args, *, log, jars=()):
        self.arguments.append(tuple(args))
        is_ours = main_class.endswith("Generate")  # its arguments: content, rows, files, seed
        program, *rest = ["teragen", *args] if is_ours else args
        arguments = [a for a in rest if not a.startswith("-D")]
        source, target = (arguments[1], arguments[-1]) if is_ours else arguments
        number, fault = self.clusters.next_job(program)
        given = [a[2:].split("=", 1) for a in rest if a.startswith("-D")]
        ran = [self._leave_history(number + 100 * n, fault, given) for n in range(fault.jobs)]
        if fault.kills:
            self.dead.append(fault.kills)
        if not (fault.status or fault.hangs or fault.kills):
            getattr(self, f"_{program}")(source, target, fault)
        named = "".join(f"INFO mapreduce.Job: Running job: {job}\n" for job in ran)
        log.write_text(f"{named}{fault.says}\n")
        self.clients.append(Client(None if fault.hangs else fault.status))
        return self.clients[-1]

    def _leave_history(self, number, fault, given):
        history, job = recorded_history(number)
        rows = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in given)
        conf = CONF.replace(b"</configuration>", rows.encode() + b"</configuration>")
        if fault.history:
            folder = "/history/intermediate/root"
            self.hdfs.put(f"{folder}/{job}-1795224600000-root-TeraSort.jhist", [history])
            self.hdfs.put(f"{folder}/{job}_conf.xml", [conf])
        return job

    def _teragen(self, rows, target, fault):
        for part, piece in enumerate(generated(int(rows) - fault.loses)):
            self.hdfs.put(f"{target}/part-m-{part:05d}", [piece])

    def _terasort(self, source, target, fault):
        pieces = tuple(self.hdfs.files[f"{source}/{n}"] for n, _, _ in self.hdfs.list(source))
        self.hdfs.put(f"{target}/_SUCCESS", [b""])
        self.hdfs.put(f"{target}/part-r-00000", [ordered(pieces, swaps=fault.swaps)])

    def dead_daemons(self):
        return dict.fromkeys(self.dead, "died")

    def await_idle(self, timeout_s, ended=()):
        assert timeout_s > 0
        self.idle_calls += 1

    def container_logs(self, application_id, into):
        container = application_id.replace("application", "container") + "_01_000002"
        target = into / "worker1" / container / "syslog"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((DATA / "terasort-map.syslog").read_bytes())
        return [target]

    def daemon_logs(self, lines=20):
        return {"datanode on worker2": "the last lines of a daemon"}

    def dump_threads(self, into):
        return []

    def trace_properties(self, tracing, configuration):
        return {}

    def site_properties(self):
        return {}

    def history_folders(self, job):
        return ["/history/intermediate", "/history/done"]


class FakeProbe:
    """
    A speed probe that samples whenever a job starts, and tells its number as the units of work.
    """

    pid = 1

    def __init__(self, *, log):
        self.log = log

    def __enter__(self):
        with self.log.open("a") as log:
            log.write("# probe\n")
        return self

    def __exit__(self, *exc_info):
        pass

    def sample(self, number):
        with self.log.open("a") as log:
            log.write(f"{1795224600000 + number} 0 {number} 1000000\n")


class RecordingConsole:
    """
    Keeps what was reported.
    """

    def __init__(self):
        self.lines, self.steps, self.notes = [], [], []

    def say(self, text):
        self.lines.append(text)

    def step(self, done, total, left_s, text):
        self.steps.append((done, total, left_s, text))

    def note(self, text):
        self.notes.append(text)
