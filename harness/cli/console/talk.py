"""
What commands print: data on stdout, messages on stderr, nothing untrusted to the terminal.

Commands hand their answers to `harness.cli.console.present`, which prints them by what is here.

Colours follow ``NO_COLOR``, ``FORCE_COLOR`` and ``TERM`` (rich reads them); rich is imported when
it is needed, because it costs more than a whole ``harness --help``.
"""

from __future__ import annotations

import json
import math
import re
import sys
import threading
import time

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from harness.base.hadoop.secrets import SECRETS
from harness.base.text import printable
from harness.base.units import format_duration

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress as Bar

SCHEMA_VERSION = 1
_LONG = 32  # characters of a cell that may be wrapped
_ENDLESS = 10_000  # columns where the output is not a terminal
QUIET_S = 30.0  # between two lines of progress where no terminal shows a bar
PATIENCE_S = 2.0  # without a word, until a terminal shows that a command works
_WAITING = "harness.waiting"  # of a command's context: how its bar is found

_NUMBER = re.compile(r"\s*[-+]?\d[\d.,]*(?:\s*\S{1,5})?\s*")


def show_text(text: str) -> None:
    """Print *text* on stderr, made safe for a terminal, and without secrets."""
    interrupt_waiting()
    click.echo(printable(SECRETS.clean(text)), err=True)


def print_json(document: Any) -> None:
    """
    Print *document* on stdout; a mapping gets ``schema_version`` first.

    Records (pydantic, dataclasses) and paths may stand anywhere in it.  Beyond ASCII all is
    escaped, so nothing in it can control the terminal.
    """
    from pydantic_core import to_jsonable_python

    interrupt_waiting()
    if isinstance(document, Mapping):
        document = {"schema_version": SCHEMA_VERSION, **document}
    click.echo(json.dumps(document, indent=2, allow_nan=False, default=to_jsonable_python))


def show_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = ""
) -> None:
    """
    Print a table for people on stdout; columns of numbers stand to the right.

    Only long texts are wrapped, and on a terminal only: a name in pieces cannot be copied.
    """
    from rich import box
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    texts = [[*map(printable, row)] for row in rows]
    interrupt_waiting()
    # Text throughout: rich reads plain strings as markup, and these may come from a log.
    heading = Text(printable(title)) if title else None
    drawn = Table(title=heading, title_justify="left", box=box.SIMPLE)
    for index, column in enumerate(columns):
        cells = [row[index] for row in texts]
        drawn.add_column(
            Text(printable(column)),
            justify="right" if _are_numbers(cells) else "left",
            overflow="fold",
            no_wrap=max(map(len, cells), default=0) <= _LONG,
        )
    for row in texts:
        drawn.add_row(*(Text(cell) for cell in row))
    console = Console(file=sys.stdout)
    least = Measurement.get(console, console.options.update(width=_ENDLESS), drawn).minimum
    least += 2 * len(columns)  # what rich leaves out of its measure
    console.width = max(console.width, least) if console.is_terminal else _ENDLESS
    with console.capture() as capture:  # rich itself would end the process where a pipe breaks
        console.print(drawn)
    sys.stdout.write(capture.get())


def _are_numbers(cells: Sequence[str]) -> bool:
    return bool(cells) and all(map(_NUMBER.fullmatch, cells))


def print_text(text: object) -> None:
    """Print *text* on stdout as it is."""
    interrupt_waiting()
    click.echo(text)


class Waiting:
    """
    A bar without a length for a command that says nothing for 2 s, on a terminal alone.

    Whatever is printed ends it first; it begins again where that was not the end.
    """

    def __init__(self, context: click.Context) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._bar: Bar | None = None

    def __enter__(self) -> None:
        """Wait for the command's silence."""
        if sys.stderr.isatty():
            self._context.meta[_WAITING] = self
            self._begin()

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """End the bar, whatever ended the command."""
        self._context.meta.pop(_WAITING, None)
        self.end()

    def interrupt(self) -> None:
        """Take the bar away for what is printed now, and wait anew."""
        if self._timer is not None:
            self.resume()

    def end(self) -> None:
        """Take the bar away for good."""
        self._stop()
        self._timer = None

    def resume(self) -> None:
        """Wait anew, as something else that showed the command's work has ended."""
        self._stop()
        self._begin()

    def _begin(self) -> None:
        self._timer = threading.Timer(PATIENCE_S, self._open)
        self._timer.daemon = True
        self._timer.start()

    def _stop(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._bar is not None:
                self._bar.stop()
                self._bar = None

    def _open(self) -> None:
        """Show the bar; in the timer's thread."""
        from rich.console import Console
        from rich.progress import BarColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        console = Console(stderr=True)
        with self._lock:
            timer = self._timer
            if timer is not threading.current_thread() or console.is_dumb_terminal:
                return
            if timer.finished.is_set():  # cancelled in the meantime
                return
            columns = ("{task.description}", BarColumn(bar_width=24), TimeElapsedColumn())
            # What is printed on stdout is data, and not this console's.
            self._bar = Bar(*columns, console=console, transient=True, redirect_stdout=False)
            self._bar.add_task(self._context.command_path, total=None)
            self._bar.start()


def _waiting() -> Waiting | None:
    """The bar of the command that runs, if it has one."""
    context = click.get_current_context(silent=True)
    waiting: Waiting | None = None if context is None else context.meta.get(_WAITING)
    return waiting


def interrupt_waiting() -> None:
    """Take away the bar of a silent command, as something is printed."""
    if waiting := _waiting():
        waiting.interrupt()


class Progress:
    """
    How far something is: a bar on a terminal, else a plain line at most every 30 s.

    Implements `harness.core.run.Console`.  A bar ends with the last step, or with the command.
    """

    def __init__(self, what: str = "trials") -> None:
        self._what = what
        self._last_line_s: float | None = None  # when the last step was shown
        self._bar: Bar | None = None

    def say(self, text: str) -> None:
        """Show one line; a bar stays below it."""
        show_text(text)

    def step(self, done: int, total: int, left_s: float | None, text: str) -> None:
        """Show *done* of *total*, the seconds left and what is under way; first and last always."""
        is_over = done >= total
        left = "" if left_s is None or is_over else f"{format_duration(left_s)} left"
        if self._last_line_s is None and sys.stderr.isatty():
            self._bar = self._open_bar()
        waited_s = math.inf if self._last_line_s is None else time.monotonic() - self._last_line_s
        if self._bar is not None:
            task = self._bar.task_ids[0]
            self._bar.update(task, completed=done, total=total, left=left, note=printable(text))
        elif is_over or waited_s >= QUIET_S:
            parts = (f"{done} of {total} {self._what}", left, text)
            show_text(", ".join(filter(None, parts)))
        else:
            return
        self._last_line_s = time.monotonic()
        if is_over:
            self.close()

    def note(self, text: str) -> None:
        """Show in the bar what is going on; nothing where there is no terminal."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], note=printable(text))

    def close(self) -> None:
        """Leave the bar as it is, and end its line."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
            if waiting := _waiting():
                waiting.resume()

    def _open_bar(self) -> Bar | None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar

        if waiting := _waiting():
            waiting.end()
        console = Console(stderr=True)
        if console.is_dumb_terminal:
            return None
        note = TextColumn("{task.fields[note]}", markup=False)  # a line of a client's log
        parts = (BarColumn(bar_width=24), MofNCompleteColumn(), "{task.fields[left]}", note)
        bar = Bar(self._what, *parts, console=console)
        bar.add_task(self._what, total=None, left="", note="")
        bar.start()
        # A bar must end before the shell's prompt comes back, whatever ends the command.
        if context := click.get_current_context(silent=True):
            context.call_on_close(bar.stop)
        return bar
