"""
What this machine can do, and for each lack the command that cures it.

Each check looks at one thing and answers one `Finding`; none changes anything, and none waits
longer than a few seconds.  What a provider needs stands in `NEEDED_BY`.
"""

from __future__ import annotations

import http.client
import os
import platform
import re
import shutil
import socket
import subprocess
import sys

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit
from zipfile import BadZipFile, ZipFile

from harness.clusters import state as states
from harness.clusters import woven
from harness.clusters.existing import finding
from harness.clusters.gpus import LIBRARY, driver_file
from harness.clusters.home import HadoopHome
from harness.clusters.jars import job_jar
from harness.clusters.java import find_java
from harness.clusters.limits import disks
from harness.clusters.local import namespace
from harness.errors import HarnessError, MachineError
from harness.hadoop.slots import effective
from harness.records.trial import ClusterSpec
from harness.running.fitness import memory_needed
from harness.running.machine import machine_facts
from harness.running.probe import probe_jar
from harness.units import MIB, format_bytes
from harness.workloads.base import GPU

State = Literal["ok", "note", "lacking"]

LEAST_DISK = 4096 * MIB  # inputs, the clusters' copies of them, intermediate data, logs
MOST_LOAD = 0.5  # runnable threads per core, before we have started anything
_LIMIT_S = 10.0
_KERNELS = {"cpu": "processors", "cuda": "CUDA devices"}
_DOCKER_SOCKET = "unix:///var/run/docker.sock"

# Provider (or purpose) -> the findings that must not be lacking.
NEEDED_BY: Mapping[str, tuple[str, ...]] = {
    "local": (
        "system", "memory", "disk", "commands", "namespaces", "java", "hadoop home", "speed probe",
    ),
    "docker": ("system", "disk", "java", "hadoop home", "speed probe", "docker"),
    "ansible": ("system", "disk", "java", "hadoop home", "speed probe", "ssh"),
    "existing": ("system", "java", "hadoop home", "speed probe", "existing cluster"),
    "set-up": ("system", "disk", "python", "java", "maven"),
}  # fmt: skip
# Nobody must have them, so without them there is only a note; a provider cannot do without its own.
_PARTNERS = frozenset({"docker", "ssh", "existing cluster"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: *what* was found, and *fix*, the command that cures it."""

    name: str
    state: State
    what: str
    fix: str = ""


def examine(results: Path) -> list[Finding]:
    """All findings, in the order in which a reader wants them; *results* is where trials go."""
    checks: Sequence[Callable[[], Finding]] = (
        system, cores, load, memory, lambda: disk(results), python, java, maven, commands,
        namespaces, cgroups, node_disks, traffic_control, hadoop_home, tracer, speed_probe, docker,
        ssh, existing_cluster, gpu, cuda, compiler, kernels, clusters,
    )  # fmt: skip
    return [check() for check in checks]


def lacks(findings: Sequence[Finding]) -> dict[str, list[str]]:
    """Provider or purpose -> names of the findings that it needs and that are lacking."""
    lacking = {
        f.name
        for f in findings
        if f.state == "lacking" or (f.name in _PARTNERS and f.state == "note")
    }
    return {name: [n for n in needed if n in lacking] for name, needed in NEEDED_BY.items()}


# the machine


def system() -> Finding:
    """Linux: Hadoop's daemons live in its namespaces."""
    facts = machine_facts()
    text = f"{facts.get('os', platform.system())}, kernel {platform.release()}"
    if platform.system() == "Linux":
        return Finding("system", "ok", f"{text}, {platform.machine()}")
    return Finding("system", "lacking", text, "run it on Linux, or in a Linux virtual machine")


def cores() -> Finding:
    """Cores that may be used, less a quota of a control group."""
    facts = machine_facts()
    usable, quota = float(facts["cores_usable"]), _cpu_quota()
    text = f"{facts['cores_usable']} of {facts['cores']} usable, {facts.get('cpu', 'unknown')}"
    if quota is not None and quota < usable:
        usable, text = quota, f"{text}; a control group allows {quota:g}"
    if usable < 2:
        fix = "give this machine two cores; on one, tasks wait for each other and times tell that"
        return Finding("cores", "note", text, fix)
    return Finding("cores", "ok", text)


def load() -> Finding:
    """What others run here: it goes into every measured time."""
    runnable, number = os.getloadavg()[0], len(os.sched_getaffinity(0))
    text = f"{runnable:.1f} runnable threads on {number} cores over the last minute"
    if runnable > MOST_LOAD * number:
        return Finding("load", "note", text, "end what else runs before you measure")
    return Finding("load", "ok", text)


def memory() -> Finding:
    """Memory for a cluster of three workers, the one that the ready-made experiments ask for."""
    spec = ClusterSpec(workers=3)
    needed = memory_needed(spec, effective(spec, {}))
    facts = machine_facts()
    total = min(n for n in (facts.get("memory_bytes"), _memory_limit()) if n is not None)
    text = f"{format_bytes(total)}; a cluster of three workers takes up to {format_bytes(needed)}"
    if total < needed:
        return Finding("memory", "lacking", text, "lower cluster.workers, or add memory")
    return Finding("memory", "ok", text)


def disk(results: Path) -> Finding:
    """Room where results and clusters are written."""
    folders = {"results": results, "clusters": states.clusters_folder()}
    for name, folder in folders.items():
        if not os.access(_existing(folder), os.W_OK | os.X_OK):
            what = f"{folder.absolute()}, the place for {name}, is not this user's to write"
            return Finding("disk", "lacking", what, "choose another: --results-dir DIR")
    free = {name: shutil.disk_usage(_existing(folder)).free for name, folder in folders.items()}
    text = ", ".join(f"{format_bytes(n)} free for {name}" for name, n in free.items())
    if min(free.values()) < LEAST_DISK:
        fix = f"free {format_bytes(LEAST_DISK)}, or choose other places: --results-dir DIR,"
        return Finding("disk", "lacking", text, f"{fix} XDG_STATE_HOME=DIR")
    return Finding("disk", "ok", text)


# programs


def python() -> Finding:
    """The interpreter that runs this."""
    return Finding("python", "ok", f"{platform.python_version()}, {sys.executable}")


def java() -> Finding:
    """A JDK 17 or newer."""
    try:
        found = find_java()
    except MachineError as error:
        return _lacking("java", error)
    return Finding("java", "ok", f"{found.version}, {found.home}")


def maven() -> Finding:
    """Maven, which `make setup` resolves and builds jars with."""
    if shutil.which("mvn") is None:
        return Finding("maven", "lacking", "no mvn on PATH", "apt-get install -y maven")
    said = _output(["mvn", "-v"])
    version = re.search(r"Apache Maven (\d[\w.-]*)", said)
    if version is None:
        misled = "JAVA_HOME" in said and "JAVA_HOME" in os.environ
        fix = "unset JAVA_HOME, or set it to the folder of a JDK" if misled else "mvn -v"
        return Finding("maven", "lacking", f"mvn does not run: {_first(said)}", fix)
    return Finding("maven", "ok", version[1])


def commands() -> Finding:
    """Commands of the system that make a cluster's namespaces."""
    try:
        namespace.require_tools()
    except MachineError as error:
        return _lacking("commands", error)
    return Finding("commands", "ok", ", ".join(namespace.TOOLS))


def hadoop_home() -> Finding:
    """Hadoop's jars, all of them the right ones, and the archive that makes starts fast."""
    try:
        home = HadoopHome.find()
    except MachineError as error:
        return _lacking("hadoop home", error)
    text = f"Hadoop {home.versions().hadoop}, {len(home.sums)} jars verified, {home.path}"
    if home.archive is None:
        return Finding(
            "hadoop home", "note", f"{text}; no class-data archive: starts are slow", "make setup"
        )
    return Finding("hadoop home", "ok", text)


def tracer() -> Finding:
    """The tracer's hooks: what Hadoop's classes have no place for is named."""
    try:
        home = HadoopHome.find()
        missing = woven.missing_hooks(home)
    except MachineError as error:
        return Finding("tracer", "note", f"tasks cannot be traced: {_first(str(error))}", error.fix)
    if missing:
        text = f"no hook for {'; '.join(missing)}: tasks cannot be traced"
        return Finding("tracer", "note", text, "write trace: logs in experiments")
    if home.trace_path_jar is None:
        return Finding("tracer", "note", "its hooks are not woven", "make setup")
    return Finding("tracer", "ok", "every hook has its place in Hadoop's classes")


def speed_probe() -> Finding:
    """The jar by which times are brought to one speed of the machine."""
    try:
        return Finding("speed probe", "ok", str(probe_jar()))
    except MachineError as error:
        return _lacking("speed probe", error)


# the kernel


def namespaces() -> Finding:
    """Namespaces of our own, made for a moment as a cluster makes them."""
    as_root = os.geteuid() == 0
    if namespace.find_tool("unshare") is None:
        return Finding("namespaces", "lacking", "no unshare", "apt-get install -y util-linux")
    done = _run(namespace.make_argv(["true"], as_root=as_root))
    if done.returncode == 0:
        who = "root" if as_root else "an ordinary user"
        return Finding("namespaces", "ok", f"network, mount and process namespaces, as {who}")
    if error := namespace.refusal(done.stderr):
        text = f"{error.what}; clusters get by with ports of the loopback address, and lose by it"
        return Finding("namespaces", "note", text, error.fix)
    error = MachineError(
        f"unshare failed: {_first(done.stderr)}", fix="run as root, or with --privileged"
    )
    return _lacking("namespaces", error)


def cgroups() -> Finding:
    """Control groups: which version, and whether this user may limit CPU and disk with them."""
    root = Path("/sys/fs/cgroup")
    if (root / "cgroup.controllers").is_file():
        text = f"version 2: {(root / 'cgroup.controllers').read_text().strip()}"
        writable = os.access(root / "cgroup.subtree_control", os.W_OK)
    elif (root / "cpu").is_dir():
        present = [name for name in ("blkio", "cpu", "cpuset", "memory") if (root / name).is_dir()]
        text, writable = f"version 1: {' '.join(present)}", os.access(root / "cpu", os.W_OK)
    else:
        return Finding("cgroups", "note", "none mounted: no node can be slowed down on purpose")
    if writable:
        return Finding("cgroups", "ok", text)
    return Finding("cgroups", "note", f"{text}; not this user's to change", "run as root")


def node_disks() -> Finding:
    """Whether nodes can have disks of their own, whose rate can be limited."""
    missing = [tool for tool in disks.TOOLS if namespace.find_tool(tool) is None]
    if missing:
        packages = " ".join(sorted({disks.TOOLS[tool] for tool in missing}))
        what = f"no {', '.join(missing)}: disks of nodes cannot be limited"
        return Finding("node disks", "note", what, f"apt-get install -y {packages}")
    if why := disks.refusal():
        return Finding("node disks", "note", f"{why}: disks of nodes cannot be limited")
    return Finding("node disks", "ok", "disks of nodes can be given a rate (loop devices)")


def traffic_control() -> Finding:
    """Whether the rate of a network link can be limited, tried on one that is thrown away."""
    if namespace.find_tool("tc") is None:
        return Finding("traffic control", "note", "no tc", "apt-get install -y iproute2")
    shape = ["tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "100mbit"]
    shape += ["burst", "32kb", "latency", "50ms"]
    done = _run(namespace.make_argv(shape, as_root=os.geteuid() == 0))
    if done.returncode == 0:
        return Finding("traffic control", "ok", "links of nodes can be given a rate (tbf)")
    fix = "modprobe sch_tbf" if "Specified qdisc" in done.stderr else ""
    return Finding("traffic control", "note", f"tc: {_first(done.stderr)}", fix)


# what is there besides


def docker() -> Finding:
    """A Docker engine that answers, at ``DOCKER_HOST`` or its usual socket."""
    address = os.environ.get("DOCKER_HOST") or _DOCKER_SOCKET
    try:
        version = docker_version(address)
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, PermissionError):
            fix = "add this user to the group docker, and log in again"
        elif os.environ.get("DOCKER_HOST"):
            fix = "unset DOCKER_HOST, or set it to unix://PATH or tcp://HOST:PORT of an engine"
        elif shutil.which("dockerd"):
            fix = "start the engine: sudo systemctl start docker"
        else:
            fix = "apt-get install -y docker.io"
        return Finding("docker", "note", f"no engine answers at {address}: {_reason(error)}", fix)
    return Finding("docker", "ok", f"{version} at {address}")


def ssh() -> Finding:
    """What Ansible needs on this machine; hosts are asked when a cluster is started."""
    if find_spec("ansible_runner") is None:
        return Finding("ssh", "note", "no ansible-runner among Python's packages", "make setup")
    if shutil.which("ssh") is None:
        return Finding("ssh", "note", "no ssh", "apt-get install -y openssh-client")
    return Finding("ssh", "ok", "ansible-runner and ssh, for bare hosts")


def existing_cluster() -> Finding:
    """The cluster that ``HADOOP_CONF_DIR`` leads to, as far as it tells of itself."""
    try:
        text = finding.look()
    except HarnessError as error:
        return Finding("existing cluster", "lacking", error.what, error.fix)
    if not text:
        text, fix = "none: HADOOP_CONF_DIR is not set", "export HADOOP_CONF_DIR=/etc/hadoop/conf"
        return Finding("existing cluster", "note", text, fix)
    return Finding("existing cluster", "ok", text)


def docker_version(address: str, limit_s: float = 3.0) -> str:
    """
    Version of the engine at *address* (``unix://PATH`` or ``tcp://HOST:PORT``).

    Raises `OSError`, `http.client.HTTPException` or `ValueError` where none answers.
    """
    parts = urlsplit(address)
    if parts.scheme not in ("unix", "tcp"):
        raise ValueError(f"{parts.scheme or 'no'} scheme: cannot ask it from here")
    connection = http.client.HTTPConnection(
        parts.hostname or "localhost", parts.port or 2375, timeout=limit_s
    )
    try:
        if parts.scheme == "unix":
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(limit_s)
            connection.sock.connect(parts.path)
        connection.request("GET", "/_ping")
        with connection.getresponse() as reply:
            reply.read(64)
        server = re.search(r"Docker/(\S+)", reply.getheader("Server") or "")
        if reply.status != http.client.OK:
            raise ValueError(f"status {reply.status}")
        return f"Docker {server[1]}" if server else "an engine"
    finally:
        connection.close()


def gpu() -> Finding:
    """GPUs by their driver, and the driver's library, without which no task can use them."""
    file = driver_file(_run(["ldconfig", "-p"]).stdout)
    driver = f"driver file {file}" if file else f"no driver file {LIBRARY}"
    if shutil.which("nvidia-smi") is None:
        return Finding("gpu", "note", f"none: no nvidia-smi; {driver}")
    asked = "--query-gpu=name,memory.total,driver_version"
    done = _run(["nvidia-smi", asked, "--format=csv,noheader"])
    if done.returncode != 0:
        said = _first(done.stdout or done.stderr)
        return Finding("gpu", "note", f"nvidia-smi fails: {said}; {driver}", "nvidia-smi")
    devices = "; ".join(done.stdout.strip().splitlines())
    return Finding("gpu", "ok" if file else "note", f"{devices}; {driver}")


def cuda() -> Finding:
    """The CUDA compiler."""
    said = _output(["nvcc", "--version"]) if shutil.which("nvcc") else ""
    release = re.search(r"release (\S+?),", said)
    if release is None:
        return Finding(
            "cuda", "note", "no nvcc on PATH; make cuda brings one of its own", "make cuda"
        )
    return Finding("cuda", "ok", f"nvcc {release[1]}")


def compiler() -> Finding:
    """The C++ compiler, which builds what GPU workloads run on where there is no GPU."""
    said = _output(["g++", "--version"]) if shutil.which("g++") else ""
    version = re.search(r"\) (\d+[\w.]*)", _first(said))
    if version is None:
        what = "no g++: GPU workloads have no stand-in on the CPU"
        return Finding("compiler", "note", what, "apt-get install -y g++")
    return Finding("compiler", "ok", f"g++ {version[1]}")


def kernels() -> Finding:
    """What GPU workloads can compute on, by the libraries in their jar."""
    try:
        with ZipFile(job_jar(GPU)) as jar:
            packed = [name for name in jar.namelist() if name.endswith(".so")]
    except MachineError as error:
        return Finding("gpu workloads", "note", error.what, error.fix)
    except (OSError, BadZipFile) as error:
        return Finding("gpu workloads", "note", f"their jar cannot be read: {error}", "make setup")
    kinds = [what for kind, what in _KERNELS.items() if any(f"-{kind}.so" in n for n in packed)]
    if not kinds:
        what = "no library is built: GPU workloads run nowhere"
        return Finding("gpu workloads", "note", what, "apt-get install -y g++, then: make setup")
    return Finding("gpu workloads", "ok", f"built for {' and '.join(kinds)}")


def clusters() -> Finding:
    """Clusters of this user that are up, or that left something behind."""
    names = states.known_names()
    if not names:
        return Finding("clusters", "ok", "none is up")
    return Finding("clusters", "note", f"there: {', '.join(names)}", "harness cluster down --all")


def _lacking(name: str, error: HarnessError) -> Finding:
    what = f"{error.what} ({error.where})" if error.where else error.what
    return Finding(name, "lacking", what, error.fix)


def _existing(folder: Path) -> Path:
    """*folder*, or the nearest above it that is there."""
    folder = folder.absolute()
    # Not `is_dir`, which refuses to answer for what lies in a folder of somebody else.
    return next(p for p in (folder, *folder.parents) if os.path.isdir(p))  # noqa: PTH112


def _cpu_quota() -> float | None:
    """Cores that the control group of version 2 allows, `None` without a limit."""
    match = re.match(r"(\d+) (\d+)", _text(Path("/sys/fs/cgroup/cpu.max")))
    return int(match[1]) / int(match[2]) if match else None


def _memory_limit() -> int | None:
    text = _text(Path("/sys/fs/cgroup/memory.max")).strip()
    return int(text) if text.isdecimal() else None


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


def _run(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run *argv* with nothing to read; one that hangs or is not there has failed."""
    environment = {**os.environ, "PATH": namespace.search_path(), "LC_ALL": "C"}
    try:
        return subprocess.run(
            argv, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=_LIMIT_S, env=environment,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(list(argv), 127, "", _reason(error))


def _output(argv: Sequence[str]) -> str:
    done = _run(argv)
    return done.stdout + done.stderr


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _first(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "it said nothing")
