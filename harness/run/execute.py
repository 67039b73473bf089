"""
Runs the trials of a plan on real clusters, one cluster after the other.

A trial counts when its folder appears in the run by one rename.  Whatever ends the process loses
the trial in flight and nothing else: the next call takes down what was left, and goes on.

Ctrl-C is asked to wait while a trial runs: its job is ended, what there is of it is collected, or,
where its job is done already, it is finished and counts.  A second Ctrl-C does not wait.
"""

from __future__ import annotations

import time

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Literal

from harness.errors import ClusterError, HarnessError, JobError
from harness.hadoop.site import block_bytes
from harness.hadoop_home.home import HadoopHome
from harness.monitor.clock import Watch
from harness.monitor.gpus import keep_gpus
from harness.monitor.probe import probe_jar
from harness.monitor.rates import measure_rates
from harness.monitor.watching import Watching, watching
from harness.providers import PROVIDERS
from harness.providers.interrupts import Postponed
from harness.records.trace import devices
from harness.records.trial import ClusterSpec, Trial, TrialRecord, Versions, digest
from harness.run.hardware import DISK_PART, keep_limits
from harness.run.inputs import Inputs, generator_properties
from harness.run.jobs import JobRunner, StoppedError
from harness.run.recordings import write_trace
from harness.run.talk import Talk
from harness.run.trial import Outcome, TrialCluster, TrialRunner
from harness.run.versions import keep_versions
from harness.store import Run, TrialFolder, machine

OnError = Literal["stop", "skip"]
_CLUSTERS_LOST = 3
_STARTS = 2  # a busy machine may need a second try
_STOPPING = (
    "interrupted: ending the trial in flight and saving what there is of it;"
    " Ctrl-C again stops at once"
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a trial; where it does not *count*, the trial is still to be run."""

    record: TrialRecord
    counts: bool
    cluster_lost: bool


@dataclass
class Execution:
    """
    The trials still to run, and all that running them needs.

    *retries* is how often a failed trial is run again before its failure counts.  *rated* asks for
    the rates of a node's disk and memory.  *wall* is the wall clock, in seconds since the epoch.
    """

    run: Run
    home: HadoopHome
    versions: Versions
    limit_s: float
    warmup: int
    talk: Talk
    on_error: OnError = "skip"
    retries: int = 0
    rated: bool = False
    durations: list[float] = field(default_factory=list)
    wall: Callable[[], float] = time.time
    failures: Counter[str] = field(default_factory=Counter)
    ran_on: Versions = field(init=False)
    kernel: str = field(init=False, default="")
    stop: Postponed = field(init=False)

    def __post_init__(self) -> None:
        self.ran_on = self.versions  # until nodes tell
        self.stop = Postponed(patience=1, tell=lambda: self.talk.say(_STOPPING))

    def execute(self, trials: Sequence[Trial], done: set[str]) -> int:
        """Run those of *trials* that are not *done*; return how many of them failed."""
        failed, total = 0, len(trials)
        waiting = [t for t in trials if t.id not in done]
        self._report(total - len(waiting), total, len(waiting), "")
        with machine(self.run.path):
            # Of a copy: what is done leaves the list meanwhile.
            for _, group in groupby(tuple(waiting), key=lambda t: t.cell.cluster.id):
                # Closed at once, whatever ends the loop: the cluster must not wait for a collector.
                with closing(self._on_cluster(list(group))) as records:
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

    def _on_cluster(self, trials: list[Trial]) -> Generator[TrialRecord]:
        """Run *trials*, which share one cluster specification, on as many clusters as it takes."""
        spec, lost = trials[0].cell.cluster, 0
        while trials:
            with self._cluster(spec) as cluster, self._watching(cluster) as watched:
                if watched.told:
                    self.run.manifest({"machines": watched.told})
                runner = self._runner(cluster, spec)
                is_lost = self._warm_up(runner, trials[0], watched)
                self._rate_node(cluster)
                while trials and not is_lost:
                    attempt = self._attempt(runner, trials[0], watched)
                    is_lost = attempt.cluster_lost
                    lost = 0 if attempt.record.state == "done" else lost
                    if attempt.counts:
                        trials.pop(0)
                        yield attempt.record
                lost += is_lost
            if lost >= _CLUSTERS_LOST and trials:
                raise ClusterError(
                    f"{lost} clusters were lost, and no trial was done in between",
                    where=str(self.run.path),
                    fix="read the reasons in the failed trials, then start the command again",
                )

    def _warm_up(self, runner: TrialRunner, trial: Trial, watched: Watching) -> bool:
        """Run *trial* without counting it; tell whether the cluster was lost by that."""
        return any(
            self._attempt(runner, trial, watched, warmup=True).cluster_lost
            for _ in range(self.warmup)
        )

    def _rate_node(self, cluster: TrialCluster) -> None:
        """Measure a worker's disk and memory, once in a run; without them models say what lacks."""
        if not self.rated or "rates" in self.run.manifest():
            return
        worker = next(iter(cluster.hosts[1:]), None)
        if worker is None:
            self.talk.say("warning: rates are not measured: the cluster's nodes have no door")
            return
        try:
            more = {"part": DISK_PART} if worker.name in cluster.disk_bytes() else {}
            jar = cluster.host_path(worker, probe_jar())
            found = measure_rates(worker, cluster.java_on(worker), jar, **more)
        except HarnessError as error:
            self.talk.say(f"warning: {error.what}")
        else:
            self.run.manifest({"rates": {worker.name: found}})

    @contextmanager
    def _cluster(self, spec: ClusterSpec) -> Iterator[TrialCluster]:
        self.talk.say(f"cluster: starting {spec.workers} workers ({spec.provider})")
        started = time.monotonic()
        with ExitStack() as stack:
            cluster = self._up(spec, stack)
            self.talk.say(f"cluster: healthy after {time.monotonic() - started:.1f} s")
            self.ran_on, self.kernel = keep_versions(self.run, self.versions, cluster.ran_on())
            for loss in cluster.losses:
                self._tell_loss(loss)
            for warning in keep_limits(self.run, spec, cluster.limits, self.wall()):
                self.talk.say(f"warning: {warning}")
            for warning in keep_gpus(self.run, spec, cluster):
                self.talk.say(f"warning: {warning}")
            yield cluster

    def _watching(self, cluster: TrialCluster) -> AbstractContextManager[Watching]:
        return watching(cluster, self.run.scratch, self.talk.say, self._tell_loss)

    def _tell_loss(self, loss: str) -> None:
        """Say, and write down, what measurements on this cluster cannot show."""
        known = self.run.manifest().get("limitations", [])
        if loss not in known:
            self.talk.say(f"warning: {loss}")
            self.run.manifest({"limitations": [*known, loss]})

    def _up(self, spec: ClusterSpec, stack: ExitStack) -> TrialCluster:
        """Start a cluster; one that does not come up is tried again, but where failures stop."""
        for left in range(_STARTS, 0, -1):
            cluster = PROVIDERS[spec.provider]
            try:
                return stack.enter_context(cluster(cluster_name(self.run), spec, self.home))
            except ClusterError as error:
                if left == 1 or self.on_error == "stop":
                    raise
                self.talk.say(f"cluster: {error.what.partition(chr(10))[0]}; starting it again")
        raise AssertionError("the last start returns or raises")

    def _runner(self, cluster: TrialCluster, spec: ClusterSpec) -> TrialRunner:
        logs = self.run.scratch / "inputs"
        logs.mkdir(exist_ok=True)
        jobs = JobRunner(cluster, self.limit_s, on_tick=self._check_stop)
        idle = partial(cluster.await_idle, timeout_s=60.0)
        generating = generator_properties(cluster.site_properties())
        folder = f"{cluster.root}/input"
        inputs = Inputs(cluster.hdfs, jobs, logs, self.talk.say, idle, generating, folder=folder)
        return TrialRunner(cluster, inputs, block_bytes(spec), self.limit_s, self._check_stop)

    def _check_stop(self) -> None:
        if self.stop.asked:
            raise StoppedError("interrupted by the user")

    def _attempt(
        self, runner: TrialRunner, trial: Trial, watched: Watching, *, warmup: bool = False
    ) -> Attempt:
        """Run *trial* once, and put what it left where it belongs."""
        self.run.require_space()
        with self.stop:
            folder, watch = self.run.begin_trial(trial), Watch(self.wall)
            with watched.during(folder.raw):
                outcome = runner.run(trial, folder.raw)
            mark = watched.disturbed(folder.raw)
            if outcome.state == "done" and (complaint := watch.complaint()):
                outcome.state, outcome.reason = "failed", complaint
            if outcome.state != "done":
                self.run.require_space()  # a full disk fails everything: no trial is to blame
            if outcome.cluster_lost:
                _keep_daemon_logs(runner.cluster, folder.raw)
            record = self._record(trial, outcome, watch, mark)
            counts = self._keep(folder, record, outcome, warmup=warmup)
            if counts:
                self.durations.append(watch.elapsed_s)
        return Attempt(record, counts, outcome.cluster_lost)

    def _keep(
        self, folder: TrialFolder, record: TrialRecord, outcome: Outcome, *, warmup: bool
    ) -> bool:
        """Put the attempt among the trials, or where it does not count; tell whether it counts."""
        trial_id = record.trial.id
        if warmup:
            folder.discard("warmup", record)
            return False
        if record.state != "done":
            again = outcome.interrupted or self.failures[trial_id] < self.retries
            self.failures[trial_id] += 1
            if again:
                folder.discard("retried", record)
                return False
        folder.commit(record)
        for complaint in write_trace(self.run, record, outcome.traces):
            self.talk.say(f"warning: trial {trial_id}: {complaint}")
        return True

    def _record(self, trial: Trial, outcome: Outcome, watch: Watch, mark: str) -> TrialRecord:
        return TrialRecord(
            trial=trial,
            state=outcome.state,
            started_s=watch.at_s,
            finished_s=watch.at_s + watch.elapsed_s,
            job_ids=tuple(outcome.job_ids),
            reason=outcome.reason,
            disturbed=mark,
            device=", ".join(devices(a.counters for t in outcome.traces for a in t.attempts)),
            versions=self.ran_on,
            kernel=self.kernel,
            input_bytes=outcome.input_bytes,
            num_splits=outcome.num_splits,
            harness_s=outcome.seconds,
            disk_bytes=outcome.disk_bytes,
        )

    def _tell(self, record: TrialRecord, done: int, total: int, waiting: int) -> None:
        text = f"{record.trial.cell.workload.name} {record.state}"
        self._report(done, total, waiting, f"{text}: {record.reason}" if record.reason else text)

    def _report(self, done: int, total: int, waiting: int, text: str) -> None:
        mean = sum(self.durations) / len(self.durations) if self.durations else None
        self.talk.step(done, total, None if mean is None else mean * waiting, text)


def cluster_name(run: Run) -> str:
    """
    Name of the cluster of *run*: the same whenever it is continued, and no other run's.

    The folder is part of it: a copy of a run has the run's id.
    """
    return f"run-{run.id}-{digest(str(run.path.resolve()))[:8]}"


def _keep_daemon_logs(cluster: TrialCluster, raw: Path) -> None:
    for name, text in cluster.daemon_logs(200).items():
        (raw / f"daemon-{name.replace(' ', '-')}.log").write_text(text)
