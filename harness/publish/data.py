"""The tables of a bundle, `data/*.csv`, and its claim, which `verify.py` makes again from them."""

from __future__ import annotations

import csv
import io
import math
import re

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, groupby
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from harness.base.documents.wording import by_number, count
from harness.base.errors import DataError
from harness.base.records.prediction import Prediction
from harness.base.records.question import BEST, Answer, Question
from harness.base.records.score import COMPARED, Ranking, ScoreBook
from harness.base.records.trial import Cell, Record
from harness.base.stats.sequential import LOOK_ERROR
from harness.base.text import excerpt, printable, without_formula
from harness.core.evaluate.flow import Evaluation
from harness.core.evaluate.provenance import blind_refusals, named_seals
from harness.core.experiment.grid import axis_values, label, limit_texts, varying
from harness.core.reports.answer import answer_sentence
from harness.core.store.anchors import measured_seal, order_words
from harness.observe.storage.opener import Opener
from harness.scoring.comparisons import FAMILY_ERROR
from harness.scoring.over_runs import best_over_runs, models_over_runs
from harness.scoring.score import LEVELS, predicted_times

CLAIM = "<!-- claim -->\n{}\n<!-- /claim -->"  # its place in README.md
Row = Mapping[str, Any]
_CLAIMED = ("body_s", "job_s", "published_s")  # of which errors have intervals
FIX = "get the bundle again, or make it again: harness publish RUN -o DIR"
_PREDICTED = ("cell", "model", "rung", "quantity", "refit", "repeat", "predicted", "low",
              "high", "low_90", "high_90", "in_sample_miss", "not_applicable")  # fmt: skip
_SCORED = (
    "cell model rung quantity speed predicted measured trials floor signed_error relative_error"
    " i_accu covered_80 covered_90"
)
_COMPARED = (
    "quantity speed better worse family cells difference low high chance verdict any_profile"
    " any_low any_high"
)
# Fields of records that have another name here.
_FIELDS = {"rung": "level", "predicted": "predicted_s", "measured": "measured_s",
           "i_accu": "i_accu_percent"}  # fmt: skip


def _is_shown(quantity: str, speed: str) -> bool:
    """Whether a quantity stands in the tables: times of tasks and phases as measured alone."""
    return LEVELS.get(quantity) == "job" or (quantity in LEVELS and speed == "raw")


def _derived(record: Record, columns: str) -> Row:
    """What follows from other numbers, to ten digits: tables are compared to nine."""
    row = {name: getattr(record, _FIELDS.get(name, name)) for name in columns.split()}
    numbers = {name: value for name, value in row.items() if isinstance(value, float)}
    return row | {name: float(f"{value:.10g}") for name, value in numbers.items()}


def hardware(cell: Cell) -> str:
    """What a cell ran on, in a few words: the cluster, and what its nodes are limited to."""
    cluster = cell.cluster
    texts = [cluster.provider, f"{cluster.workers} workers"]
    for node, limits in {"": cluster.node, **cluster.nodes}.items():
        node_suffix = f" of {node}" if node else ""
        texts += [text + node_suffix for text in limit_texts(limits)]
    return ", ".join(texts)


def hardware_of(evaluation: Evaluation) -> str:
    """On what the cells of a run were measured, each kind once."""
    return "; ".join(sorted({hardware(cell) for cell in evaluation.cells.values()}))


def runs(evaluation: Evaluation) -> Iterator[Row]:
    """One row: the run, whether it is blind, at which level its pairs are tested."""
    run = evaluation.run
    manifest = evaluation.run.read_manifest()
    score_book = run.read_scores()
    ends_s = [record.finished_s for record in run.trials().values()]
    yield {
        "id": run.id,
        "experiment": evaluation.experiment.name,
        "hardware": hardware_of(evaluation),
        "blind": not blind_refusals(run, evaluation.done.values()),
        "level": LOOK_ERROR if evaluation.experiment.is_until_decided else FAMILY_ERROR,
        **asked_columns(score_book.answer),
        **speed_columns(score_book),
        "schema": manifest.schema_version,
        "sealed": measured_seal(run),
        "order": order_words(run),
        "started_s": manifest.created_s,
        "ended_s": max(ends_s, default=manifest.created_s),
    }


def asked_columns(found: Answer | None) -> Row:
    """What was asked of a run, and when: as `verify.py` reads it."""
    if found is None:
        return {**question_columns(Question(how_far=BEST)), "asked": "afterwards"}
    return {**question_columns(found.question), "asked": found.asked}


def speed_columns(score_book: ScoreBook) -> Row:
    """At which speed verdicts are read, and the drift at whose ends they hold."""
    drift = score_book.drift
    numbers = (None, None, None) if drift is None else (drift.ratio, drift.low, drift.high)
    columns = ("drift", "drift_low", "drift_high")
    return {"read_at": score_book.speed, **dict(zip(columns, numbers, strict=True))}


def question_columns(question: Question) -> Row:
    """What *question* asks."""
    given = getattr(question, question.kind)
    words = given if isinstance(given, tuple) else (str(given),)
    return {
        "asks": " ".join((question.kind, *words)),
        "scope": question.scope,
        "extrapolate": question.extrapolate,
    }


def question_of_row(row: Mapping[str, str]) -> Question:
    """The question in a *row* of the table of runs; `DataError` where it holds none."""
    kind, *words = row["asks"].split(" ")
    extrapolate = {"true": True, "out": "out"}.get(row["extrapolate"], False)
    given: dict[str, Any] = {"scope": row["scope"], "extrapolate": extrapolate}
    try:
        given[kind] = tuple(words) if kind == "nearer" else " ".join(words)
        return Question(**given)
    except ValueError as error:
        what = f"'{excerpt(row['asks'])}' asks nothing that is known"
        raise DataError(what, where="data/runs.csv", fix=FIX) from error


def cells(evaluation: Evaluation) -> Iterator[Row]:
    """A row per cell: what it reads, on what it ran, whether it feeds profiles or is scored."""
    axes = varying(evaluation.cells.values())
    profiled = {trial.cell.id for trial in evaluation.plan if trial.profiling}
    ranges = {score.cell: score.range for score in evaluation.run.read_scores().scores}
    draw = evaluation.draw
    for key, cell in evaluation.cells.items():
        values = axis_values(cell)
        workload = cell.workload
        yield {
            "cell": key,
            "label": label(cell, axes),
            "workload": workload.name,
            "input": f"{workload.name} {workload.input_bytes}",
            "input_bytes": workload.input_bytes,
            "hardware": hardware(cell),
            "use": "profile" if key in profiled else "score",
            "range": ranges.get(key, ""),
            "settings": "; ".join(f"{axis}={values[axis]}" for axis in axes if axis in values),
            **({} if draw is None else {"weight": draw.weights.get(key)}),
        }


def trials(evaluation: Evaluation) -> Iterator[Row]:
    """
    A row per trial that has ended, failed ones too; *seal* is what its jobs were given.

    Of a published run that is the seal as it was measured, where its jobs name that of the copy.
    """
    copied_seal = evaluation.run.seal.sha256()
    for key, record in evaluation.run.trials().items():
        seals = {*named_seals(evaluation.run.raw(key)).values()} - {""}
        if copied_seal in seals:
            seals = seals - {copied_seal} | {measured_seal(evaluation.run)}
        yield {
            "trial": key,
            "cell": record.trial.cell.id,
            "use": record.trial.use,
            "repetition": record.trial.repetition,
            "state": record.state,
            "reason": record.reason,
            "disturbed": record.disturbed,
            "started_s": record.started_s,
            "finished_s": record.finished_s,
            "start": "".join(record.job_ids[:1]).removeprefix("job_").partition("_")[0],
            "seal": " ".join(sorted(seals)),
        }


def measurements(evaluation: Evaluation) -> Iterator[Row]:
    """A row per scored trial, quantity and speed, and of those by which the noise is known."""
    score_book = evaluation.run.read_scores()
    for measurement in (*score_book.measurements, *score_book.profiling):
        on = hardware(evaluation.cells[measurement.cell])
        row = {
            "cell": measurement.cell,
            "workload": measurement.workload,
            "hardware": on,
            "trial": measurement.trial,
        }
        for speed, times_s in (("raw", measurement.raw_s), ("reference", measurement.reference_s)):
            for quantity, time_s in times_s.items():
                if _is_shown(quantity, speed):
                    what = {"quantity": quantity, "speed": speed, "value": time_s}
                    yield {**row, **what, "disturbed": measurement.disturbed}


def predictions(evaluation: Evaluation) -> Iterator[Row]:
    """A row per model, cell and quantity; more for refits and repeats; one without an answer."""
    for prediction in evaluation.predictions:
        row = dict.fromkeys(_PREDICTED) | {"cell": prediction.cell, "model": prediction.model}
        if prediction.not_applicable:
            yield {**row, "not_applicable": "; ".join(prediction.not_applicable)}
        for quantity, (rung, time_s) in predicted_times(prediction).items():
            if time_s is not None and quantity in LEVELS:
                row |= {"rung": rung, "quantity": quantity}
                yield {**row, "predicted": time_s, **_beside_a_time(prediction, quantity)}
                yield from ({**row, **other} for other in _other_times(prediction, quantity))


def _beside_a_time(prediction: Prediction, quantity: str) -> Row:
    """What stands beside the predicted time of a *quantity*: intervals, and what was missed."""
    intervals = prediction.intervals.get(quantity, {})
    low, high = intervals.get("80") or (None, None)
    low_90, high_90 = intervals.get("90") or (None, None)
    columns = {"low": low, "high": high, "low_90": low_90, "high_90": high_90}
    if quantity == COMPARED:
        columns["in_sample_miss"] = prediction.in_sample_miss
    return columns


def _other_times(prediction: Prediction, quantity: str) -> Iterator[Row]:
    """Times of a *quantity* by refits of the profile, and by its repeats."""
    for number, refit_s in enumerate(prediction.refits.get(quantity, ())):
        yield {"refit": number, "predicted": refit_s}
    if quantity == COMPARED:
        for number, repeat_s in enumerate(prediction.repeats_s):
            yield {"repeat": number, "predicted": repeat_s}


def scores(evaluation: Evaluation) -> Iterator[Row]:
    """A row per model, cell, quantity and speed."""
    for score in evaluation.run.read_scores().scores:
        if _is_shown(score.quantity, score.speed):
            yield _derived(score, _SCORED)


def comparisons(evaluation: Evaluation) -> Iterator[Row]:
    """A row per pair of models, quantity and speed."""
    for comparison in evaluation.run.read_scores().comparisons:
        if _is_shown(comparison.quantity, comparison.speed):
            yield _derived(comparison, _COMPARED)


def intervals(evaluation: Evaluation) -> Iterator[Row]:
    """A row per model, workload, time of jobs, speed and metric with an interval or a range."""
    for summary in evaluation.run.read_scores().summaries:
        for metric, number in summary.metrics.items():
            if number.low is not None and summary.quantity in _CLAIMED:
                row = {**_derived(summary, "workload model rung quantity speed"), "metric": metric}
                yield {**row, **_derived(number, "value low high"), "cells": summary.cells}


TABLES: dict[str, Callable[[Evaluation], Iterator[Row]]] = {
    table.__name__: table
    for table in (runs, cells, trials, measurements, predictions, scores, comparisons, intervals)
}


def write_tables(
    evaluations: Sequence[Evaluation], folder: Path, clean: Callable[[str], str]
) -> None:
    """Write each table of `TABLES` into *folder*; *clean* replaces what is not for the public."""
    folder.mkdir()
    in_order = sorted(evaluations, key=lambda evaluation: evaluation.run.id)
    for name, rows_of in TABLES.items():
        rows = list[Row]()
        for number, evaluation in enumerate(in_order, 1):
            rows += [{"run": number, **row} for row in rows_of(evaluation)]
        columns = [*dict.fromkeys(chain.from_iterable(rows))]
        lines = sorted([table_field(row.get(column), clean) for column in columns] for row in rows)
        with (folder / f"{name}.csv").open("x", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([columns, *lines])


def table_field(value: object, clean: Callable[[str], str]) -> str:
    """A value as a table has it: cleaned, and safe in a spreadsheet, where it is a text."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return without_formula(printable(clean(value)))
    return repr(value)


def read_table(bundle: Opener, name: str) -> list[dict[str, str]]:
    """Rows of ``data/NAME.csv`` of *bundle*, by columns; `DataError` where it is not a table."""
    path = bundle.root / "data" / f"{name}.csv"
    content = bundle.read(path, FIX)
    try:
        header, *lines = csv.reader(io.StringIO(content.decode(), newline=""), strict=True)
        return [dict(zip(header, line, strict=True)) for line in lines]
    except (ValueError, csv.Error) as error:
        what = f"it cannot be read: {excerpt(repr(error))}"
        raise DataError(what, where=str(path), fix=FIX) from error


class Claim(NamedTuple):
    """
    A *title*, the *date* (ISO) of the measurements, and the *lines* about each run.

    *labels* are those that the rules give its bundle.
    """

    title: str
    date: str
    lines: tuple[str, ...]
    labels: tuple[str, ...] = ()

    @property
    def paragraphs(self) -> list[str]:
        """All that is said of each run, and of runs together, in a paragraph each."""
        return paragraphs_of(self.lines)

    @property
    def abstract(self) -> str:
        """All of it in one paragraph, behind its labels."""
        marked = f"Labels: {', '.join(self.labels)}. " if self.labels else ""
        return f"{marked}{' '.join(self.paragraphs)}"


def paragraphs_of(claim_lines: Iterable[str]) -> list[str]:
    """The lines of a claim, each of its parts as one paragraph."""
    paragraphs = list[str]()
    for line in claim_lines:
        if line.startswith("- ") or not paragraphs:
            paragraphs.append(line.removeprefix("- ").strip())
        else:
            paragraphs[-1] += f" {line.strip()}"
    return paragraphs


def make_claim(evaluations: Sequence[Evaluation], end_s: float | None = None) -> Claim:
    """Claim of a bundle of *evaluations*, whose date is that of *end_s*, or of the last trial."""
    names = dict.fromkeys(evaluation.experiment.name for evaluation in evaluations)
    by_name = sorted(
        evaluations, key=lambda evaluation: (evaluation.experiment.name, evaluation.run.id)
    )
    lines = list[str]()
    for _, of_name in groupby(by_name, lambda evaluation: evaluation.experiment.name):
        runs = [*of_name]
        lines += [*chain.from_iterable(map(run_lines, runs)), *lines_over_runs(runs)]
    title = f"Performance models of Hadoop MapReduce compared: {', '.join(names)}"
    if end_s is None:
        trials = (evaluation.run.trials().values() for evaluation in evaluations)
        end_s = max(record.finished_s for record in chain.from_iterable(trials))
    return Claim(title, datetime.fromtimestamp(end_s, UTC).date().isoformat(), tuple(lines))


def lines_over_runs(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """Of several runs of an experiment a line: how far the best model is off over all of them."""
    rankings = [evaluation.run.read_scores().ranking() for evaluation in evaluations]
    if len(rankings) < 2 or None in rankings:
        return
    rows = models_over_runs([ranking for ranking in rankings if ranking is not None])
    if rows:
        head = f"- {evaluations[0].experiment.name} over {len(rankings)} runs:"
        yield f"{head} {best_over_runs(rows)}"


def run_lines(evaluation: Evaluation) -> list[str]:
    """Four lines about one run; the form is fixed (docs/rules.md), as it is computed again."""
    run = evaluation.run
    score_book = run.read_scores()
    ranking = score_book.ranking()
    first = "no model can be ranked."
    noise = "not known."
    if ranking is not None and (ranking.models or ranking.left_out):
        if score_book.answer is not None:
            first = answer_sentence(score_book.answer)
        else:
            first = nearest_sentence(ranking)
    if ranking is not None and ranking.models:
        floors = known_floors(score_book, ranking)
        noise = f"{100 * median(floors):.1f} % (median)." if floors else noise
    order = "  The predictions were sealed before what they are scored on was measured:"
    order += f" {order_words(run)}."
    if blind_refusals(run, evaluation.done.values()):
        order = "  The predictions were sealed after the measurement: their models could have been"
        order += " chosen by it."
    reach = f"  It holds for {hardware_of(evaluation)} and these inputs; nothing is said of other"
    return [
        f"- {evaluation.experiment.name} ({run.id}): {first}",
        basis_sentence(evaluation, noise),
        order,
        f"{reach} systems.",
    ]


def basis_sentence(evaluation: Evaluation, noise: str) -> str:
    """On how many trials the claim rests, and what *noise* their means have."""
    done = [record for record in evaluation.done.values() if record.trial.is_scored]
    scored = {trial.cell.id for trial in evaluation.plan if trial.is_scored}
    disturbed = sum(bool(record.disturbed) for record in done)
    failed = sum(record.state != "done" for record in evaluation.run.trials().values())
    verb = by_number(disturbed, "is", "are")
    basis = f"  It rests on {count(len(done), 'trial')} of {count(len(scored), 'scored cell')}, of"
    basis += f" which {disturbed} {verb} disturbed and {failed} failed; the noise of a cell's mean"
    return f"{basis} is {noise}"


def in_present_words(line: str) -> str:
    """
    *line* of a claim as it is written now: earlier releases wrote the plural of one, too.

    >>> in_present_words("1 trials of 1 scored cells, of which 1 are disturbed")
    '1 trial of 1 scored cell, of which 1 is disturbed'
    """
    line = re.sub(r"\b1 (trial|cell|scored cell)s\b", r"1 \1", line)
    line = line.replace("of which 1 are", "of which 1 is")
    return line.replace("is not known (median).", "is not known.")


def nearest_sentence(ranking: Ranking) -> str:
    """Which models of a ranking are nearest, and how far they are off: of older scores."""
    errors = dict(zip(ranking.models, ranking.errors, strict=True))
    lowest, highest = (f"{100 * errors[ranking.nearest[place]]:.1f} %" for place in (0, -1))
    over = f"off on average over {count(ranking.cells, 'cell')}"
    *models, last = ranking.nearest
    if not models:
        return f"{last} is nearest by {ranking.quantity}, {lowest} {over}."
    sentence = f"no model is nearest by {ranking.quantity}: {', '.join(models)} and {last},"
    return f"{sentence} {lowest} to {highest} {over}, cannot be told apart."


def known_floors(score_book: ScoreBook, ranking: Ranking) -> list[float]:
    """The noise floors that are known, of the cells that all models of a ranking answer."""
    floors = defaultdict[str, dict[str, float | None]](dict)
    for score in score_book.scores:
        is_ranked = (score.quantity, score.speed) == (ranking.quantity, ranking.speed)
        if is_ranked and score.model in ranking.models:
            floors[score.model][score.cell] = score.floor
    common = set.intersection(*map(set, floors.values()))
    cell_floors = [floors[ranking.models[0]][cell] for cell in common]
    return [floor for floor in cell_floors if floor is not None]
