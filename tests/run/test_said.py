"""
What a run writes down and says: refusals in three parts, estimates, added trials, rates, commands.
"""

import sys

from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.base.errors import DataError, HarnessError, JobError, MachineError, SpecError
from harness.base.records.manifest import NodeGpus
from harness.base.records.score import Measurement
from harness.base.records.trace import JobTrace, TaskAttempt
from harness.base.records.trial import (
    Cell,
    ClusterSpec,
    Limit,
    NodeSpec,
    Tracing,
    Trial,
    TrialRecord,
    WorkloadSpec,
)
from harness.base.units import MIB
from harness.base.version import __version__
from harness.cli.console.asked import asked_anew
from harness.clusters.survey import Devices, Gpu, RanOn
from harness.clusters.workloads import WORKLOADS
from harness.core.evaluate.own_code import read_own
from harness.core.evaluate.resolved import resolve_cell
from harness.core.experiment.file import read_experiment
from harness.core.experiment.grid import expand
from harness.core.experiment.model import ClusterAxes, Experiment, Node, Predict, WorkloadAxes
from harness.core.run import jobs as jobs_module
from harness.core.run import manifest as manifest_module
from harness.core.run import preflight as preflight_module
from harness.core.run import rates as rates_module
from harness.core.run import repeats as repeats_module
from harness.core.run.asking import with_models, with_use
from harness.core.run.estimate import BYTES_PER_S, GENERATION_S, TRIAL_S, Estimator
from harness.core.run.execute import move_behind_its_use
from harness.core.run.experiment_file import cluster_refusals, meant_file, read_experiment_file
from harness.core.run.jobs import JobRunner, TimeLimitError, find_files, last_line
from harness.core.run.manifest import (
    record_command,
    record_limits,
    record_versions,
    refuse_other_versions,
    source_commit,
)
from harness.core.run.plan import basis_of_estimate, place_of_reason
from harness.core.run.preflight import Preflight, memory_needed
from harness.core.run.rates import record_gpus, record_micro, record_rates
from harness.core.run.repeats import more_of_fastest, until_decided
from harness.core.run.reuse import is_same, take_over
from harness.core.run.trial import verify_counters, verify_number
from harness.core.store import Store
from harness.core.store.traces import remake_trace
from tests.run.fakes import VERSIONS, Client, FakeHdfs, RecordingConsole, Rounds, terasort
from tests.run.test_execute import RATES

GIB = 1024 * MIB


def parts_of(caught):
    """
    The three parts of the error that was caught.
    """
    return (caught.value.what, caught.value.where, caught.value.fix)


class TestExperimentFile:
    def test_that_is_not_there_may_be_meant_otherwise(self, tmp_path, monkeypatch):
        """
        One beside it, one below it, or one of those that lie here.
        """
        monkeypatch.chdir(tmp_path)
        (tmp_path / "experiments").mkdir()
        (tmp_path / "experiments/demo.yaml").write_text("")
        (tmp_path / "quick.yaml").write_text("")
        (tmp_path / "run").mkdir()
        (tmp_path / "run/experiment.yaml").write_text("")

        assert meant_file(tmp_path / "quik.yaml") == f"did you mean {tmp_path / 'quick.yaml'}?"
        assert meant_file(tmp_path / "dmo") == "did you mean experiments/demo.yaml?"
        run = tmp_path / "run"
        assert meant_file(run) == f"did you mean {run / 'experiment.yaml'}?"
        assert meant_file(tmp_path / "zzzzzz") == (
            "name an experiment file, such as experiments/demo.yaml"
        )

    def test_that_cannot_be_read_says_why(self, tmp_path):
        """
        In the words of the system, or that it is no text.
        """
        with pytest.raises(SpecError) as caught:
            read_experiment_file(tmp_path / "none.yaml")
        assert caught.value.what == (
            "the experiment file cannot be read: No such file or directory"
        )
        assert caught.value.where == str(tmp_path / "none.yaml")
        (tmp_path / "a.yaml").write_bytes(b"\xff")
        with pytest.raises(SpecError, match="cannot be read: it is not UTF-8 text"):
            read_experiment_file(tmp_path / "a.yaml")
        (tmp_path / "b.yaml").write_text("é")
        assert read_experiment_file(tmp_path / "b.yaml") == "é"

    def test_of_a_cluster_that_cannot_run_it_says_all(self):
        """
        What Hadoop refuses, and what its provider cannot limit.
        """
        cluster = ClusterSpec(provider="existing", node=NodeSpec(disk_bytes_per_s=MIB))
        refused = cluster_refusals(cluster, {"mapreduce.task.io.sort.mb": "4000"})

        assert any("mapreduce.task.io.sort.mb" in text for text in refused)
        assert any("disk" in text for text in refused)
        assert cluster_refusals(ClusterSpec(), {}) == []

    def test_places_of_reasons_are_those_of_their_keys(self):
        """
        The longest key that is named, or the end of a path; else the file.
        """
        positions = {"a.b": "f:1", "a.b.c": "f:2", "node": "f:3", "workers": "f:4", "word": "f:5"}

        assert place_of_reason("a.b.c is 3", positions, "f") == "f:2"
        assert place_of_reason("a.b is 3", positions, "f") == "f:1"
        assert place_of_reason("set cluster.node.gpus", positions, "f") == "f:3"
        assert place_of_reason("set cluster.workers", positions, "f") == "f:4"
        assert place_of_reason("a word", positions, "f") == "f"
        assert place_of_reason("set cluster.none.other", positions, "f") == "f"


class TestEstimates:
    def test_rest_on_runs_of_the_same_workload(self):
        """
        One, several, or a rule.
        """
        trial = terasort()
        record = TrialRecord(
            trial=trial, state="done", started_s=20.0, finished_s=30.0, versions=VERSIONS,
            job_ids=("job_1_0001",),
        )  # fmt: skip
        one = Estimator([(10.0, [record])])
        two = Estimator([(10.0, [record])] * 2)

        assert basis_of_estimate([trial], one) == "from 1 earlier run on this machine"
        assert basis_of_estimate([trial], two) == "from 2 earlier runs on this machine"
        assert basis_of_estimate([trial], Estimator([])) == (
            "no earlier run of terasort here: within a factor of two"
        )

    def test_by_the_rule_are_a_constant_and_the_bytes(self):
        """
        Of the work, and of making the input.
        """
        cell = terasort().cell
        spec = cell.workload.model_copy(update={"input_bytes": 3 * BYTES_PER_S})
        resolved = resolve_cell(cell.model_copy(update={"workload": spec}))

        assert Estimator([]).seconds(resolved) == TRIAL_S + 3
        assert Estimator([]).seconds(resolved, is_generation=True) == GENERATION_S + 3


class TestAsking:
    @pytest.fixture
    def stored(self, tmp_path):
        """
        A run whose experiment asks two models.
        """
        text = """
        schema: 1
        name: small
        question: q
        workloads: [{name: terasort, input: [1 MiB, 2 MiB]}]
        predict: {models: [whatif, scaling], profile_on: {input: [1 MiB]}}
        """
        return Store(tmp_path).open_run(read_experiment(text, "a", ()), text)

    def test_other_models_leave_the_profiles(self, stored):
        """
        Only what is named changes.
        """
        asked = asked_anew(stored, "whatif-mr2,ptc-wave", ())

        before = stored.experiment()
        assert asked.predict.models == ("whatif-mr2", "ptc-wave")
        assert asked.predict.profile_on == before.predict.profile_on
        assert asked.model_copy(update={"predict": before.predict}) == before

    def test_other_profiling_cells_leave_the_models(self, stored):
        """
        With or without brackets.
        """
        for text in ("input=2 MiB", "input=[2 MiB]"):
            asked = asked_anew(stored, "", (text,))
            assert asked.predict.models == ("whatif", "scaling")
            assert asked.predict.profile_on == {"input": (str(2 * MIB),)}

    def test_a_slip_is_refused_as_in_a_file(self, stored):
        """
        With what may be meant.
        """
        with pytest.raises(SpecError, match="whatfi"):
            asked_anew(stored, "whatfi", ())

    def test_imported_runs_have_their_profiles_fixed(self, tmp_path):
        """
        Their models may be others, each once.
        """
        experiment = Experiment(
            name="past", question="q", cluster=ClusterAxes(provider="history"),
            workloads=(WorkloadAxes(name="w", input_bytes=(MIB,)),),
        )  # fmt: skip
        run = SimpleNamespace(experiment=lambda: experiment)

        with pytest.raises(SpecError) as caught:
            asked_anew(run, "whatif", ("input=1 MiB",))
        assert parts_of(caught) == (
            "which jobs feed its profiles was fixed when the run was imported",
            "--profile-on",
            "harness import --profile-share makes another run of the same histories",
        )
        assert asked_anew(run, "whatif,whatif,scaling", ()).predict.models == ("whatif", "scaling")
        assert with_models(experiment, []).predict == experiment.predict

    def test_trials_are_used_as_is_asked(self, stored):
        """
        Where they were imported their moment has decided it.
        """
        small, large = expand(stored.experiment())
        predict = stored.experiment().predict
        trials = [Trial.of(cell, 0, VERSIONS) for cell in (small, large)]

        assert [with_use(trial, predict).profiling for trial in trials] == [True, False]
        past = small.model_copy(update={"cluster": ClusterSpec(provider="history")})
        imported = Trial.of(past, 0, VERSIONS)
        assert with_use(imported, predict) == imported


class TestFastest:
    def evaluation(self, times_s, repeat=3, fastest=1):
        """
        A run in which each cell has these job times, by its input.
        """
        cells = {}
        measurements = []
        plan = []
        for (name, factor), seconds in times_s.items():
            cell = Cell(
                cluster=ClusterSpec(),
                workload=WorkloadSpec(name=name, input_bytes=MIB),
                configuration={"mapreduce.task.io.sort.factor": str(factor)},
            )
            cells[cell.id] = cell
            for number, time_s in enumerate(seconds):
                plan.append(Trial.of(cell, number, VERSIONS))
                measurements.append(
                    Measurement(
                        cell=cell.id,
                        workload=name,
                        trial=plan[-1].id,
                        input=f"{name} {MIB}",
                        raw_s={"job_s": time_s},
                        reference_s={},
                    )
                )
        experiment = SimpleNamespace(repeat=repeat, fastest=fastest, budget_s=1000.0, sentinels=0)
        return SimpleNamespace(
            experiment=experiment, plan=plan, cells=cells, measurements=lambda: measurements
        )

    def test_cells_of_each_input_get_the_rest_of_their_repeats(self):
        """
        By their mean; each says why, and belongs to the next look.
        """
        made = self.evaluation(
            {("sort", 1): [9.0], ("sort", 2): [5.0], ("wordcount", 3): [2.0, 4.0],
             ("wordcount", 4): [2.5]}
        )  # fmt: skip
        added = more_of_fastest(made, VERSIONS)

        factors = [
            (trial.cell.configuration["mapreduce.task.io.sort.factor"], trial.repetition)
            for trial in added
        ]
        assert sorted(factors) == [("2", 1), ("2", 2), ("4", 1), ("4", 2)]
        assert [trial.repetition for trial in added] == [1, 1, 2, 2]
        assert {trial.look for trial in added} == {1}
        assert {trial.reason for trial in added} == {
            "of its input it is one of the 1 fastest cells"
        }

    def test_cells_that_have_all_get_none(self):
        """
        Then it ends.
        """
        made = self.evaluation({("sort", 1): [9.0, 9.0, 9.0], ("sort", 2): [10.0]})

        assert more_of_fastest(made, VERSIONS) == []


class TestUntilDecided:
    def evaluation(self, durations_s, budget_s=1000.0, look=0):
        """
        A run in which each cell took these seconds; its manifest is kept.
        """
        cells = {}
        plan = []
        done = {}
        for number, seconds in enumerate(durations_s):
            cell = Cell(
                cluster=ClusterSpec(workers=1 + number % 2),
                workload=WorkloadSpec(name="sort", input_bytes=MIB * (1 + number)),
            )
            cells[cell.id] = cell
            for repetition, time_s in enumerate(seconds):
                trial = Trial.of(cell, repetition, VERSIONS, look=look)
                plan.append(trial)
                done[trial.id] = TrialRecord(
                    trial=trial, state="done", started_s=10.0, finished_s=10.0 + time_s,
                    versions=VERSIONS,
                )  # fmt: skip
        written = {}
        return SimpleNamespace(
            experiment=SimpleNamespace(budget_s=budget_s, sentinels=0),
            plan=plan,
            cells=cells,
            done=done,
            run=SimpleNamespace(update_manifest=written.update),
            score=lambda: None,
            measurements=list,
            written=written,
        )

    def added(self, monkeypatch, made, cells, reason="it is close"):
        """
        Trials that are added where these *cells* are to be repeated, and what is said.
        """
        monkeypatch.setattr(repeats_module, "next_repeats", lambda *_: (cells, reason))
        console = RecordingConsole()
        return until_decided(made, VERSIONS, console), console.lines

    def test_repeats_those_that_may_decide(self, monkeypatch):
        """
        Each cluster is started once; the reason stands in each trial.
        """
        made = self.evaluation([[5.0, 7.0], [9.0, 9.0], [1.0, 1.0]])
        first, second, third = made.cells
        trials, said = self.added(monkeypatch, made, [first, second, third, first])

        clusters = [trial.cell.cluster.id for trial in trials]
        assert clusters == sorted(clusters)
        assert sorted((trial.cell.id, trial.repetition) for trial in trials) == sorted(
            [(first, 2), (first, 3), (second, 2), (third, 2)]
        )
        assert {(trial.look, trial.reason) for trial in trials} == {(1, "it is close")}
        assert said == []
        assert made.written == {}

    def test_ends_with_its_budget(self, monkeypatch):
        """
        What would exceed it is not begun, nor what comes behind.
        """
        made = self.evaluation([[5.0, 7.0], [9.0, 9.0]], budget_s=36.0)
        first, second = made.cells
        trials, _ = self.added(monkeypatch, made, [first, second, first])
        assert [trial.cell.id for trial in trials] == [first]

        tight = self.evaluation([[5.0, 7.0]], budget_s=17.9)
        trials, said = self.added(monkeypatch, tight, [*tight.cells])
        ended = "the budget is spent; it is close"
        assert (trials, said) == ([], [f"no more trials: {ended}"])
        assert tight.written == {"repeats_ended": ended}

    def test_ends_with_its_looks(self, monkeypatch):
        """
        Eight of them.
        """
        made = self.evaluation([[5.0, 7.0]], look=7)
        trials, said = self.added(monkeypatch, made, [*made.cells])
        assert (trials, said) == ([], ["no more trials: 8 looks are spent; it is close"])
        made = self.evaluation([[5.0, 7.0]], look=6)
        assert len(self.added(monkeypatch, made, [*made.cells])[0]) == 1

    def test_ends_with_its_verdict(self, monkeypatch):
        """
        Or where nothing was done.
        """
        made = self.evaluation([[5.0, 7.0]])
        assert self.added(monkeypatch, made, [], "a is nearer")[1] == [
            "no more trials: a is nearer"
        ]
        nothing = self.evaluation([[5.0]])
        nothing.done.clear()
        assert self.added(monkeypatch, nothing, ["x"])[1] == [
            "no more trials: no scored trial was done"
        ]


class TestVerified:
    def test_as_many_jobs_as_planned(self, monkeypatch):
        """
        One at least.
        """
        monkeypatch.setitem(WORKLOADS, "rounds", Rounds(3))
        cell = resolve_cell(terasort(name="rounds").cell)

        verify_number(cell, 3)
        with pytest.raises(JobError, match=r"^2 jobs ran, and a trial of rounds has 3$"):
            verify_number(cell, 2)
        with pytest.raises(JobError) as caught:
            verify_number(cell, 0)
        assert parts_of(caught) == (
            "the client's log names no job",
            "",
            "read client-0.log of the trial",
        )
        monkeypatch.setitem(WORKLOADS, "rounds", Rounds(None))
        verify_number(resolve_cell(terasort(name="rounds").cell), 7)

    def test_no_attempt_that_was_repeated(self):
        """
        The first is named, with how many more.
        """

        def attempt(number, state, error=""):
            return TaskAttempt(
                f"a_{number}", f"t_{number}", "map", state, 1.0, 2.0, "w1", error=error
            )

        workload = resolve_cell(terasort().cell).workload
        job = JobTrace("job_1_0001", "n", "u", "SUCCEEDED", 0.0, 0.5, 3.0, 1, 0, ())

        def refusal(*attempts, **fields):
            with pytest.raises(JobError) as caught:
                verify_counters(workload, replace(job, attempts=attempts, **fields), None)
            return caught.value.what

        one = attempt(0, "failed", "java.io.IOException: bad\n\tat a.B")
        assert refusal(one) == (
            "a_0 on w1 failed and was repeated, so the job took longer than its work:"
            " java.io.IOException: bad"
        )
        assert refusal(attempt(1, "failed"), one, one) == (
            "a_1 on w1 (and 2 more) failed and was repeated, so the job took longer than its"
            " work: no message"
        )
        assert refusal(state="KILLED", diagnostics="d" * 400) == (
            f"job_1_0001 ended as KILLED: {'d' * 300}"
        )


class TestClients:
    def test_say_the_last_error(self, tmp_path):
        """
        Or why the job failed, or their last line; no frames of a stack.
        """
        log = tmp_path / "log"

        def last(text):
            log.write_text(text)
            return last_line(log)

        assert last("a\njava.lang.Exception: x\n\tat a.B\n... 3 more\nb\n") == (
            "java.lang.Exception: x"
        )
        assert last("a\nINFO Job: job_1 failed with state FAILED due to: y\nb") == (
            "job_1 failed with state FAILED due to: y"
        )
        assert last("a\nb\n\n") == "b"
        assert last("") == "its log is empty"
        assert last("Error " + "x" * 400) == "Error " + "x" * 294

    def test_have_files_by_a_word(self):
        """
        In folders as deep as is asked; a folder that is not there has none.
        """
        hdfs = FakeHdfs()
        for path in ("/a/x-1", "/a/b/x-2", "/a/b/y", "/a/b/c/x-3"):
            hdfs.put(path, [b""])

        assert sorted(find_files(hdfs, "/a", "x")) == ["/a/b/c/x-3", "/a/b/x-2", "/a/x-1"]
        assert list(find_files(hdfs, "/a", "x", 0)) == ["/a/x-1"]
        assert sorted(find_files(hdfs, "/a", "x", 1)) == ["/a/b/x-2", "/a/x-1"]
        assert list(find_files(hdfs, "/none", "x")) == []

    @pytest.fixture
    def run_client(self, tmp_path):
        """
        Runs a client that has written *text* and ended with a status, or hangs; gives the cluster
        and what came of it.
        """

        def run(text, status, properties=None, **runner):
            log = tmp_path / "client-0.log"
            cluster = SimpleNamespace(
                dead=runner.pop("dead", {}), clients=[], called=[], secrets=[]
            )

            def client(main_class, argv, *, log, jars):
                cluster.called.append((main_class, tuple(argv), list(jars)))
                log.write_text(text)
                cluster.clients.append(Client(status))
                return cluster.clients[-1]

            cluster.client = client
            cluster.dead_daemons = lambda: cluster.dead
            cluster.put_secret = lambda xml: cluster.secrets.append(xml) or "/conf"
            command = jobs_module.JobCommand("Main", ("in", "out"), program="sort")
            made = JobRunner(cluster, **{"limit_s": 5.0, **runner})
            try:
                return cluster, made.run(command, properties or {}, log)
            except HarnessError as error:
                return cluster, error

        return run

    def test_that_end_well_name_their_jobs(self, run_client):
        """
        Each once, in their order; a job that was only named is none.
        """
        text = (
            "Submitting job_1_0009\nSubmitted application application_1_0001\n"
            "Running job: job_1_0001\nRunning job: job_1_0002\n"
        )
        cluster, submitted = run_client(text, 0, {"a": "1"}, jars=["x.jar"])

        assert submitted == ("job_1_0001", "job_1_0002")
        assert cluster.called == [("Main", ("sort", "-Da=1", "in", "out"), ["x.jar"])]

    def test_that_fail_say_why(self, run_client):
        """
        And how far they came, where there was more than one job.
        """
        _, error = run_client("Running job: job_1_0001\nError: x\n", 3)
        assert (error.what, error.where, error.fix) == (
            "the client ended with status 3: Error: x",
            "client-0.log",
            "read that log and the container logs beside it",
        )
        _, error = run_client("Running job: job_1_0001\nRunning job: job_1_0002\n", 1)
        assert error.what == (
            "the client ended with status 1 after it had submitted job 2, job_1_0002:"
            " Running job: job_1_0002"
        )

    def test_that_fail_by_a_daemon_name_it(self, run_client):
        """
        With where its log is.
        """
        _, error = run_client("Error: x", 1, dead={"datanode on w1": "died"})
        assert "datanode on w1" in error.what
        assert error.what.endswith(" during the trial")
        assert (error.where, error.fix) == ("cluster", "read the daemon's log, kept with the trial")

    def test_that_hang_are_ended_at_their_limit(self, run_client):
        """
        Once whoever asked for it has looked.
        """
        seen = []
        cluster, error = run_client("", None, limit_s=0.0, on_limit=lambda: seen.append(1))

        assert isinstance(error, TimeLimitError)
        assert (error.what, error.where, error.fix) == (
            "the job did not end within its time limit",
            "job client",
            "raise trial_limit, or read the container logs of the trial",
        )
        assert seen == [1]
        assert cluster.clients[0].returncode == -9

    def test_that_hang_are_asked_about(self, run_client, monkeypatch):
        """
        Each second whether the daemons live, and how far the job is.
        """
        monkeypatch.setattr(jobs_module, "_HEALTH_S", 0.0)
        noted = []
        text = "number of splits:4\nRunning job: job_1_0001\n map 50% reduce 10%\n"
        cluster, error = run_client(
            text, None, {"mapreduce.job.reduces": "3"}, limit_s=0.05, note=noted.append
        )
        assert isinstance(error, TimeLimitError)
        assert set(noted) == {"50 % of 4 maps, 10 % of 3 reduces"}
        cluster, error = run_client("", None, dead={"namenode": "died"})
        assert "namenode" in error.what
        assert cluster.clients[0].returncode == -9


class TestManifest:
    def test_says_what_ran_where(self, run, monkeypatch):
        """
        The command, the program, this machine, and the GPUs that nodes offer.
        """
        monkeypatch.setattr(manifest_module, "source_commit", lambda: "abc")
        monkeypatch.setattr(manifest_module, "machine_facts", lambda: {"cpu": "x"})
        monkeypatch.setattr(sys, "argv", ["harness", "run", "a b.yaml"])
        experiment = run.experiment()
        record_command(run, experiment, VERSIONS, ("repeat=3",))

        made = run.read_manifest()
        assert (made.harness, made.commit) == (__version__, "abc")
        assert made.command == "harness run 'a b.yaml'"
        assert (made.versions, made.machine) == (VERSIONS, {"cpu": "x"})
        assert made.python == sys.version.split()[0]
        assert (made.seed, made.overrides, made.gpus) == (experiment.seed, ("repeat=3",), None)
        assert any(name.startswith("pydantic ") for name in made.packages)

    @pytest.mark.parametrize(
        ("node", "per_node", "origin"),
        [
            (Node(gpus=(2,)), (2,), "declared, not detected"),
            (Node(gpus=(0, 3), gpus_found=True), (0, 3), "found on the nodes"),
        ],
    )
    def test_says_where_the_number_of_gpus_is_from(self, run, monkeypatch, node, per_node, origin):
        """
        Of the file, or of the nodes.
        """
        monkeypatch.setattr(manifest_module, "source_commit", lambda: "")
        experiment = run.experiment().model_copy(update={"cluster": ClusterAxes(node=node)})
        record_command(run, experiment, VERSIONS, ())

        gpus = run.read_manifest().gpus
        assert (gpus.per_node, gpus.origin) == (per_node, origin)

    def test_has_the_commit_of_the_source(self, monkeypatch):
        """
        None where git says nothing.
        """
        asked = []

        def run(argv, **options):
            asked.append((argv[0], argv[3:], options))
            return SimpleNamespace(returncode=asked and status, stdout="0123456789ab-dirty\n")

        status = 0
        monkeypatch.setattr(manifest_module.subprocess, "run", run)
        assert source_commit() == "0123456789ab-dirty"
        assert asked[0][:2] == ("git", ["describe", "--always", "--dirty", "--abbrev=12"])
        status = 128
        assert source_commit() == ""

        def none(*_, **__):
            raise FileNotFoundError("git")

        monkeypatch.setattr(manifest_module.subprocess, "run", none)
        assert source_commit() == ""

    def test_has_the_versions_of_the_nodes(self, run):
        """
        One where all agree, else each; what nobody says is unknown.
        """
        same = {"w1": RanOn("3.5.0", "17", "6.1"), "w2": RanOn("3.5.0", "17", "6.1")}
        versions, kernel = record_versions(run, VERSIONS, same)
        assert (versions.hadoop, versions.java, kernel) == ("3.5.0", "17", "6.1")
        assert run.read_manifest().nodes == {"hadoop": "3.5.0", "java": "17", "kernel": "6.1"}

        other = {"w2": RanOn("3.5.0", "", "6.1"), "w1": RanOn("3.5.0", "17", "6.2")}
        versions, kernel = record_versions(run, VERSIONS, other)
        assert versions.java == "w1: 17, w2: unknown"
        assert kernel == "w1: 6.2, w2: 6.1"
        assert run.read_manifest().nodes["java"] == {"w1": "17", "w2": ""}
        assert run.read_manifest().versions == versions

        assert record_versions(run, VERSIONS, {}) == (VERSIONS, "")
        assert run.read_manifest().nodes == {}

    def test_refuses_nodes_that_have_changed(self, run):
        """
        Of Hadoop or Java; a kernel may be another.
        """
        run.update_manifest(nodes={"hadoop": "3.5.0", "java": {"w1": "17", "w2": ""}})

        refuse_other_versions(run, {"w1": RanOn("3.5.0", "17", "9"), "w2": RanOn("", "21", "")})
        for ran_on, text in (
            (RanOn("3.4.0", "17", ""), "w1 has Hadoop 3.4.0 now, and trials of this run ran on"),
            (RanOn("3.5.0", "21", ""), "w1 has Java 21 now, and trials of this run ran on 17"),
        ):
            with pytest.raises(DataError) as caught:
                refuse_other_versions(run, {"w1": ran_on})
            assert caught.value.what.startswith(text)
            assert caught.value.where == str(run.path)
            assert caught.value.fix == "measure again: the same command with --new"

    def test_says_which_limits_are_not_enforced(self, run):
        """
        With both rates.
        """
        limit = Limit(requested=MIB, setting=MIB, measured=MIB, buffered_write=10 * MIB)
        spec = ClusterSpec(node=NodeSpec(disk_bytes_per_s=MIB))

        (sentence,) = record_limits(run, spec, {"w1": {"disk_write": limit}}, 5.0)
        assert sentence == (
            "the limit of w1's disk is not enforced on buffered writes: they were written at"
            " 10 MiB/s, and 1 MiB/s was requested"
        )
        (written,) = run.read_manifest().limits
        assert (written.cluster, written.measured_s) == (spec.id, 5.0)


class TestRates:
    def cluster(self, *hosts):
        """
        A cluster of a master and these workers.
        """
        return SimpleNamespace(hosts=[SimpleNamespace(name=name) for name in ("master", *hosts)])

    def test_are_measured_once_in_a_run(self, run, monkeypatch):
        """
        Of the first worker.
        """
        asked = []
        monkeypatch.setattr(
            rates_module, "measure_worker", lambda _, worker: asked.append(worker.name) or RATES
        )
        for _ in range(2):
            record_rates(run, self.cluster("w1", "w2"), pytest.fail)

        assert asked == ["w1"]
        assert run.read_manifest().rates == {"w1": RATES}

    def test_of_disks_and_networks_are_measured_once(self, run, monkeypatch):
        """
        Of all workers; what cannot be reached or fails is a warning.
        """
        said = []
        record_micro(run, self.cluster(), said.append)
        monkeypatch.setattr(rates_module, "measure_micro", fail)
        record_micro(run, self.cluster("w1"), said.append)
        record_rates(run, self.cluster(), said.append)
        monkeypatch.setattr(rates_module, "measure_worker", fail)
        record_rates(run, self.cluster("w1"), said.append)

        assert said == [
            "warning: nothing is measured without jobs: the nodes cannot be reached from here",
            "warning: no",
            "warning: rates are not measured: the cluster's nodes cannot be reached from here",
            "warning: no",
        ]
        assert not run.read_manifest().micro

    def test_of_gpus_are_described_with_what_is_missing(self, run, monkeypatch):
        """
        A worker that has fewer than it offers, or lost one; of this machine nothing is said here.
        """
        gpu = Gpu(name="A", memory_bytes=1)
        found = {
            "w1": Devices((gpu,), "", ""),
            "w2": Devices((gpu, gpu), "", "Xid 79"),
            "w3": Devices((gpu, gpu), "", ""),
            rates_module.MACHINE: Devices((), "", ""),
            "w4": Devices((), "", ""),
        }
        described = NodeGpus(devices=({"name": "A", "memory_bytes": 1},), library="")
        known = []

        def describe(_cluster, name, _devices, before):
            known.append((name, before))
            return described

        monkeypatch.setattr(rates_module, "find_gpus", lambda _: found)
        monkeypatch.setattr(rates_module, "describe_gpus", describe)
        spec = ClusterSpec(node=NodeSpec(gpus=2))

        assert record_gpus(run, spec, None) == [
            "the GPUs of w1 may not work: 2 offered, 1 found",
            "the GPUs of w2 may not work: 2 offered, 2 found (Xid 79)",
            "the GPUs of w4 may not work: 2 offered, none found",
        ]
        assert run.read_manifest().gpus_found == dict.fromkeys(found, described)
        record_gpus(run, spec, None)
        assert known[5:] == [(name, described) for name in found]
        assert record_gpus(run, ClusterSpec(), None) == []


def fail(*_):
    """
    A measurement that fails.
    """
    raise HarnessError("no")


class TestPreflight:
    def preflight(self, monkeypatch, cells, **experiment):
        """
        Checks of these cells, on a machine of 8 GiB and four cores.
        """
        monkeypatch.setattr(preflight_module, "machine_facts", lambda: {"memory_bytes": 8 * GIB})
        monkeypatch.setattr(preflight_module.os, "cpu_count", lambda: 4)
        made = Experiment(
            name="e", question="q", workloads=(WorkloadAxes(name="sort", input_bytes=(MIB,)),),
            **experiment,
        )  # fmt: skip
        home = SimpleNamespace(path="/home", trace_path_jar=None)
        return Preflight(made, cells, "e.yaml", lambda: home, RecordingConsole())

    def cell(self, input_bytes=32 * MIB, **cluster):
        """
        A cell of so many bytes on such a cluster.
        """
        spec = WorkloadSpec(name="terasort", input_bytes=input_bytes)
        return resolve_cell(Cell(cluster=ClusterSpec(**cluster), workload=spec))

    def test_memory_is_that_of_all_processes(self, monkeypatch):
        """
        Daemons, tasks at their limit, and the application master.
        """
        cell = self.cell(workers=2, node=NodeSpec(map_slots=3, reduce_slots=1))
        _, slots, _ = cell.model_inputs
        task = cell.cell.cluster.node.task_memory_bytes

        needed = memory_needed(cell.cell.cluster, slots)
        master = preflight_module.AM_MEMORY_MB * MIB
        assert needed == 7 * 250 * MIB + 6 * task + master

    def test_too_little_memory_is_refused(self, monkeypatch):
        """
        With both numbers.
        """
        made = self.preflight(monkeypatch, [self.cell(workers=40)])

        with pytest.raises(MachineError) as caught:
            made.check_memory()
        assert caught.value.what.startswith("40 workers and their tasks take ")
        assert caught.value.what.endswith(", and this machine has 8 GiB")
        assert caught.value.where == "e.yaml"
        assert caught.value.fix == ("lower cluster.workers, cluster.node.task_memory or the slots")

    def test_too_little_disk_is_refused(self, monkeypatch, tmp_path):
        """
        For the input with its replicas, and a block more, as a DataNode asks for.
        """
        monkeypatch.setattr(preflight_module, "clusters_folder", lambda: tmp_path)
        monkeypatch.setattr(
            preflight_module.shutil, "disk_usage", lambda _: SimpleNamespace(free=128 * MIB)
        )
        self.preflight(monkeypatch, [self.cell(32 * MIB)]).check_disk()
        with pytest.raises(MachineError) as caught:
            self.preflight(monkeypatch, [self.cell(33 * MIB)]).check_disk()
        assert parts_of(caught) == (
            (
                "an input of 33 MiB takes 130 MiB with its replicas and room for a block, and"
                " 128 MiB are free"
            ),
            str(tmp_path),
            "lower the input, or set XDG_STATE_HOME to a folder on a larger disk",
        )

    def test_tasks_without_hooks_are_refused(self, monkeypatch):
        """
        Where they are to be traced.
        """
        made = self.preflight(monkeypatch, [], tracing=Tracing(mode="spans"))
        with pytest.raises(MachineError) as caught:
            made.check_tracer()
        assert parts_of(caught) == (
            "trace: spans needs Hadoop's classes with the tracer's hooks, and there are none",
            "/home",
            "make setup (or write trace: logs)",
        )
        self.preflight(monkeypatch, [], tracing=Tracing(mode="logs")).check_tracer()

    def test_warnings_are_said_before_anything_starts(self, monkeypatch):
        """
        Too few repeats or cells, too many tasks, much memory, tiny inputs, unknown properties.
        """
        cells = [self.cell(4096, workers=6, node=NodeSpec(task_memory_bytes=640 * MIB))]
        made = self.preflight(
            monkeypatch, cells, repeat=1, predict=Predict(models=("whatif",)),
            configuration={"mapreduce.task.io.sort.bm": ("1",)},
        )  # fmt: skip
        made.warn()

        unknown, repeats, scored, containers, memory, tiny = made.console.lines
        assert unknown.startswith(
            "warning: Hadoop knows no property mapreduce.task.io.sort.bm: passed on as it is"
        )
        assert repeats == "warning: repeat: 1 shows no noise, so nothing is proved: write repeat: 2"
        assert scored == (
            "warning: 1 of 1 cell is scored, below 6 there is no interval: give an axis more values"
        )
        assert containers == (
            "warning: 6 containers at once on 4 cores measure contention; set"
            " mapreduce.job.running.map.limit and mapreduce.job.running.reduce.limit to 4"
        )
        assert memory.endswith(" of this machine's 8 GiB of memory: lower cluster.workers")
        assert tiny == (
            "warning: an input of 4 KiB shows nothing but how long tasks take to start: write"
            " 32 MiB"
        )

    def test_of_many_unknown_properties_five_are_named(self, monkeypatch):
        """
        And how many more there are.
        """
        names = {f"mapreduce.no.such.name{number}": ("1",) for number in range(8)}
        made = self.preflight(monkeypatch, [self.cell()], configuration=names)

        warnings = made._unknown_properties()
        assert len(warnings) == 6
        assert warnings[-1] == "and 3 more such properties"

    def test_lacking_gpus_are_said(self, monkeypatch):
        """
        With what the driver says.
        """
        gpu = Gpu(name="A", memory_bytes=1)

        def said(devices, offered):
            monkeypatch.setattr(preflight_module, "find_devices", lambda _: devices)
            return list(preflight_module.lacking_gpus(offered))

        text = (
            "nodes offer 2 GPUs in total, and this machine has {}: YARN does not check that, and"
            " tasks that use a missing GPU fail"
        )
        assert said(Devices((), "", ""), 2) == [text.format("none")]
        assert said(Devices((gpu,), "", "lost"), 2) == [
            "nvidia-smi fails, the GPUs here may not work: lost",
            text.format(1),
        ]
        assert said(Devices((gpu, gpu), "", ""), 2) == []

    @pytest.mark.process
    def test_models_of_ones_own_are_asked_first(self, monkeypatch, tmp_path):
        """
        A slip that costs every answer is said before anything is measured.
        """
        texts = {"good": '{"body_s": 1.0 * job_input.num_splits}', "bad": "1 / 0"}
        codes = {}
        for name, answer in texts.items():
            file = tmp_path / f"{name}.py"
            head = "class Mine:\n    def predict(self, profile, configuration, cluster, job_input):"
            file.write_text(f"{head}\n        return {answer}\n")
            codes[name] = read_own(f"{name}.py:Mine", tmp_path).code
        models = Predict(models=("good", "bad"), code=codes)
        made = self.preflight(monkeypatch, [self.cell()], predict=models)

        assert [*made._own_models()] == [
            "the model bad may have no answer: bad.py:3: ZeroDivisionError: division by zero"
        ]

    def test_a_lack_without_place_or_fix_has_no_empty_words(self, monkeypatch):
        """
        What a workload of the user's own does wrong names its line itself.
        """
        made = self.preflight(monkeypatch, [self.cell()])

        def check():
            raise SpecError("mine.py:3: no")

        monkeypatch.setattr(Preflight, "checks", property(lambda _: (check,)))
        monkeypatch.setattr(Preflight, "look", lambda _: None)
        made.warn_of_lacks()

        assert made.console.lines == ["warning: this machine will not run it: mine.py:3: no"]

    def test_a_plan_says_what_would_not_run(self, monkeypatch):
        """
        Each lack with its place and its fix.
        """
        made = self.preflight(monkeypatch, [self.cell(workers=40)])
        monkeypatch.setattr(Preflight, "checks", property(lambda self: (self.check_memory,)))
        monkeypatch.setattr(Preflight, "look", lambda _: None)
        made.warn_of_lacks()

        (line,) = made.console.lines
        assert line.startswith("warning: this machine will not run it: 40 workers and their")
        assert line.endswith(
            "(at: e.yaml; fix: lower cluster.workers, cluster.node.task_memory or the slots)"
        )


class TestTakenOver:
    def test_only_from_the_same_machine(self):
        """
        Whatever its load and its disk; one without an id is nobody's.
        """
        machine = {"id": "a", "cpu": "x", "load": 1, "disk": 2}

        assert is_same({"id": "a", "cpu": "x", "load": 9}, machine)
        assert not is_same({"id": "b", "cpu": "x"}, machine)
        assert not is_same({"id": "a", "cpu": "x", "more": 1}, machine)
        assert not is_same({"cpu": "x"}, {"cpu": "x"})

    def test_not_from_hosts_that_may_have_changed(self, run):
        """
        The provider is named.
        """
        trial = terasort()
        cluster = trial.cell.cluster.model_copy(update={"provider": "ansible"})
        there = trial.model_copy(
            update={"cell": trial.cell.model_copy(update={"cluster": cluster})}
        )

        with pytest.raises(SpecError) as caught:
            take_over(run, None, [trial, there])
        assert parts_of(caught) == (
            "trials of provider ansible cannot be taken over: its hosts may have changed",
            "--reuse",
            "measure them: leave --reuse out",
        )


def test_a_disturbed_trial_moves_behind_those_of_its_use():
    """
    Profiling ends before scoring; where it is the last of its use it stays.
    """

    def moved(uses):
        trials = [SimpleNamespace(profiling=use == "p", number=n) for n, use in enumerate(uses)]
        move_behind_its_use(trials)
        return [trial.number for trial in trials]

    assert moved("ppss") == [1, 0, 2, 3]
    assert moved("sss") == [1, 2, 0]
    assert moved("pss") == [0, 1, 2]
    assert moved("p") == [0]


def test_a_done_trial_without_a_history_is_refused(run):
    """
    With what can be done.
    """
    trial = terasort()
    folder = run.start_trial(trial)
    record = TrialRecord(
        trial=trial, state="done", started_s=1.0, finished_s=2.0, versions=VERSIONS
    )
    folder.commit(record)

    with pytest.raises(DataError) as caught:
        remake_trace(run, record)
    assert parts_of(caught) == (
        f"trial {trial.id} has no history",
        str(run.trial_dir(trial.id)),
        "its logs were removed: move the trial's folder away and run it again",
    )
    failed = record.model_copy(update={"state": "failed"})
    assert not remake_trace(run, failed)
