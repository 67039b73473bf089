"""
Tests for `harness.models.vet.assessment` and `curve`: a job's tasks, read one after the other.
"""

from weakref import ref

import numpy as np
import pytest

from harness.errors import ModelError
from harness.models.vet import assess, tail_index, vet_job
from harness.models.vet.assessment import assess_task
from harness.models.vet.curve import curve
from harness.records.prediction import JobConfig
from harness.records.trace import TASK_COUNTER
from harness.records.vet import MULTI_SPILL, OMEGA_SENSITIVE, TaskUnits

ONCE = {
    f"{TASK_COUNTER}.MAP_OUTPUT_BYTES": 10**6,
    f"{TASK_COUNTER}.MAP_OUTPUT_RECORDS": 10**4,
    f"{TASK_COUNTER}.SPILLED_RECORDS": 10**4,
}
TWICE = {**ONCE, f"{TASK_COUNTER}.SPILLED_RECORDS": 2 * 10**4}


def seconds(n, seed):
    """
    Units of nearly equal time, and a few that are longer.
    """
    random = np.random.default_rng(seed)
    return np.concatenate([random.lognormal(-9, 0.2, n), 0.001 * (1 + random.pareto(1.3, n // 50))])


def task(number, kind="map", n=1500, **changes):
    """
    A task with its units.
    """
    asked = {
        "attempt_id": f"attempt_1_{kind[0]}_{number:06d}_0",
        "kind": kind,
        "unit_records": 5,
        "unit_seconds": seconds(n, number),
        "task_s": 2.0 + number,
        "records": 5 * len(seconds(n, number)),
        "spill_s": 0.01,
        "counters": ONCE if kind == "map" else {},
        **changes,
    }
    return TaskUnits(**asked)


class TestAssess:
    def test_is_the_vet_of_the_job(self):
        """
        The numbers of `vet_job`, for maps and reduces apart, whatever the order of the tasks.
        """
        maps, reduces = [task(n) for n in range(3)], [task(n, "reduce") for n in range(5, 7)]

        got = assess(iter([*reduces, *maps]), JobConfig())

        assert [(k.kind, k.job) for k in got.kinds] == [
            (mine[0].kind, vet_job([t.unit_seconds for t in mine], [t.task_s for t in mine]))
            for mine in (maps, reduces)
        ]
        assert got.kinds[0].alpha == sorted(tail_index(t.unit_seconds) for t in maps)[1]

    def test_holds_one_task_at_a_time(self):
        """
        A stream of tasks is asked for the next one when the last one is done with.
        """
        held = []

        def stream():
            for number in range(4):
                assert sum(1 for each in held if each() is not None) <= 1
                made = task(number, n=300)
                held.append(ref(made.unit_seconds))
                yield made

        assert len(assess(stream(), JobConfig()).kinds[0].attempts) == 4

    def test_buckets_stand_beside_where_there_are_enough_units(self):
        """
        A thousand buckets need ten thousand units.
        """
        few, many = (assess([task(0, n=n)], JobConfig()).kinds[0] for n in (1500, 11_000))

        assert list(few.buckets) == [100]
        assert list(many.buckets) == [1000, 100]

    def test_counts_flags_and_short_units(self):
        """
        A map that spilled twice, and one whose last unit has not all its records.
        """
        tasks = [task(0, counters=TWICE), task(1, records=5 * len(seconds(1500, 1)) - 2), task(2)]

        got = assess(tasks, JobConfig()).kinds[0]

        assert got.flags[MULTI_SPILL] == 1
        assert set(got.flags) <= {MULTI_SPILL, OMEGA_SENSITIVE}
        assert got.short_units == 1

    def test_warns_where_spills_are_long(self):
        """
        V17: spilling is left out as if it were short.
        """
        got = assess([task(0, spill_s=1.0)], JobConfig()).kinds[0]

        assert got.spill_share == 0.5
        assert "50%" in got.warnings[0]
        assert assess([task(0)], JobConfig()).kinds[0].warnings == ()

    def test_typical_is_the_task_with_the_median_vet(self):
        """
        Of five it is the third.
        """
        tasks = [task(n) for n in range(5)]

        got = assess(tasks, JobConfig()).kinds[0]

        by_vet = sorted(zip(got.job.vet_tasks, got.attempts, strict=True))
        assert got.typical == by_vet[2][1]

    def test_refuses_units_of_several_sizes(self):
        """
        Averaged with four others an outlier is another outlier.
        """
        with pytest.raises(ModelError, match="units of 5 and of 1 records"):
            assess([task(0), task(1, unit_records=1)], JobConfig())

    def test_of_nothing_is_nothing(self):
        """
        A job without units has no kinds.
        """
        assert assess([], JobConfig()).kinds == ()


class TestMultiSpill:
    @pytest.mark.parametrize(
        ("changes", "config", "flagged"),
        [
            ({"counters": ONCE}, JobConfig(), False),
            ({"counters": TWICE}, JobConfig(), True),
            ({"counters": TWICE}, JobConfig(num_reduces=0), False),
            ({"counters": {}}, JobConfig(), False),
            ({"counters": dict(list(ONCE.items())[:2])}, JobConfig(sort_buffer_mb=1), True),
            ({"counters": dict(list(ONCE.items())[:2])}, JobConfig(), False),
            ({"kind": "reduce", "counters": TWICE}, JobConfig(), False),
        ],
    )
    def test_counters_say_so_or_else_sizes(self, changes, config, flagged):
        """
        Only a map that sorts can spill twice.
        """
        assert (MULTI_SPILL in assess_task(task(0, **changes), config).flags) is flagged


class TestCurve:
    def test_holds_both_ends_and_the_change_point(self):
        """
        Few points of many; up to the change point ideal and observed are one.
        """
        got = curve(task(0, n=50_000), JobConfig())
        t = got.task.change_point

        assert len(got.place) <= 410
        assert {1, t - 1, t, t + 1, got.task.n} <= set(got.place)
        assert all(
            observed == ideal
            for place, observed, ideal in zip(got.place, got.observed_s, got.ideal_s, strict=True)
            if place <= t
        )

    def test_of_few_units_holds_all(self):
        """
        Their sums are PR and EI.
        """
        got = curve(task(0, n=100), JobConfig())

        assert sum(got.observed_s) == pytest.approx(got.task.profiled_real_s)
        assert sum(got.ideal_s) == pytest.approx(got.task.estimated_ideal_s)

    def test_without_an_ideal_is_none(self):
        """
        Five units have none.
        """
        assert curve(task(0, unit_seconds=[1.0] * 5), JobConfig()) is None
