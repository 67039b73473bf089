"""
The first screen of a report: the answer, what it rests on, what would decide what is open.

What is said of two models is the verdict on them: `nearer`, `equal` or `undecided`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from statistics import median
from typing import Any

from pydantic import TypeAdapter

from harness.base.documents.document import Facts
from harness.base.documents.wording import (
    by_number,
    count,
    floor_percent,
    listing,
    percent,
    share_with_interval,
)
from harness.base.records.prediction import Prediction
from harness.base.records.question import Answer, Asked
from harness.base.records.score import (
    Comparison,
    MetricValue,
    Ranking,
    Score,
    ScoreBook,
    Summary,
    Tally,
)
from harness.base.records.trace import CPU
from harness.base.records.trial import LimitedCluster, TrialRecord
from harness.base.stats.resampling import FEWEST_CELLS
from harness.base.text import excerpt
from harness.core.reports.data import ReportData
from harness.core.reports.use import uses
from harness.scoring.answers import is_open

# What stands before an answer, by when its question was asked.
ASKED: dict[Asked, str] = {
    "sealed": "",
    "afterwards": "Asked afterwards: ",
    "explored": "Explored, not proved: ",
}
ANSWERED = {"job_s": "job times", "body_s": "job times without their frame"}
_MOST_FOREIGN = 0.1  # share of the processors, median over the scored trials
_MOST_GROWTH_KNOWN = 0.5  # width of an interval, beyond which it says nothing
_MOST_NAMED = 4  # pairs of models of which it is said what would decide, and failed trials
# Of 200 draws so many are nearer by chance alone on less than 1 of 100 grids.
_MOST_BY_CHANCE = 0.10
_MOST_LACKING = 3  # names of statistics: a line for each model, not a page


def headline(results: ReportData) -> str:
    """
    Answer the question; where there are no scores, say what is missing.

    Where others used the machine most of the time that is said first, before any model is named.
    """
    found = results.score_book.answer
    if found is not None:
        return f"{foreign_sentence(results.trials)}{answer_sentence(found)}"
    ranking = results.score_book.ranking()
    done = len(results.trials)
    done -= len(results.failed_trials)
    if ranking is not None:
        return verdict_sentence(results, ranking)
    if not done:
        return unmeasured_sentence(len(results.trials))
    if done == results.planned and all(record.trial.profiling for record in results.trials):
        return (
            f"No answer: all of {count(done, 'trial')} feed profiles, and none is left to be"
            " scored; harness tune and ask take the profiles."
        )
    if not results.predictions:
        return f"No answer yet: {count(done, 'trial')} done, and no model has predicted anything."
    if not results.measurements:
        return "No answer yet: predictions are there, and no scored cell has been measured."
    if not results.score_book.measurements:
        return "No answer yet: what was measured has not been scored (harness score RUN)."
    tally = results.score_book.tally("trial")
    counted = "" if tally is None else f" Scored: {tally_text(tally)}."
    return f"No answer: no prediction could be scored.{counted}"


def foreign_sentence(trials: Iterable[TrialRecord]) -> str:
    """Say that what was measured is what others did, where that is so in most scored *trials*."""
    shares = [
        foreign_share
        for record in trials
        if record.trial.is_scored
        and record.state == "done"
        and (foreign_share := record.most("others")) is not None
    ]
    if not shares or median(shares) <= _MOST_FOREIGN:
        return ""
    return f"Not a measurement: others used {percent(median(shares))} of the processors. "


def answer_sentence(found: Answer) -> str:
    """The answer, and whether its question was sealed before the measurement."""
    return f"{ASKED[found.asked]}{found.sentence}"


def unmeasured_sentence(tried: int) -> str:
    """Say that nothing was measured, of *tried* trials."""
    if not tried:
        return "No answer yet: no trial has been run."
    return f"No answer: none of {count(tried, 'trial')} was done."


def verdict_sentence(results: ReportData, ranking: Ranking) -> str:
    """
    Say which model is nearest, or that several are, or that it is undecided; on which cells.

    Of scores that older versions made, which keep their verdict.
    """
    if not ranking.models:
        return f"No verdict: {ranking.reason}."
    verdict = nearest_sentence(results, ranking)
    tally = results.score_book.tally("cell", ranking.quantity)
    if tally is None or ranking.cells == tally.planned:
        return verdict
    cells = f"{ranking.cells} of {count(tally.planned, 'planned cell')}"
    return f"{verdict.removesuffix('.')}, in {cells}."


def nearest_sentence(results: ReportData, ranking: Ranking) -> str:
    """Say which model is nearest, or that several are, or that it is undecided."""
    first, *tied = ranking.nearest
    times = ANSWERED[ranking.quantity]
    pairs = first_pairs(results, ranking)
    if not tied:
        error = first_error(results, ranking)
        if len(ranking.models) == 1:
            return f"{first} is off by {error} on average: predicted {times}."
        reason = next((f": {pair.reason}" for pair in pairs.values()), "")
        return (
            f"{first} is nearest: its predicted {times} are off by {error} on average, proved"
            f" against every other model{reason}."
        )
    errors = nearest_errors(results, ranking)
    tied_pairs = [pairs[model] for model in tied if model in pairs]
    if any(pair.verdict == "undecided" for pair in tied_pairs):
        return (
            f"Which model is nearest is undecided: the mean relative errors of"
            f" {listing(ranking.nearest)}, {errors} of the {times}, cannot be distinguished."
        )
    return (
        f"{listing(ranking.nearest)} are equally near: their predicted {times} are off by {errors}"
        f" on average; {tied_pairs[0].reason}."
    )


def first_error(results: ReportData, ranking: Ranking) -> str:
    """Mean error of the nearest model, with its interval where that is over the same cells."""
    summary = results.summary(ranking.nearest[0], ranking.speed, quantity=ranking.quantity)
    if summary is None or summary.cells != ranking.cells:
        return percent(ranking.errors[0])
    mean = summary.metrics["mape"]
    label = f"{interval_name(summary.cells)} "
    return share_with_interval(mean.value, mean.low, mean.high, label)


def nearest_errors(results: ReportData, ranking: Ranking) -> str:
    """Mean errors of the models that share the first place, from the smallest to the largest."""
    texts = []
    for model, error in zip(ranking.models, ranking.errors, strict=True):
        if model in ranking.nearest:
            summary = results.summary(model, ranking.speed, quantity=ranking.quantity)
            texts.append(percent(error, error_noise(summary) if summary else None))
    ends = dict.fromkeys((texts[0].removesuffix(" %"), texts[-1].removesuffix(" %")))
    return f"{' to '.join(ends)} %"


def facts(results: ReportData) -> Facts:
    """What it is good for, what it rests on, what would decide, and what may change it."""
    ranking = results.score_book.ranking()
    rests_on = list[str]()
    open_pairs = list[str]()
    if ranking is not None and ranking.models:
        rests_on = foundations(results, ranking)
        open_pairs = undecided_pairs(results, ranking)
    if results.seal and any(record.trial.is_scored for record in results.trials):
        rests_on.append(order_sentence(results.seal))
    return Facts(
        good_for=() if foreign_sentence(results.trials) else tuple(uses(results)),
        rests_on=tuple(rests_on),
        would_decide=tuple(open_pairs),
        caveats=tuple(caveats(results, ranking)),
    )


def order_sentence(seal: Mapping[str, Any]) -> str:
    """Whether the predictions were sealed before they were tried, and whose word that is."""
    if reasons := "; ".join(seal["not_blind"]):
        return f"Not blind: {reasons}."
    order = str(seal["order"])
    order = f"{order[:1].upper()}{order[1:]}"
    return f"{order}: every scored trial was measured after the predictions were sealed."


def foundations(results: ReportData, ranking: Ranking) -> list[str]:
    """How many cells were scored, from how many others the models learnt, and the noise."""
    by_cell = {score.cell: score for score in results.scores(ranking.quantity, ranking.speed)}
    repeats = sorted({score.trials for score in by_cell.values()})
    fewest = f"{repeats[0]} to " if len(repeats) > 1 else ""
    profiled = {
        record.trial.cell.id
        for record in results.trials
        if record.trial.profiling and record.state == "done"
    }
    learnt_from = count(len(profiled), "other cell")
    if source := results.experiment.predict.source:
        learnt_from = f"other cells, of the run {source}"
    repeated = f"{fewest}{count(repeats[-1], 'repeat')} of each"
    return [
        f"{count(ranking.cells, 'cell')} (workload, input and configuration), {repeated}.",
        *tally_sentences(results, ranking),
        f"The models learnt from {learnt_from}, the profiling cells.",
        *speed_sentences(results),
        noise_sentence(by_cell.values()),
        *floor_sentences(results.score_book),
        *growth_sentences(results, ranking),
    ]


def noise_sentence(scores: Collection[Score]) -> str:
    """How large the noise of the cells of *scores* is, and what shows it."""
    floors = [score.floor for score in scores if score.floor is not None]
    if not floors:
        return (
            "Noise is not known: no scored cell has a repeat, and no profiling cell two before the"
            " scored ones (profile_repeat: 2 measures them so)."
        )
    what = "the standard deviation of the mean of a cell's repeats, median over the cells"
    if all(score.trials == 1 for score in scores):
        what = "the standard deviation of a cell's time, by the repeats of the profiling cells"
    noise = floor_percent(median(floors))
    return f"Noise {noise}: {what}. A smaller error cannot be distinguished from none."


def speed_sentences(results: ReportData) -> Iterator[str]:
    """At which speed verdicts are read, where that is not as measured."""
    if results.speed != "reference":
        return
    rates = [
        results.relative_rates[record.trial.id]
        for record in results.trials
        if record.trial.is_scored and record.trial.id in results.relative_rates
    ]
    sentence = "Read at reference speed, that of the trials from which the models learnt"
    if rates:
        sentence += f"; while cells were scored the probe ran at {percent(median(rates))} of it"
    yield f"{sentence}."


def floor_sentences(score_book: ScoreBook) -> Iterator[str]:
    """How far a perfect model would be off, and from which models it would be told apart."""
    perfect = score_book.control("perfect")
    if perfect is None:
        return
    sentence = f"Floor {percent(perfect.error)}: a perfect model would be off by so much on average"
    sentence += f", and by {percent(perfect.high)} at most in 95 of 100 cases"
    if not perfect.nearer:
        yield f"{sentence}."
        return
    models_by_share = defaultdict[int, list[str]](list)
    for model, drawn in perfect.nearer.items():
        models_by_share[round(100 * drawn)].append(model)
    shares = [
        f"than {listing(sorted(models))} in {number}"
        for number, models in sorted(models_by_share.items())
    ]
    yield f"{sentence}. It would be told to be nearer {', '.join(shares)} of 100 cases."


def growth_sentences(results: ReportData, ranking: Ranking) -> Iterator[str]:
    """Whether errors grow with the job: of the models that are asked about, else of the first."""
    texts = []
    for model in results.asked.models or ranking.models[:1]:
        summary = results.summary(model, ranking.speed, quantity=ranking.quantity)
        exponent = summary.metrics.get("calibration_exponent") if summary else None
        if exponent is not None and exponent.low is not None:
            texts.append(f"{model} {growth_text(exponent)}")
    if texts:
        yield (
            "Longer jobs: where a prediction is twice another, the job takes so much more than"
            f" twice as long (95 %): {'; '.join(texts)}. Around 0 % errors do not grow with the"
            " job."
        )


def growth_text(exponent: MetricValue) -> str:
    """
    What a doubling of the prediction does to the job: how much more than twice as long it takes.

    By the *exponent* of measured over predicted times, which has an interval: of one of 1.03 it is
    2 % more.
    """
    powers = (exponent.value, exponent.low or 0.0, exponent.high or 0.0)
    growth, low, high = (2.0 ** (power - 1) - 1 for power in powers)
    if high - low > _MOST_GROWTH_KNOWN:
        return "not known, as cells are too alike or too noisy"
    middle, *ends = (percent(share, high - low, signed=True) for share in (growth, low, high))
    return f"{middle} ({' to '.join(ends)})"


def tally_sentences(results: ReportData, ranking: Ranking) -> Iterator[str]:
    """What was planned, how much of it is scored and compared, and why the rest is not."""
    trials = results.score_book.tally("trial")
    cells = results.score_book.tally("cell", ranking.quantity)
    if trials is None or cells is None:
        return
    yield f"Scored: {tally_text(trials)}."
    if cells.planned != ranking.cells:
        reasons = Counter(cells.left_out) + Counter(ranking.cells_left_out)
        rows = results.scores(ranking.quantity, ranking.speed)
        beside = {row.cell for row in rows if not results.asked.is_about(row.range)}
        where = "extrapolated" if results.asked.extrapolate == "out" else "within what was profiled"
        reasons += Counter({where: len(beside)})
        counted = f"{ranking.cells} of {count(cells.planned, 'planned cell')}"
        yield f"Compared: {counted}; {reasons_text(reasons)}."


def tally_text(tally: Tally) -> str:
    """In words: how much of what was planned is scored, and how much is not for which reason."""
    text = f"{tally.scored} of {count(tally.planned, f'planned {tally.unit}')}"
    return f"{text}; {reasons_text(tally.left_out)}" if tally.left_out else text


def reasons_text(left_out: Mapping[str, int]) -> str:
    """Why something is not scored, the most frequent reason first, each with its number."""
    by_number_of = sorted(left_out.items(), key=lambda entry: (-entry[1], entry[0]))
    return "; ".join(f"{number} not: {reason}" for reason, number in by_number_of)


def undecided_pairs(results: ReportData, ranking: Ranking) -> list[str]:
    """What would decide between the model with the smallest error and others, of some of them."""
    asked = results.score_book.asked()
    undecided = [
        f"Between {pair.better} and {pair.worse}: {pair.reason}."
        for pair in asked or first_pairs(results, ranking).values()
        if is_open(pair)
    ]
    named = undecided[:_MOST_NAMED]
    if hidden := len(undecided) - len(named):
        named.append(f"{count(hidden, 'more pair')}: in the report, under Models compared.")
    return named


def caveats(results: ReportData, ranking: Ranking | None) -> Iterator[str]:
    """What may change the verdict: what is missing, failed, disturbed, left out, not as asked."""
    yield from missing_trials(results)
    yield from failed_trials(results)
    if disturbed := results.disturbed_trials:
        trials = count(len(results.trials), "trial")
        ending = by_number(len(disturbed), "It counts", "They count")
        yield f"{len(disturbed)} of {trials} ran disturbed: others used the machine. {ending}."
    yield from drifted(results)
    yield from framed_cells(results)
    yield from lucky_coin(results)
    if ranking is not None:
        yield from (f"{model} is not ranked: {why}." for model, why in ranking.left_out.items())
        yield from verdict_at_other_speed(results, ranking)
    for find in _CONDITIONS:
        yield from find(results)
    yield from (f"The cluster: {text}." for text in results.manifest.get("limitations") or ())
    yield from map(unpublished_sentence, results.unpublished_code)
    yield from not_applicable(results)
    yield from model_warnings(results.predictions, results.experiment.predict.code)


def unpublished_sentence(name: str) -> str:
    """Say that the source of a model or workload of the owner's does not travel."""
    return (
        f"The source of {name}, its owner's own, is not published: nobody else can make its numbers"
        " again, and none of ours says what it reads."
    )


def missing_trials(results: ReportData) -> Iterator[str]:
    """How much of the plan has not been run, and what it leaves unmeasured."""
    missing = results.planned - len(results.trials)
    if missing <= 0:
        return
    verb = by_number(missing, "is", "are")
    text = f"The run is not finished: {missing} of {count(results.planned, 'trial')} {verb} missing"
    wanted = {prediction.cell for prediction in results.predictions}
    if cells := len(wanted - {measurement.cell for measurement in results.measurements}):
        verb = by_number(cells, "has", "have")
        text += f", and {cells} of {count(len(wanted), 'scored cell')} {verb} no measurement"
    yield f"{text}."


def failed_trials(results: ReportData) -> Iterator[str]:
    """How many failed, and why, of some of them."""
    if failed := results.failed_trials:
        trials = count(len(results.trials), "trial")
        yield f"{len(failed)} of {trials} failed or ran out of time: in no figure."
    for record in results.failed_trials[:_MOST_NAMED]:
        reason = record.reason.strip().partition("\n")[0]
        yield f"{record.trial.id}: {reason or 'no reason was recorded'}"


def drifted(results: ReportData) -> Iterator[str]:
    """What sentinels say of the machine: how much of all errors is no model's."""
    drift = results.score_book.drift
    planned = sum(record.trial.use == "sentinel" for record in results.trials)
    if drift is None:
        if planned:
            done = sum(
                record.trial.use == "sentinel" and record.state == "done"
                for record in results.trials
            )
            why = "nothing shows how much they vary" if done else "no sentinel is done"
            yield f"Drift is not known: {why}."
        return
    change = percent(drift.ratio - 1, drift.high - drift.low, signed=True)
    ends = " to ".join(
        percent(end - 1, drift.high - drift.low, signed=True) for end in (drift.low, drift.high)
    )
    cells = count(drift.cells, "profiling cell")
    how = "longer" if drift.ratio >= 1 else "shorter"
    sentence = f"Drift {change} ({ends}): by {count(drift.sentinels, 'sentinel')}, {cells} measured"
    sentence += f" again among the scored trials, these ran so much {how} than those of the"
    sentence += " profiles. What is said of models is without it, and holds at both of its ends."
    yield sentence


def framed_cells(results: ReportData) -> Iterator[str]:
    """Where the frame is too large a part of some jobs to compare their job times."""
    for framed in results.score_book.rankings:
        if (framed.quantity, framed.speed) == ("job_s", "raw") and framed.reason:
            cells = count(framed.cells, "cell") if framed.cells else "no cell"
            yield (
                f"Job times are compared in {cells}: {framed.reason}. The frame is what passes"
                " around tasks: start and end of the job and of its tasks, and gaps."
            )


def lucky_coin(results: ReportData) -> Iterator[str]:
    """Where the test calls a coin nearer than another toss of it: it is not to be believed."""
    coin = results.score_book.control("coin")
    share = max(coin.nearer.values(), default=0.0) if coin else 0.0
    if coin and share > _MOST_BY_CHANCE:
        yield (
            f"A coin with the errors of {coin.made_of} is called nearer than another toss of it in"
            f" {percent(share)} of cases: the test is not to be believed on these cells."
        )


def verdict_at_other_speed(results: ReportData, ranking: Ranking) -> Iterator[str]:
    """Where it is another than at the speed at which models are compared: which one."""
    other_ranking = results.score_book.ranking(
        "raw" if results.speed == "reference" else "reference"
    )
    if other_ranking is None or set(other_ranking.nearest) == set(ranking.nearest):
        return
    first, *tied = other_ranking.nearest or ("",)
    nearest = (
        f"undecided between {listing(other_ranking.nearest)}" if tied else f"{first} is nearest"
    )
    times = "times as they were measured"
    if other_ranking.speed == "reference":
        times = "times corrected for changes of the machine's speed"
    yield f"By {times} the verdict is another: {nearest}."


def unmet_limits(results: ReportData) -> Iterator[str]:
    """How many limits of nodes did not hold."""
    starts = TypeAdapter(list[LimitedCluster]).validate_python(results.manifest.get("limits", []))
    is_kept = Counter[bool]()
    for start in starts:
        for limits in start.nodes.values():
            is_kept.update(bool(limit.is_met and limit.is_enforced) for limit in limits.values())
    if unmet := is_kept[False]:
        yield (
            f"{unmet} of {count(is_kept.total(), 'limit')} of nodes did not hold as requested:"
            " below, under Hardware limited on purpose."
        )


def cells_outside_the_profile(results: ReportData) -> Iterator[str]:
    """How many scored cells are extrapolated, and whether they count."""
    ranges = {score.cell: score.range for score in results.scores(results.answered, results.speed)}
    if outside := [*ranges.values()].count("outside"):
        cells = count(len(ranges), "cell")
        verb = by_number(outside, "lies", "lie")
        is_left_out = results.asked.extrapolate == "out"
        end = ": left out of verdicts and means." if is_left_out else "."
        yield f"{outside} of {cells} {verb} outside the range that was profiled{end}"


def processor_for_a_device(results: ReportData) -> Iterator[str]:
    """In how many trials no GPU did the work of a GPU."""
    if on_processor := sum(CPU in record.device for record in results.trials):
        yield (
            f"In {count(on_processor, 'trial')} the processor did the work of a device"
            " (device=cpu): nothing in them was measured on a GPU."
        )


# Under which conditions the times were measured, in the order in which a reader asks.
_CONDITIONS: tuple[Callable[[ReportData], Iterator[str]], ...] = (
    unmet_limits,
    cells_outside_the_profile,
    processor_for_a_device,
)


def first_pairs(results: ReportData, ranking: Ranking) -> dict[str, Comparison]:
    """Comparisons of the model with the smallest error, by the other one; none without a rank."""
    wanted = (ranking.quantity, ranking.speed, ranking.models[:1])
    return {
        pair.worse: pair
        for pair in results.score_book.comparisons
        if (pair.quantity, pair.speed, (pair.better,)) == wanted and pair.family == "explored"
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
        cells = 0
        names = set[str]()
        for prediction in results.predictions:
            if prediction.model == model and prediction.not_applicable:
                cells += 1
                names.update(prediction.not_applicable)
        if cells:
            lacking.setdefault((cells, tuple(sorted(names))), []).append(model)
    sentences = []
    for (cells, lacked), models in lacking.items():
        verb = "is" if len(models) == 1 else "are"
        # What a model of the user's own does wrong is a sentence, and no name of a statistic.
        is_slip = any(model in results.experiment.predict.code for model in models)
        why = "" if is_slip else "the profile lacks "
        sentences.append(
            f"{listing(models)} {verb} not applicable in {count(cells, 'cell')}: {why}"
            f"{listing(lacked, most=_MOST_LACKING)}."
        )
    return sentences


def model_warnings(predictions: Iterable[Prediction], own_models: Collection[str]) -> Iterator[str]:
    """What models of the user's own warn of, once for each model, and in how many cells."""
    warned: dict[str, list[str]] = {}
    for prediction in predictions:
        if prediction.model in own_models and prediction.warnings:
            warned.setdefault(prediction.model, []).append(prediction.warnings[0])
    for model, warnings in warned.items():
        others = count(len(warnings) - 1, "other cell") if len(warnings) > 1 else ""
        also = f" (and warnings in {others})" if others else ""
        yield f"{model} warns: {excerpt(warnings[0], 300)}{also}"
