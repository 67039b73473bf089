"""
What a host is, before anything is put there.

    python3 -I -c PROGRAM < QUESTION      (one JSON object; the answer is another)

    {"base": PATH or "", "cluster": NAME, "ports": [...], "names": {NAME: ADDRESS}, "gpus": NUMBER}

    answer: {"time", "python", "user", "root", "home", "base", "machine", "kernel", "cores",
             "memory_bytes", "java": [{"home", "version", "build"}, ...], "marks": [paths],
             "free_bytes", "writable", "taken": [ports], "unnamed": [names], "hostname",
             "sudo": "" or what is in the way, "systemd", "owner",
             "gpus_lack": "" or why it does not have so many GPUs}

*unnamed* are the names that stand for another address here, or for none; *hostname* is the host's
own name, empty where that stands for an address, as it should.  *build* is another one when the
Java is; *marks* are the files below the base that say what was put there before.  *owner* is whose
cluster lies there, empty where there is none.  Nothing is written.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import time

from pathlib import Path
from typing import Any

MOST_MARKS = 1000
OLDEST_PYTHON = (3, 9)
GPU_LIMIT_S = 30.0  # of a tool that hangs, as it does when its device is lost


def main() -> None:
    """Answer the question on standard input."""
    if sys.version_info < OLDEST_PYTHON:
        sys.exit(f"Python {sys.version.split()[0]} is too old")
    question = json.load(sys.stdin)
    home = str(Path.home())
    base = question["base"] or f"{home}/.mapreduce-harness"
    folder = f"{base}/clusters/{question['cluster']}"
    answer = {
        "python": sys.executable,
        "user": pwd.getpwuid(os.geteuid()).pw_name,
        "root": os.geteuid() == 0,
        "home": home,
        "base": base,
        "machine": os.uname().machine,
        "kernel": os.uname().release,
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "java": javas(),
        "marks": marks(base),
        "free_bytes": shutil.disk_usage(existing(base)).free,
        "writable": os.access(existing(base), os.W_OK),
        "taken": [port for port in question["ports"] if taken(port)],
        "unnamed": [n for n, address in question["names"].items() if resolved(n) != {address}],
        "hostname": "" if resolved(socket.gethostname()) else socket.gethostname(),
        "sudo": sudo(),
        "systemd": Path("/run/systemd/system").is_dir(),
        "owner": first_line(f"{folder}/owner"),
        "gpus_lack": gpus_lack(question["gpus"]),
        "time": time.time(),
    }
    json.dump(answer, sys.stdout)


def existing(path: str) -> Path:
    """*path*, or the nearest folder above it that is there."""
    return next(p for p in (Path(path), *Path(path).parents) if p.is_dir())


def javas() -> list[dict[str, str]]:
    """Java runtimes, by their own `release` files; no JVM is started."""
    launcher = shutil.which("java")
    homes = [os.environ.get("JAVA_HOME", "")]
    homes += [str(Path(launcher).resolve().parent.parent)] if launcher else []
    homes += sorted(str(home.resolve()) for home in Path("/usr/lib/jvm").glob("*"))
    found = {}
    for home in homes:
        if home and home not in found and os.access(f"{home}/bin/java", os.X_OK):
            try:
                with Path(home, "release").open(encoding="utf-8", errors="replace") as file:
                    match = re.search(r'^JAVA_VERSION="([0-9._]+)"', file.read(4096), re.MULTILINE)
            except OSError:
                continue
            if match:
                found[home] = {"home": home, "version": match[1], "build": build(home)}
    return list(found.values())


def build(home: str) -> str:
    """A hash that changes with the Java: its classes and its machine."""
    facts = []
    for name in ("release", "lib/modules", "lib/server/libjvm.so"):
        try:
            file = Path(home, name).stat()
        except OSError:
            continue
        facts.append([name, file.st_size, file.st_mtime_ns])
    return hashlib.sha256(json.dumps([home, facts]).encode()).hexdigest()[:12]


def marks(base: str) -> list[str]:
    """What was put there, and wholly: Java, Hadoop, class-data archives."""
    patterns = ("*/complete", "hadoop-*/classes-*", "hadoop-*/tasks-*")
    found = [str(p.relative_to(base)) for pattern in patterns for p in Path(base).glob(pattern)]
    return sorted(found)[:MOST_MARKS]


def taken(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return True
    return False


def resolved(name: str) -> set[Any]:
    """Addresses that the name stands for here."""
    try:
        return {info[4][0] for info in socket.getaddrinfo(name, None)}
    except OSError:
        return set()


def sudo() -> str:
    """Why root's work cannot be done by `sudo`; empty where it can."""
    if os.geteuid() == 0:
        return ""
    if shutil.which("sudo") is None:
        return "sudo is missing"
    done = subprocess.run(
        ["sudo", "-n", "true"], check=False, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=20,
    )  # fmt: skip
    said = done.stderr.strip().splitlines() or ["sudo refuses"]
    return "" if done.returncode == 0 else said[-1][:200]  # what stands before is a warning


def gpus_lack(wanted: int) -> str:
    """Why the host does not have so many GPUs that work; empty where it has, or none are wanted."""
    if not wanted:
        return ""
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=index,name", "--format=csv,noheader"], check=False,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=GPU_LIMIT_S,
        )  # fmt: skip
    except FileNotFoundError:
        return "there is no nvidia-smi"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"nvidia-smi does not answer: {error}"[:200]
    said = (done.stdout + done.stderr).strip().splitlines()
    if done.returncode != 0:
        return f"nvidia-smi fails: {said[0] if said else f'status {done.returncode}'}"[:200]
    found = [line for line in said if re.match(r"[0-9]+,", line)]
    strange = [f": {line}" for line in said if line not in found][:1]  # of a device that is lost
    lack = f"{wanted} to be offered, {len(found) or 'none'} found{''.join(strange)}"
    return lack[:200] if len(found) < wanted else ""


def first_line(path: str) -> str:
    """First line of a file, empty where there is none."""
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            return file.readline(400).strip()
    except OSError:
        return ""


if __name__ == "__main__":
    main()
