"""Programs that the harness calls, and the jars that it brings."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys

from harness.doctor.asking import first_line, output
from harness.doctor.finding import Finding, lacking
from harness.errors import MachineError
from harness.hadoop_home import instrumented
from harness.hadoop_home.home import HadoopHome
from harness.hadoop_home.java import find_java
from harness.monitor.probe import probe_jar
from harness.providers.local import namespace


def python() -> Finding:
    """The interpreter that runs this."""
    return Finding("python", "ok", f"{platform.python_version()}, {sys.executable}")


def java() -> Finding:
    """A JDK 17 or newer."""
    try:
        found = find_java()
    except MachineError as error:
        return lacking("java", error)
    return Finding("java", "ok", f"{found.version}, {found.home}")


def maven() -> Finding:
    """Maven, which `make setup` resolves and builds jars with."""
    if shutil.which("mvn") is None:
        return Finding("maven", "lacking", "no mvn on PATH", "apt-get install -y maven")
    said = output(["mvn", "-v"])
    version = re.search(r"Apache Maven (\d[\w.-]*)", said)
    if version is None:
        misled = "JAVA_HOME" in said and "JAVA_HOME" in os.environ
        fix = "unset JAVA_HOME, or set it to the folder of a JDK" if misled else "mvn -v"
        return Finding("maven", "lacking", f"mvn does not run: {first_line(said)}", fix)
    return Finding("maven", "ok", version[1])


def commands() -> Finding:
    """Commands of the system that make a cluster's namespaces."""
    try:
        namespace.require_tools()
    except MachineError as error:
        return lacking("commands", error)
    return Finding("commands", "ok", ", ".join(namespace.TOOLS))


def hadoop_home() -> Finding:
    """Hadoop's jars, all of them the right ones, and the archive that makes starts fast."""
    try:
        home = HadoopHome.find()
    except MachineError as error:
        return lacking("hadoop home", error)
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
        missing = instrumented.missing_hooks(home)
    except MachineError as error:
        what = f"tasks cannot be traced: {first_line(str(error))}"
        return Finding("tracer", "note", what, error.fix)
    if missing:
        text = f"no hook for {'; '.join(missing)}: tasks cannot be traced"
        return Finding("tracer", "note", text, "write trace: logs in experiments")
    if home.trace_path_jar is None:
        return Finding("tracer", "note", "Hadoop's classes are not instrumented", "make setup")
    return Finding("tracer", "ok", "every hook has its place in Hadoop's classes")


def speed_probe() -> Finding:
    """The jar by which times are brought to one speed of the machine."""
    try:
        return Finding("speed probe", "ok", str(probe_jar()))
    except MachineError as error:
        return lacking("speed probe", error)


def compiler() -> Finding:
    """The C++ compiler, which builds what GPU workloads run on where there is no GPU."""
    said = output(["g++", "--version"]) if shutil.which("g++") else ""
    version = re.search(r"\) (\d+[\w.]*)", first_line(said))
    if version is None:
        what = "no g++: GPU workloads have no stand-in on the CPU"
        return Finding("compiler", "note", what, "apt-get install -y g++")
    return Finding("compiler", "ok", f"g++ {version[1]}")
