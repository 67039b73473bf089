"""Laws of what is stored twice: in a record or a table, and in the log that it was made of."""

from __future__ import annotations

import re

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import unescape

from harness.base.errors import HarnessError, ParseError
from harness.base.hadoop.properties import successor
from harness.base.hadoop.secrets import DIGEST
from harness.base.hadoop.site import plain_value
from harness.base.records.trace import JobTrace, MachineSample, TaskAttempt, devices
from harness.base.records.trial import Cell, MachineLoad, TrialRecord
from harness.base.text import excerpt
from harness.clusters.monitor.machine import (
    MACHINE_LOG,
    THIS_MACHINE,
    VIEW_LOG,
    find_disturbance,
    machine_load,
    named_after,
)
from harness.clusters.monitor.watch import HARNESS
from harness.core.evaluate.laws.measured import Measured
from harness.core.evaluate.resolved import resolve_cell
from harness.core.store import RawLogs
from harness.observe.parsing.history import read_history
from harness.observe.parsing.lines import read_machine

_STEP_S = 0.001  # Hadoop's own, to which moments are stored
_OF_JOB = ("state", "submit_s", "launch_s", "finish_s", "num_maps", "num_reduces")
_COUNTERS = ("counters", "map_counters", "reduce_counters")
_OF_ATTEMPT = ("task_id", "kind", "state", "start_s", "finish_s")
_BY_ITS_NODE = ("map_finish_s", "shuffle_finish_s", "sort_finish_s")
_SHARE = 1e-6  # as a figure is rounded
_MOST_CONF_BYTES = 2**26
_PROPERTY = re.compile(rb"<name>([^<]*)</name>\s*<value>([^<]*)</value>\s*(<final>true)?")
_REDUCES = "mapreduce.job.reduces"
_MACHINE_LOGS = re.compile(r"machine(?:-([^/]+))?\.jsonl")
# Recorders are put in front of these, or behind them.
_TRACED = re.compile(r"mapreduce\.admin\.(map|reduce)\.child\.java\.opts|.*\.classpath")
# A name of somebody's is none of these, so they stand in what is published as they were.
_PLAIN = re.compile(r"[\d.]+|true|false|org\.apache\.hadoop\.[\w.$]+")


def trace_of_history(measured: Measured) -> Iterator[str]:
    """The tables say of a job, its attempts and counters what its history says."""
    for trial_id, jobs in measured.jobs.items():
        raw = measured.raw(trial_id)
        for number, job in enumerate(jobs):
            name = history_name(number)
            if name not in raw.names():
                continue
            try:
                with raw.open(name) as lines:
                    history = read_history(lines, f"trials/{trial_id}/raw/{name}.gz")
            except ParseError as error:
                yield f"the history of {job.job_id} cannot be read: {error.what}"
                continue
            yield from _differences(job, history)


def history_name(number: int) -> str:
    """Name of the history of the job of this *number* among a trial's logs."""
    return f"job-{number}-history.jhist"


def _differences(job: JobTrace, history: JobTrace) -> Iterator[str]:
    """What a *job* of the tables has otherwise than its *history*."""
    if job.job_id != history.job_id:
        yield f"the history of {job.job_id} is that of {history.job_id}"
        return
    yield from _compared(job.job_id, job, history, _OF_JOB)
    for scope in _COUNTERS:
        yield from _counted(f"{job.job_id}: {scope}", getattr(job, scope), getattr(history, scope))
    attempts = {attempt.attempt_id: attempt for attempt in history.attempts}
    if attempts.keys() != {attempt.attempt_id for attempt in job.attempts}:
        yield f"{job.job_id} has other attempts in its history"
    # Where clocks of nodes were off, a later harness may correct otherwise what they say.
    names = _OF_ATTEMPT if history.clocks else _OF_ATTEMPT + _BY_ITS_NODE
    for attempt in job.attempts:
        if (other := attempts.get(attempt.attempt_id)) is not None:
            yield from _compared(attempt.attempt_id, attempt, other, names)
            yield from _counted(attempt.attempt_id, attempt.counters, other.counters)


def _compared(
    subject: str,
    stored: JobTrace | TaskAttempt,
    history: JobTrace | TaskAttempt,
    names: Sequence[str],
) -> Iterator[str]:
    """The first of the fields *names* that differs, but for a step of Hadoop's clock."""
    for name in names:
        value, other = getattr(stored, name), getattr(history, name)
        is_near = isinstance(value, float) and isinstance(other, float)
        is_near = is_near and abs(value - other) <= 1.5 * _STEP_S
        if value != other and not is_near:
            yield f"{subject}: {name} is {excerpt(value)}, and {excerpt(other)} in its history"
            return


def _counted(subject: str, stored: Mapping[str, int], history: Mapping[str, int]) -> Iterator[str]:
    """The first counter of both that differs: somebody's own may be renamed for the public."""
    for name, value in stored.items():
        other = history.get(name, value)
        if other != value:
            yield f"{subject}: {excerpt(name)} is {value}, and {other} in its history"
            return


def configured_as_cell(measured: Measured) -> Iterator[str]:
    """Hadoop's own copy of a job's configuration has the values that the trial's cell asks for."""
    if measured.was_imported:
        return
    asked_of_cells: dict[str, Mapping[str, str]] = {}
    for record in measured.done:
        cell = record.trial.cell
        if cell.id not in asked_of_cells:
            asked_of_cells[cell.id] = _asked_of(cell, is_published=measured.run.is_published)
        asked = asked_of_cells[cell.id]
        raw = measured.raw(record.trial.id)
        for number, job_id in enumerate(record.job_ids):
            name = configuration_name(number)
            if not asked or name not in raw.names():
                continue
            given, final_names = _given(raw, name)
            if cell.cluster.provider == "existing":  # whose owner fixes what no job changes
                given = {**given, **{key: asked[key] for key in final_names & asked.keys()}}
            for key in _given_otherwise(asked, given, is_first=number == 0):
                yield (
                    f"{job_id} had {key} = {excerpt(given.get(key, 'nothing'))}, and its cell has"
                    f" {excerpt(asked[key])}"
                )


def _given_otherwise(
    asked: Mapping[str, str], given: Mapping[str, str], *, is_first: bool
) -> Iterator[str]:
    """Properties that a job was not given as *asked*; later jobs of a trial may have no reduce."""
    for name, value in asked.items():
        is_map_only = name == _REDUCES and not is_first and given.get(name) == "0"
        if not is_map_only and not _is_given(name, value, given.get(name, "")):
            yield name


def configuration_name(number: int) -> str:
    """Name of the configuration of the job of this *number* among a trial's logs."""
    return f"job-{number}-conf.xml"


def _asked_of(cell: Cell, *, is_published: bool) -> Mapping[str, str]:
    """Properties that a *cell* asks for, as Hadoop reads them; none of somebody's own workload."""
    resolved = None if cell.workload.code else resolve_cell(cell)
    if resolved is None or isinstance(resolved.found, HarnessError):
        return {}
    site = {} if cell.cluster.provider == "existing" else cell.cluster.site
    asked = {name: plain_value(text) for name, text in site.items()}
    asked = _as_hadoop_reads({**asked, **resolved.configuration})
    if is_published:
        return {name: text for name, text in asked.items() if _PLAIN.fullmatch(text)}
    return asked


def _as_hadoop_reads(asked: Mapping[str, str]) -> dict[str, str]:
    """Properties *asked* for, by their present names, but secrets and what is said in two ways."""
    by_name: dict[str, str] = {}
    unclear = set[str]()
    for name, text in asked.items():
        read_name = successor(name) or name
        if by_name.setdefault(read_name, text) != text or DIGEST.search(text):
            unclear.add(read_name)
    return {name: text for name, text in by_name.items() if name not in unclear}


def _given(raw: RawLogs, name: str) -> tuple[Mapping[str, str], frozenset[str]]:
    """Properties in a configuration that Hadoop wrote, and names of those that no job changes."""
    with raw.open(name) as conf:
        rows = _PROPERTY.findall(conf.read(_MOST_CONF_BYTES))
    given: dict[str, str] = {}
    final_names = set[str]()
    for key_bytes, text, is_final in rows:
        key = unescape(key_bytes.decode("utf-8", "replace"))
        given[key] = unescape(text.decode("utf-8", "replace"))
        if is_final:
            final_names.add(key)
    return given, frozenset(final_names)


def _is_given(name: str, asked: str, given: str) -> bool:
    """Whether a property was *given* as it was *asked*, however it is spaced."""
    asked_words, given_words = (" ".join(text.split()) for text in (asked, given))
    return asked_words == given_words or (
        _TRACED.fullmatch(name) is not None and asked_words in given_words
    )


def device_of_counters(measured: Measured) -> Iterator[str]:
    """The device of a trial is that which its tasks have counted."""
    if measured.was_imported:
        return
    for trial_id, jobs in measured.jobs.items():
        counted = devices(attempt.counters for job in jobs for attempt in job.attempts)
        stated = measured.records[trial_id].device
        if stated != ", ".join(counted):
            counted_text = ", ".join(counted) or "none"
            yield (
                f"trial {trial_id} computed on {excerpt(stated) or 'no device'}, and its tasks"
                f" count {counted_text}"
            )


def disturbed_by_loads(measured: Measured) -> Iterator[str]:
    """A trial is marked as disturbed where its loads say so, and nowhere else."""
    for record in measured.attempts:
        rules = find_disturbance(record.loads)
        if record.disturbed and not rules:
            yield f"trial {record.trial.id} is marked as disturbed, and its loads are not"
        if rules and not record.disturbed:
            yield f"trial {record.trial.id} is not marked as disturbed, and its loads are: {rules}"


def loads_of_samples(measured: Measured) -> Iterator[str]:
    """The loads of a trial are the means of its samples, and there are some of each machine."""
    for record in measured.records.values():
        raw = measured.raw(record.trial.id)
        for machine in _without_load(measured, record):
            yield f"trial {record.trial.id} has no loads of {excerpt(machine)}, which was sampled"
        for machine, load in record.loads.items():
            if samples_name(machine) not in raw.names():
                continue
            possible = _loads_of(measured, raw, machine)
            if not any(_is_load(load, other) for other in possible):
                yield (
                    f"the loads of {excerpt(machine)} in trial {record.trial.id} are not those of"
                    " its samples"
                )


def _without_load(measured: Measured, record: TrialRecord) -> Iterator[str]:
    """Machines that were sampled during a trial, and of which its record says nothing."""
    if measured.was_imported:
        return
    is_sampled_here = measured.experiment.cluster.provider == "local"
    if is_sampled_here and record.state == "done" and not record.loads:
        yield THIS_MACHINE  # without its samples no trial ends well
        return
    raw = measured.raw(record.trial.id)
    for name in raw.names():
        match = _MACHINE_LOGS.fullmatch(name)
        machine = (match[1] or THIS_MACHINE) if match else ""
        if match and machine not in record.loads and _read_samples(raw, name):
            yield machine


def samples_name(machine: str) -> str:
    """Name of the samples of a *machine* among a trial's logs."""
    return MACHINE_LOG if machine == THIS_MACHINE else named_after(MACHINE_LOG, machine)


def _loads_of(measured: Measured, raw: RawLogs, machine: str) -> Iterator[MachineLoad]:
    """
    Loads that the samples of a *machine* may stand for.

    Nothing says on which of several machines the harness itself ran.  Samples that do not know the
    kernel's own share are older; each of them counted alike then.
    """
    samples = _read_samples(raw, samples_name(machine))
    monitored = measured.manifest.machines.get(machine)
    views = [named_after(VIEW_LOG, node) for node in (monitored.nodes if monitored else ())]
    ours = named_after(VIEW_LOG, HARNESS)
    seen = [_read_samples(raw, name) for name in views if name in raw.names()]
    with_ours = [[_read_samples(raw, ours)]] if ours in raw.names() else []
    for further in ([], *with_ours):
        load = machine_load(samples, *seen, *further)
        if load is None:
            return
        yield load
        if all(sample.kernel is None for sample in samples):
            alike = [_evenly(view) for view in (samples, *seen, *further)]
            older = machine_load(*alike) or load
            yield older.model_copy(update={"swap_bytes_per_s": load.swap_bytes_per_s})


def _read_samples(raw: RawLogs, name: str) -> list[MachineSample]:
    """The samples in the log *name*."""
    with raw.open(name) as lines:
        return [*read_machine(lines, name)]


def _evenly(samples: Sequence[MachineSample]) -> list[MachineSample]:
    """*samples* as if a second lay between any two."""
    return [replace(sample, at_s=float(number)) for number, sample in enumerate(samples)]


def _is_load(load: MachineLoad, other: MachineLoad) -> bool:
    """Whether two loads have the same figures."""
    pairs = zip(load.model_dump().values(), other.model_dump().values(), strict=True)
    return all(
        value == found
        or (None not in (value, found) and abs(value - found) <= _SHARE * max(1.0, abs(found)))
        for value, found in pairs
    )
