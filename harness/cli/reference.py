"""
The reference page of all commands, made from the commands themselves.

    python -m harness.cli.reference > docs/commands.md

A test compares the page with what this prints.
"""

from __future__ import annotations

import inspect

from collections.abc import Iterator

import click

from harness.cli.entry import example_lines, group

_HEAD = """\
# Commands

Made by `python -m harness.cli.reference` from the commands themselves: change them, not this page.
What they have in common, exit statuses and environment: [reference](reference.md).
"""


def reference() -> str:
    """Give the whole page."""
    root = group.make_context("harness", [], resilient_parsing=True)
    return "\n".join([_HEAD, *(_section(context) for context in _contexts(root))])


def _contexts(parent: click.Context) -> Iterator[click.Context]:
    """Contexts of the commands below *parent*, each group before its own commands."""
    assert isinstance(parent.command, click.Group)
    for name in parent.command.list_commands(parent):
        command = parent.command.get_command(parent, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=parent)
        yield context
        if isinstance(command, click.Group):
            yield from _contexts(context)


def _section(context: click.Context) -> str:
    command, level = context.command, "##" if context.parent is context.find_root() else "###"
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    text, example = inspect.cleandoc(command.help or ""), "\n".join(example_lines(command))
    parts = [f"{level} {context.command_path}", text.strip(), f"```\n{usage}\n```"]
    # Not its help option: click keeps that from whoever asked for it first.
    records = [parameter.get_help_record(context) for parameter in command.params]
    options = [record for record in records if record is not None and record[1]]
    if options:
        rows = "\n".join(f"| `{_cell(name)}` | {_cell(what)} |" for name, what in options)
        parts.append(f"| option | what |\n|---|---|\n{rows}")
    if example:
        parts.append(f"```sh\n{example}\n```")
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    click.echo(reference(), nl=False)
