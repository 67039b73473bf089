"""Other questions to a run that was measured: each answer is one of its analyses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from harness.base.documents.document import Document
from harness.base.documents.wording import by_number, count
from harness.base.errors import DataError, SpecError
from harness.base.records.profile import Profile
from harness.base.records.trial import SCHEMA_VERSION, Cell, Trial
from harness.base.text import excerpt
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
    known = own_code.keys() | experiment.predict.code.keys()
    require_models([name for name in names if name not in known], "models")
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

    Its *profiles* are those of the profiling trials, unless they are given; where they are another
    run's, and of a run that was published without traces, those that it has.  When the block ends
    it is among the run's analyses; nothing is left where it fails.
    """
    plan = [with_use(trial, experiment.predict) for trial in run.measured.read_plan()]
    experiment = with_present_names(experiment)
    with new_analysis(run, experiment, plan, __version__) as analysis:
        evaluation = Evaluation.of(analysis)
        if profiles is None and experiment.predict.source:
            profiles = borrowed_profiles(run, experiment.predict)
        elif profiles is None and not evaluation.has_traces:
            profiles = published_profiles(run.measured, plan)
        for profile in (profiles or {}).values():
            analysis.write_profile(of_this_version(profile))
        if profiles is None:
            evaluation.profile()
        evaluation.predict()
        evaluation.score()
        _, document = evaluation.report()
        yield evaluation, document


def beside(experiment: Experiment, added: Sequence[str]) -> list[str]:
    """Names of the models of *experiment*, and those *added*: a file of the user's as it is now."""
    read_now = {own_class.name for own_class in read_own_models(added).values()}
    replaced = read_now & experiment.predict.code.keys()
    return [*(name for name in experiment.predict.models if name not in replaced), *added]


def is_lent_alike(predict: Predict, other_predict: Predict) -> bool:
    """Whether both take the profiles of one run, for one machine, or neither those of another."""
    return (predict.source, predict.hardware) == (other_predict.source, other_predict.hardware)


def borrowed_profiles(run: Run, predict: Predict) -> Mapping[str, Profile]:
    """
    Profiles that *run* took from another run, as it keeps them; it was asked to *predict* by them.

    `DataError`: it keeps none, or has taken them from another run.
    """
    asked = run.experiment().predict
    profiles = run.read_profiles() if is_lent_alike(asked, predict) else {}
    if not profiles:
        what = f"this run does not keep the profiles of run {excerpt(predict.source)}"
        fix = f"harness predict {run.id} --from RUN takes those of a run that you name"
        raise DataError(what, where=str(run.path), fix=fix)
    return profiles


def lent_profiles(lender: Run, workloads: Iterable[str]) -> dict[str, Profile]:
    """Profiles by workload of the *lender*; `DataError` where it has none of one of *workloads*."""
    profiles = lender.read_profiles()
    if lacking := set(workloads).difference(profiles):
        what = f"it has no profile of {', '.join(sorted(lacking))}"
        fix = "name a run that profiled all workloads: predict.from, or --from"
        raise DataError(what, where=str(lender.path), fix=fix)
    return profiles


def require_controls(
    experiment: Experiment, cells: Iterable[Cell], profiles: Mapping[str, Profile]
) -> None:
    """
    `SpecError` where sentinels would repeat *cells* that the lender of *profiles* has not profiled.

    They control the hour: what they take here is compared with what they took there.
    """
    predict = experiment.predict
    if not experiment.sentinels or not predict.source:
        return
    profiled = {job.cell for profile in profiles.values() for job in profile.jobs}
    controls = {cell.id for cell in cells if is_profiling(cell, predict)}
    if unknown := controls - profiled:
        lender = excerpt(predict.source)
        what = f"{len(unknown)} of {count(len(controls), 'cell')} of profile_on"
        what += f" {by_number(len(unknown), 'is', 'are')} none of those that run {lender} profiled"
        fix = "let profile_on select cells that it profiled, on the same cluster; or no sentinels"
        raise SpecError(what, where="sentinels", fix=fix)


def of_this_version(profile: Profile) -> Profile:
    """*profile* and its refits as they are asked now: what was sealed by them earlier stays."""
    refits = tuple(of_this_version(refit) for refit in profile.refits)
    return profile.model_copy(update={"schema_version": SCHEMA_VERSION, "refits": refits})


def published_profiles(run: Run, plan: Sequence[Trial]) -> dict[str, Profile] | None:
    """Profiles of *run* as they were published; `None` where *plan* makes them of other trials."""
    profiled = {trial.id for trial in plan if trial.profiling}
    published = {trial.id for trial in run.read_plan() if trial.profiling}
    return run.read_profiles() if profiled == published else None


def with_use(trial: Trial, predict: Predict) -> Trial:
    """*trial* with its use by `profile_on`; where it was imported its moment has decided that."""
    if trial.cell.was_imported:
        return trial
    # A sentinel was measured among the scored trials: it feeds no profile, whatever is asked.
    is_chosen = is_profiling(trial.cell, predict)
    is_sentinel = trial.sentinel and is_chosen
    changes = {"profiling": is_chosen and not trial.sentinel, "sentinel": is_sentinel}
    return trial.model_copy(update=changes)
