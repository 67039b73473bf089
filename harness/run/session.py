"""
One experiment file and its results folder: the steps that the command line offers.

`harness all` is the composition of the steps and nothing more.
"""

from __future__ import annotations

import shlex

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from statistics import fmean
from typing import Any

from harness import __version__
from harness.errors import DataError, HarnessError, SpecError
from harness.evaluate.flow import Evaluation
from harness.evaluate.own_code import OwnCode, kept_own, read_own
from harness.evaluate.transfer import profiles_for
from harness.experiment.file import concealed_text, read_experiment
from harness.experiment.grid import expand, is_profiling, order
from harness.experiment.model import Experiment
from harness.hadoop.slots import refusals
from harness.hadoop_home.home import HadoopHome
from harness.models import require_models
from harness.monitor.machine import machine_facts
from harness.monitor.probe import probe_jar
from harness.monitor.rates import are_rates_required
from harness.providers import PROVIDERS, remove
from harness.providers.adjust import unsupported_limits
from harness.records.profile import Profile
from harness.records.trial import (
    HISTORY,
    ClusterSpec,
    Code,
    Trial,
    TrialRecord,
    Versions,
)
from harness.reports.document import Document
from harness.reports.sections.method import flatten
from harness.run import Console
from harness.run.estimate import Estimator
from harness.run.execute import Execution, OnDisturbed, OnError, cluster_name
from harness.run.manifest import record_command
from harness.run.plan import make_plan, refuse_cells, refuse_inputs
from harness.run.preflight import Preflight, known_names
from harness.run.reuse import is_same, take_over
from harness.run.secrets import user_secrets
from harness.run.traces import remake_trace
from harness.scoring.repeats import next_repeats
from harness.stats.sequential import LOOKS
from harness.store import Run, Store, new_analysis
from harness.store.run import EXPERIMENT, measured_part
from harness.text import excerpt, nearest_name
from harness.units import format_duration

_MOST_RUNS = 20  # of which times are read for an estimate


@dataclass
class Session:
    """
    An experiment *text* read from *source*, its results below *results_dir*.

    *profiles* are given to the models in the place of those of the run that the text names.
    """

    text: str
    source: str
    results_dir: Path
    overrides: tuple[str, ...]
    console: Console
    profiles: Mapping[str, Profile] = field(default_factory=dict)

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment, with the tracing that its provider gives; `SpecError` has all errors."""

        def find_refusals(cluster: ClusterSpec, properties: dict[str, str]) -> list[str]:
            # Limits that the provider cannot set are refused: nothing is ignored silently.
            provider = PROVIDERS[cluster.provider]
            unlimited = unsupported_limits(cluster, provider.limitable)
            return [*refusals(cluster, properties, sets_site=provider.sets_site), *unlimited]

        folder = Path(self.source).parent
        names = known_names(lambda path, is_option: read_own(path, Path() if is_option else folder))
        experiment = read_experiment(self.text, self.source, self.overrides, known=names)
        cells = expand(experiment)
        refuse_cells(cells, find_refusals, self.source, self.text)
        refuse_inputs(cells, self.source, self.text)
        mode = experiment.tracing.mode
        provider = experiment.cluster.provider
        if mode in PROVIDERS[provider].traces:
            return experiment
        self.console.say(
            f"warning: trace: {mode} needs the tracer on the nodes, and provider {provider} puts"
            " nothing there: trace: logs is used, and what needs more is not applicable"
        )
        tracing = experiment.tracing.model_copy(update={"mode": "logs"})
        return experiment.model_copy(update={"tracing": tracing})

    @cached_property
    def home(self) -> HadoopHome:
        """The Hadoop home, verified."""
        return HadoopHome.find()

    @cached_property
    def versions(self) -> Versions:
        """Versions of Hadoop, Java and our jars, which trial ids depend on."""
        return self.home.versions()

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial, in the order in which it is run."""
        return order(self.experiment, expand(self.experiment), self.versions)

    @cached_property
    def borrowed(self) -> Mapping[str, Profile]:
        """
        Profiles by workload of the run that the file names, if any, for the machine that it names.

        `DataError`, `SpecError`: there is no such run, or it has no profile of a workload.
        """
        predict = self.experiment.predict
        if self.profiles or not predict.source:
            return self.profiles
        source = Store(self.results_dir).find(predict.source)
        profiles: Mapping[str, Profile] = source.read_profiles()
        workloads = {trial.cell.workload.name for trial in self.trials}
        if lacking := workloads.difference(profiles, self.experiment.nightly.controls):
            what = f"it has no profile of {', '.join(sorted(lacking))}"
            fix = "name a run that profiled all workloads: predict.from"
            raise DataError(what, where=str(source.path), fix=fix)
        if paths := [Path(self.source).parent / path for path in predict.hardware]:
            cells = {trial.cell.id: trial.cell for trial in self.trials}
            profiles, _ = profiles_for(source, paths, cells.values())
        return profiles

    @cached_property
    def preflight(self) -> Preflight:
        """What is checked before anything is started."""
        return Preflight(self.experiment, self.source, lambda: self.home, self.console)

    def plan(self) -> dict[str, Any]:
        """All trials with what the newest run of the experiment has of them; starts nothing."""
        experiment = self.experiment
        trials = self.trials
        self.preflight.warn()
        self.preflight.warn_of_lacks()
        try:
            _ = self.borrowed
        except HarnessError as error:
            self.console.say(f"warning: predict.from: {error.what}")
        runs = [run for run in Store(self.results_dir).fitting(experiment) if run.trial_ids()]
        records, is_finished = (runs[-1].trials(), runs[-1].finished) if runs else ({}, False)
        plan = make_plan(experiment, trials, records, self.estimator(), is_finished=is_finished)
        held_count = sum(trial["state"] != "pending" for trial in plan["trials"])
        if not held_count:
            return plan
        end = "is finished: 'harness run' measures all anew, in another run"
        if not runs[-1].finished:
            end = "is not finished: 'harness run' goes on with it"
        self.console.say(
            f"run {runs[-1].path} holds {held_count} of {len(trials)} trials, and {end}"
        )
        return {**plan, "run": runs[-1].path}

    def estimator(self) -> Estimator:
        """What the newest runs that this machine measured say of the time that trials take."""
        here = machine_facts()
        known = list[tuple[float, list[TrialRecord]]]()
        for run in reversed(Store(self.results_dir).all_runs()):
            with suppress(DataError):  # a damaged run says nothing
                manifest = run.read_manifest()
                if is_same(manifest.machine, here) and run.trial_ids():
                    known.append((manifest.created_s, run.attempts()))
            if len(known) == _MOST_RUNS:
                break
        return Estimator(known)

    def next_trials(self, run: Run) -> list[Trial]:
        """Trials of the next look at the data: none where it has a verdict or no time is left."""
        evaluation = self.evaluation(run)
        look = 1 + max(trial.look for trial in self.trials)
        times_s: dict[str, list[float]] = defaultdict(list)
        for record in evaluation.done.values():
            if not record.trial.profiling:
                times_s[record.trial.cell.id].append(record.finished_s - record.started_s)
        cells = list[str]()
        reason = "no scored trial was done"
        if times_s:
            cells, reason = next_repeats(evaluation.score(), evaluation.measurements())
        spent_s = sum(map(sum, times_s.values()))
        numbers = Counter(t.cell.id for t in self.trials)
        trials: list[Trial] = []
        for cell_id in cells if look < LOOKS else ():
            spent_s += fmean(times_s[cell_id])
            if spent_s > self.experiment.budget_s:
                break
            cell = evaluation.cells[cell_id]
            number = numbers[cell_id]
            trials.append(Trial.of(cell, number, self.versions, look=look, reason=reason))
            numbers[cell_id] += 1
        if not trials:
            spent = f"{LOOKS} looks are" if look >= LOOKS else "the budget is"
            ended = f"{spent} spent; {reason}" if cells else reason
            self.console.say(f"no more trials: {ended}")
            run.update_manifest(repeats_ended=ended)
        return sorted(trials, key=lambda trial: trial.cell.cluster.id)  # each cluster starts once

    def more_of_fastest(self, run: Run) -> list[Trial]:
        """What the fastest cells of each input lack of their repeats: none at the end."""
        evaluation = self.evaluation(run)
        look = 1 + max(trial.look for trial in self.trials)
        times_s: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for measurement in evaluation.measurements():
            times_s[measurement.input][measurement.cell].append(measurement.raw_s["job_s"])
        numbers = Counter(trial.cell.id for trial in self.trials)
        reason = f"of its input it is one of the {self.experiment.fastest} fastest cells"
        trials = [
            Trial.of(evaluation.cells[cell], number, self.versions, look=look, reason=reason)
            for cells in times_s.values()
            for cell in sorted(cells, key=lambda cell: fmean(cells[cell]))[
                : self.experiment.fastest
            ]
            for number in range(numbers[cell], self.experiment.repeat)
        ]
        return sorted(trials, key=lambda each: (each.cell.cluster.id, each.repetition, each.id))

    def open_run(self, *, new: bool) -> Run:
        """The newest unfinished run, or a *new* one; what cannot be predicted is not measured."""
        text = concealed_text(self.text, self.source, user_secrets())
        store = Store(self.results_dir)
        earlier = [] if new else store.fitting(self.experiment)
        if not any(run.seal.exists() for run in earlier if not run.finished):
            _ = self.borrowed
        run = store.open_run(self.experiment, text, new=new, versions=self.versions)
        if run.note:
            self.console.say(run.note)
        return run

    def measure(
        self,
        *,
        on_error: OnError = "skip",
        retries: int = 0,
        on_disturbed: OnDisturbed = "keep",
        new: bool = False,
        reuse: bool = False,
        more: Callable[[Run], list[Trial]] | None = None,
        more_here: Callable[[Run], list[Trial]] | None = None,
    ) -> tuple[Run, int]:
        """
        Run what is missing of the newest unfinished run, or of a new one; count the failures.

        *reuse*: trials that other runs have measured on this machine are taken over.  *more* gives
        trials to be added at the end until there is none: of itself those that a verdict takes;
        *more_here* on the cluster that has just run the last one.
        """
        experiment = self.experiment
        trials = self.trials
        self.preflight.require()
        self.preflight.look()
        self.preflight.warn()
        probe_jar()
        run = self.open_run(new=new)
        with run.lock():
            if not run.seal.exists():  # nothing is predicted yet: the question may still change
                run.update_manifest(experiment=experiment.model_dump(mode="json"))
            elif run.experiment() != experiment:  # what it was sealed with stays, and so its plan
                experiment = self.experiment = run.experiment()
                self.trials = trials = order(experiment, expand(experiment), self.versions)
                fix = f"harness predict {self.source} asks others of it when it is measured"
                self.console.say(f"the run keeps the models that it has predicted: {fix}")
            if remove(cluster_name(run), experiment.cluster.provider):
                self.console.say("cluster: took down what a killed run had left")
            if reuse:
                taken = take_over(run, Store(self.results_dir), trials)
                self.console.say(f"taken over: {len(taken)} earlier trials")
            for record in run.trials().values():
                if not run.has_trace(record.trial.id):  # the run was killed after this trial
                    remake_trace(run, record)
            run.write_plan(trials)
            self.trials = (*trials, *run.read_plan()[len(trials) :])
            record_command(run, experiment, self.versions, self.overrides)
            done = {trial.id for trial in self.trials} & set(run.trials())
            self.console.say(f"run {run.path} ({len(done)} of {len(self.trials)} trials done)")
            plan = make_plan(experiment, self.trials, run.trials(), self.estimator())
            if left_s := plan["estimate_s"]:
                self.console.say(
                    f"it will take about {format_duration(left_s)} ({plan['estimated']})"
                )
            estimates_s = {each["id"]: each["estimate_s"] for each in plan["trials"]}
            execution = Execution(
                run=run,
                home=self.home,
                versions=self.versions,
                limit_s=experiment.trial_limit_s,
                warmup=experiment.warmup,
                console=self.console,
                on_error=on_error,
                retries=retries,
                on_disturbed=on_disturbed,
                estimates_s=estimates_s,
                needs_rates=are_rates_required(experiment.predict.models),
                seal=cache(lambda: self.seal(run) if experiment.predict.is_blind else ""),
                more_here=more_here and partial(more_here, run),
            )
            execution.execute(self.trials, done)
            if experiment.is_until_decided or experiment.fastest:
                more = more or (self.more_of_fastest if experiment.fastest else self.next_trials)
            while more and (added := more(run)):
                self.console.say(f"{len(added)} trials are added: {added[0].reason}")
                self.trials = (*self.trials, *added)
                execution.execute(self.trials, set(run.trials()))
            run.finish()
        planned = {trial.id for trial in self.trials}
        records = run.trials().values()
        return run, sum(record.state != "done" for record in records if record.trial.id in planned)

    def seal(self, run: Run) -> str:
        """SHA-256 of the seal of *run*, made of its profiling trials where there is none yet."""
        if not run.seal.exists():
            evaluation = self.evaluation(run)
            for profile in self.borrowed.values():
                run.write_profile(profile)
            if not self.borrowed:
                if not any(record.trial.profiling for record in evaluation.done.values()):
                    run.finish()  # nothing can come of it: the next call opens another run
                evaluation.profile()
            predictions = evaluation.predict()
            self.console.say(f"{len(predictions)} predictions are sealed: {run.seal.path}")
        return run.seal.sha256()

    def evaluation(self, run: Run | None = None, *, asks: bool = False) -> Evaluation:
        """
        Give *run* to be evaluated, or the newest that fits, or the analysis that the file asks for.

        The question is the file's.  Where neither the run nor an analysis of it has the file's
        models and `profile_on`, `DataError`; but for who *asks*, the run with those of the file.
        """
        wanted = self.experiment
        if run is None:
            run = self.newest()
            earlier_answers = [*reversed(run.analyses()), run]
            same = [
                earlier_answer
                for earlier_answer in earlier_answers
                if earlier_answer.experiment().predict == wanted.predict
            ]
            if not same and not asks:
                other = run.experiment().predict
                new = wanted.predict
                names = [
                    name
                    for name in ("models", "code", "profile_on")
                    if getattr(other, name) != getattr(new, name)
                ]
                what = f"run {run.id} was asked with other {' and '.join(names)} than the file's"
                words = [word for override in self.overrides for word in ("--set", override)]
                command = shlex.join(["harness", "predict", self.source, *words])
                fix = f"{command} asks the file's, without a job;"
                fix += f" or name the run: {run.path}"
                raise DataError(what, where=self.source, fix=fix)
            run = same[0] if same else run
        evaluation = Evaluation.of(run)
        predict = wanted.predict if asks else evaluation.experiment.predict
        changes = {"question": wanted.question, "predict": predict}
        evaluation.experiment = evaluation.experiment.model_copy(update=changes)
        return evaluation

    def newest(self) -> Run:
        """The newest run with trials that measured what the file measures; else `DataError`."""
        store = Store(self.results_dir)
        experiment = self.experiment
        latest = store.latest(experiment.name)  # or the error that there is none
        runs = [run for run in store.fitting(experiment) if run.trial_ids()]
        if runs:
            return runs[-1]
        wanted = dict(flatten(measured_part(experiment)))
        there = dict(flatten(measured_part(latest.experiment())))
        differs = [key for key in there | wanted if there.get(key) != wanted.get(key)]
        what = f"no run of this experiment has a trial yet; the newest is {latest.path}"
        if differs:
            what = f"no run measured what this file says: the newest, {latest.path}, has"
            shown = (
                f"{key} {excerpt(there.get(key))}, not {excerpt(wanted.get(key))}"
                for key in differs[:3]
            )
            what = f"{what} {'; '.join(shown)}"
        fix = f"name that run in the place of the file, or measure: harness run {self.source}"
        raise DataError(what, where=self.source, fix=fix)


def asked_anew(run: Run, models: str, profile_on: Sequence[str]) -> Experiment:
    """
    The experiment of *run* with other *models* and *profile_on*, as options write them.

    Checked as a file with these values: `SpecError` has all that is wrong.
    """
    experiment = run.experiment()
    measured = run.measured
    if experiment.cluster.provider == HISTORY:  # no file has its cells
        if profile_on:
            what = "which jobs feed its profiles was fixed when the run was imported"
            fix = "harness import --profile-share makes another run of the same histories"
            raise SpecError(what, where="--profile-on", fix=fix)
        return with_models(experiment, models.split(","))
    names = models or ",".join(experiment.predict.models)
    overrides = [*measured.read_manifest().overrides, f"predict.models=[{names}]"]
    for text in profile_on:
        axis, _, values = text.rpartition("=")
        overrides.append(f"predict.profile_on.{axis}=[{values.strip('[]')}]")
    text = measured.opener.read(measured.path / EXPERIMENT, "name an experiment file").decode()
    source = str(measured.path / EXPERIMENT)
    # A path in the option is the user's; what the run names runs only where it is known here.
    given = models.split(",")
    codes = experiment.predict.code
    of_run = [
        *codes.values(),
        *(workload.code for workload in experiment.workloads if workload.code),
    ]
    by_path = {f"{code.file}:{code.class_name}": code for code in of_run}
    never = Code(file="a file", class_name="of its experiment", sha256="0" * 64)

    def find(path: str, _is_option: bool) -> OwnCode:  # noqa: FBT001
        return read_own(path) if path in given else kept_own(by_path.get(Path(path).name, never))

    known = known_names(find)
    known = replace(known, models=[*known.models, *codes.keys() & set(names.split(","))])
    narrows = not profile_on
    predict = read_experiment(text, source, overrides, known=known, narrows=narrows).predict
    codes = {
        name: code for name, code in {**codes, **predict.code}.items() if name in predict.models
    }
    predict = predict.model_copy(update={"code": codes})
    if not profile_on:
        predict = predict.model_copy(update={"profile_on": experiment.predict.profile_on})
    return experiment.model_copy(update={"predict": predict})


def with_models(experiment: Experiment, names: Sequence[str]) -> Experiment:
    """*experiment* with the models *names*, where there are any; `SpecError`: one is not known."""
    require_models(names, "models")
    models = tuple(dict.fromkeys(names)) or experiment.predict.models
    predict = experiment.predict.model_copy(update={"models": models})
    return experiment.model_copy(update={"predict": predict})


@contextmanager
def analyse(
    run: Run, experiment: Experiment, profiles: Mapping[str, Profile] | None = None
) -> Iterator[tuple[Evaluation, Document]]:
    """
    Ask *experiment* of what *run* measured; give the answer, sealed and scored, and its report.

    Its *profiles* are those of the profiling trials, unless they are given.  When the block ends it
    is among the run's analyses; nothing is left where it fails.
    """
    plan = [
        trial  # whose moment decides, where it was imported
        if trial.cell.cluster.provider == HISTORY
        else trial.model_copy(update={"profiling": is_profiling(trial.cell, experiment.predict)})
        for trial in run.measured.read_plan()
    ]
    with new_analysis(run, experiment, plan, __version__) as analysis:
        evaluation = Evaluation.of(analysis)
        for profile in (profiles or {}).values():
            analysis.write_profile(profile)
        if profiles is None:
            evaluation.profile()
        evaluation.predict()
        evaluation.score()
        _, document = evaluation.report()
        yield evaluation, document


def read_experiment_file(path: Path) -> str:
    """Text of an experiment file; `SpecError` where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        others: dict[str, Path] = {}
        for folder in (path, path.parent, Path("experiments")):
            with suppress(OSError):
                files = sorted(folder.glob("*.yaml"))
                others |= {file.stem: file for file in files if file != path}
        is_run = path.is_dir() and "experiment" in others
        fix = "name an experiment file, such as experiments/demo.yaml"
        if nearest := "experiment" if is_run else nearest_name(path.stem, others):
            fix = f"did you mean {others[nearest]}?"
        what = f"the experiment file cannot be read: {reason}"
        raise SpecError(what, where=str(path.absolute()), fix=fix) from error
