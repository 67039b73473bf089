"""
The tracer on real tasks: `harness trace selftest` in its small form.
"""

import json
import sys

import pytest

from tests.live.runs import clusters, output, settings

pytestmark = pytest.mark.live

PROGRAM = "import sys; from harness.cli import main; sys.exit(main())"
COMMAND = (sys.executable, "-c", PROGRAM, "trace", "selftest", "--json")


def test_the_tracer_tells_the_truth(tmp_path):
    """
    Whole recordings, times covered, counts equal to Hadoop's, sleeps where they were slept, and the
    recording of a task that SIGKILL has ended; the cluster is taken down.
    """
    environment = settings(tmp_path)
    reported = json.loads(output(environment, *COMMAND))

    assert [check for check in reported["checks"] if not check["ok"]] == []
    assert {check["job"] for check in reported["checks"]} == {
        "wordcount", "terasort", "sleep", "large record", "untraced",
    }  # fmt: skip
    assert len(reported["checks"]) == 61
    assert clusters(environment) == []
