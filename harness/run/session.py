"""
One experiment file and its results folder: the steps that the command line offers.

`everything` is the composition of the steps and nothing more.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

from harness import __version__
from harness.errors import DataError, ParseError, SpecError
from harness.evaluate.flow import Evaluation
from harness.experiment.file import read_experiment
from harness.experiment.grid import expand, order
from harness.experiment.model import Experiment
from harness.hadoop.slots import refusals
from harness.hadoop_home.home import HadoopHome
from harness.monitor.machine import machine_facts
from harness.monitor.probe import probe_jar
from harness.monitor.rates import wanted
from harness.parsing.history import read_history
from harness.providers import PROVIDERS, remove
from harness.records.trace import JobTrace
from harness.records.trial import ClusterSpec, Trial, TrialRecord, Versions
from harness.run.execute import Execution, OnError, cluster_name
from harness.run.hardware import refused_limits
from harness.run.known import known_names
from harness.run.plan import Plan, make_plan, refuse, refuse_inputs
from harness.run.preflight import Fitness
from harness.run.recordings import write_trace
from harness.run.talk import Talk
from harness.run.versions import ENTRY
from harness.store import Run, Store

_HISTORY = re.compile(r"job-([0-9]{1,6})-history\.jhist")


@dataclass
class Session:
    """An experiment *text* read from *source*, its results below *results_dir*."""

    text: str
    source: str
    results_dir: Path
    overrides: tuple[str, ...]
    talk: Talk

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment; `SpecError` says all that is wrong with its file."""
        known = known_names()
        experiment = read_experiment(self.text, self.source, self.overrides, known=known)
        cells = expand(experiment)
        refuse(cells, _refusals, self.source, self.text)
        refuse_inputs(cells, self.source, self.text)
        return self._as_traced(experiment)

    def _as_traced(self, experiment: Experiment) -> Experiment:
        """The experiment with the tracing that its provider can give: nodes may not be ours."""
        mode, provider = experiment.tracing.mode, experiment.cluster.provider
        if mode in PROVIDERS[provider].traces:
            return experiment
        self.talk.say(
            f"warning: trace: {mode} needs the tracer on the nodes, and provider {provider} puts"
            " nothing there: trace: logs it is, and what needs more is not applicable"
        )
        tracing = experiment.tracing.model_copy(update={"mode": "logs"})
        return experiment.model_copy(update={"tracing": tracing})

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
        """Every trial, in the order in which it is run."""
        return order(self.experiment, expand(self.experiment), self.versions)

    @cached_property
    def fitness(self) -> Fitness:
        """What stands between the experiment and this machine."""
        return Fitness(self.experiment, self.source, lambda: self.home, self.talk)

    @cached_property
    def store(self) -> Store:
        """The results folder."""
        return Store(self.results_dir)

    def plan(self) -> Plan:
        """All trials with what the newest run of the experiment holds of them; starts nothing."""
        experiment, trials = self.experiment, self.trials
        self.fitness.warn()
        self.fitness.warn_of_lacks()
        self.fitness.look_in_vain()
        run = self.store.unfinished(experiment)
        return make_plan(experiment, trials, run.trials() if run else {})

    def measure(
        self, *, on_error: OnError = "skip", retries: int = 0, new: bool = False
    ) -> tuple[Run, int]:
        """Run what is missing of the newest unfinished run, or of a new one; count the failures."""
        experiment, trials = self.experiment, self.trials
        self.fitness.refuse()
        self.fitness.look()
        self.fitness.warn()
        probe_jar()
        run = self.store.open_run(experiment, self.text, new=new)
        if run.note:
            self.talk.say(run.note)
        with run.lock():
            if remove(cluster_name(run), experiment.cluster.provider):
                self.talk.say("cluster: took down what a killed run had left")
            self._complete_traces(run)
            run.write_plan(trials)
            run.manifest(self._manifest() | _told_by_nodes(run))
            planned = {t.id for t in trials}
            done = planned & set(run.trials())
            self.talk.say(f"run {run.path} ({len(done)} of {len(trials)} trials done)")
            execution = Execution(
                run=run,
                home=self.home,
                versions=self.versions,
                limit_s=experiment.trial_limit_s,
                warmup=experiment.warmup,
                talk=self.talk,
                on_error=on_error,
                retries=retries,
                rated=wanted(experiment.predict.models),
            )
            execution.execute(trials, done)
            run.finish()
        ended = (r for i, r in run.trials().items() if i in planned)
        return run, sum(r.state != "done" for r in ended)

    def latest(self) -> Run:
        """The newest run of the experiment; `DataError` where there is none."""
        return self.store.latest(self.experiment.name)

    def collect(self) -> int:
        """Make the trace tables again from the raw logs; return how many trials have them."""
        run = self.latest()
        with run.lock():
            return sum(make_trace(run, record) for record in run.trials().values())

    def _complete_traces(self, run: Run) -> None:
        """Make the traces of trials after which the run was killed."""
        for trial_id, record in run.trials().items():
            if not run.has_trace(trial_id):
                make_trace(run, record)

    def evaluation(self, run: Run | None = None) -> Evaluation:
        """Give the newest run (or *run*) to be profiled, predicted, scored, reported."""
        run = run or self.latest()
        return Evaluation(run, run.experiment(), run.read_plan())

    def _manifest(self) -> dict[str, Any]:
        return {
            "harness": __version__,
            "commit": _commit(),
            "command": shlex.join(["harness", *sys.argv[1:]]),
            "versions": self.versions.model_dump(),
            "python": sys.version.split()[0],
            "machine": machine_facts(),
            "seed": self.experiment.seed,
            "overrides": list(self.overrides),
            **self._gpus(),
        }

    def _gpus(self) -> dict[str, Any]:
        """How many GPUs nodes are to have, for the manifest: nothing where no node has one."""
        node = self.experiment.cluster.node
        if not any(node.gpus) and not node.gpus_found:
            return {}
        origin = "found on the nodes" if node.gpus_found else "declared, not detected"
        return {"gpus": {"per_node": list(node.gpus), "origin": origin}}


def _told_by_nodes(run: Run) -> dict[str, Any]:
    """What the manifest has of the nodes' versions already: this machine's are a first guess."""
    known = run.manifest()
    return {name: known[name] for name in ("versions", ENTRY) if ENTRY in known}


def _refusals(cluster: ClusterSpec, configuration: Mapping[str, str]) -> list[str]:
    """Why *cluster* cannot be made, or cannot hold a job with *configuration*."""
    sets_site = PROVIDERS[cluster.provider].sets_site
    return [*refusals(cluster, configuration, sets_site=sets_site), *refused_limits(cluster)]


def make_trace(run: Run, record: TrialRecord) -> bool:
    """
    Make the trace tables of a trial from its raw logs; `False`: it left no history.

    A failed trial may have failed because its history cannot be read: then it has no trace.
    """
    trial_id = record.trial.id
    try:
        traces = _read_histories(run, trial_id)
    except ParseError:
        if record.state == "done":
            raise
        traces = []
    if record.state == "done" and not traces:
        raise DataError(
            f"trial {trial_id} has no history",
            where=str(run.trial_dir(trial_id)),
            fix="its logs were removed: move the trial's folder away and run it again",
        )
    write_trace(run, record, traces)
    return bool(traces)


def _read_histories(run: Run, trial_id: str) -> list[JobTrace]:
    traces, raw = [], run.raw(trial_id)
    found = (_HISTORY.fullmatch(name) for name in raw.names())
    for name in (m[0] for m in sorted(filter(None, found), key=lambda m: int(m[1]))):
        with raw.open(name) as lines:
            traces.append(read_history(lines, f"trials/{trial_id}/raw/{name}.gz"))
    return traces


def check_readable(path: Path) -> str:
    """Text of an experiment file; `SpecError` where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise SpecError(
            f"the experiment file cannot be read: {reason}",
            where=str(path) if path.is_absolute() else f"{path}, seen from {_here()}",
            fix=_near_file(path) or "name an experiment file, such as experiments/demo.yaml",
        ) from error


def _near_file(path: Path) -> str:
    """Fix for a *path* that cannot be read: an experiment file of nearly that name, if any."""
    folders = (path, path.parent, Path("experiments"))
    found: dict[str, Path] = {}
    for folder in folders:
        with suppress(OSError):
            found |= {p.stem: p for p in sorted(folder.glob("*.yaml")) if p != path}
    close = get_close_matches(path.stem, found, n=1)
    return f"did you mean {found[close[0]]}?" if close else ""


def _here() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return "a folder that has been removed"


def _commit() -> str:
    """Commit of the source tree that runs, with ``-dirty`` where it was changed; may be empty."""
    here = Path(__file__).resolve().parent
    argv = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
