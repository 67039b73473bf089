"""Scores: each model's metrics beside the noise floor, and models compared in pairs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.records.score import Metric, Speed, Summary
from harness.reports.answer import error_noise, not_applicable
from harness.reports.data import ReportData
from harness.reports.document import Section, Table, Text, Value, signed_tone, table
from harness.reports.wording import (
    QUANTITIES,
    UNKNOWN,
    floor_percent,
    number,
    percent,
    seconds,
    share_with_interval,
)

SPEEDS: tuple[Speed, ...] = ("raw", "reference")
SUM_NOTE = (
    "A trial of several jobs takes the sum of their times; the time between two of them is"
    " not included."
)
_MOST_SCORES = 3000
_MOST_LACKING = 3  # names of statistics on a terminal: a line for each model, not a page


def section(results: ReportData) -> Section:
    """Metrics of the job time by workload and model; on demand all others, and every score."""
    score_book = results.score_book

    def values() -> dict[str, Any]:
        return {
            "summaries": [summary.model_dump(mode="json") for summary in score_book.summaries],
            "comparisons": [
                comparison.model_dump(mode="json") for comparison in score_book.comparisons
            ],
            "scores": [
                {"label": results.label(cell_score.cell), **cell_score.model_dump(mode="json")}
                for cell_score in score_book.scores
            ],
            "measurements": [each.model_dump(mode="json") for each in results.measurements],
            "predictions": [
                each.model_dump(mode="json", exclude={"timeline", "dataflow"})
                for each in results.predictions
            ],
        }

    summary_rows: list[tuple[str, ...]] = []
    for summary in score_book.summaries:
        workload = "all" if summary.workload == "*" else summary.workload
        texts = (metric_text(results, metric, summary) for metric in results.metrics)
        head = (workload, summary.model, summary.quantity, summary.speed, str(summary.cells))
        summary_rows.append((*head, *texts))
    titles = [_title(metric) for metric in results.metrics.values()]
    columns = ("Workload", "Model", "Quantity", "Speed", "Cells", *titles)
    align = "llllr" + "r" * len(titles)
    lacking = (Text(sentence) for sentence in not_applicable(results, _MOST_LACKING))
    return Section(
        id="scores",
        title="Scores",
        blocks=[
            score_table(results),
            comparison_table(results),
            comparison_table(results, all_quantities=True),
            table("All summaries", columns, align, summary_rows, folded=True),
            all_scores_table(results),
        ],
        missing="No prediction has been scored.",
        brief=[brief_table(results), *lacking],
        values=values,
    )


def metric_text(results: ReportData, metric_name: str, summary: Summary | None) -> str:
    """Value of a metric as people read it, with its interval where it has one."""
    if summary is None or metric_name not in summary.metrics:
        return UNKNOWN
    metric, metric_value = results.metrics[metric_name], summary.metrics[metric_name]
    noise = error_noise(summary) if "mape" in summary.metrics else None
    match metric.unit:
        case "share" if metric_value.low is not None:
            return share_with_interval(metric_value.value, metric_value.low, metric_value.high)
        case "share":
            return percent(metric_value.value, summary.value("noise_floor"))
        case "signed share":
            return percent(metric_value.value, noise, signed=True)
        case "spread":
            return floor_percent(metric_value.value)
        case "points":
            return percent(metric_value.value / 100, noise, signed=True).removesuffix(" %")
        case "cells":
            return f"{round(metric_value.value * summary.cells)} of {summary.cells}"
        case "seconds":
            return seconds(metric_value.value, 0.2)
        case "number":
            return number(metric_value.value, 0.02)


def _title(metric: Metric) -> str:
    return metric.title[0].upper() + metric.title[1:]


def _job_summaries(results: ReportData) -> Iterable[tuple[str, Summary, Summary | None]]:
    """Workload (or all) and both summaries of the job time of every model that has one."""
    for workload in (*results.workloads(), "*"):
        for model in results.models():
            if (raw_summary := results.summary(model, "raw", workload)) is not None:
                metric_name = "all" if workload == "*" else workload
                yield metric_name, raw_summary, results.summary(model, "reference", workload)


def score_table(results: ReportData) -> Table:
    """Metrics of the job time by workload and model, at both speeds."""
    shown = {
        speed: [
            metric_name
            for metric_name, metric in results.metrics.items()
            if speed in metric.columns
        ]
        for speed in SPEEDS
    }
    rows: list[tuple[str | Value, ...]] = [
        (
            *(workload, raw_summary.model, str(raw_summary.cells)),
            *(metric_text(results, metric_name, raw_summary) for metric_name in shown["raw"]),
            *(metric_text(results, metric_name, reference) for metric_name in shown["reference"]),
            Value(str(raw_summary.not_applicable), "mark" if raw_summary.not_applicable else ""),
        )
        for workload, raw_summary, reference in _job_summaries(results)
    ]
    titles = [
        _title(results.metrics[metric_name]) for speed in SPEEDS for metric_name in shown[speed]
    ]
    notes = [
        f"{_title(metric)}: {metric.description}."
        for metric_name, metric in results.metrics.items()
        if metric_name in shown["raw"] or metric_name in shown["reference"]
    ]
    notes.append("No answer: cells for which the model is not applicable.")
    notes += [SUM_NOTE] if any(len(each.jobs_s) > 1 for each in results.measurements) else []
    return table(
        "Error of the predicted job time",
        ("Workload", "Model", "Cells", *titles, "No answer"),
        "llr" + "r" * len(titles) + "r",
        rows,
        groups=(
            ("", 3),
            ("Raw", len(shown["raw"])),
            ("At reference speed", len(shown["reference"])),
            ("", 1),
        ),
        note=" ".join(notes),
    )


def brief_table(results: ReportData) -> Table:
    """Metrics that end a run, on a terminal."""
    columns = [
        (metric_name, speed)
        for metric_name, metric in results.metrics.items()
        for speed in SPEEDS
        if speed in metric.brief
    ]
    rows = []
    for workload, raw_summary, reference in _job_summaries(results):
        at: dict[Speed, Summary | None] = {"raw": raw_summary, "reference": reference}
        texts = [metric_text(results, metric_name, at[speed]) for metric_name, speed in columns]
        rows.append(
            (
                workload,
                raw_summary.model,
                str(raw_summary.cells),
                *texts,
                str(raw_summary.not_applicable),
            )
        )
    # A metric at reference speed stands beside itself at raw speed.
    titles = [
        results.metrics[metric_name].title if speed == "raw" else "at ref. speed"
        for metric_name, speed in columns
    ]
    heads = ("workload", "model", "cells", *titles, "not applicable")
    return table("", heads, "ll" + "r" * (len(columns) + 2), rows)


def comparison_table(results: ReportData, *, all_quantities: bool = False) -> Table:
    """
    Pairs of models: by how much one is nearer, and whether that is outside the noise.

    Nine models are 36 pairs, so only those of the job time, unless *all_quantities* are wanted.
    """
    rows = []
    for comparison in results.score_book.comparisons:
        if not all_quantities and comparison.quantity != "job_s":
            continue
        noise = abs(comparison.high - comparison.low) / 2 or None
        gain, low, high = (
            percent(points, noise).removesuffix(" %")
            for points in (abs(comparison.difference), *sorted((-comparison.low, -comparison.high)))
        )
        rows.append(
            (
                f"{comparison.better} against {comparison.worse}",
                QUANTITIES.get(comparison.quantity, comparison.quantity),
                comparison.speed,
                str(comparison.cells),
                gain,
                f"{low} to {high}",
                "yes" if comparison.outside_noise else "no: neither is better",
            )
        )
    columns = (
        "Pair", "Quantity", "Speed", "Cells", "Gain, points", "95 % interval", "Outside the noise",
    )  # fmt: skip
    caption = "Models in pairs: by how much the mean error of the first is smaller"
    caption += ", all quantities" if all_quantities else ""
    return table(caption, columns, "lllrrrl", rows, folded=all_quantities)


def all_scores_table(results: ReportData) -> Table:
    """Every score; where there are too many for a page, the largest errors."""
    chosen = [
        cell_score
        for quantity in QUANTITIES
        for speed in SPEEDS
        for cell_score in results.scores(quantity, speed)
    ]
    errors = sorted((cell_score.relative_error for cell_score in chosen), reverse=True)
    least = errors[_MOST_SCORES - 1] if len(errors) > _MOST_SCORES else 0.0
    kept = [cell_score for cell_score in chosen if cell_score.relative_error >= least][
        :_MOST_SCORES
    ]
    rows: list[tuple[str | Value, ...]] = []
    for cell_score in kept:
        noise = cell_score.measured_s * cell_score.floor if cell_score.floor else None
        error = percent(cell_score.signed_error, cell_score.floor, signed=True)
        gain = cell_score.i_accu_percent
        points = UNKNOWN if gain is None else percent(gain / 100, cell_score.floor, signed=True)
        rows.append(
            (
                results.label(cell_score.cell),
                cell_score.model,
                cell_score.quantity,
                cell_score.speed,
                cell_score.range,
                str(cell_score.trials),
                number(cell_score.predicted_s, noise),
                number(cell_score.measured_s, noise),
                floor_percent(cell_score.floor),
                Value(error, signed_tone(cell_score.signed_error, cell_score.floor)),
                number(cell_score.relative_error / cell_score.floor, 0.3)
                if cell_score.floor
                else UNKNOWN,
                points.removesuffix(" %"),
            )
        )
    columns = (
        "Cell", "Model", "Quantity", "Speed", "Range", "Trials", "Predicted, s", "Measured, s",
        "Noise floor", "Error", "Error / floor", "I_accu",
    )  # fmt: skip
    hidden = len(chosen) - len(kept)
    note = f"{hidden} scores with smaller errors stand in report.json only." if hidden else ""
    return table("All scores", columns, "lllllrrrrrrr", rows, note=note, folded=True)
