"""
Models against each other: which are compared, on which cells, and what may be said of each pair.

Models are compared where all of them have an answer, so that none wins by the cells that it leaves
out.  Of a pair one model is `nearer`, both are `equal` (their mean errors differ by less than the
margin), or it is `undecided`, and then the reason says what would tell.  All pairs of one quantity
and speed are one family: in 5 of 100 families at most, a pair of equal models is called `nearer`.
"""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations
from statistics import fmean
from typing import TYPE_CHECKING

from harness.records.score import Comparison, Ranking, Score, Speed, Verdict
from harness.stats.resampling import FEWEST_INPUTS, FEWEST_REFITS, kept_cells, varied_inputs

if TYPE_CHECKING:
    from harness.stats.pairs import PairTests
    from harness.stats.resampling import Numbers

# Times of a model, cell and quantity by each refit of the cell's profile.
Refits = Mapping[tuple[str, str, str], Sequence[float | None]]

FAMILY_ERROR = 0.05
MARGIN = 0.02  # two points: models nearer to each other than that are equal
MOST_FRAME = 0.30  # of a job's time may pass around its tasks where job times are compared
FRAMED = ("job_s", "each_job_s", "published_s")
_MOST_MORE = 1000


def compare(
    scores: Sequence[Score],
    frame_shares: Mapping[str, float],
    *,
    models: Sequence[str] = (),
    margin: float = MARGIN,
    error: float = FAMILY_ERROR,
    refits: Refits | None = None,
) -> tuple[list[Ranking], list[Comparison]]:
    """
    Rank the models per quantity and speed, and compare each pair.

    *frame_shares* has the share of each cell's job time that passes around its tasks, where that is
    known: cells where it exceeds 30 % count in no verdict on job times.  *models* are all that were
    asked: who answers nowhere is named, too.  *error* is the level of one look at the data.
    *refits* are times by refits of the profiles; without them these count as given.
    """
    groups: dict[tuple[str, Speed], dict[str, dict[str, Score]]] = defaultdict(dict)
    framed: dict[tuple[str, Speed], set[str]] = defaultdict(set)
    for score in scores:
        by_model = groups[score.quantity, score.speed]
        if score.quantity in FRAMED and frame_shares.get(score.cell, 0.0) > MOST_FRAME:
            framed[score.quantity, score.speed].add(score.cell)
        else:
            by_model.setdefault(score.model, {})[score.cell] = score
    rankings = []
    comparisons = []
    for (quantity, speed), by_model in groups.items():
        ranked, cells, left_out = _common(by_model)
        errors = {
            model: fmean(by_model[model][cell].relative_error for cell in cells) for model in ranked
        }
        order = sorted(ranked, key=lambda model: (errors[model], model))
        rows = {model: [by_model[model][cell] for cell in cells] for model in order}
        pairs = list(_pairs(rows, margin, error, refits or {}))
        comparisons += pairs
        farther = {pair.worse for pair in pairs if pair.verdict == "nearer"}
        left_out |= {model: "it has no answer" for model in models if model not in by_model}
        excluded = len(framed[quantity, speed])
        of_cells = f"{excluded} of {excluded + len({*chain(*by_model.values())})} cells"
        reason = f"the frame exceeds {100 * MOST_FRAME:.0f} % of the job in {of_cells}"
        rankings.append(
            Ranking(
                quantity=quantity,
                speed=speed,
                cells=len(cells),
                models=tuple(order),
                errors=tuple(errors[model] for model in order),
                nearest=tuple(model for model in order if model not in farther),
                left_out=left_out if order else {},
                reason=reason if excluded else "",
            )
        )
    return rankings, comparisons


def _common(
    by_model: Mapping[str, Mapping[str, Score]],
) -> tuple[list[str], list[str], dict[str, str]]:
    """
    Choose the models to be ranked and the cells that all of them answer, with who is left out.

    Who answers less than half as many cells as another is not ranked; nor, while those that are
    share no cell, is the one with the fewest.
    """
    measured = {cell for answers in by_model.values() for cell in answers}
    most = max(map(len, by_model.values()), default=0)
    left_out = {
        model: f"it answers {len(answers)} of {len(measured)} cells"
        for model, answers in by_model.items()
        if 2 * len(answers) < most
    }
    ranked = [model for model in by_model if model not in left_out]
    while not (cells := measured.intersection(*(by_model[model] for model in ranked))) and ranked:
        fewest = max(ranked, key=lambda model: (-len(by_model[model]), model))
        left_out[fewest] = "it answers no cell that all others answer"
        ranked.remove(fewest)
    return ranked, sorted(cells), left_out


def refitted(rows: Mapping[str, Sequence[Score]], refits: Refits) -> Numbers | None:
    """
    Predicted over measured times by the n-th refits of all profiles: refits x models x cells.

    `None` where a profile has too few.  Of one that has fewer than another, the last are as it is.
    """
    import numpy as np

    times_s = [
        [refits.get((model, each.cell, each.quantity), ()) for each in row]
        for model, row in rows.items()
    ]
    counts = [*map(len, chain(*times_s))]
    if min(counts) < FEWEST_REFITS:
        return None
    shares = [
        [
            [
                (math.nan if time_s is None else time_s) / each.measured_s
                for time_s in (*times, *[each.predicted_s] * (max(counts) - len(times)))
            ]
            for times, each in zip(*row, strict=True)
        ]
        for row in zip(times_s, rows.values(), strict=True)
    ]
    return np.moveaxis(np.asarray(shares), -1, 0)


def _pairs(
    rows: Mapping[str, Sequence[Score]], margin: float, error: float, refits: Refits
) -> Iterator[Comparison]:
    """Compare the models of *rows*, nearest first, pair by pair: one family."""
    import numpy as np

    from harness.stats.pairs import pair_tests

    if len(rows) < 2:
        return
    cells = next(iter(rows.values()))
    floors = [cell.floor for cell in cells if cell.floor is not None]
    # A cell without a floor has the largest one; where none is known, no test below counts.
    noise = max(floors, default=0.0) or 1.0
    tests = pair_tests(
        np.asarray([[one.predicted_s / one.measured_s for one in row] for row in rows.values()]),
        np.asarray(
            [cell.floor if any(floors) and cell.floor is not None else noise for cell in cells]
        ),
        kept_cells([cell.input for cell in cells]),
        margin=margin,
        freedom=max(1, cells[0].trials - 1),
        refits=refitted(rows, refits),
    )
    open_pairs = ((tests.distinct > error) & (tests.equal > error)).sum()
    for place, (better, worse) in enumerate(combinations(rows, 2)):
        seconds = zip(rows[better], rows[worse], strict=True)
        verdict: Verdict = "undecided"
        if all(one.predicted_s == other.predicted_s for one, other in seconds):
            verdict = "equal"
            reason = "both predict the same times"
        elif not floors:
            reason = "the noise is not known, because no cell was measured twice"
        elif not any(floors):
            reason = "the noise is not known, because repeats do not differ at all"
        elif tests.equal[place] <= error:
            verdict = "equal"
            reason = f"their errors differ by less than {100 * margin:g} points"
        elif tests.distinct[place] <= error:
            chance = max(0.01, 100 * float(tests.distinct[place]))
            verdict = "nearer"
            reason = f"chance gives as much in at most {chance:.2g} % of cases"
        else:
            reason = _what_would_tell(tests, place, cells, error / int(open_pairs), margin)
        inputs = varied_inputs([cell.input for cell in cells])
        if verdict != "undecided" and len(cells) == 1:
            reason += "; this holds for one cell alone"
        elif verdict != "undecided" and inputs is not None and inputs < FEWEST_INPUTS:
            reason += f"; this holds for {'one input' if inputs == 1 else 'two inputs'} alone"
        if verdict != "undecided" and np.isnan(tests.profile[place]):
            reason += "; the profile counts as given"
        yield Comparison(
            better=better,
            worse=worse,
            quantity=cells[0].quantity,
            speed=cells[0].speed,
            cells=len(cells),
            difference=float(tests.difference[place]),
            low=float(tests.low[place]),
            high=float(tests.high[place]),
            verdict=verdict,
            reason=reason,
            chance=float(tests.distinct[place]) if any(floors) else None,
        )


def _what_would_tell(
    tests: PairTests, place: int, cells: Sequence[Score], error: float, margin: float
) -> str:
    """Say how many more repeats, cells or inputs would give the pair at *place* a verdict."""
    import numpy as np

    from harness.stats.pairs import fewest

    variance = float(tests.variance[place])
    noise = float(tests.noise[place])
    profile = float(np.nan_to_num(tests.profile[place]))
    more = np.unique(np.geomspace(1, _MOST_MORE, 60).round())
    # What each explains, which shrinks with its number, and whether it adds a degree of freedom.
    ways = [("repeat", noise, min(cell.trials for cell in cells), len(cells) == 1)]
    if len(cells) > 1:
        inputs = varied_inputs([cell.input for cell in cells])
        noun = "cell" if inputs is None or inputs < FEWEST_INPUTS else "input"
        ways.append((noun, variance - profile, tests.units, True))
    if profile:
        ways.append(("profiling cell", profile, tests.refits, False))
    difference = float(tests.difference[place])
    texts = {}
    for noun, part, number, adds in ways:
        variances = max(0.0, variance - part) + part * number / (number + more)
        freedoms = tests.units - 1 + adds * more
        step = fewest(difference, variances, freedoms, margin=margin, error=error)
        if step is not None:
            texts[noun] = f"{more[step]:.0f} more {noun}{'s' if step else ''}"
    if not texts:
        nouns = " or ".join(f"{noun}s" for noun, *_ in ways)
        return f"not even {_MOST_MORE} more {nouns} would tell"
    only = "" if "repeat" in texts else ", more repeats would not"
    return f"{' or '.join(texts.values())} would tell{only}"
