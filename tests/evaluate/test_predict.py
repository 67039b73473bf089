"""
Tests for `harness.core.evaluate.predict`, and what models are given of a resolved cell.
"""

from statistics import fmean

import pytest

from harness.base.errors import ModelError
from harness.base.records.prediction import JobConfig, JobInput, Prediction
from harness.base.records.profile import Profile, ProfiledJob, Statistic
from harness.base.records.ranges import axis_numbers, range_of
from harness.base.records.trial import Cell, ClusterSpec, WorkloadSpec
from harness.clusters.workloads import WORKLOADS
from harness.clusters.workloads.base import InputPlan, JobCommand, Parameter
from harness.core.evaluate import predict
from harness.core.evaluate.predict import (
    in_sample_miss,
    predict_cell,
    predict_cells,
    profiled_range,
)
from harness.core.evaluate.resolved import resolve_cell
from harness.models import MODELS
from harness.models.frame import frame_counts, frame_s, inputs_of_profiled
from harness.observe.profiling.fit import JOBS_PER_TRIAL
from tests.run.fakes import Rounds, terasort

FACTOR = "mapreduce.task.io.sort.factor"


class Says:
    """
    A model that has one answer for a job.
    """

    def __init__(self, body_s=10.0, job_s=None):
        self.body_s = body_s
        self.job_s = job_s

    def predict(self, *_):
        lacks = () if self.body_s or self.job_s else ("something",)
        return Prediction(
            model="whatif", cell="", body_s=self.body_s, job_s=self.job_s, map_task_s=2.0,
            not_applicable=lacks,
        )  # fmt: skip


def frame(**seconds):
    """
    A frame of 3 s before and 1 s behind the tasks, each of which has 1 s of JVM on either side.
    """
    parts = {f"{kind}_{end}_s": 1.0 for kind in ("map", "reduce") for end in ("start", "end")}
    parts |= {"job_start_s": 3.0, "job_end_s": 1.0, "reduce_gap_s": 0.5, **seconds}
    return {n: Statistic(value=v, count=1, spread=0.0, source="") for n, v in parts.items()}


def rounds(jobs, monkeypatch, *, model=None, seen=None, around=None):
    """
    Prediction of a cell whose trials have so many jobs; *seen* were in the profile.
    """
    monkeypatch.setitem(WORKLOADS, "rounds", Rounds(jobs))
    monkeypatch.setitem(MODELS, "whatif", model or Says())
    known = {JOBS_PER_TRIAL: Statistic(value=seen, count=2, spread=0.5, source="")} if seen else {}
    profile = Profile(
        workload="rounds", statistics=known, frame=frame() if around is None else around
    )
    cell = resolve_cell(terasort(name="rounds").cell)
    return predict_cell("whatif", cell, {"rounds": profile})


class TestPredictCell:
    def test_a_missing_statistic_is_named(self):
        """
        A model that lacks what it requires has no answer.
        """
        profiles = {"terasort": Profile(workload="terasort")}
        answer = predict_cell("whatif", resolve_cell(terasort().cell), profiles)

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
        profiles = {"terasort": Profile(workload="terasort")}
        answer = predict_cell("whatif", resolve_cell(terasort().cell), profiles)

        assert (answer.job_s, answer.not_applicable) == (None, ("sort_buffer_mb is 0",))


class TestSeveralJobs:
    def test_of_several_kinds_are_not_asked_for(self):
        """
        What a model says holds for jobs of one kind: of PageRank in HiBench's form it is not asked.
        """
        cell = terasort(name="pagerank").cell
        spec = cell.workload.model_copy(update={"parameters": {"hibench": "true"}})
        cell = resolve_cell(cell.model_copy(update={"workload": spec}))
        answer = predict_cell("whatif", cell, {"pagerank": Profile(workload="pagerank")})

        assert (answer.job_s, answer.not_applicable) == (None, ("jobs of one kind",))

    @pytest.mark.parametrize(("promised", "seen", "expected"), [(3, None, 3.0), (None, 4.5, 4.5)])
    def test_take_the_sum_of_their_times(self, monkeypatch, promised, seen, expected):
        """
        As many times one job as the workload promises, or as the profiling trials had; the tasks
        are those of one job.
        """
        answer = rounds(promised, monkeypatch, seen=seen)

        # Two waves of maps, beside which the reduce starts.
        assert (answer.body_s, answer.frame_s) == (10.0, 3.0 + 2 * 2.0 + 1.0 + 1.0)
        assert (answer.jobs, answer.each_job_s, answer.job_s) == (expected, 19.0, 19.0 * expected)
        assert answer.makespan_s == pytest.approx(15.0 * expected)
        assert answer.warnings == ("no job shows a task_gap_s: the frame takes it as 0",)
        assert answer.map_task_s == 2.0

    def test_a_single_one_is_the_trial(self, monkeypatch):
        """
        There is nothing to tell apart.
        """
        answer = rounds(1, monkeypatch)

        assert (answer.jobs, answer.each_job_s, answer.job_s) == (1.0, None, 19.0)

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


class TestWholeJobs:
    @pytest.mark.parametrize("body_s", [None, 10.0])
    @pytest.mark.parametrize("around", [None, {}])
    def test_get_nothing_added(self, monkeypatch, body_s, around):
        """
        Whether there is a frame or not, and whatever the body is: that counts for bodies.
        """
        answer = rounds(3, monkeypatch, model=Says(body_s, 25.0), around=around)

        assert (answer.body_s, answer.each_job_s, answer.job_s) == (body_s, 25.0, 75.0)
        assert (answer.frame_s, answer.makespan_s) == (None, None)
        assert (answer.not_applicable, answer.warnings) == ((), ())

    def test_a_single_one_is_the_trial(self, monkeypatch):
        """
        There is nothing to tell apart.
        """
        answer = rounds(1, monkeypatch, model=Says(None, 25.0))

        assert (answer.jobs, answer.each_job_s, answer.job_s) == (1.0, None, 25.0)

    def test_have_intervals_of_their_own(self, monkeypatch):
        """
        Refits and misses are of what the model says of jobs: the frame of 9 s is in no job time of
        these, which are 2 s below the mean. Without 21 s it is 49/3 s, and misses them by 9/7.
        """
        monkeypatch.setitem(MODELS, "whatif", MeanJob())

        own, _ = of_both_runs(monkeypatch)

        assert own.job_s == pytest.approx(17.0)
        assert own.refits["job_s"] == pytest.approx((53 / 3, 52 / 3, 50 / 3, 49 / 3))
        assert own.refits["body_s"] == (None,) * 4
        assert own.intervals["body_s"]["80"] is None
        assert own.intervals["job_s"]["80"] == pytest.approx((49 / 3 * 7 / 9, 49 / 3 * 9 / 7))

    def test_are_missed_alike_where_the_cells_are_another_runs(self, monkeypatch):
        """
        The profiled jobs of another run are compared with the model's own job times, too.
        """
        monkeypatch.setitem(MODELS, "whatif", MeanJob())

        own, foreign = of_both_runs(monkeypatch)

        assert foreign.intervals == own.intervals

    def test_are_drawn_as_they_are(self, monkeypatch):
        """
        A profile of another machine draws times of jobs: nothing is added to any of the draws.
        """
        monkeypatch.setitem(MODELS, "whatif", MeanJob())

        drawn, _ = of_both_runs(monkeypatch, draws=[{"jobs.job_s": 2.0}] * 40)

        low, high = drawn.intervals["job_s"]["80"]
        assert low < 2 * 19.0 - 2.0 < high
        assert low > 25.0  # as it would not be without the drawn times


class MeanJob:
    """
    A model that gives the profiled jobs themselves, less 2 s, frame and all.
    """

    def predict(self, profile, *_):
        job_s = fmean(job.job_s for job in profile.jobs) - 2.0
        return Prediction(model="whatif", cell="", job_s=job_s)


def of_both_runs(monkeypatch, draws=()):
    """
    A prediction with the profiled cells at hand, and with those of another run.
    """
    monkeypatch.setitem(WORKLOADS, "rounds", Rounds(1))
    cell = resolve_cell(terasort(name="rounds").cell)
    profile = profile_of(BODIES, BODIES).model_copy(update={"draws": tuple(draws)})
    for profiled in (dict.fromkeys(BODIES, cell), {}):
        yield from predict_cells("whatif", [cell], {"rounds": profile}, profiled)


class MeanBody:
    """
    A model that knows nothing but the profiled jobs.
    """

    def predict(self, profile, *_):
        body_s = fmean(job.body_s for job in profile.jobs)
        return Prediction(model="whatif", cell="", body_s=body_s)


def profile_of(bodies_s, without=()):
    """
    A profile of one job in each cell, with a frame of 9 s, and with refits *without* these.
    """
    jobs = [
        ProfiledJob(
            trial=cell, cell=cell, input_bytes=1, num_splits=1, num_nodes=1, map_slots=1,
            reduce_slots=1, configuration=JobConfig(), job_s=body_s + 9.0, body_s=body_s,
        )
        for cell, body_s in bodies_s.items()
    ]  # fmt: skip
    refits = [
        profile_of({cell: body_s for cell, body_s in bodies_s.items() if cell != left_out})
        for left_out in without
    ]
    return Profile(workload="rounds", frame=frame(), jobs=jobs, refits=refits)


BODIES = {"c0": 8.0, "c1": 9.0, "c2": 11.0, "c3": 12.0}


class TestInSampleMiss:
    def predicted(self, monkeypatch, **changes):
        """
        The prediction of a cell by a model that says 10 s of each body.
        """
        monkeypatch.setattr(predict, "in_sample_miss", in_sample_miss)
        monkeypatch.setitem(WORKLOADS, "rounds", Rounds(1))
        monkeypatch.setitem(MODELS, "whatif", Says(10.0))
        cell = resolve_cell(terasort(name="rounds").cell)
        profile = profile_of(BODIES).model_copy(update=changes)
        (answer,) = predict_cells("whatif", [cell], {"rounds": profile}, {})
        return answer

    def test_is_a_share_of_the_seconds_of_the_profiled_cells(self, monkeypatch):
        """
        Each job of 10 s and a frame, beside what was measured of it: long ones weigh more.
        """
        answer = self.predicted(monkeypatch)
        frames_s = [
            frame_s(frame(), *inputs_of_profiled(job))[0] for job in profile_of(BODIES).jobs
        ]
        predicted_s = sum(10.0 + around_s for around_s in frames_s)
        measured_s = sum(body_s + 9.0 for body_s in BODIES.values())

        assert answer.in_sample_miss == pytest.approx(predicted_s / measured_s - 1)

    @pytest.mark.parametrize("changes", [{"schema_version": 11}, {"draws": ({},)}, {"jobs": ()}])
    def test_is_not_known_of_others(self, monkeypatch, changes):
        """
        An older profile, that of another machine, one without jobs.
        """
        assert self.predicted(monkeypatch, **changes).in_sample_miss is None

    def test_is_unknown_where_the_model_has_no_answer(self, monkeypatch):
        """
        Neither to jobs that were profiled nor to others.
        """
        monkeypatch.setitem(MODELS, "whatif", Says(None))

        assert in_sample_miss("whatif", profile_of(BODIES), {}) is None


class TestFixedSeconds:
    def test_are_lent_to_equations_alone(self, monkeypatch):
        """
        A model of the harness takes them, the same one in somebody's hand does not.
        """
        monkeypatch.setitem(WORKLOADS, "rounds", Rounds(1))
        known = Says(10.0)
        monkeypatch.setitem(MODELS, "whatif", known)
        mine = Says(10.0)
        mine.name = "mine"
        cell = resolve_cell(terasort(name="rounds").cell)
        seconds = Statistic(value=0.5, count=1, spread=0.0, source="")
        profile = Profile(
            workload="rounds", frame=frame(), statistics={"map_tail_fixed_s": seconds}
        )

        lent, own = (predict_cell(model, cell, {"rounds": profile}) for model in ("whatif", mine))
        waves = frame_counts(*cell.model_inputs)["map_start_s"]
        assert lent.body_s - own.body_s == pytest.approx(0.5 * waves)
        assert lent.job_s - own.job_s == pytest.approx(0.5 * waves)
        assert lent.frame_s == own.frame_s


class TestIntervals:
    def predicted(self, monkeypatch, without):
        """
        The prediction of a cell by the mean body of those profiled.
        """
        monkeypatch.setitem(WORKLOADS, "rounds", Rounds(1))
        monkeypatch.setitem(MODELS, "whatif", MeanBody())
        cell = resolve_cell(terasort(name="rounds").cell)
        profiles = {"rounds": profile_of(BODIES, without)}
        (answer,) = predict_cells("whatif", [cell], profiles, dict.fromkeys(BODIES, cell))
        return answer

    def test_are_those_of_jackknife_plus(self, monkeypatch):
        """
        Without 8 s the mean is 32/3 s and misses them by the factor 4/3; without 12 s it is 28/3 s
        and misses them by 9/7. Four cells bound 80 %, and not 90 %.
        """
        answer = self.predicted(monkeypatch, ["c0", "c1", "c2", "c3"])

        assert answer.body_s == 10.0
        assert answer.refits["body_s"] == pytest.approx((32 / 3, 31 / 3, 29 / 3, 28 / 3))
        assert answer.refits["job_s"] == pytest.approx([s + 9 for s in answer.refits["body_s"]])
        assert answer.intervals["body_s"]["80"] == pytest.approx((28 / 3 * 7 / 9, 32 / 3 * 4 / 3))
        assert {ends["90"] for ends in answer.intervals.values()} == {None}
        assert answer.intervals["job_s"]["80"][0] < 19.0 < answer.intervals["job_s"]["80"][1]

    @pytest.mark.parametrize("without", [[], ["c0", "c1", "c3"]])
    def test_a_profile_that_could_not_be_fitted_bounds_nothing(self, monkeypatch, without):
        """
        No refit at all, or one less than there are cells.
        """
        answer = self.predicted(monkeypatch, without)

        assert {ends["80"] for ends in answer.intervals.values()} == {None}
        assert len(answer.refits["body_s"]) == len(without)

    def test_no_answer_has_none(self, monkeypatch):
        """
        Nothing is predicted, and nothing around it.
        """
        monkeypatch.setitem(WORKLOADS, "rounds", Rounds(1))
        cell = resolve_cell(terasort(name="rounds").cell)
        (answer,) = predict_cells("whatif", [cell], {}, {})

        assert (answer.job_s, answer.refits, answer.intervals) == (None, {}, {})


class TestFrame:
    def test_is_the_same_for_every_model(self, monkeypatch):
        """
        The trap of the specifications' section 3: added to both or to neither, never to one.
        """
        answers = [rounds(1, monkeypatch, model=Says(body_s)) for body_s in (10.0, 90.0)]

        assert {a.job_s - a.body_s for a in answers} == {answers[0].frame_s} == {9.0}

    def test_without_one_there_is_a_body_alone(self, monkeypatch):
        """
        A part that nobody measured is never 0: it is named, and no job time is made up.
        """
        bare = frame()
        del bare["map_start_s"]

        answer = rounds(1, monkeypatch, around=bare)

        assert (answer.body_s, answer.frame_s, answer.job_s, answer.makespan_s) == (
            10.0, None, None, None,
        )  # fmt: skip
        assert answer.not_applicable == ("map_start_s",)


def test_model_inputs_of_is_what_the_plan_says():
    """
    A model gets configuration, effective slots and input; nothing of it was measured.
    """
    limited = {"mapreduce.job.reduces": "4", "mapreduce.job.running.map.limit": "1"}
    cell = resolve_cell(terasort(workers=3, **limited).cell)
    config, cluster, job_input = cell.model_inputs

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

    inputs = [resolve_cell(each).model_inputs for each in (cell, alone)]
    assert [job_input.replication for _, _, job_input in inputs] == [2, 1]


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
    workload.plan_input = lambda spec, block: InputPlan("k", (6_000_000,), JobCommand("Made", ()))
    monkeypatch.setitem(WORKLOADS, "rounds", workload)
    cell = terasort(name="rounds").cell
    spec = cell.workload.model_copy(update={"parameters": given})

    resolved = resolve_cell(cell.model_copy(update={"workload": spec}))
    assert resolved.model_inputs[2].gpu_block_bytes == bytes_


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
        workload=WorkloadSpec(name="terasort", input_bytes=size),
        configuration={FACTOR: factor, "mapreduce.job.reduces": "2", "codec": "a.b.C"},
    )
    job_input = JobInput(input_bytes=size, num_files=1, num_splits=1, split_bytes=size)

    assert range_of(axis_numbers(cell, job_input), ranges) == expected


def profiled_job(cell, **changes):
    """
    A job of *cell* as a profile keeps it.
    """
    configuration, cluster, job_input = cell.model_inputs
    asked = {
        "input_bytes": job_input.input_bytes, "num_splits": job_input.num_splits,
        "num_nodes": cluster.num_nodes, "map_slots": cluster.map_slots,
        "reduce_slots": cluster.reduce_slots, "configuration": configuration,
    }  # fmt: skip
    return ProfiledJob(trial="t", cell=cell.id, job_s=1.0, **(asked | changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "inside"), ({"map_slots": 1000}, "outside"), ({"number": 1, "map_slots": 1}, "inside"),
    ],
)  # fmt: skip
def test_place_in_a_regime_that_was_not_profiled(changes, expected):
    """
    It is outside, whatever its numbers; later jobs of a trial and older profiles tell nothing.
    """
    cell = resolve_cell(terasort().cell)
    profile = Profile(workload="terasort", jobs=(profiled_job(cell, **changes),))
    splits = cell.model_inputs[2].num_splits

    assert splits > cell.model_inputs[1].map_slots
    assert profiled_range(cell, profile) == expected


def test_place_without_a_profile():
    """
    Nothing was profiled, so everything is outside.
    """
    assert profiled_range(resolve_cell(terasort().cell), None) == "outside"
