"""
Lives of real clusters, told as facts: one JSON object on standard output.

    python scenario.py whole     up by the command line, a job, a dead daemon, down twice
    python scenario.py pair      two clusters at once, then the first process of one is killed

A program of its own, so that the tests can run it as another user.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from pathlib import Path

from harness.base.errors import HarnessError
from harness.base.records.trial import ClusterSpec
from harness.clusters import state
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.local.cluster import LocalCluster
from harness.clusters.local.supervisor import ClusterState

EXAMPLES = "org.apache.hadoop.examples.ExampleDriver"
WORDS = b"to be or not to be\n"
PATIENCE_S = 300.0
KINDS = "net", "mnt", "pid", "uts"
OUR_LINKS = "node", "clus"


def whole():
    """
    The life of one cluster, started and stopped by other processes than this one.
    """
    before, facts = traces(), {}
    facts["up"] = harness("cluster", "up", "--workers", "2", "--name", "live")[0]
    if facts["up"] != 0:
        return facts
    cluster = LocalCluster.attach("live")
    known = spaces(cluster)
    facts["outside"] = outside(cluster)
    facts["nodes"] = nodes(cluster)
    facts["job"] = job(cluster, reduces=2)
    cluster.await_idle(timeout_s=PATIENCE_S)
    facts["running"] = running("live")
    os.kill(cluster.daemon_pids()["datanode on worker2"], signal.SIGKILL)
    facts["dead"] = list(until(cluster.dead_daemons))
    facts["running then"] = running("live")
    facts["down"] = [harness("cluster", "down")[0] for _ in range(2)]
    facts["left"] = left(before, known)
    return facts


def pair():
    """
    Two clusters with the same addresses; the first process of one is killed.
    """
    before, home, facts = traces(), HadoopHome.find(), {}
    one = LocalCluster("one", ClusterSpec(workers=1), home)
    two = LocalCluster("two", ClusterSpec(workers=1), home)
    with one, two:
        known = spaces(one) | spaces(two)
        facts["addresses"] = [c.hosts[0].address for c in (one, two)]
        one.hdfs.put("/only/here", [b"one"])
        facts["files"] = [[name for name, _, _ in c.hdfs.list("/")] for c in (one, two)]
        facts["taken"] = error_of(LocalCluster("one", ClusterSpec(workers=1), home).up)
        os.kill(ClusterState.load(two.name).outer.pid, signal.SIGKILL)
        # but for its watchdog, which waits for us
        facts["gone"] = until(lambda: all(" watch " in words for words in processes_of(two.folder)))
        facts["dead"] = list(two.dead_daemons())
        facts["other"] = list(one.dead_daemons())
        facts["outside"] = outside(one)
        facts["job"] = job(one, reduces=1)
        facts["stopped early"] = stopped_early(one)
        facts["down"] = [harness("cluster", "down", "--name", "one")[0] for _ in range(2)]
    facts["left"] = left(before, known)
    return facts


def job(cluster, reduces):
    """
    A word count over files of HDFS, and what is left of it.
    """
    cluster.hdfs.put("/in/a", [WORDS] * 1000)
    cluster.hdfs.put("/in/b", [WORDS] * 500)
    log = cluster.folder / "client.log"
    arguments = ["wordcount", f"-Dmapreduce.job.reduces={reduces}", "/in", "/out"]
    status = cluster.client(EXAMPLES, arguments, log=log).wait(timeout=PATIENCE_S)
    if status != 0:
        return {"status": status, "log": log.read_text()[-3000:]}
    application = cluster.hdfs.get_json("rm", "/ws/v1/cluster/apps")["apps"]["app"]
    application = application[0] if isinstance(application, list) else application
    with tempfile.TemporaryDirectory() as folder:
        logs = cluster.container_logs(application["id"], Path(folder))
        gc_logs = [p for p in logs if p.name == "gc.log" and p.stat().st_size]
    parts = [name for name, _, _ in cluster.hdfs.list("/out") if name.startswith("part-")]
    lines = b"".join(
        piece
        for _, pieces in cluster.hdfs.open_many([f"/out/{name}" for name in parts])
        for piece in pieces
    )
    return {
        "status": status,
        "counts": dict(line.split("\t") for line in lines.decode().splitlines()),
        "parts": parts,
        "gc logs": len(gc_logs),
        "history": [name[:4] for name, _, _ in cluster.hdfs.list("/history/intermediate/hadoop")],
    }


def nodes(cluster):
    """
    What each node says of itself.
    """
    return {
        host.name: [
            host.run(["hostname"]).out.strip(),
            host.run(["ip", "-brief", "-4", "addr", "show", "eth0"]).out.split()[2],
        ]
        for host in cluster.hosts
    }


def stopped_early(cluster):
    """
    Size of the first piece of a reader that has enough after it, and whether its process ends.
    """
    cluster.hdfs.put("/big", [bytes(2**20)] * 24)
    first = len(next(iter(cluster.hdfs.open("/big"))))
    return [first, until(lambda: not processes_of(Path("/big")))]


def outside(cluster):
    """
    Listening sockets of the machine itself that belong to a process of the cluster.
    """
    members = cluster._state.processes()
    own = set()
    for pid in members:
        with contextlib.suppress(OSError):
            own |= {str(Path(entry.path).readlink()) for entry in os.scandir(f"/proc/{pid}/fd")}
    listening = []
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        rows = [line.split() for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]]
        listening += [row[1] for row in rows if f"socket:[{row[9]}]" in own]
    networks = {Path(f"/proc/{pid}/ns/net").stat().st_ino for pid in members}
    own_parts = Path("/proc/self/ns/net").stat().st_ino
    return {
        "sockets": listening,
        "in our network": own_parts in networks,
        "processes": len(members),
    }


def running(name):
    """
    Daemons that run, as the command line tells it.
    """
    reported = json.loads(harness("cluster", "status", "--json", "--name", name)[1])
    return sum(d["running"] for d in reported["daemons"])


def harness(*arguments):
    """
    Exit status and standard output of the command; what it says to people goes to our own errors.
    """
    program = "import sys; from harness.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    return [done.returncode, done.stdout]


def spaces(cluster):
    """
    The namespaces of a cluster that lives, as inode numbers.

    They are held open to the end of this program: the kernel would give their numbers to others'.
    """
    members = cluster._state.processes()
    for pid in members:
        for kind in KINDS:
            with contextlib.suppress(OSError):
                os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
    return {n for pid in members for n in spaces_of(pid)} - set(spaces_of(os.getpid()))


def spaces_of(pid):
    """
    Namespaces of a process, as inode numbers; none for one that has ended or is not ours.
    """
    observed = []
    for kind in KINDS:
        with contextlib.suppress(OSError):
            observed.append(Path(f"/proc/{pid}/ns/{kind}").stat().st_ino)
    return observed


def traces():
    """
    What of a cluster could be seen on the machine.
    """
    state.clusters_folder()  # one empty folder for ever, made at the first look
    folders = [Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), Path.home()]
    own = os.getuid() != 0
    # an engine, or bare hosts, of another test may come up meanwhile
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return {
        "mounts": [line for line in mounts if str(state.state_folder()) in line],
        "links": [p.name for p in Path("/sys/class/net").iterdir() if p.name[:4] in OUR_LINKS],
        "files": [
            str(p)
            for folder in folders
            for p in folder.iterdir()
            # others of the same machine may be at work: an ordinary user's files are ours alone
            if (own and p.lstat().st_uid == os.getuid()) or p.name.startswith(("hadoop", "Jetty"))
        ],
    }


def left(before, known):
    """
    What is there now that was not there before, by kind.
    """
    after = traces()
    pids = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]
    return {
        "processes": processes_of(state.clusters_folder()),
        "namespaces": sorted(known & {n for pid in pids for n in spaces_of(pid)}),
        "state": [str(p) for p in state.clusters_folder().rglob("*")],
        **{kind: sorted(set(after[kind]) - set(before[kind])) for kind in before},
    }


def processes_of(folder):
    """
    Processes whose command line names *folder*.
    """
    observed = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and str(folder).encode() in (entry / "cmdline").read_bytes():
                observed.append((entry / "cmdline").read_text().replace("\0", " ")[:200])
    return observed


def until(condition):
    """
    The condition's first true value.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return value


def error_of(function):
    """
    First line of the error that *function* raises.
    """
    try:
        function()
    except HarnessError as error:
        return str(error).splitlines()[0]
    return ""


if __name__ == "__main__":
    json.dump({"whole": whole, "pair": pair}[sys.argv[1]](), sys.stdout)
