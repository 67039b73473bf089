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
from harness.base.text import excerpt, printable
from harness.base.units import about

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress as Bar

SCHEMA_VERSION = 1
_LONG = 32  # characters of a cell that may be wrapped
_ENDLESS = 10_000  # columns where the output is not a terminal
QUIET_S = 30.0  # between two lines of progress where no terminal shows a bar
PATIENCE_S = 2.0  # without a word, until a terminal shows that a command works
BEGAN_S = "harness.began_s"  # of a context: when the command line was read

# Of the whole process, and not of a context: other threads say something, too.
_waitings: list[Waiting] = []  # of the commands that run, the innermost last
_bars: list[Bar] = []  # that are drawn and count steps

_WIDE = 110  # columns of a terminal with room for a long bar
_WIDE_BAR = 24
_NARROW_BAR = 8
_COLUMNS = 40  # of a bar's line: what is counted, how many, the time left, spaces
_LEAST_NOTE = 10

_NUMBER = re.compile(r"\s*[-+]?\d[\d.,]*(?:\s*\S{1,5})?\s*")


def show_text(text: str) -> None:
    """Print *text* on stderr, made safe for a terminal, and without secrets; a bar makes room."""
    safe_text = printable(SECRETS.clean(text))
    interrupt_waiting()
    if not _bars:
        click.echo(safe_text, err=True)
        return
    from rich.text import Text

    # The bar's own console clears its line first; whoever else writes there is glued to it.
    _bars[-1].console.print(Text(safe_text), soft_wrap=True)


def print_json(document: Any) -> None:
    """
    Print *document* on stdout; a mapping gets ``schema_version`` first.

    Records (pydantic, dataclasses) and paths may stand anywhere in it.  Beyond ASCII all is
    escaped, so nothing in it can control the terminal.
    """
    from pydantic_core import to_jsonable_python

    _make_room()
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
    from rich.cells import cell_len
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    texts = [[*map(printable, row)] for row in rows]
    _make_room()
    # Text throughout: rich reads plain strings as markup, and these may come from a log.
    heading = Text(printable(title)) if title else None
    drawn = Table(title=heading, title_justify="left", box=box.SIMPLE)
    for index, column in enumerate(columns):
        cells = [row[index] for row in texts]
        widest = max(map(cell_len, cells), default=0)
        is_whole = widest <= _LONG
        drawn.add_column(
            Text(printable(column)),
            justify="right" if _are_numbers(cells) else "left",
            overflow="fold",
            no_wrap=is_whole,
            # Else rich takes the longest word for enough, and cuts numbers off.
            min_width=max(widest, cell_len(printable(column))) if is_whole else None,
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
    _make_room()
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
            _waitings.append(self)
            began_s = self._context.meta.get(BEGAN_S, time.monotonic())
            # To find and to load the command has taken some of the time.
            self._begin(max(0.0, PATIENCE_S - (time.monotonic() - began_s)))

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """End the bar, whatever ended the command."""
        if self in _waitings:
            _waitings.remove(self)
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
        self._begin(PATIENCE_S)

    def _begin(self, delay_s: float) -> None:
        self._timer = threading.Timer(delay_s, self._open)
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


def interrupt_waiting() -> None:
    """Take away the bar of a silent command, as something is printed."""
    if _waitings:
        _waitings[-1].interrupt()


def _make_room() -> None:
    """Take away what is drawn, for the data of the answer; a bar that counts stays as it is."""
    interrupt_waiting()
    while _bars:
        _bars.pop().stop()


class TimeLeft:
    """
    The time left of work in steps, as a bar shows it: it runs down between two steps.

    At most by what one of the steps that are left takes: that one is late then.
    """

    def __init__(self, left_s: float, steps_left: int) -> None:
        """Take the seconds left of so many steps, from now on."""
        self._left_s = left_s
        self._since_s = time.monotonic()
        self._least_s = left_s * (1 - 1 / max(1, steps_left))

    def __str__(self) -> str:
        """Text of the time that is left now."""
        waited_s = time.monotonic() - self._since_s
        return f"{about(max(self._left_s - waited_s, self._least_s, 1.0))} left"


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
        left = "" if left_s is None or is_over else TimeLeft(left_s, total - done)
        if self._last_line_s is None and sys.stderr.isatty():
            self._bar = self._open_bar()
        waited_s = math.inf if self._last_line_s is None else time.monotonic() - self._last_line_s
        if self._bar is not None:
            task = self._bar.task_ids[0]
            note = self._fitting(text)
            self._bar.update(task, completed=done, total=total, left=left, note=note)
        elif is_over or waited_s >= QUIET_S:
            parts = (f"{done} of {total} {self._what}", str(left), text)
            show_text(", ".join(filter(None, parts)))
        else:
            return
        self._last_line_s = time.monotonic()
        if is_over:
            self.close()

    def note(self, text: str) -> None:
        """Show in the bar what is going on; nothing where there is no terminal."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], note=self._fitting(text))

    def _fitting(self, text: str) -> str:
        """As much of *text* as stands behind the other columns: those it must not press."""
        columns = self._bar.console.width if self._bar else _ENDLESS
        return excerpt(text, max(_LEAST_NOTE, columns - _COLUMNS - _bar_width(columns)))

    def close(self) -> None:
        """Leave the bar as it is, and end its line."""
        if self._bar is not None:
            self._bar.stop()
            if self._bar in _bars:
                _bars.remove(self._bar)
            self._bar = None
            if _waitings:
                _waitings[-1].resume()

    def _open_bar(self) -> Bar | None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar

        if _waitings:
            _waitings[-1].end()
        console = Console(stderr=True)
        if console.is_dumb_terminal:
            return None
        note = TextColumn("{task.fields[note]}", markup=False)  # a line of a client's log
        width = _bar_width(console.width)
        parts = (BarColumn(width), MofNCompleteColumn(), "{task.fields[left]}", note)
        bar = Bar(self._what, *parts, console=console)
        bar.add_task(self._what, total=None, left="", note="")
        bar.start()
        _bars.append(bar)
        # A bar must end before the shell's prompt comes back, whatever ends the command.
        if context := click.get_current_context(silent=True):
            context.call_on_close(self.close)
        return bar


def _bar_width(columns: int) -> int:
    """Width of a bar with an end on a terminal of so many *columns*."""
    return _WIDE_BAR if columns >= _WIDE else _NARROW_BAR
