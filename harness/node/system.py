"""
What a node is, as a published comparison discloses it.

    node.pyz facts system NAME=FOLDER...    one line of JSON; names stand for the folders there

What cannot be read is a text ``not known: why``.  Nothing is written, no root is needed, each file
is read to a bound.  Sizes are bytes, frequencies Hz, rates bits per second.  Serial numbers,
addresses, names of hosts and paths are not told: ``UUID``, ``ADDRESS``, ``(left out)`` stand there.
"""

import array
import fcntl
import os
import platform
import re
import socket
import struct

from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List, Union

_MOST_READ, _MOST_LISTED = 2**20, 64
_UNSAID = "not known: the kernel does not say"
_GET_MTU, _GET_SETTINGS, _ETHTOOL = 0x8921, 0x00000001, 0x8946  # of linux/sockios.h and ethtool.h
_CGROUPS, _LIMITS = "/sys/fs/cgroup", (  # of both versions of control groups
    "cpu.max", "cpu.weight", "cpuset.cpus", "memory.max", "memory.high", "memory.swap.max",
    "io.max", "cpu.cfs_quota_us", "cpu.shares", "memory.limit_in_bytes",
    "blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device",
)  # fmt: skip
# No limit, or a group's own share: version 1 has a number near 2**63 where memory is not limited.
_NO_LIMIT = re.compile(r"max.*|-1|100|1024|9223\d{15}|not known.*")
_NAMES = "key|token|pass|secret|cred|url|host|luks|lvm|label|serial|addr|uuid|nfs"
_HIDDEN = (
    (re.compile(r"\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "UUID"),
    (re.compile(r"\benx[0-9a-f]{12}\b|\b([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b"), "ADDRESS"),
    (re.compile(r"\b\d{1,3}(\.\d{1,3}){3}\b"), "ADDRESS"),
    (re.compile(r"\b[0-9a-fA-F]{1,4}(::[0-9a-fA-F:]+|(:[0-9a-fA-F]{0,4}){3,7}\b)"), "ADDRESS"),
    (re.compile(rf"(?i)(?<![\w.-])((ip|ds|root|resume|[\w.-]*({_NAMES})[\w.-]*)=)[^\s,]+"),
     r"\1(left out)"),
)  # fmt: skip


def system_facts(folders: Dict[str, str]) -> Dict[str, Any]:
    """Facts of this node; *folders* are those whose disks are told of, by names for them."""
    memory = {
        name: int(value.split()[0]) * (1024 if value.endswith("kB") else 1)
        for name, value in fields("/proc/meminfo").items()
        if value[:1].isdigit()
    }
    pages, clocks = "/sys/kernel/mm/transparent_hugepage", "/sys/devices/system/clocksource"
    release = fields(f"{os.environ.get('JAVA_HOME', '')}/release", "=")
    java_names = ("IMPLEMENTOR", "IMPLEMENTOR_VERSION", "JAVA_RUNTIME_VERSION", "JAVA_VERSION")
    signs = ("docker", "lxc", "kubepods", "containerd", "libpod")
    marks = [sign for sign in signs if sign in read("/proc/1/cgroup")]
    marks += [name for name in (".dockerenv", "run/.containerenv") if os.path.exists(f"/{name}")]
    flags = fields("/proc/cpuinfo").get("flags")  # of other architectures: none
    return {
        "processor": processor(),
        "memory": {
            "total_bytes": memory.get("MemTotal", _UNSAID),
            "huge_pages": memory.get("HugePages_Total", _UNSAID),
            "huge_page_bytes": memory.get("Hugepagesize", _UNSAID),
            "transparent_huge_pages": chosen(read(f"{pages}/enabled")),
            "transparent_huge_pages_defrag": chosen(read(f"{pages}/defrag")),
            "swap_bytes": memory.get("SwapTotal", _UNSAID),
            "swappiness": number(read("/proc/sys/vm/swappiness")),
        },
        "disks": {name: disk(Path(folder)) for name, folder in folders.items()},
        "network": {
            hide(name): interface(name) for _, name in socket.if_nameindex()[:_MOST_LISTED]
        },
        "virtualisation": {
            "hypervisor_flag": "hypervisor" in flags.split() if flags else _UNSAID,
            "vendor": hide(read("/sys/class/dmi/id/sys_vendor")),
            "product": hide(read("/sys/class/dmi/id/product_name")),
            "hypervisor": read("/sys/hypervisor/type"),
            "container": ", ".join(marks) or "no sign of one",
        },
        "control_groups": control_groups(),
        "kernel": {
            "release": platform.release(),
            "version": platform.version(),
            # what stands behind the dashes is for the first process, and not the kernel's
            "command_line": hide(read("/proc/cmdline").partition(" -- ")[0]),
            "clock_source": read(f"{clocks}/clocksource0/current_clocksource"),
        },
        "os": fields("/etc/os-release", "=").get("PRETTY_NAME", "not known: it has no name"),
        "python": platform.python_version(),
        "java": {
            name.lower(): release.get(name, "not known: the file 'release' of Java does not say")
            for name in java_names
        },
    }


def read(path: Union[str, Path]) -> str:
    """Text of a file, to a bound; ``not known: why`` where it cannot be read or is empty."""
    name = Path(path).name
    try:
        with open(str(path), "rb") as file:
            text = file.read(_MOST_READ).decode("utf-8", "replace").strip()
    except OSError as error:
        return f"not known: {name}: {error.strerror}"
    return text or f"not known: {name} is empty"


def fields(path: str, separator: str = ":") -> Dict[str, str]:
    """Values of the lines of a file by their names; of equal names the first."""
    known: Dict[str, str] = {}
    for line in read(path).splitlines():
        name, _, value = line.partition(separator)
        known.setdefault(name.strip(), value.strip().strip('"'))
    return known


def number(text: str, factor: int = 1) -> Union[int, str]:
    """A whole number times *factor*, or the text itself."""
    return int(text) * factor if re.match(r"-?[0-9]{1,18}$", text) else text


def chosen(text: str) -> str:
    """The one in brackets of several words."""
    match = re.search(r"\[(.*?)\]", text)
    return match.group(1) if match else text


def hide(text: str) -> str:
    """*text* without what identifies a machine or opens one."""
    for pattern, replacement in _HIDDEN:
        text = pattern.sub(replacement, text)
    return text


def processor() -> Dict[str, Any]:
    """The processors, by the kernel's files about them and its description of the first."""
    first, folder = fields("/proc/cpuinfo"), Path("/sys/devices/system/cpu")
    cpus, caches = list(folder.glob("cpu[0-9]*")), sorted(folder.glob("cpu0/cache/index*"))
    places = ("topology/physical_package_id", "topology/core_id")
    cores = {tuple(read(cpu / place) for place in places) for cpu in cpus}
    cores = {core for core in cores if core[0].isdigit()}
    limits = [read(folder / f"cpu0/cpufreq/cpuinfo_{end}_freq") for end in ("min", "max")]
    names = ("level", "type", "size", "shared_cpu_list")
    return {
        "model": first.get("model name") or first.get("CPU part") or _UNSAID,
        "architecture": platform.machine(),
        "sockets": len({core[0] for core in cores}) or _UNSAID,
        "cores": len(cores) or _UNSAID,
        "threads": len(cpus) or _UNSAID,
        "usable_threads": len(os.sched_getaffinity(0)),
        "caches": ["L{} {}, {}, shared by {}".format(*(read(cache / name) for name in names))
                   for cache in caches] or _UNSAID,
        "microcode": first.get("microcode", _UNSAID),
        "governor": ", ".join(sorted({read(cpu / "cpufreq/scaling_governor") for cpu in cpus})),
        "frequency_limits_hz": [number(limit, 1000) for limit in limits],
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or _UNSAID,
    }  # fmt: skip


def disk(folder: Path) -> Dict[str, Any]:
    """The file system under a folder, or the nearest one above that is there, and its disk."""
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    place, mounted = f"{os.path.realpath(str(folder))}/", [""] * 6
    for line in read("/proc/self/mountinfo").splitlines():  # the last of two at one place is on top
        words = line.replace("\\040", " ").split(" ")
        is_above = "-" in words[6:] and place.startswith(f"{words[4].rstrip('/')}/")
        mounted = words if is_above and len(words[4]) >= len(mounted[4]) else mounted
    names = ("file_system", "mount_options", "device", "model", "rotational", "size_bytes",
             "scheduler")  # fmt: skip
    facts: Dict[str, Any] = dict.fromkeys(names, "not known: no file system has this folder")
    if "-" not in mounted:
        return facts
    kind, source, above = mounted[mounted.index("-", 6) + 1 :][:3]
    options = sorted({*mounted[5].split(","), *above.split(",")})[:_MOST_LISTED]
    facts.update(dict.fromkeys(names, f"not known: {kind} shows no disk here"), file_system=kind)
    facts["mount_options"] = [hide(re.sub("=.*/.*", "=(left out)", option)) for option in options]
    device = Path("/sys/dev/block", mounted[2])
    with suppress(OSError):  # btrfs has numbers of its own
        if not device.exists() and source.startswith("/dev/"):
            device_number = os.stat(source).st_rdev
            device = Path("/sys/dev/block", f"{os.major(device_number)}:{os.minor(device_number)}")
    if device.exists():
        device = device.resolve()
        device = device.parent if (device / "partition").exists() else device
        below = ", ".join(sorted(path.name for path in device.glob("slaves/*")))
        facts["device"] = f"{device.name} on {below}" if below else device.name
        facts["model"] = read(device / "device/model")
        facts["rotational"] = number(read(device / "queue/rotational"))
        facts["size_bytes"] = number(read(device / "size"), 512)
        facts["scheduler"] = chosen(read(device / "queue/scheduler"))
    return facts


def interface(name: str) -> Dict[str, Any]:
    """Rate and greatest packet of an interface: asked of it, as files may show another node's."""
    settings = array.array("B", struct.pack("I40x", _GET_SETTINGS))
    facts: Dict[str, Any] = {"mtu": _UNSAID, "bits_per_s": "not known: its driver does not say"}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control, suppress(OSError):
        request = struct.pack("16s16x", os.fsencode(name))
        facts["mtu"] = struct.unpack_from("i", fcntl.ioctl(control, _GET_MTU, request), 16)[0]
        request = struct.pack("16sP16x", os.fsencode(name), settings.buffer_info()[0])
        fcntl.ioctl(control, _ETHTOOL, request)
        low, high = struct.unpack_from("H14xH", settings, 12)
        if 0 < low + (high << 16) < 2**32 - 1 and (low, high) != (2**16 - 1, 0):
            facts["bits_per_s"] = (low + (high << 16)) * 10**6
    return facts


def control_groups() -> Dict[str, Any]:
    """Version of the control groups, and the limits of our own and of those above it."""
    limits: List[str] = []
    for line in read("/proc/self/cgroup").splitlines():
        controllers, _, place = line.partition(":")[2].partition(":")
        for controller in controllers.split(","):  # an empty one in version 2
            own = Path(_CGROUPS, controller.replace("name=", ""), place.lstrip("/"))
            pairs = [(name, read(group / name)) for group in (own, *own.parents)
                     for name in _LIMITS]  # fmt: skip
            limits += [f"{name}: {text}" for name, text in pairs if not _NO_LIMIT.fullmatch(text)]
    version = 2 if os.path.exists(f"{_CGROUPS}/cgroup.controllers") else 1
    known = version if os.path.isdir(_CGROUPS) else f"not known: {_CGROUPS} is not there"
    return {"version": known, "limits": list(dict.fromkeys(limits))[:_MOST_LISTED]}
