"""The report for scripts: everything that was computed, and nothing formatted."""

from __future__ import annotations

import json
import math

from dataclasses import asdict
from typing import Any

from harness.records.trial import TrialRecord
from harness.reports.answer import answer
from harness.reports.data import JobInside, ReportData, failed, in_order, insides, label
from harness.reports.inside import bars
from harness.reports.overhead import overheads
from harness.reports.vet import vet_document

SCHEMA_VERSION = 1


def render_json(data: ReportData) -> str:
    """
    One JSON document: question, answer, summaries, scores with floors, failed trials, manifest.

    Numbers that are not finite become `null`, as JSON has no word for them.
    """
    document = _finite(_document(data))
    return json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n"


def _document(data: ReportData) -> dict[str, Any]:
    answered = answer(data)
    return {
        "schema_version": SCHEMA_VERSION,
        "experiment": data.experiment.model_dump(mode="json"),
        "question": data.experiment.question,
        "answer": {"headline": answered.headline, "details": list(answered.details)},
        "cells": {
            cell: {"label": name, **spec.model_dump(mode="json")}
            for cell, (spec, name) in data.cells.items()
        },
        "summaries": [s.model_dump(mode="json") for s in data.book.summaries],
        "comparisons": [c.model_dump(mode="json") for c in data.book.comparisons],
        "decompositions": [
            {"label": label(data, d.cell), **d.model_dump(mode="json")}
            for d in data.book.decompositions
        ],
        "scores": [
            {"label": label(data, s.cell), **s.model_dump(mode="json")} for s in data.book.scores
        ],
        "measurements": [m.model_dump(mode="json") for m in data.measurements],
        "predictions": [
            p.model_dump(mode="json", exclude={"timeline", "dataflow"}) for p in data.predictions
        ],
        "profiles": {name: p.model_dump(mode="json") for name, p in data.profiles.items()},
        "inside": [
            _inside(record, inside)
            for (record, _), (_, inside) in zip(data.timelines, insides(data), strict=True)
        ],
        "vet": vet_document(data),
        "tracer_overhead": [o.model_dump(mode="json") for o in overheads(data)],
        "failed_trials": [_failed(data, r.trial.id) for r in failed(data)],
        "trials": [_trial(data, n, r) for n, r in enumerate(in_order(data), start=1)],
        "manifest": dict(data.manifest),
    }


def _inside(record: TrialRecord, inside: JobInside) -> dict[str, Any]:
    """Where the time of one job's tasks went, means; sampled parts are named."""
    return {
        "trial": record.trial.id,
        "workload": record.trial.cell.workload.name,
        "parts": [
            {**asdict(bar), "estimated": sorted(bar.estimated), "total_s": bar.total_s}
            for bar in bars(inside.parts)
        ],
        "logs_beside_spans": [asdict(d) for d in inside.differences],
    }


def _failed(data: ReportData, trial: str) -> dict[str, Any]:
    r = next(r for r in data.trials if r.trial.id == trial)
    return {
        "id": trial,
        "cell": r.trial.cell.id,
        "label": label(data, r.trial.cell.id),
        "state": r.state,
        "reason": r.reason,
        "evidence": data.evidence.get(trial),
        "job_ids": list(r.job_ids),
    }


def _trial(data: ReportData, order: int, r: Any) -> dict[str, Any]:
    return {
        "order": order,
        "id": r.trial.id,
        "cell": r.trial.cell.id,
        "repetition": r.trial.repetition,
        "profiling": r.trial.profiling,
        "state": r.state,
        "job_ids": list(r.job_ids),
        "started_s": r.started_s,
        "finished_s": r.finished_s,
        "disturbed": r.disturbed,
        "machine": dict(data.machine.get(r.trial.id, {})),
    }


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    return str(value)
