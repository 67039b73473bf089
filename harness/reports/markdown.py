"""The report as Markdown, for a code review or an issue."""

from __future__ import annotations

import re

from collections.abc import Iterator

from harness.reports.answer import answer
from harness.reports.data import ReportData, insides, workloads
from harness.reports.decomposition import decomposition_table
from harness.reports.hardware import disks_table, hardware_table, hardware_texts
from harness.reports.inside import bars
from harness.reports.inside.differences import differences_table
from harness.reports.inside.tables import parts_table
from harness.reports.jobs import jobs_table
from harness.reports.method import (
    disturbed_table,
    failed_table,
    load_text,
    manifest_table,
    order_text,
    setup_table,
)
from harness.reports.overhead import overhead_texts
from harness.reports.plots.errors import error_table
from harness.reports.profile_tables import correction_text, profile_tables
from harness.reports.score_tables import (
    comparison_table,
    overhead_table,
    phase_table,
    score_table,
)
from harness.reports.tables import Table
from harness.reports.vet import repeats_table, vet_table, vet_texts
from harness.reports.wording import one_line

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&$@!])")


def render_markdown(data: ReportData) -> str:
    """Write the sections of the HTML report without its figures."""
    answered = answer(data)
    blocks = [
        f"# {escape(data.experiment.question)}",
        f"Experiment {escape(data.experiment.name)}.",
        f"**{escape(answered.headline)}**",
        *(escape(s) for s in answered.details),
        *_section("Scores", score_table(data), comparison_table(data)),
        *_section("Errors per cell", *_cell_tables(data)),
        *_section("Phases", *_phase_tables(data)),
        *_section("Where the time of a job went", *_inside(data)),
        *_vet(data),
        *_profiles(data),
        *_method(data),
        *_section("Failed trials", failed_table(data)),
    ]
    return "\n\n".join(b for b in blocks if b) + "\n"


def escape(text: str) -> str:
    r"""
    *text* in one line, with everything that Markdown or HTML would act upon made literal.

    >>> escape("a|b <script> _c_")
    'a\\|b \\<script\\> \\_c\\_'
    """
    return _SPECIAL.sub(r"\\\1", one_line(text)).replace("://", "&#58;//")


def _cell_tables(data: ReportData) -> list[Table]:
    return [t for w in workloads(data) if (t := error_table(data, w)).rows]


def _phase_tables(data: ReportData) -> Iterator[Table | None]:
    for tables in (phase_table, jobs_table, decomposition_table):
        yield from (tables(data, w) for w in workloads(data))
    yield overhead_table(data)


def _inside(data: ReportData) -> Iterator[Table | None]:
    for name, inside in insides(data):
        if found := bars(inside.parts):
            yield parts_table(name, found)
        yield differences_table(name, inside.differences)


def _vet(data: ReportData) -> list[str]:
    found = _section("Overhead of finished tasks (vet)", vet_table(data), repeats_table(data))
    return [*found[:1], *map(escape, vet_texts(data)), *found[1:]]


def _section(title: str, *tables: Table | None) -> list[str]:
    shown = [_table(t) for t in tables if t is not None]
    return [f"## {title}", *shown] if shown else []


def _profiles(data: ReportData) -> list[str]:
    found: list[str] = []
    for name, profile in data.profiles.items():
        found += _section(f"Profile of {escape(name)}", *profile_tables(profile))
        found += [escape(w) for w in profile.warnings]
    return found


def _method(data: ReportData) -> list[str]:
    corrections = [correction_text(n, p.speed) for n, p in data.profiles.items()]
    said = (
        order_text(data),
        load_text(data),
        *corrections,
        *hardware_texts(data),
        *overhead_texts(data),
    )
    tables = (
        setup_table(data),
        hardware_table(data),
        disks_table(data),
        disturbed_table(data),
        manifest_table(data),
    )
    head, *rest = _section("How it was measured", *tables)
    return [head, *map(escape, said), *rest]


def _table(t: Table) -> str:
    rules = {"l": ":--", "c": ":--", "r": "--:"}
    lines = [
        " | ".join(escape(c) for c in _heads(t)),
        " | ".join(rules[a] for a in t.align),
        *(" | ".join(escape(v.text) for v in row) for row in t.rows),
    ]
    body = "\n".join(f"| {line} |" for line in lines)
    note = f"\n\n{escape(t.note)}" if t.note else ""
    return f"{escape(t.caption)}\n\n{body}{note}"


def _heads(t: Table) -> list[str]:
    """Markdown has one row of headings: a group's name goes before each of its columns."""
    spans = [name for name, width in t.groups for _ in range(width)] or [""] * len(t.columns)
    return [f"{g}: {c}" if g else c for g, c in zip(spans, t.columns, strict=True)]
