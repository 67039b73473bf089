"""``harness papers``: the papers' own tables and claims, computed anew."""

from __future__ import annotations

import sys

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from harness.cli.console import print_json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.scoring.papers import Claim, Column, PaperTable, Summary

WIDTH = 100
CLAIMS = "claims"
_STYLES = {"contradicted": "red", "holds": "green", "cannot be checked": "yellow"}


@click.command("papers")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(names: Sequence[str], as_json: bool) -> None:
    """
    Compute the tables of the papers anew, and hold their claims against them.

    Shows every table of the papers on MR. Prophet, vet and SPN-GC beside what follows from its
    own numbers, with each slip marked by its identifier (docs/models); then what the papers claim,
    and whether their tables bear it; then a summary. NAME is a table (prophet-2), a paper
    (prophet, vet, spn-gc) or 'claims'; without one, everything is shown.

    \b
    Example:
        harness papers
        harness papers prophet-2 vet-3
        harness papers claims --json
    """
    from harness.scoring.papers import claims, summarise, tables

    shown, judged = _chosen(names, tables(), claims())
    summary = summarise(shown, judged)
    if as_json:
        print_json(_document(shown, judged, summary))
    else:
        _print([*map(_drawn, shown), *_claims(judged), _closing(summary, shown, judged)])


def _chosen(
    names: Sequence[str], tables: Sequence[PaperTable], claims: Sequence[Claim]
) -> tuple[list[PaperTable], list[Claim]]:
    """Tables and claims that *names* ask for, in the order of the papers; usage error otherwise."""
    papers = dict.fromkeys(table.paper for table in tables)
    known = [*papers, *(table.name for table in tables), CLAIMS]
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Choose from {', '.join(known)}"
            raise click.UsageError(f"There is no table or paper {name!r}. {hint}")
    if not names:
        return list(tables), list(claims)
    return (
        [t for t in tables if t.name in names or t.paper in names],
        [c for c in claims if CLAIMS in names or c.paper in names],
    )


# For programs.


def _document(
    tables: Iterable[PaperTable], claims: Iterable[Claim], summary: Summary
) -> dict[str, Any]:
    return {
        "tables": [_table_document(table) for table in tables],
        "claims": [asdict(claim) for claim in claims],
        "summary": asdict(summary),
    }


def _table_document(table: PaperTable) -> dict[str, Any]:
    return {
        "name": table.name,
        "paper": table.paper,
        "title": table.title,
        "rows": [_row_document(table.columns, row) for row in table.rows],
        "checks": [asdict(check) for check in table.checks],
        "slips": dict(table.slips),
        "note": table.note,
    }


def _row_document(columns: Sequence[Column], row: Sequence[object]) -> dict[str, object]:
    return {
        column.key: int(value) if column.digits == 0 and isinstance(value, float) else value
        for column, value in zip(columns, row, strict=True)
    }


# For people.


def _drawn(table: PaperTable) -> RenderableType:
    from rich import box
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    for column in table.columns:
        right = column.digits is not None
        drawn.add_column(Text(column.heading), justify="right" if right else "left", no_wrap=True)
    for row in table.rows:
        cells = [_shown(c, v) for c, v in zip(table.columns, row, strict=True)]
        drawn.add_row(*map(Text, cells), style="bold" if cells[-1] else None)
    below = [(mark, text) for mark, text in sorted(table.slips.items())]
    notes = _lines([*below, *([("note", table.note)] if table.note else [])])
    title = Text.assemble((table.title, "bold"), f"  [{table.name}]")
    return Group(title, drawn, Padding(notes, (0, 0, 2, 1)))


def _shown(column: Column, value: object) -> str:
    if isinstance(value, float):
        digits = column.digits or 0
        return f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0: no minus before a zero
    return "" if value is None else str(value)


def _lines(pairs: Iterable[tuple[str, str]]) -> RenderableType:
    """Pairs side by side, the second one wrapped."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in pairs:
        grid.add_row(Text(name), Text(text))
    return grid


def _claims(claims: Sequence[Claim]) -> Iterator[RenderableType]:
    from harness.scoring.papers import PAPERS

    for paper, name in PAPERS.items():
        if found := [claim for claim in claims if claim.paper == paper]:
            yield _judged(f"What the paper on {name} claims", found)


def _judged(title: str, claims: Sequence[Claim]) -> RenderableType:
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for claim in claims:
        verdict = claim.verdict.value
        grid.add_row(Text(verdict, style=_STYLES[verdict]), Text(claim.text, style="bold"))
        grid.add_row(Text(claim.erratum), Text(claim.where, style="italic"))
        for figure in claim.figures:
            grid.add_row(Text(), Text(figure))
        grid.add_row(Text(), Text())
    return Group(Text(title, style="bold"), Text(), Padding(grid, (0, 0, 1, 1)))


def _closing(
    summary: Summary, tables: Sequence[PaperTable], claims: Sequence[Claim]
) -> RenderableType:
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    lines = [
        *_cell_lines(summary, tables),
        *_slip_lines(summary, tables),
        *_claim_lines(summary, claims),
    ]
    return Group(Text("Summary", style="bold"), Padding(_lines(lines), (0, 0, 0, 1)))


def _cell_lines(summary: Summary, tables: Sequence[PaperTable]) -> Iterator[tuple[str, str]]:
    yield str(summary.recomputed), "printed cells recomputed from the others of their row"
    for kind, count in summary.outcomes.items():
        slips = {c.slip for t in tables for c in t.checks if c.outcome == kind and c.slip}
        if count:
            yield f"  {count}", f"{kind.value}{': ' if slips else ''}{', '.join(sorted(slips))}"


def _slip_lines(summary: Summary, tables: Sequence[PaperTable]) -> Iterator[tuple[str, str]]:
    texts = {mark: text for table in tables for mark, text in table.slips.items()}
    if summary.slips:
        yield str(sum(summary.slips.values())), "marks of slips"
    for mark, count in sorted(summary.slips.items()):
        yield f"  {count}", f"{mark}  {texts[mark]}"


def _claim_lines(summary: Summary, claims: Sequence[Claim]) -> Iterator[tuple[str, str]]:
    if claims:
        yield str(len(claims)), "claims judged"
        yield from ((f"  {count}", kind.value) for kind, count in summary.verdicts.items())


def _print(parts: Iterable[RenderableType]) -> None:
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False)
    console.width = WIDTH
    with console.capture() as text:  # rich itself would end the process where a pipe breaks
        for part in parts:
            console.print(part)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in text.get().splitlines()))
