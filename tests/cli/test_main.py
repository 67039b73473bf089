"""
Tests for `harness.cli`: what a command's end looks like from the outside.
"""

import os
import signal
import subprocess
import sys
import tempfile

import pytest

from harness.base import errors
from harness.base.version import __version__
from harness.cli import COMMANDS, main
from harness.cli.commands_table import GROUPS, Row
from harness.cli.console.command import command

HEAVY = {"numpy", "scipy", "pyarrow", "matplotlib", "jinja2", "pydantic", "rich", "ruamel"}


@pytest.fixture
def run(monkeypatch, tmp_path):
    """
    A function that runs its argument as the body of a command, and answers the exit status.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def run(body):
        monkeypatch.setitem(COMMANDS, "try", Row(lambda: command("try")(body), "Try."))
        return main(["try"])

    return run


def raises(error):
    """
    The body of a command that raises *error*.
    """

    def body():
        raise error

    return body


def python(program, **more):
    """
    Run a program in an interpreter of its own.
    """
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, **more
    )


class TestHelp:
    def test_lists_every_command(self, capsys):
        """
        Each name stands there with its line, and an example comes last.
        """
        status = main(["--help"])

        out = capsys.readouterr().out
        assert status == 0
        assert all(f"  {name}  " in out or f"  {name} " in out for name in COMMANDS)
        assert out.rstrip().endswith("harness COMMAND --help")

    def test_begins_with_what_is_needed_first(self, capsys):
        """
        Six commands stand below the first heading, the others below those of their use.
        """
        main(["--help"])

        out = capsys.readouterr().out
        places = [out.index(f"\n{heading}:\n") for heading in GROUPS]
        assert [*GROUPS["First"]] == ["init", "plan", "all", "runs", "report", "compare"]
        assert places == sorted(places)
        assert sum(map(len, GROUPS.values())) == len(COMMANDS)

    @pytest.mark.parametrize("name", COMMANDS)
    def test_each_command_of_the_table_has_its_name(self, name):
        """
        What a row of the table imports is the command of that name.
        """
        assert COMMANDS[name].load().name == name

    @pytest.mark.process
    def test_imports_no_heavy_library(self):
        """
        Whoever asks for help does not wait for libraries that only a computation needs.
        """
        done = python(
            "import sys; from harness.cli import main; main(['--help']);"
            "print(*{m.partition('.')[0] for m in sys.modules}, file=sys.stderr)"
        )

        assert HEAVY & set(done.stderr.split()) == set()
        assert "click" in done.stderr

    def test_no_arguments_are_a_question(self, capsys):
        """
        Without a command the help is shown, and the status says that nothing was done.
        """
        assert main([]) == 2
        assert "First:" in capsys.readouterr().err


def test_version(capsys):
    """
    One line, the name and the version.
    """
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"harness {__version__}\n"


def test_unknown_command_is_a_usage_error(capsys):
    """
    A typing error gets status 2 and the nearest name.
    """
    assert main(["reprot"]) == 2
    assert "report" in capsys.readouterr().err


class TestStatus:
    @pytest.mark.parametrize(
        ("error", "status"),
        [
            (errors.SpecError("x"), 2),
            (errors.MachineError("x"), 3),
            (errors.ClusterError("x"), 4),
            (errors.JobError("x"), 5),
            (errors.DataError("x"), 7),
            (errors.ParseError("x", source="a.jhist", line=3), 7),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_is_that_of_the_error(self, run, error, status):
        """
        Each kind of foreseen error has its own status.
        """
        assert run(raises(error)) == status

    @pytest.mark.parametrize(
        ("answer", "status"), [(None, 0), (6, 6), ("text", 0)], ids=["none", "number", "other"]
    )
    def test_is_what_the_command_returns(self, run, answer, status):
        """
        A whole number is the status; anything else means done.
        """
        assert run(lambda: answer) == status

    @pytest.mark.parametrize("status", [1, 6])
    def test_is_what_the_command_exits_with(self, run, status):
        """
        Gates and partial runs end so.
        """
        assert run(raises(SystemExit(status))) == status


class TestForeseenError:
    def test_says_what_where_and_fix(self, run, capsys):
        """
        Three lines on stderr, nothing on stdout.
        """
        run(raises(errors.ClusterError("no DataNode", where="node w1", fix="read w1.log")))

        assert capsys.readouterr() == (
            "",
            "error: no DataNode\n  at:  node w1\n  fix: read w1.log\n",
        )

    def test_escape_sequences_do_not_reach_the_terminal(self, run, capsys):
        """
        Those in a value that is quoted are written out.
        """
        run(raises(errors.SpecError("unknown key \x1b]0;gotcha\x07\x1b[2Jname")))

        assert capsys.readouterr().err == "error: unknown key \\x1b]0;gotcha\\x07\\x1b[2Jname\n"


class TestBug:
    def test_keeps_the_traceback_in_a_file(self, run, capsys, tmp_path):
        """
        Two lines for the user; the second names the file with the traceback.
        """
        status = run(raises(KeyError("x")))

        first, second = capsys.readouterr().err.splitlines()
        (log,) = (tmp_path / "mapreduce-harness").iterdir()
        assert status == 70
        assert first == f"error: KeyError: 'x' (a bug in harness {__version__})"
        assert second == f"  fix: report it, with {log}"
        assert "Traceback" in log.read_text()

    def test_is_not_lost_without_a_folder(self, run, capsys, monkeypatch):
        """
        Where no file can be written, the traceback comes to the terminal.
        """
        monkeypatch.setenv("XDG_STATE_HOME", os.devnull)
        monkeypatch.setattr(tempfile, "gettempdir", lambda: os.devnull)

        assert run(raises(KeyError("x"))) == 70
        assert "Traceback" in capsys.readouterr().err


class TestInterruption:
    @pytest.mark.parametrize(
        ("number", "status", "word"),
        [
            (signal.SIGINT, 130, "interrupted"),
            (signal.SIGTERM, 143, "terminated"),
            (signal.SIGHUP, 143, "terminated"),
        ],
    )
    def test_cleans_up_and_says_how_to_go_on(self, run, capsys, number, status, word):
        """
        Each signal unwinds the command, whose clean-up is done.
        """
        cleaned = []

        def body():
            try:
                os.kill(os.getpid(), number)
                signal.pause()
            finally:
                cleaned.append(True)

        assert run(body) == status
        assert cleaned == [True]
        assert f"{word}: what is finished is kept" in capsys.readouterr().err

    def test_that_a_library_has_made_its_own_is_one_still(self, run, capsys):
        """
        A module in C that is being imported turns Ctrl-C into an error of the import.
        """

        def body():
            raise ImportError("initialization failed") from KeyboardInterrupt()

        assert run(body) == 130
        assert "interrupted: what is finished is kept" in capsys.readouterr().err

    @pytest.mark.process
    def test_while_it_is_loaded_it_is_quiet(self, tmp_path):
        """
        Ctrl-C before there is anything to clean up ends with the same status, and no traceback.
        """
        (tmp_path / "click.py").write_text("raise KeyboardInterrupt")

        done = subprocess.run(
            [sys.executable, "-c", "import harness.cli"], capture_output=True, check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        )  # fmt: skip

        assert (done.returncode, done.stderr) == (130, b"")

    def test_a_hangup_that_is_ignored_stays_so(self, run):
        """
        What `nohup` starts outlives its terminal.
        """
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            assert run(lambda: os.kill(os.getpid(), signal.SIGHUP)) == 0
        finally:
            signal.signal(signal.SIGHUP, before)

    def test_leaves_the_handler_as_it_was(self, run):
        """
        A program that calls `main` keeps its own way with SIGTERM.
        """
        before = signal.getsignal(signal.SIGTERM)

        run(lambda: None)

        assert signal.getsignal(signal.SIGTERM) is before

    @pytest.mark.process
    def test_reader_that_leaves_is_no_error(self):
        """
        ``harness ... | head`` ends like any other program whose reader has gone.
        """
        reads, writes = os.pipe()
        os.close(reads)

        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "import sys; from harness.cli import main; sys.exit(main(['-h']))",
            ],
            stdout=writes,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

        os.close(writes)
        assert (done.returncode, done.stderr) == (141, "")
