"""
Facts about a host.

    node.pyz facts survey FOLDER JAVA   for each line ``time`` of standard input the seconds since
                                        the epoch; for a line ``facts`` one line of JSON, then it
                                        ends.  FOLDER is where daemons write, JAVA a command
    node.pyz facts versions             one line of JSON: ``java``, of JAVA_HOME, and ``kernel``
    node.pyz facts device FOLDER        the block device of a folder, an empty line where there is
                                        none; a partition's disk, as the kernel limits whole disks
    node.pyz facts system ...           what a node is: harness.clusters.node.system
    python3 -I -c SOURCE preflight < REQUEST    what a host is, before anything is copied there

This file imports nothing of the agent (but for ``system``): its text is what a host runs before it
has the agent.

    REQUEST: {"cluster": NAME, "ports": [...], "names": {NAME: ADDRESS}, "rules": TEXT}
    answer:  {"time", "python", "user", "root", "home", "base", "machine",
              "java": [{"home", "version", "build"}, ...], "copied": [paths],
              "free_bytes", "writable", "taken": [ports], "unnamed": [names], "hostname",
              "sudo": "" or what is in the way, "systemd", "lacking": [tools],
              "filter": "" or what is in the way, "public": [addresses],
              "left": whether there is a cluster of that name, "owners": {NAME: OWNER}}

*unnamed* are the names that stand for another address here, or for none; *hostname* is the host's
own name, empty where it stands for an address, as it should.  *build* changes with the Java;
*copied* are the files below the base that say what was copied there before.  *filter* is about the
packet filter TEXT; *public* are addresses of this host that are of the whole world.  *owners* are
those of all clusters here whose supervisor lives.  Nothing is written.
"""

import errno
import hashlib
import json
import os
import platform
import pwd
import re
import shutil
import socket
import subprocess
import sys
import time

from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List, Set

_TOOL_LIMIT_S = 30.0  # of a tool that hangs, as one does whose device is lost
_MOST_FILES = 1000
_ROOTS_BASE = Path("/var/lib/mapreduce-harness-node")  # root's home is closed to daemons
_YOUNG_S = 60.0  # of a cluster whose supervisor may still be about to start
_OLDEST_PYTHON = (3, 9)  # what Ansible needs on a host
# What a control group allows, as a container sees its own: versions 2 and 1.
_MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def main(arguments: List[str]) -> None:
    """Answer one kind of question."""
    kind = arguments[0]
    if kind == "survey":
        survey(arguments[1], arguments[2])
    elif kind == "versions":
        java = java_version(os.environ.get("JAVA_HOME", ""))
        print(json.dumps({"java": java, "kernel": platform.release()}))
    elif kind == "device":
        print(block_device(Path(arguments[1]).stat().st_dev))
    elif kind == "system":
        from .system import system_facts

        print(json.dumps(system_facts(dict(pair.split("=", 1) for pair in arguments[1:]))))
    else:
        if sys.version_info < _OLDEST_PYTHON:
            sys.exit(f"Python {sys.version.split()[0]} is too old")
        print(json.dumps(preflight(json.load(sys.stdin))))


def survey(folder: str, java: str) -> None:
    """Answer lines of standard input until there are no more."""
    for request_line in sys.stdin:
        if request_line.strip() != "facts":
            print(time.time(), flush=True)
            continue
        disk_usage = shutil.disk_usage(folder)
        command = shutil.which(java)
        version = ""
        if command:
            version = java_version(str(Path(command).resolve().parent.parent)) or "unknown"
        facts = {
            "cores": len(os.sched_getaffinity(0)),
            "memory_bytes": memory_bytes(),
            "disk_bytes": disk_usage.total,
            "disk_free_bytes": disk_usage.free,
            "load": os.getloadavg()[0],
            "kernel": platform.release(),
            "python": platform.python_version(),
            "java": version or f"{java} is not there",
        }
        print(json.dumps(facts))
        return


def memory_bytes() -> int:
    """Bytes of memory that the host, or its control group, has."""
    total = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    sizes = [int(total.group(1)) * 1024] if total else []
    for limit_file in _MEMORY_LIMITS:
        with suppress(OSError, ValueError):  # it is not there, or says "max"
            sizes.append(int(Path(limit_file).read_text()))
    return min(sizes) if sizes else 0


def java_version(java_home: str) -> str:
    """Full version of a Java by its file ``release``, or by starting it; empty without one."""
    release = ""
    with suppress(OSError):
        release = Path(java_home, "release").read_text(errors="replace")
    facts: Dict[str, str] = dict(re.findall(r'^(\w+)="(.*)"$', release, re.MULTILINE))
    version = facts.get("JAVA_RUNTIME_VERSION") or facts.get("JAVA_VERSION", "")
    if version:
        return version
    try:
        process = subprocess.run(
            # without the first flag it would leave a folder among the host's temporary files
            [f"{java_home}/bin/java", "-XX:-UsePerfData", "-XshowSettings:properties", "-version"],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_TOOL_LIMIT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    stated = re.search(rb"^\s*java\.runtime\.version = (\S+)", process.stderr, re.MULTILINE)
    return stated.group(1).decode(errors="replace") if stated else ""


def block_device(number: int, blocks: Path = Path("/sys/dev/block")) -> str:
    """Path of the whole disk on which the device *number* lies; empty where there is none."""
    disk_folder = (blocks / f"{os.major(number)}:{os.minor(number)}").resolve()
    if not disk_folder.is_dir():
        return ""
    if (disk_folder / "partition").exists():
        disk_folder = disk_folder.parent
    return f"/dev/{disk_folder.name.replace('!', '/')}"


def preflight(request: Dict[str, Any]) -> Dict[str, Any]:
    """The facts of a host that is to become a node."""
    user_home = str(Path.home())
    is_root = os.geteuid() == 0
    base_folder = str(_ROOTS_BASE) if is_root else f"{user_home}/.mapreduce-harness"
    nearest = nearest_folder(Path(base_folder))
    clusters = Path(base_folder, "clusters")
    hostname = socket.gethostname()
    names = request["names"].items()
    return {
        "python": next(filter(is_open, (sys.executable, "/usr/bin/python3")), ""),
        "user": pwd.getpwuid(os.geteuid()).pw_name,
        "root": is_root,
        "home": user_home,
        "base": base_folder,
        "machine": os.uname().machine,
        "java": [java for java in find_javas() if is_open(java["home"])],
        "copied": copied_parts(Path(base_folder)),
        "free_bytes": shutil.disk_usage(nearest).free,
        "writable": os.access(nearest, os.W_OK),
        "taken": [port for port in request["ports"] if is_port_taken(port)],
        "unnamed": [name for name, address in names if addresses_of(name) != {address}],
        "hostname": "" if addresses_of(hostname) else hostname,
        "sudo": sudo_obstacle(),
        "systemd": Path("/run/systemd/system").is_dir(),
        "lacking": missing_tools() if is_root else [],
        "filter": filter_obstacle(request["rules"]),
        "public": public_addresses(),
        "left": (clusters / request["cluster"]).exists(),
        "owners": living_owners(clusters),
        "time": time.time(),
    }


def nearest_folder(path: Path) -> str:
    """The folder at *path*, or the first above it that exists."""
    return next(str(folder) for folder in (path, *path.parents) if folder.is_dir())


def copied_parts(base: Path) -> List[str]:
    """Marks below *base* that say which parts of a cluster's software were copied completely."""
    files: List[Path] = []
    for pattern in ("*/complete", "hadoop-*/classes-*", "hadoop-*/tasks-*"):
        files += base.glob(pattern)
    return sorted(str(file.relative_to(base)) for file in files)[:_MOST_FILES]


def living_owners(clusters: Path) -> Dict[str, str]:
    """Owners of the clusters here whose supervisor lives, or may be about to start."""
    owners = {}
    for owner_file in clusters.glob("*/owner"):
        age_s = time.time() - owner_file.stat().st_ctime
        try:
            os.close(os.open(str(owner_file.with_name("control")), os.O_WRONLY | os.O_NONBLOCK))
        except OSError as error:
            if error.errno in (errno.ENXIO, errno.ENOENT) and not 0 <= age_s < _YOUNG_S:
                continue
        with owner_file.open(encoding="utf-8", errors="replace") as lines:
            owners[owner_file.parent.name] = lines.readline(400).strip()
    return owners


def is_open(path: str) -> bool:
    """Whether the account that daemons run under can use *path*: our own, but not root's."""
    parts = [Path(path).resolve(), *Path(path).resolve().parents]
    return os.geteuid() != 0 or all(part.stat().st_mode & 0o001 for part in parts)


def find_tool(name: str) -> str:
    """Path of a program of root's; empty where there is none."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or ""


def missing_tools() -> List[str]:
    """Tools that are not here and that root needs to have an account of the daemons' own."""
    try:
        pwd.getpwnam("mapreduce-harness")
        needed = ["setpriv"]
    except KeyError:
        needed = ["setpriv", "useradd"]
    return [name for name in needed if not find_tool(name)]


def filter_obstacle(rules: str) -> str:
    """Why root cannot set the packet filter *rules* here; empty where that works."""
    if not find_tool("nft"):
        return "nft is missing"
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    try:
        process = subprocess.run(
            [*as_root, find_tool("nft"), "-c", "-f", "-"],
            check=False,
            input=rules.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_TOOL_LIMIT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)[:200]
    lines = process.stderr.decode(errors="replace").strip().splitlines() or ["nft refuses"]
    return "" if process.returncode == 0 else lines[0][:200]  # later ones show the place


def public_addresses() -> List[str]:
    """Addresses of this host that are reached from all over the world, by IPv4 or IPv6."""
    import ipaddress

    addresses: Set[str] = set()
    with suppress(OSError):
        trie = Path("/proc/net/fib_trie").read_text()
        addresses |= set(re.findall(r"\|-- (\S+)\n\s+/32 host LOCAL", trie))
    with suppress(OSError):
        for line in Path("/proc/net/if_inet6").read_text().splitlines():
            addresses.add(str(ipaddress.IPv6Address(int(line.split()[0], 16))))
    return sorted(address for address in addresses if ipaddress.ip_address(address).is_global)[:20]


def find_javas() -> List[Dict[str, str]]:
    """
    Java runtimes of this host: *home*, *version* and *build* of each, the preferred one first.

    Their ``release`` files are read, and no JVM is started.
    """
    homes = [os.environ.get("JAVA_HOME", "")]
    launcher = shutil.which("java")
    if launcher:
        homes.append(str(Path(launcher).resolve().parent.parent))
    homes += sorted(str(folder.resolve()) for folder in Path("/usr/lib/jvm").glob("*"))
    javas = []
    for java_home in dict.fromkeys(filter(None, homes)):
        if not os.access(f"{java_home}/bin/java", os.X_OK):
            continue
        version = released_version(java_home)
        if version:
            build = java_build(java_home)
            javas.append({"home": java_home, "version": version, "build": build})
    return javas


def released_version(java_home: str) -> str:
    """The version that the ``release`` file of a Java runtime states; empty where it does not."""
    try:
        with Path(java_home, "release").open(encoding="utf-8", errors="replace") as release:
            stated = re.search(r'^JAVA_VERSION="([0-9._]+)"', release.read(4096), re.MULTILINE)
    except OSError:
        return ""
    return stated.group(1) if stated else ""


def java_build(java_home: str) -> str:
    """Digest of a Java runtime's place, and of sizes and times of its main files."""
    files = []
    for name in ("release", "lib/modules", "lib/server/libjvm.so"):
        java_file = Path(java_home, name)
        if java_file.exists():
            files.append([name, java_file.stat().st_size, java_file.stat().st_mtime_ns])
    return hashlib.sha256(json.dumps([java_home, files]).encode()).hexdigest()[:12]


def is_port_taken(port: int) -> bool:
    """Whether another process listens there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return True
    return False


def addresses_of(host_name: str) -> Set[Any]:
    """Addresses that the name stands for here."""
    try:
        return {info[4][0] for info in socket.getaddrinfo(host_name, None)}
    except OSError:
        return set()


def sudo_obstacle() -> str:
    """Why root's work cannot be done by `sudo`; empty where it can."""
    if os.geteuid() == 0:
        return ""
    if shutil.which("sudo") is None:
        return "sudo is missing"
    process = subprocess.run(
        ["sudo", "-n", "true"],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=20,
    )
    lines = process.stderr.decode(errors="replace").strip().splitlines() or ["sudo refuses"]
    return "" if process.returncode == 0 else lines[-1][:200]  # earlier lines are warnings


if __name__ == "__main__":  # the text itself, on a host that does not have the agent
    main(sys.argv[1:])
