"""
Runs the trials of a plan on real clusters, one cluster after the other.

A trial counts when its folder appears in the run by one rename.  Whatever ends the process loses
the trial in flight and nothing else: the next call takes down what was left, and goes on.
"""

from __future__ import annotations

import shutil
import time

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Literal

from harness.clusters import PROVIDERS
from harness.clusters.home import HadoopHome
from harness.errors import ClusterError, JobError
from harness.hadoop.site import block_bytes
from harness.parsing.machine import read_machine
from harness.records.trial import ClusterSpec, Trial, TrialRecord, Versions
from harness.running.inputs import Inputs
from harness.running.jobs import JobRunner
from harness.running.machine import MachineSampler, disturbed
from harness.running.probe import SpeedProbe
from harness.running.talk import Talk
from harness.running.trial import Outcome, TrialCluster, TrialRunner
from harness.store import Run

OnError = Literal["stop", "skip"]
PROBE_LOG = "speed.txt"
MACHINE_LOG = "machine.jsonl"
_CLUSTERS_LOST = 3


@dataclass
class Execution:
    """
    The trials still to run, and all that running them needs.

    *retries* is how often a failed trial is run again before its failure counts.
    """

    run: Run
    home: HadoopHome
    versions: Versions
    limit_s: float
    warmup: int
    talk: Talk
    on_error: OnError = "skip"
    retries: int = 0
    durations: list[float] = field(default_factory=list)

    def execute(self, trials: Sequence[Trial], done: set[str]) -> int:
        """Run those of *trials* that are not *done*; return how many of them failed."""
        failed, total = 0, len(trials)
        waiting = [t for t in trials if t.id not in done]
        self._report(total - len(waiting), total, len(waiting), "")
        with self._probe() as probe_log:
            for _, group in groupby(waiting, key=lambda t: t.cell.cluster.id):
                # Closed at once, whatever ends the loop: the cluster must not wait for a collector.
                with closing(self._on_cluster(list(group), probe_log)) as records:
                    for record in records:
                        failed += record.state != "done"
                        waiting.pop(0)
                        self._tell(record, total - len(waiting), total, len(waiting))
                        self._stop_if_asked(record)
        return failed

    def _stop_if_asked(self, record: TrialRecord) -> None:
        if record.state != "done" and self.on_error == "stop":
            raise JobError(
                f"trial {record.trial.id} {record.state}: {record.reason}",
                where=str(self.run.trial_dir(record.trial.id)),
                fix="read its logs, or go on past failures with --on-error skip",
            )

    @contextmanager
    def _probe(self) -> Iterator[Path]:
        log = self.run.scratch / PROBE_LOG
        with SpeedProbe(log=log):
            yield log

    def _on_cluster(self, trials: list[Trial], probe_log: Path) -> Generator[TrialRecord]:
        """Run *trials*, which share one cluster specification, on as many clusters as it takes."""
        spec, lost = trials[0].cell.cluster, 0
        while trials:
            with self._cluster(spec) as cluster:
                runner = self._runner(cluster, spec)
                is_lost = self._warm_up(runner, trials[0], probe_log)
                while trials and not is_lost:
                    record, is_lost = self._trial(runner, trials.pop(0), probe_log)
                    lost = 0 if record.state == "done" else lost
                    yield record
                lost += is_lost
            if lost >= _CLUSTERS_LOST and trials:
                raise ClusterError(
                    f"{lost} clusters were lost, and no trial was done in between",
                    where=str(self.run.path),
                    fix="read the reasons in the failed trials, then start the command again",
                )

    def _warm_up(self, runner: TrialRunner, trial: Trial, probe_log: Path) -> bool:
        """Run *trial* without counting it; tell whether the cluster was lost by that."""
        return any(
            self._attempt(runner, trial, probe_log, warmup=True)[1] for _ in range(self.warmup)
        )

    @contextmanager
    def _cluster(self, spec: ClusterSpec) -> Iterator[TrialCluster]:
        self.talk.say(f"cluster: starting {spec.workers} workers ({spec.provider})")
        started = time.monotonic()
        with PROVIDERS[spec.provider](f"run-{self.run.id}", spec, self.home) as cluster:
            self.talk.say(f"cluster: healthy after {time.monotonic() - started:.1f} s")
            yield cluster

    def _runner(self, cluster: TrialCluster, spec: ClusterSpec) -> TrialRunner:
        logs = self.run.scratch / "inputs"
        logs.mkdir(exist_ok=True)
        jobs, idle = JobRunner(cluster, self.limit_s), partial(cluster.await_idle, timeout_s=60.0)
        inputs = Inputs(cluster.hdfs, jobs, logs, self.talk.say, idle)
        return TrialRunner(cluster, inputs, block_bytes(spec), self.limit_s)

    def _trial(
        self, runner: TrialRunner, trial: Trial, probe_log: Path
    ) -> tuple[TrialRecord, bool]:
        """Run *trial*, again where it fails and retries are left; the last attempt counts."""
        for left in range(self.retries, -1, -1):
            record, lost = self._attempt(runner, trial, probe_log, retried=left > 0)
            if record.state == "done" or lost:
                break
        return record, lost

    def _attempt(
        self,
        runner: TrialRunner,
        trial: Trial,
        probe_log: Path,
        *,
        warmup: bool = False,
        retried: bool = False,
    ) -> tuple[TrialRecord, bool]:
        folder = self.run.begin_trial(trial)
        samples, started, at = folder.raw / MACHINE_LOG, time.time(), _size(probe_log)
        begun = time.monotonic()
        with MachineSampler(samples):
            outcome = runner.run(trial, folder.raw)
        finished = time.time()
        slice_file(probe_log, at, folder.raw / PROBE_LOG)
        with samples.open("rb") as lines:
            mark = disturbed(list(read_machine(lines, MACHINE_LOG)))
        if outcome.cluster_lost:
            _keep_daemon_logs(runner.cluster, folder.raw)
        record = self._record(trial, outcome, (started, finished), mark)
        if warmup:
            folder.discard("warmup", record)
        elif retried and outcome.state != "done" and not outcome.cluster_lost:
            folder.discard("retried", record)
        else:
            folder.commit(record)
            self.run.write_trace(trial.id, outcome.traces)
            self.durations.append(time.monotonic() - begun)
        return record, outcome.cluster_lost

    def _record(
        self, trial: Trial, outcome: Outcome, when: tuple[float, float], mark: str
    ) -> TrialRecord:
        return TrialRecord(
            trial=trial,
            state=outcome.state,
            started_s=when[0],
            finished_s=when[1],
            job_ids=tuple(outcome.job_ids),
            reason=outcome.reason,
            disturbed=mark,
            versions=self.versions,
            input_bytes=outcome.input_bytes,
            num_splits=outcome.num_splits,
            harness_s=outcome.seconds,
        )

    def _tell(self, record: TrialRecord, done: int, total: int, waiting: int) -> None:
        text = f"{record.trial.cell.workload.name} {record.state}"
        self._report(done, total, waiting, f"{text}: {record.reason}" if record.reason else text)

    def _report(self, done: int, total: int, waiting: int, text: str) -> None:
        mean = sum(self.durations) / len(self.durations) if self.durations else None
        self.talk.step(done, total, None if mean is None else mean * waiting, text)


def slice_file(source: Path, start: int, target: Path) -> None:
    """Copy what was written to *source* since it had *start* bytes, from the next whole line on."""
    with source.open("rb") as stream, target.open("wb") as out:
        stream.seek(max(0, start - 1))
        if start:
            stream.readline()
        shutil.copyfileobj(stream, out)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _keep_daemon_logs(cluster: TrialCluster, raw: Path) -> None:
    for name, text in cluster.daemon_logs(200).items():
        (raw / f"daemon-{name.replace(' ', '-')}.log").write_text(text)
