"""Which cells to measure once more, so that an open verdict is reached with few trials."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from harness.base.records.score import Comparison, Measurement, Ranking, ScoreBook
from harness.base.stats.gaps import gap_noise
from harness.base.stats.sequential import may_tell, most_useful, shrunk_spreads
from harness.base.stats.spread import coefficient_of_variation
from harness.scoring.answers import is_open
from harness.scoring.comparisons import MARGIN


def next_repeats(
    score_book: ScoreBook, measurements: Sequence[Measurement]
) -> tuple[list[str], str]:
    """
    Cells to be measured once more, in their order, and why; none where no repeat is of use.

    Of the models than which none is nearer, the pair is taken that is closest to a verdict; as many
    trials are added as there are cells, each where it narrows the difference of the two most.  None
    is added where cells differ by so much that repeats of them would tell nothing.
    """
    import numpy as np

    ranking = score_book.ranking()
    if ranking is None or len(ranking.models) < 2:
        return [], "there are no two models to compare"
    pair = _closest_pair(score_book.comparisons, ranking)
    if pair is None:
        return [], "the verdict is reached"
    if pair.chance is None:
        return [], f"no repeat tells: {pair.reason}"
    times_s = _times_by_cell(measurements, ranking)
    better = _shares_by_cell(score_book, pair.better, ranking)
    worse = _shares_by_cell(score_book, pair.worse, ranking)
    cells = sorted(times_s.keys() & better.keys() & worse.keys())
    repeats = np.asarray([float(len(times_s[cell])) for cell in cells])
    spreads = np.asarray([coefficient_of_variation(times_s[cell]) or 0.0 for cell in cells])
    shares = np.asarray([[model[cell] for cell in cells] for model in (better, worse)])
    noise = gap_noise(shares.min(axis=0), shares.max(axis=0), shrunk_spreads(spreads, repeats))
    if not noise.any():
        return [], "no repeat tells: repeats do not differ where the models do"
    errors = np.abs(shares - 1)
    if not may_tell(errors[0] - errors[1], noise, repeats, margin=MARGIN):
        return [], f"no repeat of these cells tells enough: {pair.reason}"
    reason = f"{pair.better} or {pair.worse} is undecided: {pair.reason}"
    return [cells[place] for place in most_useful(noise, repeats, len(cells))], reason


def _closest_pair(comparisons: Iterable[Comparison], ranking: Ranking) -> Comparison | None:
    """
    The open pair that is least by chance: of those that were asked for, if there are such.

    Else of the first model and another of the nearest.
    """
    kind = (ranking.quantity, ranking.speed)
    pairs = [pair for pair in comparisons if (pair.quantity, pair.speed) == kind]
    candidates = [pair for pair in pairs if pair.family == "asked"] or [
        pair
        for pair in pairs
        if pair.better == ranking.nearest[0] and pair.worse in ranking.nearest
    ]
    return min(filter(is_open, candidates), key=_chance, default=None)


def _chance(pair: Comparison) -> float:
    """How often chance alone gives as much; always, where that cannot be said."""
    return 1.0 if pair.chance is None else pair.chance


def _times_by_cell(measurements: Iterable[Measurement], ranking: Ranking) -> dict[str, list[float]]:
    """Seconds of the trials of each cell, of what is ranked."""
    times_s: dict[str, list[float]] = defaultdict(list)
    for trial in measurements:
        trial_times = trial.raw_s if ranking.speed == "raw" else trial.reference_s
        if ranking.quantity in trial_times:
            times_s[trial.cell].append(trial_times[ranking.quantity])
    return times_s


def _shares_by_cell(score_book: ScoreBook, model: str, ranking: Ranking) -> dict[str, float]:
    """Predicted over measured time of *model* in each asked cell, of what is ranked."""
    found = score_book.answer
    kind = (ranking.quantity, ranking.speed)
    return {
        score.cell: score.predicted_s / score.measured_s
        for score in score_book.scores
        if (score.model, score.quantity, score.speed) == (model, *kind)
        and (found is None or found.question.is_about(score.range))
    }
