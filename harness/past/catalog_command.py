"""`harness catalog`: past jobs from their histories, their families, and the most similar ones."""

from __future__ import annotations

import os
import time

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import DataError, SpecError
from harness.base.text import excerpt
from harness.base.units import format_bytes, format_duration
from harness.cli.console import completion
from harness.cli.console.command import group
from harness.cli.console.options import catalog_option, json_option, results_option, rules_option
from harness.cli.console.present import Note, Part, Rows, present
from harness.cli.console.present import show as show_parts
from harness.cli.console.talk import QUIET_S

if TYPE_CHECKING:
    from harness.catalog.match import Match
    from harness.past.fill import Filled

_MOST_SHOWN = 20  # files that were left out
_MOST_COPIES = 1000


@group("catalog")
def catalog_group() -> None:
    """
    Keep past jobs from their histories, and find the job most like another.

    \b
    Example:
        harness catalog add /backup/history/done
        harness catalog similar job_1795224441974_0001
    """


@catalog_group.command("add")
@click.argument(
    "sources", metavar="SOURCE...", nargs=-1, required=True, shell_complete=completion.runs
)
@catalog_option
@results_option
@json_option
def add(sources: tuple[str, ...], folder: Path, results_dir: Path, as_json: bool) -> None:
    """
    Add the jobs of SOURCE: a folder with .jhist and _conf.xml files below it, or a run.

    A SOURCE may also be such a folder in HDFS, hdfs:/PATH in the cluster of HADOOP_CONF_DIR or
    webhdfs://NAMENODE:9870/PATH, or a history server, http://HOST:19888.  Applications of Tez and
    Spark are counted and left out; a history server knows none: name the ResourceManager, too.

    What the catalog knows is not read again.  What cannot be read is named with its reason, and the
    rest goes on: exit status 6.

    \b
    Example:
        harness catalog add /backup/history/done
        harness catalog add 20261121T0323 --catalog past-jobs
        harness catalog add hdfs:/mr-history/done
    """
    from harness.catalog.catalog import Catalog
    from harness.catalog.sources import copies_note
    from harness.past.fill import fill

    shown_s = time.monotonic()

    def report(filled: Filled) -> None:
        nonlocal shown_s
        if time.monotonic() - shown_s > QUIET_S:
            shown_s = time.monotonic()
            show_parts(Note(f"added: {filled.added}; left out: {filled.left_out_files}"))

    places = [place_of(source, results_dir) for source in sources]
    filled = fill(Catalog(folder), places, len(os.sched_getaffinity(0)), report)
    show_parts(*shown_left_out(filled.left_out, filled.left_out_files))
    counts = (filled.added, filled.incomplete, filled.known, filled.left_out_files)
    shown = Rows(("added", "of them incomplete", "known", "left out"), [counts])
    others = filled.applications
    answer = {
        **vars(filled),
        "left_out": dict(filled.left_out),
        "applications": others.counted(),
        "copies": filled.copies[:_MOST_COPIES],
    }
    notes = filter(None, [copies_note(filled.copies), others.sentence()])
    present(answer, [shown, *map(Note, notes)], as_json=as_json)
    if filled.left_out_files or others:
        raise SystemExit(6)


def shown_left_out(left_out: Sequence[tuple[str, str]], count: int) -> Iterator[Part]:
    """The first of *count* files that were left out, each with the reason."""
    for file, reason in left_out[:_MOST_SHOWN]:
        yield Note(f"left out: {file}: {reason}")
    if count > _MOST_SHOWN:
        yield Note(f"and {count - _MOST_SHOWN} more; --json names {len(left_out)}")


def place_of(source: str, results_dir: Path) -> str:
    """Where the histories of a source are: itself, or the folder of the run of this name."""
    from harness.catalog.places import is_remote
    from harness.core.store import Store

    if is_remote(source):
        return source
    if Path(source).is_dir():
        return str(Path(source).resolve())
    try:
        return str(Store(results_dir).find(source).measured.path.resolve())
    except DataError as error:
        what = f"'{excerpt(source)}' is neither a folder nor a run"
        fix = "name one, or hdfs:/PATH, webhdfs://NAMENODE:9870/PATH or http://HISTORYSERVER:19888"
        raise SpecError(what, where="SOURCE", fix=fix) from error


@catalog_group.command("list")
@click.argument("family", required=False)
@catalog_option
@rules_option
@json_option
def show_list(family: str | None, folder: Path, rules: Path | None, as_json: bool) -> None:
    """
    List families of jobs: how many, how large, how long; or the jobs of FAMILY, latest first.

    A family is what runs one program: its jobs have one name but for numbers and dates, and the
    same classes.  FAMILY are the first characters of its name.  --json has the range of times and
    sizes beside their medians.

    \b
    Example:
        harness catalog list
        harness catalog list "word count" --json
    """
    from harness.catalog.catalog import Catalog
    from harness.catalog.families import family_rows, job_rows

    table = Catalog(folder, rules).table()
    rows = family_rows(table) if family is None else job_rows(table, family)
    if family is not None and not rows:
        fix = "harness catalog list names all families"
        raise DataError(f"no family '{excerpt(family)}'", where=str(folder), fix=fix)
    present(rows, shown_rows(rows), as_json=as_json)


def shown_rows(rows: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    """Families or jobs, without the ranges of their times and sizes; and which spread widely."""
    from harness.catalog.families import WIDE_SPREAD

    names = [name for name in rows[0] if not name.startswith(("least_", "most_"))]
    yield Rows(names, [[_cell(name, row[name]) for name in names] for row in rows])
    for row in rows:
        if (row.get("spread") or 0) > WIDE_SPREAD:
            yield Note(
                f"{row['family']}: jobs alike take up to {row['spread']:.2g} times as long,"
                " and no setting says why: a rule may divide the family (--rules)"
            )


@catalog_group.command("show")
@click.argument("job")
@catalog_option
@json_option
def show(job: str, folder: Path, as_json: bool) -> None:
    """
    Show all that is known of JOB, by its id: each group of fields with where it comes from.

    \b
    Example:
        harness catalog show job_1795224441974_0001
    """
    from harness.catalog.catalog import Catalog
    from harness.catalog.jobs import GROUPS

    row = Catalog(folder).read_job(job)
    groups = {
        title: {"from": origin, "fields": {name: row[name] for name in fields}}
        for title, (origin, fields) in GROUPS.items()
    }
    present({"job_id": job, "groups": groups}, shown_groups(groups), as_json=as_json)


def shown_groups(groups: Mapping[str, Mapping[str, Any]]) -> Iterator[Part]:
    """A table for each group of fields, with where they come from."""
    for title, fields in groups.items():
        lines = list[tuple[str, str]]()
        for name, value in fields["fields"].items():
            values = value if isinstance(value, list) else [value]
            lines += [(name, _cell(name, value)) for value in values]
        if lines:
            yield Rows((title, fields["from"]), lines)


@catalog_group.command("similar")
@click.argument("job")
@catalog_option
@rules_option
@click.option("--count", type=click.IntRange(1, 1000), default=5, help="How many jobs to show.")
@json_option
def show_similar(job: str, folder: Path, rules: Path | None, count: int, as_json: bool) -> None:
    """
    Show the past jobs that are most like JOB, best first, and what sets the best one apart.

    Jobs of the same program come first, then those with the same classes, mapper or reducer; then
    the closest selectivities and widths of records count.

    \b
    Example:
        harness catalog similar job_1795224441974_0001 --count 3
    """
    from harness.catalog.catalog import Catalog
    from harness.catalog.match import similar

    matches = similar(Catalog(folder, rules), job, count)
    present({"job_id": job, "matches": matches}, shown_matches(job, matches), as_json=as_json)


def shown_matches(job: str, matches: Sequence[Match]) -> Iterator[Part]:
    """The jobs most like *job*, and what sets the best one apart."""
    if not matches:
        yield Note("the catalog has no other job that succeeded")
        return
    columns = ("job_id", "level", "distance", "job_s", "input_bytes", "family")
    rows = [[_cell(name, getattr(match, name)) for name in columns] for match in matches]
    yield Rows(columns, rows)
    best = matches[0]
    lines = [
        (field, *(_cell("", value) for value in values))
        for field, *values in map(astuple, best.differences)
    ]
    yield Rows(("field", job, best.job_id, "adds"), lines)


def _cell(name: str, value: Any) -> str:
    """A value for people, by the unit that the *name* of its field ends in."""
    from harness.base.documents.wording import moment

    if value is None or value == "":
        return "none" if value == "" else "not known"
    if name.endswith("submit_s"):
        return moment(value)
    if isinstance(value, float | int) and name.endswith("_s"):
        return format_duration(value)
    if isinstance(value, float | int) and name.endswith("_bytes"):
        return format_bytes(value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
