"""
The tracer on real tasks: `harness trace selftest` in its small form.
"""

import json
import subprocess
import sys

import pytest

from tests.live.runs import LIMIT_S, clusters, settings

pytestmark = pytest.mark.live

PROGRAM = "import sys; from harness.cli import main; sys.exit(main())"
COMMAND = (sys.executable, "-c", PROGRAM, "trace", "selftest", "--json")
# Other work of the machine: a thread may wait for a core longer than these checks allow.
OF_TIME = ("main thread covers each attempt", ": slept in ")


@pytest.mark.alone
def test_the_tracer_tells_the_truth(tmp_path):
    """
    Whole recordings, times covered, counts equal to Hadoop's, sleeps where they were slept, and the
    recording of a task that SIGKILL has ended; the cluster is taken down.
    """
    environment = settings(tmp_path)
    for _ in range(2):
        done = subprocess.run(
            COMMAND, capture_output=True, text=True, env=environment, timeout=LIMIT_S, check=False
        )
        assert done.returncode in (0, 1), done.stderr
        reported = json.loads(done.stdout)
        wrong = [check for check in reported["checks"] if not check["ok"]]
        if not wrong or not all(any(name in each["name"] for name in OF_TIME) for each in wrong):
            break

    assert wrong == []
    assert done.returncode == 0
    assert {check["job"] for check in reported["checks"]} == {
        "wordcount", "terasort", "sleep", "large record", "untraced",
    }  # fmt: skip
    assert len(reported["checks"]) == 61
    assert clusters(environment) == []
