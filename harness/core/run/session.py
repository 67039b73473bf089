"""
One experiment file and its results folder: the steps that the command line offers.

`harness all` is the composition of the steps and nothing more.
"""

from __future__ import annotations

import shlex

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from harness.base.documents.wording import by_number, count
from harness.base.errors import DataError, HarnessError, MachineError, SpecError
from harness.base.records.draw import Draw
from harness.base.records.profile import Profile
from harness.base.records.trial import Cell, Trial, TrialRecord, Versions
from harness.base.text import excerpt
from harness.base.units import about
from harness.clusters import remove
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.monitor.machine import machine_facts
from harness.clusters.monitor.probe import probe_jar
from harness.clusters.monitor.rates import are_rates_required
from harness.core.evaluate.flow import Evaluation
from harness.core.experiment.grid import expand
from harness.core.experiment.model import Experiment, Predict
from harness.core.experiment.planned import planned_trials
from harness.core.reports.sections.method import flatten
from harness.core.run import Console
from harness.core.run.anchors import Notary, anchor, anchor_seal, unclear_name
from harness.core.run.asking import is_lent_alike, lent_profiles, require_controls
from harness.core.run.decides import (
    asked_cells,
    coverage,
    decision_document,
    decision_of,
    is_undecided,
    profiling_document,
    require_asked,
    require_choices,
    require_decisive,
    require_enough_to_draw,
    undecided_text,
)
from harness.core.run.estimate import Estimator, Remaining
from harness.core.run.execute import Execution, OnDisturbed, OnError, cluster_name
from harness.core.run.experiment_file import ExperimentFile
from harness.core.run.manifest import record_command
from harness.core.run.plan import document_to_draw, make_plan
from harness.core.run.preflight import Preflight
from harness.core.run.repeats import more_of_fastest, until_decided
from harness.core.run.reuse import is_same, take_over
from harness.core.store import Run, Store
from harness.core.store.run import measured_part
from harness.core.store.traces import remake_missing_traces
from harness.scoring.design import Decision

_MOST_RUNS = 20  # of which times are read for an estimate
_MOST_DIFFERENCES = 3  # between two experiments, in an error
# Keys of `predict`, as users write them, by their fields.
_ASKED = {
    **{name: name for name in ("models", "code", "profile_on", "hardware")},
    "cells": "profile_on",
    "source": "from",
}

MoreTrials = Callable[[Run], list[Trial]]
# Profiles by workload of a run, for cells on the machine of the second of two files of costs.
Transfer = Callable[[Run, Sequence[Path], Iterable[Cell]], Mapping[str, Profile]]


def added_text(added: Sequence[Trial]) -> str:
    """Say how many trials are *added*, and why: for one reason, or the first for which."""
    verb = by_number(len(added), "is", "are")
    text = f"{count(len(added), 'trial')} {verb} added"
    reasons = [*dict.fromkeys(trial.reason for trial in added if trial.reason)]
    if not reasons:
        return text
    return f"{text}: {reasons[0]}" if len(reasons) == 1 else f"{text}, the first one {reasons[0]}"


@dataclass(frozen=True)
class Session:
    """
    An experiment *text* read from *source*, its results below *results_dir*.

    *profiles* are given to the models in the place of those of the run that the text names.
    *transfer* takes profiles to another machine, where the text names files of costs.
    """

    text: str
    source: str
    results_dir: Path
    overrides: tuple[str, ...]
    console: Console
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    transfer: Transfer | None = None

    @cached_property
    def file(self) -> ExperimentFile:
        """The file, whose experiment is read when it is asked for."""
        return ExperimentFile(self.text, self.source, self.overrides, self.console)

    @cached_property
    def experiment(self) -> Experiment:
        """
        The experiment, with the tracing that its provider gives; `SpecError` has all errors.

        The run that lends its profiles, if it is there, is named by its id, whatever the file's
        word for it is: that may mean another run tomorrow.
        """
        experiment = self.file.experiment
        if self._lender is None:
            return experiment
        predict = experiment.predict.model_copy(update={"source": self._lender.id})
        return experiment.model_copy(update={"predict": predict})

    @cached_property
    def _lender(self) -> Run | None:
        """The run whose profiles the file asks for, if it does and that is there."""
        source = self.file.experiment.predict.source
        with suppress(HarnessError):
            return Store(self.results_dir).find(source) if source else None
        return None

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
        """Every trial, in the order in which it is run; of a drawn design those before the draw."""
        return planned_trials(self.experiment, expand(self.experiment), None, self.versions)

    def _trials_of(self, experiment: Experiment, draw: Draw | None) -> tuple[Trial, ...]:
        """
        Every trial of *experiment*: that of the file, or that with which a run was sealed.

        Of a drawn design its scored trials follow from the *draw*.
        """
        if experiment == self.experiment and draw is None:
            return self.trials
        return planned_trials(experiment, expand(experiment), draw, self.versions)

    @cached_property
    def borrowed(self) -> Mapping[str, Profile]:
        """
        Profiles by workload of the run that the file names, if any, for the machine that it names.

        `DataError`, `SpecError`: there is no such run, or it has no profile of a workload.
        """
        predict = self.experiment.predict
        if self.profiles or not predict.source:
            return self.profiles
        source = self._lender or Store(self.results_dir).find(predict.source)
        cells = expand(self.experiment)
        workloads = {cell.workload.name for cell in cells}
        asked = workloads.difference(self.experiment.nightly.controls)
        profiles: Mapping[str, Profile] = lent_profiles(source, asked)
        require_controls(self.experiment, cells, profiles)
        if paths := [Path(self.source).parent / path for path in predict.hardware]:
            if self.transfer is None:
                raise SpecError("nothing here takes profiles elsewhere", where="predict.hardware")
            profiles = self.transfer(source, paths, cells)
        return profiles

    @cached_property
    def preflight(self) -> Preflight:
        """What is checked before anything is started."""
        cells = [*self.file.cells.values()]
        return Preflight(self.experiment, cells, self.source, lambda: self.home, self.console)

    def decision(self) -> Decision | None:
        """
        What the design can decide; `None` where no models are compared.

        `DataError`: the question is about a run that is not there; `SpecError`: about a choice, and
        there is none.
        """
        if self.experiment.question.moved_since:
            Store(self.results_dir).find(self.experiment.question.moved_since)
        cells = [*self.file.cells.values()]
        require_choices(self.experiment, cells, self.source)
        require_enough_to_draw(self.experiment, cells, self.source)
        return decision_of(self.experiment, cells, Store(self.results_dir))

    def plan(self) -> dict[str, Any]:
        """All trials, what the newest run has of them, and what they decide; starts nothing."""
        found = self.decision()
        try:
            self._require_decisive(found)
        except SpecError as error:
            why = error.what.partition(": ")[0]
            self.console.say(f"warning: harness run refuses this: {why} (fix: {error.fix})")
        document = self._plan()
        cells = self.file.cells.values()
        if covered := coverage(self.experiment, cells):
            document["profiling"] = profiling_document(covered, document, cells)
        if found is not None:
            document["decides"] = decision_document(found)
        return document

    def _require_decisive(self, found: Decision | None) -> None:
        """`SpecError` where the question is about no cell, or where nothing can be decided."""
        require_asked(self.experiment, [*self.file.cells.values()], self.source)
        require_decisive(self.experiment, found, self.source)
        if found is not None and is_undecided(self.experiment, found):
            self.console.say(f"warning: {undecided_text(found)}")

    def _plan(self) -> dict[str, Any]:
        """All trials with what the newest run of the experiment has of them."""
        experiment = self.experiment
        runs = [run for run in Store(self.results_dir).fitting(experiment) if run.trial_ids()]
        versions = self._versions_of_plan(runs)
        newest = runs[-1] if runs else None
        draw = None if newest is None or newest.finished else sealed_draw(newest)
        trials = planned_trials(experiment, expand(experiment), draw, versions)
        self.preflight.warn()
        self.preflight.warn_of_lacks()
        try:
            _ = self.borrowed
        except HarnessError as error:
            self.console.say(f"warning: predict.from: {error.what}")
        estimator = self.estimator()
        if newest is None:
            return self._with_cells_to_draw(make_plan(experiment, trials, {}, estimator), estimator)
        is_finished = newest.finished
        records = newest.trials()
        plan = make_plan(experiment, trials, records, estimator, is_finished=is_finished)
        if draw is None:
            plan = self._with_cells_to_draw(plan, estimator)
        held_count = sum(trial["state"] != "pending" for trial in plan["trials"])
        if not held_count:
            return plan
        self._say_held(newest, f"{held_count} of {count(len(trials), 'trial')}")
        return {**plan, "run": newest.path}

    def _say_held(self, run: Run, held: str) -> None:
        """Say how many trials a *run* has, and whether the next one goes on with it."""
        end = "is not finished: 'harness run' goes on with it"
        if run.finished:
            end = "is finished: 'harness run' measures all anew, in another run"
        self.console.say(f"run {run.path} holds {held}, and {end}")

    def _with_cells_to_draw(self, plan: dict[str, Any], estimator: Estimator) -> dict[str, Any]:
        """*plan* with what is drawn after profiling, if anything is, and the time that it takes."""
        if not self.experiment.is_drawn:
            return plan
        candidates = asked_cells(self.experiment, [*self.file.cells.values()])
        document = document_to_draw(self.experiment, candidates, estimator)
        estimate_s = plan["estimate_s"] + document["estimate_s"]
        return {**plan, "estimate_s": estimate_s, "to_draw": document}

    def _versions_of_plan(self, runs: Sequence[Run]) -> Versions:
        """Versions here; where this machine lacks Java or Hadoop, those of the newest of *runs*."""
        try:
            return self.versions
        except MachineError:  # which is warned of: a plan may be for another machine
            measured = (run.read_manifest().versions for run in reversed(runs))
            found = next(filter(None, measured), None)
        if found is None:
            found = Versions(hadoop="unknown", java="unknown")
            self.console.say("ids of trials are provisional: they follow from Hadoop and Java, too")
        return found

    def estimator(self) -> Estimator:
        """What the newest runs that this machine measured say of the time that trials take."""
        machine = machine_facts()
        attempts_of_runs = list[tuple[float, list[TrialRecord]]]()
        for run in reversed(Store(self.results_dir).all_runs()):
            with suppress(DataError):  # a damaged run says nothing
                manifest = run.read_manifest()
                if is_same(manifest.machine, machine) and run.trial_ids():
                    attempts_of_runs.append((manifest.created_s, run.attempts()))
            if len(attempts_of_runs) == _MOST_RUNS:
                break
        return Estimator(attempts_of_runs)

    def open_run(self, *, new: bool) -> Run:
        """The newest unfinished run, or a *new* one; what cannot be predicted is not measured."""
        text = self.file.concealed()
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
        wait_quiet_s: float = 0.0,
        new: bool = False,
        reuse: bool = False,
        trials: Sequence[Trial] | None = None,
        more: MoreTrials | None = None,
        more_here: MoreTrials | None = None,
        anchor_command: str = "",
        anchor_name: str = "",
        not_before: str = "",
    ) -> tuple[Run, int]:
        """
        Run what is missing of the newest unfinished run, or of a new one; count the failures.

        *reuse*: trials that other runs have measured on this machine are taken over.  *trials* are
        those of the grid, unless they are given.  *more* gives trials to be added at the end until
        there is none: of itself those that a verdict takes; *more_here* on the cluster that has
        just run the last one.  The *anchor_command* is told of the seal and of the end, and readers
        see it by the *anchor_name*; what nobody knew *not_before* some moment goes into the seal.
        """
        notary = Notary(anchor_command, anchor_name)
        self._require_decisive(self.decision())
        self.preflight.require()
        self.preflight.look()
        self.preflight.warn()
        if name := unclear_name(notary):
            self.console.say(f"warning: readers will see 'anchored by {name}'; give --anchor-name")
        probe_jar()
        run = self.open_run(new=new)
        with run.lock(measures=True):
            experiment = self._settle(run)
            if remove(cluster_name(run), experiment.cluster.provider):
                self.console.say("cluster: took down what a killed run had left")
            if trials is None:
                trials = self._trials_of(experiment, sealed_draw(run))
            if reuse:
                taken = take_over(run, Store(self.results_dir), trials)
                self.console.say(f"taken over: {len(taken)} earlier trials")
            remake_missing_traces(run)
            run.write_plan(trials)
            record_command(run, experiment, self.versions, self.overrides)
            run.keep_file(self.file.concealed())  # these overrides go with this file
            self._keep_nonce(run, not_before)
            planned = run.read_plan()
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
                wait_quiet_s=wait_quiet_s,
                remaining=self._announce(run, experiment, planned),
                needs_rates=are_rates_required(experiment.predict.models),
                seal=cache(lambda: self._anchored_seal(run, notary)),
                more_here=more_here and partial(more_here, run),
            )
            execution.execute(planned, set(run.trials()))
            more = more or self._more_of(experiment)
            while more and (added := more(run)):
                self.console.say(added_text(added))
                planned = (*planned, *added)
                execution.execute(planned, set(run.trials()))
            run.finish(partial(self._anchor_end, run, notary))
        records = run.trials()
        ended = {trial.id for trial in planned} & records.keys()
        return run, sum(records[trial_id].state != "done" for trial_id in ended)

    def _settle(self, run: Run) -> Experiment:
        """Give the experiment that *run* measures: what it was sealed with stays."""
        experiment = self.experiment
        if not run.seal.exists():  # nothing is predicted yet: the question may still change
            run.update_manifest(experiment=experiment.model_dump(mode="json"))
            return experiment
        sealed_experiment = run.experiment()
        sealed_predict = sealed_experiment.predict
        wanted = experiment.model_copy(update={"predict": sealed_predict})
        if sealed_experiment != wanted or not self._asks(sealed_predict):
            fix = f"harness predict {self.source} asks others of it when it is measured"
            self.console.say(f"the run keeps the models that it has predicted: {fix}")
        return sealed_experiment

    def _announce(self, run: Run, experiment: Experiment, planned: Sequence[Trial]) -> Remaining:
        """Say how many of the *planned* trials are done; how long the others take."""
        records = run.trials()
        done_count = len({trial.id for trial in planned} & records.keys())
        self.console.say(f"run {run.path} ({done_count} of {count(len(planned), 'trial')} done)")
        estimator = self.estimator()
        plan = make_plan(experiment, planned, records, estimator)
        if not run.seal.exists():
            plan = self._with_cells_to_draw(plan, estimator)
        if left_s := plan["estimate_s"]:
            self.console.say(f"it will take {about(left_s)} ({plan['estimated']})")
        expected_s = {
            trial["id"]: trial["estimate_s"] + trial["before_s"] for trial in plan["trials"]
        }
        return Remaining(expected_s, estimator.end_s)

    def _more_of(self, experiment: Experiment) -> MoreTrials | None:
        """What gives trials of *experiment* to be added; `None`: its plan is all."""
        if experiment.is_drawn:
            return self._drawn_trials
        if experiment.fastest:
            return lambda run: more_of_fastest(self.evaluation(run), self.versions)
        if experiment.is_until_decided:
            return lambda run: until_decided(self.evaluation(run), self.versions, self.console)
        return None

    def _drawn_trials(self, run: Run) -> list[Trial]:
        """Trials of the cells that were drawn, and sentinels among them, which are still to run."""
        self.seal(run)
        ended = run.trials()
        return [trial for trial in run.read_plan() if trial.id not in ended]

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
            plan_of = None
            if evaluation.experiment.is_drawn:
                plan_of = partial(self._trials_of, evaluation.experiment)
            predictions = evaluation.predict(plan_of)
            verb = by_number(len(predictions), "is", "are")
            sealed = count(len(predictions), "prediction")
            self.console.say(f"{sealed} {verb} sealed: {run.seal.path}")
        return run.seal.sha256()

    def _keep_nonce(self, run: Run, not_before: str) -> None:
        """Keep for the seal what nobody knew before, unless there is a seal already."""
        if not_before and run.seal.exists():
            self.console.say("warning: --not-before comes too late: the run has its seal already")
        elif not_before:
            run.update_manifest(not_before=not_before)

    def _anchored_seal(self, run: Run, notary: Notary) -> str:
        """SHA-256 of the seal of *run*, of which somebody was told; empty: it is not blind."""
        if not run.experiment().predict.is_blind:
            return ""
        sha256 = self.seal(run)
        anchor_seal(run, notary, self.console.say)
        return sha256

    def _anchor_end(self, run: Run, notary: Notary, last_line: str) -> None:
        """Tell the *notary* of the end of *run*, where there are a seal and a command."""
        if notary.command and run.seal.exists():
            anchor(run, "end", last_line, notary, self.console.say)

    def evaluation(self, run: Run | None = None, *, asks: bool = False) -> Evaluation:
        """
        Give *run* to be evaluated, or the newest that fits, or the analysis that the file asks for.

        The question is the file's.  Where neither the run nor an analysis of it has the file's
        models and `profile_on`, `DataError`; but for who *asks*, the run with those of the file.
        """
        wanted = self.experiment
        if run is None:
            newest = self.newest()
            run = self._answer_of(newest)
            if run is None and not asks:
                raise self._asked_otherwise_error(newest)
            run = run or newest
        evaluation = Evaluation.of(run)
        predict = evaluation.experiment.predict
        if asks and not self._asks(predict):
            predict = wanted.predict
        changes = {"question": wanted.question, "predict": predict}
        is_kept = run.seal.exists() and is_lent_alike(evaluation.experiment.predict, predict)
        return replace(
            evaluation,
            experiment=evaluation.experiment.model_copy(update=changes),
            borrowed=self.borrowed if asks and not is_kept else {},
        )

    def _answer_of(self, run: Run) -> Run | None:
        """Give the newest analysis of *run*, or the run, that was asked what the file asks."""
        for answer in (*reversed(run.analyses()), run):
            if self._asks(answer.experiment().predict):
                return answer
        return None

    def _asks(self, stored: Predict) -> bool:
        """
        Whether the file asks what was asked as *stored*.

        The run that lends its profiles may stand there under the file's word for it, as older
        harnesses stored it; where it is gone, none but that which is stored can be meant.
        """
        wanted = self.experiment.predict
        if self._lender is None and wanted.source and stored.source:
            wanted = wanted.model_copy(update={"source": stored.source})
        return stored in (wanted, self.file.experiment.predict)

    def _asked_otherwise_error(self, run: Run) -> DataError:
        """Make the error for a *run* that was asked other models than the file's."""
        asked = run.experiment().predict
        wanted = self.experiment.predict
        names = [
            name
            for field, name in _ASKED.items()
            if getattr(asked, field) != getattr(wanted, field)
        ]
        other_names = " and ".join(dict.fromkeys(names))
        what = f"run {run.id} was asked with other {other_names} than the file's"
        words = ["harness", "predict", self.source]
        for override in self.overrides:
            words += ["--set", override]
        command = shlex.join(words)
        fix = f"{command} asks the file's, without a job; or name the run: {run.path}"
        return DataError(what, where=self.source, fix=fix)

    def newest(self) -> Run:
        """The newest run with trials that measured what the file measures; else `DataError`."""
        store = Store(self.results_dir)
        experiment = self.experiment
        latest = store.latest(experiment.name)  # or the error that there is none
        runs = [run for run in store.fitting(experiment) if run.trial_ids()]
        if runs:
            return runs[-1]
        wanted = dict(flatten(measured_part(experiment)))
        stored = dict(flatten(measured_part(latest.experiment())))
        differing = [key for key in stored | wanted if stored.get(key) != wanted.get(key)]
        what = f"no run of this experiment has a trial yet; the newest is {latest.path}"
        if differing:
            shown = [
                f"{key} {excerpt(stored.get(key))}, not {excerpt(wanted.get(key))}"
                for key in differing[:_MOST_DIFFERENCES]
            ]
            what = f"no run measured what this file says: the newest, {latest.path}, has"
            what = f"{what} {'; '.join(shown)}"
        fix = f"name that run in the place of the file, or measure: harness run {self.source}"
        raise DataError(what, where=self.source, fix=fix)


def sealed_draw(run: Run) -> Draw | None:
    """Which cells *run* has drawn; what was not sealed when it was interrupted is drawn again."""
    return run.read_draw() if run.seal.exists() else None
