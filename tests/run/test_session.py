"""
Tests for `harness.core.run.session`: an experiment file on clusters in memory, results on disk.
"""

import json
import re
import shutil

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.base.errors import (
    ClusterError,
    DataError,
    EvidenceError,
    HarnessError,
    MachineError,
    SpecError,
)
from harness.base.records.manifest import OfferedGpus
from harness.base.records.question import BEST, Question
from harness.base.records.score import ScoreBook
from harness.base.records.trial import SCHEMA_VERSION, TrialRecord
from harness.base.stats.sequential import LOOK_ERROR
from harness.cli import main
from harness.cli.console.asked import asked_anew
from harness.clusters.hadoop_home.home import JARS, HadoopHome
from harness.clusters.local.cluster import LocalCluster
from harness.clusters.monitor import rates
from harness.clusters.survey import Devices, Gpu
from harness.clusters.workloads.base import JOBS
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.evaluate import steps
from harness.core.evaluate.flow import Evaluation
from harness.core.evaluate.laws.measured import Measured
from harness.core.evaluate.laws.plan import file_of_experiment
from harness.core.evaluate.provenance import blind_refusals
from harness.core.evaluate.steps import asked_question
from harness.core.run import decides, manifest, preflight, repeats, reuse
from harness.core.run import session as module
from harness.core.run.asking import analyse
from harness.core.run.execute import cluster_name
from harness.core.run.experiment_file import read_experiment_file
from harness.core.run.session import Session
from harness.core.store import Store
from harness.core.store.traces import remake_trace
from harness.scoring.design import TYPICAL
from tests.run.fakes import VERSIONS, Fault, RecordingConsole

EXPERIMENT = """
schema: 1
name: small
question: How long does the recorded TeraSort take?
cluster: {workers: 2, site: {dfs.blocksize: 2m}}
workloads:
  - {name: terasort, input: 6000000}
configuration:
  mapreduce.job.reduces: 2
  mapreduce.task.io.sort.factor: [3, 10]
repeat: 2
warmup: 0
predict: {models: [whatif], profile_on: {mapreduce.task.io.sort.factor: [3]}}
"""


UNTIL_DECIDED = ["repeat=until decided", "predict.models=[whatif, whatif-printed]"]


def never_decided(_scores, measurements):
    """
    The first measured cell once more, whatever was measured.
    """
    return [measurements[0].cell], "a or b is undecided"


class Interrupted(RecordingConsole):
    """
    A user who interrupts once so many trials are done.
    """

    def __init__(self, after):
        super().__init__()
        self.after = after

    def step(self, done, total, left_s, text):
        super().step(done, total, left_s, text)
        if done == self.after:
            raise KeyboardInterrupt


@pytest.fixture
def session(tmp_path, clusters, monkeypatch):
    """
    Makes a session as a new process would, always with the same results folder.
    """
    home = SimpleNamespace(versions=lambda: VERSIONS, path=tmp_path, trace_path_jar=tmp_path)
    monkeypatch.setattr(HadoopHome, "find", staticmethod(lambda: home))
    monkeypatch.setattr(module, "probe_jar", lambda: None)
    monkeypatch.setattr(manifest, "source_commit", lambda: "0123456789ab")
    # All trials have one history here, and no run is lawful (tests/evaluate/test_laws.py).
    monkeypatch.setattr(steps, "broken_laws", lambda _: [])
    assert clusters.running == 0

    def build(text=EXPERIMENT, console=None, overrides=()):
        return Session(
            text, "small.yaml", tmp_path / "results", overrides, console or RecordingConsole()
        )

    return build


@pytest.fixture
def measured(session):
    """
    A session whose run is finished, and the run.
    """
    s = session()
    run, failed = s.measure()
    assert failed == 0
    return s, run


class TestMeasure:
    def test_goes_on_with_the_file_that_goes_with_its_overrides(self, session):
        """
        What was set beside the file may stand in it later: it asks for the same.
        """
        edited = EXPERIMENT.replace("repeat: 2", "repeat: 3")
        with pytest.raises(KeyboardInterrupt):
            session(console=Interrupted(1), overrides=["repeat=3"]).measure()
        run, _ = session(edited).measure()

        assert run.read_manifest().overrides == ()
        assert run.path.joinpath("experiment.yaml").read_text() == edited
        assert [*file_of_experiment(Measured(run))] == []

    def test_more_than_the_memory_holds_is_refused(self, session, clusters, monkeypatch):
        """
        A cluster larger than this machine's memory is refused before anything is started.
        """
        monkeypatch.setattr(preflight, "machine_facts", lambda: {"memory_bytes": 2**30})

        with pytest.raises(MachineError, match=r"workers and their tasks take .* has 1 GiB"):
            session().measure()

        assert clusters.running == 0

    def test_more_than_the_disk_holds_is_refused(self, session, clusters):
        """
        An input that has no room is refused before anything is started; a plan only tells it.
        """
        large = ["workloads.0.input=900 TiB", "cluster.site.dfs.blocksize=16 GiB"]
        s = session(overrides=large)

        with pytest.raises(MachineError, match=r"900 TiB takes 1800 TiB with its replicas and"):
            s.measure()
        s.plan()

        assert clusters.running == 0
        assert [x for x in s.console.lines if "will not run it: " in x and "; fix: lower" in x]

    def test_jobs_that_are_not_built_are_refused(self, session, clusters, monkeypatch):
        """
        The jar is named before anything is started; a plan only tells it.
        """
        monkeypatch.setitem(JARS, JOBS, Path("nowhere.jar"))
        monkeypatch.setattr(ResolvedCell, "required_jars", lambda _: [JOBS])
        s = session()

        with pytest.raises(MachineError, match=r"the jar harness-jobs\.jar is missing") as caught:
            s.measure()
        s.plan()

        assert (caught.value.fix, clusters.running) == ("make setup", 0)
        assert any("will not run it: the jar harness-jobs.jar" in x for x in s.console.lines)

    def test_tasks_that_cannot_be_traced_are_refused(self, session, clusters, monkeypatch):
        """
        Without classes that have hooks nothing is started, for nothing would be recorded; a trace
        that needs none is run all the same, and a plan only tells it.
        """
        home = SimpleNamespace(versions=lambda: VERSIONS, path="/h", trace_path_jar=None)
        monkeypatch.setattr(HadoopHome, "find", staticmethod(lambda: home))
        s = session()

        with pytest.raises(MachineError, match="trace: spans needs Hadoop's classes with the"):
            s.measure()
        s.plan()
        assert clusters.jobs == []
        _, failed = session(overrides=["trace=logs"]).measure()

        assert failed == 0
        assert [x for x in s.console.lines if "will not run it: " in x and "; fix: make" in x]

    def test_a_plan_tells_what_is_there_already(self, session, monkeypatch):
        """
        Of a cluster that is not ours: what it is, or why it will not run; and the plan is told.
        """

        def look(spec):
            if spec.workers == 5:
                raise ClusterError("no ResourceManager is active", where="there", fix="look")
            return f"Hadoop 3.4.3, {spec.workers} nodes"

        monkeypatch.setattr(LocalCluster, "look", look)
        monkeypatch.setattr(preflight, "PROVIDERS", {"local": LocalCluster})
        s, lost = session(), session(overrides=["cluster.workers=5"])

        assert len(s.plan()["trials"]) == len(lost.plan()["trials"])
        assert "local cluster: Hadoop 3.4.3, 2 nodes" in s.console.lines
        assert (
            "warning: this machine will not run it: no ResourceManager is active"
            " (at: there; fix: look)" in lost.console.lines
        )

    def test_what_a_running_cluster_cannot_hold_is_refused(self, session, clusters, monkeypatch):
        """
        Before a run is opened for it.
        """

        def look(spec):
            raise ClusterError(f"5 nodes run there, and cluster.workers is {spec.workers}")

        monkeypatch.setattr(LocalCluster, "look", look)
        monkeypatch.setattr(preflight, "PROVIDERS", {"local": LocalCluster})
        s = session()
        with pytest.raises(ClusterError, match="5 nodes run there"):
            s.measure()

        assert (clusters.attempts, Store(s.results_dir).runs(s.experiment.name)) == (0, ())

    def test_what_will_not_decide_is_told(self, session, monkeypatch):
        """
        One repeat has no noise, a few cells no interval, and memory that is all taken no room.
        """
        monkeypatch.setattr(preflight, "machine_facts", lambda: {"memory_bytes": 3500 * 2**20})
        s = session(overrides=["repeat=1"])
        s.plan()

        lines = "\n".join(s.console.lines)
        assert "warning: repeat: 1 shows no noise, so nothing is proved: write repeat: 2" in lines
        assert "warning: 1 of 2 cells is scored, below 6 there is no interval" in lines
        assert "of this machine's 3.42 GiB of memory: lower cluster.workers" in lines

    def test_a_tiny_input_is_told(self, session):
        """
        It would show how long tasks take to start, and hardly anybody means that.
        """
        s = session(overrides=["workloads.0.input=5000 B"])
        s.plan()

        assert [
            x
            for x in s.console.lines
            if x.startswith("warning: an input of 4.88 KiB shows nothing")
        ]

    def test_runs_the_whole_plan(self, session):
        """
        Every trial of the plan is done, in its order, and the run says what it is.
        """
        s = session()
        run, failed = s.measure()

        by_time = sorted(run.trials().values(), key=lambda r: r.started_s)
        assert (failed, run.finished) == (0, True)
        assert [r.trial for r in by_time] == list(s.trials) == list(run.read_plan())
        assert run.read_manifest().versions.hadoop == "3.5.0"
        assert run.read_manifest().seed == 7

    @pytest.mark.process
    def test_adds_trials_until_the_looks_are_spent(self, session, monkeypatch):
        """
        Each look asks for one more of the scored cell, and says why.
        """
        monkeypatch.setattr(repeats, "next_repeats", never_decided)
        s = session(overrides=UNTIL_DECIDED)
        run, failed = s.measure()

        by_time = sorted(run.trials().values(), key=lambda r: r.started_s)
        added = [r.trial for r in by_time if r.trial.look]
        assert [(t.look, t.repetition) for t in added] == [(n, n + 1) for n in range(1, 8)]
        assert all(t.reason == "a or b is undecided" for t in added)
        assert [r.trial for r in by_time] == list(run.read_plan())
        assert (failed, run.finished, len(run.read_plan())) == (0, True, 11)
        assert run.read_manifest().repeats_ended.startswith("8 looks are spent; ")

    def test_adds_no_trial_beyond_the_budget(self, session, monkeypatch):
        """
        And says so.
        """
        monkeypatch.setattr(repeats, "next_repeats", never_decided)
        s = session(overrides=[*UNTIL_DECIDED, "budget=1 ms"])
        run, _ = s.measure()

        assert len(run.trials()) == 4
        assert run.read_manifest().repeats_ended.startswith("the budget is spent; ")

    def test_adds_none_where_no_repeat_tells(self, session):
        """
        One cell tells nothing, however often it is measured.
        """
        run, _ = session(overrides=UNTIL_DECIDED).measure()

        ended = run.read_manifest().repeats_ended
        assert ended.startswith("no repeat tells: from 6 cells on it can be tested")

    def test_adds_none_where_no_model_can_be_compared(self, session):
        """
        One model alone has nobody to be nearer than.
        """
        run, _ = session(overrides=[*UNTIL_DECIDED, "predict.models=[whatif]"]).measure()

        assert run.read_manifest().repeats_ended == "there are no two models to compare"

    @pytest.mark.process
    def test_goes_on_with_the_looks_of_an_interrupted_run(self, session, monkeypatch):
        """
        Trials that were added before are planned ones now, and no look is made twice.
        """
        monkeypatch.setattr(repeats, "next_repeats", never_decided)
        with pytest.raises(KeyboardInterrupt):
            session(console=Interrupted(6), overrides=UNTIL_DECIDED).measure()
        run, _ = session(overrides=UNTIL_DECIDED).measure()

        looks = [t.look for t in run.read_plan()]
        assert looks == [0, 0, 0, 0, *range(1, 8)]

    def test_the_fastest_alone_get_all_repeats(self, session, monkeypatch):
        """
        The cell that was fast by chance is repeated, and then the one that is fastest by the mean.
        """
        factors = "mapreduce.task.io.sort.factor"
        times_s = {"10": [1.0, 5.0, 5.0], "20": [2.0, 2.0, 2.0], "30": [3.0, 3.0, 3.0]}

        def measurements(self):
            for record in self.done.values():
                trial = record.trial
                if not trial.profiling:
                    job_s = times_s[trial.cell.configuration[factors]][trial.repetition]
                    yield SimpleNamespace(cell=trial.cell.id, input="", raw_s={"job_s": job_s})

        monkeypatch.setattr(Evaluation, "measurements", measurements)
        text = EXPERIMENT.replace("[3, 10]", "[3, 10, 20, 30]")
        run, _ = session(text, overrides=["fastest=1", "repeat=3"]).measure()

        counts = Counter(t.cell.configuration[factors] for t in run.read_plan())
        assert counts == {"3": 3, "10": 3, "20": 3, "30": 1}
        assert [t.look for t in run.read_plan()] == [0] * 6 + [1, 1, 2, 2]
        assert all("1 fastest" in t.reason for t in run.read_plan() if t.look)

    def test_the_fastest_are_not_chosen_by_a_verdict(self, session):
        """
        Two ways to choose what is repeated exclude each other.
        """
        with pytest.raises(SpecError, match="not the fastest"):
            session(overrides=["fastest=1", "repeat=until decided"]).plan()

    @pytest.mark.process
    def test_each_look_has_its_own_level(self, session, monkeypatch):
        """
        Also the last, when the scores are made again.
        """
        run, _ = session(overrides=UNTIL_DECIDED).measure()
        levels = []

        def score(*_, error, **_planned):
            levels.append(error)
            return ScoreBook()

        monkeypatch.setattr(steps, "score", score)
        session(overrides=UNTIL_DECIDED).evaluation(run).score()

        assert levels == [LOOK_ERROR]

    def test_nothing_is_decided_without_predictions(self, session):
        """
        Until decided needs models whose predictions are sealed first.
        """
        with pytest.raises(SpecError, match="until decided needs predictions"):
            session(overrides=["repeat=until decided", "predict.order=mixed"]).plan()

    def test_goes_on_where_it_was_interrupted(self, session, clusters):
        """
        Interrupted at any trial and started again: the same trials, none lost, none twice.
        """
        for after in (1, 3):
            with pytest.raises(KeyboardInterrupt):
                session(console=Interrupted(after)).measure()
            assert clusters.running == 0

        s = session()
        run, _ = s.measure()

        assert len(Store(s.results_dir).runs("small")) == 1
        assert set(run.trials()) == {t.id for t in s.trials}
        assert clusters.jobs.count("terasort") == 4

    def test_takes_down_what_a_killed_run_left(self, session, clusters):
        """
        Before anything is started, by the name that the run gives its cluster.
        """
        run, _ = session().measure()

        assert clusters.removed == [cluster_name(run)]

    def test_counts_the_failures(self, session, clusters):
        """
        Failed trials end a run like others; they are counted, also those of an earlier start.
        """
        clusters.faults["terasort"] = [Fault(swaps=True)]
        with pytest.raises(KeyboardInterrupt):
            session(console=Interrupted(2)).measure()

        run, failed = session().measure()

        assert failed == 1
        assert sorted(r.state for r in run.trials().values()) == ["done"] * 3 + ["failed"]

    def test_makes_missing_traces(self, session):
        """
        A run killed between a trial and its trace has the trace after the next start.
        """
        with pytest.raises(KeyboardInterrupt):
            session(console=Interrupted(2)).measure()
        run = session().newest()
        (first, _) = run.trials()
        expected = run.read_trace(first)
        shutil.rmtree(run.trial_dir(first) / "trace")

        session().measure()

        assert run.read_trace(first) == expected

    @pytest.mark.parametrize("new", [False, True])
    def test_a_finished_run_is_left_alone(self, session, measured, new):
        """
        The next one is a run of its own.
        """
        _, first = measured
        second, _ = session().measure(new=new)

        assert first.path != second.path
        assert session().newest().path == second.path

    def test_says_when_tasks_outnumber_cores(self, session, monkeypatch):
        """
        Contention is measured only knowingly; the limits of running tasks count.
        """
        monkeypatch.setattr("os.cpu_count", lambda: 1)
        s = session()
        s.measure()

        assert [
            x for x in s.console.lines if x.startswith("warning: 2 containers at once on 1 cores")
        ]


def sealed_by(run):
    """
    What the jobs of each trial name as their seal in Hadoop's own file, by the use of the trial.
    """
    named = {True: set(), False: set()}
    for record in run.trials().values():
        conf = run.raw(record.trial.id).open("job-0-conf.xml").read().decode()
        named[record.trial.profiling] |= {*re.findall(r"harness\.seal</name><value>(\w+)", conf)}
    return named


class TestBlindOrder:
    @pytest.mark.parametrize("interrupted_after", [(), (1,), (2,), (3,), (1, 2, 3)])
    def test_seals_before_the_first_scored_trial(self, session, interrupted_after):
        """
        Wherever it was interrupted: profiling trials first, then one seal, which the jobs of all
        scored trials name, and those of no other; what is scored then is blind.
        """
        for after in interrupted_after:
            with pytest.raises(KeyboardInterrupt):
                session(console=Interrupted(after)).measure()
        s = session()
        run, _ = s.measure()

        by_time = sorted(run.trials().values(), key=lambda record: record.started_s)
        assert [record.trial.profiling for record in by_time] == [True, True, False, False]
        assert sealed_by(run) == {True: set(), False: {run.seal.sha256()}}
        assert s.evaluation(run).score(strict=True).scores

    def test_sees_no_warm_up_of_a_scored_cell_before_the_seal(self, session, clusters):
        """
        On a cluster of its own as well, where the first trial is a scored one.
        """
        jobs = []
        text = EXPERIMENT.replace("warmup: 0", "warmup: 1")
        with pytest.raises(KeyboardInterrupt):
            session(text, console=Interrupted(2)).measure()
        run = session(text).newest()
        clusters.on_job = lambda _: jobs.append(run.seal.exists())
        session(text).measure()

        assert jobs == [True] * 4  # the input, the warm-up, two trials

    def test_without_a_profile_nothing_more_is_measured(self, session, clusters):
        """
        It is said why, and the next call opens another run.
        """
        clusters.faults["terasort"] = [Fault(swaps=True), Fault(swaps=True)]
        with pytest.raises(DataError, match="no profiling trial has succeeded"):
            session().measure()

        assert clusters.jobs.count("terasort") == 2
        assert session().newest().finished

    def test_profiles_of_no_run_are_refused_before_anything_starts(self, session, clusters):
        """
        No run is opened; the plan is shown, with a warning.
        """
        overrides = ["predict={models: [whatif], from: 20261121}"]
        console = RecordingConsole()
        session(console=console, overrides=overrides).plan()
        with pytest.raises(HarnessError, match="no run is called '20261121'"):
            session(overrides=overrides).measure()

        assert clusters.jobs == []
        assert "warning: predict.from: no run is called '20261121'" in console.lines
        assert Store(session().results_dir).all_runs() == []

    @pytest.mark.process  # needs a jar that is built
    def test_profiles_that_lack_a_workload_are_refused(self, session, clusters, measured):
        """
        The error names the workload; nothing of another name is measured.
        """
        before = len(clusters.jobs)
        text = EXPERIMENT.replace("name: terasort", "name: wordcount")
        overrides = [f"predict={{models: [whatif], from: {measured[1].id}}}"]

        with pytest.raises(DataError, match="it has no profile of wordcount"):
            session(text, overrides=overrides).measure()
        assert len(clusters.jobs) == before

    def test_sentinels_control_the_hour_of_borrowed_profiles(self, session, measured):
        """
        Cells that the other run has profiled; others are refused before anything starts.
        """
        _, source = measured
        factor = "mapreduce.task.io.sort.factor"
        asked = f"predict={{models: [whatif], from: {source.id}, profile_on: {{{factor}: NUMBER}}}}"
        run, failed = session(overrides=[asked.replace("NUMBER", "3"), "sentinels=2"]).measure()
        uses = Counter(trial.use for trial in run.read_plan())
        evaluation = Evaluation.of(run)

        assert failed == 0
        assert uses == {"score": 2, "sentinel": 2}
        assert evaluation.score().drift.sentinels == 2
        with pytest.raises(SpecError, match=r"1 of 1 cell of profile_on is none of those"):
            session(overrides=[asked.replace("NUMBER", "10"), "sentinels=2"]).measure()

    def test_a_control_needs_no_profile(self, session, measured):
        """
        No model is asked about it.
        """
        text = EXPERIMENT.replace("workloads:\n", "workloads:\n  - {name: dfsio, input: 2000000}\n")
        predict = f"predict={{models: [whatif], from: {measured[1].id}}}"
        of_control = session(text, overrides=[predict, "nightly.controls=dfsio"])

        assert set(of_control.borrowed) == {"terasort"}
        with pytest.raises(DataError, match="it has no profile of dfsio"):
            _ = session(text, overrides=[predict]).borrowed

    def test_profiles_are_taken_to_another_machine_by_who_opens_the_session(
        self, session, measured
    ):
        """
        The files stand beside the experiment's; the core itself takes no profile elsewhere.
        """
        asked = f"predict={{models: [whatif], from: {measured[1].id}, hardware: [a.json, b.json]}}"
        calls = []

        def transfer(source, paths, cells):
            calls.append((source.id, [str(path) for path in paths], len([*cells])))
            return {"terasort": "there"}

        moved = replace(session(overrides=[asked]), transfer=transfer)
        assert moved.borrowed == {"terasort": "there"}
        assert calls == [(measured[1].id, ["a.json", "b.json"], 2)]
        with pytest.raises(SpecError, match="nothing here takes profiles elsewhere"):
            _ = session(overrides=[asked]).borrowed

    def test_a_sealed_run_goes_on_without_the_run_that_gave_its_profiles(
        self, session, clusters, measured
    ):
        """
        What was sealed is kept in the run itself.
        """
        _, source = measured
        overrides = [f"predict={{models: [whatif], from: {source.id}}}", "seed=8"]
        with pytest.raises(KeyboardInterrupt):
            session(console=Interrupted(2), overrides=overrides).measure()
        shutil.rmtree(source.path)

        run, failed = session(overrides=overrides).measure()

        assert (failed, run.finished, len(run.trials())) == (0, True, 4)

    @pytest.mark.parametrize(
        "text",
        [
            EXPERIMENT.replace("{models", "{order: mixed, models"),
            EXPERIMENT.partition("predict")[0],
        ],
        ids=["mixed", "no models"],
    )
    def test_is_not_needed(self, session, text):
        """
        Where it was not asked for, or where nothing is predicted.
        """
        run, _ = session(text).measure()

        assert (run.seal.exists(), sealed_by(run)) == (False, {True: set(), False: set()})

    def test_a_mixed_run_is_scored_but_not_strictly(self, session):
        """
        With the trial that was measured too early.
        """
        s = session(overrides=["predict.order=mixed"])
        run, _ = s.measure()
        evaluation = s.evaluation(run)
        evaluation.profile()
        evaluation.predict()

        assert evaluation.score().scores
        with pytest.raises(EvidenceError, match=r"trial \w+ was measured before the predictions"):
            evaluation.score(strict=True)

    def test_a_job_of_another_seal_is_not_blind(self, session, monkeypatch):
        """
        What Hadoop wrote of its jobs decides, not what the experiment asks.
        """
        monkeypatch.setattr(module.Session, "seal", lambda s, run: make_seal(s, run)[::-1])
        s = session()
        run, _ = s.measure()

        with pytest.raises(EvidenceError, match=r"conf\.xml does not name the seal"):
            s.evaluation(run).score(strict=True)


make_seal = module.Session.seal


class TestSecrets:
    def measure(self, session, monkeypatch, value, console):
        """
        The run that a session with a secret measures.
        """
        monkeypatch.setenv("SOME_TOKEN", value)
        overrides = ["cluster.site.my.token=${env:SOME_TOKEN}", f"cluster.site.a.password={value}"]
        monkeypatch.setattr("sys.argv", ["harness", "run", *overrides])
        run, _ = session(console=console, overrides=overrides).measure()
        return run

    def test_are_in_no_file(self, session, clusters, monkeypatch):
        """
        Neither what was taken from elsewhere nor what stands in the command line.
        """
        run = self.measure(session, monkeypatch, "CANARY-1", RecordingConsole())

        files = [path for path in run.path.rglob("*") if path.is_file()]
        assert [path.name for path in files if b"CANARY" in path.read_bytes()] == []
        assert "a.password=secret:" in run.read_manifest().command

    def test_another_value_is_another_run(self, session, clusters, monkeypatch):
        """
        With the same value an interrupted run goes on.  Trials with another could not be compared:
        they get a run of their own, and why is said.
        """
        with pytest.raises(KeyboardInterrupt):
            self.measure(session, monkeypatch, "CANARY-1", Interrupted(1))
        (first,) = Store(session().results_dir).runs("small")
        with pytest.raises(KeyboardInterrupt):
            self.measure(session, monkeypatch, "CANARY-1", Interrupted(2))
        console = RecordingConsole()
        other = self.measure(session, monkeypatch, "CANARY-2", console)

        assert [run.id for run in Store(session().results_dir).runs("small")] == [
            first.id,
            other.id,
        ]
        message = f"a secret of the experiment differs from that of the unfinished run {first.id}"
        assert any(message in line for line in console.lines)


class TestNewerSchema:
    @pytest.mark.parametrize("name", ["manifest.json", "trials/*/trial.json"])
    def test_is_refused_and_left_alone(self, session, clusters, name):
        """
        The error names file, both versions and what to do; no byte of the results is changed.
        """
        with pytest.raises(KeyboardInterrupt):
            session(console=Interrupted(2)).measure()
        run = session().newest()
        path = min(run.path.glob(name))
        document = json.loads(path.read_text()) | {"schema_version": SCHEMA_VERSION + 1}
        path.write_text(json.dumps(document))
        before, started = content(run.path), len(clusters.started)

        with pytest.raises(
            DataError, match=f"schema_version {SCHEMA_VERSION + 1} is newer than {SCHEMA_VERSION}"
        ) as caught:
            session().measure()

        assert (caught.value.exit_status, caught.value.where) == (7, str(path))
        assert "use the harness that wrote it" in caught.value.fix
        assert content(run.path) == before
        assert len(clusters.started) == started


def content(folder):
    """
    Every file below a folder but the lock, which says who looked last.
    """
    files = (p for p in folder.rglob("*") if p.is_file() and p.name != "lock")
    return {str(p): p.read_bytes() for p in files}


class TestGpus:
    @pytest.mark.process
    @pytest.mark.parametrize(
        ("written", "per_node", "origin"),
        [("auto", [2], "found on the nodes"), ("[0, 3]", [0, 3], "declared, not detected")],
    )
    def test_manifest_has_the_origin_of_their_number(
        self, session, monkeypatch, written, per_node, origin
    ):
        """
        Beside it what the machine really has, asked when the cluster is there.
        """
        devices = Devices((Gpu("H100"),) * 4, "/lib/libcuda.so.1")
        fields = {"gpus_per_node": staticmethod(lambda workers: 4 // workers)}
        provider = type("Provider", (LocalCluster,), fields)
        monkeypatch.setattr(preflight, "PROVIDERS", {"local": provider})
        monkeypatch.setattr(rates, "find_devices", lambda run: devices)
        run, _ = session(overrides=(f"cluster.node.gpus={written}", "repeat=1")).measure()
        manifest = run.read_manifest()

        assert manifest.gpus == OfferedGpus(per_node=tuple(per_node), origin=origin)
        assert manifest.gpus_found["machine"].devices == ({"name": "H100"},) * 4

    def test_a_workload_that_asks_for_more_than_there_are(self, session, clusters):
        """
        It is refused before anything is started, where the cluster is described: what the workload
        asks for is not in the file.
        """
        gpu_workload = "{name: gpu-kmeans, input: 6000000, device: gpu}"
        s = session(EXPERIMENT.replace("{name: terasort, input: 6000000}", gpu_workload))

        with pytest.raises(SpecError, match="gpu = 1, and a node has none") as caught:
            s.measure()
        assert caught.value.where == "small.yaml:5:1"
        assert clusters.started == []

    @pytest.mark.parametrize(
        ("devices", "expected"),
        [
            (Devices((), ""), ["nodes offer 4 GPUs in total, and this machine has none"]),
            (Devices((Gpu("H100"),) * 4, "/lib"), []),
            (
                Devices((Gpu("nvidia0"),) * 4, "/lib", "Unable to determine the device handle"),
                ["nvidia-smi fails, the GPUs here may not work: Unable to determine"],
            ),
        ],
        ids=["none", "all", "lost"],
    )
    def test_what_does_not_work_is_told_before_the_run(
        self, session, monkeypatch, devices, expected
    ):
        """
        A node that offers what its machine has not, or has lost.
        """
        monkeypatch.setattr(preflight, "find_devices", lambda run: devices)
        heard = RecordingConsole()
        session(overrides=("cluster.node.gpus=2",), console=heard).plan()
        warnings = [line.removeprefix("warning: ") for line in heard.lines if "GPUs" in line]

        assert [
            line[: len(text)] for line, text in zip(warnings, expected, strict=True)
        ] == expected

    def test_manifest_without_any(self, measured):
        """
        Nothing is looked for, and nothing said.
        """
        assert measured[1].read_manifest().gpus is None


class TestPlan:
    def test_starts_nothing(self, session, clusters):
        """
        Without a run everything is pending, and no folder appears.
        """
        s = session()
        plan = s.plan()

        assert [t["id"] for t in plan["trials"]] == [t.id for t in s.trials]
        assert {t["state"] for t in plan["trials"]} == {"pending"}
        assert (clusters.started, s.results_dir.exists()) == ([], False)

    def test_says_who_can_reach_the_cluster(self, session):
        """
        One line, as its provider knows it.
        """
        heard = RecordingConsole()
        session(console=heard).plan()

        assert [line for line in heard.lines if line.startswith("reach: ")] == [
            "reach: only this user and root reach it: its network is a namespace of its own"
        ]

    def test_knows_what_is_done(self, session):
        """
        The unfinished run is what would be continued.
        """
        with pytest.raises(KeyboardInterrupt):
            session(console=Interrupted(3)).measure()

        states = [planned["state"] for planned in session().plan()["trials"]]
        assert states == ["done"] * 3 + ["pending"]


class TestNames:
    def test_that_are_slips_are_refused_where_they_stand(self, session):
        """
        All of them at once, each with the name that was meant.
        """
        text = EXPERIMENT.replace("job.reduces: 2", "job.reducers: 2").replace(
            "blocksize", "blokcsize"
        )

        with pytest.raises(SpecError) as caught:
            session(text).plan()

        lines = caught.value.what.splitlines()[1:]
        assert ["dfs.blocksize?" in lines[0], "mapreduce.job.reduces?" in lines[1]] == [True, True]
        assert [line.split(": ")[0].strip() for line in lines] == [
            "small.yaml:5:30",
            "small.yaml:9:3",
        ]

    def test_that_hadoop_does_not_know_are_told_and_passed_on(self, session):
        """
        A warning with the nearest name, for those that begin as Hadoop's; none for a user's own.
        """
        heard = RecordingConsole()
        unknown = ("mapreduce.map.sort.spill.pct", "mapreduce.acme.rows", "com.acme.rows")
        opened = session(console=heard, overrides=[f"configuration.{name}=1" for name in unknown])

        opened.plan()

        first, second = [line for line in heard.lines if "knows no property" in line]
        assert "pct: passed on as it is; the nearest that it knows is mapreduce.map.sort" in first
        assert second.endswith("mapreduce.acme.rows: passed on as it is")
        assert set(unknown) <= set(opened.experiment.configuration)


class TestExperiment:
    @pytest.mark.parametrize(
        ("provider", "written", "traced"),
        [("existing", "units", "logs"), ("existing", "off", "off"), ("local", "units", "units")],
    )
    def test_is_traced_as_its_provider_can(self, session, provider, written, traced):
        """
        What cannot be had is told; cells say what they really are.
        """
        opened = session(overrides=(f"cluster.provider={provider}", f"trace={written}"))
        modes = {trial.cell.tracing.mode for trial in opened.trials}
        warnings = [
            line for line in opened.console.lines if "needs the tracer on the nodes" in line
        ]

        assert (modes, len(warnings)) == ({traced}, int(traced != written))

    def test_that_no_cluster_can_hold(self, session, clusters):
        """
        A container larger than a node is refused with its place, before anything is started.
        """
        s = session(overrides=("configuration.mapreduce.map.memory.mb=99999",))

        with pytest.raises(SpecError, match=r"mapreduce\.map\.memory\.mb"):
            s.measure()
        assert clusters.started == []

    @pytest.mark.parametrize("content", [None, b"\xff\xfe"])
    def test_that_cannot_be_read(self, tmp_path, content):
        """
        A missing file and one that is no text.
        """
        path = tmp_path / "e.yaml"
        if content is not None:
            path.write_bytes(content)

        with pytest.raises(SpecError, match="the experiment file cannot be read"):
            read_experiment_file(path)

    @pytest.mark.parametrize("written", ["experiments/smok.yaml", "smoke", "smoke.yml"])
    def test_whose_name_is_misspelled(self, tmp_path, monkeypatch, written):
        """
        The file of nearly that name is offered, those below experiments/ among them.
        """
        (tmp_path / "experiments").mkdir()
        (tmp_path / "experiments" / "smoke.yaml").write_text(EXPERIMENT)
        monkeypatch.chdir(tmp_path)

        with pytest.raises(SpecError) as caught:
            read_experiment_file(Path(written))

        assert caught.value.where == str(tmp_path / written)
        assert caught.value.fix == "did you mean experiments/smoke.yaml?"

    @pytest.mark.parametrize("content", [b"\xff\xfe", "schema: 1".encode("utf-16")])
    def test_that_is_no_text(self, tmp_path, content):
        """
        Its name is right: no other file is offered.
        """
        (tmp_path / "inf.yaml").write_text(EXPERIMENT)
        path = tmp_path / "info.yaml"
        path.write_bytes(content)

        with pytest.raises(SpecError) as caught:
            read_experiment_file(path)

        advice = "name an experiment file, such as experiments/demo.yaml"
        assert caught.value.fix == f"save it as UTF-8 text, or {advice}"

    def test_whose_name_is_too_long(self, tmp_path):
        """
        Nothing of such a name is looked for.
        """
        with pytest.raises(SpecError, match="File name too long") as caught:
            read_experiment_file(tmp_path / ("x" * 5000))

        assert caught.value.fix.startswith("name an experiment file")

    def test_that_is_the_folder_of_its_run(self, tmp_path):
        """
        The file in it is offered; of another folder, a ready-made one.
        """
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "experiment.yaml").write_text(EXPERIMENT)

        with pytest.raises(SpecError) as of_run:
            read_experiment_file(tmp_path / "run")
        with pytest.raises(SpecError) as of_another:
            read_experiment_file(tmp_path)

        assert of_run.value.fix == f"did you mean {tmp_path / 'run' / 'experiment.yaml'}?"
        assert "experiments/demo.yaml" in of_another.value.fix


class TestCollect:
    def test_makes_all_traces_again(self, measured):
        """
        They are derived from the raw logs, and come out the same.
        """
        _, run = measured
        before = {i: run.read_trace(i) for i in run.trials()}
        for trial_id in before:
            shutil.rmtree(run.trial_dir(trial_id) / "trace")

        assert main(["collect", str(run.path)]) == 0
        assert {i: run.read_trace(i) for i in before} == before

    def test_needs_a_run(self, session):
        """
        Nothing to collect is said, not skipped.
        """
        with pytest.raises(DataError, match="no run of experiment small"):
            session().newest()

    @pytest.mark.parametrize(
        ("state", "history"), [("failed", b"Avro-Json\n{"), ("timed_out", b""), ("failed", None)]
    )
    def test_a_failed_trial_may_lack_a_history(self, session, run, state, history):
        """
        What broke the trial may have broken its history: it has no trace, and is no obstacle.
        """
        record = _commit(session, run, state, history)

        assert not remake_trace(run, record)
        assert run.read_trace(record.trial.id) == ()

    def test_a_done_trial_must_have_one(self, session, run):
        """
        Without it the measurement is not there.
        """
        record = _commit(session, run, "done", None)

        with pytest.raises(DataError, match="has no history"):
            remake_trace(run, record)


def _commit(session, run, state, history):
    """
    A trial that ended so, and left this history.
    """
    trial = session().trials[0]
    folder = run.start_trial(trial)
    if history is not None:
        (folder.raw / "job-0-history.jhist").write_bytes(history)
    record = TrialRecord(
        trial=trial, state=state, started_s=1.0, finished_s=2.0, reason="why", versions=VERSIONS
    )
    folder.commit(record)
    return record


MODELS = ["predict.models=[scaling, whatif]"]


def lent_by(word, more=""):
    """
    What a file says that takes its profiles from the run called so.
    """
    return [f"predict={{models: [whatif], from: {word}{more}}}", "seed=8"]


def borrowing(session, lender):
    """
    A finished run whose profiles are those of the *lender*, which its file named by its path.
    """
    return session(overrides=lent_by(lender.path)).measure()[0]


class TestAskAgain:
    """
    What was measured once is asked again; nothing is measured, and no other run is answered for.
    """

    @pytest.mark.process
    def test_other_models_make_an_analysis(self, session, measured, capsys):
        """
        Sealed after the measurement, beside the run, which stays as it is.
        """
        _, run = measured
        evaluation = session(overrides=MODELS).evaluation(asks=True)
        sealed = run.seal.path.read_bytes()
        with analyse(run, evaluation.experiment) as (analysis, _):
            pass

        (stored,) = run.analyses()
        assert stored.id == analysis.run.id.lstrip(".")
        assert sorted(stored.read_predictions()) == ["scaling", "whatif"]
        assert stored.read_manifest().analysis_of == run.id
        assert blind_refusals(stored, stored.trials().values()) != []
        assert (run.seal.path.read_bytes(), run.check_evidence()) == (sealed, True)
        assert stored.check_evidence()
        assert [] not in [stored.read_scores().scores, [*stored.path.glob("report.html")]]
        assert session(overrides=MODELS).evaluation().run.path == stored.path
        assert main(["reproduce", str(stored.path)]) == 0
        assert "scores: equal" in capsys.readouterr().out

    @pytest.mark.process
    def test_other_profiling_cells_swap_what_is_scored(self, session, measured):
        """
        The cells that fed the profile are scored, and those that were scored feed it.
        """
        _, run = measured
        factor = "mapreduce.task.io.sort.factor"
        experiment = asked_anew(run, "", [f"{factor}=10"])
        with analyse(run, experiment) as (analysis, _):
            scores = analysis.run.read_scores()
            profile = analysis.run.read_profiles()["terasort"]

        before = {each.cell for each in run.read_predictions()["whatif"]}
        assert {each.cell for each in scores.scores}.isdisjoint(before)
        assert {job.cell for job in profile.jobs} == before

    @pytest.mark.process
    def test_the_profiles_of_another_run_are_kept(self, session, measured, capsys):
        """
        With which run they are of, whatever the file calls it: that run may be gone, and other
        models are asked in the place of the run's, or beside them, scored and made again.
        """
        run = borrowing(session, measured[1])
        profile = (run.path / "profiles" / "terasort.json").read_bytes()
        shutil.rmtree(measured[1].path)

        assert run.experiment().predict.source == measured[1].id
        assert main(["predict", str(run.path), "--models", "scaling"]) == 0
        assert main(["predict", str(run.path), "--model", "scaling", "--model", "ernest"]) == 0
        instead, besides = run.analyses()
        assert [*instead.read_predictions()] == ["scaling"]
        assert [*besides.read_predictions()] == ["ernest", "scaling", "whatif"]
        for asked in (run, instead, besides):
            assert (asked.path / "profiles" / "terasort.json").read_bytes() == profile
            assert asked.experiment().predict.source == measured[1].id
            commands = ("score", "report", "reproduce", "profile", "show")
            assert [main([name, str(asked.path)]) for name in commands] == [0] * 5
        assert main(["predict", str(besides.path), "--models", "whatif"]) == 0
        assert f"of the run {measured[1].id}" in (besides.path / "report.md").read_text()

    def test_a_file_names_the_run_that_lends_its_profiles_as_it_likes(self, session, measured):
        """
        Its path, its id, or the first characters of that; gone, it is the one that is stored, and
        so it is where an older harness has stored the file's own word.
        """
        lender = measured[1]
        run = borrowing(session, lender)
        words = [str(lender.path), lender.id, lender.id[:-1]]

        found = [session(overrides=lent_by(word)).evaluation().run.path for word in words]
        older = run.experiment().model_dump(mode="json")
        older["predict"]["source"] = words[0]
        run.update_manifest(experiment=older)
        found.append(session(overrides=lent_by(words[0])).evaluation().run.path)
        shutil.rmtree(lender.path)
        found.append(session(overrides=lent_by(words[0])).evaluation(asks=True).run.path)

        assert set(found) == {run.path}

    @pytest.mark.process
    def test_profiles_of_yet_another_run(self, session, measured):
        """
        A file or an option may name another run than that whose profiles were taken.
        """
        lender = measured[1]
        run = borrowing(session, lender)
        other, _ = session(overrides=["seed=9"]).measure()
        of_file = session(overrides=lent_by(other.id)).evaluation(asks=True)

        refusal = pytest.raises(DataError, match=f"does not keep the profiles of run {other.id}")
        with refusal, analyse(run, of_file.experiment):
            pass
        with pytest.raises(DataError, match="was asked with other from than the file's"):
            session(overrides=lent_by(other.id)).evaluation()
        assert of_file.borrowed == other.read_profiles()
        assert main(["predict", str(run.path), "--from", str(other.path)]) == 0
        assert main(["predict", str(lender.path), "--from", str(other.path)]) == 0
        for asked in (run, lender):
            (analysis,) = asked.analyses()
            assert analysis.experiment().predict.source == other.id
            assert analysis.read_profiles() == other.read_profiles()
        assert main(["predict", str(run.path), "--from", "x", "--profile-on", "input=1"]) == 2
        assert main(["predict", str(run.path), "--hardware", "a", "b"]) == 2

    @pytest.mark.process
    def test_profiles_of_its_own_in_the_place_of_another_runs(self, session, measured):
        """
        What `--profile-on` selects makes them.
        """
        run = borrowing(session, measured[1])

        experiment = asked_anew(run, "", ["mapreduce.task.io.sort.factor=3"])
        with analyse(run, experiment) as (analysis, _):
            profile = analysis.run.read_profiles()["terasort"]

        assert experiment.predict.source == ""
        assert {job.trial for job in profile.jobs} < set(run.trial_ids())

    @pytest.mark.process
    def test_another_runs_profiles_where_the_order_is_mixed(self, session, measured):
        """
        They are taken when all is measured, by the steps one after the other, or at once.
        """
        overrides = lent_by(measured[1].id, ", order: mixed")
        s = session(overrides=overrides)
        run, _ = s.measure()

        with pytest.raises(DataError, match=f"profiles are those of run {measured[1].id}"):
            s.evaluation(run).profile()
        assert not run.seal.exists()
        assert s.evaluation(asks=True).borrowed == measured[1].read_profiles()
        s.seal(run)
        assert run.seal.exists()
        assert run.read_profiles() == measured[1].read_profiles()

    @pytest.mark.process
    def test_what_fails_leaves_nothing(self, session, measured):
        """
        No half-made analysis is among the others, nor beside them.
        """
        _, run = measured
        with pytest.raises(KeyboardInterrupt), analyse(run, run.experiment()):
            raise KeyboardInterrupt
        with pytest.raises(SpecError, match="there is no model 'whatiff'"):
            asked_anew(run, "whatiff", ())
        with pytest.raises(SpecError, match=r"no cell has mapreduce\.task\.io\.sort\.factor 7"):
            asked_anew(run, "", ["mapreduce.task.io.sort.factor=3,7"])

        assert [*run.path.glob("analyses/*")] == []

    def test_a_file_is_the_newest_run_that_fits(self, session, measured):
        """
        An empty run hides no other, and a run of something else is no answer.
        """
        s, run = measured
        Store(s.results_dir).open_run(s.experiment, EXPERIMENT, new=True)
        assert session().evaluation().run.path == run.path
        with pytest.raises(DataError, match=r"repeat 2, not 3"):
            session(overrides=["repeat=3"]).evaluation()
        with pytest.raises(DataError, match="asked with other models than the file's"):
            session(overrides=MODELS).evaluation()
        assert session(overrides=["question=Why?"]).evaluation().experiment.title == "Why?"

    def test_trials_are_taken_over(self, session, monkeypatch, clusters):
        """
        On the same machine alone; with them come their logs, and no other trial is measured again.
        """
        facts = {"id": "this", "cpu": "a", "load": 1.0}
        monkeypatch.setattr(manifest, "machine_facts", lambda: facts)
        run, _ = session().measure()
        jobs = len(clusters.jobs)
        monkeypatch.setattr(reuse, "machine_facts", lambda: {**facts, "cpu": "b"})
        assert reuse.take_over(run, Store(run.path.parents[1]), session().trials) == {}
        monkeypatch.setattr(reuse, "machine_facts", lambda: {**facts, "load": 2.0})
        third, failed = session(overrides=["repeat=3"]).measure(reuse=True)

        assert (failed, len(third.trials())) == (0, 6)
        assert set(third.read_manifest().reused) == set(run.trials())
        assert third.check_evidence()
        assert clusters.jobs[jobs:] == ["teragen", "terasort", "terasort"]
        assert blind_refusals(third, third.trials().values()) != []

    def test_a_run_that_goes_on_keeps_what_it_was_sealed_with(self, session):
        """
        Other profiling cells are asked of it later: its plan and its seal agree to the end.
        """
        swapped = ["predict.profile_on={mapreduce.task.io.sort.factor: [10]}"]
        with pytest.raises(KeyboardInterrupt):
            session(console=Interrupted(3)).measure()
        s = session(overrides=swapped)
        run, failed = s.measure()

        assert (failed, len(run.trials())) == (0, 4)
        assert Evaluation.of(run).score(strict=True).scores

    def test_before_the_seal_the_profiling_cells_may_change(self, session):
        """
        A trial has the use that the plan gives it now, and one that is scored was not blind.
        """
        swapped = ["predict.profile_on={mapreduce.task.io.sort.factor: [10]}"]
        with pytest.raises(KeyboardInterrupt):
            session(console=Interrupted(1)).measure()
        run, _ = session(overrides=swapped).measure()
        uses = [record.trial.profiling for record in run.trials().values()]

        assert (sum(uses), len(uses)) == (2, 4)
        assert Evaluation.of(run).score().scores
        with pytest.raises(EvidenceError, match="was measured before the predictions"):
            Evaluation.of(run).score(strict=True)


NEARER = ["predict.models=[whatif, whatif-printed]", "question={nearer: [whatif, whatif-printed]}"]


class TestAuto:
    INPUTS = ", ".join(f"{2 * number} MiB" for number in range(1, 13))
    OVERRIDES = (
        f"workloads=[{{name: terasort, input: [{INPUTS}]}}]", "configuration={}",
        "predict.profile_on=auto", *NEARER[:1], "question={how_far: best}",
    )  # fmt: skip

    def test_chosen_cells_are_stored_and_known_again(self, session):
        """
        A run and the file ask the same; the question leaves extrapolated cells out.
        """
        s = session(overrides=self.OVERRIDES)
        run = s.open_run(new=True)
        again = session(overrides=self.OVERRIDES).experiment

        assert s.experiment.predict.cells
        assert run.experiment().predict == again.predict == s.experiment.predict
        assert run.experiment().question.extrapolate == "out"
        assert {t.cell.id for t in s.trials if t.profiling} == {*s.experiment.predict.cells}

    def test_a_plan_shows_what_they_cover(self, session):
        """
        And that they take no more than a third of the time.
        """
        planned = session(overrides=self.OVERRIDES).plan()
        (row,) = planned["profiling"]["workloads"]

        assert planned["profiling"]["share"] <= 0.36
        assert {"one wave of maps", "several waves of maps"} <= {*row["covers"]}
        assert (row["workload"], row["extrapolated"]) == ("terasort", {})
        assert len(row["cells"]) + row["scored"] == 12

    def test_other_cells_may_be_named_afterwards(self, session):
        """
        Options give axes in the place of the word; without them the chosen cells stay.
        """
        run = session(overrides=self.OVERRIDES).open_run(new=True)
        manifest.record_command(run, run.experiment(), VERSIONS, self.OVERRIDES)
        named = asked_anew(run, "", ["input=[2 MiB, 4 MiB]"]).predict
        kept = asked_anew(run, "scaling", []).predict

        assert (named.is_auto, named.profile_on["input"]) == (False, (str(2**21), str(2**22)))
        assert kept.cells == run.experiment().predict.cells

    def test_a_grid_that_is_too_small_is_refused_at_its_place(self, session):
        """
        With what to do.
        """
        overrides = [override for override in self.OVERRIDES if "workloads" not in override]
        with pytest.raises(SpecError, match="no profiling cells among 1 cell") as caught:
            session(overrides=overrides).plan()

        assert "small.yaml" in caught.value.where
        assert "give an axis more values" in caught.value.fix

    def test_a_profile_that_covers_nothing_is_refused_where_it_has_to_cover(self, session):
        """
        Else a plan warns: what, where, fix.
        """
        small = [*self.OVERRIDES[:2], "predict.profile_on={input: [2 MiB]}", *NEARER[:1]]
        asked = session(overrides=[*small, "question={how_far: best, extrapolate: out}"])
        warned = session(overrides=[*small, "question={how_far: best}"])
        warned.plan()

        with pytest.raises(SpecError, match="covers no regime that is asked: 11 of 11") as caught:
            asked.measure()
        assert "profile_on: auto" in caught.value.fix
        assert any(
            "covers no regime that is asked: 11 of 11 scored cells of terasort" in line
            and "several waves of maps" in line
            and "(at: predict.profile_on; fix: profile_on: auto)" in line
            for line in warned.console.lines
        )


class TestQuestion:
    def test_a_design_in_which_perfection_stays_undecided_is_refused(self, session, clusters):
        """
        Before anything is started, with what would do.
        """
        with pytest.raises(
            SpecError, match=r"cannot be decided, .* 80 are needed: 1 cell .*8 cells: 80"
        ) as caught:
            session(overrides=NEARER).measure()

        assert "--anyway" in caught.value.fix
        assert clusters.running == 0

    def test_a_plan_says_what_it_decides_and_that_it_would_be_refused(self, session):
        """
        It starts nothing, so it is shown.
        """
        s = session(overrides=NEARER)
        planned = s.plan()["decides"]

        assert (planned["units"], planned["gap"], planned["enough"]) == (1, None, 8)
        assert planned["spread"] == "typical of the published grids"
        assert any(line.startswith("warning: harness run refuses this") for line in s.console.lines)

    @pytest.mark.parametrize(
        ("profiled", "units"), [("input: 16 MiB", 14), ("input: [16 MiB, 48 MiB]", 6)]
    )
    def test_who_extrapolates_asks_about_the_cells_outside_alone(self, session, profiled, units):
        """
        A plan counts none that lies between those that are profiled.
        """
        inputs = ", ".join(f"{8 * number} MiB" for number in range(1, 9))
        asked = session(
            overrides=[
                *NEARER[:1],
                f"workloads=[{{name: terasort, input: [{inputs}]}}]",
                f"predict.profile_on={{{profiled}}}",
                "question={how_far: best, extrapolate: true}",
            ]
        )

        assert asked.decision().design.units == units

    @pytest.mark.parametrize(("tried", "is_refused"), [(1, False), (2, True), (99, True)])
    def test_a_choice_needs_more_settings_than_are_tried(self, session, tried, is_refused):
        """
        Two values of one property are two settings of each input.
        """
        inputs = "workloads=[{name: terasort, input: [8 MiB, 16 MiB]}]"
        overrides = [inputs, *NEARER[:1], f"question={{choice: {tried}}}"]
        asked = session(overrides=[*overrides, "predict.profile_on={input: 8 MiB}"])
        if is_refused:
            with pytest.raises(SpecError, match="and none has more than 2"):
                asked.plan()
        else:
            assert "decides" not in asked.plan()

    def test_extrapolation_needs_a_cell_outside(self, session):
        """
        A plan warns, and nothing is measured.
        """
        asked = session(
            overrides=[
                "workloads=[{name: terasort, input: [8 MiB, 16 MiB, 32 MiB]}]",
                *NEARER[:1],
                "predict.profile_on={input: [8 MiB, 32 MiB]}",
                "question={how_far: best, extrapolate: true}",
            ]
        )
        with pytest.raises(SpecError, match="outside of what is profiled, and there is none"):
            asked.measure()

    def test_one_model_is_compared_with_none(self, session):
        """
        A plan says nothing of a decision.
        """
        assert "decides" not in session().plan()

    def test_is_sealed_with_the_predictions(self, session):
        """
        And answered as such.
        """
        s = session(overrides=["question={how_far: whatif}"])
        run, _ = s.measure()
        book = s.evaluation(run).score()

        assert run.seal.question() == Question(how_far="whatif")
        assert (book.answer.asked, book.answer.question.title) == ("sealed", "")
        assert book.answer.sentence.startswith("whatif is off by ")

    def test_asked_anyway_it_is_explored(self, session):
        """
        Its pairs are no family of their own.
        """
        s = session(overrides=[*NEARER, "question.anyway=true"])
        run, _ = s.measure()
        book = s.evaluation(run).score()

        assert book.answer.asked == "explored"
        assert book.asked() == []

    def test_changed_after_the_seal_it_is_refused(self, session):
        """
        The words may change, and what is asked may not.
        """
        s = session()
        run, _ = s.measure()
        session(overrides=["question=In other words?"]).evaluation(run).score()

        other = session(overrides=["question={how_far: whatif}"]).evaluation(run)
        with pytest.raises(EvidenceError, match="the question was changed after the seal"):
            other.score()

    def test_of_a_run_that_sealed_none_it_is_asked_afterwards(self, session):
        """
        As of all that earlier versions measured.
        """
        s = session()
        run, _ = s.measure()
        seal = json.loads(run.seal.path.read_text())
        del seal["question"]
        run.seal.path.write_text(json.dumps(seal))
        chain = run.path / "trials.jsonl"
        chain.write_text("\n".join(chain.read_text().splitlines()) + "\n")

        found, asked = asked_question(s.evaluation(run))
        assert (found.how_far, asked) == (BEST, "afterwards")

    def test_the_spread_of_an_earlier_run_counts(self, session, monkeypatch):
        """
        By its name; a damaged one says nothing.
        """
        s = session()
        run, _ = s.measure()
        s.evaluation(run).score()
        known = replace(TYPICAL, origin=f"run {run.id}")
        monkeypatch.setattr(decides, "spread_of", lambda _, origin: replace(known, origin=origin))

        later = session(overrides=["predict.models=[whatif, whatif-printed]"])
        assert later.plan()["decides"]["spread"] == f"run {run.id}"

    def test_a_run_that_is_not_there_cannot_have_moved(self, session):
        """
        Before anything is measured.
        """
        with pytest.raises(DataError, match="20200101"):
            session(overrides=["question={moved_since: 20200101}"]).measure()
