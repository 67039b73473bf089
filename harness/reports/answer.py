"""
The first screen of a report: the verdict, what it rests on, what would decide what is open.

What is said of two models is the verdict on them: `nearer`, `equal` or `undecided`.
"""

from __future__ import annotations

from statistics import median

from pydantic import TypeAdapter

from harness.records.score import Comparison, Ranking, Summary
from harness.records.trace import CPU
from harness.records.trial import LimitedCluster
from harness.reports.data import ReportData
from harness.reports.document import Facts
from harness.reports.wording import count, floor_percent, listing, percent, share_with_interval
from harness.stats.resampling import FEWEST_CELLS

ANSWERED = {"job_s": "job times", "body_s": "job times without their frame"}
_MOST = 4  # pairs of models of which it is said what would decide, and trials why they failed
_MOST_LACKING = 3  # names of statistics: a line for each model, not a page


def headline(results: ReportData) -> str:
    """Say in one sentence which model is nearest; where there are no scores, what is missing."""
    ranking = results.score_book.ranking("raw")
    done = len(results.trials)
    done -= len(results.failed_trials)
    if ranking is not None:
        return verdict_sentence(results, ranking)
    if not results.trials:
        return "No answer yet: no trial has been run."
    if not done:
        return f"No answer: none of {count(len(results.trials), 'trial')} was done."
    if not results.predictions:
        return f"No answer yet: {count(done, 'trial')} done, and no model has predicted anything."
    if not results.measurements:
        return "No answer yet: predictions are there, and no scored cell has been measured."
    if not results.score_book.measurements:
        return "No answer yet: what was measured has not been scored (harness score RUN)."
    return "No answer: no prediction could be scored."


def verdict_sentence(results: ReportData, ranking: Ranking) -> str:
    """Say which model is nearest, or that several are, or that it is undecided."""
    if not ranking.models:
        return f"No verdict: {ranking.reason}."
    first, *others = ranking.nearest
    times = ANSWERED[ranking.quantity]
    pairs = first_pairs(results, ranking)
    if not others:
        summary = results.summary(first, ranking.speed, quantity=ranking.quantity)
        error = percent(ranking.errors[0])
        if summary is not None and summary.cells == ranking.cells:
            mean = summary.metrics["mape"]
            label = f"{interval_name(summary.cells)} "
            error = share_with_interval(mean.value, mean.low, mean.high, label)
        if len(ranking.models) == 1:
            return f"{first} is off by {error} on average: predicted {times}."
        reason = next((f": {pair.reason}" for pair in pairs.values()), "")
        return (
            f"{first} is nearest: its predicted {times} are off by {error} on average, proved"
            f" against every other model{reason}."
        )
    errors = [
        percent(error, error_noise(summary) if summary else None)
        for model, error in zip(ranking.models, ranking.errors, strict=True)
        if model in ranking.nearest
        for summary in [results.summary(model, ranking.speed, quantity=ranking.quantity)]
    ]
    ends = " to ".join(dict.fromkeys((errors[0].removesuffix(" %"), errors[-1].removesuffix(" %"))))
    near = [pairs[other] for other in others if other in pairs]
    if any(pair.verdict == "undecided" for pair in near):
        return (
            f"Which model is nearest is undecided: the mean relative errors of"
            f" {listing(ranking.nearest)}, {ends} % of the {times}, cannot be distinguished."
        )
    return (
        f"{listing(ranking.nearest)} are equally near: their predicted {times} are off by {ends} %"
        f" on average; {near[0].reason}."
    )


def facts(results: ReportData) -> Facts:
    """What the verdict rests on, what would decide what is open, and what may change it."""
    ranking = results.score_book.ranking("raw")
    rests_on = list[str]()
    open_pairs = list[str]()
    if ranking is not None and ranking.models:
        by_cell = {score.cell: score for score in results.scores(ranking.quantity, "raw")}
        repeats = sorted({score.trials for score in by_cell.values()})
        each = f"{repeats[0]} to " if len(repeats) > 1 else ""
        profiled = {record.trial.cell.id for record in results.trials if record.trial.profiling}
        floors = [score.floor for score in by_cell.values() if score.floor is not None]
        noise = "Noise is not known: no scored cell was measured more than once."
        if floors:
            noise = (
                f"Noise {floor_percent(median(floors))}: the standard deviation of the mean of a"
                " cell's repeats, median over the cells. A smaller error cannot be distinguished"
                " from none."
            )
        learnt_from = count(len(profiled), "other cell")
        if source := results.experiment.predict.source:
            learnt_from = f"other cells, of the run {source}"
        each += count(repeats[-1], "repeat")
        rests_on += [
            f"{count(ranking.cells, 'cell')} (workload, input and configuration), {each} of each.",
            f"The models learnt from {learnt_from}, the profiling cells.",
            noise,
        ]
        undecided = [
            f"Between {pair.better} and {pair.worse}: {pair.reason}."
            for pair in first_pairs(results, ranking).values()
            if pair.verdict == "undecided"
        ]
        open_pairs = undecided[:_MOST]
        if hidden := len(undecided) - len(open_pairs):
            open_pairs.append(f"{count(hidden, 'more pair')}: below, under Models compared.")
    if results.seal:
        reasons = "; ".join(results.seal["not_blind"])
        blind = "Blind: every scored trial was measured after the predictions were sealed."
        rests_on.append(f"Not blind: {reasons}." if reasons else blind)
    return Facts(tuple(rests_on), tuple(open_pairs), tuple(_caveats(results, ranking)))


def _caveats(results: ReportData, ranking: Ranking | None) -> list[str]:
    """What may change the verdict: what is missing, failed, disturbed, left out, not as asked."""
    ran = len(results.trials)
    measured = {measurement.cell for measurement in results.measurements}
    trials = count(ran, "trial")
    sentences = []
    if (missing := results.planned - ran) > 0:
        wanted = {prediction.cell for prediction in results.predictions}
        text = (
            f"The run is not finished: {missing} of {count(results.planned, 'trial')} are missing"
        )
        if cells := len(wanted - measured):
            text += f", and {cells} of {count(len(wanted), 'scored cell')} have no measurement"
        sentences.append(f"{text}.")
    if failed := results.failed_trials:
        sentences.append(f"{len(failed)} of {trials} failed or ran out of time: in no figure.")
        reasons = [(each.trial.id, each.reason.strip().partition("\n")[0]) for each in failed]
        sentences += [
            f"{trial}: {why or 'no reason was recorded'}" for trial, why in reasons[:_MOST]
        ]
    if disturbed := results.disturbed_trials:
        sentences.append(
            f"{len(disturbed)} of {trials} ran disturbed: others used the machine. They count."
        )
    for framed in results.score_book.rankings:
        if (framed.quantity, framed.speed) == ("job_s", "raw") and framed.reason:
            known = count(framed.cells, "cell") if framed.cells else "no cell"
            sentences.append(
                f"Job times are compared in {known}: {framed.reason}. The frame is what passes"
                " around tasks: start and end of the job and of its tasks, and gaps."
            )
    if ranking is not None:
        sentences += [f"{model} is not ranked: {why}." for model, why in ranking.left_out.items()]
    reference = results.score_book.ranking("reference")
    if ranking and reference and set(reference.nearest) != set(ranking.nearest):
        first, *others = reference.nearest or ("",)
        nearest = (
            f"undecided between {listing(reference.nearest)}" if others else f"{first} is nearest"
        )
        sentences.append(
            f"With times corrected for changes of the machine's speed the verdict is another:"
            f" {nearest}."
        )
    starts = TypeAdapter(list[LimitedCluster]).validate_python(results.manifest.get("limits", []))
    limits = [each for start in starts for node in start.nodes.values() for each in node.values()]
    if unmet := sum(not (limit.is_met and limit.is_enforced) for limit in limits):
        sentences.append(
            f"{unmet} of {count(len(limits), 'limit')} of nodes did not hold as requested: below,"
            " under Hardware limited on purpose."
        )
    ranges = {score.cell: score.range for score in results.scores(results.answered, "raw")}
    if outside := sum(place == "outside" for place in ranges.values()):
        sentences.append(
            f"{outside} of {count(len(ranges), 'cell')} lie outside the range that was profiled."
        )
    if on_processor := sum(CPU in record.device for record in results.trials):
        sentences.append(
            f"In {count(on_processor, 'trial')} the processor did the work of a device"
            " (device=cpu): nothing in them was measured on a GPU."
        )
    sentences += [f"The cluster: {text}." for text in results.manifest.get("limitations") or ()]
    return sentences + not_applicable(results)


def first_pairs(results: ReportData, ranking: Ranking) -> dict[str, Comparison]:
    """Comparisons of the model with the smallest error, by the other one."""
    wanted = (ranking.quantity, ranking.speed, ranking.models[0])
    return {
        pair.worse: pair
        for pair in results.score_book.comparisons
        if (pair.quantity, pair.speed, pair.better) == wanted
    }


def interval_name(cells: int) -> str:
    """Name what stands beside a mean over so many cells."""
    return "95 % interval" if cells >= FEWEST_CELLS else "range"


def error_noise(summary: Summary) -> float | None:
    """Half the interval of the mean error: errors are written no finer than it allows."""
    error = summary.metrics["mape"]
    return None if error.low is None or error.high is None else (error.high - error.low) / 2 or None


def not_applicable(results: ReportData) -> list[str]:
    """Say for which models the profile lacks something, and what."""
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
        verb = "is" if len(models) == 1 else "are"
        sentences.append(
            f"{listing(models)} {verb} not applicable in {count(cells, 'cell')}: the profile lacks"
            f" {listing(lacked, most=_MOST_LACKING)}."
        )
    return sentences
