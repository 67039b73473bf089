r"""
How a command answers: texts and tables for people, one JSON document with --json, files by name.

A command computes its answer first, and hands it over once: as a document for programs, and as
parts for people.  Parts may come from a generator, which is not run where JSON is asked for::

    @command("jobs")
    @outputs_option("Write a line for each job (.csv).", ".csv")
    @json_option
    def jobs(outputs: Mapping[str, Path], as_json: bool) -> int:
        found = list_jobs()  # dicts
        save_rows(outputs.get(".csv"), found)
        present({"jobs": found}, _shown_jobs(found), as_json=as_json)
        return int(any(job["failed"] for job in found))


    def _shown_jobs(found: Sequence[dict[str, Any]]) -> Iterator[Part]:
        yield Rows(("job", "seconds"), [(job["id"], number(job["job_s"])) for job in found])
        yield Note("next: harness report RUN")

A part is a text (lines of the answer), `Rows` (a table), a `Path` (a file that was written), a
report (its first screen), or a `Note`, which is talk beside the answer.  A report that is the
whole answer is given as it is: `present(document, as_json=as_json)`; `block_parts` gives the parts
of more of it than the first screen.  Where the same rows are both answers, `Rows.records` gives the
objects.  A command without JSON uses `show`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from harness.base.errors import DataError
from harness.base.text import printable
from harness.cli.console.talk import print_json, print_text, show_table, show_text

if TYPE_CHECKING:
    from harness.base.documents.document import Block, Document


class Rows(NamedTuple):
    """A table for people: columns of numbers stand to the right, whatever is in it is text."""

    columns: Sequence[str]
    rows: Iterable[Sequence[object]]
    title: str = ""

    def records(self) -> list[dict[str, object]]:
        """The rows as objects, by the names of the columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


class Note(NamedTuple):
    """Talk beside an answer, on stderr: what was left out, where something is, what to do next."""

    text: str


Part: TypeAlias = "str | Path | Rows | Note | Document"


def present(answer: Any, parts: Iterable[Part] = (), *, as_json: bool) -> None:
    """
    Print *answer* as one JSON document where *as_json*, otherwise its *parts* for people.

    *answer* is whatever `print_json` takes, or a function that makes it, where that takes long; or
    a report: of that programs get what report.json has, people the first screen.
    """
    from harness.base.documents.document import Document

    if isinstance(answer, Document):
        from harness.core.reports import REPORTS

        print_text(REPORTS["json" if as_json else "terminal"].render(answer))
    elif as_json:
        print_json(answer() if callable(answer) else answer)
    else:
        for part in parts:
            show(part)


def show(*parts: Part) -> None:
    """Print each of *parts* for people, one below the other."""
    for part in parts:
        match part:
            case str():
                print_text(printable(part))
            case Note():
                show_text(part.text)
            case Rows():
                show_table(part.columns, part.rows, title=part.title)
            case Path():
                print_text(part)  # as it is: a script may read it
            case _:
                present(part, as_json=False)


def require_answer(report: Document, run: Path) -> None:
    """`DataError`, after all that was shown, where the *report* of a *run* has no verdict."""
    if not report.is_answer:
        fix = "the report names what each model lacks, and the trials that failed"
        raise DataError("no model is scored on the time of a job", where=str(run), fix=fix)


def block_parts(blocks: Iterable[Block]) -> Iterator[Part]:
    """Texts and open tables of the *blocks* of a report, with their notes, without its figures."""
    from harness.base.documents.document import Table, Text

    for block in blocks:
        if isinstance(block, Text):
            yield block.text
        elif isinstance(block, Table) and block.is_open():
            yield Rows(block.columns, block.texts())
            if block.note:
                yield block.note


def save(path: Path | None, write: Callable[[Path], object]) -> None:
    """
    *write* the file that the user named, if any: all of it, or what was there is kept.

    What the system refuses is `MachineError`.
    """
    from harness.observe.storage.files import os_error_as_machine_error, replace_file

    if path is not None:
        with os_error_as_machine_error(path):
            replace_file(path, write)


def save_rows(
    path: Path | None, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None
) -> None:
    """
    Write *rows* as CSV where the user named a file; what is nested has dotted names.

    *columns* are those of a file without a row.
    """

    def write(file: Path) -> None:
        import pandas as pd

        frame = pd.json_normalize([*rows]) if rows else pd.DataFrame(columns=columns)
        frame.to_csv(file, index=False)

    save(path, write)
