"""
Tests for `harness.models.spn_gc.phases`: what the vectors do not cover.
"""

import math

import pytest

from hypothesis import example, given
from hypothesis import strategies as st

from harness.base.errors import ModelError
from harness.models.spn_gc.phases import (
    FIELDS,
    PHASES,
    REQUIRED,
    ceil_ratio,
    spn_phases,
)
from tests.models.spn_gc.given import MIB, parameters

BOTH = pytest.mark.parametrize("rules", ["paper", "mr2"])
POSITIVE = [
    "input_bytes", "test_input_bytes", "split_bytes", "gpu_block_bytes", "num_datanodes",
    *(name for name in FIELDS if name.endswith("_bps")),
]  # fmt: skip
NOT_POSITIVE = st.one_of(
    st.integers(max_value=0), st.floats(max_value=0), st.sampled_from([math.nan, math.inf]),
    st.text(), st.none(), st.booleans(),
)  # fmt: skip
SECONDS = ("load_s", "upload_s", "map_s", "map_gpu_s", "reduce_s", "reduce_gpu_s")


@BOTH
class TestBothRules:
    def test_no_reduces(self, rules):
        """
        Nothing is shuffled, merged or reduced; the map's phases are as ever.
        """
        some, none = (spn_phases(parameters(num_reduces=r), rules) for r in (2, 0))

        assert [none[name] for name in PHASES[6:]] == [0, 0, 0]
        assert [none[name] for name in PHASES[:6]] == [some[name] for name in PHASES[:6]]

    def test_no_map_output(self, rules):
        """
        Terms divided by it are 0, and so are passes, spills and merges.
        """
        nothing = dict.fromkeys(
            ("test_map_bytes", "test_map_output_bytes", "test_map_spilled_records"), 0.0
        )
        for uses_gpu in (False, True):
            answer = spn_phases(parameters(**nothing, reduce_uses_gpu=uses_gpu), rules)

            assert (answer["num_spills"], answer["reduce_disk_passes"], answer["t6_spill_s"]) == (
                0,
                0,
                0,
            )
            assert (
                answer.get("num_merges", 0) == answer["t7_shuffle_s"] == answer["t8_merge_s"] == 0
            )
            assert math.isfinite(answer["t9_reduce_s"])

    def test_split_smaller_than_a_block(self, rules):
        """
        One block, whose time is not reduced.
        """
        small, whole = (
            spn_phases(parameters(split_bytes=s * MIB, gpu_block_bytes=8 * MIB), rules)
            for s in (1, 8)
        )

        assert small["gpu_blocks_per_split"] == 1
        assert small["t4_gpu_s"] == whole["t4_gpu_s"]

    @pytest.mark.parametrize("name", sorted(REQUIRED))
    def test_names_what_is_missing(self, rules, name):
        """
        No silent default for what must be measured.
        """
        given_ = {k: v for k, v in parameters().items() if k != name}

        with pytest.raises(ModelError, match=f"{name} is missing"):
            spn_phases(given_, rules)

    @given(value=NOT_POSITIVE)
    @example(value=0)
    def test_refuses_sizes_and_rates_that_are_not_above_0(self, rules, value):
        """
        A rate or a size of 0 would divide; the error names the field.
        """
        for name in POSITIVE:
            with pytest.raises(ModelError, match=rf"^{name} = "):
                spn_phases(parameters(**{name: value}), rules)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *((name, value) for name in SECONDS for value in (-1.0, math.nan)),
            ("test_map_bytes", -1.0), ("test_map_spilled_records", -1.0), ("num_reduces", -1),
            ("num_reduces", 1.5), ("merge_factor", 1), ("sort_spill_percent", 0.0),
            ("sort_spill_percent", 1.1), ("reduce_buffer_percent", 1.1), ("sort_buffer_mb", 0),
            ("shuffle_merge_percent", 0.0), ("gpu_block_concurrency", 0), ("replication", 0),
            ("reduce_uses_gpu", 1), ("cpu_ratio", 0.0),
        ],
    )  # fmt: skip
    def test_refuses_what_is_out_of_range(self, rules, name, value):
        """
        The error names the field.
        """
        with pytest.raises(ModelError, match=rf"^{name} = "):
            spn_phases(parameters(**{name: value}), rules)

    @given(name=st.sampled_from(SECONDS), factor=st.floats(1.0, 100.0))
    def test_monotone_in_times(self, rules, name, factor):
        """
        A longer part of the test job makes no phase shorter.
        """
        some = parameters(reduce_uses_gpu=True)
        more = some | {name: some.get(name, 1.0) * factor}
        before, after = (spn_phases(p, rules) for p in (some, more))

        assert all(after[phase] >= before[phase] for phase in PHASES)

    @given(factor=st.floats(0.01, 100.0))
    def test_units_cancel(self, rules, factor):
        """
        Seconds scaled by k, in times and rates, scale all phases by k.
        """
        some = parameters(reduce_uses_gpu=True, upload_s=2.0)
        scaled = {
            name: value / factor if name.endswith("_bps") else value * factor
            for name, value in some.items()
            if name.endswith(("_s", "_bps"))
        }
        before, after = (spn_phases(p, rules) for p in (some, some | scaled))

        assert [after[p] for p in PHASES] == pytest.approx([factor * before[p] for p in PHASES])

    def test_unknown_rules_and_overflow_are_refused(self, rules):
        """
        A time beyond all floats is no time.
        """
        with pytest.raises(ModelError, match="rules = 'mr1'"):
            spn_phases(parameters(), "mr1")
        with pytest.raises(ModelError, match="beyond all"):
            spn_phases(parameters(disk_read_bps=1e-300, input_bytes=1e300), rules)


def test_share_for_metadata_matters_to_the_paper_only():
    """
    Hadoop 3 has one buffer.
    """
    for share in (0.0, 1.0, -1.0):
        with pytest.raises(ModelError, match="sort_record_percent"):
            spn_phases(parameters(sort_record_percent=share), "paper")
        assert spn_phases(parameters(sort_record_percent=share), "mr2")["t6_spill_s"] > 0


@given(st.integers(1, 10**6), st.floats(1e-3, 1e3))
def test_ceil_takes_a_near_integer_as_one(count, size):
    """
    N parts of a size are n parts, whatever the rounding of their sum.
    """
    assert ceil_ratio(count * size, size) == count
