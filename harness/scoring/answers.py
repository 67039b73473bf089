"""
The answer to the question of a run: one sentence, of fixed form, and the numbers in it.

The form is fixed because `verify.py` of a bundle makes the sentence again (docs/scores.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from harness.base.records.question import BEST, Answer, Asked, Outcome, Question
from harness.base.records.score import COMPARED, Comparison, Ranking, Score
from harness.base.stats.flips import DRAWS, normal_draws
from harness.base.stats.resampling import FEWEST_CELLS, mean_interval, unit_count
from harness.scoring.claims import CLAIMS
from harness.scoring.comparisons import UNLEARNT, job_scores
from harness.scoring.controls import cell_floors, floor_of_cells
from harness.scoring.speeds import AS_IT_IS, errors_at
from harness.scoring.weights import relative_weights, weighted_mean

# What is said of a model by its verdict beside another.
_FATES = {
    "nearer": "is nearer than",
    "equal": "is equal to",
    "farther": "is farther than",
    "undecided": "cannot be told apart from",
}
_ROUNDING = 1e-9  # of an end that is 0
_MOVED_ALONE = "what has moved since another run is seen beside that run alone, by harness compare"


@dataclass(frozen=True)
class Scored:
    """
    What was scored of a run: its ranking and comparisons.

    *rows* are the scores of job times in the question's cells, by model and in the order of the
    measured times, by which draws are dealt out.  *stretches* are those of `ReadAt`.
    """

    rows: Mapping[str, Sequence[Score]]
    ranking: Ranking
    comparisons: Sequence[Comparison]
    asked: Asked
    stretches: Sequence[float] = AS_IT_IS

    @classmethod
    def of(
        cls,
        scores: Iterable[Score],
        ranking: Ranking,
        comparisons: Sequence[Comparison],
        asked: Asked,
        stretches: Sequence[float] = AS_IT_IS,
    ) -> Scored:
        """Those of *scores* that count, beside the *ranking* and the *comparisons* of them."""
        rows = {
            model: sorted(cells.values(), key=lambda row: (row.measured_s, row.cell))
            for model, cells in job_scores(scores, ranking.speed).items()
        }
        return cls(rows, ranking, comparisons, asked, stretches)

    @cached_property
    def common_cells(self) -> set[str]:
        """Cells that all ranked models answer."""
        answered = [{row.cell for row in self.row(model)} for model in self.ranking.models]
        return set.intersection(*answered) if answered else set()

    def row(self, model: str) -> Sequence[Score]:
        """Scores of job times of *model*, by their cells."""
        return self.rows.get(model, ())

    def common_row(self, model: str) -> list[Score]:
        """Those of *model* in the cells that all ranked models answer."""
        return [row for row in self.row(model) if row.cell in self.common_cells]

    def pair(self, first: str, second: str) -> Comparison | None:
        """
        The comparison of two models: as it was asked, else as it was explored.

        Of one that was explored the first may be the worse.
        """
        wanted = {(first, second), (second, first)}
        found = [
            pair
            for pair in self.comparisons
            if (pair.quantity, pair.speed) == (COMPARED, self.ranking.speed)
            and (pair.better, pair.worse) in wanted
        ]
        return min(found, key=lambda pair: pair.family, default=None)


def answer(question: Question, scored: Scored) -> Answer:
    """Answer *question* by what was scored; it cannot be told where nothing was."""
    match question.kind:
        case "nearer":
            return answer_nearer(question, scored)
        case "choice":
            return answer_choice(question, scored)
        case "claims":
            return answer_claims(question, scored)
        case "moved_since":
            return answer_moved_alone(question, scored)
        case "how_far":
            return answer_how_far(question, scored)


def answer_moved_alone(question: Question, scored: Scored) -> Answer:
    """Say that the run which *question* names is not here, and how far the best model is off."""
    best = answer_how_far(Question(how_far=BEST, scope=question.scope), scored)
    return no_answer(question, scored.asked, _MOVED_ALONE, best.sentence)


def no_answer(question: Question, asked: Asked, why: str, beside: str = "") -> Answer:
    """The answer where something lacks: *why*; and what can be said *beside* it."""
    sentence = f"It cannot be told: {why}. {beside}".rstrip()
    return Answer(question=question, asked=asked, outcome="cannot tell", sentence=sentence)


def share(value: float) -> str:
    """*value* as a sentence of an answer has it."""
    return f"{100 * value:.1f} %"


def listed(names: Sequence[str]) -> str:
    """The *names* as a sentence has them."""
    *first_names, last = names
    return f"{', '.join(first_names)} and {last}" if first_names else last


def cells_text(number: int) -> str:
    """So many cells."""
    return f"{number} cell{'s' if number != 1 else ''}"


# How far


def answer_how_far(question: Question, scored: Scored) -> Answer:
    """How far the model is off, or the one that errs least; whether that is inside the noise."""
    model = question.how_far
    row = scored.row(model)
    if model in ("", BEST):
        if not scored.ranking.models:
            return no_answer(question, scored.asked, why_no_best(scored.ranking))
        model = scored.ranking.models[0]
        row = scored.common_row(model)
    if not row:
        return no_answer(question, scored.asked, f"{model} has no answer in a cell")
    errors = [score.relative_error for score in row]
    inputs = [score.input for score in row] if question.scope == "inputs" else []
    low, high = interval_over(row, inputs, scored.stretches)
    has_interval = unit_count(errors, inputs) >= FEWEST_CELLS
    worst = max(errors)
    # Names of cells change when a run is published: they must not choose among equal errors.
    worst_cells = [score.cell for score in row if score.relative_error == worst]
    floor, floor_high = floor_of_cells(row)
    numbers = Answer(
        question=question,
        asked=scored.asked,
        outcome="yes",
        sentence="",
        cells=len(row),
        model=model,
        error=weighted_mean(errors, row),
        low=max(0.0, low),
        high=high,
        worst=worst,
        worst_cell=worst_cells[0] if len(worst_cells) == 1 else "",
        floor=floor,
        floor_high=floor_high,
    )
    sentence = how_far_sentence(numbers, scored, has_interval=has_interval)
    return numbers.model_copy(update={"sentence": sentence})


def why_no_best(ranking: Ranking) -> str:
    """Why no model of a *ranking* is the best."""
    if UNLEARNT in ranking.left_out.values():
        return "no model reproduces the jobs it learnt from"
    return "no model has an answer"


def interval_over(
    row: Sequence[Score], inputs: Sequence[str], stretches: Sequence[float]
) -> tuple[float, float]:
    """The interval of the mean error of a *row* that covers those at all *stretches*."""
    weights = relative_weights(row).tolist()
    ends = [
        mean_interval(errors_at(row, stretch).tolist(), inputs, weights) for stretch in stretches
    ]
    return min(low for low, _ in ends), max(high for _, high in ends)


def how_far_sentence(found: Answer, scored: Scored, *, has_interval: bool) -> str:
    """
    Say how far a model is off, beside a perfect one; of the best, whether it is nearest.

    Without an interval the ends are those of the cells.
    """
    assert None not in (found.error, found.low, found.high, found.worst)
    ends = f"{share(found.low or 0.0)} to {share(found.high or 0.0)}"
    ends = f"95 %: {ends}" if has_interval else f"cells: {ends}"
    off = f"off by {share(found.error or 0.0)} on average ({ends}) over {cells_text(found.cells)}"
    off += f", at worst by {share(found.worst or 0.0)}"
    is_best = found.question.how_far in ("", BEST)
    beginning = best_beginning(found.model, scored.ranking) if is_best else f"{found.model} is"
    sentence = f"{beginning} {off}; {floor_clause(found)}."
    is_alone = len(scored.ranking.models) < 2
    return sentence if is_alone or not is_best else f"{sentence} {nearest_sentence(scored)}"


def best_beginning(model: str, ranking: Ranking) -> str:
    """How a sentence about the best *model* of a *ranking* begins: of how many it is that."""
    count = len(ranking.models)
    is_chosen = UNLEARNT in ranking.left_out.values()
    if count < 2:
        return f"Only {model} reproduces the jobs it learnt from:" if is_chosen else f"{model} is"
    those = " that reproduce the jobs they learnt from" if is_chosen else ""
    return f"Of {count} models{those} {model} errs least:"


def floor_clause(found: Answer) -> str:
    """Say what a perfect model would have, and whether the error is inside the noise."""
    if found.floor is None or found.floor_high is None:
        return "the noise is not known"
    perfect = f"a perfect model would be off by {share(found.floor)}"
    if (found.error or 0.0) <= found.floor_high:
        return f"{perfect}, so that this is inside the noise"
    return perfect


def nearest_sentence(scored: Scored) -> str:
    """Say of the model with the smallest error what it is beside each of the others."""
    first, *rivals = scored.ranking.models
    pairs = {rival: scored.pair(first, rival) for rival in rivals}
    verdicts = {rival: pair.verdict if pair else "undecided" for rival, pair in pairs.items()}
    holds = any_profile_sentence(pair for pair in pairs.values() if pair is not None)
    if len(rivals) > 1 and set(verdicts.values()) == {"nearer"}:
        return f"It is nearer than each of the others.{holds}"
    return f"It {'; it '.join(fate_clauses(verdicts))}.{holds}"


def fate_clauses(fates: Mapping[str, str]) -> Iterator[str]:
    """Yield of each fate of a model what it is beside the rivals that have it in *fates*."""
    for word, text in _FATES.items():
        rivals = [rival for rival, found in fates.items() if found == word]
        if rivals:
            yield f"{text} {listed(rivals)}"


# Nearer


def answer_nearer(question: Question, scored: Scored) -> Answer:
    """Whether the first model is nearer than each of the others."""
    first, *rivals = question.nearer
    pairs = {rival: scored.pair(first, rival) for rival in rivals}
    if None in pairs.values():
        return no_answer(question, scored.asked, why_not_compared(question.nearer, scored))
    found = {rival: pair for rival, pair in pairs.items() if pair is not None}
    fates = {rival: fate(first, pair) for rival, pair in found.items()}
    floor, floor_high = floor_of_cells(scored.row(first))
    any_pair = next(iter(found.values()))
    return Answer(
        question=question,
        asked=scored.asked,
        outcome=outcome_of(fates),
        sentence=nearer_sentence(first, found, fates),
        cells=min(pair.cells for pair in found.values()),
        model=first,
        error=error_in(any_pair, first),
        floor=floor,
        floor_high=floor_high,
    )


def why_not_compared(models: Sequence[str], scored: Scored) -> str:
    """Why two of *models* are not compared."""
    missing = [model for model in models if not scored.row(model)]
    unranked = [model for model in models if model not in scored.ranking.models]
    if not missing and unranked and _share_cells(models, scored):
        verb = "are" if len(unranked) > 1 else "is"
        return f"{listed(unranked)} {verb} not ranked, and what is explored compares ranked models"
    if not missing:
        return "they share no cell"
    return f"{listed(missing)} {'answer' if len(missing) > 1 else 'answers'} no cell"


def _share_cells(models: Sequence[str], scored: Scored) -> bool:
    """Whether *models* answer in a cell together."""
    return bool(set.intersection(*({row.cell for row in scored.row(model)} for model in models)))


def fate(first: str, pair: Comparison) -> str:
    """What is said of the *first* model of *pair*: nearer, equal, farther or undecided."""
    if pair.verdict == "nearer":
        return "nearer" if pair.better == first else "farther"
    return "farther" if is_farther(pair) else pair.verdict


def is_farther(pair: Comparison) -> bool:
    """Whether the other model of an asked *pair* errs less: what was tested leaves out 0."""
    is_tested = pair.verdict == "undecided" and pair.chance is not None
    return is_tested and pair.low is not None and pair.low > _ROUNDING


def is_open(pair: Comparison) -> bool:
    """Whether nothing can be said of *pair* yet."""
    return pair.verdict == "undecided" and not is_farther(pair)


def outcome_of(fates: Mapping[str, str]) -> Outcome:
    """Yes, where it is nearer than all; no, where it is farther or equal to one."""
    if set(fates.values()) == {"nearer"}:
        return "yes"
    return "no" if {"farther", "equal"} & set(fates.values()) else "cannot tell"


def error_in(pair: Comparison, model: str) -> float:
    """Mean error of *model* in *pair*."""
    errors = pair.errors or (0.0, 0.0)
    return errors[0] if pair.better == model else errors[1]


def nearer_sentence(first: str, pairs: Mapping[str, Comparison], fates: Mapping[str, str]) -> str:
    """Say how far all of them are off, and than which the first is nearer."""
    outcome = outcome_of(fates)
    head = {"yes": "Yes", "no": "No", "cannot tell": "It cannot be told"}[outcome]
    any_pair = next(iter(pairs.values()))
    rivals = [f"{rival} by {share(error_in(pair, rival))}" for rival, pair in pairs.items()]
    cells = cells_text(any_pair.cells)
    errors = f"{first} is off by {share(error_in(any_pair, first))}, {listed(rivals)}, over {cells}"
    clauses = "; it ".join(fate_clauses(fates))
    return f"{head}: {errors}; it {clauses}.{any_profile_sentence(pairs.values())}"


def any_profile_sentence(pairs: Iterable[Comparison]) -> str:
    """Whether what was told of *pairs* holds with any profile of this kind; nothing, if nothing."""
    told_pairs = [pair for pair in pairs if not is_open(pair) and pair.any_profile is not None]
    lost_pairs = [pair for pair in told_pairs if not is_held(pair)]
    if not told_pairs:
        return ""
    if not lost_pairs:
        return " It holds with any profile of this kind."
    if all(pair.any_low is None and pair.any_high is None for pair in lost_pairs):
        return " It holds with this profile; how far profiles vary is not known."
    return " It holds with this profile; with another one of its kind it may not."


def is_held(pair: Comparison) -> bool:
    """Whether what is told of *pair* holds with any profile of this kind."""
    if pair.any_profile != "undecided":
        return True
    return is_farther(pair) and pair.any_low is not None and pair.any_low > _ROUNDING


# Choice


def answer_choice(question: Question, scored: Scored) -> Answer:
    """Which model chooses best among the settings of each input, with its first choices tried."""
    groups = [
        group
        for group in settings_by_input(scored)
        if len(next(iter(group.values()))) > question.choice
    ]
    models = scored.ranking.models
    if not groups or not models:
        why = "no input has two settings that all models answer"
        if question.choice > 1:
            why = f"no input has more than {question.choice} settings that all models answer"
        return no_answer(question, scored.asked, why)
    regrets = {
        model: [regret(group, model, question.choice) for group in groups] for model in models
    }
    ranked = sorted(models, key=lambda model: (fmean(regrets[model]), model))
    best = ranked[0]
    least = fmean(regrets[best])
    chosen = [model for model in ranked if fmean(regrets[model]) <= least + _ROUNDING]
    floor, floor_high = perfect_regret(groups, best, question.choice)
    cells = sum(len(group[best]) for group in groups)
    numbers = Answer(
        question=question,
        asked=scored.asked,
        outcome="yes" if len(chosen) == 1 else "cannot tell",
        sentence="",
        cells=cells,
        model=best,
        error=least,
        worst=max(regrets[best]),
        floor=floor,
        floor_high=floor_high,
    )
    rivals = [f"{model} {share(fmean(regrets[model]))}" for model in ranked[len(chosen) :]]
    sentence = choice_sentence(numbers, len(groups), chosen, rivals)
    return numbers.model_copy(update={"sentence": sentence})


def choice_sentence(
    found: Answer, input_count: int, chosen: Sequence[str], rivals: Sequence[str]
) -> str:
    """Say what those lose that are *chosen* as the best, beside a perfect one and *rivals*."""
    tried = found.question.choice
    whose = "its" if len(chosen) == 1 else "their"
    choices = f"{whose} first choice"
    if tried > 1:
        choices = f"the best of {whose} first {tried} choices"
    over = f"{input_count} input{'s' if input_count != 1 else ''} with {found.cells} settings"
    verb = "chooses best" if len(chosen) == 1 else "choose equally well"
    text = f"{listed(chosen)} {verb}: {choices} takes {share(found.error or 0.0)} longer than"
    text += f" the fastest setting, mean over {over} in all, at worst {share(found.worst or 0.0)}"
    if found.floor is not None:
        text += f"; a perfect model would lose {share(found.floor)}"
    if rivals:
        text += f"; others lose: {', '.join(rivals)}"
    return f"{text}."


def settings_by_input(scored: Scored) -> list[dict[str, list[Score]]]:
    """Of each input with two settings or more: scores of each ranked model, in the same cells."""
    by_input = defaultdict[str, dict[str, dict[str, Score]]](lambda: defaultdict(dict))
    for model in scored.ranking.models:
        for score in scored.row(model):
            by_input[score.input or score.cell][model][score.cell] = score
    groups = []
    for _, by_model in sorted(by_input.items()):
        shared = set.intersection(*(set(row) for row in by_model.values()))
        measured = next(iter(by_model.values()))
        cells = sorted(shared, key=lambda cell: (measured[cell].measured_s, cell))
        if len(cells) >= 2 and len(by_model) == len(scored.ranking.models):
            rows = {model: [row[cell] for cell in cells] for model, row in by_model.items()}
            groups.append(rows)
    return groups


def regret(group: Mapping[str, Sequence[Score]], model: str, tried: int) -> float:
    """
    By how much the best of the first choices of *model* takes longer than the fastest setting.

    As a share.  Of settings that it predicts alike the slower one is tried first.
    """
    row = group[model]
    order = sorted(row, key=lambda score: (score.predicted_s, -score.measured_s))
    chosen_s = min(score.measured_s for score in order[:tried])
    return chosen_s / min(score.measured_s for score in row) - 1


def perfect_regret(
    groups: Sequence[Mapping[str, Sequence[Score]]], model: str, tried: int
) -> tuple[float | None, float | None]:
    """Mean regret of a perfect model over its draws, and what 95 of 100 do not exceed."""
    import numpy as np

    rows = [group[model] for group in groups]
    floors = [cell_floors(row) for row in rows]
    if None in floors:
        return None, None
    regrets = []
    for row, row_floors in zip(rows, floors, strict=True):
        measured_s = np.asarray([score.measured_s for score in row])
        drawn = normal_draws("perfect", len(row)) * np.asarray(row_floors)
        places = np.argsort(measured_s * (1 + drawn), axis=1, kind="stable")[:, :tried]
        regrets.append(measured_s[places].min(axis=1) / measured_s.min() - 1)
    means = np.mean(regrets, axis=0)
    return float(means.mean()), float(np.sort(means)[round(0.95 * DRAWS) - 1])


# Claims


def answer_claims(question: Question, scored: Scored) -> Answer:
    """Which of the claims of a paper hold here."""
    answers = [answer(claim, scored) for claim in CLAIMS[question.claims]]
    holding = [found for found in answers if found.outcome == "yes"]
    open_count = sum(found.outcome == "cannot tell" for found in answers)
    outcome: Outcome = "no"
    if len(holding) == len(answers):
        outcome = "yes"
    elif len(holding) + open_count == len(answers):
        outcome = "cannot tell"
    head = f"{len(holding)} of {len(answers)} claims of {question.claims} hold"
    details = " ".join(_claim_sentences(answers))
    return Answer(
        question=question,
        asked=scored.asked,
        outcome=outcome,
        sentence=f"{head}. {details}",
        cells=max(found.cells for found in answers),
    )


def _claim_sentences(answers: Sequence[Answer]) -> Iterator[str]:
    """Each claim with its answer."""
    for found in answers:
        yield f"{found.question.title}: {found.sentence}"
