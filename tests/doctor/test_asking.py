"""
Commands that are asked, with a time limit.
"""

from harness.doctor import asking


class TestRun:
    """A command that answers, or has failed."""

    def test_one_that_hangs(self, shim, monkeypatch):
        """
        Its time is over: it has failed, and says why.
        """
        shim("slow", "exec sleep 60")
        monkeypatch.setattr(asking, "_LIMIT_S", 0.2)

        done = asking.run(["slow"])

        assert (done.returncode, done.stdout) == (127, "")
        assert "timed out" in done.stderr

    def test_one_that_is_not_there(self):
        """
        The same, with the system's reason.
        """
        done = asking.run(["no-such-command"])

        assert (done.returncode, done.stderr) == (127, "No such file or directory")

    def test_one_that_reads(self, shim):
        """
        Nothing comes: nobody waits for a terminal.
        """
        shim("reader", "cat; echo end of input")

        assert asking.run(["reader"]).stdout == "end of input\n"


def test_output_is_all_that_was_said(shim):
    """
    Some programs tell their version on stderr.
    """
    shim("loud", "echo out; echo err >&2")

    assert asking.output(["loud"]) == "out\nerr\n"


def test_first_line():
    """
    Blank lines say nothing; nor does silence, and that is said.
    """
    said = [asking.first_line(text) for text in ("\n  \n  one \ntwo\n", " \n")]

    assert said == ["one", "it said nothing"]
