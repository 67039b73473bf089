"""
A virtual machine with Debian's kernel, for what this machine's own kernel is not: control groups 2.

QEMU and the kernel are unpacked from packages.  The guest's files are an archive in its memory:
busybox, this machine's Python and some of its programs, and modules of ours.  It runs one Python
script as its first process and turns itself off; what the script prints is what comes back.
"""

import os
import re
import shutil
import subprocess
import tempfile

from pathlib import Path

import pytest

from tests.live.packages import CACHE, downloaded

PROJECT = Path(__file__).resolve().parents[2]
QEMU = ("qemu-system-x86", "busybox-static")
MODULES = (
    "block/loop", "block/brd", "lib/crc16", "crypto/crc32c_generic", "lib/libcrc32c", "fs/mbcache",
    "fs/jbd2/jbd2", "fs/ext4/ext4", "net/dummy", "net/sched/sch_tbf",
)  # fmt: skip
PROGRAMS = ("mkfs.ext4", "losetup", "tc", "ip")
BEGIN, END = "guest says:", "guest ends"
LIMIT_S = 500

# A disk in memory of 192 MiB: rd_size counts KiB.
INIT = """#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox mount -t tmpfs tmpfs /tmp
/bin/busybox mount -t cgroup2 cgroup2 /sys/fs/cgroup
for module in $MODULES; do /bin/busybox insmod /modules/$module; done
/bin/busybox insmod /modules/brd.ko rd_nr=1 rd_size=196608
echo 3 > /proc/sys/kernel/printk
echo "BEGIN"
PYTHONHOME=/usr PYTHONPATH=/guest PYTHONDONTWRITEBYTECODE=1 PATH=/usr/bin:/usr/sbin:/bin \\
    PYTHON -S /guest/script.py 2>&1
echo "END"
/bin/busybox poweroff -f
"""


def needed(packages):
    """
    Names of *packages*, and of what this machine would have to install for them to run.
    """
    plan = subprocess.run(
        ["apt-get", "install", "--simulate", "--no-install-recommends", *packages], check=False,
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
    ).stdout  # fmt: skip
    return {*packages, *re.findall(r"^Inst (\S+)", plan, re.MULTILINE)}


def unpacked():
    """
    Folder with QEMU and a kernel, unpacked once; the test is skipped where apt cannot have them.
    """
    root = CACHE / "virtual-machine"
    if not root.is_dir():
        depends = subprocess.run(
            ["apt-cache", "depends", "linux-image-amd64"], check=False, capture_output=True,
            text=True,
        ).stdout  # fmt: skip
        image = re.search(r"Depends: (linux-image-\S+)", depends)
        if image is None:
            pytest.skip("apt knows no linux-image-amd64")
        files = [downloaded(package) for package in (*sorted(needed(QEMU)), image[1])]
        partial = Path(tempfile.mkdtemp(dir=CACHE))
        for file in files:
            subprocess.run(["dpkg-deb", "--extract", file, partial], check=True)
        partial.rename(root)
    return root


def libraries(file):
    """
    Shared libraries that a program of this machine needs, and what loads them.
    """
    text = subprocess.run(["ldd", file], check=False, capture_output=True, text=True).stdout
    return {Path(path) for path in re.findall(r"(/\S+) \(0x", text)}


def pack(root, folder, script, sources):
    """
    The guest's files as an archive: *script* and, by their names, *sources* of ours.
    """
    files = folder / "files"
    for name in ("proc", "sys", "dev", "tmp", "bin", "modules", "guest", "run", "mnt", "etc"):
        (files / name).mkdir(parents=True)
    shutil.copy(root / "bin/busybox", files / "bin/busybox")
    python = Path("/usr/bin/python3").resolve()
    programs = [python, *(Path(shutil.which(each)).resolve() for each in PROGRAMS)]
    library = Path(f"/usr/lib/{python.name}")
    dynamic = [file for file in (library / "lib-dynload").glob("*.so") if "test" not in file.name]
    for file in {*programs, *(each for one in (*programs, *dynamic) for each in libraries(one))}:
        target = files / str(file).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file.resolve(), target)
    for name, program in zip(PROGRAMS, programs[1:], strict=True):
        place = files / "usr/sbin" / name
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(program)
    ignored = shutil.ignore_patterns("__pycache__", "test*", "dist-packages", "config-*", "idlelib")
    shutil.copytree(library, files / str(library).lstrip("/"), ignore=ignored)
    kernel = next((root / "lib/modules").iterdir()) / "kernel"
    for module in MODULES:
        module_file = next(kernel.rglob(f"{module.rpartition('/')[2]}.ko"))
        shutil.copy(module_file, files / "modules")
    for name, text in sources.items():
        (files / "guest" / name).parent.mkdir(parents=True, exist_ok=True)
        (files / "guest" / name).write_text(text)
    (files / "guest/script.py").write_text(script)
    modules = [f"{module.rpartition('/')[2]}.ko" for module in MODULES]
    names = " ".join(each for each in modules if each != "brd.ko")  # it has settings
    lines = INIT.replace("$MODULES", names).replace("PYTHON -S", f"{python} -S")
    (files / "init").write_text(lines.replace("BEGIN", BEGIN).replace("END", END))
    (files / "init").chmod(0o755)
    archive = folder / "files.cpio"
    names = "\n".join(str(each.relative_to(files)) for each in sorted(files.rglob("*")))
    with archive.open("wb") as stream:
        subprocess.run(
            [root / "bin/busybox", "cpio", "-o", "-H", "newc"], check=True, cwd=files,
            input=names.encode(), stdout=stream, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    return archive


def run(script, sources, *, processors=2):
    """
    What *script* prints in the guest.
    """
    root = unpacked()
    places = [root / "usr/lib/x86_64-linux-gnu", root / "lib/x86_64-linux-gnu"]
    with tempfile.TemporaryDirectory() as name:
        archive = pack(root, Path(name), script, sources)
        console = Path(name, "console")
        with console.open("wb") as stream:
            subprocess.run(
                [
                    root / "usr/bin/qemu-system-x86_64", "-accel", "tcg",
                    "-m", "1024", "-smp", str(processors), "-nodefaults", "-no-reboot",
                    "-display", "none", "-serial", "stdio", "-L", root / "usr/share/qemu",
                    "-L", root / "usr/share/seabios", "-kernel", next((root / "boot").glob("vml*")),
                    "-initrd", archive, "-append", "console=ttyS0 quiet panic=-1",
                ],
                check=False, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream,
                timeout=LIMIT_S,
                env={**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(map(str, places))},
            )  # fmt: skip
        text = console.read_text(errors="replace").replace("\r", "")
    assert END in text, text[-3000:]
    return text.partition(BEGIN)[2].partition(END)[0].strip()
