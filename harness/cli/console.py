"""
How commands speak: data on stdout, talk on stderr, nothing untrusted to the terminal.

Colours follow ``NO_COLOR``, ``FORCE_COLOR`` and ``TERM`` (rich reads them); rich is imported when
it is needed, because it costs more than a whole ``harness --help``.
"""

from __future__ import annotations

import json
import re
import sys
import time

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from harness.units import format_duration

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

SCHEMA_VERSION = 1
_LONG = 32  # characters of a cell that may be wrapped
_ENDLESS = 10_000  # columns of what is no terminal
QUIET_S = 30.0  # between two lines of progress where no terminal shows a bar

# Escape sequences as terminals read them: CSI, strings (OSC, DCS, APC, PM, SOS), and the rest.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]?"
)
# C0 without tab and newline, DEL, C1, marks of the direction of text, lone surrogates.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_NUMBER = re.compile(r"\s*[-+]?\d[\d.,]*(?:\s*\S{1,5})?\s*")


def clean(text: str) -> str:
    r"""
    Take out of *text* what a terminal would obey: escape sequences and control characters.

    >>> clean("a \x1b[31mred\x1b[0m\r word\x07")
    'a red word'
    """
    return _CONTROL.sub("", _ESCAPE.sub("", text))


def talk(text: str = "") -> None:
    """Say *text* on stderr, cleaned."""
    click.echo(clean(text), err=True)


def print_json(document: Any) -> None:
    """
    Print *document* on stdout; a mapping gets ``schema_version`` first.

    Records (pydantic) and paths may stand anywhere in it.  Beyond ASCII all is escaped, so that
    nothing in it can speak to the terminal.
    """
    if isinstance(document, Mapping):
        document = {"schema_version": SCHEMA_VERSION, **document}
    click.echo(json.dumps(document, indent=2, allow_nan=False, default=_plain))


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "") -> None:
    """
    Print a table for people on stdout, cleaned; columns of numbers stand to the right.

    Only long texts are wrapped, and on a terminal only: a name in pieces cannot be copied.
    """
    from rich import box
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    cells = [[clean(str(cell)) for cell in row] for row in rows]
    # Text throughout: rich reads plain strings as markup, and these may come from a log.
    heading = Text(clean(title)) if title else None
    drawn = Table(title=heading, title_justify="left", box=box.SIMPLE)
    for index, column in enumerate(columns):
        numeric = bool(cells) and all(_NUMBER.fullmatch(row[index]) for row in cells)
        long = any(len(row[index]) > _LONG for row in cells)
        drawn.add_column(
            Text(clean(column)),
            justify="right" if numeric else "left",
            overflow="fold",
            no_wrap=not long,
        )
    for row in cells:
        drawn.add_row(*(Text(cell) for cell in row))
    console = Console(file=sys.stdout)
    least = Measurement.get(console, console.options.update(width=_ENDLESS), drawn).minimum
    least += 2 * len(columns)  # what rich leaves out of its measure
    console.width = max(console.width, least) if console.is_terminal else _ENDLESS
    with console.capture() as text:  # rich itself would end the process where a pipe breaks
        console.print(drawn)
    sys.stdout.write(text.get())


class Progress:
    """
    How far something is: a bar on a terminal, else a plain line at most every 30 s.

    Implements `harness.run.Console`.  A bar ends with the last step, or with the command.
    """

    def __init__(
        self, what: str = "trials", *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Count *what*."""
        self._what, self._clock = what, clock
        self._told: float | None = None  # when the last step was
        self._bar: Bar | None = None

    def say(self, text: str) -> None:
        """Tell one line; a bar stays below it."""
        talk(text)

    def step(self, done: int, total: int, left_s: float | None, text: str) -> None:
        """
        Tell that *done* of *total* are done, the seconds likely left, and what *text* is under way.

        The first and the last step are always told.
        """
        left = "" if left_s is None or done >= total else f"{format_duration(left_s)} left"
        if self._told is None and sys.stderr.isatty():
            self._bar = _open_bar(self._what)
        if self._bar is not None:
            task = self._bar.task_ids[0]
            self._bar.update(task, completed=done, total=total, left=left, note=clean(text))
        elif self._told is None or done >= total or self._clock() - self._told >= QUIET_S:
            parts = (f"{done} of {total} {self._what}", left, text)
            talk(", ".join(part for part in parts if part))
        else:
            return
        self._told = self._clock()
        if done >= total:
            self.close()

    def close(self) -> None:
        """Leave the bar as it is, and end its line."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _open_bar(what: str) -> Bar | None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if console.is_dumb_terminal:
        return None
    fields = [TextColumn(f"{{task.fields[{name}]}}", markup=False) for name in ("left", "note")]
    bar = Bar(
        TextColumn(what, markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        *fields,
        console=console,
    )
    bar.add_task(what, total=None, left="", note="")
    bar.start()
    # A bar must end before the shell's prompt comes back, whatever ends the command.
    if context := click.get_current_context(silent=True):
        context.call_on_close(bar.stop)
    return bar
