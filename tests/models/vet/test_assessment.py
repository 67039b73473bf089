"""
Tests for `harness.models.vet.assessment`: a job's tasks, read one after the other; curves.
"""

from weakref import ref

import numpy as np
import pytest

from harness.base.errors import ModelError
from harness.base.records.prediction import JobConfig
from harness.base.records.trace import TASK_COUNTER
from harness.base.records.vet import MULTI_SPILL, OMEGA_SENSITIVE, TaskUnits
from harness.models.vet.assessment import assess, assess_task, vet_curve
from harness.models.vet.change_point import order_units
from harness.models.vet.equations import tail_index, vet_job

ONCE = {
    f"{TASK_COUNTER}.MAP_OUTPUT_BYTES": 10**6,
    f"{TASK_COUNTER}.MAP_OUTPUT_RECORDS": 10**4,
    f"{TASK_COUNTER}.SPILLED_RECORDS": 10**4,
}
TWICE = {**ONCE, f"{TASK_COUNTER}.SPILLED_RECORDS": 2 * 10**4}


def seconds(unit_count, seed):
    """
    Units of nearly equal time, and a few that are longer.
    """
    random = np.random.default_rng(seed)
    return np.concatenate(
        [random.lognormal(-9, 0.2, unit_count), 0.001 * (1 + random.pareto(1.3, unit_count // 50))]
    )


def task(number, kind="map", unit_count=1500, **changes):
    """
    A task with its units.
    """
    fields = {
        "attempt_id": f"attempt_1_{kind[0]}_{number:06d}_0",
        "kind": kind,
        "unit_records": 5,
        "unit_seconds": seconds(unit_count, number),
        "task_s": 2.0 + number,
        "records": 5 * len(seconds(unit_count, number)),
        "spill_s": 0.01,
        "counters": ONCE if kind == "map" else {},
        **changes,
    }
    return TaskUnits(**fields)


class TestAssess:
    def test_is_the_vet_of_the_job(self):
        """
        The numbers of `vet_job`, for maps and reduces apart, whatever the order of the tasks.
        """
        maps, reduces = (
            [task(number) for number in range(3)],
            [task(number, "reduce") for number in range(5, 7)],
        )

        result = assess(iter([*reduces, *maps]), JobConfig())

        assert [(kind_report.kind, kind_report.job) for kind_report in result] == [
            (
                tasks_of_kind[0].kind,
                vet_job([t.unit_seconds for t in tasks_of_kind], [t.task_s for t in tasks_of_kind]),
            )
            for tasks_of_kind in (maps, reduces)
        ]
        assert result[0].alpha == sorted(tail_index(np.sort(t.unit_seconds)) for t in maps)[1]

    def test_holds_one_task_at_a_time(self):
        """
        The next task of a stream is read when the last one is released.
        """
        references = []

        def stream():
            for number in range(4):
                assert sum(1 for each in references if each() is not None) <= 1
                made = task(number, unit_count=300)
                references.append(ref(made.unit_seconds))
                yield made

        assert len(assess(stream(), JobConfig())[0].attempts) == 4

    def test_buckets_stand_beside_where_there_are_enough_units(self):
        """
        A thousand buckets need ten thousand units.
        """
        few, many = (
            assess([task(0, unit_count=unit_count)], JobConfig())[0]
            for unit_count in (1500, 11_000)
        )

        assert list(few.buckets) == [100]
        assert list(many.buckets) == [1000, 100]

    def test_counts_flags_and_short_units(self):
        """
        A map that spilled twice, and one whose last unit has not all its records.
        """
        tasks = [task(0, counters=TWICE), task(1, records=5 * len(seconds(1500, 1)) - 2), task(2)]

        result = assess(tasks, JobConfig())[0]

        assert result.flags[MULTI_SPILL] == 1
        assert set(result.flags) <= {MULTI_SPILL, OMEGA_SENSITIVE}
        assert result.short_units == 1

    def test_warns_where_spills_are_long(self):
        """
        V17: spilling is left out as if it were short.
        """
        result = assess([task(0, spill_s=1.0)], JobConfig())[0]

        assert result.spill_share == 0.5
        assert "50%" in result.warnings[0]
        assert assess([task(0)], JobConfig())[0].warnings == ()

    def test_typical_is_the_task_with_the_median_vet(self):
        """
        Of five it is the third.
        """
        tasks = [task(number) for number in range(5)]

        result = assess(tasks, JobConfig())[0]

        by_vet = sorted(zip(result.job.vet_tasks, result.attempts, strict=True))
        assert result.typical == by_vet[2][1]

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
        assert assess([], JobConfig()) == ()


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
        units = task(0, **changes)
        ordered = order_units(units.unit_seconds)

        assert (MULTI_SPILL in assess_task(units, ordered, config).flags) is flagged


class TestCurve:
    def test_holds_both_ends_and_the_change_point(self):
        """
        Few points of many; up to the change point ideal and observed are one.
        """
        result = vet_curve(task(0, unit_count=50_000), JobConfig())
        t = result.task.change_point

        assert len(result.place) <= 410
        assert {1, t - 1, t, t + 1, result.task.n} <= set(result.place)
        assert all(
            observed == ideal
            for place, observed, ideal in zip(
                result.place, result.observed_s, result.ideal_s, strict=True
            )
            if place <= t
        )

    def test_of_few_units_holds_all(self):
        """
        Their sums are PR and EI.
        """
        result = vet_curve(task(0, unit_count=100), JobConfig())

        assert sum(result.observed_s) == pytest.approx(result.task.profiled_real_s)
        assert sum(result.ideal_s) == pytest.approx(result.task.estimated_ideal_s)

    def test_without_an_ideal_is_none(self):
        """
        Five units have none.
        """
        assert vet_curve(task(0, unit_seconds=[1.0] * 5), JobConfig()) is None
