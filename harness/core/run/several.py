"""
Several runs of one experiment, each in an order and with profiles of its own.

Within a run all errors share its profiles, and what the machine was like that day; how much that is
worth is seen over runs.  They are told apart by the seed of their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from harness.base.documents.wording import count, listing, percent
from harness.base.errors import SpecError
from harness.base.records.score import ScoreBook
from harness.core.store import Run, Store

if TYPE_CHECKING:
    from harness.core.run.session import Session

FEWEST_RUNS = 3  # for an interval over runs
_LEVEL = 0.95


class ModelOverRuns(NamedTuple):
    """
    Mean relative errors of a *model* by run, their mean, and its 95 % interval.

    The interval is Student's t over runs, from three on; `None` below.
    """

    model: str
    errors: tuple[float, ...]
    mean: float
    interval: tuple[float, float] | None


def sessions_of(session: Session, run_count: int) -> list[Session]:
    """
    As many sessions of the experiment, each with the next seed.

    `SpecError`: its profiles are another run's, and so would be those of all.
    """
    if session.experiment.predict.source:
        what = "its profiles are those of another run, and several runs would share them"
        raise SpecError(what, where="predict.from", fix="leave out --runs, or predict.from")
    seeds = range(session.experiment.seed, session.experiment.seed + run_count)
    return [replace(session, overrides=(*session.overrides, f"seed={seed}")) for seed in seeds]


def ended_runs(sessions: Sequence[Session]) -> list[Run | None]:
    """
    Of each session the run that has ended in this round; `None`: it is still to be measured.

    All sessions have had as many rounds as the one with the fewest ended runs; who has more has
    ended this one, so that an interrupted call goes on where it was.
    """
    ended = [_ended_runs_of(session) for session in sessions]
    round_count = min(map(len, ended))
    return [runs[round_count] if len(runs) > round_count else None for runs in ended]


def _ended_runs_of(session: Session) -> list[Run]:
    """Runs that have measured the experiment of *session* to the end, and ask the same of it."""
    experiment = session.experiment
    return [
        run
        for run in Store(session.results_dir).fitting(experiment)
        if run.finished and run.experiment().predict == experiment.predict
    ]


def over_runs(score_books: Sequence[ScoreBook]) -> tuple[str, list[ModelOverRuns]]:
    """
    The quantity by which the first run ranks, and the models that all rank by it, best first.

    Errors are those at raw speed, over all scored cells of each run.
    """
    ranking = score_books[0].ranking("raw") if score_books else None
    if ranking is None:
        return "", []
    errors_of_runs = [_mean_errors(score_book, ranking.quantity) for score_book in score_books]
    models = [
        _over_runs(model, [errors[model] for errors in errors_of_runs])
        for model in ranking.models
        if all(model in errors for errors in errors_of_runs)
    ]
    return ranking.quantity, sorted(models, key=lambda row: (row.mean, row.model))


def _mean_errors(score_book: ScoreBook, quantity: str) -> dict[str, float]:
    return {
        summary.model: summary.metrics["mape"].value
        for summary in score_book.summaries
        if (summary.quantity, summary.speed, summary.workload) == (quantity, "raw", "*")
        and "mape" in summary.metrics
    }


def _over_runs(model: str, errors: Sequence[float]) -> ModelOverRuns:
    import numpy as np

    from scipy.special import stdtrit

    mean = float(np.mean(errors))
    interval = None
    if len(errors) >= FEWEST_RUNS:
        freedom = len(errors) - 1
        spread = float(np.std(errors, ddof=1)) / len(errors) ** 0.5
        half = float(stdtrit(freedom, (1 + _LEVEL) / 2)) * spread
        interval = (max(0.0, mean - half), mean + half)
    return ModelOverRuns(model, tuple(errors), mean, interval)


def says_over_runs(quantity: str, models: Sequence[ModelOverRuns], run_ids: Sequence[str]) -> str:
    """On how many runs it rests, and how far off the best model was over them."""
    rests_on = f"It rests on {count(len(run_ids), 'run')} with profiles of their own"
    rests_on += f": {listing(run_ids)}."
    if not models:
        return f"{rests_on} No model is scored in all of them."
    best = models[0]
    text = f"{rests_on} By {quantity} {best.model} is off by {percent(best.mean)} on average"
    if best.interval is None:
        return f"{text}; an interval over runs takes {FEWEST_RUNS} of them."
    low, high = map(percent, best.interval)
    return f"{text}, between {low} and {high} over such runs (95 %, Student's t)."
