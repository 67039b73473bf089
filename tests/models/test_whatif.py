"""
Tests for `harness.models.whatif`: laws of the equations, edge cases, refusals.
"""

import math

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import MissingStatistic, ModelError
from harness.models.whatif.evaluation import evaluate
from harness.models.whatif.inputs import COSTS, SIDES
from harness.models.whatif.model import MAP_PARTS, REDUCE_PARTS, cost_terms, measurable

MIB = 2**20
rules = st.sampled_from(["paper", "mr2"])
flags = st.booleans()
selectivities = st.floats(0.05, 4)
costs = st.fixed_dictionaries({name: st.floats(0, 1e-4) for name in COSTS})


@st.composite
def jobs(draw):
    """
    Statistics, configuration and cluster of some job.
    """
    names = ("map", "reduce", "combine")
    statistics = {f"{n}_{of}_selectivity": draw(selectivities)
                  for n in names for of in ("bytes", "records")}  # fmt: skip
    statistics["input_record_bytes"] = draw(st.floats(1, 10_000))
    for ratio in ("input", "map_output", "output"):
        statistics[f"{ratio}_compression_ratio"] = draw(st.floats(0.1, 1))
    config = {
        "num_maps": draw(st.integers(0, 300)),
        "num_reduces": draw(st.integers(1, 40)),
        "split_bytes": draw(st.integers(0, 256 * MIB)),
        "sort_buffer_mb": draw(st.integers(1, 200)),
        "merge_factor": draw(st.integers(2, 20)),
        "combine_min_spills": draw(st.integers(0, 5)),
        "reduce_heap_bytes": draw(st.integers(MIB, 1024 * MIB)),
        "reduce_buffer_percent": draw(st.floats(0, 1)),
        "use_combiner": draw(flags),
        "map_output_compressed": draw(flags),
        "output_compressed": draw(flags),
        "input_compressed": draw(flags),
    }
    return {
        "statistics": statistics,
        "config": config,
        "cluster": {
            "num_nodes": draw(st.integers(1, 8)),
            "map_slots_per_node": draw(st.integers(1, 4)),
            "reduce_slots_per_node": draw(st.integers(1, 4)),
        },
    }


def job_fields(**changes):
    """
    A job of 40 maps and 8 reduces; *changes* go where their name belongs.
    """
    parts = {
        "statistics": {"input_record_bytes": 100.0},
        "costs": dict.fromkeys(COSTS, 1e-8),
        "config": {"num_maps": 40, "num_reduces": 8, "split_bytes": 128 * MIB},
        "cluster": {"num_nodes": 4, "map_slots_per_node": 2, "reduce_slots_per_node": 2},
    }
    homes = {"num_nodes": "cluster", "map_slots_per_node": "cluster"}
    homes |= {"reduce_slots_per_node": "cluster"} | dict.fromkeys(COSTS, "costs")
    for name, value in changes.items():
        of_data = name.endswith(("_selectivity", "_ratio", "_record_bytes", "_group"))
        parts[homes.get(name, "statistics" if of_data else "config")][name] = value
    return parts


class TestLaws:
    @given(jobs())
    def test_volumes_are_conserved(self, job):
        """
        Under mr2 rules a job without combiner spills, merges and reduces what its maps emit.
        """
        job["config"]["use_combiner"] = False
        a = evaluate(**job, costs={}, rules="mr2")
        k, maps, reduces = (
            job["statistics"]["map_output_compression_ratio"]
            if job["config"]["map_output_compressed"]
            else 1.0,
            job["config"]["num_maps"],
            job["config"]["num_reduces"],
        )

        assert a["map_final_bytes"] == pytest.approx(a["map_out_bytes"] * k)
        assert a["map_final_records"] == pytest.approx(a["map_out_records"])
        assert a["reduce_in_bytes"] * reduces == pytest.approx(a["map_out_bytes"] * maps)
        assert a["reduce_in_records"] * reduces == pytest.approx(a["map_out_records"] * maps)

    @given(jobs(), costs, rules, st.floats(0.01, 100))
    def test_times_scale_with_costs(self, job, some, rule, c):
        """
        All costs c times as high make every time c times as long, and move no byte.
        """
        one = evaluate(**job, costs=some, rules=rule)
        other = evaluate(**job, costs={k: c * v for k, v in some.items()}, rules=rule)

        for name, value in one.items():
            if name.endswith("_s"):
                assert other[name] == pytest.approx(c * value, rel=1e-9, abs=1e-12), name
            else:
                assert other[name] == value, name

    @given(jobs(), costs, rules, st.sampled_from(COSTS))
    def test_no_time_falls_as_a_cost_rises(self, job, some, rule, cost):
        """
        Every time is monotone in every cost.
        """
        one = evaluate(**job, costs=some, rules=rule)
        dearer = evaluate(**job, costs=some | {cost: some[cost] + 1e-5}, rules=rule)

        times = [name for name in one if name.endswith("_s")]
        assert [n for n in times if dearer[n] < one[n] * (1 - 1e-12)] == []

    @given(jobs(), costs, rules)
    def test_phases_sum_to_tasks_and_tasks_to_history(self, job, some, rule):
        """
        Tasks are the sum of their phases, and the measurable phases split them without rest.
        """
        a = evaluate(**job, costs=some, rules=rule)
        seen = measurable(a)

        assert seen["map_main_s"] + seen["map_tail_s"] == pytest.approx(a["map_task_s"])
        reduce_s = seen["shuffle_s"] + seen["sort_s"] + seen["reduce_rest_s"]
        assert reduce_s == pytest.approx(a["reduce_task_s"])

    @given(jobs(), costs, st.booleans())
    def test_measurable_phases_are_linear_in_costs(self, job, some, map_only):
        """
        Each phase is the sum of its terms times the costs.
        """
        if map_only:
            job["config"]["num_reduces"] = 0
        phases = measurable(evaluate(**job, costs=some, rules="mr2"))
        terms = cost_terms(**job, of_parts=False)

        assert terms.keys() == phases.keys()
        for phase, seconds in phases.items():
            total = math.fsum(terms[phase][cost] * some[cost] for cost in COSTS)
            assert total == pytest.approx(seconds, rel=1e-9, abs=1e-12), phase

    @given(jobs(), costs, st.booleans())
    def test_parts_add_up_to_the_tasks(self, job, some, map_only):
        """
        The parts of a recording, each its terms times the costs, are the two tasks.
        """
        if map_only:
            job["config"]["num_reduces"] = 0
        answer = evaluate(**job, costs=some, rules="mr2")

        seconds = {
            part: math.fsum(of_part[cost] * some[cost] for cost in COSTS)
            for part, of_part in cost_terms(**job, of_parts=True).items()
        }

        for parts, task in ((MAP_PARTS, "map_task_s"), (REDUCE_PARTS, "reduce_task_s")):
            total = math.fsum(seconds.pop(part) for part in parts if part in seconds)
            assert total == pytest.approx(answer.get(task, 0.0), rel=1e-9, abs=1e-12), task
        assert not seconds

    @given(jobs(), rules)
    def test_every_quantity_is_a_finite_natural_amount(self, job, rule):
        """
        Nothing is negative, nothing infinite.
        """
        a = evaluate(**job, costs={}, rules=rule)

        amounts = {k: v for k, v in a.items() if not isinstance(v, list)}
        assert [k for k, v in amounts.items() if not 0 <= v < math.inf] == []

    @given(jobs(), rules)
    def test_switched_off_parts_change_nothing(self, job, rule):
        """
        Eq. (1): without combiner and codecs their statistics and costs are not looked at.
        """
        job["config"] |= dict.fromkeys(
            ("use_combiner", "map_output_compressed", "output_compressed", "input_compressed"),
            False,
        )
        plain = {k: v for k, v in job["statistics"].items() if "combine" not in k}
        plain = {k: v for k, v in plain.items() if "ratio" not in k}
        dear = {k: 1.0 for k in COSTS if "combine" in k or "compress" in k}

        one = evaluate(**job, costs=dear, rules=rule)
        other = evaluate(plain, {}, job["config"], job["cluster"], rules=rule)

        assert one["job_s"] == other["job_s"] == 0.0
        assert one["shuffle_bytes"] == other["shuffle_bytes"]


class TestEdges:
    def test_single_spill_is_renamed(self):
        """
        One spill: no merge, and each record is spilled once (W14, W15).
        """
        a = evaluate(**job_fields(split_bytes=MIB), rules="mr2")

        assert (a["num_spills"], a["merge_passes"], a["map_merge_s"]) == (1, 0, 0.0)
        assert a["spilled_records"] == a["map_out_records"]

    @pytest.mark.parametrize("rule", ["paper", "mr2"])
    def test_record_wider_than_the_buffer_is_spilled_alone(self, rule):
        """
        Each record is a spill of its own (W08), and a merge of very many is no effort.
        """
        wide = job_fields(input_record_bytes=2e6, sort_buffer_mb=1, split_bytes=10**12)
        a = evaluate(**wide, rules=rule)

        assert a["spill_buffer_records"] == 1
        assert a["num_spills"] == 500_000

    def test_records_without_bytes_have_no_serialization_bound(self):
        """
        Width 0: only the metadata bounds a spill (W07), and nothing is shuffled.
        """
        a = evaluate(**job_fields(map_bytes_selectivity=0.0), rules="paper")

        assert a["max_serialization_records"] == math.inf
        assert a["spill_buffer_records"] == a["max_accounting_records"]
        assert (a["num_shuffle_files"], a["segments_left_in_memory"]) == (0, 0)

    @pytest.mark.parametrize("rule", ["paper", "mr2"])
    def test_no_maps(self, rule):
        """
        Nothing is shuffled; under mr2 rules the reduces still start and end.
        """
        a = evaluate(**job_fields(num_maps=0, setup_cpu_s=2.0, cleanup_cpu_s=1.0), rules=rule)

        assert (a["maps_s"], a["shuffle_bytes"]) == (0, 0)
        assert a["reduces_s"] == (3.0 if rule == "mr2" else 0.0)

    def test_one_map_leaves_its_segment_to_step_1(self):
        """
        The one segment is written to disk when nothing may stay in memory.
        """
        a = evaluate(**job_fields(num_maps=1), rules="mr2")

        assert (a["segments_left_in_memory"], a["segments_evicted"]) == (1, 1)
        assert a["step1_bytes"] == a["segment_compressed_bytes"]

    def test_segment_larger_than_the_buffer_goes_to_disk(self):
        """
        Case 2: as many files as maps, each written once.
        """
        a = evaluate(**job_fields(reduce_heap_bytes=MIB), rules="mr2")

        assert not a["segments_go_to_memory"]
        assert (a["num_shuffle_files"], a["segments_left_in_memory"]) == (40, 0)

    def test_more_reduces_than_records_need_no_sort(self):
        """
        The logarithm is never negative (W11).
        """
        few = job_fields(split_bytes=400, num_reduces=8)
        few["costs"] = {"sort_cpu_s_per_record": 1.0}

        assert evaluate(**few, rules="mr2")["spill_s"] == 0.0

    def test_map_only_job_has_no_reduce_side(self):
        """
        No reduces: Eqs. (2) to (8) and the job, slots for reduces being needless.
        """
        a = evaluate(**job_fields(num_reduces=0, reduce_slots_per_node=0), rules="paper")

        assert a["job_s"] == a["maps_s"]
        assert {"shuffle_s", "spill_s", "reduce_task_s", "num_spills"} & a.keys() == set()

    def test_whole_waves_under_mr2_rules_only(self):
        """
        Nine maps on eight slots are two waves, or nine eighths of one (W34).
        """
        nine = job_fields(num_maps=9)
        paper, mr2 = (evaluate(**nine, rules=r) for r in ("paper", "mr2"))

        assert (paper["map_waves"], mr2["map_waves"]) == (1.125, 2)

    def test_defaults_are_those_of_the_specification(self):
        """
        What is not given is Hadoop's default; the heap's depends on the rules.
        """
        heaps = {}
        for rule in ("paper", "mr2"):
            bare = evaluate({"input_record_bytes": 1}, {}, {"num_maps": 1}, {"num_nodes": 1}, rule)
            heaps[rule] = bare["shuffle_buffer_bytes"] / 0.7

        assert heaps == pytest.approx({"paper": 200 * MIB, "mr2": 0.8 * 1024 * MIB})

    def test_combined_bytes_follow_combined_records(self):
        """
        A combiner without a statistic for bytes shrinks them as it shrinks records.
        """
        job = job_fields(use_combiner=True, combine_records_selectivity=0.25)
        a = evaluate(**job, rules="mr2")

        assert a["map_final_bytes"] / a["map_out_bytes"] == pytest.approx(
            a["map_final_records"] / a["map_out_records"]
        )


class TestCombiner:
    """What a combiner leaves where that is known by the records that it sees, W42."""

    @given(st.integers(1, 60), st.floats(0, 1))
    def test_one_key_or_few_leave_as_much_of_any_spill(self, buffer_mb, share):
        """
        With exponent 0, maps leave the same whatever their buffer is; so do reduces' merges.
        """
        job = job_fields(
            use_combiner=True, combine_records_selectivity=1e-4, combine_bytes_selectivity=1e-4,
            sort_buffer_mb=buffer_mb, shuffle_merge_percent=0.25 + share / 2,
        )  # fmt: skip
        job["config"]["shuffle_segment_limit_percent"] = 0.1
        job["statistics"] |= {
            "records_per_combine": 1e5,
            "combine_bytes_exponent": 0.0,
            "combine_records_exponent": 0.0,
        }
        a = evaluate(**job, rules="mr2")

        assert a["spill_file_records"] == pytest.approx(10)
        assert a["map_final_records"] == pytest.approx(
            10 if a["num_spills"] > 2 else 10 * a["num_spills"]
        )
        assert a["shuffle_file_records"] == pytest.approx(a["map_final_records"] / 8)

    @given(st.floats(0, 1), st.floats(0.01, 1))
    def test_share_holds_for_the_records_that_it_was_seen_for(self, exponent, share):
        """
        A spill as large as those of the profile is combined as there.
        """
        job = job_fields(use_combiner=True, combine_records_selectivity=share)
        plain = evaluate(**job, rules="mr2")
        records = plain["records_per_spill"]
        law = {
            "records_per_combine": records,
            "combine_bytes_exponent": exponent,
            "combine_records_exponent": exponent,
        }
        job["statistics"] |= law
        a = evaluate(**job, rules="mr2")

        assert a["spill_file_bytes"] == pytest.approx(plain["spill_file_bytes"])
        assert a["spill_file_records"] == pytest.approx(plain["spill_file_records"])

    def test_small_spills_keep_all_records_at_most(self):
        """
        What is left is never more than there was.
        """
        job = job_fields(use_combiner=True, combine_records_selectivity=0.5, sort_buffer_mb=1)
        job["statistics"] |= {
            "records_per_combine": 1e9,
            "combine_bytes_exponent": 0.0,
            "combine_records_exponent": 0.0,
        }
        a = evaluate(**job, rules="mr2")

        assert a["spill_file_records"] == a["records_per_spill"]

    @pytest.mark.parametrize("rule", ["paper", "engine"])
    def test_printed_forms_keep_a_constant_share(self, rule):
        """
        They count Hadoop 1's spills.
        """
        job = job_fields(use_combiner=True, combine_records_selectivity=0.5)
        plain = evaluate(**job, rules=rule)
        job["statistics"] |= {
            "records_per_combine": 1e9,
            "combine_bytes_exponent": 0.0,
            "combine_records_exponent": 0.0,
        }

        assert evaluate(**job, rules=rule) == plain


class TestWarnings:
    def test_absent_costs(self):
        """
        A cost that is taken as 0 is named.
        """
        job = job_fields()
        del job["costs"]["network_s_per_byte"]

        assert evaluate(**job)["warnings"] == ["no network_s_per_byte: taken as 0"]

    def test_expansion_and_unknown_names(self):
        """
        A map that expands its input is allowed; a misspelt field is named.
        """
        warnings = evaluate(**job_fields(map_bytes_selectivity=1.5, sort_bufer_mb=7))["warnings"]

        assert warnings == [
            "map_bytes_selectivity is 1.5, above 1",
            "sort_bufer_mb is not used by the model",
        ]


BAD = [
    *[{name: -0.1} for name in ("map_bytes_selectivity", "combine_records_selectivity")],
    *[{name: 0.0} for name in ("input_record_bytes", "records_per_reduce_group")],
    *[{f"{n}_compression_ratio": 0} for n in ("input", "map_output", "output")],
    *[{cost: -1e-9} for cost in ("network_s_per_byte", "setup_cpu_s")],
    *[{"input_record_bytes": bad} for bad in (math.nan, math.inf, "100", None, True, 10**400)],
    *[{name: -1} for name in ("num_maps", "num_reduces", "split_bytes", "reduce_heap_bytes")],
    *[{name: 2.5} for name in ("num_maps", "num_reduces", "merge_factor", "combine_min_spills")],
    {"inmem_merge_segments": 0.5},
    {"num_nodes": 0},
    {"map_slots_per_node": 0},
    {"reduce_slots_per_node": 0},
    *[{name: 1.01} for name in ("sort_spill_percent", "reduce_buffer_percent")],
    *[{name: -0.01} for name in ("shuffle_merge_percent", "sort_record_percent")],
    {"sort_spill_percent": 0},
    {"shuffle_buffer_percent": 0},
    {"reduce_slowstart": 2},
    {"merge_factor": 1},
    {"use_combiner": 1},
]


@pytest.mark.parametrize(
    "change", BAD, ids=lambda c: "-".join(f"{k}={v!r:.9}" for k, v in c.items())
)
def test_bad_input_is_named(change):
    """
    Section 10: a value outside its range is refused by the name of its field.
    """
    with pytest.raises(ValueError, match=next(iter(change))):
        evaluate(**job_fields(**change))


@pytest.mark.parametrize(
    "change",
    [
        {"sort_buffer_mb": 2048},
        {"shuffle_segment_limit_percent": 0.0},
        {"shuffle_segment_limit_percent": 0.66},
    ],
    ids=str,
)
def test_what_hadoop_3_refuses_is_refused_under_mr2_rules_only(change):
    """
    Hadoop 3 stops at such a configuration; the published model has no opinion.
    """
    assert evaluate(**job_fields(**change), rules="paper")["job_s"] > 0
    with pytest.raises(ModelError, match=next(iter(change))):
        evaluate(**job_fields(**change), rules="mr2")


def test_unknown_rules_and_missing_fields_are_named():
    """
    There is no default for the rules, nor for the number of maps.
    """
    with pytest.raises(ModelError, match="rules = 'mr3'"):
        evaluate(**job_fields(), rules="mr3")
    with pytest.raises(ModelError, match="num_maps is missing"):
        evaluate({"input_record_bytes": 1.0}, {}, {}, {"num_nodes": 1})


@given(st.floats(1e300, 1.7e308), rules)
def test_overflow_is_refused(size, rule):
    """
    Numbers so large that an answer is no number are an error, not an answer.
    """
    huge = job_fields(split_bytes=size, map_bytes_selectivity=1e10)
    with pytest.raises(ModelError, match="so large"):
        evaluate(**huge, rules=rule)


def test_missing_statistic_is_a_model_error():
    """
    Whoever catches `ValueError` catches what a model refuses.
    """
    assert issubclass(MissingStatistic, ValueError)


class TestSides:
    """Costs that differ between maps and reduces (W40)."""

    @given(jobs(), costs, rules)
    def test_equal_sides_are_one_cost(self, job, some, rule):
        """
        A cost of each side, equal to the common one, changes no number.
        """
        sides = {f"{name}_{side}": value for name, value in some.items() for side in SIDES}

        one, both = (evaluate(**job, costs=each, rules=rule) for each in (some, some | sides))

        assert both == one

    @given(jobs(), costs, costs)
    def test_each_task_takes_its_own(self, job, of_maps, of_reduces):
        """
        A map's time is that of the maps' costs alone, a reduce's that of the reduces'.
        """
        sides = {f"{name}_map": value for name, value in of_maps.items()}
        sides |= {f"{name}_reduce": value for name, value in of_reduces.items()}

        both = evaluate(**job, costs=sides, rules="mr2")

        alone = [evaluate(**job, costs=each, rules="mr2") for each in (of_maps, of_reduces)]
        assert both["map_task_s"] == alone[0]["map_task_s"]
        assert both.get("reduce_task_s") == alone[1].get("reduce_task_s")

    @given(jobs(), costs)
    def test_the_printed_form_has_one(self, job, some):
        """
        Table 4 knows no sides.
        """
        sides = {f"{name}_{side}": 2 * value for name, value in some.items() for side in SIDES}

        one, both = (evaluate(**job, costs=each, rules="paper") for each in (some, some | sides))

        assert both == one
