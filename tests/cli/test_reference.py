"""The page of all commands."""

import runpy

from pathlib import Path

from harness.cli.entry import COMMANDS

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs" / "commands.md"
reference = runpy.run_path(str(PROJECT / "scripts" / "commands"))["reference"]


def test_page_is_what_the_commands_say():
    """
    After a change of a command: ``.venv/bin/python scripts/commands > docs/commands.md``.
    """
    assert PAGE.read_text() == reference()


def test_every_command_has_an_example():
    """
    Each section of a command ends with lines that can be typed.
    """
    sections = {s.partition("\n")[0]: s for s in reference().split("\n## ")[1:]}

    assert set(sections) == {f"harness {name}" for name in COMMANDS}
    assert all("```sh\nharness " in section for section in sections.values())
