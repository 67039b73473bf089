"""Scores: each model's metrics beside the noise floor."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from harness.records.score import Metric, Speed, Summary
from harness.reports.answer import SPEEDS, error_noise, interval_name, not_applicable
from harness.reports.data import ReportData, noise_s
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

_SUM_NOTE = (
    "A trial of several jobs takes the sum of their times; the time between two of them is"
    " not included."
)
# Of each model: without the frame, with it, and what the paper's own formula says.
_TIMES = ("body_s", "job_s", "published_s")
_TIMES_NOTE = (
    "Body: the job without its frame (starts and ends of tasks and job, gaps between tasks)."
    " Job: every model's body with the same frame, that of the profile. Frame: its share of the"
    " measured jobs. As published: the paper's own formula against the measured job. These rows are"
    " not on equal terms: some formulas have no frame, whatif, whatif-mr2 and the PTC models a part"
    " of it, ernest and nearest learn whole jobs."
)
_MOST_SCORES = 1000
_MOST_LACKING = 3  # names of statistics on a terminal: a line for each model, not a page


def section(results: ReportData) -> Section:
    """Metrics of the job time by workload and model; on demand all others, and every score."""
    score_book = results.score_book
    summary_rows: list[tuple[str, ...]] = []
    for summary in score_book.summaries:
        workload = "all" if summary.workload == "*" else summary.workload
        head = (workload, summary.model, summary.quantity, summary.speed, str(summary.cells))
        summary_rows.append(
            (*head, *(metric_text(results, name, summary) for name in results.metrics))
        )
    titles = [_title(metric) for metric in results.metrics.values()]
    columns = ("Workload", "Model", "Quantity", "Speed", "Cells", *titles)
    align = "llllr" + "r" * len(titles)
    return Section(
        id="scores",
        title="Scores",
        blocks=[
            score_table(results),
            table("All summaries", columns, align, summary_rows, folded=True),
            all_scores_table(results),
        ],
        missing="No prediction has been scored.",
        brief=[brief_table(results), *map(Text, not_applicable(results, _MOST_LACKING))],
        values=lambda: {
            "summaries": score_book.summaries,
            "frame_shares": {
                workload: frame_share(results, workload) for workload in (*results.workloads, "*")
            },
            "scores": [
                {"label": results.label(score.cell), **vars(score)} for score in score_book.scores
            ],
            "measurements": results.measurements,
            "predictions": [
                each.model_dump(mode="json", exclude={"timeline", "dataflow"})
                for each in results.predictions
            ],
        },
    )


def metric_text(results: ReportData, metric_name: str, summary: Summary | None) -> str:
    """Value of a metric as people read it, with its interval where it has one."""
    if summary is None or metric_name not in summary.metrics:
        return UNKNOWN
    metric, metric_value = results.metrics[metric_name], summary.metrics[metric_name]
    noise = error_noise(summary) if "mape" in summary.metrics else None
    match metric.unit:
        case "share" if metric_value.low is not None:
            few = "range " if interval_name(summary.cells) == "range" else ""
            return share_with_interval(metric_value.value, metric_value.low, metric_value.high, few)
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


def _job_rows(
    results: ReportData, columns: Sequence[tuple[str, Speed]]
) -> list[tuple[str | Value, ...]]:
    """Metrics of the times of jobs, each at its speed, by workload (or all), model and time."""
    table_rows: list[tuple[str | Value, ...]] = []
    workloads = results.workloads
    for workload in (*workloads, "*") if len(workloads) > 1 else workloads:
        share = percent(frame_share(results, workload))
        for model, quantity in product(results.models, _TIMES):
            summaries = {
                speed: results.summary(model, speed, workload, quantity) for speed in SPEEDS
            }
            if (raw_summary := summaries["raw"]) is not None:
                lacking = raw_summary.not_applicable
                table_rows.append(
                    (
                        *("all" if workload == "*" else workload, model, QUANTITIES[quantity]),
                        *(str(raw_summary.cells), share),
                        *(metric_text(results, name, summaries[speed]) for name, speed in columns),
                        Value(str(lacking), "mark" if lacking else ""),
                    )
                )
    return table_rows


def score_table(results: ReportData) -> Table:
    """Metrics of the job time by workload and model, at both speeds."""
    columns = [
        (name, speed)
        for speed in SPEEDS
        for name, metric in results.metrics.items()
        if speed in metric.columns
    ]
    titles = [_title(results.metrics[name]) for name, _ in columns]
    notes = [
        f"{_title(metric)}: {metric.description}."
        for name, metric in results.metrics.items()
        if any(name == shown for shown, _ in columns)
    ]
    notes += [_TIMES_NOTE, "No answer: cells for which the model is not applicable."]
    notes += [_SUM_NOTE] if any(len(each.jobs_s) > 1 for each in results.measurements) else []
    raw = sum(speed == "raw" for _, speed in columns)
    return table(
        "Error of the predicted body, of the job, and of the job as published",
        ("Workload", "Model", "Time", "Cells", "Frame", *titles, "No answer"),
        "lllrr" + "r" * len(titles) + "r",
        _job_rows(results, columns),
        groups=(("", 5), ("Raw", raw), ("At reference speed", len(columns) - raw), ("", 1)),
        note=" ".join(notes),
    )


def frame_share(results: ReportData, workload: str) -> float | None:
    """Share of the measured job times of *workload* (``*``: all) that is frame, where known."""
    times_s = [
        (trial.raw_s["frame_s"], trial.raw_s["job_s"])
        for trial in results.measurements
        if "frame_s" in trial.raw_s and workload in ("*", trial.workload)
    ]
    frame_s, job_s = map(sum, zip(*times_s, strict=True)) if times_s else (0.0, 0.0)
    return frame_s / job_s if job_s > 0 else None


def brief_table(results: ReportData) -> Table:
    """Metrics that end a run, on a terminal."""
    columns = [
        (name, speed)
        for name, metric in results.metrics.items()
        for speed in SPEEDS
        if speed in metric.brief
    ]
    # A metric at reference speed stands beside itself at raw speed.
    titles = [
        results.metrics[name].title if speed == "raw" else "at ref. speed"
        for name, speed in columns
    ]
    heads = ("workload", "model", "time", "cells", "frame", *titles, "not applicable")
    return table("", heads, "lll" + "r" * (len(columns) + 3), _job_rows(results, columns))


def all_scores_table(results: ReportData) -> Table:
    """Every score, the largest error first: there may be too many for a page."""
    chosen = [score for score in results.score_book.scores if score.quantity in QUANTITIES]
    chosen.sort(key=lambda score: -score.relative_error)
    table_rows: list[tuple[str | Value, ...]] = []
    for score in chosen[:_MOST_SCORES]:
        noise, floor, gain = noise_s(score), score.floor, score.i_accu_percent
        error = percent(score.signed_error, floor, signed=True)
        points = UNKNOWN if gain is None else percent(gain / 100, floor, signed=True)
        table_rows.append(
            (
                *(results.label(score.cell), score.model, score.quantity, score.speed),
                *(score.range, str(score.trials)),
                *(number(score.predicted_s, noise), number(score.measured_s, noise)),
                floor_percent(floor),
                Value(error, signed_tone(score.signed_error, floor)),
                number(score.relative_error / floor, 0.3) if floor else UNKNOWN,
                points.removesuffix(" %"),
            )
        )
    columns = (
        "Cell", "Model", "Quantity", "Speed", "Range", "Trials", "Predicted, s", "Measured, s",
        "Noise floor", "Error", "Error / floor", "I_accu",
    )  # fmt: skip
    hidden = len(chosen) - len(table_rows)
    note = f"{hidden} scores with smaller errors stand in report.json only." if hidden else ""
    return table("All scores", columns, "lllllrrrrrrr", table_rows, note=note, folded=True)
