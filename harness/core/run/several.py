"""
Several runs of one experiment, each in an order and with profiles of its own.

Within a run all errors share its profiles, and what the machine was like that day; how much that is
worth is seen over runs.  They are told apart by the seed of their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.base.documents.wording import count, listing
from harness.base.errors import SpecError
from harness.base.records.score import ScoreBook
from harness.core.store import Run, Store
from harness.scoring.over_runs import ModelOverRuns, best_over_runs, models_over_runs

if TYPE_CHECKING:
    from harness.core.run.session import Session


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
    The quantity by which all runs rank, and the models that all rank by it, best first.

    Errors are those at the speed at which each run is read, over the cells that all its models
    answer.
    """
    rankings = [score_book.ranking() for score_book in score_books]
    found = [ranking for ranking in rankings if ranking is not None]
    if len(found) < len(rankings) or len({ranking.quantity for ranking in found}) != 1:
        return "", []
    return found[0].quantity, models_over_runs(found)


def says_over_runs(models: Sequence[ModelOverRuns], run_ids: Sequence[str]) -> str:
    """How far off the best model was over them, and on how many runs it rests."""
    rests_on = f"It rests on {count(len(run_ids), 'run')} with profiles of their own"
    rests_on += f": {listing(run_ids)}."
    if not models:
        return f"No model is scored in all runs. {rests_on}"
    return f"Over {count(len(run_ids), 'run')} {best_over_runs(models)} {rests_on}"
