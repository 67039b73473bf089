"""
The entry: finds the command, runs it, and turns its end into an exit status.

Every error becomes up to three lines on stderr: what is wrong, where, and what to do.
"""

from __future__ import annotations

import errno
import os
import platform
import re
import signal
import sys
import time
import traceback

from collections.abc import Sequence
from contextlib import suppress
from inspect import cleandoc
from io import TextIOWrapper
from types import FrameType
from typing import NoReturn

import click

from click.shell_completion import shell_complete

from harness.base.errors import HarnessError, MachineError, SpecError
from harness.base.hadoop.secrets import SECRETS
from harness.base.installed import by_form
from harness.base.text import nearest_name
from harness.base.version import __version__
from harness.cli.commands_table import COMMANDS, GROUPS
from harness.cli.console.talk import BEGAN_S, show_text

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


class Terminated(KeyboardInterrupt):
    """SIGTERM or the end of the terminal: clean up as after Ctrl-C, end with status 143."""


class Commands(click.Group):
    """The commands of the table, each imported when it is wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names: those that are needed first, then the others by their use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of *cmd_name*; `None` when there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        return COMMANDS[cmd_name].load()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands below their headings, from the table: click would import them all."""
        width = max(map(len, COMMANDS))  # of all, so that the lines of each heading are aligned
        for heading, rows in GROUPS.items():
            lines = [(f"{name:<{width}}", row.summary) for name, row in rows.items()]
            with formatter.section(heading):
                formatter.write_dl(lines)


@click.group(
    "harness",
    cls=Commands,
    commands=dict.fromkeys(COMMANDS),  # names alone, of which an error offers the nearest
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
    epilog=f"""\b
Example:
    harness all {by_form("experiments/demo.yaml", "FILE")}
    harness COMMAND --help""",
)
@click.version_option(__version__, prog_name="harness", message="%(prog)s %(version)s")
@click.pass_context
def group(context: click.Context) -> None:
    """Says which performance model of Hadoop MapReduce to believe, on the cluster at hand."""
    from harness.cli.commands.steps import profiles_elsewhere

    context.obj = profiles_elsewhere  # by which sessions take profiles to other machines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (that of the process by default), and return the exit status."""
    ends = [signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # nohup has it ignored: so it stays
        ends.append(signal.SIGHUP)
    if sys.stdout is None:  # closed: harness ... >&-
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - till the end
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
    previous = {number: signal.signal(number, _terminate) for number in ends}
    try:
        return _run(arguments)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated


def _run(arguments: Sequence[str] | None) -> int:
    """Invoke the command; every end of it is an exit status."""
    # Not click's own main: where a pipe breaks it ends the process with another status.
    try:
        if instruction := os.environ.get("_HARNESS_COMPLETE"):
            from harness.cli.console import completion  # noqa: F401 - it has our class for bash

            return shell_complete(group, {}, "harness", "_HARNESS_COMPLETE", instruction)
        return _invoke(list(sys.argv[1:] if arguments is None else arguments))
    except HarnessError as error:
        show_text(f"error: {error}")
        return error.exit_status
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.ClickException as error:
        show_text(usage_text(error))
        return 2
    except BrokenPipeError:
        _discard_output()
        return 128 + signal.SIGPIPE
    except (KeyboardInterrupt, click.Abort) as interrupt:
        return _interrupted_status(interrupt)
    except Exception as error:  # noqa: BLE001 - the last resort
        return _failed_status(error)


def _invoke(words: Sequence[str]) -> int:
    """Run the command that *words* name; the status with which it ends, 0 where it gives none."""
    try:
        with group.make_context("harness", [*words]) as context:
            context.meta[BEGAN_S] = time.monotonic()
            status = group.invoke(context)
    except click.exceptions.Exit as end:
        status = end.exit_code
    except SystemExit as end:
        status = end.code
    sys.stdout.flush()
    return status if isinstance(status, int) else 0


def _failed_status(error: Exception) -> int:
    """Show an *error* that no command expects: what the user can fix of it, else a bug of ours."""
    if isinstance(error.__cause__, KeyboardInterrupt):  # some libraries' modules make it theirs
        return _interrupted_status(error.__cause__)
    fixable = system_error(error) if isinstance(error, OSError) else None
    if fixable is None:
        show_text(describe_bug(error))
        return 70
    _discard_output()
    show_text(f"error: {fixable}")
    return fixable.exit_status


def usage_text(error: click.ClickException) -> str:
    """Lay out what is wrong with a command line as every other error: what, where, fix."""

    def lower(text: str) -> str:
        return text[:1].lower() + text[1:]

    message = " ".join(error.format_message().split())
    parts = re.fullmatch(r"(.*?)\.?(?: \(?((?:Did you mean|Choose from).*?)\)?)?", message)
    what, hint = parts.groups() if parts else (message, "")
    context = getattr(error, "ctx", None)
    if isinstance(error, click.FileError):
        fix = "name a file that is not there yet, in a folder that is"
        return str(HarnessError(f"error: {lower(what)}", where=error.ui_filename, fix=fix))
    if context is None:
        return f"error: {lower(what)}"
    usage = " ".join([context.command_path, *context.command.collect_usage_pieces(context)])
    fix = lower(hint or "")
    help_command = f"{context.command_path} --help"
    if choice := re.search(r"'([^']+)' is not one of (.*)", what):
        near = nearest_name(choice[1], re.findall(r"'([^']+)'", choice[2]))
        fix = f"did you mean {near}?" if near else fix
    if isinstance(error, click.MissingParameter) and (lines := example_lines(context.command)):
        fix = lines[0]
    fix = f"{fix} ({help_command} says more)" if fix else help_command
    return str(HarnessError(f"error: {lower(what)}", where=usage, fix=fix))


def example_lines(command: click.Command) -> list[str]:
    """Lines of the example that ends the text of *command*."""
    _, _, example = cleandoc(command.help or "").partition("Example:\n")
    return [line.strip() for line in example.splitlines()]


def system_error(error: OSError) -> HarnessError | None:
    """What the user can fix of an error of the system; `None` where it is a bug of ours."""
    if error.filename is None and error.errno in _UNWRITABLE:
        reason = error.strerror or "the system refuses"
        return MachineError(
            f"standard output cannot be written: {reason.lower()}",
            where="standard output",
            fix="redirect it elsewhere; no measurement is lost",
        )
    if isinstance(error, FileNotFoundError):
        try:
            os.getcwd()  # noqa: PTH109 - asks the system, as whatever failed did
        except FileNotFoundError:
            return SpecError(
                "the folder that this shell is in has been removed",
                where="current folder",
                fix="cd to one that exists, and repeat the command",
            )
    return None


def describe_bug(error: Exception) -> str:
    """Write the traceback of *error* to a file of its own, and name it in two lines."""
    what = f"error: {type(error).__name__}: {error} (a bug in harness {__version__})"
    machine = platform.uname()  # not platform.platform(): it starts a process
    system = f"{machine.system} {machine.release} {machine.machine}"
    report = (
        f"harness {__version__}, Python {platform.python_version()}, {system}\n"
        f"arguments: {sys.argv[1:]}\n{''.join(traceback.format_exception(error))}"
    )
    try:
        from harness.clusters.state import state_folder

        file_name = time.strftime(f"crash-%Y%m%dT%H%M%SZ-{os.getpid()}.log", time.gmtime())
        path = state_folder() / file_name
        path.write_text(SECRETS.clean(report), encoding="utf-8", errors="backslashreplace")
    except (OSError, HarnessError):  # No place to keep it: better on the terminal than lost.
        return f"{report}\n{what}"
    return f"{what}\n  fix: report it, with {path}"


def _interrupted_status(interrupt: BaseException) -> int:
    is_terminated = isinstance(interrupt, Terminated)
    what = "terminated" if is_terminated else "interrupted"
    with suppress(OSError):  # the terminal may have gone
        show_text(f"{what}: what is finished is kept; the same command resumes from there")
    return 128 + (signal.SIGTERM if is_terminated else signal.SIGINT)


def _discard_output() -> None:
    # Nobody reads it.  Python would still flush what is left at exit, and complain.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
