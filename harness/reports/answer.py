"""
The answer to an experiment's question, in sentences.

How large are the models' errors, and which model is nearest?  What is said of two models is the
verdict on them, with its reason: `nearer`, `equal` or `undecided`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from harness.records.score import Comparison, Ranking, Speed, Summary
from harness.records.trace import CPU
from harness.reports.data import ReportData
from harness.reports.document import Card
from harness.reports.wording import count, floor_percent, listing, percent, share_with_interval
from harness.stats.resampling import FEWEST_CELLS
from harness.stats.spread import split_by_start

SPEEDS: tuple[Speed, ...] = ("raw", "reference")
_ANSWERED = {"job_s": "job times", "body_s": "job times without their frame"}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer in one sentence, what belongs to it, and each model at a glance."""

    headline: str
    details: tuple[str, ...]
    cards: tuple[Card, ...] = ()


def answer(results: ReportData) -> Answer:
    """Say what the scores of the job time show; where there are none, what is missing."""
    ranking = results.score_book.ranking("raw")
    if ranking is None or not ranking.models:
        done = sum(record.state == "done" for record in results.trials)
        if ranking is not None:
            missing = f"No verdict: {ranking.reason}."
        elif not results.trials:
            missing = "No answer yet: no trial has been run."
        elif not done:
            missing = f"No answer: none of {count(len(results.trials), 'trial')} was done."
        elif not results.predictions:
            trials = count(done, "trial")
            missing = f"No answer yet: {trials} done, and no model has predicted anything."
        elif not results.measurements:
            missing = "No answer yet: predictions are there, and no scored cell has been measured."
        else:
            missing = "No answer: no prediction could be scored."
        return Answer(missing, tuple(_caveats(results)))
    ranked = [
        summary
        for model in ranking.models
        if (summary := results.summary(model, "raw", quantity=ranking.quantity))
    ]
    cards = []
    for summary in ranked:
        half_interval, error, lines = error_noise(summary), summary.metrics["mape"], []
        if half_interval:
            low = percent(error.low, half_interval).removesuffix(" %")
            interval = f"{interval_name(summary.cells)} {low} to"
            lines.append(f"{interval} {percent(error.high, half_interval)}")
        reference = results.summary(summary.model, "reference", quantity=ranking.quantity)
        corrected = percent(reference.value("mape") if reference else None, half_interval)
        lines.append(f"at reference speed {corrected}")
        lines.append(f"noise floor {floor_percent(summary.value('noise_floor'))}")
        cards.append(Card(summary.model, percent(error.value, half_interval), lines))
    # Every other model's error, and the verdict on it and the one with the smallest error.
    pairs, details = _pairs(results, ranking), []
    for other in ranking.models[1:]:
        verdict = f" {pair_sentence(pairs[other])}" if other in pairs else ""
        details.append(f"{other} is off by {_error(results, ranking, other)}.{verdict}")
    details += [f"{model} is not ranked: {why}." for model, why in ranking.left_out.items()]
    for framed in results.score_book.rankings:
        if (framed.quantity, framed.speed) == ("job_s", "raw") and framed.reason:
            known = count(framed.cells, "cell") if framed.cells else "no cell"
            details.append(f"Job times are compared in {known}: {framed.reason}.")
    details += _sentences(results, ranking, ranked) + _caveats(results)
    return Answer(verdict_sentence(results, ranking), tuple(details), tuple(cards))


def interval_name(cells: int) -> str:
    """Name what stands beside a mean over so many cells."""
    return "95 % interval" if cells >= FEWEST_CELLS else "range"


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


def pair_sentence(comparison: Comparison) -> str:
    """Say the verdict on two models in one sentence, with its reason."""
    gain, low, high = gain_points(comparison)
    points = f"{gain} point{'' if gain == '1' else 's'}"
    if comparison.cells > 1:
        points += f" ({interval_name(comparison.cells)} {low} to {high})"
    match comparison.verdict:
        case "nearer":
            verdict = f"{comparison.better} is nearer by {points}"
        case "equal":
            verdict = f"It and {comparison.better} are equally near"
        case "undecided":
            verdict = f"It differs from {comparison.better} by {points}, which is undecided"
    return f"{verdict}: {comparison.reason}."


def _pairs(results: ReportData, ranking: Ranking) -> dict[str, Comparison]:
    """Comparisons of the model with the smallest error, by the other one."""
    wanted = (ranking.quantity, ranking.speed, ranking.models[0])
    return {
        pair.worse: pair
        for pair in results.score_book.comparisons
        if (pair.quantity, pair.speed, pair.better) == wanted
    }


def _error(results: ReportData, ranking: Ranking, model: str, *, named: bool = False) -> str:
    """
    Mean error on the cells of the ranking; with its interval where the model has no others.

    A range, and an interval if *named*, has its name.
    """
    summary = results.summary(model, ranking.speed, quantity=ranking.quantity)
    if summary is None or summary.cells != ranking.cells:
        return percent(ranking.errors[ranking.models.index(model)])
    error, label = summary.metrics["mape"], interval_name(summary.cells)
    shown = f"{label} " if named or label == "range" else ""
    return share_with_interval(error.value, error.low, error.high, shown)


def verdict_sentence(results: ReportData, ranking: Ranking) -> str:
    """Say which model is nearest, or that several are, or that it is undecided: and why."""
    first, *others = ranking.nearest
    times, cells = _ANSWERED[ranking.quantity], count(ranking.cells, "cell")
    error, pairs = _error(results, ranking, first, named=True), _pairs(results, ranking)
    if len(ranking.models) == 1:
        return f"{first} is off by {error} on average over the {times} of {cells}."
    if not others:
        reason = next((f": {pair.reason}" for pair in pairs.values()), "")
        return (
            f"{first} is nearest: over {cells} its predicted {times} are off by {error} on average,"
            f" proved against every other model{reason}."
        )
    errors = listing([f"{_error(results, ranking, each)} for {each}" for each in ranking.nearest])
    near = [pairs[other] for other in others if other in pairs]
    for pair in near:
        if pair.verdict == "undecided":
            return (
                f"Which model is nearest is undecided: over {cells} the mean error of the {times}"
                f" is {errors}; of {first} and {pair.worse}: {pair.reason}."
            )
    reason = near[0].reason
    return (
        f"{listing(ranking.nearest)} are equally near: over {cells} their predicted {times} are off"
        f" by {errors}; {reason}."
    )


def _sentences(results: ReportData, ranking: Ranking, ranked: list[Summary]) -> list[str]:
    """What holds at reference speed, which way the models err, and how large the noise is."""
    sentences = []
    at_reference = results.score_book.ranking("reference")
    if at_reference is not None and at_reference.models:
        by_model = {model: _error(results, at_reference, model) for model in at_reference.models}
        errors = listing([f"{model} is off by {error}" for model, error in by_model.items()])
        verdict = "the verdict is the same: " if len(at_reference.models) > 1 else ""
        if set(at_reference.nearest) != set(ranking.nearest):
            first, *others = at_reference.nearest
            nearest = f"undecided between {listing(at_reference.nearest)}"
            verdict = f"the verdict is another, {nearest if others else f'{first} is nearest'}: "
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
        sentences.append(
            f"Predicted {_ANSWERED[ranking.quantity]} {direction}: on average {listing(models)}."
        )
    floors: dict[Speed, list[float]] = {}
    for speed in SPEEDS:
        by_cell = {score.cell: score.floor for score in results.scores(ranking.quantity, speed)}
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
    times_s: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for trial in results.measurements:
        if ranking.quantity in trial.raw_s:
            times_s[trial.cell][trial.start].append(trial.raw_s[ranking.quantity])
    split = "cannot be split into repeat and start of the cluster: no cell ran twice on two"
    if parts := split_by_start([list(by_start.values()) for by_start in times_s.values()]):
        repeat, start = map(floor_percent, parts)
        split = f"is of trials that vary by {repeat} between repeats, by {start} between starts"
    sentences.append(
        f"The noise floor, the spread of the mean of a cell, is {raw} (median over the cells)"
        f" and {better} at reference speed; it {split}.{below}"
    )
    return sentences


def _caveats(results: ReportData) -> list[str]:
    """What limits the answer: the cluster, failed and disturbed trials, cells out of range."""
    trials = count(len(results.trials), "trial")
    sentences = [f"The cluster: {text}." for text in results.manifest.get("limitations") or ()]
    if failed := results.failed_trials:
        sentences.append(
            f"{len(failed)} of {trials} failed or ran out of time; their times are in no figure,"
            " their reasons stand below."
        )
    if on_processor := sum(CPU in record.device for record in results.trials):
        sentences.append(
            f"In {count(on_processor, 'trial')} the processor did the work of a device"
            " (device=cpu): nothing in them was measured on a GPU."
        )
    if disturbed := results.disturbed_trials:
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
    for model in results.models:
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
