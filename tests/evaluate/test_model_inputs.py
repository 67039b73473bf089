"""
Tests for `harness.evaluate.model_inputs`.
"""

import pytest

from harness.errors import ModelError
from harness.evaluate.model_inputs import model_inputs, predict_cell, profiled_range
from harness.models import MODELS
from harness.profiling.fit import JOBS_PER_TRIAL
from harness.records.prediction import Prediction
from harness.records.profile import Profile, Statistic
from harness.records.trial import Cell, ClusterSpec, WorkloadSpec
from harness.workloads import WORKLOADS
from harness.workloads.base import InputFile, InputPlan, JobCommand, Parameter
from tests.run.fakes import Rounds, terasort

FACTOR = "mapreduce.task.io.sort.factor"


class Says:
    """
    A model that has one answer for a job.
    """

    def __init__(self, job_s=10.0):
        self.job_s = job_s

    def predict(self, *_):
        lacks = () if self.job_s else ("something",)
        return Prediction(
            model="whatif", cell="", job_s=self.job_s, map_task_s=2.0, not_applicable=lacks
        )


def rounds(jobs, monkeypatch, *, model=None, seen=None):
    """
    Prediction of a cell whose trials have so many jobs; *seen* were in the profile.
    """
    monkeypatch.setitem(WORKLOADS, "rounds", Rounds(jobs))
    monkeypatch.setitem(MODELS, "whatif", model or Says())
    known = {JOBS_PER_TRIAL: Statistic(value=seen, count=2, spread=0.5, source="")} if seen else {}
    profile = Profile(workload="rounds", statistics=known)
    return predict_cell("whatif", terasort(name="rounds").cell, {"rounds": profile})


class TestPredictCell:
    def test_a_missing_statistic_is_named(self):
        """
        A model that lacks what it requires has no answer.
        """
        answer = predict_cell("whatif", terasort().cell, {"terasort": Profile(workload="terasort")})

        assert answer.job_s is None
        assert set(answer.not_applicable) == MODELS["whatif"].required

    def test_a_refusal_is_its_reason(self, monkeypatch):
        """
        A field that the equations do not cover is no crash of the whole step.
        """

        class Refuses:
            def predict(self, *_):
                raise ModelError("sort_buffer_mb is 0")

        monkeypatch.setitem(MODELS, "whatif", Refuses())
        answer = predict_cell("whatif", terasort().cell, {"terasort": Profile(workload="terasort")})

        assert (answer.job_s, answer.not_applicable) == (None, ("sort_buffer_mb is 0",))


class TestSeveralJobs:
    @pytest.mark.parametrize(("promised", "seen", "expected"), [(3, None, 3.0), (None, 4.5, 4.5)])
    def test_take_the_sum_of_their_times(self, monkeypatch, promised, seen, expected):
        """
        As many times one job as the workload promises, or as the profiling trials had; the tasks
        are those of one job.
        """
        answer = rounds(promised, monkeypatch, seen=seen)

        assert (answer.jobs, answer.each_job_s, answer.job_s) == (expected, 10.0, 10.0 * expected)
        assert answer.map_task_s == 2.0

    def test_a_single_one_is_the_trial(self, monkeypatch):
        """
        There is nothing to tell apart.
        """
        answer = rounds(1, monkeypatch)

        assert (answer.jobs, answer.each_job_s, answer.job_s) == (1.0, None, 10.0)

    def test_need_their_number(self, monkeypatch):
        """
        A profile that does not say how many there were predicts no sum.
        """
        answer = rounds(None, monkeypatch)

        assert (answer.job_s, answer.not_applicable) == (None, (JOBS_PER_TRIAL,))

    def test_a_model_without_an_answer_for_one_has_none_for_all(self, monkeypatch):
        """
        What it lacks is what is said.
        """
        answer = rounds(3, monkeypatch, model=Says(None))

        assert (answer.job_s, answer.not_applicable) == (None, ("something",))


def test_model_inputs_of_is_what_the_plan_says():
    """
    A model gets configuration, effective slots and input; nothing of it was measured.
    """
    limited = {"mapreduce.job.reduces": "4", "mapreduce.job.running.map.limit": "1"}
    config, cluster, job_input = model_inputs(terasort(workers=3, **limited).cell)

    assert (config.num_reduces, config.use_combiner) == (4, False)
    assert (cluster.num_nodes, cluster.map_slots) == (3, 1)
    assert (job_input.num_splits, job_input.input_bytes) == (3, 6_000_000)


def test_model_inputs_of_has_the_replicas_of_the_input():
    """
    Those of the cluster, in which the input lies.
    """
    cell = terasort().cell
    site = cell.cluster.site | {"dfs.replication": "1"}
    alone = cell.model_copy(update={"cluster": cell.cluster.model_copy(update={"site": site})})

    assert (model_inputs(cell)[2].replication, model_inputs(alone)[2].replication) == (2, 1)


@pytest.mark.parametrize(
    ("parameters", "given", "bytes_"),
    [
        ({}, {}, 0),
        ({"block": Parameter(4096, "")}, {}, 4096),
        ({"block": Parameter(4096, "")}, {"block": 512}, 512),
    ],
)
def test_model_inputs_of_has_the_block_of_a_device(monkeypatch, parameters, given, bytes_):
    """
    Where a workload has such an argument; of all others there is none.
    """
    workload = Rounds(1)
    workload.parameters = parameters
    workload.plan_input = lambda spec, block: InputPlan(
        "k", (InputFile("f", 6_000_000),), JobCommand("Made", ())
    )
    monkeypatch.setitem(WORKLOADS, "rounds", workload)
    cell = terasort(name="rounds").cell
    spec = cell.workload.model_copy(update={"parameters": given})

    assert model_inputs(cell.model_copy(update={"workload": spec}))[2].gpu_block_bytes == bytes_


@pytest.mark.parametrize(
    ("size", "factor", "expected"),
    [
        (20, "5", "inside"), (10, "5", "edge"), (30, "5", "edge"), (20, "10", "edge"),
        (9, "5", "outside"), (31, "5", "outside"), (20, "11", "outside"), (10, "2", "outside"),
        (20, "nan", "outside"), (20, "many", "inside"),
    ],
)  # fmt: skip
def test_place(size, factor, expected):
    """
    A cell is as far out as its worst axis; an axis with one value has no edge.
    """
    ranges = {"input_bytes": (10, 30), FACTOR: (3, 10), "mapreduce.job.reduces": (2, 2)}
    cell = Cell(
        cluster=ClusterSpec(),
        workload=WorkloadSpec(name="w", input_bytes=size),
        configuration={FACTOR: factor, "mapreduce.job.reduces": "2", "codec": "a.b.C"},
    )

    assert profiled_range(cell, Profile(workload="w", ranges=ranges)) == expected


def test_place_without_a_profile():
    """
    Nothing was profiled, so everything is outside.
    """
    assert profiled_range(terasort().cell, None) == "outside"
