"""
Tests for PTC's equations: waves, cluster quantities, what is refused.
"""

import json
import math

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ModelError
from harness.models import EVALUATORS
from harness.models.ptc.equations import METHODS, TIMES, Waves, evaluate_waves, ptc
from harness.models.ptc.quantities import predict_ptc
from harness.models.vectors import CaseInput, compute

VECTORS = Path(__file__).parent.parent / "validation" / "vectors" / "mrtuner_ptc_examples.json"
seconds = st.floats(0, 1e4)
methods = pytest.mark.parametrize("method", METHODS)

# Figure 4 (a), and a job in terms of the cluster.
FIGURE = {
    "map_waves": 3, "reduce_waves": 1, "map_wave_s": 20.0, "context_switch_wave_s": 5.0,
    "network_copy_wave_s": 15.0, "local_io_wave_s": 10.0, "reduce_s": 35.0,
}  # fmt: skip
JOB = {
    "num_maps": 350, "num_reduces": 48, "map_slots": 64, "reduce_slots": 32, "map_task_s": 21.5,
    "reduce_task_s": 33.0, "shuffle_bytes_total": 4e10, "copy_bps_total": 8e8,
    "local_read_bps_total": 1.6e9, "local_write_bps_total": 1.2e9,
}  # fmt: skip
WAVE_TIMES = (
    "map_wave_s", "context_switch_wave_s", "schedule_map_wave_s", "network_copy_wave_s",
    "local_io_wave_s",
)  # fmt: skip


def figure(method="wave", **changes):
    """
    Figure 4 (a) with other inputs.
    """
    return ptc({**FIGURE, **changes}, method)


def job(method="wave", **changes):
    """
    The job on a cluster, with other inputs.
    """
    return predict_ptc({**JOB, **changes}, method)


def times(answer):
    """
    The answer's times alone.
    """
    return {name: answer[name] for name in TIMES}


@st.composite
def waves(draw, most=12):
    """
    Any waves.
    """
    m, slowstart = draw(st.integers(1, most)), draw(st.none() | st.floats(0, 1))
    names = (*WAVE_TIMES, "reduce_s", "schedule_reduce_wave_s")
    return Waves(
        map_waves=m, reduce_waves=draw(st.integers(1, 5)), slowstart=slowstart,
        reduce_buffer_saving_wave_s=draw(st.floats(0, 10)),
        **{name: draw(seconds) for name in names},
    )  # fmt: skip


def leftover_by_walk(each):
    """
    What is left to copy, followed from wave to wave as section 3.2 writes it.
    """
    first = each.map_waves - each.open_waves
    left = first * each.network_copy_wave_s / each.reduce_waves
    left -= each.network_copy_wave_s / each.reduce_waves
    for _ in range(first, each.map_waves):
        window = each.map_wave_s + each.context_switch_wave_s + each.schedule_map_wave_s
        window += each.local_io_wave_s / each.reduce_waves
        left = max(left + each.network_copy_wave_s / each.reduce_waves - window, 0.0)
    return left


def copied_outside(m, r):
    """
    Share of D_s that the overlap cannot hold, counted over all (map wave, reduce wave) pairs.
    """
    pairs = [(i, j) for i in range(1, m + 1) for j in range(1, r + 1)]
    return Fraction(sum(1 for i, j in pairs if i == m or j > 1), len(pairs))


class TestFigure4:
    @pytest.mark.parametrize(
        "case", json.loads(VECTORS.read_text())["cases"], ids=lambda c: c["name"]
    )
    def test_prints_what_the_waves_give(self, case):
        """
        The paper's totals come out wave by wave; its closed form misses (c) by 5 s.
        """
        answer = ptc(case["input"], "wave")
        closed = ptc(case["input"], "closed")
        off = 5.0 if "_c_" in case["name"] else 0.0

        assert answer["total_s"] == pytest.approx(case["printed_total_s"])
        assert closed["total_s"] == pytest.approx(case["printed_total_s"] + off)


class TestLaws:
    @given(waves())
    def test_what_is_left_is_that_of_the_walk_from_wave_to_wave(self, each):
        """
        Waves are equal, so no walk is needed.
        """
        left = leftover_by_walk(each)
        scale = evaluate_waves(each, "wave")["total_s"] + 1e5

        assert evaluate_waves(each, "wave")["leftover_s"] == pytest.approx(left, abs=1e-12 * scale)

    @given(waves())
    def test_total_is_the_sum_of_its_parts(self, each):
        """
        Equations (1), (2) and (4), for any waves.
        """
        answer = evaluate_waves(each, "wave")

        made = answer["map_s"] + answer["schedule_map_s"] + answer["context_switch_s"]
        moved = answer["leftover_s"] + answer["rest_transfer_s"] + answer["local_io_s"]
        assert answer["producer_s"] == pytest.approx(made)
        assert answer["transporter_s"] == pytest.approx(moved)
        assert answer["total_s"] == pytest.approx(made + moved + answer["consumer_s"])

    @methods
    @given(each=waves(), factor=st.floats(0.01, 100))
    def test_units_cancel(self, method, each, factor):
        """
        In another unit of time all answers are in that unit.
        """
        names = (*WAVE_TIMES, "reduce_s", "schedule_reduce_wave_s", "reduce_buffer_saving_wave_s")
        other = {name: getattr(each, name) * factor for name in names}

        answer, scaled = (
            evaluate_waves(each, method),
            evaluate_waves(replace(each, **other), method),
        )

        scale = 1e-9 * (answer["total_s"] + 1) * factor
        assert times(scaled) == pytest.approx(
            {n: t * factor for n, t in times(answer).items()}, rel=1e-9, abs=scale
        )

    @given(st.integers(1, 9), st.integers(1, 9))
    def test_rest_is_what_the_first_reduce_wave_cannot_copy_ahead(self, m, r):
        """
        The factor (m r - m + 1)/(m r) of equation (2), which was printed otherwise (R04).
        """
        answer = figure(map_waves=m, reduce_waves=r, network_copy_wave_s=1.0)

        assert copied_outside(m, r) == Fraction(m * r - m + 1, m * r)
        assert answer["rest_transfer_s"] == pytest.approx(m * float(copied_outside(m, r)))

    @methods
    @given(share=st.floats(0, 1), later=st.floats(0, 1), copy=st.floats(0, 100))
    def test_a_later_start_leaves_no_less_to_copy(self, method, share, later, copy):
        """
        A smaller window holds no more; what the maps do not wait for is another matter.
        """
        first, second = (
            figure(map_waves=20, network_copy_wave_s=copy, slowstart=s, method=method)
            for s in sorted((share, later))
        )

        assert second["leftover_s"] >= first["leftover_s"] - 1e-9
        assert second["context_switch_s"] <= first["context_switch_s"]


class TestSlowStart:
    @methods
    def test_at_the_end_of_all_maps_nothing_overlaps(self, method):
        """
        Slow start 1 is one wave as far as copying goes: all of D_s/v is added to the maps.
        """
        answer = figure(slowstart=1.0, method=method)

        assert (answer["overlap_window_s"], answer["context_switch_s"]) == (0, 0)
        assert answer["leftover_s"] + answer["rest_transfer_s"] == pytest.approx(45)
        assert answer["total_s"] == pytest.approx(60 + 45 + 30 + 35)

    @methods
    @pytest.mark.parametrize("slowstart", [None, 0.0, 0.05, 1 / 3, 1 / 3 + 1e-12])
    def test_behind_the_first_wave_is_the_paper(self, method, slowstart):
        """
        A third of three waves is the first one.
        """
        assert figure(slowstart=slowstart, method=method) == figure(method=method)

    def test_in_the_middle(self):
        """
        Behind wave 2 of 3, two outputs wait; the last wave of maps, 35 s long, hides 35 s of them.
        """
        answer = figure(slowstart=0.5, network_copy_wave_s=30.0)

        assert answer["overlap_window_s"] == pytest.approx(20 + 5 + 10)
        assert answer["leftover_s"] == pytest.approx(60 - 35)


class TestEdges:
    @methods
    def test_one_wave_of_maps(self, method):
        """
        There is no window: all is copied when the maps are done.
        """
        answer = figure(map_waves=1, method=method)

        assert (answer["overlap_window_s"], answer["overlap_capacity_s"], answer["leftover_s"]) == (
            0,
            0,
            0,
        )
        assert answer["rest_transfer_s"] == 15

    @methods
    def test_map_only(self, method):
        """
        Without reduces there is the map stage, and no time of copying is needed.
        """
        given = {"map_waves": 3, "reduce_waves": 0, "map_wave_s": 20.0,
                 "context_switch_wave_s": 5.0, "schedule_map_wave_s": 1.0}  # fmt: skip

        answer = ptc(given, method)

        assert answer["total_s"] == answer["producer_s"] == 63
        assert (answer["transporter_s"], answer["consumer_s"], answer["context_switch_s"]) == (
            0,
            0,
            0,
        )

    def test_buffer_that_saves_more_than_there_is(self):
        """
        The consumer does not become negative, and a warning names both sides.
        """
        answer = figure(reduce_buffer_saving_wave_s=40.0, schedule_reduce_wave_s=2.0)

        assert answer["consumer_s"] == 2.0
        assert ["reduce_s and the buffer are inconsistent" in w for w in answer["warnings"]] == [
            True
        ]
        assert figure()["warnings"] == []

    def test_nothing_to_copy(self):
        """
        D_s = 0 leaves no transporter, and no rate matters.
        """
        rates = dict.fromkeys(
            ("copy_bps_total", "local_read_bps_total", "local_write_bps_total"), 0
        )

        answer = job(shuffle_bytes_total=0, **rates)

        assert answer["transporter_s"] == 0
        assert answer["consumer_s"] == 2 * 33

    @methods
    def test_no_maps(self, method):
        """
        Everything is 0.
        """
        answer = job(method, num_maps=0)

        assert {v for k, v in answer.items() if k != "warnings"} == {0}

    def test_buffer_larger_than_the_data(self):
        """
        No more than a reduce wave's input can be kept.
        """
        more, enough = (job(reduce_buffer_bytes_per_wave=b) for b in (1e12, 2e10))

        assert more == enough

    def test_very_many_waves(self):
        """
        Equal waves are not walked through.
        """
        answer = job(num_maps=10**15)

        assert answer["map_waves"] == 15_625_000_000_000
        assert math.isfinite(answer["total_s"])

    @methods
    @given(few=st.integers(1, 500), reduces=st.integers(0, 90), data=st.floats(0, 1e12))
    def test_twice_the_maps_take_no_less_time(self, method, few, reduces, data):
        """
        With twice the data, copied at the same rate.
        """
        small = job(method, num_maps=few, num_reduces=reduces, shuffle_bytes_total=data)
        large = job(method, num_maps=2 * few, num_reduces=reduces, shuffle_bytes_total=2 * data)

        assert large["total_s"] >= small["total_s"] * (1 - 1e-9)


class TestRefuses:
    @methods
    @pytest.mark.parametrize(
        ("name", "bad"),
        [
            *((n, -1.0) for n in FIGURE), *((n, math.nan) for n in FIGURE), ("map_waves", 0),
            ("map_waves", 2.5), ("reduce_s", math.inf), ("reduce_s", None), ("map_wave_s", "20"),
            ("local_io_wave_s", None), ("network_copy_wave_s", True), ("slowstart", 1.5),
            ("schedule_map_wave_s", -1), ("schedule_reduce_wave_s", -1),
            ("reduce_buffer_saving_wave_s", -1), ("map_wave_s", 1e308),
        ],
    )  # fmt: skip
    def test_waves(self, method, name, bad):
        """
        A number out of its range is refused by its field, or for what becomes of it.
        """
        with pytest.raises(ModelError, match=f"{name}|too large"):
            figure(**{name: bad}, method=method)

    @pytest.mark.parametrize(
        ("name", "bad"),
        [
            *((n, -1.0) for n in JOB), *((n, math.nan) for n in JOB), ("map_slots", 0),
            ("reduce_slots", 0), ("copy_bps_total", 0), ("local_read_bps_total", 0),
            ("local_write_bps_total", 0.0), ("slowstart", -0.1), ("num_maps", 1.5),
            ("reduce_buffer_bytes_per_wave", -1), ("block_size", 3),
        ],
    )  # fmt: skip
    def test_quantities(self, name, bad):
        """
        The same in terms of the cluster, unknown names included.
        """
        with pytest.raises(ModelError, match=name):
            job(**{name: bad})

    @pytest.mark.parametrize("name", JOB)
    def test_a_quantity_that_is_missing(self, name):
        """
        None of them has a default.
        """
        with pytest.raises(ModelError, match=f"{name} is missing"):
            predict_ptc({k: v for k, v in JOB.items() if k != name})

    @pytest.mark.parametrize("given", [JOB, FIGURE], ids=["quantities", "waves"])
    def test_an_unknown_method(self, given):
        """
        There are two.
        """
        answer = compute("mrtuner-ptc", CaseInput("a", given, method="open"), EVALUATORS)

        assert answer["message"] == "method = 'open' is not wave or closed"

    @pytest.mark.parametrize("given", [JOB, FIGURE], ids=["quantities", "waves"])
    def test_any_field_that_is_forgotten(self, given):
        """
        A case is answered by an error whichever of its fields it lacks.
        """
        for name in given.keys() - {"context_switch_wave_s"}:
            case = {k: v for k, v in given.items() if k != name}

            assert "error" in compute("mrtuner-ptc", CaseInput("a", case), EVALUATORS)
