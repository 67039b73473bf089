"""The tables of a bundle: `data/*.csv`, from which `verify.py` computes the claim once more."""

from __future__ import annotations

import csv
import math

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.api.export import FORMULA
from harness.evaluate.flow import Evaluation
from harness.evaluate.provenance import blind_refusals, named_seals
from harness.experiment.grid import axis_values, label, readable, varying
from harness.records.trial import Cell
from harness.scoring.comparisons import FAMILY_ERROR
from harness.scoring.score import predicted_times
from harness.stats.sequential import LOOK_ERROR
from harness.text import printable

Row = Mapping[str, Any]
_INTERVALS = {"80": ("low", "high"), "90": ("low_90", "high_90")}


def hardware(cell: Cell) -> str:
    """What a cell ran on, in a few words: the cluster, and what its nodes are limited to."""
    cluster = cell.cluster
    texts = [cluster.provider, f"{cluster.workers} workers"]
    named = {"": cluster.node, **cluster.nodes}
    for node, limits in named.items():
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
        "run": run.id,
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
    use = {trial.cell.id: trial.profiling for trial in evaluation.plan}
    for key, cell in evaluation.cells.items():
        values = axis_values(cell)
        yield {
            "run": evaluation.run.id,
            "cell": key,
            "label": label(cell, axes),
            "workload": cell.workload.name,
            "input": f"{cell.workload.name} {cell.workload.input_bytes}",
            "input_bytes": cell.workload.input_bytes,
            "hardware": hardware(cell),
            "use": "profile" if use[key] else "score",
            "settings": "; ".join(f"{axis}={values[axis]}" for axis in axes if axis in values),
        }


def trials(evaluation: Evaluation) -> Iterator[Row]:
    """A row per trial that has ended, failed ones too; *seal* is what its jobs were given."""
    for key, record in evaluation.run.trials().items():
        trial = record.trial
        yield {
            "run": evaluation.run.id,
            "trial": key,
            "cell": trial.cell.id,
            "use": "profile" if trial.profiling else "score",
            "repetition": trial.repetition,
            "state": record.state,
            "reason": record.reason,
            "disturbed": record.disturbed,
            "started_s": record.started_s,
            "finished_s": record.finished_s,
            "start": "".join(record.job_ids[:1]).removeprefix("job_").partition("_")[0],
            "seal": " ".join(sorted({*named_seals(evaluation.run.raw(key)).values()} - {""})),
        }


def measurements(evaluation: Evaluation) -> Iterator[Row]:
    """A row per scored trial, quantity and speed."""
    for each in evaluation.run.read_scores().measurements:
        row = {
            "run": evaluation.run.id,
            "cell": each.cell,
            "workload": each.workload,
            "hardware": hardware(evaluation.cells[each.cell]),
            "trial": each.trial,
        }
        for speed, times_s in (("raw", each.raw_s), ("reference", each.reference_s)):
            for quantity, time_s in times_s.items():
                what = {"quantity": quantity, "speed": speed, "value": time_s}
                yield {**row, **what, "disturbed": each.disturbed}


def predictions(evaluation: Evaluation) -> Iterator[Row]:
    """A row per model, cell and quantity, one more for each refit, one where there is no answer."""
    for each in evaluation.predictions:
        row: dict[str, Any] = dict.fromkeys(
            ("run", "cell", "model", "rung", "quantity", "refit", "predicted",
             *(end for ends in _INTERVALS.values() for end in ends), "not_applicable")
        )  # fmt: skip
        row |= {"run": evaluation.run.id, "cell": each.cell, "model": each.model}
        if each.not_applicable:
            yield {**row, "not_applicable": "; ".join(each.not_applicable)}
        for quantity, (rung, time_s) in predicted_times(each).items():
            if time_s is None:
                continue
            named = {**row, "rung": rung, "quantity": quantity}
            ends: dict[str, float] = {}
            for percent, names in _INTERVALS.items():
                known = each.intervals.get(quantity, {}).get(percent)
                ends |= dict(zip(names, known or (), strict=False))
            yield {**named, "predicted": time_s, **ends}
            for number, again_s in enumerate(each.refits.get(quantity, ())):
                yield {**named, "refit": number, "predicted": again_s}


def scores(evaluation: Evaluation) -> Iterator[Row]:
    """A row per model, cell, quantity and speed."""
    for each in evaluation.run.read_scores().scores:
        yield {
            "run": evaluation.run.id,
            "cell": each.cell,
            "model": each.model,
            "rung": each.level,
            "quantity": each.quantity,
            "speed": each.speed,
            "predicted": each.predicted_s,
            "measured": each.measured_s,
            "trials": each.trials,
            "floor": each.floor,
            "signed_error": each.signed_error,
            "relative_error": each.relative_error,
            "i_accu": each.i_accu_percent,
            "covered_80": each.covered_80,
            "covered_90": each.covered_90,
        }


def comparisons(evaluation: Evaluation) -> Iterator[Row]:
    """A row per pair of models, quantity and speed."""
    names = ("quantity", "speed", "better", "worse", "cells", "difference", "low", "high")
    for each in evaluation.run.read_scores().comparisons:
        row = {name: getattr(each, name) for name in (*names, "chance", "verdict")}
        yield {"run": evaluation.run.id, **row}


def intervals(evaluation: Evaluation) -> Iterator[Row]:
    """A row per model, workload, quantity, speed and metric, with its interval where it has one."""
    for each in evaluation.run.read_scores().summaries:
        for metric, number in each.metrics.items():
            yield {
                "run": evaluation.run.id,
                "workload": each.workload,
                "model": each.model,
                "rung": each.level,
                "quantity": each.quantity,
                "speed": each.speed,
                "metric": metric,
                **number.model_dump(),
                "cells": each.cells,
            }


TABLES: dict[str, Callable[[Evaluation], Iterator[Row]]] = {
    "runs": runs,
    "cells": cells,
    "trials": trials,
    "measurements": measurements,
    "predictions": predictions,
    "scores": scores,
    "comparisons": comparisons,
    "intervals": intervals,
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
    for name, rows_of in TABLES.items():
        rows = [row for evaluation in evaluations for row in rows_of(evaluation)]
        columns = [*dict.fromkeys(column for row in rows for column in row)]
        lines = sorted([text_of(row.get(column)) for column in columns] for row in rows)
        with (folder / f"{name}.csv").open("x", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([columns, *lines])
