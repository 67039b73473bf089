"""
Runs the trials of a plan on real clusters, one cluster after the other.

Whatever ends the process loses the trial in flight and nothing else: the next call goes on.  Ctrl-C
is deferred while a trial runs: what there is of it is collected, or, where its job is done already,
it is finished and counts.  A second Ctrl-C is not deferred.
"""

from __future__ import annotations

import time

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal, NamedTuple

from harness.errors import ClusterError, JobError
from harness.evaluate.resolved import resolve_cells
from harness.hadoop.site import block_bytes
from harness.hadoop_home.home import HadoopHome
from harness.monitor.machine import Stopwatch, find_disturbance
from harness.monitor.rates import record_gpus, record_micro, record_rates
from harness.monitor.watch import Monitor, monitor_cluster
from harness.providers import PROVIDERS
from harness.providers.base import Cluster
from harness.providers.state import DeferredInterrupt
from harness.records.trace import devices
from harness.records.trial import ClusterSpec, Trial, TrialRecord, Versions, digest
from harness.run import Console
from harness.run.jobs import Inputs, JobRunner, StoppedError
from harness.run.manifest import record_limits, record_systems, record_versions
from harness.run.traces import write_trace
from harness.run.trial import TrialRunner
from harness.store import Run, os_error_as_machine_error
from harness.workloads.resolved import ResolvedCell

OnError = Literal["stop", "skip"]
OnDisturbed = Literal["repeat", "keep"]
_CLUSTERS_LOST = 3
_STARTS = 2  # a busy machine may need a second try
_STOPPING = (
    "interrupted: ending the trial in flight and saving what there is of it;"
    " Ctrl-C again stops at once"
)


class Attempt(NamedTuple):
    """One attempt at a trial; where it does not count, the trial is still to be run, maybe last."""

    record: TrialRecord
    counts: bool
    is_cluster_lost: bool
    is_last: bool = False


@dataclass
class Execution:
    """
    The trials still to run, and all that running them needs.

    *retries* is how often a failed trial is run again before its failure counts.  With
    *on_disturbed* ``repeat``, a trial that others disturbed is run a second time, after all others
    of its cluster and use; the second one counts, disturbed or not.  *needs_rates*: models need the
    rates of a node's disk and memory.  *seal* gives the SHA-256 of the sealed predictions, and
    makes them before the first trial that is scored.  *more_here* gives trials to be added on the
    cluster that has run all of its own, whose disks and networks are measured, too.  *estimates_s*
    are expected seconds of trials, *durations* those of the trials that count, both by their ids.
    *wall* is the wall clock, in seconds since the epoch.
    """

    run: Run
    home: HadoopHome
    versions: Versions
    limit_s: float
    warmup: int
    console: Console
    on_error: OnError = "skip"
    on_disturbed: OnDisturbed = "keep"
    retries: int = 0
    needs_rates: bool = False
    seal: Callable[[], str] = lambda: ""
    more_here: Callable[[], Sequence[Trial]] | None = None
    estimates_s: Mapping[str, float] = field(default_factory=dict)
    durations: dict[str, float] = field(default_factory=dict)
    wall: Callable[[], float] = time.time
    failures: Counter[str] = field(default_factory=Counter)
    repeated: set[str] = field(default_factory=set)
    versions_on_nodes: Versions = field(init=False)
    kernel: str = field(init=False, default="")
    interrupt: DeferredInterrupt = field(init=False)
    cells: dict[str, ResolvedCell] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.versions_on_nodes = self.versions  # until nodes report theirs
        self.interrupt = DeferredInterrupt(patience=1, notify=lambda: self.console.say(_STOPPING))

    def execute(self, trials: Sequence[Trial], done: set[str]) -> None:
        """Run those of *trials* that are not *done*."""
        self.cells |= resolve_cells(trial.cell for trial in trials)
        pending = [trial for trial in trials if trial.id not in done]
        total = len(trials)
        waiting = {trial.id for trial in pending}
        self.console.step(total - len(waiting), total, self._left_s(waiting), "")
        with os_error_as_machine_error(self.run.path, is_long=True):
            for _, group in groupby(pending, key=lambda trial: trial.cell.cluster.id):
                # Closed at once, whatever ends the loop: the cluster must not wait for a collector.
                with closing(self._run_on_cluster(list(group))) as records:
                    for record in records:
                        waiting.discard(record.trial.id)
                        summary = f"{record.trial.cell.workload.name} {record.state}"
                        if record.reason:
                            summary += f": {record.reason}"
                        left_s = self._left_s(waiting)
                        self.console.step(total - len(waiting), total, left_s, summary)
                        if record.state != "done" and self.on_error == "stop":
                            raise JobError(
                                f"trial {record.trial.id} {record.state}: {record.reason}",
                                where=str(self.run.trial_dir(record.trial.id)),
                                fix="read its logs, or go on past failures with --on-error skip",
                            )

    def _left_s(self, waiting: Iterable[str]) -> float | None:
        """Seconds that the trials *waiting* take, at the pace of those that are done."""
        durations = self.durations
        planned = self.estimates_s
        if not durations:
            return sum(planned.get(trial_id, 0.0) for trial_id in waiting) or None
        mean_s = sum(durations.values()) / len(durations)
        pace = sum(durations.values()) / sum(planned.get(done, mean_s) for done in durations)
        return pace * sum(planned.get(trial_id, mean_s) for trial_id in waiting)

    def _run_on_cluster(self, trials: list[Trial]) -> Generator[TrialRecord]:
        """Run *trials*, which share one cluster specification, on as many clusters as it takes."""
        clusters_lost = 0  # in a row, without a trial done in between
        logs = self.run.scratch / "inputs"
        logs.mkdir(exist_ok=True)

        def check_interrupt() -> None:
            if self.interrupt.is_pending:
                raise StoppedError("interrupted by the user")

        while trials:
            with (
                self._start_cluster(trials[0].cell.cluster) as cluster,
                monitor_cluster(
                    cluster, self.run.scratch, self.console.say, self._add_limitation
                ) as monitor,
            ):
                if monitor.machines:
                    self.run.update_manifest(machines=monitor.machines)
                note = self.console.note
                jobs = JobRunner(cluster, self.limit_s, on_tick=check_interrupt, note=note)
                inputs = Inputs(jobs, logs, self.console.say)
                block_size = block_bytes(cluster.spec)
                runner = TrialRunner(
                    cluster, inputs, block_size, self.limit_s, check_interrupt, note=note
                )
                is_lost = any(
                    self._attempt(runner, trials[0], monitor, is_warmup=True).is_cluster_lost
                    for _ in range(self.warmup)
                )
                if self.needs_rates:
                    record_rates(self.run, cluster, self.console.say)
                if self.more_here:
                    record_micro(self.run, cluster, self.console.say)
                while trials and not is_lost:
                    attempt = self._attempt(runner, trials[0], monitor)
                    is_lost = attempt.is_cluster_lost
                    if attempt.record.state == "done":
                        clusters_lost = 0
                    if attempt.is_last:  # of its use: profiling ends before scoring begins
                        again = trials.pop(0)
                        same = [trial.profiling == again.profiling for trial in trials]
                        places = [place for place, is_same in enumerate(same, start=1) if is_same]
                        trials.insert(max(places, default=0), again)
                    if attempt.counts:
                        trials.pop(0)
                        yield attempt.record
                        if self.more_here and not trials and not is_lost:
                            trials += self.more_here()
                            self.cells |= resolve_cells(trial.cell for trial in trials)
                clusters_lost += is_lost
            if clusters_lost >= _CLUSTERS_LOST and trials:
                what = f"{clusters_lost} clusters were lost, and no trial was done in between"
                fix = "read the reasons in the failed trials, then start the command again"
                raise ClusterError(what, where=str(self.run.path), fix=fix)

    @contextmanager
    def _start_cluster(self, cluster_spec: ClusterSpec) -> Iterator[Cluster]:
        """Start a cluster and record what it is; try twice, unless failures stop the run."""
        workers = cluster_spec.workers
        provider = cluster_spec.provider
        self.console.say(f"cluster: starting {workers} workers ({provider})")
        started_s = time.monotonic()
        with ExitStack() as stack:
            start = PROVIDERS[cluster_spec.provider]
            name = cluster_name(self.run)
            for starts_left in reversed(range(_STARTS)):
                try:
                    cluster = stack.enter_context(start(name, cluster_spec, self.home))
                    break
                except ClusterError as error:
                    if not starts_left or self.on_error == "stop":
                        raise
                    reason = error.what.partition("\n")[0]
                    self.console.say(f"cluster: {reason}; starting it again")
            self.console.say(f"cluster: healthy after {time.monotonic() - started_s:.1f} s")
            ran_on = cluster.ran_on()
            recorded = record_versions(self.run, self.versions, ran_on)
            self.versions_on_nodes, self.kernel = recorded
            record_systems(self.run, cluster, ran_on)
            for limitation in cluster.limitations:
                self._add_limitation(limitation)
            warnings = record_limits(self.run, cluster_spec, cluster.limits, self.wall())
            for warning in [*warnings, *record_gpus(self.run, cluster_spec, cluster)]:
                self.console.say(f"warning: {warning}")
            yield cluster

    def _add_limitation(self, limitation: str) -> None:
        """Report, and write down, what measurements on this cluster cannot show."""
        known_limitations = self.run.read_manifest().limitations
        if limitation not in known_limitations:
            self.console.say(f"warning: {limitation}")
            self.run.update_manifest(limitations=(*known_limitations, limitation))

    def _attempt(
        self, runner: TrialRunner, trial: Trial, monitor: Monitor, *, is_warmup: bool = False
    ) -> Attempt:
        """Run *trial* once, and put what it left where it belongs."""
        self.run.require_space()
        runner.seal = "" if trial.profiling else self.seal()
        with self.interrupt:
            folder = self.run.start_trial(trial)
            stopwatch = Stopwatch(self.wall)
            with monitor.sample(folder.raw):
                outcome = runner.run(trial, self.cells[trial.cell.id], folder.raw)
            loads = monitor.loads(folder.raw)
            if outcome.state == "done" and (shift := stopwatch.find_shift()):
                outcome.state = "failed"
                outcome.reason = shift
            if outcome.state != "done":
                self.run.require_space()  # a full disk fails everything: no trial is to blame
            if outcome.is_cluster_lost:
                for daemon, text in runner.cluster.daemon_logs(200).items():
                    (folder.raw / f"daemon-{daemon.replace(' ', '-')}.log").write_text(text)
            attempts = [attempt for trace in outcome.traces for attempt in trace.attempts]
            elapsed_s = stopwatch.elapsed_s
            record = TrialRecord(
                trial=trial,
                state=outcome.state,
                started_s=stopwatch.at_s,
                finished_s=stopwatch.at_s + elapsed_s,
                job_ids=tuple(outcome.job_ids),
                reason=outcome.reason,
                disturbed=find_disturbance(loads),
                loads=loads,
                device=", ".join(devices(attempt.counters for attempt in attempts)),
                versions=self.versions_on_nodes,
                kernel=self.kernel,
                input_bytes=outcome.input_bytes,
                num_splits=outcome.num_splits,
                harness_s=outcome.seconds,
                disk_bytes=outcome.disk_bytes,
            )
            counts = not is_warmup
            is_repeated = counts and record.state == "done" and bool(record.disturbed)
            is_repeated &= self.on_disturbed == "repeat" and trial.id not in self.repeated
            if counts and record.state != "done":
                has_retry = self.failures[trial.id] < self.retries
                counts = not outcome.is_interrupted and not has_retry
                self.failures[trial.id] += 1
            if is_repeated:
                self.console.say(f"trial {trial.id} is repeated at the end: {record.disturbed}")
                self.repeated.add(trial.id)
                folder.discard("disturbed", record)
                counts = False
            elif counts:
                folder.commit(record)
                for complaint in write_trace(self.run, record, outcome.traces):
                    self.console.say(f"warning: trial {trial.id}: {complaint}")
                self.durations[trial.id] = elapsed_s
            else:
                folder.discard("warmup" if is_warmup else "retried", record)
        return Attempt(record, counts, outcome.is_cluster_lost, is_repeated)


def cluster_name(run: Run) -> str:
    """Name of the cluster of *run*: the same when it is continued, not that of a copied folder."""
    return f"run-{run.id}-{digest(str(run.path.resolve()))[:8]}"
