"""Scores: each model's metrics beside the noise floor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from harness.base.documents.document import Section, Table, Value, table
from harness.base.documents.wording import (
    JOB_TIMES,
    QUANTITIES,
    UNKNOWN,
    count,
    floor_percent,
    number,
    percent,
    seconds,
    share_with_interval,
)
from harness.base.records.question import Extrapolate
from harness.base.records.score import Metric, MetricValue, Ranking, Score, Speed, Summary
from harness.core.reports.answer import ANSWERED, error_noise, first_pairs, interval_name
from harness.core.reports.data import ReportData
from harness.scoring.comparisons import UNLEARNT

_SUM_NOTE = (
    "A trial of several jobs takes the sum of their times; the time between two of them is"
    " not included."
)
_TIMES_NOTE = (
    "Body: the job without its frame (starts and ends of tasks and job, gaps between tasks)."
    " Job: every model's body with the same frame, that of the profile. Frame: its share of the"
    " measured jobs. As published: the paper's own formula against the measured job. These rows are"
    " not on equal terms: some formulas have no frame, whatif, whatif-mr2 and the PTC models a part"
    " of it, ernest and scaling learn whole jobs."
)
_AT_REFERENCE = " at reference speed"
_REFERENCE_NOTE = (
    "At reference speed: as if the machine had been as fast, while cells were scored, as when the"
    " profiles were measured, by a probe that runs beside each trial."
)
_VERDICT_NOTE = (
    "Verdict: what is told of a model beside the one with the smallest error, all pairs tested as"
    " one family. A pair that the question asks for is tested alone: it may be told where this says"
    " undecided."
)
# What extrapolated cells are to the question.
_EXTRAPOLATED: dict[Extrapolate, str] = {
    "out": "These cells are in no verdict, and in no mean error but this one.",
    True: "The question is about them alone.",
    False: "They count like the others.",
}
# What a pair with the model of the smallest error says of the other one.
_VERDICTS = {"nearer": "farther", "equal": "equal", "undecided": "undecided"}


def section(results: ReportData) -> Section:
    """Metrics of the job time by workload and model; on demand further ones."""
    score_book = results.score_book
    return Section(
        id="scores",
        title="Scores",
        blocks=[
            score_table(results),
            *extrapolated_tables(results),
            *(score_table(results, further=speed) for speed in results.speeds()),
        ],
        missing="No prediction has been scored.",
        values=lambda: {
            "tallies": score_book.tallies,
            "summaries": score_book.summaries,
            "frame_shares": {
                workload: frame_share(results, workload) for workload in (*results.workloads, "*")
            },
            "scores": [
                {"label": results.label(score.cell), **vars(score)} for score in score_book.scores
            ],
            "measurements": results.measurements,
            "predictions": [
                prediction.model_dump(mode="json", exclude={"timeline", "dataflow"})
                for prediction in results.predictions
            ],
        },
    )


def metric_text(results: ReportData, metric_name: str, summary: Summary | None) -> str:
    """Value of a metric as people read it, with its interval where it has one."""
    if summary is None or metric_name not in summary.metrics:
        return UNKNOWN
    write = _WRITERS[results.metrics[metric_name].unit]
    return write(summary.metrics[metric_name], summary)


def _share(metric: MetricValue, summary: Summary) -> str:
    if metric.low is None:
        return percent(metric.value, summary.value("noise_floor"))
    label = "range " if interval_name(summary.cells) == "range" else ""
    return share_with_interval(metric.value, metric.low, metric.high, label)


def _signed_share(metric: MetricValue, summary: Summary) -> str:
    return percent(metric.value, _noise(summary), signed=True)


def _points(metric: MetricValue, summary: Summary) -> str:
    return percent(metric.value / 100, _noise(summary), signed=True).removesuffix(" %")


def _cells(metric: MetricValue, summary: Summary) -> str:
    return f"{round(metric.value * summary.cells)} of {summary.cells}"


def _noise(summary: Summary) -> float | None:
    """Noise of the mean error, to whose places other errors are written."""
    return error_noise(summary) if "mape" in summary.metrics else None


# How the value of a metric is written, by its unit.
_WRITERS: dict[str, Callable[[MetricValue, Summary], str]] = {
    "share": _share,
    "signed share": _signed_share,
    "spread": lambda metric, _: floor_percent(metric.value),
    "points": _points,
    "cells": _cells,
    "seconds": lambda metric, _: seconds(metric.value, 0.2),
    "number": lambda metric, _: number(metric.value, 0.02),
}


def _title(metric: Metric, speed: Speed = "raw") -> str:
    suffix = "" if speed == "raw" else _AT_REFERENCE
    return metric.title[0].upper() + metric.title[1:] + suffix


def score_table(results: ReportData, *, further: Speed | None = None) -> Table:
    """Metrics of the times of jobs by workload and model; *further*: the others, at that speed."""
    columns = score_columns(results, further)
    table_rows = score_rows(results, columns)
    titles = [_title(results.metrics[name], "raw" if further else speed) for name, speed in columns]
    caption = "Error of the predicted body, of the job, and of the job as published"
    if further:
        caption = "Further metrics of the same times"
        caption += " at reference speed" if further == "reference" else ""
    shown = table(
        caption,
        ("Workload", "Model", "Time", "Cells", "Frame", *titles, "No answer"),
        "lllrr" + "r" * len(titles) + "r",
        table_rows,
        folded=bool(further),
    )
    notes = [_described(results, shown)]
    if not further:
        notes += [_TIMES_NOTE, "No answer: cells for which the model is not applicable."]
        if any(len(measurement.jobs_s) > 1 for measurement in results.measurements):
            notes.append(_SUM_NOTE)
    return replace(shown, note=" ".join(notes))


def _error_texts(results: ReportData, scores: Sequence[Score]) -> tuple[str, str, str]:
    """Number, mean and worst of the errors of *scores*."""
    worst = percent(max(score.relative_error for score in scores))
    return str(len(scores)), mean_error_text(results, scores), worst


def extrapolated_tables(results: ReportData) -> Iterator[Table]:
    """The cells outside of what was profiled, in a row of their own for each model, if any are."""
    rows = results.scores(results.answered, results.speed)
    outside = {row.cell for row in rows if row.range == "outside"}
    if not outside:
        return
    table_rows = []
    for model in results.scored_models:
        model_scores = [row for row in rows if row.model == model]
        within = [row for row in model_scores if row.cell not in outside]
        beyond = [row for row in model_scores if row.cell in outside]
        for name, scores in (("within the profile", within), ("extrapolated", beyond)):
            if scores:
                table_rows.append((model, name, *_error_texts(results, scores)))
    shown = table(
        f"Errors of the {ANSWERED[results.answered]} of extrapolated cells, and of the others",
        ("Model", "Cells", "Number", "Mean error", "Worst"),
        "llrrr",
        table_rows,
    )
    note = (
        "A cell is extrapolated where no profiling cell of its workload has one of its regimes, or"
        f" where it lies outside of their ranges. {_EXTRAPOLATED[results.asked.extrapolate]}"
    )
    yield replace(shown, note=note)


def mean_error_text(results: ReportData, chosen: Sequence[Score]) -> str:
    """The mean relative error of the scores *chosen*, with its interval, or the range of few."""
    mean = results.metrics["mape"].compute(chosen)
    if mean is None:
        return UNKNOWN
    label = "range " if interval_name(len(chosen)) == "range" else ""
    return share_with_interval(mean.value, mean.low, mean.high, label)


def score_columns(results: ReportData, further: Speed | None) -> list[tuple[str, Speed]]:
    """Metrics and speeds that are columns; *further*: metrics that are none, at that speed."""
    columns = list[tuple[str, Speed]]()
    for speed in results.speeds():
        for name, metric in results.metrics.items():
            is_shown = speed in metric.columns
            if further:
                is_shown = speed == further and not metric.columns
            if is_shown and has_column(results, name):
                columns.append((name, speed))
    return columns


def has_column(results: ReportData, metric_name: str) -> bool:
    """Whether a metric has a column: an optional one only where the run has a value of it."""
    if not results.metrics[metric_name].optional:
        return True
    return any(metric_name in summary.metrics for summary in results.score_book.summaries)


def score_rows(
    results: ReportData, columns: Sequence[tuple[str, Speed]]
) -> list[tuple[str | Value, ...]]:
    """A row for each workload, model and time of it that has a summary; last, those of all."""
    table_rows: list[tuple[str | Value, ...]] = []
    workloads = results.workloads
    for workload in (*workloads, "*") if len(workloads) > 1 else workloads:
        share = percent(frame_share(results, workload))
        for model, quantity in product(results.models, JOB_TIMES):
            summaries = {
                speed: results.summary(model, speed, workload, quantity) for _, speed in columns
            }
            summary = next(iter(summaries.values()), None)
            if summary is None:
                continue
            lacking = summary.not_applicable
            table_rows.append(
                (
                    *("all" if workload == "*" else workload, model, QUANTITIES[quantity]),
                    *(str(summary.cells), share),
                    *(metric_text(results, name, summaries[speed]) for name, speed in columns),
                    Value(str(lacking), "mark" if lacking else ""),
                )
            )
    return table_rows


def _described(results: ReportData, shown: Table) -> str:
    """What the metrics are that *shown* has a column of."""
    titles = {
        name: [_title(metric, speed) for speed in ("raw", "reference")]
        for name, metric in results.metrics.items()
    }
    notes = [
        f"{_title(metric)}: {metric.description}."
        for name, metric in results.metrics.items()
        if any(title in shown.columns for title in titles[name])
    ]
    if any(title.endswith(_AT_REFERENCE) for title in shown.columns):
        notes.append(_REFERENCE_NOTE)
    return " ".join(notes)


def frame_share(results: ReportData, workload: str) -> float | None:
    """Share of the measured job times of *workload* (``*``: all) that is frame, where known."""
    times_s = [
        (trial.raw_s["frame_s"], trial.raw_s["job_s"])
        for trial in results.measurements
        if "frame_s" in trial.raw_s and workload in ("*", trial.workload)
    ]
    frame_s, job_s = map(sum, zip(*times_s, strict=True)) if times_s else (0.0, 0.0)
    return frame_s / job_s if job_s > 0 else None


def brief_columns(results: ReportData) -> list[tuple[str, Speed]]:
    """Metrics of the first screen's table, each with its speed: the one that times have, if any."""
    speeds = results.speeds()
    columns = []
    for name, metric in results.metrics.items():
        if metric.brief and has_column(results, name):
            shown = [speed for speed in speeds if speed in metric.brief]
            columns += [(name, speed) for speed in shown or speeds]
    return columns


def overview_table(results: ReportData) -> Table | None:
    """Each model in one row: its mean error over all cells, and the verdict on it."""
    ranking = results.score_book.ranking()
    if ranking is None or not (ranking.models or ranking.left_out):
        return None
    columns = brief_columns(results)
    verdicts = model_verdicts(results, ranking)
    table_rows = []
    for model, verdict in verdicts.items():
        values = list[str]()
        for name, speed in columns:
            summary = results.summary(model, speed, quantity=ranking.quantity)
            values.append(metric_text(results, name, summary))
        table_rows.append((model, *values, verdict))
    titles = [_title(results.metrics[name], speed) for name, speed in columns]
    shown = table(
        f"Errors of the {ANSWERED[ranking.quantity]}, over {count(ranking.cells, 'cell')}",
        ("Model", *titles, "Verdict"),
        "l" + "r" * len(columns) + "l",
        table_rows,
    )
    return replace(shown, note=f"{_described(results, shown)} {_VERDICT_NOTE}")


def model_verdicts(results: ReportData, ranking: Ranking) -> dict[str, str]:
    """What is said of each model beside the one with the smallest error; last those left out."""
    verdicts = dict.fromkeys(ranking.models, "undecided")
    for model, pair in first_pairs(results, ranking).items():
        if model in verdicts:
            verdicts[model] = _VERDICTS[pair.verdict]
    if len(ranking.models) == 1:
        verdicts[ranking.models[0]] = "alone"
    elif len(ranking.nearest) == 1:
        verdicts[ranking.nearest[0]] = "nearest"
    left_out = dict.fromkeys(ranking.left_out, "not ranked")
    unlearnt = [model for model, why in ranking.left_out.items() if why == UNLEARNT]
    return verdicts | left_out | dict.fromkeys(unlearnt, f"not ranked: {UNLEARNT}")
