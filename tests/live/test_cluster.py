"""
A real cluster, as root and as an ordinary user: it lives, works, and leaves nothing.

Each test tells one life (`scenario`) and compares what was seen with what ought to be.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

from pathlib import Path

import pytest

from harness.clusters.hadoop_home.home import HadoopHome

pytestmark = pytest.mark.live

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
LIMIT_S = 900
NOTHING_LEFT = {k: [] for k in ("processes", "namespaces", "state", "mounts", "links", "files")}
COUNTS = {"be": "3000", "not": "1500", "or": "1500", "to": "3000"}


@pytest.fixture
def folder():
    """
    A folder that any user may enter: pytest's own are closed to all but their maker.
    """
    made = Path(tempfile.mkdtemp(prefix="harness-live-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def lived(scenario, folder, before=()):
    """
    The facts of a scenario that kept its state in *folder*.
    """
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(PROJECT),
        "PYTHONDONTWRITEBYTECODE": "1",
        **{k: v for k, v in os.environ.items() if k in ("JAVA_HOME", "HARNESS_HADOOP_HOME")},
    }
    done = subprocess.run(
        [*before, sys.executable, str(HERE / "scenario.py"), scenario],
        env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def as_nobody():
    """
    What turns a command of root into one of an ordinary user.
    """
    home = HadoopHome.find()
    needed = [sys.base_prefix, sys.prefix, PROJECT, home.path, home.java.home]
    reached = ["unshare", "-m", "--propagation", "private", sys.executable]
    return [*reached, str(HERE / "as_nobody.py"), *map(str, needed), "--"]


@pytest.mark.long
def test_two_clusters_side_by_side(folder):
    """
    Two clusters have the same addresses and do not see each other; the first process of one ends
    all of it when killed; the other works on, and goes by a command of another process, twice.
    """
    facts = lived("pair", folder)

    assert facts == {
        "addresses": ["198.18.0.1", "198.18.0.1"],
        "files": [["history", "only"], ["history"]],
        "taken": "cluster 'one' is up already",
        "gone": True,
        "dead": [
            "namenode on master", "resourcemanager on master", "datanode on worker1",
            "nodemanager on worker1", "historyserver on master",
        ],
        "other": [],
        "outside": {"sockets": [], "in our network": False, "processes": 6},
        "job": {
            "status": 0, "counts": COUNTS, "parts": ["part-r-00000"], "gc logs": 4,
            "history": ["job_", "job_", "job_"],
        },
        "stopped early": [2**20, True],
        "down": [0, 0],
        "left": NOTHING_LEFT,
    }  # fmt: skip


@pytest.mark.parametrize("user", [65534, pytest.param(271828, marks=pytest.mark.long)])
def test_whole_life_by_the_command_line(folder, user):
    """
    An ordinary user, with an entry in /etc/passwd or without, brings a cluster up, runs a job,
    loses a daemon to `kill -9`, takes the cluster down twice: the dead daemon was noticed, and
    nothing is left.
    """
    before = []
    if os.geteuid() == 0:
        os.chown(folder, user, user)
        before = ["env", f"AS_USER={user}", *as_nobody()]

    facts = lived("whole", folder, before)

    assert facts == {
        "up": 0,
        "outside": {"sockets": [], "in our network": False, "processes": 8},
        "nodes": {
            "master": ["master", "198.18.0.1/15"],
            "worker1": ["worker1", "198.18.0.2/15"],
            "worker2": ["worker2", "198.18.0.3/15"],
        },
        "job": {
            "status": 0, "counts": COUNTS, "parts": ["part-r-00000", "part-r-00001"],
            "gc logs": 5, "history": ["job_", "job_", "job_"],
        },
        "running": 7,
        "dead": ["datanode on worker2"],
        "running then": 6,
        "down": [0, 0],
        "left": NOTHING_LEFT,
    }  # fmt: skip
