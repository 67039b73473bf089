"""Programs that come from packages, wherever they are not installed."""

import os
import shutil
import subprocess

import pytest

from tests.live.packages import PACKAGES, provide

pytestmark = [
    pytest.mark.live,
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root unpacks packages"),
]
VERSIONS = {
    "debootstrap": "--version",
    "dockerd": "--version",
    "nft": "--version",
    "ip": "-V",
    "sshd": "-V",
}


@pytest.mark.parametrize("program", sorted(PACKAGES))
def test_unpacked(program, tmp_path, monkeypatch):
    """
    A program of unpacked packages is found first, and runs with their libraries.
    """
    monkeypatch.setenv("PATH", os.environ["PATH"])
    monkeypatch.setenv("LD_LIBRARY_PATH", "")

    reason = provide(program, tmp_path / "root")

    program_path = shutil.which(program)
    done = subprocess.run(
        [program_path, VERSIONS[program]], check=False, capture_output=True, text=True
    )
    assert (reason, program_path.startswith(str(tmp_path))) == ("", True)
    assert "rror while loading" not in done.stderr
    assert done.stdout + done.stderr
