"""
Mistakes on the command line, and outputs that take nothing: what, where, fix, and the right status.
"""

import errno
import os
import subprocess
import sys

from pathlib import Path

import pytest

from harness.cli import main
from harness.cli.entry import system_error


def harness(*arguments, **more):
    """
    Run the command in a process of its own.
    """
    program = "import sys; from harness.cli import main; sys.exit(main())"
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more}
    return subprocess.run([sys.executable, "-c", program, *arguments], check=False, **options)


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "what", "fix"),
        [
            (["plna"], "no such command 'plna'", "did you mean 'plan'?"),
            (["help"], "no such command 'help'", "harness --help"),
            (["--foo"], "no such option '--foo'", "harness --help"),
            (["plan"], "missing argument 'FILE'", "harness plan experiments/quick.yaml ("),
            (["plan", "a", "--sett", "b"], "no such option '--sett'", "did you mean '--set'?"),
            (["plan", "a", "b"], "got unexpected extra argument (b)", "harness plan --help"),
            (["cluster", "upp"], "no such command 'upp'", "did you mean 'up'?"),
            (["list", "modles"], "invalid value for '[workloads|", "did you mean models?"),
            (["list"], "missing argument '[workloads|", "harness list models ("),
            (["all", "a", "--on-error", "x"], "invalid value for '--on-error'", "harness all -"),
            (["all", "a", "--retries", "11"], "invalid value for '--retries'", "harness all -"),
        ],
        ids=" ".join,
    )
    def test_is_laid_out_as_every_error(self, capsys, arguments, what, fix):
        """
        Three lines, the nearest name or something that can be typed in the last; status 2.
        """
        status = main(arguments)

        first, where, last = capsys.readouterr().err.splitlines()
        assert status == 2
        assert first.startswith(f"error: {what}")
        assert where.startswith("  at:  harness ")
        assert last.startswith(f"  fix: {fix}")


def test_a_command_that_nobody_names_is_called_as_its_group(capsys):
    """
    In its help and in its errors: `night` is in no reference.
    """
    assert main(["nightly", "experiments/nightly.yaml", "--help"]) == 0
    assert main(["nightly", "experiments/nightly.yaml", "--nope"]) == 2
    out, err = capsys.readouterr()

    assert out.startswith("Usage: harness nightly [OPTIONS] FILE\n")
    assert "  at:  harness nightly [OPTIONS] FILE\n" in err
    assert "nightly night" not in out + err


@pytest.mark.process
class TestOutput:
    @pytest.mark.parametrize("arguments", [["--help"], ["list", "models"], ["list", "reports"]])
    def test_that_is_full(self, arguments):
        """
        Said in plain words, with the status of a machine that is not fit.
        """
        with Path("/dev/full").open("w") as full:
            done = harness(*arguments, stdout=full)

        assert done.returncode == 3
        assert done.stderr.startswith("error: standard output cannot be written: no space left")

    def test_that_is_closed(self):
        """
        ``harness ... >&-`` does its work and says nothing.
        """
        done = harness("list", "models", stdout=None, preexec_fn=lambda: os.close(1))

        assert (done.returncode, done.stderr) == (0, "")

    @pytest.mark.parametrize("arguments", [["list", "models"], ["list", "models", "--json"]])
    def test_whose_reader_has_gone(self, arguments):
        """
        Tables end as everything does in a pipe: quietly, with the status of the signal.
        """
        reads, writes = os.pipe()
        os.close(reads)
        done = harness(*arguments, stdout=writes)
        os.close(writes)

        assert (done.returncode, done.stderr) == (141, "")

    def test_that_knows_no_such_letter(self):
        """
        A character that the output cannot hold is written as its number.
        """
        environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
        program = (
            "import sys, click, harness.cli.commands.list as m; from harness.cli import main;"
            "m.describe = lambda value: 'für'; sys.exit(main(['list', 'models']))"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True, check=False, env=environment,
        )  # fmt: skip

        assert (done.returncode, done.stderr) == (0, b"")
        assert rb"f\xfcr" in done.stdout


@pytest.mark.process
class TestFolder:
    def test_that_was_removed_under_the_shell(self, tmp_path):
        """
        Nobody's bug: cd to one that exists.
        """
        gone = tmp_path / "gone"
        gone.mkdir()

        done = harness("doctor", cwd=gone, preexec_fn=gone.rmdir)

        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("error: the folder that this shell is in has been removed")


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device", "/some/file"),
        FileNotFoundError(errno.ENOENT, "No such file or directory", "/some/file"),
        PermissionError(errno.EPERM, "Operation not permitted"),
    ],
    ids=repr,
)
def test_other_errors_of_the_system_stay_bugs(error):
    """
    Not every refusal of the system is the output's.
    """
    assert system_error(error) is None
