"""Every command of the documentation is one that the command line accepts."""

import re
import shlex

from pathlib import Path

import click
import pytest

from harness.cli.entry import COMMANDS, group

PROJECT = Path(__file__).parents[2]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
HARNESS = r"(?:\.venv/bin/)?harness"


def commands(page):
    """
    What a reader of *page* would type: lines of shell blocks, and words in backticks.
    """
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")  # a command may go on below
    blocks = re.findall(r"```(?:sh|console)\n(.*?)```", text, re.DOTALL)
    lines = [
        line
        for block in blocks
        for line in re.findall(rf"^(?:\$ )?{HARNESS} (.*)", block, re.MULTILINE)
    ]
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return [*lines, *re.findall(rf"`{HARNESS} ([^`]*)`", prose)]


def typed():
    """
    Every command once, less those that show a form: options in brackets, dots for more.
    """
    found = {c for page in PAGES for c in commands(page) if not re.search(r"[\[|]|\.\.\.", c)}
    return sorted(found)


def parse(words, command=group, parent=None, name="harness"):
    """
    Read the words as the command line does, down to the last command; run nothing.
    """
    context = command.make_context(name, list(words), parent)
    if isinstance(command, click.Group):
        name, below, rest = command.resolve_command(context, context._protected_args + context.args)
        parse(rest, below, context, name)


@pytest.mark.parametrize("command", typed())
def test_can_be_typed(command):
    """
    The command is there, and so are its options; its values are of the right kind.
    """
    name, *words = shlex.split(command.partition("#")[0])
    if name not in ("COMMAND", "--help"):
        assert name in COMMANDS
        if words and words[-1] != "--help":  # else a command is only spoken of
            parse([name, *words])


@pytest.mark.parametrize("command", typed())
def test_names_files_that_are_there(command):
    """
    But the one that the guide has its reader make.
    """
    named = re.findall(r"\S+\.(?:yaml|json)\b", command.replace("experiments/mine.yaml", ""))

    assert [name for name in named if "/" in name and not list(PROJECT.glob(name))] == []


def test_finds_the_commands():
    """
    The guide and the page of all commands have dozens.
    """
    assert len(typed()) > 30
