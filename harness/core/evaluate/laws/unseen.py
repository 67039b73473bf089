"""What laws could not compare in a run, because it does not have both of what they compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import filterfalse

from harness.base.errors import SpecError
from harness.base.records.trial import TrialRecord
from harness.core.evaluate.laws.jobs import has_all_attempts
from harness.core.evaluate.laws.logs import configuration_name, history_name, samples_name
from harness.core.evaluate.laws.measured import Measured
from harness.core.evaluate.laws.plan import written_experiment
from harness.core.store import Run


def unseen_by_laws(run: Run) -> list[str]:
    """What the laws could not compare in *run*, and why: a sentence each; none: nothing."""
    return unseen_in(Measured(run.measured))


def unseen_in(measured: Measured) -> list[str]:
    """The same of what was read of a run already."""
    if measured.was_imported:
        return ["plan, loads and configurations: its jobs ran before, and were imported"]
    return [*_unseen_logs(measured), *_unseen_plan(measured)]


def _unseen_logs(measured: Measured) -> Iterator[str]:
    """What records and tables have no log beside them for."""

    def has_trace(record: TrialRecord) -> bool:
        return measured.run.has_trace(record.trial.id)

    def has_jobs_logs(record: TrialRecord, name_of: Callable[[int], str]) -> bool:
        names = {*measured.raw(record.trial.id).names()}
        return names.issuperset(map(name_of, range(len(record.job_ids))))

    def has_history(record: TrialRecord) -> bool:
        return has_jobs_logs(record, history_name)

    def has_configuration(record: TrialRecord) -> bool:
        return has_jobs_logs(record, configuration_name)

    def has_samples(record: TrialRecord) -> bool:
        names = {*measured.raw(record.trial.id).names()}
        return names.issuperset(map(samples_name, record.loads))

    done = measured.done
    traced = [*filter(has_trace, done)]
    made_of = "the histories that they were made of are not there"
    samples = "the samples that they are means of are not there"
    whole = len(done)
    for subject, records, has_log, what in (
        ("times of jobs", done, has_trace, "neither histories nor traces are there"),
        ("times in traces", traced, has_history, made_of),
        ("configurations of jobs", done, has_configuration, "Hadoop's own copies are not there"),
        ("loads of machines", done, has_samples, samples),
        (
            "times at reference speed",
            done,
            partial(_has_rate, measured),
            "the speed probe's lines are not there",
        ),
    ):
        lacking = [*filterfalse(has_log, records)]
        if lacking:
            share = "" if len(lacking) == whole else f" of {len(lacking)} of {whole} trials"
            yield f"{subject}{share}: {what}"


def _has_rate(measured: Measured, record: TrialRecord) -> bool:
    """Whether the speed probe was read while a trial's jobs ran."""
    return record.trial.id in measured.rates


def _unseen_plan(measured: Measured) -> Iterator[str]:
    """What of the plan and the experiment follows from nothing that is stored."""
    if measured.is_chosen_meanwhile:
        yield "plan: each trial was chosen by what was measured before it"
    elif measured.has_other_ids:
        yield "order of the plan: cells have other ids here than those that the seed shuffled"
    elif not _has_readable_file(measured):
        yield "experiment.yaml: it cannot be read here"
    if any(record.trial.cell.workload.code for record in measured.done):
        yield "configurations of the owner's workloads: what their code sets is not known"
    if not has_all_attempts(measured):
        yield "gaps in the ids of jobs: not all that ran is known to be there"


def _has_readable_file(measured: Measured) -> bool:
    """Whether the experiment's file is there, and says what was asked."""
    try:
        return written_experiment(measured) is not None
    except SpecError:
        return False
