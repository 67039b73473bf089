"""
Debian packages for tests: what a test needs need not be installed, here or on a bare host.

A package is downloaded once, by the machine's own apt, and stays in ``.cache/packages``.
"""

import os
import shlex
import shutil
import subprocess
import tempfile

from pathlib import Path

import pytest

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "packages"
LIMIT_S = 120
# Of each program the packages that a small Debian lacks.
PACKAGES = {
    "dockerd": ("docker.io", "containerd", "runc", "tini", "libdevmapper1.02.1", "libseccomp2"),
    "sshd": ("openssh-server", "openssh-sftp-server", "libwrap0"),
    "nft": ("nftables", "libnftables1", "libnftnl11", "libmnl0", "libjansson4", "libedit2",
            "libxtables12"),
    "ip": ("iproute2", "libbpf1", "libelf1", "libmnl0", "libcap2-bin"),
    "debootstrap": ("debootstrap", "wget"),
}  # fmt: skip
FOLDERS = "usr/local/sbin", "usr/sbin", "usr/bin", "sbin", "bin"


def provide(program, folder=None):
    """
    Have a program of `PACKAGES` on this process's ``PATH``; why that cannot be, or nothing.

    Where the machine does not have it, root unpacks its packages beside the downloads (or in
    *folder*, whatever the machine has), and programs started from here find them there.
    """
    if folder is None and shutil.which(program):
        return ""
    lacks = f"no {program}: apt-get install -y {PACKAGES[program][0]}"
    if os.geteuid() != 0:
        return lacks
    root = folder or CACHE / program
    if not root.is_dir():
        try:
            files = [downloaded(package) for package in PACKAGES[program]]
        except pytest.skip.Exception as error:
            return f"{lacks}; {error}"
        with tempfile.TemporaryDirectory(dir=root.parent) as partial:
            for file in files:
                subprocess.run(["dpkg-deb", "--extract", file, f"{partial}/root"], check=True)
            # a cut extraction leaves no root; another process may have just made it
            try:
                Path(partial, "root").rename(root)
            except OSError:
                if not root.is_dir():
                    raise
    paths = [str(root / each) for each in FOLDERS if (root / each).is_dir()]
    os.environ["PATH"] = os.pathsep.join([*paths, os.environ["PATH"]])
    libraries = [str(each) for top in ("lib", "usr/lib") for each in root.glob(f"{top}/*-gnu*")]
    known = [os.environ["LD_LIBRARY_PATH"]] if os.environ.get("LD_LIBRARY_PATH") else []
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join([*libraries, *known])
    if program == "debootstrap":
        os.environ["DEBOOTSTRAP_DIR"] = str(root / "usr/share/debootstrap")
    return ""


def unpacked(package):
    """
    Line of a host's *prepare* that puts a package's files there, nothing of it being set up.

    The test is skipped where apt cannot download it.
    """
    file = shlex.quote(str(downloaded(package)))
    return f"dpkg-deb --fsys-tarfile {file} | tar -x --keep-directory-symlink"


def downloaded(package):
    """
    The package's file.
    """
    if known := sorted(CACHE.glob(f"{package}_*.deb")):
        return known[-1]
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        pytest.skip(f"{package} comes by apt-get and dpkg-deb, which this machine does not have")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        done = subprocess.run(
            ["apt-get", "download", package], cwd=folder, check=False, timeout=LIMIT_S,
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
        packages = list(Path(folder).glob("*.deb"))
        if done.returncode or not packages:
            messages = [line for line in done.stderr.splitlines() if line.startswith("E: ")]
            pytest.skip(f"apt cannot download {package}: {' '.join(messages)[:300]}")
        return packages[0].replace(CACHE / packages[0].name)
