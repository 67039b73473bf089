"""The page of all commands."""

from pathlib import Path

from harness.cli.entry import COMMANDS
from harness.cli.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


def test_page_is_what_the_commands_say():
    """
    After a change of a command: ``python -m harness.cli.reference > docs/commands.md``.
    """
    assert PAGE.read_text() == reference()


def test_every_command_has_an_example():
    """
    Each section of a command ends with lines that can be typed.
    """
    sections = {s.partition("\n")[0]: s for s in reference().split("\n## ")[1:]}

    assert set(sections) == {f"harness {name}" for name in COMMANDS}
    assert all("```sh\nharness " in section for section in sections.values())
