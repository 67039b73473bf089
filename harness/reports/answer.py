"""
The answer to an experiment's question, in sentences.

How large are the models' errors, and which model is nearest?  A model is called nearer than another
only where the paired comparison of the two lies outside the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from harness.records.score import Comparison, Speed, Summary
from harness.records.trace import CPU
from harness.reports.data import ReportData
from harness.reports.document import Card
from harness.reports.wording import count, floor_percent, listing, percent, share_with_interval

SPEEDS: tuple[Speed, ...] = ("raw", "reference")


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer in one sentence, what belongs to it, and each model at a glance."""

    headline: str
    details: tuple[str, ...]
    cards: tuple[Card, ...] = ()


def answer(results: ReportData) -> Answer:
    """Say what the scores of the job time show; where there are none, what is missing."""
    ranked = _ranking(results, "raw")
    if not ranked:
        return Answer(_missing(results), tuple(_caveats(results)))
    cards = []
    for summary in ranked:
        half_interval, error = error_noise(summary), summary.metrics["mape"]
        reference = results.summary(summary.model, "reference")
        corrected = percent(reference.value("mape") if reference else None, half_interval)
        lines = [
            f"at reference speed {corrected}",
            f"noise floor {floor_percent(summary.value('noise_floor'))}",
        ]
        if half_interval:
            low = percent(error.low, half_interval).removesuffix(" %")
            lines.insert(0, f"95 % interval {low} to {percent(error.high, half_interval)}")
        cards.append(Card(summary.model, percent(error.value, half_interval), lines))
    # Every other model's error, and how it compares with the best one's cell by cell.
    best, details = ranked[0].model, []
    for other in ranked[1:]:
        comparison = _comparison(results, best, other.model, "raw")
        if comparison is None:
            difference = f"It was not compared with {best} cell by cell."
        else:
            points = "{} points (95 % interval {} to {})".format(*gain_points(comparison))
            difference = f"Cell by cell, its error and that of {best} differ by {points}: inside"
            if comparison.outside_noise:
                better = comparison.better
                difference = f"Cell by cell, the error of {better} is smaller by {points}: outside"
            difference += " the noise."
        details.append(f"{other.model} is off by {error_text(other)}. {difference}")
    details += _sentences(results, ranked) + _caveats(results)
    return Answer(_headline(results, ranked), tuple(details), tuple(cards))


def _ranking(results: ReportData, speed: Speed) -> list[Summary]:
    """Summaries of the job time over all workloads, smallest mean error first."""
    summaries = [results.summary(model, speed) for model in results.models()]
    known = [summary for summary in summaries if summary is not None]
    return sorted(known, key=lambda summary: (summary.metrics["mape"].value, summary.model))


def error_text(summary: Summary, label: str = "") -> str:
    """Mean error with its interval, as in ``10 % (8 to 11 %)``; *label* names the interval."""
    error = summary.metrics["mape"]
    return share_with_interval(error.value, error.low, error.high, label)


def error_noise(summary: Summary) -> float | None:
    """Half the interval of the mean error: errors are written no finer than it allows."""
    error = summary.metrics["mape"]
    return None if error.low is None or error.high is None else (error.high - error.low) / 2 or None


def gain_points(comparison: Comparison) -> list[str]:
    """By how many points of a percentage the better model's mean error is smaller: interval too."""
    low, high = sorted((-comparison.low, -comparison.high))
    half_interval = (high - low) / 2 or None
    points = (abs(comparison.difference), low, high)
    return [percent(each, half_interval).removesuffix(" %") for each in points]


def _comparison(results: ReportData, first: str, second: str, speed: Speed) -> Comparison | None:
    """Find the paired comparison of two models' job times; `None` where it was not made."""
    for comparison in results.score_book.comparisons:
        pair = {comparison.better, comparison.worse}
        if pair == {first, second} and (comparison.quantity, comparison.speed) == ("job_s", speed):
            return comparison
    return None


def _nearest(results: ReportData, ranked: Sequence[Summary], speed: Speed) -> tuple[str, ...]:
    """Models that are not proved to be farther off than the one with the smallest error."""
    best_model, *others = (summary.model for summary in ranked)
    compared = {model: _comparison(results, best_model, model, speed) for model in others}
    farther = {
        model
        for model, comparison in compared.items()
        if comparison is not None and comparison.outside_noise and comparison.better == best_model
    }
    return (best_model, *(model for model in others if model not in farther))


def _headline(results: ReportData, ranked: Sequence[Summary]) -> str:
    first, nearest_models = ranked[0], _nearest(results, ranked, "raw")
    cells = count(first.cells, "cell")
    error = error_text(first, "95 % interval ")
    if len(ranked) == 1:
        return f"{first.model} is off by {error} on average over the job times of {cells}."
    if len(nearest_models) == 1:
        return (
            f"{first.model} is nearest: over {cells} its predicted job times are off by {error}"
            " on average."
        )
    near = [summary for summary in ranked if summary.model in nearest_models]
    errors = listing([f"{error_text(summary)} for {summary.model}" for summary in near])
    if any(_comparison(results, first.model, model, "raw") is None for model in nearest_models[1:]):
        return (
            f"The mean error of the job time over {cells} is {errors}; whether the difference lies"
            " outside the noise is not known."
        )
    return (
        f"No model is nearest: over {cells} the mean error of the job time is {errors},"
        " and the difference lies inside the noise."
    )


def _sentences(results: ReportData, ranked: Sequence[Summary]) -> list[str]:
    """What holds at reference speed, which way the models err, and how large the noise is."""
    sentences = []
    at_reference = _ranking(results, "reference")
    if at_reference:
        errors = listing([f"{each.model} is off by {error_text(each)}" for each in at_reference])
        nearest_models = _nearest(results, at_reference, "reference")
        verdict = "the verdict is the same: " if len(at_reference) > 1 else ""
        if set(nearest_models) != set(_nearest(results, ranked, "raw")):
            tied = f"{listing(nearest_models)} are equally near"
            nearest = f"{nearest_models[0]} is nearest" if len(nearest_models) == 1 else tied
            verdict = f"the verdict is another, {nearest}: "
        sentences.append(f"At reference speed {verdict}{errors}.")
    directions: dict[str, list[str]] = {}  # models that err the same way share a sentence
    for summary in ranked:
        signed, half_interval = summary.value("signed_error") or 0.0, error_noise(summary)
        if abs(signed) < summary.metrics["mape"].value / 2:
            direction, size = "err in both directions", percent(signed, half_interval, signed=True)
        else:
            direction = f"are too {'short' if signed < 0 else 'long'}"
            size = percent(abs(signed), half_interval)
        directions.setdefault(direction, []).append(f"by {size} with {summary.model}")
    for direction, models in directions.items():
        sentences.append(f"Predicted job times {direction}: on average {listing(models)}.")
    best_model = ranked[0].model
    by_workload = {name: results.summary(best_model, "raw", name) for name in results.workloads()}
    errors_of = [f"{name} {error_text(each)}" for name, each in by_workload.items() if each]
    if len(errors_of) > 1:
        sentences.append(f"By workload, {best_model} is off by: {listing(errors_of)}.")
    floors: dict[Speed, list[float]] = {}
    for speed in SPEEDS:
        by_cell = {score.cell: score.floor for score in results.scores("job_s", speed)}
        floors[speed] = [floor for floor in by_cell.values() if floor is not None]
    if not floors["raw"]:
        unknown = "The noise floor is not known: no scored cell was measured more than once."
        return [*sentences, unknown]
    within = [
        f"{round(share * summary.cells)} of {summary.cells} errors of {summary.model}"
        for summary in ranked
        if (share := summary.value("within_noise")) is not None
    ]
    below = f" Within the floor of their own cell lie {listing(within)}." if within else ""
    at_speed = floors["reference"]
    better = floor_percent(median(at_speed)) if at_speed else "unknown"
    raw = floor_percent(median(floors["raw"]))
    sentences.append(
        f"The noise floor, the spread of the repeats of a cell, is {raw} (median over the cells)"
        f" and {better} at reference speed.{below}"
    )
    return sentences


def _caveats(results: ReportData) -> list[str]:
    """What limits the answer: the cluster, failed and disturbed trials, cells out of range."""
    trials = count(len(results.trials), "trial")
    sentences = [f"The cluster: {text}." for text in results.manifest.get("limitations") or ()]
    if failed := results.failed_trials():
        sentences.append(
            f"{len(failed)} of {trials} failed or ran out of time; their times are in no figure,"
            " their reasons stand below."
        )
    if on_processor := sum(CPU in record.device for record in results.trials):
        sentences.append(
            f"In {count(on_processor, 'trial')} the processor did the work of a device"
            " (device=cpu): nothing in them was measured on a GPU."
        )
    if disturbed := results.disturbed_trials():
        verb = "counts" if len(disturbed) == 1 else "count"
        sentences.append(f"{len(disturbed)} of {trials} ran disturbed and {verb} all the same.")
    ranges = {score.cell: score.range for score in results.scores("job_s", "raw")}
    if outside := sum(place == "outside" for place in ranges.values()):
        verb = "lies" if outside == 1 else "lie"
        sentences.append(
            f"{outside} of {count(len(ranges), 'scored cell')} {verb} outside the range that was"
            " profiled."
        )
    return sentences + not_applicable(results)


def not_applicable(results: ReportData, most: int | None = None) -> list[str]:
    """Say for which models the profile lacks something, and what: *most* names of it at most."""
    lacking: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for model in results.models():
        unanswered = [
            prediction
            for prediction in results.predictions
            if prediction.model == model and prediction.not_applicable
        ]
        names = {name for prediction in unanswered for name in prediction.not_applicable}
        if unanswered:
            lacking.setdefault((len(unanswered), tuple(sorted(names))), []).append(model)
    sentences = []
    for (cells, lacked), models in lacking.items():
        shown = list(lacked[:most])
        if hidden := len(lacked) - len(shown):
            shown.append(f"{hidden} more")
        verb = "is" if len(models) == 1 else "are"
        sentences.append(
            f"{listing(models)} {verb} not applicable in {count(cells, 'cell')}: the profile lacks"
            f" {listing(shown)}."
        )
    return sentences


def _missing(results: ReportData) -> str:
    done = sum(record.state == "done" for record in results.trials)
    if not results.trials:
        return "No answer yet: no trial has been run."
    if not done:
        return f"No answer: none of {count(len(results.trials), 'trial')} was done."
    if not results.predictions:
        return f"No answer yet: {count(done, 'trial')} done, and no model has predicted anything."
    if not results.measurements:
        return "No answer yet: predictions are there, and no scored cell has been measured."
    return "No answer: no prediction could be scored."
