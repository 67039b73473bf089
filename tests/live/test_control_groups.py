"""
Limits on a kernel with control groups of version 2 alone: Debian's, in a virtual machine.

Times in the guest are compared with each other and with what was asked for; emulated processors
are slow, so only shares and rates count, never how long a thing took.
"""

import json
import os

from pathlib import Path

import pytest

from tests.live import virtual_machine

PROJECT = Path(__file__).resolve().parents[2]
MIB = 2**20
RATE, WRITTEN = 4 * MIB, 24 * MIB

pytestmark = [
    pytest.mark.live,
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root unpacks packages"),
]

SCRIPT = f"""
import json, os, pathlib, platform, subprocess, sys, time
from harness.clusters import kernel

def busy(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass

def share(join):
    # processor seconds of a busy process per second, in the group behind *join*
    child = os.fork()
    if child == 0:
        if join:
            pathlib.Path(join).write_text(str(os.getpid()))
        busy(6)
        os._exit(0)
    _, _, usage = os.wait4(child, 0)
    return (usage.ru_utime + usage.ru_stime) / 6

def rate(path, size):
    # bytes per second of writing through a file system on that disk
    pathlib.Path("/mnt/disk").mkdir(exist_ok=True)
    subprocess.run(["/bin/busybox", "mount", "-t", "ext4", "-o", kernel.MOUNT_OPTIONS.replace(
        ",noinit_itable", ""), path, "/mnt/disk"], check=True)
    start = time.monotonic()
    with open("/mnt/disk/file", "wb") as stream:
        for _ in range(size // {MIB}):
            stream.write(os.urandom({MIB}))
        stream.flush()
        os.fsync(stream.fileno())
    seconds = time.monotonic() - start
    subprocess.run(["/bin/busybox", "umount", "/mnt/disk"], check=True)
    return size / seconds

groups = kernel.Groups("cluster")
answer = {{"kernel": platform.release(), "version": groups.version,
          "refusal": groups.refusal(cores=True, disk=True), "disks": kernel.disks_refusal()}}
groups.make("worker1")
(join,) = groups.joins("worker1")
answer["free"] = share(None)
groups.set_cores("worker1", 0.5)
answer["half"] = share(join)
groups.set_cores("worker1", 0.2)
answer["fifth"] = share(join)
# disks are files that are opened past the page cache, which memory's own file systems do not allow
subprocess.run(["mkfs.ext4", "-q", "-F", "/dev/ram0"], check=True)
subprocess.run(["/bin/busybox", "mount", "-t", "ext4", "/dev/ram0", "/run"], check=True)
folder = pathlib.Path("/run/cluster")
folder.mkdir()
disk = kernel.make_disk(folder / "worker1.disk", 96 * {MIB})
answer["found"] = [each.path for each in kernel.find_disks(folder)] == [disk.path]
pathlib.Path(join).write_text(str(os.getpid()))
groups.set_cores("worker1", 2)
answer["unlimited"] = rate(disk.path, {WRITTEN})
groups.set_device("worker1", disk.device, read={RATE}, write={RATE})
answer["limited"] = rate(disk.path, {WRITTEN})
groups.lift_device(disk.device)
answer["lifted"] = rate(disk.path, {WRITTEN})
answer["passed"] = disk.passed()["written"]
(kernel.ROOT / "cgroup.procs").write_text(str(os.getpid()))
kernel.remove_disk(disk)
groups.remove()
answer["left"] = [str(each) for each in kernel.ROOT.glob("mapreduce-harness*")]
subprocess.run(["ip", "link", "add", "dummy9", "type", "dummy"], check=True)
shaped = subprocess.run(kernel.shape_argv("dummy9", 1_000_000), capture_output=True, text=True)
answer["shaped"] = shaped.returncode, shaped.stderr
print(json.dumps(answer))
"""


def test_version_two():
    """
    Cores and disks of a node are held to what was asked, by the groups of version 2; a lifted disk
    is fast again; nothing stays.
    """
    names = (
        "harness/__init__.py", "harness/base/version.py", "harness/base/errors.py",
        "harness/base/text.py",
    )  # fmt: skip
    sources = {name: (PROJECT / name).read_text() for name in names}
    sources["harness/clusters/__init__.py"] = ""
    sources["harness/clusters/kernel.py"] = (PROJECT / "harness/clusters/kernel.py").read_text()

    output = virtual_machine.run(SCRIPT, sources)
    print(output)  # noqa: T201  (the output that docs/clusters/slower.md quotes)
    answer = json.loads(output.splitlines()[-1])

    assert (answer["version"], answer["refusal"], answer["disks"]) == (2, "", "")
    assert 0.4 < answer["half"] < 0.6
    assert 0.15 < answer["fifth"] < 0.25
    assert answer["limited"] < 1.3 * RATE
    assert answer["found"]
    assert answer["lifted"] > 1.5 * answer["limited"]
    assert answer["passed"] >= WRITTEN
    assert (answer["left"], answer["shaped"]) == ([], [0, ""])
