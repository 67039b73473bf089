"""
Options of all commands: one name for one thing, old names that answer with the new, and their bar.
"""

import io
import json
import sys
import time

from contextlib import contextmanager

import click
import pytest

from harness.cli import COMMANDS, main
from harness.cli.console import talk
from harness.cli.console.command import RENAMED, Command, Group, command, new_names
from harness.cli.console.options import (
    PICTURES,
    json_option,
    model_option,
    outputs_option,
    workload_option,
)
from harness.cli.console.present import present
from harness.cli.console.talk import Waiting
from harness.cli.entry import group


def leaves(name, found):
    """
    The command *found* or, of a group, those below it, each with its name.
    """
    if isinstance(found, click.Group):
        for below in found.commands.values():
            yield from leaves(f"{name} {below.name}", below)
    else:
        yield name, found


def all_commands():
    """
    Every command that does something, by its name.
    """
    for top in COMMANDS:
        yield from leaves(top, group.get_command(None, top))


def run(*words):
    """
    Run a command made for a test; what it is given is its answer.
    """

    @command("try")
    @model_option(help="A model.")
    @workload_option
    @outputs_option("A file.", ".csv", *PICTURES)
    @json_option
    def made(as_json, outputs, **given):
        answer = {**given, "outputs": {ending: str(file) for ending, file in outputs.items()}}
        present(answer, as_json=as_json)

    with made.make_context("harness try", [*words, "--json"]) as context:
        made.invoke(context)


class TestNames:
    def test_a_list_is_given_by_repetition_or_commas(self, capsys):
        """
        Both, and both at once.
        """
        run("--model", "whatif,ernest", "--model", "prophet", "--workload", "sort")

        given = json.loads(capsys.readouterr().out)
        assert given["models"] == ["whatif", "ernest", "prophet"]
        assert given["workload"] == "sort"

    def test_one_workload_is_one(self):
        """
        Where one is wanted two are refused, and not the first of them dropped.
        """
        with pytest.raises(click.BadParameter, match="one at a time, and there are 2: sort, dfsio"):
            run("--workload", "sort,dfsio")

    def test_the_ending_says_what_is_written(self, capsys):
        """
        Several outputs are several files of one option.
        """
        run("-o", "a.csv", "-o", "b.svg")

        assert json.loads(capsys.readouterr().out)["outputs"] == {".csv": "a.csv", ".svg": "b.svg"}

    @pytest.mark.parametrize(
        ("files", "reason"), [(("a.txt",), "ends in '.txt'"), (("a.csv", "b.csv"), "two files")]
    )
    def test_other_endings_are_refused(self, files, reason):
        """
        One that says nothing, and one that two files have.
        """
        words = [word for file in files for word in ("-o", file)]

        with pytest.raises(click.BadParameter, match=reason):
            run(*words)


class TestEveryCommand:
    def test_is_of_one_class(self):
        """
        Old names and the bar are for all commands.
        """
        strays = [name for name, found in all_commands() if not isinstance(found, Command)]
        tops = [group.get_command(None, name) for name in COMMANDS]

        assert strays == []
        assert all(isinstance(top, Command | Group) for top in tops)

    def test_has_json(self):
        """
        Whatever a command does, a program can read its answer.
        """
        lacking = {
            name
            for name, found in all_commands()
            if "as_json" not in {p.name for p in found.params}
        }

        assert lacking == set()

    def test_says_what_each_option_is_for(self):
        """
        No option is without a text.
        """
        silent = [
            f"{name} {option.opts[-1]}"
            for name, found in all_commands()
            for option in found.params
            if isinstance(option, click.Option) and not option.help
        ]

        assert silent == []

    def test_writes_by_one_option(self):
        """
        No command has an old name, and what is not of one meaning has two names.
        """
        options = {}
        for name, found in all_commands():
            for option in found.params:
                for text in option.opts:
                    options.setdefault(text, set()).add(name)

        gone = set(RENAMED) - {"--set", "--from", "--logs", "--models"}
        assert gone & set(options) == set()
        assert options["--from"] == {"predict", "check", "hardware ladder"}
        assert options["--models"] == {"predict"}
        assert options["--models"] < options["--model"]
        assert options["--setting"] == {"ask", "tune job"}
        assert not options["--setting"] & options["--set"]


class TestOldNames:
    @pytest.mark.parametrize(
        ("words", "old", "corrected"),
        [
            (
                ["ask", "R", "--models", "whatif,ernest"],
                "--models is called --model",
                "harness ask R --model whatif,ernest",
            ),
            (
                ["ask", "--models=a b", "R", "--json"],
                "--models is called --model",
                "harness ask '--model=a b' R --json",
            ),
            (
                ["ask", "R", "--csv", "a.csv", "--set", "input=10 GiB"],
                "--csv is called -o",
                "harness ask R -o a.csv --setting 'input=10 GiB'",
            ),
            (
                ["tune", "R", "--set", "workers=2"],
                "--set is called --setting",
                "harness tune job R --setting workers=2",
            ),
            (
                ["hardware", "fit", "R", "--workloads", "sort", "--logs", "-o", "a.json"],
                "--workloads is called --workload",
                "harness hardware fit R --workload sort --logs-only -o a.json",
            ),
            (
                ["reproduce", "R", "--from", "profiles"],
                "--from is called --given",
                "harness reproduce R --given profiles",
            ),
            (["report", "R", "--into", "D"], "--into is called -o", "harness report R -o D"),
            (
                ["unpack", "A", "--into", "D"],
                "--into is called --results-dir",
                "harness unpack A --results-dir D",
            ),
            (
                ["ask", "R", "--plot=/x/a b.svg", "--set=workers=2"],
                "--plot is called -o",
                "harness ask R -o '/x/a b.svg' --setting=workers=2",
            ),
            (["export", "R", "--into=D"], "--into is called -o", "harness export R -o D"),
            (["trace", "T", "--chrome", "a.json"], "--chrome is called -o", "harness trace show T"),
        ],
        ids=lambda value: value if isinstance(value, str) else " ".join(value[:2]),
    )
    def test_answer_with_the_new_one(self, capsys, words, old, corrected):
        """
        What it is called now, and the whole command line as it has to be; status 2.
        """
        status = main(words)

        what, where, fix = capsys.readouterr().err.splitlines()
        assert status == 2
        assert what == f"error: {old} now"
        assert where.startswith("  at:  harness ")
        assert fix.startswith(f"  fix: {corrected}")

    def test_are_those_of_options_that_are_there(self, capsys):
        """
        A command without the new one knows nothing of the old one.
        """
        assert main(["plan", "FILE", "--models", "whatif"]) == 2
        assert "no such option '--models'" in capsys.readouterr().err

    @pytest.mark.parametrize("old_name", RENAMED)
    def test_each_has_a_successor(self, old_name):
        """
        At least one command knows the old name.
        """
        assert any(old_name in new_names(found) for _, found in all_commands())


class Terminal(io.StringIO):
    """
    A stream that says it is a terminal.
    """

    def isatty(self):
        return True


class TestWaiting:
    @pytest.fixture
    def waits(self, monkeypatch):
        """
        A function that makes a command wait on a terminal, for an instant; it gives both.
        """

        @contextmanager
        def waits():
            screen = Terminal()
            monkeypatch.setattr(talk, "PATIENCE_S", 0.01)
            monkeypatch.setenv("TERM", "xterm")
            monkeypatch.setattr(sys, "stderr", screen)
            with click.Context(command("try")(lambda: None), info_name="try") as context:
                waiting = Waiting(context)
                with waiting:
                    yield waiting, screen

        return waits

    def is_shown(self, waiting):
        """
        Whether the bar comes within seconds.
        """
        end_s = time.monotonic() + 10
        while waiting._bar is None and time.monotonic() < end_s:
            time.sleep(0.01)
        return waiting._bar is not None

    def test_shows_that_a_silent_command_works(self, waits):
        """
        There is a bar after a while, with the name of the command, and none after it.
        """
        with waits() as (waiting, screen):
            assert self.is_shown(waiting)

        assert waiting._bar is None
        assert "try" in screen.getvalue()

    def test_makes_room_for_what_is_printed(self, waits):
        """
        The bar is taken away, and comes again.
        """
        with waits() as (waiting, screen):
            assert self.is_shown(waiting)
            first_bar = waiting._bar
            talk.show_text("a note")

            assert waiting._bar is not first_bar
            assert self.is_shown(waiting)

        assert "a note\n" in screen.getvalue()

    def test_gives_way_to_a_bar_that_knows_its_end(self, waits):
        """
        A command that counts its steps shows those, and waits again when they are done.
        """
        with waits() as (waiting, _):
            progress = talk.Progress()
            progress.step(0, 2, None, "")
            assert waiting._timer is None

            progress.step(2, 2, None, "")
            assert self.is_shown(waiting)

    def test_says_nothing_where_nobody_looks(self, monkeypatch, capsys):
        """
        Without a terminal there is no bar, however long it takes.
        """
        monkeypatch.setattr(talk, "PATIENCE_S", 0.0)
        with click.Context(command("try")(lambda: None)) as context, Waiting(context):
            time.sleep(0.05)

        assert capsys.readouterr().err == ""
