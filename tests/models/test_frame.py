"""
Tests for `harness.models.frame`.
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import MissingStatistic, ModelError
from harness.base.records.profile import FRAME
from harness.models.frame import frame_counts, frame_s
from tests.models.profiled import cell_inputs, stat

# Each part has its own digit, so that the sum shows how often each counts.
PARTS = {name: stat(10.0**place) for place, name in enumerate(FRAME)}


def counts(**cell):
    """
    How often each part counts in a cell.
    """
    return frame_counts(*cell_inputs(**cell))


class TestWaves:
    def test_each_wave_has_its_start_and_end(self):
        """
        8 maps on 3 slots are three waves, 4 reduces two: 2 + 1 gaps, one between the stages.
        """
        assert counts(splits=8, slots=3, num_reduces=4, reduce_slowstart=1.0) == {
            "job_start_s": 1, "job_end_s": 1, "map_start_s": 3, "map_end_s": 3,
            "reduce_start_s": 2, "reduce_end_s": 2, "task_gap_s": 3, "reduce_gap_s": 1,
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("slowstart", "is_hidden"),
        [(0.0, True), (0.05, True), (0.75, True), (0.76, False), (1.0, False)],
    )
    def test_reduces_that_start_early_start_beside_maps(self, slowstart, is_hidden):
        """
        The last of three waves begins when 6 of 8 maps are done: a gate up to there is open before.
        """
        cell = counts(splits=8, slots=3, num_reduces=4, reduce_slowstart=slowstart)

        assert (cell["reduce_start_s"], cell["reduce_gap_s"]) == ((1, 0) if is_hidden else (2, 1))

    def test_one_wave_is_not_overlapped_unless_reduces_wait_for_nothing(self):
        """
        With one wave of maps the gate opens behind all of them, but at slow start 0.
        """
        late, early = (
            counts(splits=2, slots=2, num_reduces=1, reduce_slowstart=s) for s in (0.05, 0.0)
        )

        assert (late["reduce_start_s"], early["reduce_start_s"]) == (1, 0)

    def test_map_only_job(self):
        """
        Nothing of reduces counts.
        """
        cell = counts(splits=8, slots=3, num_reduces=0)

        assert {n: k for n, k in cell.items() if k} == {
            "job_start_s": 1, "job_end_s": 1, "map_start_s": 3, "map_end_s": 3, "task_gap_s": 2,
        }  # fmt: skip


class TestSeconds:
    @given(splits=st.integers(1, 9), reduces=st.integers(0, 9), slots=st.integers(1, 4))
    def test_is_the_sum_of_its_parts(self, splits, reduces, slots):
        """
        Each as often as it counts.
        """
        cell = cell_inputs(splits=splits, slots=slots, num_reduces=reduces, reduce_slowstart=1.0)

        seconds, warnings = frame_s(PARTS, *cell)

        expected = frame_counts(*cell)
        assert (seconds, warnings) == (
            sum(expected[n] * 10**place for place, n in enumerate(FRAME)), (),
        )  # fmt: skip

    @pytest.mark.parametrize("missing", [n for n in FRAME if "gap" not in n])
    def test_a_part_that_counts_is_never_nothing(self, missing):
        """
        By its name.
        """
        parts = {n: s for n, s in PARTS.items() if n != missing}

        with pytest.raises(MissingStatistic) as refused:
            frame_s(parts, *cell_inputs(num_reduces=1, reduce_slowstart=1.0))

        assert refused.value.names == (missing,)

    def test_what_does_not_count_may_be_missing(self):
        """
        A map-only job of one wave has no reduces and no gap.
        """
        parts = {n: PARTS[n] for n in ("job_start_s", "job_end_s", "map_start_s", "map_end_s")}

        assert frame_s(parts, *cell_inputs(splits=2, slots=2, num_reduces=0)) == (1111.0, ())

    def test_a_gap_that_no_job_shows_is_said(self):
        """
        It is 0 then: jobs that have it would have shown it.
        """
        parts = {n: s for n, s in PARTS.items() if "gap" not in n}
        cell = cell_inputs(splits=4, slots=2, num_reduces=1, reduce_slowstart=1.0)

        seconds, warnings = frame_s(parts, *cell)

        none = dict.fromkeys(("task_gap_s", "reduce_gap_s"), stat(0.0))
        assert seconds == frame_s(parts | none, *cell)[0]
        assert [w.split(":")[0] for w in warnings] == [
            "no job shows a task_gap_s", "no job shows a reduce_gap_s",
        ]  # fmt: skip

    @pytest.mark.parametrize("bad", [-1.0])
    def test_refuses_what_is_no_time(self, bad):
        """
        By its name.
        """
        with pytest.raises(ModelError, match="job_end_s"):
            frame_s({**PARTS, "job_end_s": stat(bad)}, *cell_inputs())

    def test_refuses_reduces_without_slots(self):
        """
        They would never start.
        """
        config, cluster, size = cell_inputs(num_reduces=1)

        with pytest.raises(ModelError, match="reduce_slots"):
            frame_counts(config, cluster.model_copy(update={"reduce_slots": 0}), size)
