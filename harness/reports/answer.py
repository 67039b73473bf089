"""
The answer to an experiment's question, in sentences.

The question of every experiment with predictions is how far the models are off, and which is
nearest.  A model is called nearer than another only where the paired comparison of the two lies
outside the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from harness.records.score import Comparison, Speed, Summary
from harness.records.trace import CPU
from harness.reports.data import (
    ReportData,
    disturbed,
    failed,
    models,
    scores,
    summary,
    workloads,
)
from harness.reports.wording import count, floor_percent, listing, percent

SPEEDS: tuple[Speed, Speed] = ("raw", "reference")


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer in one sentence, and what belongs to it."""

    headline: str
    details: tuple[str, ...]


def answer(data: ReportData) -> Answer:
    """Say what the scores of the job time show; where there are none, what is missing."""
    ranked = ranking(data, "raw")
    if not ranked:
        return Answer(_missing(data), tuple(_caveats(data)))
    details = [
        *_differences(data, ranked),
        _at_reference(data, ranked),
        *_directions(ranked),
        *_by_workload(data, ranked[0].model),
        _noise(data, ranked),
        *_caveats(data),
    ]
    return Answer(_headline(data, ranked), tuple(d for d in details if d))


def ranking(data: ReportData, speed: Speed) -> list[Summary]:
    """Summaries of the job time over all workloads, smallest mean error first."""
    found = (summary(data, model, speed=speed) for model in models(data))
    return sorted((s for s in found if s is not None and s.cells), key=lambda s: (s.mape, s.model))


def error_text(s: Summary, label: str = "") -> str:
    """Mean error with its interval, as in ``10 % (8 to 11 %)``; *label* names the interval."""
    half = (s.mape_high - s.mape_low) / 2 or None
    if half is None:
        return percent(s.mape)
    low = percent(s.mape_low, half).removesuffix(" %")
    return f"{percent(s.mape, half)} ({label}{low} to {percent(s.mape_high, half)})"


def comparison(data: ReportData, a: str, b: str, speed: Speed) -> Comparison | None:
    """Find the paired comparison of two models' job times; `None` where it was not made."""
    for c in data.book.comparisons:
        if {c.better, c.worse} == {a, b} and (c.quantity, c.speed) == ("job_s", speed):
            return c
    return None


def nearest(data: ReportData, ranked: Sequence[Summary], speed: Speed) -> tuple[str, ...]:
    """Models that nothing proves to be farther off than the one with the smallest error."""
    best = ranked[0].model

    def told_apart(model: str) -> bool:
        c = comparison(data, best, model, speed)
        return c is not None and c.outside_noise and c.better == best

    return tuple(s.model for s in ranked if s.model == best or not told_apart(s.model))


def _headline(data: ReportData, ranked: Sequence[Summary]) -> str:
    first, near = ranked[0], nearest(data, ranked, "raw")
    cells = count(first.cells, "cell")
    error = error_text(first, "95 % interval ")
    if len(ranked) == 1:
        return f"{first.model} is off by {error} on average over the job times of {cells}."
    if len(near) == 1:
        return (
            f"{first.model} is nearest: over {cells} its predicted job times are off by {error}"
            " on average."
        )
    errors = listing([f"{error_text(s)} for {s.model}" for s in ranked if s.model in near])
    if any(comparison(data, first.model, model, "raw") is None for model in near[1:]):
        return (
            f"The mean error of the job time over {cells} is {errors}; whether the difference lies"
            " outside the noise is not known."
        )
    return (
        f"No model is nearest: over {cells} the mean error of the job time is {errors},"
        " and the difference lies inside the noise."
    )


def _differences(data: ReportData, ranked: Sequence[Summary]) -> list[str]:
    best, *others = ranked
    return [
        f"{other.model} is off by {error_text(other)}."
        f" {_difference(comparison(data, best.model, other.model, 'raw'), best.model)}"
        for other in others
    ]


def _difference(c: Comparison | None, best: str) -> str:
    if c is None:
        return f"It was not compared with {best} cell by cell."
    low, high = sorted((-c.low, -c.high))
    half = (high - low) / 2 or None
    size, low_text, high_text = (
        percent(v, half).removesuffix(" %") for v in (abs(c.difference), low, high)
    )
    interval = f"{size} points (95 % interval {low_text} to {high_text})"
    if c.outside_noise:
        return f"Cell by cell, the error of {c.better} is smaller by {interval}: outside the noise."
    return f"Cell by cell, its error and that of {best} differ by {interval}: inside the noise."


def _at_reference(data: ReportData, raw: Sequence[Summary]) -> str:
    ranked = ranking(data, "reference")
    if not ranked:
        return ""
    errors = listing([f"{s.model} is off by {error_text(s)}" for s in ranked])
    near = nearest(data, ranked, "reference")
    if set(near) == set(nearest(data, raw, "raw")):
        verdict = "the verdict is the same" if len(ranked) > 1 else ""
    else:
        told = (
            f"{near[0]} is nearest" if len(near) == 1 else f"{listing(near)} cannot be told apart"
        )
        verdict = f"the verdict is another, {told}"
    return f"At reference speed {verdict}{': ' if verdict else ''}{errors}."


def _directions(ranked: Sequence[Summary]) -> list[str]:
    """Which way the models err; those that err the same way share a sentence."""
    ways: dict[str, list[str]] = {}
    for s in ranked:
        half = (s.mape_high - s.mape_low) / 2 or None
        size = percent(abs(s.mean_signed_error), half)
        if abs(s.mean_signed_error) < s.mape / 2:
            way = "err in both directions"
            size = percent(s.mean_signed_error, half, signed=True)
        else:
            way = f"are too {'short' if s.mean_signed_error < 0 else 'long'}"
        ways.setdefault(way, []).append(f"by {size} with {s.model}")
    return [f"Predicted job times {way}: on average {listing(who)}." for way, who in ways.items()]


def _by_workload(data: ReportData, model: str) -> list[str]:
    found = [(w, summary(data, model, workload=w, speed="raw")) for w in workloads(data)]
    errors = [f"{w} {error_text(s)}" for w, s in found if s is not None and s.cells]
    return [f"By workload, {model} is off by: {listing(errors)}."] if len(errors) > 1 else []


def _noise(data: ReportData, ranked: Sequence[Summary]) -> str:
    floors = {s.cell: s.floor for s in scores(data, "job_s", "raw") if s.floor is not None}
    corrected = {s.cell: s.floor for s in scores(data, "job_s", "reference") if s.floor is not None}
    if not floors:
        return "The noise floor is not known: no scored cell was measured more than once."
    within = [
        f"{round(s.within_floor * s.cells)} of {s.cells} errors of {s.model}"
        for s in ranked
        if s.within_floor is not None
    ]
    typical = floor_percent(median(floors.values()))
    better = floor_percent(median(corrected.values())) if corrected else "unknown"
    lie = f" Within the floor of their own cell lie {listing(within)}." if within else ""
    return (
        f"The noise floor, the spread of the repeats of a cell, is {typical} (median over the"
        f" cells) and {better} at reference speed.{lie}"
    )


def _caveats(data: ReportData) -> list[str]:
    said = [f"The cluster: {loss}." for loss in _losses(data.manifest.get("limitations"))]
    if bad := failed(data):
        said.append(
            f"{len(bad)} of {count(len(data.trials), 'trial')} failed or ran out of time; their"
            " times are in no figure, their reasons stand below."
        )
    if stood_in := sum(CPU in r.device for r in data.trials):
        said.append(
            f"In {count(stood_in, 'trial')} the processor did the work of a device (device=cpu):"
            " nothing in them was measured on a GPU."
        )
    if marks := disturbed(data):
        said.append(
            f"{len(marks)} of {count(len(data.trials), 'trial')} ran disturbed and counts all the"
            " same."
            if len(marks) == 1
            else f"{len(marks)} of {len(data.trials)} trials ran disturbed and count all the same."
        )
    ranges = {s.cell: s.range for s in scores(data, "job_s", "raw")}
    outside = sum(r == "outside" for r in ranges.values())
    if outside:
        verb = "lies" if outside == 1 else "lie"
        said.append(
            f"{outside} of {count(len(ranges), 'scored cell')} {verb} outside the range that was"
            " profiled."
        )
    return said + not_applicable(data)


def _losses(entry: object) -> list[str]:
    """What the manifest says of the cluster, if it is what we write there."""
    return [str(loss) for loss in entry] if isinstance(entry, list) else []


def not_applicable(data: ReportData, most: int | None = None) -> list[str]:
    """Say for which models the profile lacks something, and what: *most* names of it at most."""
    lacking: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for model in models(data):
        silent = [p for p in data.predictions if p.model == model and p.not_applicable]
        names = tuple(sorted({name for p in silent for name in p.not_applicable}))
        if silent:
            lacking.setdefault((len(silent), names), []).append(model)
    return [_lacks(who, cells, names, most) for (cells, names), who in lacking.items()]


def _lacks(who: list[str], cells: int, names: tuple[str, ...], most: int | None) -> str:
    told = list(names[:most])
    if left := len(names) - len(told):
        told.append(f"{left} more")
    verb = "is" if len(who) == 1 else "are"
    return (
        f"{listing(who)} {verb} not applicable in {count(cells, 'cell')}: the profile lacks"
        f" {listing(told)}."
    )


def _missing(data: ReportData) -> str:
    done = sum(r.state == "done" for r in data.trials)
    if not data.trials:
        return "No answer yet: no trial has been run."
    if not done:
        return f"No answer: none of {count(len(data.trials), 'trial')} was done."
    if not data.predictions:
        return f"No answer yet: {count(done, 'trial')} done, and no model has predicted anything."
    if not data.measurements:
        return "No answer yet: predictions are there, and no scored cell has been measured."
    return "No answer: no prediction could be scored."
