"""
Tests for What-If behind the models' contract, and for the registry.
"""

import pytest

from harness.base.errors import MissingStatistic, ModelError
from harness.base.records.prediction import Cluster, JobConfig, JobInput
from harness.base.records.profile import Profile, Statistic
from harness.models import MODELS
from harness.models.adapter import AROUND_TASKS
from harness.models.whatif.evaluation import evaluate
from harness.models.whatif.inputs import COSTS
from harness.models.whatif.model import MAP_PARTS, REDUCE_PARTS, cost_terms

MIB = 2**20


def stat(value):
    """
    A statistic of which only the value matters.
    """
    return Statistic(value=value, count=1, spread=0.0, source="test")


def profile(*, without=(), **changes):
    """
    A profile of records of 100 bytes; every cost 1e-8, but those *without* and *changes*.
    """
    statistics = {"input_record_bytes": stat(100.0)}
    kept = {n: s for n, s in statistics.items() if n not in without}
    return Profile(
        workload="wordcount",
        statistics=kept,
        costs={name: stat(changes.get(name, 1e-8)) for name in COSTS if name not in without},
    )


def cluster(map_slots=8, reduce_slots=8):
    """
    Four nodes of two slots each, of which so many are effective.
    """
    return Cluster(
        num_nodes=4, map_slots_per_node=2, reduce_slots_per_node=2,
        map_slots=map_slots, reduce_slots=reduce_slots,
    )  # fmt: skip


def predict(name="whatif-mr2", *, given=None, on=None, maps=20, **config):
    """
    Prediction of a model for a job of *maps* maps of 16 MiB.
    """
    size = JobInput(input_bytes=maps * 16 * MIB, num_files=1, num_splits=maps, split_bytes=16 * MIB)
    setting = JobConfig(**{"num_reduces": 4, **config})
    return MODELS[name].predict(given or profile(), setting, on or cluster(), size)


@pytest.mark.parametrize("name", [n for n in MODELS if n.startswith("whatif")])
class TestModels:
    def test_is_registered_under_its_own_name(self, name):
        """
        The key is the name in predictions.
        """
        assert MODELS[name].name == name == predict(name).model

    def test_gives_every_quantity_of_the_equations(self, name):
        """
        All intermediate ones by name; setup and cleanup are of the frame.
        """
        config = JobConfig(num_reduces=4).model_dump() | {"num_maps": 20, "split_bytes": 16 * MIB}
        size = {"num_nodes": 4, "map_slots_per_node": 2, "reduce_slots_per_node": 2}
        costs = dict.fromkeys(COSTS, 1e-8) | dict.fromkeys(AROUND_TASKS, 0.0)
        expected = evaluate({"input_record_bytes": 100.0}, costs, config, size, MODELS[name].rules)
        prediction = predict(name)

        of_job = {"job_s": prediction.estimates["equation_94_s"]}
        everything = {**prediction.phases, **prediction.dataflow, **of_job}
        kept = expected.keys() & everything.keys()
        assert {k: everything[k] for k in kept} == {k: expected[k] for k in kept}
        assert expected.keys() - everything.keys() == {
            "map_task_s", "reduce_task_s", "map_waves", "reduce_waves", "warnings",
            *(AROUND_TASKS if name != "whatif-printed" else ()),
        }  # fmt: skip

    def test_is_pure(self, name):
        """
        The same question has the same answer, and its cell is left to the caller.
        """
        assert predict(name) == predict(name)
        assert predict(name).cell == ""

    @pytest.mark.parametrize("missing", ["input_record_bytes", "map_cpu_s_per_record"])
    def test_names_what_the_profile_lacks(self, name, missing):
        """
        A statistic that dominates is never silently taken as 0.
        """
        with pytest.raises(MissingStatistic, match=missing) as refused:
            predict(name, given=profile(without=[missing]))

        assert refused.value.names == (missing,)

    def test_shuffle_costs_are_needed_by_reduces_only(self, name):
        """
        A map-only job is predicted without network and disk.
        """
        bare = profile(without=["network_s_per_byte", "local_write_s_per_byte"])

        assert predict(name, given=bare, num_reduces=0).body_s > 0
        with pytest.raises(MissingStatistic, match="local_write_s_per_byte, network_s_per_byte"):
            predict(name, given=bare, num_reduces=1)

    def test_refuses_a_cluster_without_reduce_slots(self, name):
        """
        Reduces that can run nowhere never end.
        """
        with pytest.raises(ModelError, match="reduce_slots_per_node"):
            predict(name, on=cluster(reduce_slots=0))

    def test_parts_are_the_tasks(self, name):
        """
        Single equations add up to both tasks; a spill is its sorting and the rest of it.
        """
        for config in ({"sort_buffer_mb": 2}, {"reduce_heap_bytes": MIB}, {"num_reduces": 0}):
            p = predict(name, **config)
            of_map = sum(s for n, s in p.parts.items() if n in MAP_PARTS)
            of_reduce = sum(s for n, s in p.parts.items() if n in REDUCE_PARTS)

            assert of_map == pytest.approx(p.map_task_s)
            assert of_reduce == pytest.approx(p.reduce_task_s or 0.0)
            sorting = p.parts.get("spill_sort_s", 0.0) + p.parts.get("spill_write_s", 0.0)
            assert sorting == pytest.approx(p.phases.get("spill_s", 0.0))
            assert min(p.parts.values()) >= 0


class TestPrediction:
    def test_waves_count_effective_slots(self):
        """
        A limit on running maps leaves 3 of 8 slots: 20 maps are 7 waves.
        """
        assert predict(on=cluster(map_slots=3)).map_waves == 7

    def test_estimates_bracket_the_pools_and_use_slow_start(self):
        """
        Both pools are scheduled; a late start of the reduces never makes the job shorter.
        """
        early, late = (predict(reduce_slowstart=s).estimates for s in (0.0, 1.0))

        assert early.keys() == {"equation_94_s", "scheduler_separate_s", "scheduler_shared_s"}
        assert all(late[pool] >= early[pool] for pool in early)

    @pytest.mark.parametrize(
        ("name", "added_s"), [("whatif", 4 * 4.0), ("whatif-printed", 0.0), ("whatif-mr2", 4 * 4.0)]
    )
    def test_setup_is_published_and_in_no_body(self, name, added_s):
        """
        3 + 1 s in each of three waves of maps and one of reduces; the printed form has neither.
        """
        slow, fast = (
            predict(name, given=profile(setup_cpu_s=setup, cleanup_cpu_s=cleanup))
            for setup, cleanup in ((3.0, 1.0), (0.0, 0.0))
        )

        assert (slow.body_s, slow.map_task_s, slow.phases) == (
            fast.body_s, fast.map_task_s, fast.phases,
        )  # fmt: skip
        assert slow.published_s - fast.published_s == pytest.approx(added_s)

    def test_forms_differ_in_waves_and_spills(self):
        """
        The engine schedules its waves, Hadoop 3's form has whole ones, the printed one fractions.
        """
        engine, printed, mr2 = (
            predict(name) for name in ("whatif", "whatif-printed", "whatif-mr2")
        )

        assert (engine.map_waves, printed.map_waves, mr2.map_waves) == (3, 2.5, 3)
        assert engine.body_s == engine.estimates["scheduler_separate_s"]
        assert printed.body_s == printed.published_s == printed.estimates["equation_94_s"]
        assert mr2.body_s == mr2.estimates["equation_94_s"]

    def test_engine_creates_no_data(self):
        """
        A buffer that is filled 1.01 times is two full spills in the printed form (W10).
        """
        records = {n: predict(n, sort_buffer_mb=5).dataflow for n in ("whatif", "whatif-printed")}

        flow = {n: d["num_spills"] * d["records_per_spill"] for n, d in records.items()}
        assert flow["whatif"] == pytest.approx(records["whatif"]["map_out_records"])
        assert flow["whatif-printed"] > flow["whatif"]

    def test_timeline_holds_every_task_to_the_end_of_the_job(self):
        """
        20 maps and 4 reduces; the last one ends with the job.
        """
        p = predict()

        kinds = [span.kind for span in p.timeline]
        assert (kinds.count("map"), kinds.count("reduce")) == (20, 4)
        assert max(s.end_s for s in p.timeline) == p.estimates["scheduler_separate_s"]

    def test_setup_lies_where_the_history_shows_it(self):
        """
        In the fit a task's setup is before its first phase, its cleanup in its last.
        """
        config = JobConfig(num_reduces=4).model_dump() | {"num_maps": 20, "split_bytes": 16 * MIB}
        size = {"num_nodes": 4, "map_slots_per_node": 2, "reduce_slots_per_node": 2}

        terms = cost_terms({"input_record_bytes": 100.0}, config, size, of_parts=False)

        assert {n: [p for p, t in terms.items() if t[n] == 1.0] for n in AROUND_TASKS} == {
            "setup_cpu_s": ["map_main_s", "shuffle_s"],
            "cleanup_cpu_s": ["map_tail_s", "reduce_rest_s"],
        }

    def test_last_spill_lies_behind_the_map_function(self):
        """
        Of n spills the history's map phase covers n - 1.
        """
        given = profile().model_copy(
            update={"costs": {n: stat(0.0) for n in COSTS} | {"local_write_s_per_byte": stat(1e-8)}}
        )
        p = predict("whatif", given=given, sort_buffer_mb=2)

        n = p.dataflow["num_spills"]
        assert n > 2
        assert p.measurable["map_main_s"] == pytest.approx(p.phases["spill_s"] * (n - 1) / n)
