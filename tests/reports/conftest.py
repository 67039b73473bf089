"""Made-up records for the reports: a run of 54 trials, two workloads, two models."""

from __future__ import annotations

import dataclasses
import re

from random import Random
from statistics import fmean, stdev

import pytest

from harness.base.documents.formats import render_html
from harness.base.records.prediction import Prediction, TaskSpan
from harness.base.records.profile import (
    CostGroup,
    FitDiagnostic,
    Profile,
    SpeedCorrection,
    Statistic,
)
from harness.base.records.score import (
    Comparison,
    Measurement,
    Ranking,
    Score,
    ScoreBook,
    Summary,
)
from harness.base.records.tasks import RecordLoop, Span, TaskSpans
from harness.base.records.trace import JobTrace, TaskAttempt
from harness.base.records.trial import (
    Cell,
    ClusterSpec,
    MachineLoad,
    Trial,
    TrialRecord,
    Versions,
    WorkloadSpec,
    trial_id,
)
from harness.core.evaluate.observations import job_task_times
from harness.core.experiment.model import ClusterAxes, Experiment, Predict, WorkloadAxes
from harness.core.reports.data import ReportData
from harness.core.reports.sections import make_document
from harness.observe.profiling.task_times import recorded_map_times, recorded_reduce_times
from harness.scoring import METRICS
from harness.scoring.score import MEASURED_AS, decompose

MIB = 2**20
START = 1_767_225_600.0
MODELS = ("whatif", "whatif-mr2")
VERSIONS = Versions(hadoop="3.5.0", java="17.0.15", jars={"examples": "ab" * 32})
PHASES = ("map_main_s", "map_tail_s", "shuffle_s", "sort_s", "reduce_rest_s")
LEVELS = {
    "body_s": "job",
    "job_s": "job",
    "published_s": "job",
    "frame_s": "job",
    "makespan_s": "job",
    "map_task_s": "task",
    "reduce_task_s": "task",
    **dict.fromkeys(PHASES, "phase"),
}
# How far each model is off in each quantity, as a share: what the scores are made from.
BIAS = {
    "whatif": {"map_main_s": 0.06, "map_tail_s": 0.9, "shuffle_s": -0.55, "sort_s": 2.0},
    "whatif-mr2": {"map_main_s": -0.03, "map_tail_s": 0.12, "shuffle_s": -0.4, "sort_s": 0.4},
}
JOB_BIAS = {"whatif": -0.21, "whatif-mr2": -0.11}


def experiment(**changes):
    """The experiment of the design's example file."""
    return Experiment(
        **{
            "name": "quick",
            "question": "How far off are the models for WordCount and TeraSort on this machine?",
            "cluster": ClusterAxes(site={"dfs.blocksize": ("33554432",)}),
            "workloads": (
                WorkloadAxes(name="wordcount", input_bytes=tuple(n * MIB for n in (32, 64, 128))),
                WorkloadAxes(name="terasort", input_bytes=tuple(n * MIB for n in (32, 64, 256))),
            ),
            "configuration": {
                "mapreduce.job.reduces": ("1", "2", "4"),
                "mapreduce.task.io.sort.mb": ("16",),
            },
            "predict": Predict(
                models=MODELS,
                profile_on={
                    "input": ("33554432", "67108864"),
                    "mapreduce.job.reduces": ("1", "2"),
                },
            ),
            **changes,
        }
    )


def cell_of(workload, size, reduces):
    """One cell with its label."""
    cell = Cell(
        cluster=ClusterSpec(site={"dfs.blocksize": "33554432"}),
        workload=WorkloadSpec(name=workload, input_bytes=size * MIB),
        configuration={
            "mapreduce.job.reduces": str(reduces),
            "mapreduce.task.io.sort.mb": "16",
        },
    )
    return cell, f"{workload} {size} MiB, reduces {reduces}"


def profiling(cell):
    """Does this cell feed the profile?"""
    small = cell.workload.input_bytes <= 64 * MIB
    return small and cell.configuration["mapreduce.job.reduces"] in ("1", "2")


def waves(cell):
    """Waves of maps and of reduces on three slots."""
    maps = max(1, cell.workload.input_bytes // (32 * MIB))
    return -(-maps // 3), -(-int(cell.configuration["mapreduce.job.reduces"]) // 3)


def true_times(cell):
    """Seconds of each quantity without noise."""
    size = cell.workload.input_bytes / MIB
    maps = max(1, int(size // 32))
    reduces = int(cell.configuration["mapreduce.job.reduces"])
    per_map = 5.2 if cell.workload.name == "wordcount" else 3.1
    shuffled = size * (0.12 if cell.workload.name == "wordcount" else 1.0)
    times = {
        "map_main_s": per_map,
        "map_tail_s": 0.09 * per_map,
        "shuffle_s": 1.1 + 0.016 * shuffled / reduces,
        "sort_s": 0.04 + 0.002 * shuffled / reduces,
        "reduce_rest_s": 0.9 + 0.05 * shuffled / reduces,
    }
    times["map_task_s"] = times["map_main_s"] + times["map_tail_s"]
    times["reduce_task_s"] = times["shuffle_s"] + times["sort_s"] + times["reduce_rest_s"]
    waves = -(-maps // 3) * times["map_task_s"] + -(-reduces // 3) * times["reduce_task_s"]
    around = {"frame_s": 6.0, "body_s": waves + 0.4}
    return {**times, **around, "makespan_s": waves + 0.8, "job_s": waves + 6.4}


class Run:
    """A run in the making: draws trials, measures them, scores the models."""

    def __init__(self, repeat=3, seed=7):
        self.random, self.repeat = Random(seed), repeat
        sizes = {"wordcount": (32, 64, 128), "terasort": (32, 64, 256)}
        listed = [cell_of(w, s, r) for w in sizes for s in sizes[w] for r in (1, 2, 4)]
        self.cells = {cell.id: (cell, name) for cell, name in listed}
        self.trials, self.measurements, self.rates = [], [], {}

    def measure(self, failing=2):
        """Run all trials in a shuffled order on a machine whose speed drifts."""
        wanted = [(c, n) for c, _ in self.cells.values() for n in range(self.repeat)]
        self.random.shuffle(wanted)
        clock, speed = START, 1.0
        for place, (cell, repetition) in enumerate(wanted):
            speed = 0.9 * speed + 0.1 + self.random.gauss(0, 0.025)
            identity = trial_id(cell, repetition, VERSIONS)
            trial = Trial(id=identity, cell=cell, repetition=repetition, profiling=profiling(cell))
            bad = place in (11, 40)[:failing]
            self._record(trial, clock, speed, bad=bad, disturbed=place == 29)
            clock += true_times(cell)["job_s"] + 8

    def _record(self, trial, clock, speed, *, bad, disturbed):
        times = true_times(trial.cell)
        record = TrialRecord(
            trial=trial,
            state=("timed_out" if trial.repetition else "failed") if bad else "done",
            started_s=clock,
            finished_s=clock + times["job_s"] + 5,
            job_ids=("job_1767225600000_0007",),
            reason="NodeManager worker2 is gone: no heartbeat for 30 s\n  at:  local cluster 'c1'"
            if bad
            else "",
            disturbed="steal above 5 % for more than a tenth of the trial" if disturbed else "",
            versions=VERSIONS,
        )
        steal = 0.08 if disturbed else abs(self.random.gauss(0.004, 0.004))
        load = MachineLoad(
            busy=self.random.uniform(0.6, 0.9), steal=steal, others=0.01, swap_bytes_per_s=0.0
        )
        self.trials.append(record.model_copy(update={"loads": {"this machine": load}}))
        self.rates[trial.id] = 2.31e3 * speed
        if not bad and not trial.profiling:
            noise = {k: self.random.gauss(1, 0.02) / speed for k in times}
            self.measurements.append(
                Measurement(
                    cell=trial.cell.id,
                    workload=trial.cell.workload.name,
                    trial=trial.id,
                    raw_s={k: v * noise[k] for k, v in times.items()},
                    reference_s={k: v * noise[k] * speed**0.9 for k, v in times.items()},
                    range="outside" if trial.cell.workload.input_bytes > 200 * MIB else "edge",
                    disturbed=record.disturbed,
                )
            )

    def predictions(self):
        """What both models say of every cell that is not profiled."""
        made = []
        for cell, _ in self.cells.values():
            if profiling(cell):
                continue
            for model in MODELS:
                times = {k: v * (1 + BIAS[model].get(k, 0.1)) for k, v in true_times(cell).items()}
                job = true_times(cell)["job_s"] * (1 + JOB_BIAS[model])
                job *= self.random.uniform(0.95, 1.06)
                made.append(
                    Prediction(
                        model=model,
                        cell=cell.id,
                        body_s=job - 6.2,
                        published_s=job - 5.0,
                        frame_s=6.2,
                        job_s=job,
                        makespan_s=job - 5.6,
                        map_task_s=times["map_main_s"] + times["map_tail_s"],
                        reduce_task_s=sum(times[p] for p in PHASES[2:]),
                        map_waves=waves(cell)[0],
                        reduce_waves=waves(cell)[1],
                        timeline=(
                            TaskSpan(task="map 0", kind="map", start_s=0.0, end_s=6.0),
                            TaskSpan(task="map 1", kind="map", start_s=1.0, end_s=7.0),
                            TaskSpan(task="reduce 0", kind="reduce", start_s=7.0, end_s=9.0),
                        ),
                        measurable={p: times[p] for p in PHASES},
                    )
                )
        return tuple(made)

    def score_book(self, predictions):
        """Scores, summaries and one comparison, computed in the plainest way."""
        rows = [
            s
            for p in predictions
            for speed in ("raw", "reference")
            for quantity in LEVELS
            if (s := self._score(p, quantity, speed)) is not None
        ]
        return ScoreBook(
            scores=tuple(rows),
            summaries=tuple(_summaries(rows, {c: s for c, (s, _) in self.cells.items()})),
            comparisons=tuple(_comparison(rows, speed) for speed in ("raw", "reference")),
            rankings=tuple(_ranking(rows, speed) for speed in ("raw", "reference")),
            decompositions=tuple(decompose(rows, predictions)),
        )

    def _score(self, p, quantity, speed):
        of_cell = [m for m in self.measurements if m.cell == p.cell]
        shown = MEASURED_AS.get(quantity, quantity)
        values = [(m.raw_s if speed == "raw" else m.reference_s)[shown] for m in of_cell]
        predicted = {
            "body_s": p.body_s,
            "published_s": p.published_s,
            "frame_s": p.frame_s,
            "job_s": p.job_s,
            "makespan_s": p.makespan_s,
            "map_task_s": p.map_task_s,
            "reduce_task_s": p.reduce_task_s,
            **p.measurable,
        }[quantity]
        if not values:
            return None
        mean = fmean(values)
        error = predicted / mean - 1
        return Score(
            model=p.model,
            cell=p.cell,
            level=LEVELS[quantity],
            quantity=quantity,
            speed=speed,
            predicted_s=predicted,
            measured_s=mean,
            trials=len(values),
            floor=stdev(values) / mean if len(values) > 1 else None,
            signed_error=error,
            relative_error=abs(error),
            i_accu_percent=8.0 if p.model != "whatif" else None,
            range=of_cell[0].range,
        )


def _summaries(rows, cells):
    for model, quantity, speed in dict.fromkeys((s.model, s.quantity, s.speed) for s in rows):
        for workload in ("wordcount", "terasort", "*"):
            of_cell = [
                s
                for s in rows
                if (s.model, s.quantity, s.speed) == (model, quantity, speed)
                and workload in ("*", cells[s.cell].workload.name)
            ]
            if of_cell:
                yield _summary((model, workload, quantity, speed), of_cell)


def _summary(group, scores):
    model, workload, quantity, speed = group
    values = {name: metric.compute(scores) for name, metric in METRICS.items()}
    return Summary(
        model=model,
        workload=workload,
        level=LEVELS[quantity],
        quantity=quantity,
        speed=speed,
        cells=len(scores),
        metrics={name: value for name, value in values.items() if value is not None},
    )


def _comparison(rows, speed, better="whatif-mr2", worse="whatif"):
    job = [s for s in rows if s.quantity == "job_s" and s.speed == speed]
    mean = {m: fmean(s.relative_error for s in job if s.model == m) for m in (better, worse)}
    difference = mean[better] - mean[worse]
    return Comparison(
        better=better,
        worse=worse,
        quantity="job_s",
        speed=speed,
        cells=len(job) // 2,
        difference=difference,
        low=difference - 0.03,
        high=difference + 0.03,
        verdict="nearer",
        reason="chance gives as much in at most 0.3 % of cases",
        chance=0.003,
    )


def _ranking(rows, speed, models=("whatif-mr2", "whatif")):
    job = [s for s in rows if s.quantity == "job_s" and s.speed == speed]
    return Ranking(
        quantity="job_s",
        speed=speed,
        cells=len(job) // 2,
        models=models,
        errors=tuple(fmean(s.relative_error for s in job if s.model == m) for m in models),
        nearest=models[:1],
    )


def profile(workload="wordcount", coefficient=0.93):
    """A profile with exact, noisy and assumed values, a group, a fit and a warning."""
    group = ("partition_cpu_s_per_record", "serde_cpu_s_per_record")
    return Profile(
        workload=workload,
        statistics={
            "input_record_bytes": Statistic(
                value=99.98, count=12, spread=0.04, source="counters of 12 trials"
            ),
            "map_records_selectivity": Statistic(
                value=13.224, count=12, spread=0.021, source="counters of 12 trials"
            ),
            "map_output_compression_ratio": Statistic(
                value=1.0, count=12, spread=0.0, source="map output is not compressed"
            ),
        },
        costs={
            "hdfs_read_s_per_byte": Statistic(
                value=1.93e-9, count=96, spread=3.1e-10, source="fit of map_main_s"
            ),
            "map_cpu_s_per_record": Statistic(
                value=7.41e-6, count=96, spread=1.8e-7, source="fit of map_main_s"
            ),
            "partition_cpu_s_per_record": Statistic(
                value=2.2e-7,
                count=96,
                spread=4e-8,
                source="fit of map_main_s",
                assumed=True,
                group=("serde_cpu_s_per_record",),
            ),
            "serde_cpu_s_per_record": Statistic(
                value=2.2e-7,
                count=96,
                spread=4e-8,
                source="fit of map_main_s",
                assumed=True,
                group=("partition_cpu_s_per_record",),
            ),
        },
        frame={
            "task_gap_s": Statistic(value=1.94, count=96, spread=0.22, source="history"),
            "job_start_s": Statistic(value=4.21, count=12, spread=0.31, source="history"),
            "job_end_s": Statistic(value=1.41, count=12, spread=0.11, source="history"),
        },
        groups=(CostGroup(names=group, sum_s=0.41, spread_s=0.07, note="per record, both once"),),
        fit=(
            FitDiagnostic(phase="map_main_s", count=96, r2=0.962, median_residual=0.031),
            FitDiagnostic(phase="reduce_rest_s", count=36, r2=0.91, median_residual=0.058),
        ),
        ranges={"input_bytes": (32 * MIB, 64 * MIB), "mapreduce.job.reduces": (1, 2)},
        speed=SpeedCorrection(
            reference_rate=2.3e3,
            coefficient=coefficient,
            gain=0.58 if coefficient else 0.0,
            count=12,
        ),
        trials=("a", "b"),
        warnings=("compression was off in all profiling trials",),
    )


def job_trace(maps=8, reduces=3, host="worker", error="Java heap space"):
    """A job of two map waves and one failed attempt on three nodes."""
    random, attempts, free = Random(3), [], [START + 3.1] * 3
    for n in range(maps):
        node = min(range(3), key=lambda i: free[i])
        launched, length = free[node] + 0.05, random.uniform(4.6, 6.2)
        if n == 4:
            attempts.append(
                _attempt(n, 0, node, start=launched, finish=launched + 2.1, host=host, error=error)
            )
            launched += 2.6
        attempts.append(_attempt(n, 1, node, start=launched, finish=launched + length, host=host))
        free[node] = launched + length
    ready = max(free)
    attempts += [
        TaskAttempt(
            attempt_id=f"attempt_1767225600000_0007_r_{n:06d}_0",
            task_id=f"task_r_{n:06d}",
            kind="reduce",
            state="succeeded",
            start_s=ready - 2,
            finish_s=ready + 4 + n / 2,
            host=f"{host}{n + 1}",
            shuffle_finish_s=ready + 1,
            sort_finish_s=ready + 1.4,
        )
        for n in range(reduces)
    ]
    return JobTrace(
        job_id="job_1767225600000_0007",
        name="word count",
        user="root",
        state="SUCCEEDED",
        submit_s=START,
        launch_s=START + 1.8,
        finish_s=max(a.finish_s for a in attempts) + 0.9,
        num_maps=maps,
        num_reduces=reduces,
        attempts=tuple(attempts),
    )


def _attempt(task, number, node, *, start, finish, host, error=""):
    return TaskAttempt(
        attempt_id=f"attempt_1767225600000_0007_m_{task:06d}_{number}",
        task_id=f"task_m_{task:06d}",
        kind="map",
        state="failed" if error else "succeeded",
        start_s=start,
        finish_s=finish,
        host=f"{host}{node + 1}",
        map_finish_s=None if error else start + 0.9 * (finish - start),
        error=error,
    )


def recording_of(a):
    """What the tracer records of an attempt: of a map three spills, of a reduce three copies."""
    spans = []

    def add(name, start_share, end, parent=-1, thread="main", **more):
        start, length = a.start_s + start_share * a.duration_s, (end - start_share) * a.duration_s
        spans.append(Span(name, thread, start, length, length / 2, parent, **more))
        return len(spans) - 1

    main = add("main", 0.2, 0.97)
    if a.kind == "map":
        loop = add("map_loop", 0.4, 0.8, main)
        for start_share in (0.5, 0.6):
            spill = add("spill", start_share, start_share + 0.08, thread="SpillThread", amount=400,
                        details=(400, 4000, 0, 50, 500))  # fmt: skip
            add("sort", start_share, start_share + 0.04, spill, "SpillThread")
            add("blocked", start_share + 0.05, start_share + 0.08, loop)
        flush = add("flush", 0.8, 0.9, main)
        spill = add("spill", 0.82, 0.9, flush, amount=200, details=(200, 2000, 2, 0, 0))
        add("sort", 0.82, 0.85, spill)
        merge = add("merge", 0.9, 0.95, main)
        add("combine", 0.91, 0.94, merge)
        sums = (0.05, 0.2, 0.05, 0.01, 0.06)
    else:
        add("shuffle", 0.3, 0.6, main)
        for n in range(3):
            thread, start_share = f"fetcher#{n + 1}", 0.35 + 0.05 * n
            visit = add("visit", start_share, start_share + 0.1, thread=thread, text="worker1")
            add("segment", start_share + 0.02, start_share + 0.1, visit, thread, text=f"map {n}",
                details=(500, 500, 0))  # fmt: skip
        add("memory_merge", 0.45, 0.5, thread="InMemoryMerger - Thread to merge")
        reducer = add("run_reducer", 0.6, 0.9, main)
        add("reduce_loop", 0.62, 0.88, reducer)
        add("commit", 0.92, 0.94, main)
        sums = (0.06, 0.15, 0.0, 0.0, 0.05)
    spans.sort(key=lambda s: s.start_s)
    read, function, spilling, spilling_read, output = (s * a.duration_s for s in sums)
    blocked = 0.06 * a.duration_s if a.kind == "map" else 0.0
    loop = RecordLoop(1000, read, function, spilling, spilling_read, 100, 5000, output, 70,
                      blocked, 2, (0, 1000))  # fmt: skip
    born = a.start_s + 0.05 * a.duration_s
    return TaskSpans(a.attempt_id, "closed", spans[0].start_s, born, 0.004, 0, 5, loop,
                     tuple(_parents(spans)))  # fmt: skip


def _parents(spans):
    """The same with parents by place: the innermost span of the thread around each."""
    for place, span in enumerate(spans):
        around = [
            n
            for n, other in enumerate(spans[:place])
            if other.thread == span.thread and other.finish_s >= span.finish_s - 1e-9
        ]
        yield span._replace(parent=around[-1] if around else -1)


def times_of(job, *, recorded=True, from_logs=True):
    """Task times of a job; by the logs, maps are in their loop for twice the time."""
    attempts = [a for a in job.attempts if a.state == "succeeded"]
    spans = [recording_of(a) for a in attempts]
    logs = [_log_times(a, s) for a, s in zip(attempts, spans, strict=True)]
    return job_task_times(job, logs if from_logs else [], spans if recorded else [])


def _log_times(a, recording):
    if a.kind == "reduce":
        seen = recorded_reduce_times(recording, a)
        return dataclasses.replace(seen, source="logs", read_s=None, function_s=None, write_s=None)
    seen = recorded_map_times(recording, a)
    spills = tuple(
        dataclasses.replace(s, sort_s=None, combine_s=None, write_s=None) for s in seen.spills
    )
    return dataclasses.replace(
        seen, source="logs", alone_s=2 * seen.alone_s, read_s=None, collect_s=None, spills=spills
    )


MANIFEST = {
    "schema_version": 1,
    "harness": "0.1.0",
    "git_commit": "c6307650f3a0",
    "command_line": ["harness", "all", "experiments/quick.yaml"],
    "started_s": START,
    "finished_s": START + 2100,
    "seeds": {"order": 7, "wordcount": 1, "terasort": 1},
    "versions": {"hadoop": "3.5.0", "java": "17.0.15", "python": "3.11.2"},
    "hardware": {"cpu": "Intel Xeon (Skylake)", "cores": 4, "memory_bytes": 24 * 2**30},
}


def build(repeat=3, **changes):
    """All that a report shows of a whole run; *changes* replace fields of `ReportData`."""
    run = Run(repeat)
    run.measure()
    predictions = run.predictions()
    chosen = [
        next(
            r
            for r in run.trials
            if r.trial.cell.workload.name == w and not r.trial.profiling and r.state == "done"
        )
        for w in ("wordcount", "terasort")
    ]
    fields = {
        "experiment": experiment(),
        "cells": run.cells,
        "trials": run.trials,
        "measurements": run.measurements,
        "predictions": predictions,
        "metrics": METRICS,
        "score_book": run.score_book(predictions),
        "profiles": {"wordcount": profile(), "terasort": profile("terasort", 0.0)},
        "manifest": MANIFEST,
        "timelines": [(chosen[0], job_trace()), (chosen[1], job_trace(maps=5, reduces=1))],
        "rates": run.rates,
        "task_times": {chosen[0].trial.id: times_of(job_trace())},
        "evidence": {r.trial.id: f"trials/{r.trial.id}/raw" for r in run.trials},
    }
    return ReportData(**{**fields, **changes})


@pytest.fixture(scope="session")
def whole():
    """The whole made-up run."""
    return build()


@pytest.fixture(scope="session")
def document(whole):
    """The report of the whole run as data: nothing is drawn."""
    return make_document(whole)


@pytest.fixture(scope="session")
def page_text(document):
    """The HTML report of the whole run, drawn once for all tests."""
    return render_html(document)


def drawings_in(page):
    """Every drawing of an HTML report as SVG, by its figure's name."""
    drawings = re.findall(r'<svg class="plot".*?</svg>', page, re.DOTALL)
    return {re.search(r'aria-labelledby="(\w+)-title"', svg)[1]: svg for svg in drawings}


@pytest.fixture(scope="session")
def drawn(page_text):
    """Every figure of the whole run as SVG, by its name."""
    return drawings_in(page_text)


@pytest.fixture
def make():
    """The builder of made-up runs."""
    return build


@pytest.fixture
def known():
    """The builder of the task times of a job."""
    return times_of


@pytest.fixture
def recorded():
    """The builder of an attempt's recording."""
    return recording_of


@pytest.fixture
def traced():
    """The builder of made-up jobs."""
    return job_trace
