"""
Laws of the machine's speed: what the probe read, and the times at reference speed made of it.

Rates that are too high or too low by one factor in all trials of a run change no time.  What would
is another rate of some: of those that are scored, say.  Beside the probe one thing in a trial is
the same work everywhere: a JVM's start, whose processor seconds the tracer reads.
"""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median

from pydantic import ConfigDict

from harness.base.errors import HarnessError, ParseError
from harness.base.records.profile import Profile, SpeedCorrection
from harness.base.records.score import Drift, Measurement
from harness.base.records.trace import SpeedSample
from harness.base.records.trial import SCHEMA_VERSION, Record, SchemaVersion
from harness.base.text import excerpt
from harness.clusters.monitor.machine import find_disturbance
from harness.core.evaluate.laws.measured import CLOCK_S, Measured
from harness.core.store.evidence import SCORES
from harness.core.store.run import SCORES_FILE

UNITS = 10  # of a line of the probe, each in a tenth of a second of its own
_LEAST_GAP_S = 0.5  # between lines: at least 0.90 s were measured
_MOST_CPU_S = 1.0  # of a line: at most 0.016 s were measured
_LEAST_LINES = 0.5  # each second: at least 0.94 were measured
_LONG_S = 10.0  # in which some lines are due
_MOST_APART = 2.0  # rates of a run: they were within a factor of 1.15
_MOST_DISTURBED = 4.0  # where others used the machine
# Starts of JVMs in units of the probe's work, in medians of trials: how they spread (0.065 and less
# in long runs), how many such spreads are allowed, and what kinds of trials may differ besides.
_SPREAD = 0.08
_TIMES = 4.0
_BESIDES = 0.1
_FEWEST_TRIALS = 3
_SAME = 1e-6
_LEAST_COEFFICIENT = 0.1  # a smaller one says nothing of a rate


class _Times(Record):
    """Of a score book what is said of times at reference speed; all else is not looked at."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    schema_version: SchemaVersion = SCHEMA_VERSION
    measurements: tuple[Measurement, ...] = ()
    profiling: tuple[Measurement, ...] = ()
    drift: Drift | None = None


def readings_of_probe(measured: Measured) -> Iterator[str]:
    """The speed probe has a line of each thread each second, of ten units that took some time."""
    if measured.was_imported:
        return
    for record in measured.done:
        moments = (record.started_s, record.finished_s) if measured.is_of_this_clock else None
        for name, samples in measured.readings[record.trial.id].items():
            if problem := _problem_of_log(samples, moments):
                yield f"{excerpt(name)} of trial {record.trial.id}: {problem}"


def _problem_of_log(
    samples: Sequence[SpeedSample] | ParseError, moments: tuple[float, float] | None
) -> str:
    """What no probe writes in a log, of a trial between two *moments*; empty: nothing."""
    if isinstance(samples, ParseError):
        return f"it cannot be read: {samples.what}"
    threads = defaultdict[int, list[SpeedSample]](list)
    for sample in samples:
        threads[sample.thread].append(sample)
    problems = (_problem_of(of_thread, moments) for of_thread in threads.values())
    return next(filter(None, problems), "")


def _problem_of(samples: Sequence[SpeedSample], moments: tuple[float, float] | None) -> str:
    """What no probe writes in the *samples* of one of its threads; empty: nothing."""
    first_s = samples[0].at_s
    last_s = samples[-1].at_s
    if any(later.at_s - earlier.at_s < _LEAST_GAP_S for earlier, later in pairwise(samples)):
        return "moments of a thread do not ascend by a second"
    if moments and not moments[0] - CLOCK_S <= first_s <= last_s <= moments[1] + CLOCK_S:
        return "it was written while the trial did not run"
    if any(sample.units != UNITS for sample in samples[:-1]) or samples[-1].units > UNITS:
        return f"a line has other than {UNITS} units of work"
    if not all(0.0 < sample.cpu_s <= _MOST_CPU_S for sample in samples):
        return "a line's work took no time, or more than there was"
    if last_s - first_s > max(_LONG_S, len(samples) / _LEAST_LINES):
        return "lines are missing"
    return ""


def speeds_alike(measured: Measured) -> Iterator[str]:
    """Trials have about the speed of each other, where nothing disturbed them."""
    rates = _rates_of_one_machine(measured)
    usual = median(rates.values()) if rates else 1.0
    for trial_id, rate in rates.items():
        is_disturbed = bool(find_disturbance(measured.records[trial_id].loads))
        most = _MOST_DISTURBED if is_disturbed else _MOST_APART
        if max(rate / usual, usual / rate) > most:
            yield f"trial {trial_id} ran at {rate / usual:.2f} times the speed of others"


def starts_alike(measured: Measured) -> Iterator[str]:
    """A JVM's start is the same work, by the probe's rate, in each trial and use of trials."""
    starts: dict[str, float] = {}
    groups = defaultdict[str, set[str]](set)
    for trial_id, rate in _rates_of_one_machine(measured).items():
        trial = measured.records[trial_id].trial
        boot_s = None if trial.cell.cluster.limited else _boot_s(measured, trial_id)
        if boot_s is not None:
            starts[trial_id] = rate * boot_s
            groups[f"trial {trial_id}"].add(trial_id)
            groups[f"all trials of use {trial.use}"].add(trial_id)
    if len(starts) < _FEWEST_TRIALS:
        return
    for name, members in groups.items():
        ours = [starts[trial_id] for trial_id in members]
        others = [start for trial_id, start in starts.items() if trial_id not in members]
        if others and _are_apart(ours, others):
            yield (
                f"{name}: by the speed probe a JVM's start was"
                f" {median(ours) / median(others):.2f} times the work that it was in others"
            )


def _are_apart(ours: Sequence[float], others: Sequence[float]) -> bool:
    """Whether medians of starts differ by more than those of so many trials do."""
    spread = _SPREAD * math.sqrt(1 / len(ours) + 1 / len(others))
    return abs(math.log(median(ours) / median(others))) > _BESIDES + _TIMES * spread


def _rates_of_one_machine(measured: Measured) -> Mapping[str, float]:
    """Rates of the trials that were measured here, on one machine that was probed."""
    if measured.was_imported or not measured.is_of_our_cluster:
        return {}
    reused = measured.manifest.reused
    return {
        trial_id: rate
        for trial_id, rate in measured.rates.items()
        if trial_id not in reused and len(measured.readings[trial_id]) == 1
    }


def _boot_s(measured: Measured, trial_id: str) -> float | None:
    """Processor seconds of the start of a trial's JVMs, in their median; `None`: not known."""
    boots_s = [task.cpu_at_main_s for task in measured.recordings[trial_id] if task.cpu_at_main_s]
    return median(boots_s) if boots_s else None


def reference_of_rates(measured: Measured) -> Iterator[str]:
    """Times at reference speed follow from the probe's rates, by the profile's correction."""
    run = measured.run
    if measured.was_imported or not run.is_scored:
        return
    try:
        book = run.opener.read_record(_Times, run.path / SCORES / SCORES_FILE, "harness score")
        profiles = run.read_profiles()
    except HarnessError:
        return  # whoever reads them says so
    rates = measured.rates
    drift = book.drift.ratio if book.drift else 1.0
    for ratio, measurements in ((drift, book.measurements), (1.0, book.profiling)):
        for measurement in measurements:
            profile = profiles.get(measurement.workload)
            rate = rates.get(measurement.trial)
            speed = profile.speed if profile else None
            if problem := _problem_of_times(measurement, speed, rate, ratio):
                yield f"trial {measurement.trial}: {problem}"
    yield from _references_elsewhere(measured, profiles, rates)


def _problem_of_times(
    measurement: Measurement, speed: SpeedCorrection | None, rate: float | None, drift: float
) -> str:
    """Why a trial's times at reference speed are not those of its *rate*; empty: they may be."""
    named = measurement.reference_s.items()
    raw_s = measurement.raw_s
    factors = [time_s / raw_s[name] for name, time_s in named if raw_s.get(name)]
    if not factors:
        return ""
    factor = median(factors)
    if max(factors) - min(factors) > _SAME * abs(factor):
        return "its times were brought to reference speed by several factors"
    if speed is None:
        return ""
    return _problem_of_factor(factor * drift, speed, rate)


def _problem_of_factor(factor: float, speed: SpeedCorrection, rate: float | None) -> str:
    """Why times were not brought to reference speed by this *factor*; empty: they may have been."""
    if rate is not None:
        wanted = speed.at_reference(1.0, rate)
        is_right = abs(factor - wanted) <= _SAME * wanted
        return "" if is_right else f"its times were multiplied by {factor:.3f}, not {wanted:.3f}"
    if abs(speed.coefficient) < _LEAST_COEFFICIENT or factor <= 0:
        return ""
    share = factor ** (1 / speed.coefficient)
    is_likely = 1 / _MOST_APART <= share <= _MOST_APART
    return "" if is_likely else f"its times are those of {share:.2f} times the speed of profiles"


def _references_elsewhere(
    measured: Measured, profiles: Mapping[str, Profile], rates: Mapping[str, float]
) -> Iterator[str]:
    """Profiles whose reference speed is none of the trials that they were made of."""
    if measured.experiment.predict.source:
        return
    feeding = [rate for trial_id, rate in rates.items() if _is_profiling(measured, trial_id)]
    if not feeding:
        return
    for name, profile in profiles.items():
        speed = profile.speed
        if speed is None or not speed.count:
            continue
        if not min(feeding) * (1 - _SAME) <= speed.reference_rate <= max(feeding) * (1 + _SAME):
            yield f"profile {excerpt(name)}: no trial that feeds it had its reference speed"


def _is_profiling(measured: Measured, trial_id: str) -> bool:
    """Whether a trial feeds profiles."""
    return measured.records[trial_id].trial.profiling
