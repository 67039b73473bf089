"""
Debian packages for bare hosts: what a test needs there need not be installed on this machine.

A package is downloaded once, by the machine's own apt, and stays in ``.cache/packages``.
"""

import shlex
import shutil
import subprocess
import tempfile

from pathlib import Path

import pytest

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "packages"
LIMIT_S = 120


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
