"""
`harness.core.scoring` against docs/scores.md: `verify.py` of a bundle gives the same numbers.
"""

import math

from random import Random

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtr

from harness.base.records.prediction import Prediction
from harness.base.records.score import Measurement
from harness.base.stats.gaps import pair_tests
from harness.base.stats.resampling import kept_cells
from harness.base.stats.sequential import LOOK_ERROR
from harness.core.scoring import score
from harness.core.scoring.comparisons import FAMILY_ERROR
from harness.core.scoring.score import predicted_times
from harness.publish.verify import compared, pair, scored, tail
from tests.strategies import SEEDS

MODELS = ("whatif", "vet", "prophet", "ptc")
INTERVALS = {80: ("low", "high"), 90: ("low_90", "high_90")}


def measured(random):
    """
    Trials of a few cells of two workloads: frames, tasks, and now and then a time that is missing.
    """
    repeats, noise = (
        random.choice(((1, 2, 3, 7), (1, 2, 3, 7), (1,), (2,))),
        random.choice((0.03, 0)),
    )
    for place in range(random.choice((1, 2, 5, 7, 9))):
        workload, level = ("wordcount", "terasort")[place % 2], random.uniform(10, 90)
        inputs = random.choice(("", f"{workload} {place // 2}", f"{workload} 1"))
        share = random.choice((0.1, 0.2, 0.4))
        for number in range(random.choice(repeats)):
            job_s = level * math.exp(random.gauss(0, noise))
            frame_s = job_s * (random.choice((0.1, 0.2, 0.4)) if noise else share)
            times = {"job_s": job_s, "frame_s": frame_s, "body_s": job_s - frame_s}
            times["map_main_s"] = job_s / 3
            if random.random() < 0.1:
                del times["map_main_s"]
            yield Measurement(
                cell=f"c{place}", workload=workload, trial=f"c{place}-{number}", input=inputs,
                raw_s=times, reference_s={name: 1.1 * time_s for name, time_s in times.items()},
            )  # fmt: skip


def predicted(random, measurements):
    """
    Predictions of the models, of which some do not answer everywhere; with refits and intervals.
    """
    cells = {each.cell: each.raw_s for each in measurements}
    refits, exact = random.choice((0, 3, 5)), random.random() < 0.2
    for model in MODELS[: random.choice((1, 2, 4))]:
        off = random.choice((0.9, 1.0, 1.3)) if not exact else 1.05
        for cell, times in cells.items():
            noise = 1.0 if exact else math.exp(random.gauss(0, 0.1))
            body_s = off * noise * times["body_s"]
            job_s = body_s + times["frame_s"] if random.random() < 0.9 else None
            ends = {"80": (0.9 * body_s, 1.1 * body_s), "90": None}
            again = tuple(random.choice((body_s, 1.02 * body_s, 0.97 * body_s))
                          for _ in range(max(0, refits - random.choice((0, 1)))))  # fmt: skip
            if again and random.random() < 0.02:
                again = (None, *again[1:])
            yield Prediction(
                model=model, cell=cell, body_s=job_s and body_s, job_s=job_s, published_s=body_s,
                measurable={"map_main_s": off * times["job_s"] / 3}, estimates={"x_s": 2 * body_s},
                parts={"equation 3": 1.0}, intervals={"body_s": ends}, refits={"body_s": again},
            )  # fmt: skip


def tables(measurements, predictions):
    """
    Rows as docs/scores.md has them.
    """
    rows = [
        {
            "workload": each.workload,
            "cell": each.cell,
            "trial": each.trial,
            "quantity": name,
            "speed": speed,
            "value": time_s,
        }
        for each in measurements
        for speed, times in (("raw", each.raw_s), ("reference", each.reference_s))
        for name, time_s in times.items()
    ]
    predicted_rows = []
    for each in predictions:
        for name, (level, time_s) in predicted_times(each).items():
            if level in ("equation", "estimate"):  # which no table of a bundle has
                continue
            row = {"cell": each.cell, "model": each.model, "rung": level, "quantity": name}
            row |= {"refit": None, "predicted": time_s}
            for percent, (low, high) in INTERVALS.items():
                ends = each.intervals.get(name, {}).get(str(percent)) or (None, None)
                row |= {low: ends[0], high: ends[1]}
            predicted_rows.append(row)
            predicted_rows += [
                {**row, "refit": number, "predicted": again_s}
                for number, again_s in enumerate(each.refits.get(name, ()))
            ]
    return rows, predicted_rows


def close(one, other):
    """
    Whether both are the same number, text or truth value, or both none.
    """
    if isinstance(one, bool) or (one is None and other == ""):
        return other == ("" if one is None else str(one).lower())
    if isinstance(one, str) or None in (one, other):
        return one == other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.process
@given(SEEDS, st.sampled_from((FAMILY_ERROR, LOOK_ERROR)))
def test_both_give_every_number_and_every_verdict(seed, level):
    """
    Scores by cell, model, quantity and speed; comparisons by pair: 1e-9 of each number.
    """
    random = Random(seed)
    measurements = [*measured(random)]
    predictions = [*predicted(random, measurements)]
    score_book = score(predictions, measurements, error=level)

    inputs = {each.cell: each.input for each in measurements}
    scores, families, known = scored(*tables(measurements, predictions))

    score_rows = {
        (each.cell, each.model, each.quantity, each.speed): each
        for each in score_book.scores
        if each.level not in ("equation", "estimate")
    }
    assert score_rows.keys() == scores.keys()
    names = {"rung": "level", "predicted": "predicted_s", "measured": "measured_s"}
    names["i_accu"] = "i_accu_percent"
    for key, one in score_rows.items():
        for name, number in scores[key].items():
            assert close(getattr(one, names.get(name, name)), number), (*key, name)

    pairs = {(each.quantity, each.speed, each.better, each.worse): each
             for each in score_book.comparisons}  # fmt: skip
    for family in families.items():
        for key, numbers in compared(family, scores, known, inputs, level).items():
            one = pairs.pop(key)
            for name, number in numbers.items():
                assert close(getattr(one, name), number), (*key, name)
    assert not pairs
    assert (FAMILY_ERROR, LOOK_ERROR) == (0.05, 0.012)


def test_of_models_that_share_no_cell_the_last_one_by_name_goes():
    """
    While there is no cell that all of them answer, where they answer as many.
    """
    times = {"job_s": 10.0, "frame_s": 1.0, "body_s": 9.0}
    measurements = [
        Measurement(cell=cell, workload="w", trial=cell, raw_s=times, reference_s=times)
        for cell in ("c0", "c1")
    ]
    predictions = [
        Prediction(model=model, cell=cell, body_s=8.0, job_s=9.0)
        for model, cell in (("ptc", "c0"), ("vet", "c1"))
    ]

    rankings = score(predictions, measurements).rankings
    _, families, _ = scored(*tables(measurements, predictions))
    ranked = {kind: [*errors] for kind, (errors, _) in families.items()}
    assert ranked == {(each.quantity, each.speed): [*each.models] for each in rankings}
    assert ranked["body_s", "raw"] == ["ptc"]


@given(SEEDS)
def test_both_give_the_chances_of_a_pair(seed):
    """
    Of one cell or several, nearly the same predictions or others, with refits or without.
    """
    random = Random(seed)
    cells, spread = random.choice((1, 1, 3, 7)), random.choice((0.005, 0.02, 0.3))
    counts = random.choice((1, 5))  # of the prediction alone, or with refits
    shares = [[[random.gauss(1, spread) for _ in range(cells)] for _ in "ab"]
              for _ in range(counts)]  # fmt: skip
    floors = [random.choice((0.002, 0.01, 0.05)) for _ in range(cells)]
    inputs, trials = [random.choice("abcd") for _ in range(cells)], random.choice((1, 3, 8))
    units = inputs if len({*inputs}) >= 3 else [*range(cells)]

    expected = pair_tests(
        np.asarray(shares[0]), np.asarray(floors), kept_cells(inputs), margin=0.02,
        freedom=max(1, trials - 1), refits=np.asarray(shares[1:]) if counts > 1 else None,
    )  # fmt: skip
    distinct, equal, *ends = pair(shares, floors, units, trials)
    numbers = (expected.distinct, expected.equal)
    for one, other in zip((min(distinct, 1), equal), numbers, strict=True):
        assert math.isclose(one, other[0], rel_tol=1e-9)
    for one, other in zip(ends, (expected.difference, expected.low, expected.high), strict=True):
        assert math.isclose(one, other[0], rel_tol=1e-9, abs_tol=1e-12)


@given(st.floats(1, 200), st.floats(1e-4, 50))
def test_chances_are_those_of_students_t(freedom, t):
    """
    To 1e-10 of what SciPy says, far from 0, too (nearer to 0 SciPy itself is off by more).
    """
    for one in (t, -t):
        assert math.isclose(tail(freedom, one), stdtr(freedom, -one), rel_tol=1e-10)
