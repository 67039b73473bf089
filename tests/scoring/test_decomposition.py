"""
Where the error of a body comes from: decompositions of scores.
"""

import math

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.records.prediction import Prediction
from harness.base.records.score import Measurement
from harness.scoring import score

SECONDS = st.floats(0.1, 1e4)
PHASES = ("map_main_s", "map_tail_s", "shuffle_s", "sort_s", "reduce_rest_s")


def decomposed(predicted, measured, body_s=100.0, real_s=100.0, waves=(2.0, 3.0), *, jobs=1.0):
    """
    Decompositions, at raw speed, of a model that gives the phases *predicted*.
    """
    prediction = Prediction(
        model="whatif", cell="c0", body_s=body_s / jobs, measurable=predicted,
        map_waves=waves[0], reduce_waves=waves[1], jobs=jobs,
    )  # fmt: skip
    trial = Measurement(
        cell="c0", workload="sort", trial="t", raw_s={"body_s": real_s, **measured}, reference_s={}
    )
    return [d for d in score([prediction], [trial]).decompositions if d.speed == "raw"]


def parts(decomposition):
    """
    Seconds of the body by phase.
    """
    return decomposition.parts


class TestParts:
    def test_phase_counts_once_per_wave(self):
        """
        A map phase 1 s too long in two waves is 2 s of the body, a reduce phase in three waves 3 s.
        """
        (d,) = decomposed({"map_main_s": 9.0, "sort_s": 5.0}, {"map_main_s": 8.0, "sort_s": 4.0})

        assert parts(d) == {"map_main_s": 2.0, "sort_s": 3.0, "rest_s": -5.0}

    def test_phase_counts_in_every_job(self):
        """
        A trial of five jobs has it five times.
        """
        (d,) = decomposed({"map_main_s": 9.0}, {"map_main_s": 8.0}, jobs=5.0)

        assert parts(d)["map_main_s"] == 10.0

    def test_opposite_errors_cancel(self):
        """
        A right body of phases that are 4 s too long and too short cancels wholly.
        """
        (d,) = decomposed(
            {"map_main_s": 10.0, "map_tail_s": 2.0}, {"map_main_s": 8.0, "map_tail_s": 4.0}
        )

        assert (parts(d)["rest_s"], d.cancelled) == (0.0, 1.0)

    def test_perfect_parts_cancel_nothing(self):
        """
        Of no error no share can cancel, and the rest is there all the same.
        """
        (d,) = decomposed({"map_main_s": 8.0}, {"map_main_s": 8.0})

        assert (parts(d), d.cancelled) == ({"map_main_s": 0.0, "rest_s": 0.0}, 0.0)

    def test_half_of_the_error_cancels(self):
        """
        Parts of 8 s, -2 s and a rest of -1 s: 5 s remain of 11 s.
        """
        (d,) = decomposed(
            {"map_main_s": 12.0, "map_tail_s": 3.0},
            {"map_main_s": 8.0, "map_tail_s": 4.0},
            body_s=105.0,
        )

        assert parts(d) == {"map_main_s": 8.0, "map_tail_s": -2.0, "rest_s": -1.0}
        assert d.cancelled == pytest.approx(6 / 11)

    def test_each_cell_and_speed_has_its_own(self):
        """
        A cell that cannot be taken apart hides none behind it.
        """
        times = {"map_main_s": 9.0}
        predictions = [
            Prediction(model="whatif", cell="c0", body_s=50.0),
            Prediction(model="whatif", cell="c1", body_s=60.0, measurable=times, map_waves=2.0),
        ]
        trials = [
            Measurement(cell=cell, workload="sort", trial=cell, raw_s={"body_s": 70.0, **times},
                        reference_s={"body_s": 65.0, "map_main_s": 8.0})
            for cell in ("c0", "c1")
        ]  # fmt: skip

        raw, reference = score(predictions, trials).decompositions

        assert (raw.model, raw.cell, raw.speed, raw.predicted_s, raw.measured_s) == (
            "whatif", "c1", "raw", 60.0, 70.0,
        )  # fmt: skip
        assert (reference.speed, reference.measured_s) == ("reference", 65.0)
        assert parts(reference) == {"map_main_s": 2.0, "rest_s": -7.0}

    def test_phases_without_a_body_have_none(self):
        """
        There is no error to take apart.
        """
        prediction = Prediction(
            model="whatif", cell="c0", body_s=5.0, measurable={"map_main_s": 9.0}, map_waves=1.0
        )
        trial = Measurement(
            cell="c0", workload="w", trial="t", raw_s={"map_main_s": 8.0}, reference_s={}
        )

        assert score([prediction], [trial]).decompositions == ()

    def test_model_without_phases_has_none(self):
        """
        A body alone cannot be taken apart.
        """
        assert decomposed({}, {"map_main_s": 8.0}) == []

    def test_model_without_waves_has_none(self):
        """
        How often a phase counts is then not known.
        """
        assert decomposed({"map_main_s": 9.0}, {"map_main_s": 8.0}, waves=(None, None)) == []

    @given(
        st.dictionaries(st.sampled_from(PHASES), st.tuples(SECONDS, SECONDS), min_size=1),
        SECONDS,
        SECONDS,
    )
    def test_parts_sum_to_the_error(self, phases, body_s, real_s):
        """
        Nothing of the error is lost, and the cancelled share is one.
        """
        (d,) = decomposed(
            {k: v[0] for k, v in phases.items()},
            {k: v[1] for k, v in phases.items()},
            body_s,
            real_s,
        )

        size = sum(map(abs, d.parts.values()))
        assert math.fsum(d.parts.values()) == pytest.approx(
            body_s - real_s, abs=1e-9 * max(size, 1.0)
        )
        assert -1e-9 <= d.cancelled <= 1.0
