"""
Models against each other: which are compared, on which cells, and what may be said of each pair.

Models are compared where all of them have an answer, so that none wins by the cells that it leaves
out.  What is asked is one family of tests, `asked`: whether the first model is nearer than each of
the others.  All pairs by job times are another one, `explored`, in which more is tried and less can
be said.  Of a pair one model is `nearer`, both are `equal` (their mean errors differ by less than
the margin), or it is `undecided`, and then the reason says what would tell.
"""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import TYPE_CHECKING, NamedTuple

from harness.base.records.question import BEST, Asked, Question, Scope
from harness.base.records.score import COMPARED, Comparison, Family, Ranking, Score, Speed, Verdict
from harness.base.stats.flips import FEWEST_UNITS, FlipTests, Side, flip_tests, held_at_all
from harness.scoring.any_profile import AnewByCell, profile_spread, widened
from harness.scoring.remedies import Remedy, remedy_text
from harness.scoring.speeds import AS_IT_IS, ReadAt, errors_at
from harness.scoring.weights import relative_weights, weighted_mean

if TYPE_CHECKING:
    from harness.base.stats.resampling import Numbers

Rows = Mapping[str, Sequence[Score]]  # of each model, in the same cells
Pair = tuple[str, str]

FAMILY_ERROR = 0.05
MARGIN = 0.02  # two points: models nearer to each other than that are equal
DRIFT_LEAVES_IT_OPEN = (
    "it is told with the drift as it is, and not at both ends of its interval:"
    " more sentinels would tell"
)
MOST_IN_SAMPLE = 0.1  # of a job: who misses more of what it learnt from has no rank
UNLEARNT = "it does not reproduce the jobs it learnt from"
_UNANSWERED = "a model that is compared has no answer"
_SAME = 1e-9  # predictions that differ by a smaller share are the same


def compare(
    scores: Sequence[Score],
    *,
    models: Sequence[str] = (),
    question: Question | None = None,
    asked: Asked = "afterwards",
    error: float = FAMILY_ERROR,
    anew: AnewByCell | None = None,
    earlier: Sequence[Score] = (),
    read_at: ReadAt = ReadAt(),  # noqa: B008  (it never changes)
) -> tuple[list[Ranking], list[Comparison]]:
    """
    Rank the models per quantity and speed, and compare them by job times.

    *models* are all that were asked: who answers nowhere is named, too.  The *question* has a
    family of its own, unless it was *asked* beside another one.  *error* is the level of one look
    at the data.  *anew* are times by profiles without some trials: a verdict says whether it holds
    with any profile of this kind, if there are profiles.  *earlier* are scores of models that had
    been asked before: what is explored is one family with them.  What is asked is *read at* one
    speed.
    """
    groups = defaultdict[tuple[str, Speed], list[Score]](list)
    for score in scores:
        groups[score.quantity, score.speed].append(score)
    asks = question or Question(how_far=BEST)
    at_speed = Settings(asks.scope, error, anew, read_at.stretches)
    at_other_speed = replace(at_speed, stretches=AS_IT_IS)
    before = scores_by_model(earlier)
    rankings = []
    comparisons = list[Comparison]()
    for (quantity, group_speed), group_scores in groups.items():
        is_read = group_speed == read_at.speed
        settings = at_speed if is_read else at_other_speed
        by_model = scores_by_model(group_scores)
        unlearnt = unlearnt_models(by_model)
        learnt = {model: row for model, row in by_model.items() if model not in unlearnt}
        rows, left_out = ranked_rows(learnt)
        pairs = explored_pairs(rows, settings, before) if quantity == COMPARED else []
        if quantity == COMPARED and is_read and asked != "explored":
            comparisons += asked_pairs(asks, by_model, settings)
        comparisons += pairs
        left_out |= {model: "it has no answer" for model in models if model not in by_model}
        ranking = ranking_of(quantity, group_speed, rows, learnt)
        changes: dict[str, object] = {"left_out": (left_out if rows else {}) | unlearnt}
        if quantity == COMPARED:
            changes["nearest"] = _nearest(rows, pairs)
        rankings.append(ranking.model_copy(update=changes))
    return rankings, comparisons


def scores_by_model(scores: Iterable[Score]) -> dict[str, dict[str, Score]]:
    """*scores* of one quantity at one speed by their models and cells."""
    by_model = defaultdict[str, dict[str, Score]](dict)
    for score in scores:
        by_model[score.model][score.cell] = score
    return dict(by_model)


def unlearnt_models(by_model: Mapping[str, Mapping[str, Score]]) -> dict[str, str]:
    """
    Models that do not reproduce the jobs they learnt from, with these words.

    Their in-sample miss, its size as a mean over the scored cells, is above a tenth of the job.
    Where a run has stored none, nothing is said.
    """
    unlearnt = dict[str, str]()
    for model, answers in by_model.items():
        known = [score for score in answers.values() if score.in_sample_miss is not None]
        sizes = [abs(score.in_sample_miss or 0.0) for score in known]
        if known and weighted_mean(sizes, known) > MOST_IN_SAMPLE:
            unlearnt[model] = UNLEARNT
    return unlearnt


def job_scores(scores: Iterable[Score], speed: Speed) -> dict[str, dict[str, Score]]:
    """Those of *scores* by which models are compared at that *speed*, by models and cells."""
    return scores_by_model(
        score for score in scores if (score.quantity, score.speed) == (COMPARED, speed)
    )


def ranking_of(
    quantity: str, speed: Speed, rows: Rows, by_model: Mapping[str, Mapping[str, Score]]
) -> Ranking:
    """The order of the models of *rows*, and how many cells are left out that others answer."""
    compared = len(next(iter(rows.values()), ()))
    unanswered = len({*chain(*by_model.values())}) - compared
    return Ranking(
        quantity=quantity,
        speed=speed,
        cells=compared,
        models=tuple(rows),
        errors=tuple(map(mean_error, rows.values())),
        cells_left_out={_UNANSWERED: unanswered} if unanswered else {},
    )


def mean_error(row: Sequence[Score]) -> float:
    """Mean relative error of a model over the cells of its *row*."""
    return weighted_mean([score.relative_error for score in row], row)


def _nearest(models: Iterable[str], pairs: Sequence[Comparison]) -> tuple[str, ...]:
    """The *models* of which no other is nearer; one model alone is never nearest."""
    farther = {pair.worse for pair in pairs if pair.verdict == "nearer"}
    ranked = tuple(models)
    return tuple(model for model in ranked if model not in farther) if len(ranked) > 1 else ()


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
    rows = rows_in_order(ranked, cells)
    order = sorted(rows, key=lambda model: (mean_error(rows[model]), model))
    return {model: rows[model] for model in order}, left_out


def rows_in_order(
    by_model: Mapping[str, Mapping[str, Score]], cells: Collection[str]
) -> dict[str, list[Score]]:
    """
    Scores of each model in *cells*, which all of them answer, in the order of measured times.

    So sums over cells are the same, to the last bit, however cells are called.
    """
    measured = next(iter(by_model.values()), {})
    order = sorted(cells, key=lambda cell: (measured[cell].measured_s, cell))
    return {model: [answers[cell] for cell in order] for model, answers in by_model.items()}


# Families of pairs


@dataclass(frozen=True, slots=True)
class Settings:
    """
    For what verdicts are to hold, at which level one look is taken, and times by other profiles.

    A verdict holds at all *stretches*.
    """

    scope: Scope
    error: float
    anew: AnewByCell | None
    stretches: Sequence[float] = AS_IT_IS


def asked_pairs(
    question: Question, by_model: Mapping[str, Mapping[str, Score]], settings: Settings
) -> list[Comparison]:
    """
    Compare the first model of *question* with each of the others, where all of them have an answer.

    None where it compares none, where one has no answer at all, or where they share no cell.
    """
    if not question.nearer:
        return []
    named = [by_model.get(model, {}) for model in question.nearer]
    cells = set(named[0]).intersection(*named[1:])
    if not cells:
        return []
    rows = rows_in_order(dict(zip(question.nearer, named, strict=True)), cells)
    first, *rivals = question.nearer
    return compare_pairs(rows, [(first, rival) for rival in rivals], "asked", settings)


def explored_pairs(
    rows: Rows, settings: Settings, before: Mapping[str, Mapping[str, Score]]
) -> list[Comparison]:
    """
    Compare all pairs of the ranked models, whose *rows* are the nearest first.

    Models that had been asked *before* stand in the same family, where they answer the same cells.
    """
    cells = [score.cell for score in next(iter(rows.values()), ())]
    family = dict(rows)
    for model, answers in before.items():
        if cells and answers.keys() >= set(cells):
            family[f"{model} (asked before)"] = [answers[cell] for cell in cells]
    return compare_pairs(family, [*combinations(rows, 2)], "explored", settings)


def compare_pairs(
    rows: Rows, pairs: Sequence[Pair], family: Family, settings: Settings
) -> list[Comparison]:
    """
    Test *pairs* as one family, of all *rows* where they are explored.

    Models that predict the same are equal, and are tested once.
    """
    same_as = same_predictions(rows)
    in_family = combinations(rows, 2) if family == "explored" else pairs
    tested = dict.fromkeys(
        (same_as[first], same_as[second])
        for first, second in in_family
        if same_as[first] != same_as[second]
    )
    tests = _Tests.of(rows, [*tested], family, settings)
    places = {pair: place for place, pair in enumerate(tested)}
    comparisons = []
    for first, second in pairs:
        if same_as[first] == same_as[second]:
            comparisons.append(_equal_pair(rows, (first, second), family, settings))
        else:
            place = places[same_as[first], same_as[second]]
            comparisons.append(tests.comparison(place, (first, second)))
    return comparisons


def same_predictions(rows: Rows) -> dict[str, str]:
    """For each model the first of *rows* that predicts the same in all cells: mostly itself."""
    import numpy as np

    same_as = dict[str, str]()
    predicted = {model: [score.predicted_s for score in row] for model, row in rows.items()}
    for model, times_s in predicted.items():
        earlier = (name for name in same_as if same_as[name] == name)
        is_same = (name for name in earlier if np.allclose(times_s, predicted[name], _SAME, 0))
        same_as[model] = next(is_same, model)
    return same_as


def _equal_pair(rows: Rows, pair: Pair, family: Family, settings: Settings) -> Comparison:
    """The comparison of two models that predict the same."""
    better, worse = pair
    cells = rows[better]
    has_profiles = settings.anew is not None
    return Comparison(
        better=better,
        worse=worse,
        quantity=cells[0].quantity,
        speed=cells[0].speed,
        cells=len(cells),
        difference=0.0,
        low=0.0,
        high=0.0,
        verdict="equal",
        reason="both predict the same times",
        chance=1.0,
        family=family,
        any_profile="equal" if has_profiles else None,
        any_low=0.0 if has_profiles else None,
        any_high=0.0 if has_profiles else None,
        errors=(mean_error(rows[better]), mean_error(rows[worse])),
    )


def units_of(cells: Sequence[Score], scope: Scope) -> list[str]:
    """
    The unit of each cell: itself, or of the *scope* of inputs its input.

    A cell whose input is not known stands for itself.  Names of units begin with their place by the
    mean of their measured times, so that cells may be called otherwise and are flipped alike.
    """
    names = [cell.cell if scope == "jobs" else cell.input or f"\0{cell.cell}" for cell in cells]
    times_s = defaultdict[str, list[float]](list)
    for name, cell in zip(names, cells, strict=True):
        times_s[name].append(cell.measured_s)
    order = sorted(times_s, key=lambda name: (math.fsum(times_s[name]) / len(times_s[name]), name))
    place = {name: f"{number:06} {name}" for number, name in enumerate(order)}
    return [place[name] for name in names]


class _AnyProfile(NamedTuple):
    """A verdict with any profile of this kind, and between which ends the difference lies."""

    verdict: Verdict
    low: float | None
    high: float | None

    @classmethod
    def of(cls, verdict: Verdict, low: float, high: float) -> _AnyProfile:
        """What is left of a *verdict* where the difference lies between these ends."""
        held: Verdict = "undecided"
        if low > -MARGIN and high < MARGIN:
            held = "equal"
        elif verdict == "nearer" and not low <= 0 <= high:
            held = "nearer"
        return cls(held, _bounded(low), _bounded(high))

    @property
    def clause(self) -> str:
        """End of the reason of a verdict: what another profile would change."""
        if self.verdict != "undecided":
            return ", with any profile of this kind"
        if self.low is None and self.high is None:
            return ", with this profile: how far it varies is not known"
        ends = " to ".join(
            "no end" if end is None else f"{100 * end:+.1f}" for end in (self.low, self.high)
        )
        return f", with this profile: with any of its kind they differ by {ends} points"


def _bounded(end: float) -> float | None:
    """An *end* of an interval; `None` where there is none."""
    return end if math.isfinite(end) else None


@dataclass(frozen=True)
class _Tests:
    """The *pairs* of a *family* of models, whose *rows* are in the same cells, and their tests."""

    rows: Rows
    pairs: Sequence[Pair]
    family: Family
    settings: Settings
    gaps: Numbers  # pairs x cells
    units: Sequence[str]
    tests: FlipTests | None  # none where the units are too few
    as_it_is: FlipTests | None  # with the drift as it is

    @classmethod
    def of(cls, rows: Rows, pairs: Sequence[Pair], family: Family, settings: Settings) -> _Tests:
        """Test *pairs* at each stretch, unless there are too few units."""
        cells = next(iter(rows.values()), ())
        units = units_of(cells, settings.scope)
        gaps = [_gaps(rows, pairs, stretch) for stretch in settings.stretches]
        if not len(pairs) or len(set(units)) < FEWEST_UNITS:
            return cls(rows, pairs, family, settings, gaps[0], units, None, None)
        side = cls.side(family)
        weights = relative_weights(cells)
        tests = [
            flip_tests(found, units, side=side, error=settings.error, weights=weights)
            for found in gaps
        ]
        return cls(rows, pairs, family, settings, gaps[0], units, held_at_all(tests), tests[0])

    @staticmethod
    def side(family: Family) -> Side:
        """A question names the model that may be nearer; who explores takes either."""
        return "first" if family == "asked" else "either"

    @property
    def cells(self) -> Sequence[Score]:
        """Scores of one of the models."""
        return next(iter(self.rows.values()))

    def comparison(self, place: int, pair: Pair) -> Comparison:
        """The verdict on *pair*, whose predictions are those of the pair at *place*."""
        better, worse = pair
        low, high = self.ends(place)
        verdict, reason = self.verdict(place, low, high)
        if verdict != "undecided":
            reason += self.scope()
        any_profile = self.with_any_profile(place, verdict)
        if any_profile is not None and verdict != "undecided":
            reason += any_profile.clause
        return Comparison(
            better=better,
            worse=worse,
            quantity=self.cells[0].quantity,
            speed=self.cells[0].speed,
            cells=len(self.cells),
            difference=self.difference(place),
            low=_bounded(low),
            high=_bounded(high),
            verdict=verdict,
            reason=reason,
            chance=None if self.tests is None else float(self.tests.chance[place]),
            family=self.family,
            any_profile=None if any_profile is None else any_profile.verdict,
            any_low=None if any_profile is None else any_profile.low,
            any_high=None if any_profile is None else any_profile.high,
            errors=(mean_error(self.rows[better]), mean_error(self.rows[worse])),
        )

    def difference(self, place: int) -> float:
        """Mean gap of the pair at *place*."""
        return float((self.gaps[place] * relative_weights(self.cells)).mean())

    def ends(self, place: int) -> tuple[float, float]:
        """Ends of the difference as tested; of too few units the range of the cells."""
        if self.tests is None:
            return float(self.gaps[place].min()), float(self.gaps[place].max())
        return float(self.tests.low[place]), float(self.tests.high[place])

    def verdict(self, place: int, low: float, high: float) -> tuple[Verdict, str]:
        """The verdict on the pair at *place* of the tests, and why it is so."""
        if self.tests is None:
            return "undecided", self.too_few()
        if low > -MARGIN and high < MARGIN:
            return "equal", f"their errors differ by less than {100 * MARGIN:g} points"
        chance = float(self.tests.chance[place])
        if chance > self.settings.error:
            return "undecided", self.what_would_tell(place)
        return "nearer", f"chance gives as much in at most {100 * chance:.2g} % of cases"

    def too_few(self) -> str:
        """Why nothing can be told, and how many cells or inputs it takes."""
        lacking = FEWEST_UNITS - len(set(self.units))
        noun = "cell" if self.settings.scope == "jobs" else "input"
        plural = "s" if lacking > 1 else ""
        return f"from {FEWEST_UNITS} {noun}s on it can be tested: {lacking} more {noun}{plural}"

    def with_any_profile(self, place: int, verdict: Verdict) -> _AnyProfile | None:
        """What is left of a *verdict* with any profile of this kind; `None`: there is none."""
        if self.settings.anew is None:
            return None
        low, high = self.ends(place)
        is_farther = self.family == "asked" and self.tests is not None and low > _SAME
        if verdict == "undecided" and not is_farther:
            return None
        first, second = self.pairs[place]
        spread = profile_spread(self.rows[first], self.rows[second], self.settings.anew)
        if spread is None:
            return _AnyProfile("undecided", None, None)
        sides = 1 if self.family == "asked" else 2
        ends = widened((low, high), self.difference(place), spread, self.settings.error / sides)
        return _AnyProfile.of(verdict, *ends)

    def scope(self) -> str:
        """End of the reason of a verdict: for what it holds."""
        if self.settings.scope == "inputs":
            return f"; this holds for inputs of this kind ({len(set(self.units))} of them)"
        return "; this holds for these jobs"

    def what_would_tell(self, place: int) -> str:
        """Say which repeats and cells or inputs would give the pair at *place* a verdict."""
        assert self.tests is not None
        assert self.as_it_is is not None
        if self.as_it_is.chance[place] <= self.settings.error:
            return DRIFT_LEAVES_IT_OPEN
        open_count = int((self.tests.chance > self.settings.error).sum())
        sides = 1 if self.family == "asked" else 2
        remedy = Remedy(
            scores=[self.rows[model] for model in self.pairs[place]],
            units=self.units,
            noun="cell" if self.settings.scope == "jobs" else "input",
            error=self.settings.error / open_count / sides,
            margin=MARGIN,
        )
        return remedy_text(remedy)


def _gaps(rows: Rows, pairs: Sequence[Pair], stretch: float) -> Numbers:
    """Errors of the first of each pair less those of the second, at a *stretch*: pairs x cells."""
    import numpy as np

    errors = {model: errors_at(row, stretch) for model, row in rows.items()}
    return np.asarray([errors[first] - errors[second] for first, second in pairs])
