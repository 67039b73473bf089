"""The short table that ends ``harness all`` and ``harness score``: plain text, no escapes."""

from __future__ import annotations

from collections.abc import Sequence

from harness.records.score import Summary
from harness.reports.answer import answer, error_text, not_applicable
from harness.reports.data import ReportData, failed, models, summary, workloads
from harness.reports.score_tables import accuracy
from harness.reports.wording import UNKNOWN, count, floor_percent, one_line

_HEAD = (
    "workload", "model", "cells", "mean error", "at ref. speed", "noise floor", "I_accu",
    "not applicable",
)  # fmt: skip
_MOST_LACKING = 3  # names of statistics: a line for each model, not a page


def render_terminal(data: ReportData) -> str:
    """Errors of the job time by workload and model, then the answer; the caller adds the style."""
    rows = [
        _row(data, w, m, s)
        for w in (*workloads(data), "*")
        for m in models(data)
        if (s := summary(data, m, workload=w, speed="raw")) is not None
    ]
    lines = [*_aligned([_HEAD, *rows]), ""] if rows else []
    lines.append(one_line(answer(data).headline))
    lines += [one_line(said) for said in not_applicable(data, _MOST_LACKING)]
    if bad := failed(data):
        lines.append(f"{count(len(bad), 'trial')} of {len(data.trials)} failed or ran out of time:")
        for r in bad:
            reason = r.reason.strip() or "no reason was recorded"
            lines.append(one_line(f"{r.trial.id}  {reason.splitlines()[0]}"))
    return "\n".join(lines).replace(UNKNOWN, "-") + "\n"


def _row(data: ReportData, workload: str, model: str, raw: Summary) -> tuple[str, ...]:
    reference = summary(data, model, workload=workload, speed="reference")
    return (
        "all" if workload == "*" else workload,
        model,
        str(raw.cells),
        error_text(raw) if raw.cells else UNKNOWN,
        error_text(reference) if reference is not None and reference.cells else UNKNOWN,
        floor_percent(raw.median_floor),
        accuracy(raw) if raw.cells else UNKNOWN,
        str(raw.not_applicable),
    )


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side: names to the left, numbers to the right."""
    clean = [[one_line(v) for v in row] for row in rows]
    widths = [max(len(row[i]) for row in clean) for i in range(len(_HEAD))]
    return [
        "  ".join(
            v.ljust(w) if i < 2 else v.rjust(w)
            for i, (v, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in clean
    ]
