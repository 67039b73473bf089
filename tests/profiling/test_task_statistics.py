"""Statistics of the inside of tasks, and how far logs are from spans."""

from dataclasses import replace

import pytest

from harness.base.records.profile import SpeedCorrection
from harness.base.records.tasks import (
    MapTimes,
    MergeTimes,
    ReduceTimes,
    SegmentTimes,
    SourceComparison,
    SpillTimes,
)
from harness.base.records.trace import TASK_COUNTER
from harness.models import MODELS
from harness.models.whatif.inputs import SIDES
from harness.observe.profiling import fit_profile
from harness.observe.profiling.task_statistics import MAP, REDUCE, compare_sources, task_statistics
from harness.observe.profiling.task_times import logged_map_times, logged_reduce_times
from tests.parsing.recorded import JOBS, reported
from tests.profiling.jobs import grid, observation

STEADY = SpeedCorrection(reference_rate=100.0, coefficient=0.0, gain=0.0, count=0)
READ_COSTS = ("whatif", "whatif-printed", "whatif-mr2", "prophet", "ptc-wave")
FAST = SpeedCorrection(reference_rate=100.0, coefficient=1.0, gain=0.5, count=9)


def a_map(number=0, *, source="spans", host="w1", scale=1.0, **fields):
    """A map of 1000 records: one spill behind the map function, and the last one."""
    parts = {"records": 400, "buffer_bytes": 4000, "file_bytes": 1000}
    if source == "spans":
        parts |= {"sort_s": 0.4 * scale, "combine_s": 0.2 * scale, "write_s": 0.1 * scale}
    both = (
        SpillTimes(2.0, 2.0 + 0.8 * scale, last=False, overlapped=200, **parts),
        SpillTimes(9.0, 9.0 + 0.8 * scale, last=True, overlapped=0, **parts),
    )
    known = {
        "alone_s": 8.0 * scale, "alone_records": 800, "spilling_s": 4.0 * scale,
        "spilling_records": 200, "merge_s": 2.0 * scale, "start_up_s": 3.0 * scale,
        "end_s": 0.5 * scale, "blocked_s": 1.0 * scale,
    }  # fmt: skip
    return MapTimes(f"attempt_1_0001_m_{number:06}_0", source, host, 1000, both, **(known | fields))


def a_reduce(number=0, *, source="spans", **fields):
    """A reduce of 500 records: two copies side by side, and a merge on disk."""
    copies = (
        SegmentTimes("m0", "w2", 3000, 9000, "memory", 1.0, 2.0, connect_s=0.5),
        SegmentTimes("m1", "w1", 1000, 9000, "disk", 1.5, 3.0, connect_s=0.0),
    )
    merges = (MergeTimes("disk", 3.0, 5.0, 2, 4000), MergeTimes("final", 6.0, 7.0, 1))
    return ReduceTimes(
        f"attempt_1_0001_r_{number:06}_0", source, "w1", 500, copies, merges, **fields
    )


def job(*task_times, rate=None, **options):
    """A job of which *inside* is known."""
    return replace(observation(rate=rate, **options), task_times=task_times)


def values(*jobs, speed=STEADY):
    """Statistics as plain numbers."""
    return {name: s.value for name, s in task_statistics(jobs, speed).items()}


class TestStatistics:
    """What a record or a byte costs in each part."""

    def test_of_a_map(self):
        """
        Each is the ratio of its sums, and what the task does not tell is absent.
        """
        assert values(job(a_map())) == pytest.approx({
            "map_s_per_record": 8 / 800,
            "map_while_spilling_s_per_record": 4 / 200,
            "sort_s_per_record": 0.8 / 800,
            "combine_s_per_record": 0.4 / 800,
            "spill_write_s_per_byte": 0.2 / 2000,
            "spill_s_per_record": 1.6 / 800,
            "spill_bytes_selectivity": 0.25,
            "map_merge_s_per_byte": 2 / 2000,
        })  # fmt: skip

    def test_of_a_reduce(self):
        """
        Copying counts each fetcher, with what it took to connect.
        """
        result = values(job(a_reduce()))

        assert result == pytest.approx({
            "copy_s_per_byte": 3.0 / 4000,
            "disk_merge_s_per_byte": 2 / 4000,
        })  # fmt: skip

    def test_parts_of_the_reduce_function(self):
        """
        Reading with the last merge and the function are told apart where a task says so.
        """
        result = values(job(a_reduce(read_s=1.0, function_s=2.0, write_s=3.0)))

        assert result["reduce_read_s_per_record"] == pytest.approx(1 / 500)
        assert result["reduce_s_per_record"] == pytest.approx(2 / 500)

    def test_bytes_taken_as_counted(self):
        """
        Where spills do not say what they took from the buffer, Hadoop's counter does.
        """
        task = a_map()
        unsaid = replace(task, spills=tuple(replace(s, buffer_bytes=None) for s in task.spills))
        seen = job(unsaid)
        emitted = seen.trace.succeeded("map")[0].counters[f"{TASK_COUNTER}.MAP_OUTPUT_BYTES"]

        assert values(seen)["spill_bytes_selectivity"] == pytest.approx(2000 / emitted)

    def test_by_node(self):
        """
        A machine's value is that of its own tasks, weighed by their size like the whole.
        """
        slow = a_map(1, host="w2", alone_s=32.0, alone_records=1600)

        result = task_statistics([job(a_map(), slow)], STEADY)["map_s_per_record"]

        assert result.nodes == {"w1": 0.01, "w2": 0.02}
        assert (result.value, result.count) == (40 / 2400, 2)
        assert result.spread == pytest.approx(0.00707, rel=1e-2)

    def test_at_reference_speed(self):
        """
        Times are brought to reference speed; what is no time stays.
        """
        plain = values(job(a_map(), a_reduce(), rate=100.0), speed=FAST)
        slow = values(job(a_map(), a_reduce(), rate=50.0), speed=FAST)

        ratios = {name: slow[name] / value for name, value in plain.items()}
        assert ratios.pop("spill_bytes_selectivity") == 1.0
        assert set(ratios.values()) == {0.5}

    def test_spans_before_logs(self):
        """
        What spans tell is taken from them alone, the rest from logs, and the source says which.
        """
        logs = a_map(1, source="logs", alone_s=80.0)
        spans = replace(a_map(), merge_s=None)

        result = task_statistics([job(spans, logs)], STEADY)

        assert result["map_s_per_record"].value == 0.01
        assert result["map_s_per_record"].source.startswith("spans: ")
        assert result["map_s_per_record"].source.endswith("over 1 map tasks")
        assert result["map_merge_s_per_byte"].source.startswith("logs: ")

    def test_estimates_are_marked(self):
        """
        A statistic that rests on an estimate of some task says so.
        """
        result = task_statistics([job(a_map(sampled=("spilling_s",)))], STEADY)

        assert result["map_while_spilling_s_per_record"].source.endswith("; estimated for some")
        assert not result["map_s_per_record"].source.endswith("; estimated for some")

    def test_compressed_runs_apart(self):
        """
        What depends on the codec has a second statistic; what does not pools both kinds of runs.
        """
        packed = job(a_map(alone_s=16.0), map_output_compressed=True)

        result = values(job(a_map()), packed)

        assert result["map_s_per_record"] == pytest.approx(12 / 800)
        both = {n for n in result if f"{n}_compressed" in result}
        assert both == {
            "map_while_spilling_s_per_record", "combine_s_per_record", "spill_write_s_per_byte",
            "spill_s_per_record", "spill_bytes_selectivity", "map_merge_s_per_byte",
        }  # fmt: skip
        only = values(packed)
        assert "spill_bytes_selectivity" not in only
        assert only["spill_bytes_selectivity_compressed"] == 0.25

    def test_only_tasks_that_succeeded(self):
        """
        A killed attempt says nothing of what a task costs.
        """
        stranger = a_map(77)

        assert values(job(stranger)) == {}


class TestProfile:
    """The profile of a workload."""

    def test_models_answer_as_before(self):
        """
        What models had is not changed by what stands beside it, and neither are their answers.
        """
        plain = grid(combine=True)[:9]
        more = [replace(o, task_times=(a_map(), a_reduce())) for o in plain]
        before, after = fit_profile("w", plain), fit_profile("w", more)

        assert {n: after.statistics[n] for n in before.statistics} == before.statistics
        assert (after.costs, after.groups) == (
            before.costs, before.groups,
        )  # fmt: skip
        assert set(after.statistics) - set(before.statistics) >= set(values(*more))
        o = plain[0]
        for name in ("whatif", "whatif-mr2"):  # others are there for what the inside tells
            model_inputs = (o.config, o.cluster, o.job_input)
            model = MODELS[name]
            assert model.predict(after, *model_inputs) == model.predict(before, *model_inputs)

    def sided(self, **more):
        """A profile whose costs are the common ones and *more*, and the cell of one of its jobs."""
        jobs = [replace(o, task_times=(a_map(), a_reduce())) for o in grid()[:9]]
        fitted = fit_profile("w", jobs)
        common = {n: c for n, c in fitted.costs.items() if not n.endswith(("_map", "_reduce"))}
        costs = common | {name: change(common) for name, change in more.items()}
        cell = (jobs[0].config, jobs[0].cluster, jobs[0].job_input)
        return fitted.model_copy(update={"costs": costs}), cell

    @pytest.mark.parametrize("name", READ_COSTS)
    def test_equal_sides_give_what_one_cost_gave(self, name):
        """
        The common cost given to maps and to reduces changes no answer of any model.
        """
        one, cell = self.sided()
        sides = {
            f"{cost}_{side}": lambda common, cost=cost: common[cost]
            for cost in one.costs
            for side in SIDES
        }

        both, _ = self.sided(**sides)
        assert MODELS[name].predict(both, *cell) == MODELS[name].predict(one, *cell)

    @pytest.mark.parametrize("name", READ_COSTS)
    def test_reduces_that_write_more_slowly(self, name):
        """
        The reduces' cost lengthens reduces alone; the printed What-If has one cost of both.
        """
        cost = "local_write_s_per_byte"
        before, cell = self.sided()
        after, _ = self.sided(
            **{f"{cost}_reduce": lambda common: common[cost].model_copy(update={"value": 1e-6})}
        )

        old, new = (MODELS[name].predict(given, *cell) for given in (before, after))

        assert new.map_task_s == old.map_task_s
        assert (new.body_s > old.body_s) == (name != "whatif-printed")

    def test_real_logs(self):
        """
        A job's stock logs give what Prophet wants of the spills, and no part that they hide.
        """
        result = task_statistics([_real("uneven")], STEADY)

        assert result["spill_bytes_selectivity"].value == pytest.approx(104 / 102, rel=1e-4)
        assert {"map_s_per_record", "map_while_spilling_s_per_record"} <= result.keys()
        assert not {"sort_s_per_record", "spill_write_s_per_byte", "read_s_per_record"} & set(
            result
        )
        assert all(s.source.startswith("logs: ") and s.value > 0 for s in result.values())

    def test_real_compressed_logs(self):
        """
        TeraSort's spills shrink to about a quarter; nothing is said of runs without a codec.
        """
        result = task_statistics([_real("disk", map_output_compressed=True)], STEADY)

        assert result["spill_bytes_selectivity_compressed"].value == pytest.approx(0.28, abs=0.01)
        assert "spill_bytes_selectivity" not in result


def _real(name, **options):
    task_times = []
    for t in reported(name):
        if t.attempt.kind == "map":
            task_times.append(logged_map_times(t.log, t.attempt))
        else:
            task_times.append(logged_reduce_times(t.log, t.shuffle, t.attempt))
    made = observation(**options)
    trace = replace(made.trace, attempts=tuple(t.attempt for t in reported(name)))
    return replace(made, trace=trace, task_times=tuple(task_times))


class TestComparison:
    """Logs beside spans of the same tasks."""

    def test_ratio_and_spread(self):
        """
        The ratio is that of the sums, the spread that of the tasks.
        """
        spans = [a_map(0), a_map(1)]
        logs = [a_map(0, source="logs", alone_s=8.8), a_map(1, source="logs", alone_s=10.4)]

        result = {one.name: one for one in compare_sources(spans, logs, {})}

        assert result["map_s_per_record"] == SourceComparison(
            name="map_s_per_record", text=MAP["map_s_per_record"].text,
            spans=pytest.approx(0.01), logs=pytest.approx(0.012), ratio=pytest.approx(1.2),
            spread=pytest.approx(0.2 / 2**0.5), count=2,
        )  # fmt: skip
        assert "sort_s_per_record" not in result
        assert result["spill_s_per_record"].ratio == 1.0

    def test_only_tasks_of_both(self):
        """
        Tasks that one source alone knows are no comparison.
        """
        assert compare_sources([a_map(0)], [a_map(1, source="logs")], {}) == []

    def test_equal_sources(self):
        """
        Real logs compared with themselves do not differ.
        """
        for name in JOBS:
            task_times = _real(name).task_times
            counters = {t.attempt.attempt_id: t.attempt.counters for t in reported(name)}

            result = compare_sources(task_times, task_times, counters)

            assert {(c.ratio, c.spread) for c in result} == {(1.0, 0.0)}

    def test_names(self):
        """
        No statistic of maps has the name of one of reduces.
        """
        assert not MAP.keys() & REDUCE.keys()
