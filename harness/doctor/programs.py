"""Programs that the harness calls, the jars that it brings, and GPUs with what computes on them."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys

from zipfile import BadZipFile, ZipFile

from harness.doctor.commands import first_line, lacking_finding, read_output, run_command
from harness.errors import MachineError
from harness.hadoop_home import setup
from harness.hadoop_home.home import HadoopHome, find_java, job_jar
from harness.monitor.probe import probe_jar
from harness.providers.base import Finding
from harness.providers.local import namespace
from harness.providers.survey import LIBRARY, driver_file
from harness.workloads.base import GPU

_KERNELS = {"cpu": "processors", "cuda": "CUDA devices"}


def check_python() -> Finding:
    """The interpreter that runs this."""
    return Finding("python", "ok", f"{platform.python_version()}, {sys.executable}")


def check_java() -> Finding:
    """A JDK 17 or newer."""
    try:
        jdk = find_java()
    except MachineError as error:
        return lacking_finding("java", error)
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
    try:
        namespace.require_tools()
    except MachineError as error:
        return lacking_finding("commands", error)
    return Finding("commands", "ok", ", ".join(namespace.TOOLS))


def check_hadoop_home() -> Finding:
    """Hadoop's jars, all of them the right ones, and the archive that makes starts fast."""
    try:
        home = HadoopHome.find()
    except MachineError as error:
        return lacking_finding("hadoop home", error)
    summary = f"Hadoop {home.versions().hadoop}, {len(home.sums)} jars verified, {home.path}"
    if home.archive is None:
        return Finding(
            "hadoop home",
            "note",
            f"{summary}; no class-data archive: starts are slow",
            "make setup",
        )
    return Finding("hadoop home", "ok", summary)


def check_tracer() -> Finding:
    """The tracer's hooks: what Hadoop's classes have no place for is named."""
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
        return Finding("tracer", "note", "Hadoop's classes are not instrumented", "make setup")
    return Finding("tracer", "ok", "every hook matches Hadoop's classes")


def check_speed_probe() -> Finding:
    """The jar by which times are brought to one speed of the machine."""
    try:
        return Finding("speed probe", "ok", str(probe_jar()))
    except MachineError as error:
        return lacking_finding("speed probe", error)


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
    library_file = driver_file(run_command(["ldconfig", "-p"]).stdout)
    driver = f"driver file {library_file}" if library_file else f"no driver file {LIBRARY}"
    if shutil.which("nvidia-smi") is None:
        return Finding("gpu", "note", f"none: no nvidia-smi; {driver}")
    query = "--query-gpu=name,memory.total,driver_version"
    completed = run_command(["nvidia-smi", query, "--format=csv,noheader"])
    if completed.returncode != 0:
        summary = first_line(completed.stdout or completed.stderr)
        return Finding("gpu", "note", f"nvidia-smi fails: {summary}; {driver}", "nvidia-smi")
    devices = "; ".join(completed.stdout.strip().splitlines())
    return Finding("gpu", "ok" if library_file else "note", f"{devices}; {driver}")


def check_cuda() -> Finding:
    """The CUDA compiler."""
    summary = read_output(["nvcc", "--version"]) if shutil.which("nvcc") else ""
    release = re.search(r"release (\S+?),", summary)
    if release is None:
        return Finding("cuda", "note", "no nvcc on PATH; make cuda installs its own", "make cuda")
    return Finding("cuda", "ok", f"nvcc {release[1]}")


def check_kernels() -> Finding:
    """What GPU workloads can compute on, by the libraries in their jar."""
    try:
        with ZipFile(job_jar(GPU)) as jar:
            packed = [entry_name for entry_name in jar.namelist() if entry_name.endswith(".so")]
    except MachineError as error:
        return Finding("gpu workloads", "note", error.what, error.fix)
    except (OSError, BadZipFile) as error:
        return Finding("gpu workloads", "note", f"their jar cannot be read: {error}", "make setup")
    kinds = [
        explanation
        for kind, explanation in _KERNELS.items()
        if any(f"-{kind}.so" in n for n in packed)
    ]
    if not kinds:
        explanation = "no library is built: GPU workloads cannot run"
        return Finding(
            "gpu workloads", "note", explanation, "apt-get install -y g++, then: make setup"
        )
    return Finding("gpu workloads", "ok", f"built for {' and '.join(kinds)}")
