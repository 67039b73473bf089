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
    return sorted(
        {c for page in PAGES for c in commands(page) if not re.search(r"[\[|]|\.\.\.", c)}
    )


def parse(words, command=group, parent=None, name="harness"):
    """
    Read the words as the command line does, down to the last command; run nothing.
    """
    context = command.make_context(name, list(words), parent)
    if isinstance(command, click.Group):
        name, below, rest = command.resolve_command(context, context._protected_args + context.args)
        parse(rest, below, context, name)


def refusal(command):
    """
    What the command line has against *command*; `None` where it is accepted.
    """
    name, *words = shlex.split(command.partition("#")[0])
    if name in ("COMMAND", "--help"):
        return None
    if name not in COMMANDS:
        return f"there is no command {name}"
    if words and words[-1] != "--help":  # else a command is only spoken of
        try:
            parse([name, *words])
        except click.ClickException as error:
            return error.format_message()
    return None


def test_every_command_of_the_pages_can_be_typed():
    """
    The command is there, and so are its options; its values are of the right kind.
    """
    refused = {command: refusal(command) for command in typed()}

    assert {command: why for command, why in refused.items() if why} == {}
    assert len(refused) > 30  # the guide and the reference have dozens


@pytest.mark.parametrize("name", ["guide", "tuning", "publish"])
def test_pages_say_where_ids_of_runs_come_from(name):
    """
    Before the first of their examples.
    """
    text = (PROJECT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    head = text.partition("```")[0]

    assert "`harness runs` lists yours" in head
    assert re.search(r"\d{8}T\d{4}", text.removeprefix(head))


def test_every_file_of_a_command_is_there():
    """
    But the one that the guide has its reader make.
    """
    absent = [
        f"{command}: {name}"
        for command in typed()
        for name in re.findall(r"\S+\.(?:yaml|json)\b", command)
        if "/" in name and name != "experiments/mine.yaml" and not list(PROJECT.glob(name))
    ]

    assert absent == []
