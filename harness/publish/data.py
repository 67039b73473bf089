"""The tables of a bundle: `data/*.csv`, from which `verify.py` computes the claim once more."""

from __future__ import annotations

import csv
import io
import math

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from harness.api.export import FORMULA
from harness.errors import DataError
from harness.evaluate.flow import Evaluation
from harness.evaluate.provenance import blind_refusals, named_seals
from harness.experiment.grid import axis_values, label, readable, varying
from harness.records.trial import Cell
from harness.scoring.comparisons import FAMILY_ERROR
from harness.scoring.score import LEVELS, predicted_times
from harness.stats.sequential import LOOK_ERROR
from harness.store.opener import Opener
from harness.text import excerpt, printable

Row = Mapping[str, Any]
_CLAIMED = ("body_s", "job_s", "published_s")  # of which errors have intervals
FIX = "get the bundle again, or make it again: harness publish RUN -o DIR"
_PREDICTED = ("cell", "model", "rung", "quantity", "refit", "predicted", "low", "high", "low_90",
              "high_90", "not_applicable")  # fmt: skip
# Fields of scores by the names that they have here.
_SCORED = {"cell": "cell", "model": "model", "rung": "level", "quantity": "quantity",
           "speed": "speed", "predicted": "predicted_s", "measured": "measured_s",
           "trials": "trials", "floor": "floor", "signed_error": "signed_error",
           "relative_error": "relative_error", "i_accu": "i_accu_percent",
           "covered_80": "covered_80", "covered_90": "covered_90"}  # fmt: skip
_COMPARED = ("quantity", "speed", "better", "worse", "cells", "difference", "low", "high",
             "chance", "verdict")  # fmt: skip


def _is_shown(quantity: str, speed: str) -> bool:
    """Whether a quantity stands in the tables: times of tasks and phases as measured alone."""
    return LEVELS.get(quantity) == "job" or (quantity in LEVELS and speed == "raw")


def _rounded(value: Any) -> Any:
    """A number that follows from others to ten digits: tables are compared to nine."""
    return float(f"{value:.10g}") if isinstance(value, float) else value


def hardware(cell: Cell) -> str:
    """What a cell ran on, in a few words: the cluster, and what its nodes are limited to."""
    cluster = cell.cluster
    texts = [cluster.provider, f"{cluster.workers} workers"]
    for node, limits in {"": cluster.node, **cluster.nodes}.items():
        for name, value in limits.limits().items():
            if value is not None:
                axis = name.removesuffix("_bytes_per_s").removesuffix("_bytes")
                texts.append(f"{axis} {readable(axis, value)}{f' of {node}' if node else ''}")
    return ", ".join(texts)


def hardware_of(evaluation: Evaluation) -> str:
    """On what the cells of a run were measured, each kind once."""
    return "; ".join(sorted({hardware(cell) for cell in evaluation.cells.values()}))


def runs(evaluation: Evaluation) -> Iterator[Row]:
    """One row: the run, whether it is blind, at which level its pairs are tested."""
    run, manifest = evaluation.run, evaluation.run.read_manifest()
    ends_s = [record.finished_s for record in run.trials().values()]
    yield {
        "id": run.id,
        "experiment": evaluation.experiment.name,
        "hardware": hardware_of(evaluation),
        "blind": not blind_refusals(run, evaluation.done.values()),
        "level": LOOK_ERROR if evaluation.experiment.is_until_decided else FAMILY_ERROR,
        "schema": manifest.schema_version,
        "sealed": run.seal.sha256(),
        "started_s": manifest.created_s,
        "ended_s": max(ends_s, default=manifest.created_s),
    }


def cells(evaluation: Evaluation) -> Iterator[Row]:
    """A row per cell: what it reads, on what it ran, whether it feeds profiles or is scored."""
    axes = varying(evaluation.cells.values())
    is_profiled = {trial.cell.id: trial.profiling for trial in evaluation.plan}
    for key, cell in evaluation.cells.items():
        values, workload = axis_values(cell), cell.workload
        yield {
            "cell": key,
            "label": label(cell, axes),
            "workload": workload.name,
            "input": f"{workload.name} {workload.input_bytes}",
            "input_bytes": workload.input_bytes,
            "hardware": hardware(cell),
            "use": "profile" if is_profiled[key] else "score",
            "settings": "; ".join(f"{axis}={values[axis]}" for axis in axes if axis in values),
        }


def trials(evaluation: Evaluation) -> Iterator[Row]:
    """A row per trial that has ended, failed ones too; *seal* is what its jobs were given."""
    for key, record in evaluation.run.trials().items():
        seals = {*named_seals(evaluation.run.raw(key)).values()} - {""}
        yield {
            "trial": key,
            "cell": record.trial.cell.id,
            "use": "profile" if record.trial.profiling else "score",
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
    """A row per scored trial, quantity and speed."""
    for each in evaluation.run.read_scores().measurements:
        row = {
            "cell": each.cell,
            "workload": each.workload,
            "hardware": hardware(evaluation.cells[each.cell]),
            "trial": each.trial,
        }
        for speed, times_s in (("raw", each.raw_s), ("reference", each.reference_s)):
            for quantity in filter(partial(_is_shown, speed=speed), times_s):
                time_s = times_s[quantity]
                what = {"quantity": quantity, "speed": speed, "value": time_s}
                yield {**row, **what, "disturbed": each.disturbed}


def predictions(evaluation: Evaluation) -> Iterator[Row]:
    """A row per model, cell and quantity, one more for each refit, one where there is no answer."""
    for each in evaluation.predictions:
        row = dict.fromkeys(_PREDICTED) | {"cell": each.cell, "model": each.model}
        if each.not_applicable:
            yield {**row, "not_applicable": "; ".join(each.not_applicable)}
        for quantity, (rung, time_s) in predicted_times(each).items():
            if time_s is None or quantity not in LEVELS:
                continue
            row |= {"rung": rung, "quantity": quantity}
            intervals = each.intervals.get(quantity, {})
            low, high = intervals.get("80") or (None, None)
            low_90, high_90 = intervals.get("90") or (None, None)
            ends = {"low": low, "high": high, "low_90": low_90, "high_90": high_90}
            yield {**row, "predicted": time_s, **ends}
            for number, again_s in enumerate(each.refits.get(quantity, ())):
                yield {**row, "refit": number, "predicted": again_s}


def scores(evaluation: Evaluation) -> Iterator[Row]:
    """A row per model, cell, quantity and speed."""
    for each in evaluation.run.read_scores().scores:
        if _is_shown(each.quantity, each.speed):
            yield {column: _rounded(getattr(each, name)) for column, name in _SCORED.items()}


def comparisons(evaluation: Evaluation) -> Iterator[Row]:
    """A row per pair of models, quantity and speed."""
    for each in evaluation.run.read_scores().comparisons:
        if _is_shown(each.quantity, each.speed):
            yield {name: _rounded(getattr(each, name)) for name in _COMPARED}


def intervals(evaluation: Evaluation) -> Iterator[Row]:
    """A row per model, workload, time of jobs, speed and metric with an interval or a range."""
    for each in evaluation.run.read_scores().summaries:
        for metric, number in each.metrics.items():
            if number.low is None or each.quantity not in _CLAIMED:
                continue
            yield {
                "workload": each.workload,
                "model": each.model,
                "rung": each.level,
                "quantity": each.quantity,
                "speed": each.speed,
                "metric": metric,
                **{end: _rounded(value) for end, value in number.model_dump().items()},
                "cells": each.cells,
            }


TABLES: dict[str, Callable[[Evaluation], Iterator[Row]]] = {
    table.__name__: table
    for table in (runs, cells, trials, measurements, predictions, scores, comparisons, intervals)
}


def write_tables(
    evaluations: Sequence[Evaluation], folder: Path, clean: Callable[[str], str]
) -> None:
    """Write each table of `TABLES` into *folder*; *clean* replaces what is not for the public."""

    def text_of(value: object) -> str:
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return ""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str):
            text = printable(clean(value))
            return f"'{text}" if text.startswith(FORMULA) else text
        return repr(value)

    folder.mkdir()
    in_order = sorted(evaluations, key=lambda evaluation: evaluation.run.id)
    for name, rows_of in TABLES.items():
        rows = [
            {"run": number, **row}
            for number, evaluation in enumerate(in_order, 1)
            for row in rows_of(evaluation)
        ]
        columns = [*dict.fromkeys(column for row in rows for column in row)]
        lines = sorted([text_of(row.get(column)) for column in columns] for row in rows)
        with (folder / f"{name}.csv").open("x", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([columns, *lines])


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
