"""
Runs the trials of a plan on real clusters, one cluster after the other.

Whatever ends the process loses the trial in flight and nothing else: the next call goes on.  Ctrl-C
is deferred while a trial runs: what there is of it is collected, or, where its job is done already,
it is finished and counts.  A second Ctrl-C is not deferred.
"""

from __future__ import annotations

import time

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal, NamedTuple

from harness.base.documents.wording import count
from harness.base.errors import ClusterError, JobError
from harness.base.hadoop.site import block_bytes
from harness.base.records.trace import devices
from harness.base.records.trial import (
    ClusterSpec,
    MachineLoad,
    Trial,
    TrialRecord,
    Versions,
    digest,
)
from harness.clusters import PROVIDERS
from harness.clusters.base import Cluster
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.monitor.machine import Stopwatch, find_disturbance
from harness.clusters.monitor.watch import Monitor, monitor_cluster
from harness.clusters.state import DeferredInterrupt
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.evaluate.resolved import resolve_cells
from harness.core.run import Console
from harness.core.run.estimate import Remaining
from harness.core.run.jobs import Inputs, JobRunner, StoppedError
from harness.core.run.manifest import record_limits, record_systems, record_versions
from harness.core.run.quiet import QuietWait
from harness.core.run.rates import record_gpus, record_micro, record_rates
from harness.core.run.trial import Outcome, TrialRunner
from harness.core.store import Run, os_error_as_machine_error
from harness.core.store.evidence import Discarded
from harness.core.store.traces import store_trial

OnError = Literal["stop", "skip"]
OnDisturbed = Literal["repeat", "keep"]
_CLUSTERS_LOST = 3
_STARTS = 2  # a busy machine may need a second try
_STOPPING = (
    "interrupted: ending the trial in flight and saving what there is of it;"
    " Ctrl-C again stops at once"
)


class Attempt(NamedTuple):
    """One attempt at a trial; where it is *discarded*, as what, the trial is still to be run."""

    record: TrialRecord
    is_cluster_lost: bool
    discarded: Discarded | None = None


@dataclass
class Execution:
    """
    The trials still to run, and all that running them needs.

    *retries* is how often a failed trial is run again before its failure counts.  With
    *on_disturbed* ``repeat``, a trial that others disturbed is run a second time, after all others
    of its cluster and use; the second one counts, disturbed or not.  For *wait_quiet_s* seconds,
    over all trials, it waits where others use the machines.  *needs_rates*: models need the rates
    of a node's disk and memory.  *seal* gives the SHA-256 of the sealed predictions, and
    makes them before the first trial that is scored.  *more_here* gives trials to be added on the
    cluster that has run all of its own, whose disks and networks are measured, too.  *remaining*
    says how long the others take.  *wall* is the wall clock, in seconds since the epoch.
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
    wait_quiet_s: float = 0.0
    needs_rates: bool = False
    seal: Callable[[], str] = lambda: ""
    more_here: Callable[[], Sequence[Trial]] | None = None
    remaining: Remaining = field(default_factory=Remaining)
    wall: Callable[[], float] = time.time
    failures: Counter[str] = field(default_factory=Counter)
    repeated: set[str] = field(default_factory=set)
    versions_on_nodes: Versions = field(init=False)
    kernel: str = field(init=False, default="")
    interrupt: DeferredInterrupt = field(init=False)
    quiet: QuietWait = field(init=False)
    cells: dict[str, ResolvedCell] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.versions_on_nodes = self.versions  # until nodes report theirs
        self.interrupt = DeferredInterrupt(patience=1, notify=lambda: self.console.say(_STOPPING))
        self.quiet = QuietWait(self.wait_quiet_s, self.run.scratch, self.console.say)

    def execute(self, trials: Sequence[Trial], done: set[str]) -> None:
        """Run those of *trials* that are not *done*."""
        self.cells |= resolve_cells(trial.cell for trial in trials)
        pending = [trial for trial in trials if trial.id not in done]
        total = len(trials)
        waiting = {trial.id for trial in pending}
        self.console.step(total - len(waiting), total, self.remaining.left_s(waiting), "")
        last_s = time.monotonic()
        with os_error_as_machine_error(self.run.path, is_long=True):
            for _, group in groupby(pending, key=lambda trial: trial.cell.cluster.id):
                # Closed at once, whatever ends the loop: the cluster must not wait for a collector.
                with closing(self._run_on_cluster(list(group))) as records:
                    for record in records:
                        waiting.discard(record.trial.id)
                        # With all that came before it: clusters, warm-up trials, other attempts.
                        self.remaining.measured_s[record.trial.id] = time.monotonic() - last_s
                        last_s = time.monotonic()
                        summary = f"{record.trial.cell.workload.name} {record.state}"
                        if record.reason:
                            summary += f": {record.reason}"
                        left_s = self.remaining.left_s(waiting)
                        self.console.step(total - len(waiting), total, left_s, summary)
                        if record.state != "done" and self.on_error == "stop":
                            raise JobError(
                                f"trial {record.trial.id} {record.state}: {record.reason}",
                                where=str(self.run.trial_dir(record.trial.id)),
                                fix="read its logs, or go on past failures with --on-error skip",
                            )

    def _run_on_cluster(self, trials: list[Trial]) -> Generator[TrialRecord]:
        """Run *trials*, which share one cluster specification, on as many clusters as it takes."""
        clusters_lost = 0  # in a row, without a trial done in between
        while trials:
            with (
                self._start_cluster(trials[0].cell.cluster) as cluster,
                monitor_cluster(
                    cluster, self.run.scratch, self.console.say, self._add_limitation
                ) as monitor,
            ):
                if monitor.machines:
                    self.run.update_manifest(machines=monitor.machines)
                runner = self._runner(cluster)
                is_lost = self._warm_up(runner, trials[0], monitor)
                self._record_machine(cluster)
                is_look_due = True
                while trials and not is_lost:
                    if is_look_due:
                        self.quiet.wait(monitor)
                    attempt = self._attempt(runner, trials[0], monitor)
                    is_lost = attempt.is_cluster_lost
                    is_look_due = attempt.record.disturbed != ""
                    if attempt.record.state == "done":
                        clusters_lost = 0
                    if attempt.discarded == "disturbed":
                        move_behind_its_use(trials)
                    if attempt.discarded is None:
                        trials.pop(0)
                        yield attempt.record
                        if not trials and not is_lost:
                            trials += self._added_here()
                clusters_lost += is_lost
            if clusters_lost >= _CLUSTERS_LOST and trials:
                what = f"{clusters_lost} clusters were lost, and no trial was done in between"
                fix = "read the reasons in the failed trials, then start the command again"
                raise ClusterError(what, where=str(self.run.path), fix=fix)

    def _runner(self, cluster: Cluster) -> TrialRunner:
        """Make what runs trials on *cluster*, whose inputs they share."""

        def check_interrupt() -> None:
            if self.interrupt.is_pending:
                raise StoppedError("interrupted by the user")

        logs = self.run.scratch / "inputs"
        logs.mkdir(exist_ok=True)
        note = self.console.note
        say = self.console.say
        jobs = JobRunner(cluster, self.limit_s, on_tick=check_interrupt, note=note)
        inputs = Inputs(jobs, logs, say)
        size = block_bytes(cluster.spec)
        limit_s = self.limit_s
        return TrialRunner(cluster, inputs, size, limit_s, check_interrupt, note=note, say=say)

    def _warm_up(self, runner: TrialRunner, trial: Trial, monitor: Monitor) -> bool:
        """Run *trial* as often as asked without counting it; whether the cluster was lost."""
        return any(
            self._attempt(runner, trial, monitor, is_warmup=True).is_cluster_lost
            for _ in range(self.warmup)
        )

    def _record_machine(self, cluster: Cluster) -> None:
        """Measure what the nodes' disks, memory and networks achieve, where that is asked for."""
        if self.needs_rates:
            record_rates(self.run, cluster, self.console.say)
        if self.more_here:
            record_micro(self.run, cluster, self.console.say)

    def _added_here(self) -> Sequence[Trial]:
        """Trials to be added on the cluster that has run all of its own."""
        added = self.more_here() if self.more_here else ()
        self.cells |= resolve_cells(trial.cell for trial in added)
        return added

    @contextmanager
    def _start_cluster(self, cluster_spec: ClusterSpec) -> Iterator[Cluster]:
        """Start a cluster and record what it is; try twice, unless failures stop the run."""
        workers = cluster_spec.workers
        provider = cluster_spec.provider
        self.console.say(f"cluster: starting {count(workers, 'worker')} ({provider})")
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
            shift = stopwatch.find_shift() if outcome.state == "done" else ""
            if shift:
                outcome.state = "failed"
                outcome.reason = shift
            if outcome.state != "done":
                self.run.require_space()  # a full disk fails everything: no trial is to blame
            if outcome.is_cluster_lost:
                for daemon, text in runner.cluster.daemon_logs(200).items():
                    (folder.raw / f"daemon-{daemon.replace(' ', '-')}.log").write_text(text)
            record = self._record_of(trial, outcome, stopwatch, loads)
            discarded = "warmup" if is_warmup else self._reason_to_discard(record, outcome)
            if discarded:
                folder.discard(discarded, record)
            else:
                for complaint in store_trial(self.run, folder, record, outcome.traces):
                    self.console.say(f"warning: trial {trial.id}: {complaint}")
            return Attempt(record, outcome.is_cluster_lost, discarded)

    def _record_of(
        self,
        trial: Trial,
        outcome: Outcome,
        stopwatch: Stopwatch,
        loads: dict[str, MachineLoad],
    ) -> TrialRecord:
        """Make the record of *trial*, which has just ended."""
        counters: list[Mapping[str, int]] = []
        for trace in outcome.traces:
            counters += [attempt.counters for attempt in trace.attempts]
        elapsed_s = stopwatch.elapsed_s
        return TrialRecord(
            trial=trial,
            state=outcome.state,
            started_s=stopwatch.at_s,
            finished_s=stopwatch.at_s + elapsed_s,
            job_ids=tuple(outcome.job_ids),
            reason=outcome.reason,
            disturbed=find_disturbance(loads),
            loads=loads,
            device=", ".join(devices(counters)),
            versions=self.versions_on_nodes,
            kernel=self.kernel,
            input_bytes=outcome.input_bytes,
            num_splits=outcome.num_splits,
            harness_s=outcome.seconds,
            disk_bytes=outcome.disk_bytes,
        )

    def _reason_to_discard(self, record: TrialRecord, outcome: Outcome) -> Discarded | None:
        """Whether, and as what, a trial is put out of the way, which is then run once more."""
        trial_id = record.trial.id
        if record.state == "done":
            is_repeatable = self.on_disturbed == "repeat" and trial_id not in self.repeated
            if not (record.disturbed and is_repeatable):
                return None
            self.console.say(f"trial {trial_id} is repeated at the end: {record.disturbed}")
            self.repeated.add(trial_id)
            return "disturbed"
        has_retry = self.failures[trial_id] < self.retries
        self.failures[trial_id] += 1
        return "retried" if outcome.is_interrupted or has_retry else None


def move_behind_its_use(trials: list[Trial]) -> None:
    """Move the first of *trials* behind all others of its use: profiling ends before scoring."""
    first = trials.pop(0)
    places = [
        place for place, trial in enumerate(trials, start=1) if trial.profiling == first.profiling
    ]
    trials.insert(max(places, default=0), first)


def cluster_name(run: Run) -> str:
    """Name of the cluster of *run*: the same when it is continued, not that of a copied folder."""
    return f"run-{run.id}-{digest(str(run.path.resolve()))[:8]}"
