"""
What this machine can do, and for each lack the command that repairs it.

Each check looks at one thing and gives one `Finding`, or a `MachineError` about its lack; none
changes anything, and none waits longer than some seconds.  Providers bring checks of their own.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from harness.base.errors import MachineError
from harness.base.hadoop.slots import effective
from harness.base.installed import setup_fix
from harness.base.records.trial import ClusterSpec
from harness.base.text import first_line
from harness.base.units import MIB, format_bytes
from harness.clusters import PROVIDERS, kernel, state
from harness.clusters.hadoop_home import setup
from harness.clusters.hadoop_home.home import HadoopHome, find_java, job_jar
from harness.clusters.host import Completed
from harness.clusters.local import namespace
from harness.clusters.monitor.machine import machine_facts, read_or_empty
from harness.clusters.monitor.probe import probe_jar
from harness.clusters.node.facts import memory_bytes
from harness.clusters.survey import LIBRARY, Finding, find_devices, here
from harness.clusters.workloads.base import GPU
from harness.core.run.preflight import memory_needed

LEAST_DISK = 4096 * MIB  # inputs, the clusters' copies of them, intermediate data, logs
MOST_LOAD = 0.5  # runnable threads per core, before we have started anything


def examine(results: Path) -> list[Finding]:
    """All findings, in the order in which a reader wants them; *results* is where trials go."""
    checks: dict[str, Callable[[], Finding]] = {
        "system": check_system,
        "cores": check_cores,
        "load": check_load,
        "memory": check_memory,
        "disk": lambda: check_disk(results),
        "python": lambda: Finding("python", "ok", f"{platform.python_version()}, {sys.executable}"),
        "java": check_java,
        "maven": check_maven,
        "commands": check_commands,
        "namespaces": check_namespaces,
        "cgroups": check_cgroups,
        "node disks": check_node_disks,
        "traffic control": check_traffic_control,
        "hadoop home": check_hadoop_home,
        "tracer": check_tracer,
        "speed probe": check_speed_probe,
        **provider_checks(),
        "gpu": check_gpus,
        "cuda": check_cuda,
        "compiler": check_compiler,
        "gpu workloads": check_kernels,
        "clusters": check_clusters,
    }
    findings = []
    for name, check in checks.items():
        try:
            findings.append(check())
        except MachineError as error:
            what = f"{error.what} ({error.where})" if error.where else error.what
            findings.append(Finding(name, "lacking", what, error.fix))
    return findings


def check_clusters() -> Finding:
    """Clusters of this user that are up, or that left something behind."""
    names = state.known_names()
    if not names:
        return Finding("clusters", "ok", "none is up")
    return Finding("clusters", "note", f"there: {', '.join(names)}", "harness cluster down --all")


def needs() -> Mapping[str, tuple[str, ...]]:
    """Names of the findings that must not be lacking, by provider or purpose."""
    set_up = ("system", "disk", "python", "java", "maven")
    return {**{name: provider.needs for name, provider in PROVIDERS.items()}, "set-up": set_up}


def missing_needs(findings: Sequence[Finding]) -> dict[str, list[str]]:
    """Names of the findings that each provider or purpose needs and that are lacking."""
    # Without what one provider alone works with there is only a note; it needs that all the same.
    provider_findings = provider_checks().keys()
    lacking = set()
    for finding in findings:
        is_noted_lack = finding.state == "note" and finding.name in provider_findings
        if finding.state == "lacking" or is_noted_lack:
            lacking.add(finding.name)
    return {name: [need for need in names if need in lacking] for name, names in needs().items()}


def provider_checks() -> dict[str, Callable[[], Finding]]:
    """Checks of what one provider alone works with, by the name of their finding."""
    return {
        provider.own_need: provider.doctor_check
        for provider in PROVIDERS.values()
        if provider.own_need
    }


def check_system() -> Finding:
    """Linux: Hadoop's daemons live in its namespaces."""
    facts = machine_facts()
    summary = f"{facts.get('os', platform.system())}, kernel {platform.release()}"
    if platform.system() == "Linux":
        return Finding("system", "ok", f"{summary}, {platform.machine()}")
    return Finding("system", "lacking", summary, "run it on Linux, or in a Linux virtual machine")


def check_cores() -> Finding:
    """Cores that may be used, less a quota of a control group."""
    facts = machine_facts()
    usable = float(facts["cores_usable"])
    quota_cores = cpu_quota()
    summary = f"{facts['cores_usable']} of {facts['cores']} usable, {facts.get('cpu', 'unknown')}"
    if quota_cores is not None and quota_cores < usable:
        usable = quota_cores
        summary = f"{summary}; a control group allows {quota_cores:g}"
    if usable < 2:
        remedy = "give this machine two cores; on one, tasks delay each other"
        return Finding("cores", "note", summary, remedy)
    return Finding("cores", "ok", summary)


def check_load() -> Finding:
    """The load of other programs, which makes every measured time longer."""
    runnable = os.getloadavg()[0]
    number = len(os.sched_getaffinity(0))
    summary = f"{runnable:.1f} runnable threads on {number} cores over the last minute"
    if runnable > MOST_LOAD * number:
        return Finding("load", "note", summary, "end other programs before you measure")
    return Finding("load", "ok", summary)


def check_memory() -> Finding:
    """Memory for a cluster of three workers, the one that the ready-made experiments ask for."""
    spec = ClusterSpec(workers=3)
    needed = memory_needed(spec, effective(spec, {}))
    total = memory_bytes()
    summary = f"{format_bytes(total)}; three workers take up to {format_bytes(needed)}"
    if total < needed:
        return Finding("memory", "lacking", summary, "lower cluster.workers, or add memory")
    return Finding("memory", "ok", summary)


def check_disk(results: Path) -> Finding:
    """Room where results and clusters are written."""
    folders = {"results": results, "clusters": state.clusters_folder()}
    for purpose, folder in folders.items():
        if not os.access(_nearest_folder(folder), os.W_OK | os.X_OK):
            what = f"this user may not write {folder.absolute()}, where {purpose} go"
            return Finding("disk", "lacking", what, "choose another: --results-dir DIR")
    sizes = [shutil.disk_usage(_nearest_folder(folder)).free for folder in folders.values()]
    summary = ", ".join(
        f"{format_bytes(size)} free for {purpose}"
        for purpose, size in zip(folders, sizes, strict=True)
    )
    if min(sizes) < LEAST_DISK:
        remedy = f"free {format_bytes(LEAST_DISK)}, or choose other folders: --results-dir DIR,"
        return Finding("disk", "lacking", summary, f"{remedy} XDG_STATE_HOME=DIR")
    return Finding("disk", "ok", summary)


def check_namespaces() -> Finding:
    """Namespaces of our own, made for a moment as a cluster makes them."""
    if namespace.find_tool("unshare") is None:
        return Finding("namespaces", "lacking", "no unshare", "apt-get install -y util-linux")
    completed = run_command(namespace.make_argv(["true"]))
    if completed.status == 0:
        user = "root" if os.geteuid() == 0 else "an ordinary user"
        return Finding("namespaces", "ok", f"network, mount and process namespaces, as {user}")
    if refusal := namespace.refusal_error(completed.err):
        summary = f"{refusal.what}; clusters use ports of the loopback address, with less isolation"
        return Finding("namespaces", "note", summary, refusal.fix)
    what = f"unshare failed: {first_line(completed.err)}"
    return Finding("namespaces", "lacking", what, "run as root, or with --privileged")


def check_cgroups() -> Finding:
    """Control groups: which version, and whether this user may limit CPU and disk with them."""
    groups = kernel.Groups("doctor")
    reason = groups.refusal(cores=True, disk=True)
    if os.geteuid() != 0:
        reason = reason or "this user may not change them"
    if not reason:
        return Finding("cgroups", "ok", f"version {groups.version}: CPU and disk of nodes")
    remedy = "run as root, in a container: docker run --privileged --cgroupns=host"
    summary = f"version {groups.version or 'unknown'}; nodes cannot be limited: {reason}"
    return Finding("cgroups", "note", summary, remedy)


def check_node_disks() -> Finding:
    """Whether nodes can have disks of their own, whose rate can be limited."""
    missing = [tool for tool in kernel.DISK_TOOLS if namespace.find_tool(tool) is None]
    if missing:
        packages = " ".join(sorted({kernel.DISK_TOOLS[tool] for tool in missing}))
        what = f"no {', '.join(missing)}: disks of nodes cannot be limited"
        return Finding("node disks", "note", what, f"apt-get install -y {packages}")
    if reason := kernel.disks_refusal():
        return Finding("node disks", "note", f"{reason}: disks of nodes cannot be limited")
    return Finding("node disks", "ok", "disks of nodes can be given a rate (loop devices)")


def check_traffic_control() -> Finding:
    """Whether the rate of a network link can be limited, tried on one that is removed at once."""
    if namespace.find_tool("tc") is None:
        return Finding("traffic control", "note", "no tc", "apt-get install -y iproute2")
    tc_argv = ["tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "100mbit"]
    tc_argv += ["burst", "32kb", "latency", "50ms"]
    completed = run_command(namespace.make_argv(tc_argv))
    if completed.status == 0:
        return Finding("traffic control", "ok", "links of nodes can be given a rate (tbf)")
    remedy = "modprobe sch_tbf" if "Specified qdisc" in completed.err else ""
    return Finding("traffic control", "note", f"tc: {first_line(completed.err)}", remedy)


def _nearest_folder(folder: Path) -> Path:
    """*folder*, or the nearest above it that exists."""
    folder = folder.absolute()
    # Not `is_dir`, which raises for what is in a folder of somebody else.
    return next(path for path in (folder, *folder.parents) if os.path.isdir(path))  # noqa: PTH112


def cpu_quota() -> float | None:
    """Cores that the control group of version 2 allows, `None` without a limit."""
    match = re.match(r"(\d+) (\d+)", read_or_empty("/sys/fs/cgroup/cpu.max"))
    return int(match[1]) / int(match[2]) if match else None


def check_java() -> Finding:
    """A JDK 17 or newer."""
    jdk = find_java()
    return Finding("java", "ok", f"{jdk.version}, {jdk.home}")


def check_maven() -> Finding:
    """Maven, which `make setup` resolves and builds jars with."""
    if shutil.which("mvn") is None:
        return Finding("maven", "lacking", "no mvn on PATH", "apt-get install -y maven")
    summary = read_output(["mvn", "-v"])
    version = re.search(r"Apache Maven (\d[\w.-]*)", summary)
    if version is None:
        is_misled = "JAVA_HOME" in summary and "JAVA_HOME" in os.environ
        remedy = "unset JAVA_HOME, or set it to the folder of a JDK" if is_misled else "mvn -v"
        return Finding("maven", "lacking", f"mvn does not run: {first_line(summary)}", remedy)
    return Finding("maven", "ok", version[1])


def check_commands() -> Finding:
    """Commands of the system that make a cluster's namespaces."""
    namespace.require_tools()
    return Finding("commands", "ok", ", ".join(namespace.TOOLS))


def check_hadoop_home() -> Finding:
    """Hadoop's jars, all of them the right ones, and the archive that makes starts fast."""
    home = HadoopHome.find()
    summary = f"Hadoop {home.versions().hadoop}, {len(home.sums)} jars verified, {home.path}"
    if home.archive is None:
        summary += "; no class-data archive: starts are slow"
        return Finding("hadoop home", "note", summary, setup_fix())
    return Finding("hadoop home", "ok", summary)


def check_tracer() -> Finding:
    """The tracer's hooks; those that have no place in Hadoop's classes are named."""
    try:
        home = HadoopHome.find()
        missing = setup.missing_hooks(home)
    except MachineError as error:
        explanation = f"tasks cannot be traced: {first_line(str(error))}"
        return Finding("tracer", "note", explanation, error.fix)
    if missing:
        summary = f"no hook for {'; '.join(missing)}: tasks cannot be traced"
        return Finding("tracer", "note", summary, "write trace: logs in experiments")
    if home.trace_path_jar is None:
        return Finding("tracer", "note", "Hadoop's classes are not instrumented", setup_fix())
    return Finding("tracer", "ok", "every hook matches Hadoop's classes")


def check_speed_probe() -> Finding:
    """The jar by which times are brought to one speed of the machine."""
    return Finding("speed probe", "ok", str(probe_jar()))


def check_compiler() -> Finding:
    """The C++ compiler, which builds what GPU workloads run on where there is no GPU."""
    summary = read_output(["g++", "--version"]) if shutil.which("g++") else ""
    version = re.search(r"\) (\d+[\w.]*)", first_line(summary))
    if version is None:
        explanation = "no g++: GPU workloads cannot be emulated on processors"
        return Finding("compiler", "note", explanation, "apt-get install -y g++")
    return Finding("compiler", "ok", f"g++ {version[1]}")


def check_gpus() -> Finding:
    """GPUs by their driver, and the driver's library, without which no task can use them."""
    devices = find_devices(run_command)
    driver = f"driver file {devices.driver}" if devices.driver else f"no driver file {LIBRARY}"
    if shutil.which("nvidia-smi") is None:
        return Finding("gpu", "note", f"none: no nvidia-smi; {driver}")
    if devices.message:
        return Finding("gpu", "note", f"nvidia-smi: {devices.message}; {driver}", "nvidia-smi")
    names = "; ".join(
        f"{gpu.name}, {format_bytes(gpu.memory_bytes or 0)}, {gpu.driver}" for gpu in devices.gpus
    )
    return Finding("gpu", "ok" if devices.driver else "note", f"{names}; {driver}")


def check_cuda() -> Finding:
    """The CUDA compiler."""
    summary = read_output(["nvcc", "--version"]) if shutil.which("nvcc") else ""
    release = re.search(r"release (\S+?),", summary)
    if release is None:
        return Finding("cuda", "note", "no nvcc on PATH", setup_fix("cuda"))
    return Finding("cuda", "ok", f"nvcc {release[1]}")


def check_kernels() -> Finding:
    """What GPU workloads can compute on, by the libraries in their jar."""
    try:
        with ZipFile(job_jar(GPU)) as jar:
            packed = [entry_name for entry_name in jar.namelist() if entry_name.endswith(".so")]
    except MachineError as error:
        return Finding("gpu workloads", "note", error.what, error.fix)
    except (OSError, BadZipFile) as error:
        return Finding("gpu workloads", "note", f"their jar cannot be read: {error}", setup_fix())
    devices = {"-cpu.so": "processors", "-cuda.so": "CUDA devices"}
    kinds = [device for ending, device in devices.items() if any(ending in name for name in packed)]
    if not kinds:
        what = "no library is built: GPU workloads cannot run"
        remedy = f"apt-get install -y g++, then: {setup_fix()}"
        return Finding("gpu workloads", "note", what, remedy)
    return Finding("gpu workloads", "ok", f"built for {' and '.join(kinds)}")


def run_command(argv: Sequence[str]) -> Completed:
    """Run *argv* with nothing to read; one that hangs or is missing has failed (status 127)."""
    return here(argv, {**os.environ, "PATH": namespace.search_path(), "LC_ALL": "C"})


def read_output(argv: Sequence[str]) -> str:
    """All that *argv* writes: stdout, then stderr."""
    completed = run_command(argv)
    return completed.out + completed.err
