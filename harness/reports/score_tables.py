"""Tables of scores: each model's error beside its interval and the noise floor."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from harness.records.score import Score, Speed, Summary
from harness.reports.answer import SPEEDS, error_text
from harness.reports.data import (
    ReportData,
    label,
    models,
    scored_models,
    scores,
    summary,
    workloads,
)
from harness.reports.jobs import SUM_NOTE, several
from harness.reports.tables import Table, Value, signed_tone, table
from harness.reports.wording import (
    QUANTITIES,
    UNKNOWN,
    floor_percent,
    number,
    percent,
)

_MOST_SCORES = 3000


def score_table(data: ReportData) -> Table | None:
    """Table of the result: error of the job time by workload and model, at both speeds."""
    rows = [
        (
            *(_workload(w), m, str(raw.cells)),
            *(*_errors(raw), *_gain(raw)),
            *_errors(summary(data, m, workload=w, speed="reference")),
            Value(str(raw.not_applicable), "mark" if raw.not_applicable else ""),
        )
        for w in (*workloads(data), "*")
        for m in models(data)
        if (raw := summary(data, m, workload=w, speed="raw")) is not None
    ]
    if not rows:
        return None
    error = ("Mean error", "Signed", "Noise floor")
    return table(
        "Error of the predicted job time",
        ("Workload", "Model", "Cells", *error, "In noise", "I_accu", *error, "No answer"),
        "llrrrrrrrrrr",
        rows,
        groups=(("", 3), ("Raw", 5), ("At reference speed", 3), ("", 1)),
        note=_NOTE + (SUM_NOTE if several(data) else ""),
    )


_NOTE = (
    "Mean error: |predicted - measured| / measured, mean over the cells with its 95 % bootstrap"
    " interval. Signed: with its sign, + where the prediction is too long. Noise floor: median over"
    " the cells of the spread (coefficient of variation) of their repeats. In noise: cells whose"
    " error is smaller than their own noise floor. I_accu: error of whatif minus error of the"
    " model, mean over the cells, in percentage points; positive is nearer than whatif. No answer:"
    " cells for which the model is not applicable."
)


def _errors(s: Summary | None) -> tuple[str, str, str]:
    if s is None or not s.cells:
        return (UNKNOWN,) * 3
    signed = percent(s.mean_signed_error, _half(s), signed=True)
    return error_text(s), signed, floor_percent(s.median_floor)


def _gain(raw: Summary) -> tuple[str, str]:
    return (_within(raw), accuracy(raw)) if raw.cells else (UNKNOWN, UNKNOWN)


def accuracy(s: Summary) -> str:
    """Mean I_accu in percentage points, no finer than the error that it compares."""
    if s.mean_i_accu_percent is None:
        return UNKNOWN
    return percent(s.mean_i_accu_percent / 100, _half(s), signed=True).removesuffix(" %")


def _within(s: Summary) -> str:
    if s.within_floor is None:
        return UNKNOWN
    return f"{round(s.within_floor * s.cells)} of {s.cells}"


def _workload(name: str) -> str:
    return "all" if name == "*" else name


def full_table(data: ReportData) -> Table | None:
    """Every summary that was made: all levels, quantities and speeds."""
    rows = [
        (
            _workload(s.workload),
            s.model,
            s.quantity,
            s.speed,
            str(s.cells),
            error_text(s) if s.cells else UNKNOWN,
            percent(s.mean_signed_error, _half(s), signed=True) if s.cells else UNKNOWN,
            percent(s.worst_error, s.median_floor) if s.cells else UNKNOWN,
            floor_percent(s.median_floor),
            _within(s),
            accuracy(s),
        )
        for s in data.book.summaries
    ]
    columns = (
        "Workload", "Model", "Quantity", "Speed", "Cells", "Mean error (95 % interval)", "Signed",
        "Worst", "Noise floor", "In noise", "I_accu",
    )  # fmt: skip
    return table("All summaries", columns, "llllrrrrrrr", rows) if rows else None


def all_scores(data: ReportData) -> Table | None:
    """Every score; where there are too many for a page, the largest errors."""
    chosen = [s for q in QUANTITIES for speed in SPEEDS for s in scores(data, q, speed)]
    kept = chosen
    if len(chosen) > _MOST_SCORES:
        worst = sorted(chosen, key=lambda s: -s.relative_error)[:_MOST_SCORES]
        kept = [s for s in chosen if s in worst]
    rows = [_score(data, s) for s in kept]
    columns = (
        "Cell", "Model", "Quantity", "Speed", "Range", "Trials", "Predicted, s", "Measured, s",
        "Noise floor", "Error", "Error / floor", "I_accu",
    )  # fmt: skip
    hidden = len(chosen) - len(kept)
    note = f"{hidden} scores with smaller errors stand in report.json only." if hidden else ""
    return table("All scores", columns, "lllllrrrrrrr", rows, note=note) if rows else None


def _score(data: ReportData, s: Score) -> tuple[str | Value, ...]:
    noise = s.measured_s * s.floor if s.floor else None
    gain = s.i_accu_percent
    return (
        label(data, s.cell),
        s.model,
        s.quantity,
        s.speed,
        s.range,
        str(s.trials),
        number(s.predicted_s, noise),
        number(s.measured_s, noise),
        floor_percent(s.floor),
        Value(percent(s.signed_error, s.floor, signed=True), signed_tone(s.signed_error, s.floor)),
        number(s.relative_error / s.floor, 0.3) if s.floor else UNKNOWN,
        UNKNOWN if gain is None else percent(gain / 100, s.floor, signed=True).removesuffix(" %"),
    )


def _half(s: Summary) -> float | None:
    return (s.mape_high - s.mape_low) / 2 or None


def comparison_table(data: ReportData, *, all_quantities: bool = False) -> Table | None:
    """
    Pairs of models: by how much one is nearer, and whether that is outside the noise.

    Nine models are 36 pairs, so only those of the job time, unless *all_quantities* are wanted.
    """
    rows = []
    for c in data.book.comparisons:
        if not all_quantities and c.quantity != "job_s":
            continue
        half = abs(c.high - c.low) / 2 or None
        low, high = sorted((-c.low, -c.high))
        rows.append(
            (
                f"{c.better} against {c.worse}",
                QUANTITIES.get(c.quantity, c.quantity),
                c.speed,
                str(c.cells),
                percent(abs(c.difference), half).removesuffix(" %"),
                f"{percent(low, half).removesuffix(' %')} to {percent(high, half)}".removesuffix(
                    " %"
                ),
                "yes" if c.outside_noise else "no: neither is better",
            )
        )
    columns = (
        "Pair",
        "Quantity",
        "Speed",
        "Cells",
        "Gain, points",
        "95 % interval",
        "Outside the noise",
    )
    caption = "Models in pairs: by how much the mean error of the first is smaller"
    caption += ", all quantities" if all_quantities else ""
    return table(caption, columns, "lllrrrl", rows) if rows else None


def phase_table(data: ReportData, workload: str) -> Table | None:
    """Errors at job, task and phase level of one workload, at both speeds."""
    names = scored_models(data)
    rows = [
        row
        for quantity in QUANTITIES
        for speed in SPEEDS
        if (row := _quantity_row(data, workload, quantity, speed, names)) is not None
    ]
    if not rows:
        return None
    return table(
        f"{workload}: mean error by level, and in brackets with its sign",
        ("Quantity", "Speed", "Measured, s", "Noise floor", *names),
        "llrr" + "r" * len(names),
        rows,
        note=_LEVELS,
    )


_LEVELS = (
    "Makespan: first task start to last task end. Map, main: start, read, map function, spills;"
    " tail: last spill and merge. Reduce, rest: reduce function and write."
)


def _quantity_row(
    data: ReportData, workload: str, quantity: str, speed: Speed, names: Sequence[str]
) -> tuple[str | Value, ...] | None:
    chosen = scores(data, quantity, speed, workload=workload)
    if not chosen:
        return None
    measured = {s.cell: s for s in chosen}
    mean = fmean(s.measured_s for s in measured.values())
    floors = [s.floor for s in measured.values() if s.floor is not None]
    floor = median(floors) if floors else None
    noise = mean * floor if floor else None
    found = (summary(data, m, workload=workload, quantity=quantity, speed=speed) for m in names)
    name = QUANTITIES[quantity]
    return (name, speed, number(mean, noise), floor_percent(floor), *map(_model_error, found))


def _model_error(s: Summary | None) -> str | Value:
    if s is None or not s.cells:
        return UNKNOWN
    signed = percent(s.mean_signed_error, _half(s), signed=True)
    tone = signed_tone(s.mean_signed_error, s.median_floor)
    return Value(f"{percent(s.mape, _half(s))} ({signed})", tone)


def overhead_table(data: ReportData) -> Table | None:
    """Job time minus makespan: what a job takes beyond its tasks, and What-If has no term for."""
    rows = []
    for workload in workloads(data):
        mine = [
            m.raw_s
            for m in data.measurements
            if m.workload == workload and {"job_s", "makespan_s"} <= set(m.raw_s)
        ]
        if mine:
            job, span = fmean(m["job_s"] for m in mine), fmean(m["makespan_s"] for m in mine)
            share = percent((job - span) / job) if job > 0 else UNKNOWN
            rows.append(
                (workload, str(len(mine)), number(job), number(span), number(job - span), share)
            )
    columns = ("Workload", "Trials", "Job, s", "Makespan, s", "Overhead, s", "Of the job")
    note = (
        "Makespan: first task start to last task end. The overhead around it (starting the"
        " application master, committing the job) is in the measured job time, and What-If has no"
        " term for it."
    )
    caption = "What a job takes beyond its tasks, means over the scored trials"
    return table(caption, columns, "lrrrrr", rows, note=note) if rows else None
