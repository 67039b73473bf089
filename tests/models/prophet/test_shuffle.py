"""
Tests for `harness.models.prophet.shuffle`: Algorithm 1 beside its obvious form, its inputs.
"""

import json
import math

from pathlib import Path

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ModelError
from harness.models.prophet.shuffle import read_groups, read_setting, run_shuffle, shuffle
from tests.models.prophet.obvious import ObviousShuffle

MIB = 2**20
VECTORS = Path(__file__).parents[2] / "validation" / "vectors" / "prophet_shuffle.json"
CASES = json.loads(VECTORS.read_text())["cases"]
COSTS = {
    "network_s_per_byte": 2e-8, "local_read_s_per_byte": 8e-9, "local_write_s_per_byte": 1.2e-8,
    "map_output_decompress_s_per_byte": 5e-9, "map_output_compress_s_per_byte": 1.5e-8,
    "merge_cpu_s_per_record": 3e-7, "combine_cpu_s_per_record": 9e-7,
}  # fmt: skip


def group(host="n1", count=1, finish_s=0.0, mib=16.0, **fields):
    """
    Map outputs of so many MiB with records of 100 bytes.
    """
    size = mib * MIB
    return {
        "host": host, "count": count, "finish_s": finish_s, "segment_bytes": size,
        "segment_compressed_bytes": size, "segment_records": size / 100,
    } | fields  # fmt: skip


def config(**fields):
    """
    A heap of 200 MiB: 140 MiB of buffer, merges from 92.4 MiB on, 35 MiB at most for a segment.
    """
    return {"reduce_heap_bytes": 200 * MIB, "parallel_copies": 2, "merge_factor": 3, **fields}


@st.composite
def groups(draw):
    """
    Map outputs of some waves on some machines.
    """
    kinds = draw(st.lists(st.floats(0, 60), min_size=1, max_size=3))
    drawn = st.builds(
        group,
        host=st.sampled_from("abcdef"),
        count=st.integers(0, 9),
        finish_s=st.floats(-5, 30) | st.integers(-2, 10),
        mib=st.sampled_from(kinds),
    )
    return draw(st.lists(drawn, max_size=25))


configs = st.builds(
    config,
    parallel_copies=st.integers(1, 8),
    merge_factor=st.integers(2, 5),
    reduce_heap_bytes=st.sampled_from([50 * MIB, 200 * MIB]),
    use_combiner=st.booleans(),
    map_output_compressed=st.booleans(),
    map_output_compression_ratio=st.floats(0.1, 1),
    combine_records_selectivity=st.floats(0, 1),
)


def both(raw_groups, raw_config, costs=COSTS):
    """
    Outcomes of the obvious and of the product's form, with their traces.
    """
    checked, setting = read_groups(raw_groups), read_setting(raw_config, costs)
    obvious, trace = ObviousShuffle(checked, setting), []
    return (obvious.run(), obvious.trace), (run_shuffle(checked, setting, trace), trace)


def outcome_of(raw_groups, raw_config, costs=COSTS):
    """
    Outcome without a trace.
    """
    return run_shuffle(read_groups(raw_groups), read_setting(raw_config, costs))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["name"])
def test_traces_are_those_of_the_vectors(case):
    """
    Round by round: hosts, clocks, memory, files.
    """
    trace = shuffle(case["input"]["groups"], case["input"], case["input"]["costs"])["trace"]

    expected = case.get("trace", [])
    assert len(trace) == len(expected)
    for entry, wanted in zip(trace, expected, strict=True):
        assert entry.keys() == wanted.keys()
        assert all(
            v == pytest.approx(wanted[n]) if isinstance(v, float) else v == wanted[n]
            for n, v in entry.items()
        )


class TestForms:
    @given(groups(), configs)
    def test_are_equal(self, some_groups, setting):
        """
        Clocks, counts, files, segments left and trace are those of the obvious form.
        """
        obvious, (outcome, trace) = both(some_groups, setting)

        assert (outcome, trace) == obvious
        assert outcome_of(some_groups, setting) == outcome

    @given(groups(), configs, st.sampled_from([2.0**-10, 2.0**7]))
    def test_units_cancel(self, some_groups, setting, factor):
        """
        Seconds scaled by a power of two, which is exact, scale every clock by it.
        """
        late = [g | {"finish_s": g["finish_s"] * factor} for g in some_groups]
        costs = {n: c * factor for n, c in COSTS.items()}

        one, scaled = outcome_of(some_groups, setting), outcome_of(late, setting, costs)

        assert scaled.shuffle_s == one.shuffle_s * factor
        assert scaled.disk_files == one.disk_files

    @given(groups(), configs)
    def test_all_that_was_copied_is_kept(self, some_groups, setting):
        """
        Without a combiner all that was copied is on disk or in memory, and each was fetched once.
        """
        setting |= {"use_combiner": False}
        outcome = outcome_of(some_groups, setting)

        copied = sum(g["count"] * g["segment_compressed_bytes"] for g in some_groups)
        kept = [f[0] for f in outcome.disk_files] + [s.compressed_bytes for s in outcome.left]
        assert math.fsum(kept) == pytest.approx(copied)
        assert outcome.rounds <= sum(g["count"] for g in some_groups)

    @given(groups(), configs)
    def test_lasts_at_least_as_long_as_its_parts(self, some_groups, setting):
        """
        No host gives two segments at once, and nothing is copied before it is there.
        """
        outcome = outcome_of(some_groups, setting)
        per_host = {}
        for g in some_groups:
            copy = g["segment_compressed_bytes"] * COSTS["network_s_per_byte"] * g["count"]
            per_host[g["host"]] = per_host.get(g["host"], 0.0) + copy
        last = max((g["finish_s"] for g in some_groups if g["count"]), default=0.0)

        assert outcome.shuffle_s >= max([0.0, last, *per_host.values()]) * (1 - 1e-9)

    def test_many_groups_of_one_host_wait_for_each_other(self):
        """
        One host is one copier's, however many there are.
        """
        outcome = outcome_of([group(mib=1)] * 9, config(parallel_copies=8))

        assert outcome.copy_clock_s == pytest.approx(9 * MIB * 2e-8)

    def test_more_copiers_than_hosts_change_nothing(self):
        """
        10^9 copiers are no more than there are hosts.
        """
        some_groups = [group(h, 3) for h in "abc"]

        assert both(some_groups, config(parallel_copies=10**9)) == both(
            some_groups, config(parallel_copies=3)
        )


class TestSetting:
    def test_what_is_off_changes_nothing(self):
        """
        Without combiner and codec their statistics and costs do not count.
        """
        odd = {"combine_bytes_selectivity": 0.1, "combine_records_selectivity": 0.1,
               "map_output_compression_ratio": 0.2}  # fmt: skip
        some_groups = [group(h, 9) for h in "abc"]
        free = {n: 0.0 if "compress" in n or "combine" in n else c for n, c in COSTS.items()}

        assert both(some_groups, config(**odd)) == both(some_groups, config(), free)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("parallel_copies", 0),
            ("merge_factor", 1),
            ("merge_factor", 2.5),
            ("reduce_heap_bytes", 0),
            ("reduce_heap_bytes", math.nan),
            ("shuffle_buffer_percent", 0),
            ("shuffle_merge_percent", 0),
            ("shuffle_segment_limit_percent", 0.66),
            ("use_combiner", 1),
            ("map_output_compression_ratio", 0),
            ("combine_records_selectivity", -1),
        ],
    )
    def test_refuses_by_name(self, field, value):
        """
        What Hadoop refuses, and what is not a number.
        """
        with pytest.raises(ModelError, match=field):
            shuffle([], config(**{field: value}), COSTS)

    @pytest.mark.parametrize("name", ["network_s_per_byte", "local_write_s_per_byte"])
    def test_costs_that_dominate_are_never_taken_as_nothing(self, name):
        """
        Others are 0 where they are absent.
        """
        only = {n: COSTS[n] for n in ("network_s_per_byte", "local_write_s_per_byte")}

        assert shuffle([group()], config(), only)["shuffle_s"] > 0
        with pytest.raises(ModelError, match=f"{name} is missing"):
            shuffle([group()], config(), {n: c for n, c in only.items() if n != name})


class TestGroups:
    @pytest.mark.parametrize("some_groups", [[], [group(count=0)]])
    def test_nothing_to_copy(self, some_groups):
        """
        No groups, or only empty ones: everything is given, as 0 or [].
        """
        answer = shuffle(some_groups, config(), COSTS)

        assert not any(answer.values())
        assert answer["disk_files"] == []

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("count", -1),
            ("count", 1.5),
            ("finish_s", math.inf),
            ("segment_bytes", -1),
            ("segment_records", math.nan),
            ("host", 7),
        ],
    )
    def test_refuses_by_name_and_place(self, field, value):
        """
        The error names the field and the group.
        """
        with pytest.raises(ModelError, match=f"(?s){field}.*group 1"):
            shuffle([group(), group(**{field: value})], config(), COSTS)

    def test_refuses_what_is_missing(self):
        """
        A group without a size is not a group.
        """
        incomplete = group()
        del incomplete["segment_bytes"]

        with pytest.raises(ModelError, match="segment_bytes is missing"):
            shuffle([incomplete], config(), COSTS)

    def test_refuses_an_answer_that_is_no_number(self):
        """
        Clocks beyond all floats are refused, not written down.
        """
        with pytest.raises(ModelError, match="not finite"):
            shuffle([group(mib=1e300)], config(), COSTS | {"network_s_per_byte": 1e10})
