"""Other questions to a run that was measured: each answer is one of its analyses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from harness.base.documents.document import Document
from harness.base.records.profile import Profile
from harness.base.records.trial import Trial
from harness.base.version import __version__
from harness.core.evaluate.flow import Evaluation
from harness.core.evaluate.own_code import read_own_models
from harness.core.experiment.grid import is_profiling
from harness.core.experiment.model import Experiment, Predict
from harness.core.store import Run, new_analysis
from harness.models import present_name, require_models


def with_models(experiment: Experiment, names: Sequence[str]) -> Experiment:
    """
    *experiment* with the models *names*, where there are any: of the harness, or ``PATH:Class``.

    `SpecError`: one is not known, or no model.
    """
    names = [present_name(name) for name in names]
    own_code = read_own_models(names)
    require_models([name for name in names if name not in own_code], "models")
    model_names = [own_code[name].name if name in own_code else name for name in names]
    code = {own_class.name: own_class.code for own_class in own_code.values()}
    changes = {
        "models": tuple(dict.fromkeys(model_names)) or experiment.predict.models,
        "code": experiment.predict.code | code,
    }
    predict = experiment.predict.model_copy(update=changes)
    return experiment.model_copy(update={"predict": predict})


def with_present_names(experiment: Experiment) -> Experiment:
    """*experiment* with each model by its present name, as older runs have earlier ones."""
    names = dict.fromkeys(map(present_name, experiment.predict.models))
    predict = experiment.predict.model_copy(update={"models": tuple(names)})
    return experiment.model_copy(update={"predict": predict})


@contextmanager
def analyse(
    run: Run, experiment: Experiment, profiles: Mapping[str, Profile] | None = None
) -> Iterator[tuple[Evaluation, Document]]:
    """
    Ask *experiment* of what *run* measured; give the answer, sealed and scored, and its report.

    Its *profiles* are those of the profiling trials, unless they are given; of a run that was
    published without traces those that it has.  When the block ends it is among the run's analyses;
    nothing is left where it fails.
    """
    plan = [with_use(trial, experiment.predict) for trial in run.measured.read_plan()]
    experiment = with_present_names(experiment)
    with new_analysis(run, experiment, plan, __version__) as analysis:
        evaluation = Evaluation.of(analysis)
        if profiles is None and not evaluation.has_traces:
            profiles = published_profiles(run.measured, plan)
        for profile in (profiles or {}).values():
            analysis.write_profile(profile)
        if profiles is None:
            evaluation.profile()
        evaluation.predict()
        evaluation.score()
        _, document = evaluation.report()
        yield evaluation, document


def published_profiles(run: Run, plan: Sequence[Trial]) -> dict[str, Profile] | None:
    """Profiles of *run* as they were published; `None` where *plan* makes them of other trials."""
    profiled = {trial.id for trial in plan if trial.profiling}
    published = {trial.id for trial in run.read_plan() if trial.profiling}
    return run.read_profiles() if profiled == published else None


def with_use(trial: Trial, predict: Predict) -> Trial:
    """*trial* with its use by `profile_on`; where it was imported its moment has decided that."""
    if trial.cell.was_imported:
        return trial
    return trial.model_copy(update={"profiling": is_profiling(trial.cell, predict)})
