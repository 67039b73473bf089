"""
Tests for the nearest profiled job as a model.
"""

import math

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import MissingStatistic, ModelError
from harness.models.frame import frame_s, inputs_of_profiled, jobs_beside_frame
from harness.models.scaling import NUMERIC, SWITCHES, ZERO_FACTOR, Scaling, cell_distance
from tests.models.profiled import cell_inputs, job, profile, stat

SCALING = Scaling()
WHOLE = "the whole job as the profiled jobs took it: {} is not known"
sizes = st.integers(1, 2000)


def predict(*jobs, **fields):
    """
    Answer from these jobs.
    """
    return SCALING.predict(profile(*jobs), *cell_inputs(**fields))


def chosen(*jobs, **fields):
    """
    Cell that was scaled.
    """
    return predict(*jobs, **fields).warnings[0].removeprefix("scaled from cell ")


class TestScaling:
    def test_whole_job_by_the_input_per_slot(self):
        """
        64 MiB on 2 slots took 60 s: 192 MiB on 3 slots are twice as much for each.
        """
        assert predict(job(60.0), mib=192, slots=3).body_s == pytest.approx(120)

    def test_slots_that_a_job_cannot_use_do_not_count(self):
        """
        A job of one split is as long on eight slots.
        """
        prediction = predict(job(60.0, mib=16, splits=1, slots=8), mib=64, splits=4, slots=2)

        assert prediction.body_s == pytest.approx(120)

    def test_repeats_count_by_their_median(self):
        """
        One slow repeat of the cell changes nothing.
        """
        repeats = [job(s, trial=f"t{s}") for s in (60.0, 61.0, 500.0)]

        assert predict(*repeats, mib=64, splits=4).body_s == 61.0

    def test_tasks_by_their_own_input(self):
        """
        Splits of half the size, and six times the data for each reduce.
        """
        known = job(mib=64, splits=2, map_task_s=10.0, reduce_task_s=8.0, config={"num_reduces": 4})

        prediction = predict(known, mib=192, splits=12, num_reduces=2)

        assert prediction.map_task_s == pytest.approx(10 * 16 / 32)
        assert prediction.reduce_task_s == pytest.approx(8 * 96 / 16)

    def test_tasks_that_nothing_tells_are_not_said(self):
        """
        A map-only job has no reduces, predicted or profiled.
        """
        without = job(map_task_s=10.0, config={"num_reduces": 0})
        having = job(reduce_task_s=8.0)

        assert predict(without, num_reduces=3).reduce_task_s is None
        assert predict(having, num_reduces=0).reduce_task_s is None
        assert predict(having).map_task_s is None

    @given(sizes, sizes, st.integers(1, 9), st.floats(0.1, 1e4))
    def test_of_one_cell_is_proportional(self, mib, more, slots, job_s):
        """
        With one cell there is one choice: time grows as the input, in any unit.
        """
        small, large = (
            predict(job(job_s), mib=m, splits=10, slots=slots).body_s for m in (mib, mib + more)
        )

        assert large / small == pytest.approx((mib + more) / mib)

    def test_whole_job_stands_where_no_body_is_known(self):
        """
        One body that is known counts before all jobs without.
        """
        unknown = job(60.0, body_s=None)
        other = job(90.0, body_s=80.0, mib=640, cell="d")

        alone = predict(unknown, mib=192, slots=3)
        beside = predict(unknown, other, mib=64)

        assert (alone.body_s, alone.job_s, alone.published_s) == (None, 120.0, 120.0)
        assert alone.warnings[1:] == (WHOLE.format("body_s"),)
        assert beside.warnings == ("scaled from cell d",)

    def test_whole_job_stands_where_no_frame_can_be_lent(self):
        """
        A body that is known is no job without what passes around it; else the job is the frame's.
        """
        bare = profile(job(60.0), frame={"job_start_s": stat(3.0)})
        missing = "job_end_s, map_start_s, map_end_s, reduce_end_s"

        alone = SCALING.predict(bare, *cell_inputs(mib=192, slots=3))

        assert (alone.body_s, alone.job_s) == (120.0, 120.0)
        assert alone.warnings[1:] == (WHOLE.format(missing),)
        assert predict(job(60.0)).job_s is None

    def test_bodies_as_they_ran_are_what_the_frame_leaves_of_jobs(self):
        """
        So that a body with the frame of the formula gives the profiled job again.
        """
        made = profile(job(60.0, body_s=50.0)).model_copy(update={"schema_version": 10})
        inputs = inputs_of_profiled(made.jobs[0])
        around_s, _ = frame_s(made.frame, *inputs)

        answer = SCALING.predict(made, *inputs)

        assert around_s > 0
        assert answer.body_s == pytest.approx(60.0 - around_s)
        assert answer.job_s is None

    @pytest.mark.parametrize("job_s", [1.0, 8.0, 16.0, 40.0])
    def test_a_job_that_the_frame_exceeds_has_a_body_of_a_tenth_of_it(self, job_s):
        """
        So that a slower job has no shorter body.
        """
        made = profile(job(job_s, body_s=0.5)).model_copy(update={"schema_version": 10})

        (beside,) = jobs_beside_frame(made)
        around_s, _ = frame_s(made.frame, *inputs_of_profiled(beside))
        assert beside.body_s == pytest.approx(max(job_s - around_s, job_s / 10))


class TestChoice:
    def test_by_log_distance(self):
        """
        100 MiB are nearer to 190 than to 50: a factor of 1.9 is less than one of 2.
        """
        jobs = [job(cell="small", mib=50), job(cell="large", mib=190)]

        assert chosen(*jobs, mib=100) == "large"

    def test_properties_count_as_the_input_does(self):
        """
        Four times the reduces are further than three times the data.
        """
        jobs = [
            job(cell="data", mib=300, config={"num_reduces": 2}),
            job(cell="reduces", mib=100, config={"num_reduces": 8}),
        ]

        assert chosen(*jobs, mib=100, num_reduces=2) == "data"

    def test_slots_then_switches_then_the_name_decide_ties(self):
        """
        Cells at the same distance.
        """
        wide, packed = job(cell="a", slots=8), job(cell="b", config={"map_output_compressed": True})
        second, first = job(cell="d"), job(cell="c")

        assert chosen(wide, packed, mib=64) == "b"
        assert chosen(packed, second, mib=64) == "d"
        assert chosen(second, first, mib=64) == "c"

    def test_a_zero_is_far_but_not_infinitely(self):
        """
        No reduces beside some count as a factor of a thousand.
        """
        config, _, size = cell_inputs(mib=64, num_reduces=3)

        far = cell_distance(job(config={"num_reduces": 0}), config, size)

        assert far == pytest.approx(math.log(ZERO_FACTOR))
        assert cell_distance(job(config={"num_reduces": 3}), config, size) == 0

    @given(st.permutations(range(6)), sizes)
    def test_order_of_the_jobs_does_not_matter(self, order, mib):
        """
        The same profile in another order.
        """
        jobs = [job(10.0 * k, mib=8 * 2**k, cell=f"c{k}", trial=f"t{k}") for k in range(6)]

        assert predict(*(jobs[k] for k in order), mib=mib) == predict(*jobs, mib=mib)

    def test_every_field_of_a_configuration_has_its_part(self):
        """
        Numbers are distances, switches decide ties; nothing else is there.
        """
        config, *_ = cell_inputs()

        assert set(NUMERIC) | set(SWITCHES) == set(config.model_dump())
        assert all(isinstance(getattr(config, n), bool) for n in SWITCHES)
        assert all(isinstance(getattr(config, n), int | float) for n in NUMERIC)


class TestRefuses:
    def test_a_profile_without_jobs(self):
        """
        What an older harness profiled.
        """
        with pytest.raises(MissingStatistic) as refused:
            predict()

        assert refused.value.names == ("jobs",)

    @pytest.mark.parametrize(
        ("fields", "name"),
        [({"mib": 0}, "input_bytes"), ({"mib": -1}, "input_bytes")],
    )
    def test_no_input(self, fields, name):
        """
        Nothing to scale.
        """
        with pytest.raises(ModelError, match=name):
            predict(job(), **fields)

    def test_no_splits(self):
        """
        Zero tasks have no size.
        """
        config, cluster, size = cell_inputs()
        with pytest.raises(ModelError, match="num_splits = 0"):
            SCALING.predict(
                profile(job()), config, cluster, size.model_copy(update={"num_splits": 0})
            )

    @pytest.mark.parametrize("bad", [-1.0])
    def test_a_time_that_is_none(self, bad):
        """
        A profile may have been damaged.
        """
        with pytest.raises(ModelError, match="body_s"):
            predict(job(bad))
