"""From a run to its night: the points of all that was measured, and facts that may explain them."""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean

from harness.base.documents.wording import by_number, count
from harness.base.records.manifest import Manifest
from harness.base.records.prediction import Prediction
from harness.base.records.profile import Profile
from harness.base.records.score import COMPARED, Measurement
from harness.base.records.trace import TASK_COUNTER, joined
from harness.base.records.trial import digest
from harness.core.evaluate.flow import Evaluation
from harness.core.experiment.model import Experiment
from harness.core.store.run import measured_part
from harness.nightly.records import PROBE, Night, Point, Series, point_of
from harness.scoring.score import LEVELS

INPUT_OF = "input of "
_TIMES = ("job_s", *(name for name, level in LEVELS.items() if level in ("task", "phase")))
_INPUT = {
    "records": f"{TASK_COUNTER}.MAP_INPUT_RECORDS",
    "map output bytes": f"{TASK_COUNTER}.MAP_OUTPUT_BYTES",
    "map output records": f"{TASK_COUNTER}.MAP_OUTPUT_RECORDS",
}
# Of a machine: what tells it from others; the kernel is a fact.
_IDENTITY = ("id", "cpu", "cores", "memory_bytes", "architecture")
_ORDER = ("seed", "name")  # of an experiment: what may differ from night to night


def night(evaluation: Evaluation) -> Night:
    """The line of the history that a run gives, with what it lacks; without code and alarms."""
    run = evaluation.run
    done = evaluation.done
    manifest = run.read_manifest()
    scored = [trial for trial in evaluation.plan if trial.is_scored]
    missing = [trial for trial in scored if trial.id not in done]
    disturbed = [trial for trial in scored if trial.id in done and done[trial.id].disturbed]
    lacks = list[str]()
    trials_text = count(len(scored), "trial")
    if missing:
        cells = dict.fromkeys(evaluation.labels[trial.cell.id] for trial in missing)
        verb = by_number(len(missing), "is", "are")
        lacks.append(f"{len(missing)} of {trials_text} {verb} not done: {', '.join(cells)}")
    if disturbed:
        verbs = by_number(len(disturbed), "was disturbed, and counts", "were disturbed, and count")
        lacks.append(f"{len(disturbed)} of {trials_text} {verbs} a quarter")
    facts = facts_of(evaluation, manifest)
    if scored and 2 * len(disturbed) > len(scored):
        facts["others"] = "used the machine during most trials"
    return Night(
        time_s=manifest.created_s,
        run=run.id,
        series=series(run.experiment(), manifest.machine, node_facts(manifest).get("hadoop", "")),
        whole=2 * len(missing) <= len(scored) and bool(scored),
        lacks=tuple(lacks),
        facts=facts,
        points=tuple(points(evaluation)),
    )


def facts_of(evaluation: Evaluation, manifest: Manifest) -> dict[str, str]:
    """What may explain a change: programs, the machine, its nodes, and what the jobs have read."""
    facts = {"harness": manifest.harness, "commit": manifest.commit, "python": manifest.python}
    facts["kernel"] = str(manifest.machine.get("kernel", ""))
    facts["os"] = str(manifest.machine.get("os", ""))
    facts |= node_facts(manifest)
    if manifest.versions:
        facts |= {f"jar {name}": sha[:12] for name, sha in manifest.versions.jars.items()}
    for prediction in evaluation.predictions:
        facts[f"code of {prediction.model}"] = prediction.code[:12]
    if evaluation.has_traces:
        facts |= input_facts(evaluation)
    return {name: fact for name, fact in sorted(facts.items()) if fact}


def input_facts(evaluation: Evaluation) -> dict[str, str]:
    """What the trials of each cell have read, and handed on: the same each night."""
    facts = {}
    last_records = {record.trial.cell.id: record for record in evaluation.done.values()}
    for cell, record in last_records.items():
        counters = joined(evaluation.jobs(record)).counters
        counts = [f"{counters[key]} {name}" for name, key in _INPUT.items() if key in counters]
        facts[INPUT_OF + evaluation.labels[cell]] = ", ".join([f"{record.input_bytes} B", *counts])
    return facts


def node_facts(manifest: Manifest) -> dict[str, str]:
    """What nodes have, by name; where they differ, which of them has what."""
    facts = dict[str, str]()
    for name, value in manifest.nodes.items():
        if isinstance(value, str):
            facts[name] = value
        else:
            facts[name] = ", ".join(map(": ".join, sorted(value.items())))
    return facts


def series(experiment: Experiment, machine: Mapping[str, object], hadoop: str) -> Series:
    """What nights of *experiment* on *machine* share, whatever the order of their trials."""
    measured = {key: part for key, part in measured_part(experiment).items() if key not in _ORDER}
    measured["profile_on"] = experiment.predict.model_dump(mode="json")["profile_on"]
    identity = {name: machine.get(name) for name in _IDENTITY}
    workers = ", ".join(map(str, experiment.cluster.workers))
    return Series(
        machine=digest(identity),
        experiment=digest(measured),
        hadoop=hadoop,
        workers=workers,
        residual=COMPARED,
    )


def points(evaluation: Evaluation) -> Iterator[Point]:
    """All numbers of a run; repeats of trials that were added on suspicion are the last."""
    profiles = evaluation.run.read_profiles()
    done = evaluation.done
    labels = evaluation.labels
    repeats = defaultdict[str, list[Measurement]](list)
    starts = dict[str, int]()  # by what they are called, numbers in the order of the trials
    for measurement in evaluation.measurements():
        repeats[measurement.cell].append(measurement)
        starts.setdefault(measurement.start, len(starts))
    for cell, trials in sorted(repeats.items(), key=lambda item: labels[item[0]]):
        trials.sort(key=lambda trial: (done[trial.trial].trial.look, done[trial.trial].started_s))
        common = {
            "cell": labels[cell],
            "workload": trials[0].workload,
            "starts": tuple(starts[trial.start] for trial in trials),
            "again": sum(done[trial.trial].trial.look > 0 for trial in trials),
            "disturbed": tuple(place for place, trial in enumerate(trials) if trial.disturbed),
        }
        yield from time_points(trials, common, is_control=trials[0].workload not in profiles)
        yield from residual_points(trials, common, evaluation.predictions)
    rates = [rate for rate in map(evaluation.rate, done.values()) if rate]
    if rates:
        yield point_of(kind="control", quantity=PROBE, raw=rates)
    for workload, profile in profiles.items():
        yield from cost_points(workload, profile)


def time_points(
    trials: Sequence[Measurement], common: Mapping[str, object], *, is_control: bool
) -> Iterator[Point]:
    """Measured times of the *trials* of a cell, of a control that of its job alone."""
    kind = "control" if is_control else "measured"
    for quantity in ("job_s",) if is_control else _TIMES:
        raw_s = [trial.raw_s.get(quantity, 0.0) for trial in trials]
        if min(raw_s) <= 0:
            continue
        reference_s = list[float]()
        if not is_control:
            reference_s = [trial.reference_s.get(quantity, math.nan) for trial in trials]
        times = {"raw": raw_s, "reference": reference_s}
        yield point_of(kind=kind, quantity=quantity, **common, **times)


def residual_points(
    trials: Sequence[Measurement], common: Mapping[str, object], predictions: Sequence[Prediction]
) -> Iterator[Point]:
    """Measured over predicted times of the jobs of the *trials* of a cell, by model."""
    for prediction in predictions:
        if prediction.cell == trials[0].cell and prediction.job_s:
            ratios = [trial.raw_s.get(COMPARED, 0.0) / prediction.job_s for trial in trials]
            if min(ratios) <= 0:
                continue
            residual = {"raw": ratios, "model": prediction.model, "quantity": COMPARED}
            yield point_of(kind="residual", **common, **residual)


def cost_points(workload: str, profile: Profile) -> Iterator[Point]:
    """What is above 0 of the statistics and costs of a profile."""
    for name, cost in {**profile.statistics, **profile.frame, **profile.costs}.items():
        if cost.value > 0:
            yield point_of(kind="cost", workload=workload, quantity=name, raw=(cost.value,))


def levels(points: Iterable[Point], offsets: Mapping[str, float]) -> dict[str, float]:
    """Logarithm of the weighted mean of each point's repeats, less its offset, by its name."""
    return {
        point.name: math.log(fmean(point.raw, point.weights)) - offsets.get(point.name, 0.0)
        for point in points
    }
