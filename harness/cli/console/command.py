"""
The class of all commands: a bar where one works long, and old names of options answered with new.

A module of commands uses `command` and `group` of here, where click has its own; the commands of a
group are of the class by themselves.
"""

from __future__ import annotations

import shlex

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import click

from click.shell_completion import CompletionItem

from harness.base.errors import SpecError
from harness.cli.console.talk import Waiting

# Old name of an option -> its new names: meant is the first one that the command has.
RENAMED: dict[str, tuple[str, ...]] = {
    "--chrome": ("-o",),
    "--csv": ("-o",),
    "--from": ("--given",),
    "--into": ("-o", "--results-dir"),
    "--junit": ("-o",),
    "--logs": ("--logs-only",),
    "--models": ("--model",),
    "--page": ("-o",),
    "--plot": ("-o",),
    "--profile": ("--tasks",),
    "--set": ("--setting",),
    "--workloads": ("--workload",),
}


class Command(click.Command):
    """A command that knows the old names of its options, and shows that it works."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words of the command; `SpecError` where one is an option's old name."""
        words = [*args]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            names = new_names(self)
            if error.option_name not in names:
                raise
            refuse_old_name(error.option_name, names, ctx, words)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a terminal shows a bar where it says nothing for some seconds."""
        with Waiting(ctx):
            return super().invoke(ctx)


def new_names(command: click.Command) -> dict[str, str]:
    """Old names of the options of *command*, each with the present one."""
    present = set[str]()
    for option in command.params:
        present.update(option.opts)
    names = dict[str, str]()
    for old_name, candidates in RENAMED.items():
        present_candidates = [name for name in candidates if name in present]
        if old_name not in present and present_candidates:
            names[old_name] = present_candidates[0]
    return names


def refuse_old_name(
    old_name: str, names: dict[str, str], context: click.Context, words: Sequence[str]
) -> NoReturn:
    """Name the present name of an option, and the command line with all names as they are now."""
    corrected = list[str]()
    for word in words:
        name, sign, value = word.partition("=")
        new_name = names.get(name, name)
        if sign and new_name != name and not new_name.startswith("--"):
            corrected += (new_name, value)  # a short option would take the sign for its value
        else:
            corrected.append(f"{new_name}{sign}{value}")
    usage = " ".join([context.command_path, *context.command.collect_usage_pieces(context)])
    raise SpecError(
        f"{old_name} is called {names[old_name]} now",
        where=usage,
        fix=f"{context.command_path} {shlex.join(corrected)}",
    )


class Group(click.Group):
    """A group of such commands."""

    command_class = Command


class MeantContext(click.Context):
    """The context of a command that nobody names: it is called as its group is."""

    @property
    def command_path(self) -> str:
        """The words that lead to the command."""
        return self.parent.command_path if self.parent else super().command_path


class FirstByDefault(Group):
    """A group whose first command is meant where a word names none; hidden, it has no name."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command of the group."""
        if cmd.hidden and not self.commands:
            cmd.context_class = MeantContext
        super().add_command(cmd, name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that *args* name, else the first one."""
        if args and args[0] not in self.commands:
            args = [next(iter(self.commands)), *args]
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the names of the commands, and what the first one may begin with."""
        items = super().shell_complete(ctx, incomplete)
        name, first = next(iter(self.commands.items()))
        if incomplete.startswith("-"):
            return [*items, *first.shell_complete(ctx, incomplete)]
        arguments = [option for option in first.params if isinstance(option, click.Argument)]
        with first.make_context(name, [], parent=ctx, resilient_parsing=True) as below:
            found = arguments[0].shell_complete(below, incomplete)
        # A shell that is told to complete files forgets the names it was given.
        return [*items, *(item for item in found if item.type == "plain" or not items)]


def command(name: str, **attributes: Any) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function: ``@command("plan")``."""
    return click.command(name, cls=Command, **attributes)


def group(
    name: str, cls: type[Group] = Group, **attributes: Any
) -> Callable[[Callable[..., Any]], Group]:
    """Make a group of commands of a function: ``@group("cluster")``."""
    return click.group(name, cls=cls, **attributes)
