"""
Tests for `harness.doctor.checks`: commands with a time limit, and findings about their
failures.
"""

import pytest

from harness.clusters import survey
from harness.doctor.checks import read_output, run_command

pytestmark = pytest.mark.process


class TestRun:
    """A command that answers, or has failed."""

    def test_one_that_hangs(self, shim, monkeypatch):
        """
        Its time is over: it has failed, and says why.
        """
        shim("slow", "exec sleep 60")
        monkeypatch.setattr(survey, "_GPU_LIMIT_S", 0.2)

        done = run_command(["slow"])

        assert (done.status, done.out) == (127, "")
        assert "has not ended after 0.2 s" in done.err

    def test_one_that_is_not_there(self):
        """
        The same, with the system's reason.
        """
        done = run_command(["no-such-command"])

        assert (done.status, done.err) == (127, "No such file or directory")

    def test_one_that_reads(self, shim):
        """
        Nothing comes: nobody waits for a terminal.
        """
        shim("reader", "cat; echo end of input")

        assert run_command(["reader"]).out == "end of input\n"


def test_output_is_all_that_was_written(shim):
    """
    Some programs write their version to stderr.
    """
    shim("loud", "echo out; echo err >&2")

    assert read_output(["loud"]) == "out\nerr\n"
