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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from harness.base.records.score import Comparison, Ranking, Score, Speed, Verdict
from harness.base.stats.pairs import fewest, pair_tests
from harness.base.stats.resampling import FEWEST_INPUTS, FEWEST_REFITS, kept_cells, varied_inputs

if TYPE_CHECKING:
    from harness.base.stats.resampling import Numbers

# Times of a model, cell and quantity by each refit of the cell's profile.
Refits = Mapping[tuple[str, str, str], Sequence[float | None]]

FAMILY_ERROR = 0.05
MARGIN = 0.02  # two points: models nearer to each other than that are equal
MOST_FRAME = 0.30  # of a job's time may pass around its tasks where job times are compared
FRAMED = ("job_s", "each_job_s", "published_s")
_FRAMED = f"the frame exceeds {100 * MOST_FRAME:.0f} % of the job"
_UNANSWERED = "a model that is compared has no answer"
_MOST_MORE = 1000


@dataclass
class _Answers:
    """Scores of one quantity at one speed, by model and cell; and the cells that do not count."""

    by_model: dict[str, dict[str, Score]] = field(default_factory=dict)
    framed: set[str] = field(default_factory=set)

    def add(self, score: Score, frame_share: float) -> None:
        """Add *score*, unless it is of a job time of which the frame is too large a share."""
        if score.quantity in FRAMED and frame_share > MOST_FRAME:
            self.framed.add(score.cell)
        else:
            self.by_model.setdefault(score.model, {})[score.cell] = score

    def not_compared(self, compared: int) -> dict[str, int]:
        """How many cells are not among the *compared* ones, by the reason."""
        by_reason = {_FRAMED: len(self.framed), _UNANSWERED: len(self.counted()) - compared}
        return {reason: number for reason, number in by_reason.items() if number}

    def counted(self) -> set[str]:
        """Cells that count and that a model answers."""
        return {*chain(*self.by_model.values())}

    def exclusion(self) -> str:
        """Say how many cells do not count, and why; nothing where all do."""
        if not self.framed:
            return ""
        excluded = len(self.framed)
        counted = len(self.counted())
        cells = f"{excluded} of {excluded + counted} cells"
        return f"{_FRAMED} in {cells}"


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
    groups: dict[tuple[str, Speed], _Answers] = defaultdict(_Answers)
    for score in scores:
        frame_share = frame_shares.get(score.cell, 0.0)
        groups[score.quantity, score.speed].add(score, frame_share)
    rankings = []
    comparisons = []
    for (quantity, speed), answers in groups.items():
        rows, left_out = ranked_rows(answers.by_model)
        compared = len(next(iter(rows.values()), ()))
        pairs = list[Comparison]()
        if len(rows) >= 2:
            family = _Family(rows, margin=margin, error=error, refits=refits or {})
            pairs = list(family.comparisons())
        comparisons += pairs
        left_out |= {model: "it has no answer" for model in models if model not in answers.by_model}
        rankings.append(
            Ranking(
                quantity=quantity,
                speed=speed,
                cells=compared,
                models=tuple(rows),
                errors=tuple(_mean_error(row) for row in rows.values()),
                nearest=_nearest(rows, pairs),
                left_out=left_out if rows else {},
                reason=answers.exclusion(),
                cells_left_out=answers.not_compared(compared),
            )
        )
    return rankings, comparisons


def _mean_error(row: Sequence[Score]) -> float:
    """Mean relative error of a model over the cells of its *row*."""
    return fmean(score.relative_error for score in row)


def _nearest(models: Iterable[str], pairs: Sequence[Comparison]) -> tuple[str, ...]:
    """The *models* of which no other is proved to be nearer."""
    farther = {pair.worse for pair in pairs if pair.verdict == "nearer"}
    return tuple(model for model in models if model not in farther)


def ranked_rows(
    by_model: Mapping[str, Mapping[str, Score]],
) -> tuple[dict[str, list[Score]], dict[str, str]]:
    """
    Scores of the ranked models, the nearest first, in the cells that all of them answer.

    With them why others are left out: who answers less than half as many cells as another is not
    ranked; nor, while those that are share no cell, is the one with the fewest.
    """
    measured = set[str]().union(*by_model.values())
    most_answers = max(map(len, by_model.values()), default=0)
    left_out = {
        model: f"it answers {len(answers)} of {len(measured)} cells"
        for model, answers in by_model.items()
        if 2 * len(answers) < most_answers
    }
    ranked = {model: by_model[model] for model in by_model if model not in left_out}
    cells = measured.intersection(*ranked.values())
    while ranked and not cells:
        fewest_answers = max(ranked, key=lambda model: (-len(by_model[model]), model))
        left_out[fewest_answers] = "it answers no cell that all others answer"
        del ranked[fewest_answers]
        cells = measured.intersection(*ranked.values())
    rows = {model: [answers[cell] for cell in sorted(cells)] for model, answers in ranked.items()}
    order = sorted(rows, key=lambda model: (_mean_error(rows[model]), model))
    return {model: rows[model] for model in order}, left_out


def refitted(rows: Mapping[str, Sequence[Score]], refits: Refits) -> Numbers | None:
    """
    Predicted over measured times by the n-th refits of all profiles: refits x models x cells.

    `None` where a profile has too few.  Of one that has fewer than another, the last are as it is.
    """
    import numpy as np

    refit_counts = [
        len(refits.get((score.model, score.cell, score.quantity), ()))
        for score in chain(*rows.values())
    ]
    if min(refit_counts) < FEWEST_REFITS:
        return None
    # Refits last at first: sums over cells are then taken in one order, whatever their number.
    cell_count = len(next(iter(rows.values())))
    shares = np.empty((len(rows), cell_count, max(refit_counts)))
    for model_place, row in enumerate(rows.values()):
        for cell_place, score in enumerate(row):
            times_s = refits[score.model, score.cell, score.quantity]
            shares[model_place, cell_place] = score.predicted_s
            # `None`, a refit without an answer, becomes NaN.
            shares[model_place, cell_place, : len(times_s)] = np.array(times_s, dtype=float)
            shares[model_place, cell_place] /= score.measured_s
    return np.moveaxis(shares, -1, 0)


def cell_floors(cells: Sequence[Score]) -> list[float]:
    """
    Noise floor of each cell, as a share of its mean.

    A cell without one has the largest of all.  Where none is known it is 1, and no test counts.
    """
    largest = max((cell.floor for cell in cells if cell.floor is not None), default=0.0)
    if not largest:
        return [1.0] * len(cells)
    return [largest if cell.floor is None else cell.floor for cell in cells]


class _Way(NamedTuple):
    """What could be measured more often, so that a verdict is reached."""

    noun: str
    variance: float  # the part that it explains, which shrinks with its number
    number: int  # of those that were measured
    adds_freedom: bool  # whether one more is one more degree of freedom

    def named(self, count: float) -> str:
        """In words, so many more of it."""
        return f"{count:.0f} more {self.noun}{'s' if count > 1 else ''}"


class _Family:
    """
    The pairs of the ranked models of one quantity and speed: one family of tests.

    *rows* hold the scores of two models or more, the nearest first, in the same cells.
    """

    def __init__(
        self, rows: Mapping[str, Sequence[Score]], *, margin: float, error: float, refits: Refits
    ) -> None:
        import numpy as np

        self.rows = rows
        self.margin = margin
        self.error = error
        self.cells = next(iter(rows.values()))
        cell_inputs = [cell.input for cell in self.cells]
        self.inputs = varied_inputs(cell_inputs)
        self.known_floors = [cell.floor for cell in self.cells if cell.floor is not None]
        self.tests = pair_tests(
            np.asarray(
                [[score.predicted_s / score.measured_s for score in row] for row in rows.values()]
            ),
            np.asarray(cell_floors(self.cells)),
            kept_cells(cell_inputs),
            margin=margin,
            freedom=max(1, self.cells[0].trials - 1),
            refits=refitted(rows, refits),
        )

    @property
    def few_inputs(self) -> bool:
        """Whether cells share their input, and have too few inputs to speak of others."""
        return self.inputs is not None and self.inputs < FEWEST_INPUTS

    def comparisons(self) -> Iterator[Comparison]:
        """Yield the verdict on each pair, those of the nearest model first."""
        for place, (better, worse) in enumerate(combinations(self.rows, 2)):
            verdict, reason = self.verdict(place, better, worse)
            if verdict != "undecided":
                reason += self.scope(place)
            yield Comparison(
                better=better,
                worse=worse,
                quantity=self.cells[0].quantity,
                speed=self.cells[0].speed,
                cells=len(self.cells),
                difference=float(self.tests.difference[place]),
                low=float(self.tests.low[place]),
                high=float(self.tests.high[place]),
                verdict=verdict,
                reason=reason,
                chance=float(self.tests.distinct[place]) if any(self.known_floors) else None,
            )

    def verdict(self, place: int, better: str, worse: str) -> tuple[Verdict, str]:
        """The verdict on the pair at *place* of the tests, and why it is so."""
        pairs = zip(self.rows[better], self.rows[worse], strict=True)
        if all(first.predicted_s == second.predicted_s for first, second in pairs):
            return "equal", "both predict the same times"
        if not self.known_floors:
            return "undecided", "the noise is not known, because no cell was measured twice"
        if not any(self.known_floors):
            return "undecided", "the noise is not known, because repeats do not differ at all"
        if self.tests.equal[place] <= self.error:
            return "equal", f"their errors differ by less than {100 * self.margin:g} points"
        if self.tests.distinct[place] <= self.error:
            chance = max(0.01, 100 * float(self.tests.distinct[place]))
            return "nearer", f"chance gives as much in at most {chance:.2g} % of cases"
        return "undecided", self.what_would_tell(place)

    def scope(self, place: int) -> str:
        """End of the reason of a verdict: what it is limited to; empty where nothing limits it."""
        scope = ""
        if len(self.cells) == 1:
            scope = "; this holds for one cell alone"
        elif self.few_inputs:
            inputs = "one input" if self.inputs == 1 else "two inputs"
            scope = f"; this holds for {inputs} alone"
        if math.isnan(self.tests.profile[place]):
            scope += "; the profile counts as given"
        return scope

    def what_would_tell(self, place: int) -> str:
        """Say how many more repeats, cells or inputs would give the pair at *place* a verdict."""
        import numpy as np

        # Holm's method divides the error among the pairs that are open.
        is_open = (self.tests.distinct > self.error) & (self.tests.equal > self.error)
        error = self.error / int(is_open.sum())
        variance = float(self.tests.variance[place])
        difference = float(self.tests.difference[place])
        more = np.unique(np.geomspace(1, _MOST_MORE, 60).round())
        ways = self.ways(place)
        texts = {}
        for way in ways:
            shrunk = way.variance * way.number / (way.number + more)
            variances = max(0.0, variance - way.variance) + shrunk
            freedoms = self.tests.units - 1 + way.adds_freedom * more
            step = fewest(difference, variances, freedoms, margin=self.margin, error=error)
            if step is not None:
                texts[way.noun] = way.named(more[step])
        if not texts:
            nouns = " or ".join(f"{way.noun}s" for way in ways)
            return f"not even {_MOST_MORE} more {nouns} would tell"
        only = "" if "repeat" in texts else ", more repeats would not"
        return f"{' or '.join(texts.values())} would tell{only}"

    def ways(self, place: int) -> list[_Way]:
        """What could be measured more often for the pair at *place*."""
        import numpy as np

        variance = float(self.tests.variance[place])
        noise = float(self.tests.noise[place])
        profile = float(np.nan_to_num(self.tests.profile[place]))
        fewest_trials = min(cell.trials for cell in self.cells)
        # Of a single cell, repeats are all that varies.
        ways = [_Way("repeat", noise, fewest_trials, adds_freedom=len(self.cells) == 1)]
        if len(self.cells) > 1:
            noun = "cell" if self.inputs is None or self.few_inputs else "input"
            ways.append(_Way(noun, variance - profile, self.tests.units, adds_freedom=True))
        if profile:
            ways.append(_Way("profiling cell", profile, self.tests.refits, adds_freedom=False))
        return ways
