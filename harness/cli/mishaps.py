"""What a command line that is wrong, or a place that takes no output, looks like to the user."""

from __future__ import annotations

import errno
import inspect
import os
import re

import click

from harness.errors import HarnessError, MachineError, SpecError

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def usage_text(error: click.ClickException) -> str:
    """Lay out what is wrong with a command line as every other error: what, where, fix."""
    said = " ".join(error.format_message().split())
    what, hint = re.fullmatch(r"(.*?)\.?(?: ((?:Did you mean|Choose from).*))?", said).groups()  # type: ignore[union-attr]
    context = getattr(error, "ctx", None)
    if context is None:
        return f"error: {_lower(what)}"
    usage = " ".join([context.command_path, *context.command.collect_usage_pieces(context)])
    fix, more = _lower(hint or ""), f"{context.command_path} --help"
    if isinstance(error, click.MissingParameter) and (lines := example_lines(context.command)):
        fix = lines[0]
    fix = f"{fix} ({more} says more)" if fix else more
    return str(HarnessError(f"error: {_lower(what)}", where=usage, fix=fix))


def foreseen(error: OSError) -> HarnessError | None:
    """What the user can mend of an error of the system; `None` where it is a bug of ours."""
    if error.filename is None and error.errno in _UNWRITABLE:
        reason = error.strerror or "the system refuses"
        return MachineError(
            f"standard output cannot be written: {reason.lower()}",
            where="standard output",
            fix="write it to another place; what was measured is kept",
        )
    if isinstance(error, FileNotFoundError) and not _has_folder():
        return SpecError(
            "the folder that this shell is in has been removed",
            where="current folder",
            fix="cd to one that exists, and type the command again",
        )
    return None


def example_lines(command: click.Command) -> list[str]:
    """Lines of the example that ends the help of *command*."""
    _, _, example = inspect.cleandoc(command.epilog or "").partition("Example:\n")
    return [line.strip() for line in example.splitlines()]


def _has_folder() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - asks the system, as whatever failed did
    except FileNotFoundError:
        return False
    return True


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
