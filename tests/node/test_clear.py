"""
Tests for `harness.clusters.node.clear`: what is left of a cluster on a host, and what is not
touched.
"""

import json
import os
import signal
import subprocess
import sys

from pathlib import Path

import pytest

from harness.clusters.node import clear as clears

pytestmark = pytest.mark.process

SOURCE = Path(clears.__file__).read_text()
LIMIT_S = 60


def plan(base, **more):
    """
    What clears cluster `mine` of that base.
    """
    fields = {
        "cluster": "test-mine", "folder": f"{base}/clusters/mine", "base": str(base), "owner": "me",
        "unit": "", "user": "", "keep": False,
    }  # fmt: skip
    return fields | more


def cleared(given):
    """
    What the program says, run by its text as it is on a host without the agent.
    """
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", SOURCE, "clear", "-"], input=json.dumps(given),
        capture_output=True, text=True, check=True, timeout=LIMIT_S,
    ).stdout  # fmt: skip


def made(base, cluster="mine", owner="me"):
    """
    The folder of a cluster with an owner, and a process that names it.
    """
    folder = base / "clusters" / cluster
    (folder / "nodes").mkdir(parents=True)
    (folder / "owner").write_text(f"{owner}\n")
    (base / "hadoop-1").mkdir(exist_ok=True)
    nap = "import time; time.sleep(600)"
    return subprocess.Popen([sys.executable, "-c", nap, f"{folder}/conf"])


def left(base):
    """
    All that lies below the base, and whether the base itself does.
    """
    return sorted(str(path.relative_to(base.parent)) for path in base.parent.rglob("*"))


def test_processes_and_files_go_and_a_second_time_there_is_nothing(tmp_path):
    """
    All of the base, too, where no other cluster is there.
    """
    process = made(tmp_path / "base")
    answers = [cleared(plan(tmp_path / "base")), cleared(plan(tmp_path / "base"))]

    assert (process.wait(LIMIT_S), answers) == (-signal.SIGKILL, ["cleared\n", ""])
    assert left(tmp_path / "base") == []


@pytest.mark.parametrize("shared", ["keep", "other"])
def test_what_others_use_stays(tmp_path, shared):
    """
    Hadoop, where it is kept or another cluster is there; that one's processes, too.
    """
    base = tmp_path / "base"
    processes = [made(base)] + ([made(base, "other")] if shared == "other" else [])
    cleared(plan(base, keep=shared == "keep"))
    alive = [process.poll() is None for process in processes[1:]]
    for process in processes:
        process.kill()
        process.wait()

    assert (alive, (base / "hadoop-1").is_dir()) == ([True] * len(alive), True)
    assert not (base / "clusters" / "mine").exists()


@pytest.mark.parametrize(("owner", "is_cleared"), [("me", False), ("", True), ("them", True)])
def test_what_another_owns_is_left_alone(tmp_path, owner, is_cleared):
    """
    Unless it is to be adopted: then whoever's it is.
    """
    process = made(tmp_path / "base", owner="them")
    answer = cleared(plan(tmp_path / "base", owner=owner))
    lives = process.poll() is None
    process.kill()
    process.wait()

    assert (bool(answer), lives) == (is_cleared, not is_cleared)
    assert (tmp_path / "base").exists() is not is_cleared


NAMES = (
    "127.0.0.1 localhost\n# BEGIN mapreduce-harness test-mine\n10.0.0.1 master\n{}\n10.0.0.9 own\n"
)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes names")
@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("# END mapreduce-harness test-mine", "127.0.0.1 localhost\n10.0.0.9 own\n"),
        ("# END mapreduce-harness test-mine2", None),
    ],
)
def test_names_go_with_their_marks(tmp_path, monkeypatch, end, expected):
    """
    A block without an end is somebody's work by hand, and stays.
    """
    hosts = tmp_path / "hosts"
    hosts.write_text(NAMES.format(end))
    monkeypatch.setattr(clears, "_HOSTS", hosts)
    clears.clear(plan(tmp_path / "base"))

    assert hosts.read_text() == (expected or NAMES.format(end))
