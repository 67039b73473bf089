"""
What a node is, as a published comparison discloses it.

    node.pyz facts system NAME=FOLDER...    one line of JSON; names stand for the folders there

What cannot be read is a text ``not known: why``.  Nothing is written, no root is needed, each file
is read to a bound.  Sizes are bytes, frequencies Hz, rates bits per second.  ``(left out)`` stands
for serial numbers, and where a disk, a host or a secret may be named.
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
from typing import Any, Dict, Iterable, List, Set, Tuple, Union

_UNSAID = "not known: nothing here says it"
_GET_MTU = 0x8921
_GET_SETTINGS = 0x00000001
_ETHTOOL = 0x8946  # of linux/sockios.h and ethtool.h
_CGROUPS = "/sys/fs/cgroup"
_LIMITS = (  # of both versions of control groups
    "cpu.max",
    "cpu.weight",
    "cpuset.cpus",
    "memory.max",
    "memory.high",
    "memory.swap.max",
    "io.max",
    "cpu.cfs_quota_us",
    "cpu.shares",
    "memory.limit_in_bytes",
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
)
# No limit, or a group's own share: version 1 has a number near 2**63 where memory is not limited.
_NO_LIMIT = re.compile(r"max.*|-1|100|1024|9223\d{15}|not known.*")
_HIDDEN = re.compile(
    r"(?i)((?<![\w.-])(?:ip|ds|root|resume|[\w.-]*(?:key|token|pass|secret|cred|url|host|luks|lvm"
    r"|label|serial|addr|uuid|nfs)[\w.-]*)=)[^\s,]+"
    r"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\benx[0-9a-f]{12}\b"
)


def system_facts(folders: Dict[str, str]) -> Dict[str, Any]:
    """Facts of this node; *folders* are those whose disks are described, by names for them."""
    memory = fields("/proc/meminfo")
    pages = "/sys/kernel/mm/transparent_hugepage"
    java = fields(f"{os.environ.get('JAVA_HOME', '')}/release", "=")
    java_names = ("IMPLEMENTOR", "IMPLEMENTOR_VERSION", "JAVA_RUNTIME_VERSION", "JAVA_VERSION")
    marks = set(re.findall("docker|lxc|kubepods|containerd|libpod", read("/proc/1/cgroup")))
    marks |= {name for name in (".dockerenv", "run/.containerenv") if os.path.exists(f"/{name}")}
    flags = fields("/proc/cpuinfo").get("flags")  # of other architectures: none
    return {
        "processor": processor(),
        "memory": {
            "total_bytes": plain(memory.get("MemTotal", _UNSAID), 1024),
            "huge_pages": plain(memory.get("HugePages_Total", _UNSAID)),
            "huge_page_bytes": plain(memory.get("Hugepagesize", _UNSAID), 1024),
            "transparent_huge_pages": plain(read(f"{pages}/enabled")),
            "transparent_huge_pages_defrag": plain(read(f"{pages}/defrag")),
            "swap_bytes": plain(memory.get("SwapTotal", _UNSAID), 1024),
            "swappiness": plain(read("/proc/sys/vm/swappiness")),
        },
        "disks": {name: disk(folder) for name, folder in folders.items()},
        "network": {hide(name): interface(name) for _, name in socket.if_nameindex()},
        "virtualisation": {
            "hypervisor_flag": "hypervisor" in flags.split() if flags else _UNSAID,
            "vendor": hide(read("/sys/class/dmi/id/sys_vendor")),
            "product": hide(read("/sys/class/dmi/id/product_name")),
            "hypervisor": read("/sys/hypervisor/type"),
            "container": ", ".join(sorted(marks)) or "no sign of one",
        },
        "control_groups": control_groups(),
        "kernel": {
            "release": platform.release(),
            "version": platform.version(),
            # what stands behind the dashes is for the first process, and not the kernel's
            "command_line": hide(read("/proc/cmdline").partition(" -- ")[0]),
            "clock_source": read("/sys/bus/clocksource/devices/clocksource0/current_clocksource"),
        },
        "os": fields("/etc/os-release", "=").get("PRETTY_NAME", _UNSAID),
        "python": platform.python_version(),
        "java": {name.lower(): java.get(name, _UNSAID) for name in java_names},
    }


def read(path: Union[str, Path]) -> str:
    """Text of a file, to a bound; ``not known: why`` where it cannot be read or is empty."""
    try:
        with open(str(path), "rb") as file:
            text = file.read(2**20).decode("utf-8", "replace").strip()
    except OSError as error:
        return f"not known: {Path(path).name}: {error.strerror}"
    return text or f"not known: {Path(path).name} is empty"


def fields(path: str, separator: str = ":") -> Dict[str, str]:
    """Values of the lines of a file by their names; of equal names the first."""
    values: Dict[str, str] = {}
    for line in read(path).splitlines():
        name, _, value = line.partition(separator)
        values.setdefault(name.strip(), value.strip().strip('"'))
    return values


def plain(text: str, factor: int = 1) -> Union[int, str]:
    """The number that *text* begins with, times *factor*; or the one in brackets of its words."""
    match = re.match(r"-?[0-9]+|.*\[(.*?)\]", text)
    return text if not match else match.group(1) or int(match.group()) * factor


def hide(text: str) -> str:
    """*text* without what identifies a machine or opens one."""
    return _HIDDEN.sub(r"\1(left out)", text)


def processor() -> Dict[str, Any]:
    """The processors, by the kernel's files about them and its description of the first."""
    description = fields("/proc/cpuinfo")
    folder = Path("/sys/devices/system/cpu")
    cpus = list(folder.glob("cpu[0-9]*"))
    cores = physical_cores(cpus)
    caches = sorted(folder.glob("cpu0/cache/index*"))
    governors = {read(cpu / "cpufreq/scaling_governor") for cpu in cpus}
    frequency_files = [folder / f"cpu0/cpufreq/cpuinfo_{end}_freq" for end in ("min", "max")]
    numa_nodes = list(Path("/sys/devices/system/node").glob("node[0-9]*"))
    return {
        "model": description.get("model name") or description.get("CPU part", _UNSAID),
        "architecture": platform.machine(),
        "sockets": len({package for package, _ in cores}) or _UNSAID,
        "cores": len(cores) or _UNSAID,
        "threads": len(cpus) or _UNSAID,
        "usable_threads": len(os.sched_getaffinity(0)),
        "caches": list(map(describe_cache, caches)) or _UNSAID,
        "microcode": description.get("microcode", _UNSAID),
        "governor": ", ".join(sorted(governors)),
        "frequency_limits_hz": [plain(read(file), 1000) for file in frequency_files],
        "numa_nodes": len(numa_nodes) or _UNSAID,
    }


def physical_cores(cpus: Iterable[Path]) -> Set[Tuple[str, str]]:
    """Numbers of socket and core of *cpus*, which are folders of the kernel; each pair once."""
    cores = set()
    for cpu in cpus:
        package = read(cpu / "topology/physical_package_id")
        if package.isdigit():
            cores.add((package, read(cpu / "topology/core_id")))
    return cores


def describe_cache(cache: Path) -> str:
    """One cache of a processor, in words, by its folder of the kernel."""
    names = ("level", "type", "size", "shared_cpu_list")
    return "L{} {}, {}, shared by {}".format(*(read(cache / name) for name in names))


def disk(folder: str) -> Dict[str, Any]:
    """The file system that a folder is on, or will be on, and the whole disk below that."""
    mounted = mount_words(f"{os.path.realpath(folder)}/")
    # what follows the dash: options of the file system as a whole are beside those of the mount
    kind, source, file_system_options = mounted[mounted.index("-") + 1 :][:3]
    options = {*mounted[5].split(","), *file_system_options.split(",")}
    device = Path("/sys/dev/block", mounted[2])
    if not device.exists():  # btrfs has numbers of its own
        device = Path("/sys/class/block", os.path.basename(os.path.realpath(source)))
    device = device.resolve()
    if (device / "partition").exists():
        device = device.parent
    lower_devices = ", ".join(sorted(path.name for path in device.glob("slaves/*")))
    name = f"{device.name} on {lower_devices}" if lower_devices else device.name
    return {
        "file_system": kind,
        "mount_options": sorted(
            hide(re.sub("=.*/.*", "=(left out)", option)) for option in options
        ),
        "device": name if device.exists() else f"not known: {kind} shows no disk here",
        "model": read(device / "device/model"),
        "rotational": plain(read(device / "queue/rotational")),
        "size_bytes": plain(read(device / "size"), 512),
        "scheduler": plain(read(device / "queue/scheduler")),
    }


def mount_words(path: str) -> List[str]:
    """The line of ``mountinfo`` for the file system of *path*, which ends with a slash."""
    nowhere = "not known: no file system has this folder"
    mounted = ["", "", "none", "", "", nowhere, "-", nowhere, "none", nowhere]
    for line in read("/proc/self/mountinfo").splitlines():
        words = line.split(" ")
        is_above = "-" in words and path.startswith(f"{words[4].rstrip('/')}/")
        if is_above and len(words[4]) >= len(mounted[4]):  # the last of two at one place is on top
            mounted = words
    return mounted


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
            our_group = Path(_CGROUPS, controller.replace("name=", ""), place.lstrip("/"))
            for group in (our_group, *our_group.parents):
                limits += group_limits(group)
    version: Union[int, str] = 2 if os.path.exists(f"{_CGROUPS}/cgroup.controllers") else 1
    if not os.path.isdir(_CGROUPS):
        version = f"not known: {_CGROUPS} is not there"
    return {"version": version, "limits": list(dict.fromkeys(limits))}


def group_limits(group: Path) -> List[str]:
    """The limits that the files of one control group state."""
    stated = [(name, read(group / name)) for name in _LIMITS]
    return [f"{name}: {limit}" for name, limit in stated if not _NO_LIMIT.fullmatch(limit)]
