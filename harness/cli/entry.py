"""
The entry: finds the command, runs it, and makes its end an exit status.

A module of its own, because the modules `all` and `list` become attributes of the package and
would hide the builtins there.
"""

from __future__ import annotations

import os
import signal
import sys

from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from inspect import cleandoc
from io import TextIOWrapper
from types import FrameType
from typing import NoReturn

import click

from click.shell_completion import shell_complete

from harness import __version__
from harness.errors import HarnessError

# Name -> module and the line that `harness --help` shows: listing them imports none of them.
COMMANDS: dict[str, tuple[str, str]] = {
    "doctor": ("harness.cli.doctor", "Say what this machine can do, and what cures its lacks."),
    "all": ("harness.cli.all", "Run an experiment from its file to its report."),
    "plan": ("harness.cli.plan", "Show the trials of an experiment, and how long they take."),
    "run": ("harness.cli.run", "Measure the trials that are not done yet."),
    "collect": ("harness.cli.collect", "Make traces from the raw logs of trials."),
    "profile": ("harness.cli.profile", "Fit statistics and costs to the profiling trials."),
    "predict": ("harness.cli.predict", "Predict every held-out cell, and seal the predictions."),
    "score": ("harness.cli.score", "Compare sealed predictions with measurements."),
    "report": ("harness.cli.report", "Write the report of a run."),
    "trace": ("harness.cli.trace", "Show what happened inside the tasks of a trial."),
    "vet": ("harness.cli.vet", "Measure the overhead of finished tasks."),
    "cluster": ("harness.cli.cluster", "Start, look at and stop a cluster by hand."),
    "trust": ("harness.cli.trust", "Pin the SSH key of a host by its fingerprint."),
    "vectors": ("harness.cli.vectors", "Check the models against their published test vectors."),
    "net": ("harness.cli.net", "Print the Petri net of SPN-GC, as a picture or for other tools."),
    "list": ("harness.cli.list", "List workloads, models, providers, metrics or reports."),
}

BROKEN_PIPE = 128 + signal.SIGPIPE
INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM


class Terminated(KeyboardInterrupt):
    """SIGTERM or the end of the terminal: clean up as after Ctrl-C, end with status 143."""


class Commands(click.Group):
    """The commands of `COMMANDS`, each imported when it is wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order in which an experiment needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of *cmd_name*; None when there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        _end_with_example(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that *args* begin with; the error offers the nearest name."""
        if self.get_command(ctx, args[0]) is None and (near := _nearest(args[0])):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the dictionary, where click would import them all."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    known = {**dict.fromkeys(COMMANDS, ""), "help": "--", "version": "--"}
    return next((known[near] + near for near in get_close_matches(name, known, cutoff=0.7)), "")


def _end_with_example(command: click.Command) -> None:
    """Move the example, which stands in the docstring, behind the options: it ends the help."""
    text, found, example = cleandoc(command.help or "").partition("\b\nExample:\n")
    if found:
        command.help, command.epilog = text.rstrip(), f"{found}{example}"
    for below in getattr(command, "commands", {}).values():
        _end_with_example(below)


@click.group(
    "harness",
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Example:
    harness all experiments/demo.yaml
    harness COMMAND --help""",
)
@click.version_option(__version__, prog_name="harness", message="%(prog)s %(version)s")
def group() -> None:
    """Says which performance model of Hadoop MapReduce to believe, on the cluster at hand."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (that of the process by default), and answer the exit status."""
    ends = [signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # nohup has it ignored: so it stays
        ends.append(signal.SIGHUP)
    _prepare_output()
    before = {number: signal.signal(number, _terminate) for number in ends}
    try:
        status = _run(arguments)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status


def _prepare_output() -> None:
    """See to it that there is an output, and that no character is one too many for it."""
    if sys.stdout is None:  # closed: harness ... >&-
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - till the end
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated


def _run(arguments: Sequence[str] | None) -> int:
    try:
        return _invoke(arguments)
    except HarnessError as error:
        return _say(f"error: {error}", error.exit_status)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.ClickException as error:
        from harness.cli.mishaps import usage_text

        return _say(usage_text(error), 2)
    except BrokenPipeError:
        return _leave_quietly()
    except (KeyboardInterrupt, click.Abort) as stop:
        return _interrupted(stop)
    except OSError as error:
        return _refused(error)
    except Exception as error:  # noqa: BLE001 - the last resort
        if isinstance(error.__cause__, KeyboardInterrupt):  # some libraries' modules make it theirs
            return _interrupted(error.__cause__)
        return _bug(error)


def _refused(error: OSError) -> int:
    """The system refused something: often the user can mend it."""
    from harness.cli.mishaps import foreseen

    known = foreseen(error)
    if known is None:
        return _bug(error)
    _drop_output()
    return _say(f"error: {known}", known.exit_status)


def _bug(error: Exception) -> int:
    """Keep the traceback in a file."""
    from harness.cli.crash import describe

    return _say(describe(error), 70)


def _invoke(arguments: Sequence[str] | None) -> int:
    # Not click's own main: where a pipe breaks it ends the process, with the status of a gate.
    if instruction := os.environ.get("_HARNESS_COMPLETE"):
        return shell_complete(group, {}, "harness", "_HARNESS_COMPLETE", instruction)
    try:
        with group.make_context(
            "harness", list(sys.argv[1:] if arguments is None else arguments)
        ) as context:
            status = group.invoke(context)
    except click.exceptions.Exit as end:
        status = end.exit_code
    except SystemExit as end:
        status = end.code
    sys.stdout.flush()
    return status if isinstance(status, int) else 0


def _interrupted(stop: BaseException) -> int:
    terminated = isinstance(stop, Terminated)
    what = "terminated" if terminated else "interrupted"
    note = f"{what}: what is finished is kept; the same command goes on from there"
    status = TERMINATED if terminated else INTERRUPTED
    try:
        return _say(note, status)
    except OSError:  # the terminal has gone
        return status


def _leave_quietly() -> int:
    _drop_output()
    return BROKEN_PIPE


def _drop_output() -> None:
    # Nobody takes it.  Python would still flush what is left at exit, and complain.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(text: str, status: int) -> int:
    from harness.cli.console import talk

    talk(text)
    return status
