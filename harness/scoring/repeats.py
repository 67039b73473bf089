"""Which cells to measure once more, so that an open verdict is reached with few trials."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from harness.records.score import Measurement, ScoreBook
from harness.stats.spread import coefficient_of_variation


def next_repeats(
    score_book: ScoreBook, measurements: Sequence[Measurement]
) -> tuple[list[str], str]:
    """
    Cells to be measured once more, in their order, and why; none where no repeat is of use.

    Of the models than which none is nearer, the pair is taken that is closest to a verdict; as many
    trials are added as there are cells, each where it narrows the difference of the two most.
    """
    import numpy as np

    from harness.stats.pairs import gap_noise
    from harness.stats.sequential import most_useful, shrunk_spreads

    ranking = score_book.ranking("raw")
    if ranking is None or len(ranking.models) < 2:
        return [], "there are no two models to compare"
    open_pairs = [
        pair
        for pair in score_book.comparisons
        if (pair.quantity, pair.speed, pair.verdict) == (ranking.quantity, "raw", "undecided")
        and ranking.nearest[0] == pair.better
        and pair.worse in ranking.nearest
    ]
    if not open_pairs:
        return [], "the verdict is reached"
    pair = min(open_pairs, key=lambda pair: 1.0 if pair.chance is None else pair.chance)
    times_s: dict[str, list[float]] = defaultdict(list)
    for trial in measurements:
        if ranking.quantity in trial.raw_s:
            times_s[trial.cell].append(trial.raw_s[ranking.quantity])
    rows = {
        (score.model, score.cell): score.predicted_s / score.measured_s
        for score in score_book.scores
        if (score.quantity, score.speed) == (ranking.quantity, "raw")
    }
    models = (pair.better, pair.worse)
    cells = sorted(cell for cell in times_s if all((model, cell) in rows for model in models))
    repeats = np.asarray([float(len(times_s[cell])) for cell in cells])
    spreads = np.asarray([coefficient_of_variation(times_s[cell]) or 0.0 for cell in cells])
    shares = np.asarray([[rows[model, cell] for cell in cells] for model in models])
    noise = gap_noise(shares.min(axis=0), shares.max(axis=0), shrunk_spreads(spreads, repeats))
    reason = f"{pair.better} or {pair.worse} is undecided: {pair.reason}"
    return [cells[place] for place in most_useful(noise, repeats, len(cells))], reason
