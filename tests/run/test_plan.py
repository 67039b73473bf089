"""
Tests for `harness.core.run.plan`.
"""

from types import SimpleNamespace

import pytest

from harness.base.errors import SpecError
from harness.base.records.trial import TrialRecord, Versions
from harness.clusters.workloads import WORKLOADS
from harness.core.evaluate.resolved import resolve_cell
from harness.core.experiment.grid import expand, order
from harness.core.experiment.model import ClusterAxes, Experiment, Node, Predict, WorkloadAxes
from harness.core.run.estimate import (
    BYTES_PER_S,
    CLUSTER_START_S,
    END_S,
    GENERATION_S,
    LIMITING_S,
    SOME_JOBS,
    TRIAL_S,
    Estimator,
)
from harness.core.run.plan import make_plan, refuse_cells
from tests.run.fakes import Rounds

VERSIONS = Versions(hadoop="3.5.0", java="17.0.1")
MIB = 2**20


def experiment(**rest):
    """
    Two cells, of 6 and 60 seconds beyond what every trial takes, twice each.
    """
    sizes = (6 * BYTES_PER_S, 60 * BYTES_PER_S)
    workload = WorkloadAxes(name="terasort", input_bytes=sizes)
    return Experiment(**{
        "name": "e", "question": "q", "workloads": (workload,), "repeat": 2, "warmup": 0,
        "predict": Predict(models=("whatif",), profile_on={"input": (str(sizes[0]),)}), **rest,
    })  # fmt: skip


def grid(**rest):
    """
    The cells of the experiment, as they are when a run is opened.
    """
    return [resolve_cell(cell) for cell in expand(experiment(**rest))]


def plan(records=(), **rest):
    """
    The plan of the experiment with what is there of it.
    """
    e = experiment(**rest)
    return make_plan(e, trials(e), {r.trial.id: r for r in records}, Estimator([]))


def trials(e=None):
    """
    The trials of an experiment in their order.
    """
    e = e or experiment()
    return order(e, expand(e), VERSIONS)


def record(trial, took=10.0, state="done"):
    """
    A trial that ended after some seconds.
    """
    return TrialRecord(
        trial=trial, state=state, started_s=100.0, finished_s=100.0 + took, versions=VERSIONS
    )


class TestEstimate:
    ALL = CLUSTER_START_S + 4 * TRIAL_S + 2 * 66 + 2 * GENERATION_S + 66 + END_S

    def test_follows_the_rule_while_nothing_was_measured(self):
        """
        Each trial costs a constant and its bytes, each input too, each cluster its start.
        """
        assert plan()["estimate_s"] == pytest.approx(self.ALL)
        assert plan()["estimated"] == "no earlier run of terasort here: within a factor of two"

    @pytest.mark.parametrize(("promised", "jobs"), [(4, 4), (None, SOME_JOBS)])
    def test_counts_every_job_of_a_trial(self, monkeypatch, promised, jobs):
        """
        A trial of several jobs takes as many times as long as one of them; its input is one.
        """
        monkeypatch.setitem(WORKLOADS, "terasort", Rounds(promised))

        more_s = (jobs - 1) * (4 * TRIAL_S + 2 * 66)
        assert plan()["estimate_s"] == pytest.approx(self.ALL + more_s)

    def test_counts_the_warm_up(self):
        """
        Warm-up trials are as long as the first trial of their cluster, whose input is there.
        """
        first = plan()["trials"][0]["cell"]["workload"]["input_bytes"]

        assert plan(warmup=2)["estimate_s"] - plan()["estimate_s"] == pytest.approx(
            2 * (TRIAL_S + first / BYTES_PER_S)
        )

    def test_counts_every_start_of_a_cluster(self):
        """
        In blind order all clusters but one are started twice: for profiling cells, and for others.
        """
        blind, mixed = (
            plan(cluster=ClusterAxes(workers=(2, 3, 4)), predict=Predict(
                models=("whatif",), profile_on={"input": (str(6 * BYTES_PER_S),)}, order=order
            ))
            for order in ("blind", "mixed")
        )  # fmt: skip

        assert blind["estimate_s"] - mixed["estimate_s"] == pytest.approx(2 * CLUSTER_START_S)

    def test_counts_what_limited_nodes_are_measured(self):
        """
        Once for each of their clusters, before anything runs there.
        """
        limited = ClusterAxes(node=Node(cores=(0.5, None)))
        unlimited = ClusterAxes(workers=(2, 3))

        difference = plan(cluster=limited)["estimate_s"] - plan(cluster=unlimited)["estimate_s"]

        assert difference == pytest.approx(LIMITING_S)

    def test_never_exceeds_the_limit_of_a_trial(self):
        """
        A trial ends at its limit at the latest; the generation of inputs has its own.
        """
        assert plan(trial_limit_s=5.0)["estimate_s"] == pytest.approx(
            CLUSTER_START_S + 4 * 5.0 + 2 * GENERATION_S + 66 + END_S
        )

    def test_is_zero_when_all_is_there(self):
        """
        Nothing to do takes no time, not even a cluster; of a finished run all is measured anew.
        """
        records = {t.id: record(t) for t in trials()}
        p, anew = (
            make_plan(experiment(), trials(), records, Estimator([]), is_finished=is_finished)
            for is_finished in (False, True)
        )

        assert (p["estimate_s"], {t["state"] for t in p["trials"]}) == (0.0, {"done"})
        assert anew["estimate_s"] == pytest.approx(self.ALL)


class TestEstimator:
    def measured(self, sizes, generation_s=4.0, start_s=30.0, opened_s=100.0):
        """
        A run of one cluster: a trial of each size in MiB takes 10 s and one more for each MiB.
        """
        at, attempts = opened_s + start_s, []
        for number, size in enumerate(sizes):
            cell = expand(experiment())[0]
            workload = cell.workload.model_copy(update={"input_bytes": size * MIB})
            trial = trials()[0].model_copy(
                update={"cell": cell.model_copy(update={"workload": workload}), "id": f"{number}"}
            )
            prepare_s = 0.5 if size in sizes[:number] else generation_s + size / 2
            end = at + prepare_s + 10 + size
            attempts.append(
                TrialRecord(
                    trial=trial, state="done", started_s=at, finished_s=end, versions=VERSIONS,
                    job_ids=(f"job_{opened_s:.0f}_0001",), harness_s={"prepare_s": prepare_s},
                )
            )  # fmt: skip
            at = end + 2
        return opened_s, attempts

    def test_takes_the_line_of_what_was_measured(self):
        """
        Work, generation, starts and gaps are told apart, and other inputs lie on the line.
        """
        e = Estimator([self.measured([10, 30, 10, 30])])
        cell = expand(experiment())[0]
        spec = cell.workload.model_copy(update={"input_bytes": 20 * MIB})
        wanted = resolve_cell(cell.model_copy(update={"workload": spec}))

        assert e.seconds(wanted) == pytest.approx(30)
        assert e.seconds(wanted, is_generation=True) == pytest.approx(14)
        assert (e.start_s, e.gap_s, e.run_count) == (30.0, 2.0, 1)
        assert e.end_s == pytest.approx(2 * END_S)
        assert e.knows(wanted.cell)

    def test_one_input_scales_the_rule(self):
        """
        Where all trials have one input, the rule says what another makes of it.
        """
        e = Estimator([self.measured([12])])
        cell = resolve_cell(expand(experiment())[0])  # of 6 s of bytes

        assert e.seconds(cell) == pytest.approx(22 / (TRIAL_S + 1) * (TRIAL_S + 6))

    def test_what_was_measured_elsewhere_says_nothing(self):
        """
        Another workload goes by the rule, at the pace of this machine, and is not known.
        """
        e, cell = Estimator([self.measured([12])]), expand(experiment())[0]
        other = cell.model_copy(
            update={"workload": cell.workload.model_copy(update={"name": "sort"})}
        )

        seconds = e.seconds(resolve_cell(cell))
        assert (e.knows(other), e.seconds(resolve_cell(other))) == (False, seconds)

    def test_an_interrupted_run_has_no_start_of_hours(self):
        """
        Of several starts the lower median counts; trials that were taken over have none.
        """
        slow = self.measured([10], start_s=9000.0)
        taken_over = (5e9, self.measured([10])[1])

        assert Estimator([slow, self.measured([10]), taken_over]).start_s == 30.0


def test_trials_have_their_state_in_the_order_of_the_plan():
    """
    Done and failed trials are marked, the others are pending.
    """
    a, b, c, d = trials()

    p = plan([record(b), record(c, state="timed_out")])

    assert [t["state"] for t in p["trials"]] == ["pending", "done", "timed_out", "pending"]
    assert [t["id"] for t in p["trials"]] == [t.id for t in (a, b, c, d)]


def test_json_says_what_the_plan_says():
    """
    All trials with id, cell and state, and the time needed.
    """
    document = plan([record(trials()[0])])

    assert document.keys() == {"trials", "estimate_s", "estimated"}
    assert [t["id"] for t in document["trials"]] == [t.id for t in trials()]
    assert document["trials"][0]["state"] == "done"
    assert document["trials"][0]["cell"] == trials()[0].cell.model_dump(mode="json")
    assert sum(t["profiling"] for t in document["trials"]) == 2


class TestRefuse:
    TEXT = "cluster:\n  node: {task_memory: 1 MiB}\nconfiguration:\n  a.memory.mb: 9\n"

    def refusal(self, reasons):
        """
        What is said where each cell is refused for *reasons*.
        """
        with pytest.raises(SpecError) as caught:
            refuse_cells(
                grid(),
                lambda cluster, job: reasons,
                "f.yaml",
                self.TEXT,
            )
        return str(caught.value)

    def test_lets_pass_what_fits(self):
        """
        Without a reason nothing is refused.
        """
        assert refuse_cells(grid(), lambda cluster, job: [], "f.yaml") is None

    def test_points_at_the_key_that_the_reason_names(self):
        """
        A reason that holds for many cells is said once, with the place of its key.
        """
        lines = self.refusal(["a.memory.mb 9 does not fit"]).splitlines()

        assert lines[:2] == ["a.memory.mb 9 does not fit", "  at:  f.yaml:4:3"]

    def test_gives_all_reasons_at_once(self):
        """
        Several reasons are listed, each with its place and the number of cells it hits.
        """
        lines = self.refusal(["a.memory.mb 9 does not fit", "no node has a core"]).splitlines()

        assert lines[:3] == [
            "the cluster cannot run this grid",
            "  f.yaml:4:3: a.memory.mb 9 does not fit (2 cells)",
            "  f.yaml: no node has a core (2 cells)",
        ]

    def test_points_at_the_end_of_a_path_of_keys(self):
        """
        A reason that names a path of keys is placed at the last of them that the file has.
        """
        lines = self.refusal(["a node has none: set cluster.node.gpus to 1"]).splitlines()

        assert lines[1] == "  at:  f.yaml:2:3"

    def test_knows_what_the_workload_sets(self, monkeypatch):
        """
        Properties that a workload sets itself are those of its jobs, too, and win.
        """
        own = SimpleNamespace(properties=lambda spec: {"mapreduce.job.reduces": "0"})
        monkeypatch.setitem(WORKLOADS, "terasort", own)
        cells, seen = grid(configuration={"mapreduce.job.reduces": ("2",)}), []

        refuse_cells(cells, lambda cluster, job: seen.append(job) or [], "f.yaml")

        assert seen == [{"mapreduce.job.reduces": "0"}] * 2
