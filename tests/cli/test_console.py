"""
Tests for `harness.cli.console.talk`: what reaches a terminal, a pipe and a program.
"""

import io
import json
import sys
import time
import unicodedata

from pathlib import Path

import pytest

from harness.base.records.trial import WorkloadSpec
from harness.cli.console.talk import Progress, TimeLeft, print_json, show_table, show_text

ESCAPES = [
    "\x1b[31m",  # a colour
    "\x1b[2J\x1b[1;1H",  # clear the screen, go home
    "\x1b]0;title\x07",  # the window's title
    "\x1b]8;;http://host/\x1b\\",  # a link
    "\x1bP+q544e\x1b\\",  # a question to the terminal
    "\x1bc",  # reset
    "\x9b31m",  # a colour, in one byte
    "\x9d0;title\x9c",
    "\r",
    "\x08\x07\x7f",
    "\u202e",  # what follows reads backwards
]


@pytest.mark.parametrize("escape", ESCAPES, ids=ascii)
def test_what_terminals_obey_is_written_out(escape, capsys):
    """
    What stands before and behind stays; of control characters only newlines and tabs are left.
    """
    show_text(f"before {escape}behind")

    text = capsys.readouterr().err
    assert (text[:7], text[-7:]) == ("before ", "behind\n")
    assert {c for c in text if unicodedata.category(c)[0] == "C"} <= {"\n", "\t"}


def test_messages_go_to_stderr(capsys):
    """
    Stdout belongs to the data.
    """
    show_text("three \x1b[1mworkers\x1b[0m")

    assert capsys.readouterr() == ("", "three \\x1b[1mworkers\\x1b[0m\n")


class TestJson:
    def test_has_a_schema_version(self, capsys):
        """
        Programs can tell what they read.
        """
        print_json({"estimate_s": 2.5})

        assert json.loads(capsys.readouterr().out) == {"schema_version": 1, "estimate_s": 2.5}

    def test_list_stays_a_list(self, capsys):
        """
        A list of objects is printed as it is.
        """
        print_json([{"name": "whatif"}])

        assert json.loads(capsys.readouterr().out) == [{"name": "whatif"}]

    def test_takes_records_and_paths(self, capsys):
        """
        Records may stand anywhere in a document.
        """
        spec = WorkloadSpec(name="terasort", input_bytes=32)

        print_json({"spec": spec, "path": Path("results")})

        read = json.loads(capsys.readouterr().out)
        assert (read["spec"]["input_bytes"], read["path"]) == (32, "results")

    @pytest.mark.parametrize("value", [float("nan"), object()], ids=["nan", "object"])
    def test_refuses_what_json_cannot_hold(self, value):
        """
        Better no document than one that other programs cannot read.
        """
        with pytest.raises((ValueError, TypeError)):
            print_json({"value": value})

    def test_cannot_speak_to_the_terminal(self, capsys):
        """
        Control characters of every kind are escaped, and read back as they were.
        """
        hostile = "".join(ESCAPES)

        print_json([hostile])

        out = capsys.readouterr().out
        assert out.isascii()
        assert "\x1b" not in out
        assert json.loads(out) == [hostile]


class TestTable:
    def test_shows_every_cell(self, capsys):
        """
        Markup in a cell is text, and an escape sequence is written out.
        """
        show_table(("name", "what"), [("a", "[bold]x[/bold]"), ("b", "\x1b[31mred")])

        out = capsys.readouterr().out
        assert "[bold]x[/bold]" in out
        assert out.split()[-2:] == ["b", "\\x1b[31mred"]

    def test_is_not_cut_in_a_pipe(self, capsys):
        """
        Where no terminal has a width, a row is one line.
        """
        show_table(("long",), [("x" * 500,)])

        assert "x" * 500 in capsys.readouterr().out

    def test_leaves_names_whole_on_a_narrow_terminal(self, monkeypatch):
        """
        Long texts are wrapped; a trial's id in pieces could not be copied.
        """
        screen, text = Terminal(), "a description that is longer than such a terminal is wide"
        monkeypatch.setattr(sys, "stdout", screen)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "40")

        show_table(("trial", "what"), [("e90538512c711538", text)])

        lines = screen.getvalue().splitlines()
        assert any("e90538512c711538" in line for line in lines)
        assert max(len(line) for line in lines if "\x1b" not in line) <= 40

    def test_cuts_no_number(self, monkeypatch):
        """
        Also where a long text beside them is wrapped: half a number is another one.
        """
        screen = Terminal()
        monkeypatch.setattr(sys, "stdout", screen)
        monkeypatch.setenv("COLUMNS", "40")
        interval = "-62.2 to +1258 %"

        show_table(("a", "b", "c"), [(interval, "33.3 ± 13.5", "words " * 30)])

        assert any(
            interval in line and "33.3 ± 13.5" in line for line in screen.getvalue().splitlines()
        )

    def test_is_as_wide_as_its_names(self, monkeypatch):
        """
        Where names alone are wider than the terminal, the terminal breaks the lines.
        """
        screen, names = Terminal(), [f"{letter * 16}" for letter in "abcde"]
        monkeypatch.setattr(sys, "stdout", screen)
        monkeypatch.setenv("COLUMNS", "40")

        show_table(names, [names])

        assert screen.getvalue().splitlines()[-2].split() == names

    def test_aligns_numbers_to_the_right(self, capsys):
        """
        A column of numbers, with or without a unit, can be compared by eye.
        """
        show_table(("model", "error"), [("a", "9.5 %"), ("b", "112.5 %")])

        rows = [line.rstrip() for line in capsys.readouterr().out.splitlines() if "%" in line]
        assert rows[0].index("%") == rows[1].index("%")

    def test_of_nothing_is_its_head(self, capsys):
        """
        No rows are no error.
        """
        show_table(("model", "error"), [])

        assert "model" in capsys.readouterr().out


class Terminal(io.StringIO):
    """
    A stream that says it is a terminal.
    """

    def isatty(self):
        return True


class TestProgress:
    def steps(self, at, monkeypatch):
        """
        Report one step at each moment of *at*, the last being the end.
        """
        progress = Progress()
        for number, moment in enumerate(at, start=1):
            monkeypatch.setattr(time, "monotonic", lambda moment=moment: moment)
            progress.step(number, len(at), 90.0, f"trial {number}")

    def test_is_a_line_where_there_is_no_terminal(self, capsys):
        """
        Done, of how many, the time left, what is under way.
        """
        Progress().step(2, 14, 300.0, "terasort 64 MiB")

        assert capsys.readouterr() == ("", "2 of 14 trials, about 5 min left, terasort 64 MiB\n")

    def test_lines_are_30_s_apart(self, capsys, monkeypatch):
        """
        A log is not flooded; the first and the last step are always told.
        """
        self.steps([0.0, 10.0, 29.0, 31.0, 45.0, 60.0, 61.5, 62.0], monkeypatch)

        reported = [line.split()[0] for line in capsys.readouterr().err.splitlines()]
        assert reported == ["1", "4", "7", "8"]

    def test_is_a_bar_on_a_terminal(self, monkeypatch):
        """
        The bar counts, names what is under way, and leaves the cursor shown at its end.
        """
        screen = Terminal()
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setenv("TERM", "xterm")

        self.steps([0.0, 1.0, 2.0], monkeypatch)

        assert "3/3" in screen.getvalue()
        assert "trial 3" in screen.getvalue()
        assert screen.getvalue().rfind("\x1b[?25h") > screen.getvalue().rfind("\x1b[?25l")

    def test_notes_stand_in_the_bar_alone(self, monkeypatch, capsys):
        """
        What is going on within a step is shown on a terminal, and floods no log.
        """
        progress = Progress()
        progress.step(1, 3, 90.0, "")
        progress.note("terasort 64 MiB: 50 % of 2 maps")
        assert capsys.readouterr().err == "1 of 3 trials, about 90 s left\n"

        screen = Terminal()
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setenv("TERM", "xterm")
        progress = Progress()
        progress.step(1, 3, 90.0, "")
        progress.note("terasort 64 MiB: 50 % of 2 maps")
        progress.close()
        assert "terasort 64 MiB: 50 % of 2 maps" in screen.getvalue()

    def test_dumb_terminal_gets_lines(self, monkeypatch):
        """
        A terminal that cannot move its cursor is no place for a bar.
        """
        screen = Terminal()
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setenv("TERM", "dumb")

        self.steps([0.0, 40.0], monkeypatch)

        assert screen.getvalue().splitlines()[-1] == "2 of 2 trials, trial 2"


class TestTimeLeft:
    def test_runs_down_between_two_steps(self, monkeypatch):
        """
        By what has passed, and at most by one of the steps that are left: that one is late.
        """
        monkeypatch.setattr(time, "monotonic", lambda: 100.0)
        left = TimeLeft(1200.0, 4)
        shown = [str(left)]
        for now_s in (400.0, 1000.0, 9999.0):
            monkeypatch.setattr(time, "monotonic", lambda now_s=now_s: now_s)
            shown.append(str(left))

        assert shown == [
            "about 20 min left",
            "about 15 min left",
            "about 15 min left",
            "about 15 min left",
        ]

    def test_of_the_last_step_never_ends(self, monkeypatch):
        """
        Something is left until it is done.
        """
        monkeypatch.setattr(time, "monotonic", lambda: 100.0)
        left = TimeLeft(60.0, 1)
        monkeypatch.setattr(time, "monotonic", lambda: 500.0)

        assert str(left) == "about 10 s left"
