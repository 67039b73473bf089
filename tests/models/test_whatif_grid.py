"""
Tests for What-If over a grid: the numbers of the specification, shapes and refusals.
"""

import json
import math

from dataclasses import fields
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ModelError
from harness.models.whatif import evaluation
from harness.models.whatif.evaluation import evaluate, evaluate_grid
from harness.models.whatif.inputs import COSTS
from harness.models.whatif.shuffle import disk_file_units
from tests.models.whatif_oracle import PARTS, expected_answer, merge_arrivals

MIB = 2**20
VECTORS = Path(__file__).parents[1] / "validation" / "vectors" / "whatif_jobs.json"
HOMES = {f.name: part for part, record in PARTS.items() for f in fields(record)}
rules = st.sampled_from(["paper", "mr2"])

shares = st.sampled_from([0.0, 1.0]) | st.floats(0, 1)
selectivities = st.sampled_from([0.0, 1.0]) | st.floats(1e-3, 10)
ratios = st.floats(0.05, 1.5)
prices = st.sampled_from([0.0]) | st.floats(1e-10, 1e-3)
FIELDS = {
    "input_record_bytes": st.floats(1, 1e7),
    "records_per_reduce_group": st.floats(0.1, 1000),
    **{name: selectivities for name in HOMES if name.endswith("_selectivity")},
    "records_per_combine": st.sampled_from([0.0]) | st.floats(1, 1e7),
    "combine_bytes_exponent": shares,
    "combine_records_exponent": shares,
    **{name: ratios for name in HOMES if name.endswith("_ratio")},
    **dict.fromkeys(COSTS, prices),
    "num_maps": st.integers(0, 12) | st.integers(0, 3000),
    "num_reduces": st.sampled_from([0, 1]) | st.integers(1, 500),
    "split_bytes": st.sampled_from([0.0]) | st.floats(1, 1e10),
    "sort_buffer_mb": st.sampled_from([0.0, 2047.0]) | st.floats(0, 500),
    "sort_spill_percent": st.floats(1e-3, 1),
    "sort_record_percent": shares,
    "merge_factor": st.integers(2, 4) | st.integers(2, 100),
    "combine_min_spills": st.integers(0, 6),
    "inmem_merge_segments": st.sampled_from([-1, 0, 1000]) | st.integers(1, 30),
    "shuffle_buffer_percent": st.floats(1e-3, 1),
    "shuffle_merge_percent": st.floats(0.5, 1),
    "shuffle_segment_limit_percent": st.floats(1e-3, 0.499),
    "reduce_buffer_percent": shares,
    "reduce_slowstart": shares,
    "reduce_heap_bytes": st.sampled_from([0.0]) | st.floats(1, 1e10),
    **{name: st.booleans() for name in ("use_combiner", "map_output_compressed",
                                        "output_compressed", "input_compressed")},
    "num_nodes": st.integers(1, 50),
    "map_slots_per_node": st.integers(1, 8),
    "reduce_slots_per_node": st.integers(1, 8),
}  # fmt: skip
jobs = st.fixed_dictionaries(FIELDS)


@st.composite
def grids(draw, number=3):
    """
    Some jobs, of which each may share some of its fields with the first.
    """
    first = draw(jobs)
    shared = draw(st.sets(st.sampled_from(sorted(FIELDS))))
    others = draw(st.lists(jobs, max_size=number))
    return [first, *({**job, **{name: first[name] for name in shared}} for job in others)], shared


def job(**changes):
    """
    A job of 40 maps and 8 reduces, every cost 1e-8.
    """
    usual = {"input_record_bytes": 100.0, "num_maps": 40, "num_reduces": 8, "num_nodes": 4}
    return {**usual, **dict.fromkeys(COSTS, 1e-8), **changes}


def parts(values):
    """
    Fields by name, as the four mappings that an evaluation takes.
    """
    return {part: {k: v for k, v in values.items() if HOMES[k] == part} for part in PARTS}


@cache
def quantity_names():
    """
    Names of all numbers that `evaluate` answers under some rules.
    """
    configs = [{"num_maps": 1, "num_reduces": reduces} for reduces in (0, 1)]
    answers = [
        evaluate({"input_record_bytes": 1.0}, {}, config, {"num_nodes": 1}, rule)
        for rule in ("paper", "engine", "mr2")
        for config in configs
    ]
    return frozenset().union(*answers) - {"warnings", "disk_file_units"}


def stacked(rows, shared=()):
    """
    Fields of many jobs as arrays, *shared* ones as the one value.
    """
    return {k: v if k in shared else np.array([row[k] for row in rows]) for k, v in rows[0].items()}


def everything(values, rule):
    """
    All quantities over a grid.
    """
    return evaluate_grid(**parts(values), rules=rule, quantities=quantity_names())


def different(values, expected):
    """
    Names of the quantities that are not the oracle's: counts exactly, others to 1e-12.
    """
    return [name for name in quantity_names() if not _is_same(values[name], expected.get(name))]


def _is_same(value, expected):
    if expected is None:
        return math.isnan(value)
    if isinstance(expected, int) or math.isinf(expected):
        return value == expected
    return abs(value - expected) <= 1e-12 * abs(expected)


def assert_as_specified(rows, rule, shared=()):
    """
    One comparison of all quantities of all *rows* with the oracle.
    """
    answer = everything(stacked(rows, shared), rule)

    for index, row in enumerate(rows):
        values = {name: array[index if array.size > 1 else 0] for name, array in answer.items()}
        assert different(values, expected_answer(row, rule)) == [], index


class TestNumbers:
    @given(grids(), rules)
    def test_any_jobs(self, drawn, rule):
        """
        Any mixture of jobs, fields shared or not: every quantity of every job.
        """
        rows, shared = drawn
        assert_as_specified(rows, rule, shared if len(rows) > 1 else ())

    @given(jobs, rules)
    def test_one_job(self, row, rule):
        """
        Alone it has the numbers of a grid as Python's: counts as int, flags as bool.
        """
        values = everything(row, rule)
        answer = evaluate(**parts(row), rules=rule)

        units = answer.pop("disk_file_units", None)
        assert units == expected_answer(row, rule).get("disk_file_units")
        given = {name: array[0] for name, array in values.items() if not np.isnan(array[0])}
        assert {name: answer[name] for name in answer if name != "warnings"} == given
        assert {type(answer[n]) for n in answer if n.startswith("num_")} <= {int}
        assert isinstance(answer.get("combine_in_final_merge", True), bool)

    @pytest.mark.parametrize("rule", ["paper", "mr2"])
    def test_many_blocks(self, rule, monkeypatch):
        """
        Where the blocks end does not matter, nor does the order of map-only jobs and others.
        """
        monkeypatch.setattr(evaluation, "BLOCK", 7)
        rng = np.random.default_rng(3)
        rows = [
            job(num_reduces=int(rng.integers(0, 3)), split_bytes=float(rng.integers(0, 10**9)))
            for _ in range(50)
        ]

        assert_as_specified(rows, rule)

    @pytest.mark.parametrize("rule", ["paper", "mr2"])
    def test_edges(self, rule):
        """
        Section 10's cases, and each side of every case in the equations.
        """
        edges = [
            {"num_reduces": 0},
            {"num_reduces": 0, "reduce_slots_per_node": 0, "output_compressed": True,
             "output_compression_ratio": 0.3},
            {"num_maps": 0},
            {"num_maps": 1},
            {"split_bytes": 0},
            {"map_records_selectivity": 0.0},
            {"map_bytes_selectivity": 0.0},
            {"split_bytes": MIB},
            {"split_bytes": 10**12, "input_record_bytes": 2e6, "sort_buffer_mb": 1},
            {"sort_buffer_mb": 1, "merge_factor": 2},
            {"sort_buffer_mb": 0},
            {"sort_record_percent": 0.0},
            {"sort_record_percent": 1.0},
            {"reduce_heap_bytes": MIB},
            {"reduce_heap_bytes": 0},
            {"num_maps": 999, "num_reduces": 1, "reduce_heap_bytes": 16 * MIB, "merge_factor": 2},
            {"num_maps": 999, "num_reduces": 1, "reduce_heap_bytes": 16 * MIB, "merge_factor": 9},
            *[{"num_maps": maps, "num_reduces": 1000, "reduce_buffer_percent": percent}
              for maps in (7, 1000) for percent in (0.0, 1e-6, 0.5, 1.0)],
            *[{"inmem_merge_segments": limit, "num_reduces": 900} for limit in (-5, 0, 1, 10)],
            *[{"use_combiner": True, "combine_records_selectivity": 0.3,
               "combine_min_spills": least, "sort_buffer_mb": 20} for least in (0, 3, 99)],
            {"use_combiner": True, "combine_bytes_selectivity": 0.0},
            {"map_output_compressed": True, "map_output_compression_ratio": 0.2},
            {"input_compressed": True, "input_compression_ratio": 0.2},
        ]  # fmt: skip
        for changes in edges:
            assert_as_specified([job(**changes)], rule)

    def test_shuffles_that_hadoop_3_refuses(self):
        """
        Paper rules: a shuffle that merges at once, or never gives a segment to memory.
        """
        merge_at_once = [
            {"shuffle_merge_percent": 0.1, "shuffle_segment_limit_percent": percent}
            for percent in (0.0, 0.2, 0.6)
        ]
        no_threshold = {"shuffle_merge_percent": 0.0, "shuffle_segment_limit_percent": 0.25}

        assert_as_specified([job(**limits) for limits in [*merge_at_once, no_threshold]], "paper")

    @pytest.mark.parametrize("rule", ["paper", "mr2"])
    def test_vectors_in_one_call(self, rule):
        """
        All cases of the vector file with these rules, against other implementations.
        """
        document = json.loads(VECTORS.read_text())
        cases = [case for case in document["cases"] if case["rules"] == rule]
        rows = [{k: v for p in case["input"].values() for k, v in p.items()} for case in cases]
        answer = everything(stacked(rows), rule)

        assert len(cases) >= 10
        for index, case in enumerate(cases):
            for name, expected in case["expected"].items():
                if name != "disk_file_units":
                    close = pytest.approx(float(expected), rel=1e-9, abs=1e-9)
                    assert answer[name][index] == close, name


@given(st.integers(0, 3000), st.integers(2, 40))
def test_files_of_repeated_merges(arrivals, factor):
    """
    The solved simulation of merges on disk leaves the files of the simulation.
    """
    assert disk_file_units(arrivals, factor) == merge_arrivals(arrivals, factor)[0]


class TestShapes:
    def test_one_value_each_is_one_configuration(self):
        """
        Without an array the answer has length 1.
        """
        answer = evaluate_grid(**parts(job()))["job_s"]

        assert answer.tolist() == [evaluate(**parts(job()))["job_s"]]

    def test_values_are_shared(self):
        """
        Every kind of field may be the one that varies; arrays of length 1 are one value.
        """
        for name, values in {
            "num_nodes": [1, 2], "network_s_per_byte": [0.0, 1.0], "input_record_bytes": [1.0, 9.0],
            "use_combiner": [True, False], "merge_factor": [3, 10],
        }.items():  # fmt: skip
            answer = evaluate_grid(
                **parts(job(**{name: np.array(values)}, num_maps=np.array([40])))
            )

            one_by_one = [evaluate(**parts(job(**{name: v})))["job_s"] for v in values]
            assert answer["job_s"].tolist() == pytest.approx(one_by_one, rel=1e-12), name

    @pytest.mark.parametrize("kind", [np.float32, np.int16, np.uint64])
    def test_kinds_of_arrays_do_not_matter(self, kind):
        """
        Arrays of any numbers.
        """
        values = [1, 2, 30]

        answer = evaluate_grid(**parts(job(num_maps=np.array(values, dtype=kind))))["job_s"]

        expected = evaluate_grid(**parts(job(num_maps=np.array(values))))["job_s"]
        assert answer.tolist() == expected.tolist()

    def test_given_arrays_stay_as_they_are(self):
        """
        Nothing is written into what was given.
        """
        values = stacked([job(setup_cpu_s=1.0), job(num_reduces=0, num_maps=3)])
        for column in values.values():
            column.flags.writeable = False

        assert everything(values, "mr2")["map_task_s"].flags.writeable


BAD = [
    ("map_bytes_selectivity", -0.1), ("input_record_bytes", 0.0),
    ("output_compression_ratio", 0.0), ("network_s_per_byte", -1e-9),
    ("input_record_bytes", math.nan), ("input_record_bytes", math.inf), ("split_bytes", -math.inf),
    ("num_maps", -1), ("num_maps", 2.5), ("num_maps", math.nan), ("num_maps", math.inf),
    ("inmem_merge_segments", 0.5), ("merge_factor", 1), ("num_nodes", 0),
    ("reduce_slots_per_node", 0), ("sort_spill_percent", 0.0), ("sort_spill_percent", 1.01),
    ("reduce_buffer_percent", 1.01), ("reduce_slowstart", 2.0),
]  # fmt: skip
GOOD = {"inmem_merge_segments": 3.0, "reduce_slowstart": 0.5, "reduce_buffer_percent": 0.5,
        "sort_spill_percent": 0.5}  # fmt: skip


class TestRefusals:
    @pytest.mark.parametrize(("field", "bad"), BAD)
    def test_range(self, field, bad):
        """
        The words of one configuration, with the number of the first that is refused.
        """
        good = GOOD.get(field, 4.0)
        values = np.array([good, good, bad, good, bad])
        with pytest.raises(ModelError) as of_one:
            evaluate(**parts(job(**{field: values[2].item()})))

        with pytest.raises(ModelError) as of_grid:
            evaluate_grid(**parts(job(**{field: values})))
        with pytest.raises(ModelError) as shared:
            evaluate_grid(**parts(job(**{field: values[2].item()})))

        assert of_grid.value.what == shared.value.what == of_one.value.what
        assert of_grid.value.where == f"{of_one.value.where}, configuration 2 of the grid"
        assert shared.value.where == of_one.value.where

    @pytest.mark.parametrize(
        ("field", "values"),
        [
            ("num_maps", [1, 2]), ("num_maps", "12"), ("num_maps", b"12"), ("num_maps", None),
            ("num_maps", np.array([False, True])), ("num_maps", 10**400),
            ("use_combiner", np.array([1.0, 0.0])), ("use_combiner", "true"),
            ("num_maps", 2**53 + 1), ("num_maps", np.array([2**53 + 1])),
        ],
        ids=str,
    )  # fmt: skip
    def test_of_what_is_no_row_of_numbers(self, field, values):
        """
        Lists, texts, truth values for numbers and numbers for truth values, too large counts.
        """
        with pytest.raises(ModelError, match=f"^{field} = "):
            evaluate_grid(**parts(job(**{field: values})))

    @pytest.mark.parametrize(
        "change",
        [
            {"sort_buffer_mb": 2048},
            {"shuffle_segment_limit_percent": 0.0},
            {"shuffle_segment_limit_percent": 0.66},
        ],
        ids=str,
    )
    def test_of_hadoop_3_are_those_of_mr2_rules(self, change):
        """
        The published model takes it; of map-only jobs the shuffle is not looked at.
        """
        rows = [job(), job(**change)]
        rows = [{**dict.fromkeys(change, 0.3), **row} for row in rows]
        values = stacked(rows)

        assert (evaluate_grid(**parts(values), rules="paper")["job_s"] > 0).all()
        with pytest.raises(
            ModelError, match=r"(?s)^" + next(iter(change)) + ".*configuration 1 of"
        ):
            evaluate_grid(**parts(values), rules="mr2")

    def test_of_missing_fields_and_unknown_rules(self):
        """
        As those of one configuration.
        """
        with pytest.raises(ModelError, match="rules = 'mr3'"):
            evaluate_grid(**parts(job()), rules="mr3")
        with pytest.raises(ModelError, match="num_maps is missing"):
            evaluate_grid({"input_record_bytes": 1.0}, {}, {}, {"num_nodes": 2})

    @given(st.floats(1e300, 1.7e308), rules)
    def test_of_answers_that_are_not_finite(self, size, rule):
        """
        One answer that is no number refuses the grid, and is named.
        """
        sizes = np.array([1e6, size, 1e6])
        with pytest.raises(ModelError, match=r"(?s)so large.*configuration 1 of the grid"):
            evaluate_grid(**parts(job(split_bytes=sizes, map_bytes_selectivity=1e10)), rules=rule)

    def test_of_more_spills_than_floats_count(self):
        """
        Above 2**53 floats do not count, one by one.
        """
        tiny = job(split_bytes=np.array([1e9, 1e24]), sort_buffer_mb=1)

        with pytest.raises(ModelError, match=r"(?s)num_spills = 1\.\d*e\+18.*configuration 1 of"):
            evaluate_grid(**parts(tiny))
        with pytest.raises(ModelError, match=r"num_spills = 1\.\d*e\+18"):
            evaluate(**parts(job(split_bytes=1e24, sort_buffer_mb=1)))

    def test_of_two_bad_fields_the_first_is_named(self):
        """
        A buffer that Hadoop cannot have comes before a ratio of nothing.
        """
        with pytest.raises(ModelError, match=r"sort_buffer_mb = 1e\+100 is not at most 2047"):
            evaluate(**parts(job(sort_buffer_mb=1e100, input_compression_ratio=0.0)))


# No denormal number: a product with one keeps no digits, and the order of factors decides it.
huge = st.sampled_from([0.0, 1e-307, 1e-200, 1e-100, 1e100, 1e200, 1.7e308])


@given(jobs, st.dictionaries(
    st.sampled_from([n for n in FIELDS if FIELDS[n] in (selectivities, ratios, prices)]
                    + ["split_bytes", "sort_buffer_mb", "reduce_heap_bytes", "input_record_bytes"]),
    huge, max_size=4), rules)  # fmt: skip
def test_extreme_numbers_are_answered_as_specified_or_refused(usual, extremes, rule):
    """
    Where the specification overflows the model refuses, else it answers the same.
    """
    row = {**usual, **extremes}
    try:
        values = {name: array[0] for name, array in everything(row, rule).items()}
    except ModelError:
        try:
            expected = expected_answer(row, rule)
        except (ArithmeticError, ValueError):
            return
        impossible = expected.get("num_spills", 0) > 2**53 or not math.isfinite(expected["job_s"])
        assert impossible or out_of_range(row, rule)
        return
    expected = expected_answer(row, rule)
    assert [n for n in different(values, expected) if abs(expected[n]) > 1e-290] == []


def out_of_range(row, rule):
    """
    Whether a field is refused that the generators above may draw.
    """
    positive = ("input_record_bytes", *(name for name in FIELDS if name.endswith("_ratio")))
    return min(row[name] for name in positive) == 0 or (
        rule == "mr2" and row["sort_buffer_mb"] > 2047
    )
