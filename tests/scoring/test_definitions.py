"""
`harness.scoring` against docs/scores.md: a plain program and `verify.py` of a bundle give the
same numbers, and the same sentence.
"""

import math

from itertools import combinations
from random import Random
from statistics import fmean

import pytest

from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtr

from harness.base.records.prediction import Prediction
from harness.base.records.question import BEST, Question
from harness.base.records.score import Drift, Measurement
from harness.base.stats.sequential import LOOK_ERROR
from harness.publish.verify import answer, compared, scored, speed_of, subject, tail
from harness.scoring import score
from harness.scoring.comparisons import FAMILY_ERROR, compare
from harness.scoring.score import cell_scores, compared_scores, predicted_times
from harness.scoring.speeds import ReadAt
from tests.stats.plain_flips import family
from tests.strategies import SEEDS

MODELS = ("whatif", "vet", "prophet", "ptc")
INTERVALS = {80: ("low", "high"), 90: ("low_90", "high_90")}
LEVELS = st.sampled_from((FAMILY_ERROR, LOOK_ERROR))


def measured(random):
    """
    Trials of a few cells of two workloads: frames, tasks, and now and then a time that is missing.
    """
    repeats, noise = (
        random.choice(((1, 2, 3, 7), (1, 2, 3, 7), (1,), (2,))),
        random.choice((0.03, 0)),
    )
    of_inputs = random.choice((1, 2, 2))
    is_drawn = random.random() < 0.5
    slower = random.choice((1.0, 1.1))
    for place in range(random.choice((1, 5, 6, 7, 7, 8, 8, 9))):
        workload, level = ("wordcount", "terasort")[place % 2], random.uniform(10, 90)
        inputs = random.choice(("", f"{workload} {place // of_inputs}"))
        outside = random.choice(("inside", "inside", "outside"))
        share = random.choice((0.1, 0.2, 0.4))
        weight = random.choice((1, 1, 2, 3)) * random.uniform(0.02, 0.2) if is_drawn else None
        for number in range(random.choice(repeats)):
            job_s = level * math.exp(random.gauss(0, noise))
            frame_s = job_s * (random.choice((0.1, 0.2, 0.4)) if noise else share)
            times = {"job_s": job_s, "frame_s": frame_s, "body_s": job_s - frame_s}
            times["map_main_s"] = job_s / 3
            if random.random() < 0.1:
                del times["map_main_s"]
            yield Measurement(
                cell=f"c{place}", workload=workload, trial=f"c{place}-{number}", input=inputs,
                raw_s=times, reference_s={name: slower * time_s for name, time_s in times.items()},
                range=outside, weight=weight,
            )  # fmt: skip


def predicted(random, measurements):
    """
    Predictions of the models, of which some do not answer everywhere; with refits and intervals.
    """
    cells = {each.cell: each.raw_s for each in measurements}
    workloads = {each.cell: each.workload for each in measurements}
    by_profile = {workload: random.choice((0, 1, 4, 6)) for workload in ("wordcount", "terasort")}
    varies = random.choice((0.0, 0.005, 0.05))
    refits, exact = random.choice((0, 3, 5)), random.random() < 0.2
    lacks = random.choice((0, 0, 0.1))
    for model in MODELS[: random.choice((1, 2, 4))]:
        off = random.choice((0.9, 1.0, 1.3)) if not exact else 1.05
        for cell, times in cells.items():
            noise = 1.0 if exact else math.exp(random.gauss(0, 0.1))
            body_s = off * noise * times["body_s"]
            job_s = body_s + times["frame_s"] if random.random() >= lacks else None
            ends = {"80": (0.9 * body_s, 1.1 * body_s), "90": None}
            again = tuple(random.choice((body_s, 1.02 * body_s, 0.97 * body_s))
                          for _ in range(max(0, refits - random.choice((0, 1)))))  # fmt: skip
            if again and random.random() < 0.02:
                again = (None, *again[1:])
            repeat_count = by_profile[workloads[cell]] if job_s else 0
            anew = [job_s * (1 + random.gauss(0, varies)) for _ in range(repeat_count)]
            if anew and random.random() < 0.02:
                anew[0] = None
            yield Prediction(
                repeats_s=tuple(anew),
                model=model, cell=cell, profile="p", body_s=job_s and body_s, job_s=job_s,
                published_s=body_s,
                measurable={"map_main_s": off * times["job_s"] / 3}, estimates={"x_s": 2 * body_s},
                parts={"equation 3": 1.0}, intervals={"body_s": ends}, refits={"body_s": again},
            )  # fmt: skip


def drifts(random):
    """
    What sentinels say, if there are some.
    """
    if random.random() < 0.5:
        return None
    ratio = random.uniform(0.8, 1.3)
    half = random.choice((0.001, 0.03, 0.1))
    return Drift(ratio=ratio, low=ratio * (1 - half), high=ratio * (1 + half), sentinels=4, cells=2)


def questions(random):
    """
    Whatever may be asked of these models, of one that is not there, too.
    """
    asks = random.choice(
        ({"how_far": BEST}, {"how_far": random.choice((*MODELS, "x"))}, {"claims": "prophet"},
         {"choice": random.choice((1, 2))},
         {"nearer": tuple(random.sample((*MODELS, "x"), random.choice((2, 2, 3))))},
         {"nearer": tuple(random.sample(MODELS[:2], 2))})
    )  # fmt: skip
    scope = random.choice(("jobs", "jobs", "inputs"))
    extrapolate = random.choice((False,) * 8 + (True, "out"))
    return Question(**asks, scope=scope, extrapolate=extrapolate)


def profiled(random):
    """
    Trials of profiling cells of both workloads, once each or repeated; or none.
    """
    for place in range(random.choice((0, 2, 3))):
        for number in range(random.choice((1, 2, 6))):
            job_s = 20 * math.exp(random.gauss(0, 0.1))
            times = {"job_s": job_s, "map_main_s": job_s / 3}
            yield Measurement(
                cell=f"p{place}", workload=("wordcount", "terasort")[place % 2],
                trial=f"p{place}-{number}", raw_s=times, reference_s=times,
            )  # fmt: skip


def tables(measurements, predictions, profiling=()):
    """
    Rows as docs/scores.md has them, and which trials are *profiling* ones.
    """
    rows = {
        (each.cell, each.trial, name, speed): {
            "workload": each.workload,
            "cell": each.cell,
            "trial": each.trial,
            "quantity": name,
            "speed": speed,
            "value": time_s,
        }
        for each in (*measurements, *profiling)
        for speed, times in (("raw", each.raw_s), ("reference", each.reference_s))
        for name, time_s in times.items()
    }
    predicted_rows = []
    for each in predictions:
        for name, (level, time_s) in predicted_times(each).items():
            if level in ("equation", "estimate"):  # which no table of a bundle has
                continue
            row = {"cell": each.cell, "model": each.model, "rung": level, "quantity": name}
            row |= {"refit": None, "predicted": time_s}
            if name == "job_s":
                row["in_sample_miss"] = each.in_sample_miss
            for percent, (low, high) in INTERVALS.items():
                ends = each.intervals.get(name, {}).get(str(percent)) or (None, None)
                row |= {low: ends[0], high: ends[1]}
            predicted_rows.append({**row})
            row.pop("in_sample_miss", None)
            predicted_rows += [
                {**row, "refit": number, "predicted": again_s}
                for number, again_s in enumerate(each.refits.get(name, ()))
            ]
            if name == "job_s":
                predicted_rows += [
                    {**row, "repeat": number, "predicted": anew_s}
                    for number, anew_s in enumerate(each.repeats_s)
                ]
    return rows, predicted_rows, {(each.cell, each.trial) for each in profiling}


def run_tables(measurements, predictions, question, level, drift=None):
    """
    What tables of a bundle say of the run and of its cells.
    """
    given = getattr(question, question.kind)
    words = given if isinstance(given, tuple) else [str(given)]
    about = {
        "asks": " ".join([question.kind, *words]), "scope": question.scope, "level": level,
        "extrapolate": str(question.extrapolate).lower(), "asked": "afterwards",
        "drift": drift and drift.ratio, "drift_low": drift and drift.low,
        "drift_high": drift and drift.high,
    }  # fmt: skip
    about["read_at"] = ""
    about["read_at"] = speed_of(about, tables(measurements, [])[0].values())
    cells = {
        (each.cell,): {
            "range": each.range,
            "input": each.input,
            "workload": each.workload,
            "weight": each.weight,
        }
        for each in measurements
    }
    rows = tables(measurements, predictions)[1]
    return {
        "runs": {(): about}, "cells": cells, "predictions": dict(enumerate(rows)),
        "comparisons": {"": {"any_profile": ""}},
    }  # fmt: skip


def close(one, other):
    """
    Whether both are the same number, text or truth value, or both none.
    """
    if one is None and other == "":
        return True
    if isinstance(one, bool):
        return other == str(one).lower()
    if isinstance(one, str) or None in (one, other):
        return one == other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.process
@given(SEEDS, LEVELS)
def test_both_give_every_number_every_verdict_and_the_sentence(seed, level):
    """
    Scores by cell, model, quantity and speed; comparisons by pair: 1e-9 of each number; and what
    answers the question, word by word.
    """
    random = Random(seed)
    measurements = [*measured(random)]
    misses = random.choice(((None,), (None, 0.05, 0.15)))
    predictions = [
        each.model_copy(update={"in_sample_miss": random.choice(misses)})
        for each in predicted(random, measurements)
    ]
    question = questions(random)
    drift = drifts(random)
    profiling = [*profiled(random)]
    score_book = score(
        predictions,
        measurements,
        error=level,
        question=question,
        drift=drift,
        profiling=profiling,
    )

    scores = scored(*tables(measurements, predictions, profiling))
    run = run_tables(measurements, predictions, question, level, drift)
    assert run["runs"][()]["read_at"] == score_book.speed

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

    comparisons = {}
    for speed in ("raw", "reference"):
        comparisons |= compared(subject(run, scores, speed), speed)
    pairs = {(each.quantity, each.speed, each.better, each.worse, each.family): each
             for each in score_book.comparisons}  # fmt: skip
    assert pairs.keys() == comparisons.keys()
    for key, numbers in comparisons.items():
        for name, number in numbers.items():
            assert close(getattr(pairs[key], name), number), (*key, name)

    about = subject(run, scores, score_book.speed)
    if score_book.answer:
        assert answer(about.asks, about, comparisons) == score_book.answer.sentence


def plain_rows(scores, speed):
    """
    Of each ranked model, the nearest first: its rows of job times in the cells that all answer.
    """
    answers = {}
    for row in scores:
        if (row.quantity, row.speed) == ("job_s", speed):
            answers.setdefault(row.model, {})[row.cell] = row
    most = max([len(answered) for answered in answers.values()], default=0)
    ranked = [model for model in answers if 2 * len(answers[model]) >= most]
    while ranked and not set.intersection(*[set(answers[model]) for model in ranked]):
        fewest = min(len(answers[model]) for model in ranked)
        ranked.remove(max(model for model in ranked if len(answers[model]) == fewest))
    if not ranked:
        return {}, answers
    cells = sorted(set.intersection(*[set(answers[model]) for model in ranked]))
    rows = {model: [answers[model][cell] for cell in cells] for model in ranked}
    order = sorted(rows, key=lambda model: (plain_error(rows[model]), model))
    return {model: rows[model] for model in order}, answers


def plain_error(rows):
    """
    Mean relative error, of drawn cells by their weights.
    """
    weights = [row.weight or 1 for row in rows]
    errors = [abs(row.predicted_s / row.measured_s - 1) for row in rows]
    return fmean(errors, weights)


def units_in_order(cells, scope):
    """
    Unit of each cell, called by its place in the order of mean measured times, then of names.
    """
    named = [row.cell if scope == "jobs" else (row.input or "\0" + row.cell) for row in cells]
    means = {
        name: math.fsum(r.measured_s for r, n in zip(cells, named, strict=True) if n == name)
        / named.count(name)
        for name in named
    }
    order = sorted(means, key=lambda name: (means[name], name))
    return [f"{order.index(name):04}" for name in named]


def plain_gaps(rows, pairs, stretch):
    """
    Errors of the first of each pair less those of the second, were all measured times shorter.
    """
    return [
        [abs(one.predicted_s / one.measured_s * stretch - 1)
         - abs(other.predicted_s / other.measured_s * stretch - 1)
         for one, other in zip(rows[a], rows[b], strict=True)]
        for a, b in pairs
    ]  # fmt: skip


def plain_verdicts(rows, pairs, side, settings):
    """
    Difference, low, high, chance and verdict of each of *pairs*, by section 4 of docs/scores.md.
    """
    scope, level, stretches = settings
    first_alike = {}
    for model, of_model in rows.items():
        for other, first in first_alike.items():
            if all(
                abs(row.predicted_s - known.predicted_s) <= 1e-9 * abs(known.predicted_s)
                for row, known in zip(of_model, rows[other], strict=True)
            ):
                first_alike[model] = first
                break
        first_alike.setdefault(model, model)
    tested = []
    for a, b in pairs:
        one = (first_alike[a], first_alike[b])
        if one[0] != one[1] and one not in tested:
            tested.append(one)
    cells = next(iter(rows.values()), [])
    units = units_in_order(cells, scope)
    gaps = plain_gaps(rows, tested, 1.0)
    weights = [row.weight or 1 for row in cells]
    numbers = {one: (fmean(gap, weights), min(gap), max(gap), None, "undecided")
               for one, gap in zip(tested, gaps, strict=True)}  # fmt: skip
    if tested and len(set(units)) >= 6:
        at_each = [
            family(plain_gaps(rows, tested, by), units, side, level, weights) for by in stretches
        ]
        for one, *found_at in zip(tested, *at_each, strict=True):
            difference, low, high, chance = zip(*found_at, strict=True)
            found = (difference[0], min(low), max(high), max(chance))
            verdict = "nearer" if found[3] <= level else "undecided"
            if found[1] > -0.02 and found[2] < 0.02:
                verdict = "equal"
            ends = [end if math.isfinite(end) else None for end in found[1:3]]
            numbers[one] = (found[0], *ends, found[3], verdict)
    same = (0.0, 0.0, 0.0, 1.0, "equal")
    return {(a, b): numbers.get((first_alike[a], first_alike[b]), same) for a, b in pairs}


@given(SEEDS, LEVELS)
def test_a_plain_program_gives_every_pair(seed, level):
    """
    Which cells, which models in which order, what is tested together, and what comes of it.
    """
    random = Random(seed)
    measurements = [*measured(random)]
    predictions = [*predicted(random, measurements)]
    question = questions(random)
    trials = {
        cell: [each for each in measurements if each.cell == cell]
        for cell in {each.cell for each in measurements}
    }
    scores = [*cell_scores(predictions, trials)]
    drift = drifts(random)
    read_at = ReadAt.of(measurements, drift)
    _, comparisons = compare(
        [*compared_scores(scores, question)], question=question, error=level, read_at=read_at
    )

    expected = {}
    places = {True: {"outside"}, "out": {"inside", "edge"}}.get(question.extrapolate)
    about = [row for row in scores if places is None or row.range in places]
    stretches = [1.0]
    if drift is not None:
        stretches += [drift.low / drift.ratio, drift.high / drift.ratio]
    for speed in ("raw", "reference"):
        rows, answers = plain_rows(about, speed)
        is_read = speed == read_at.speed
        settings = (question.scope, level, stretches if is_read else [1.0])
        verdicts = plain_verdicts(rows, [*combinations(rows, 2)], "either", settings)
        expected |= {("explored", speed, *pair): found for pair, found in verdicts.items()}
        first, *others = question.nearer or ("",)
        shared = [set(answers.get(model, ())) for model in question.nearer]
        if is_read and shared and set.intersection(*shared):
            cells = sorted(set.intersection(*shared))
            rows = {model: [answers[model][cell] for cell in cells] for model in question.nearer}
            pairs = [(first, other) for other in others]
            verdicts = plain_verdicts(rows, pairs, "first", settings)
            expected |= {("asked", speed, *pair): found for pair, found in verdicts.items()}

    pairs = {(each.family, each.speed, each.better, each.worse): each for each in comparisons}
    assert pairs.keys() == expected.keys()
    for key, numbers in expected.items():
        one = pairs[key]
        found = (one.difference, one.low, one.high, one.chance, one.verdict)
        for value, number in zip(found, numbers, strict=True):
            if isinstance(number, float):
                assert value == pytest.approx(number, rel=1e-7, abs=1e-9), key
            else:
                assert value == number, key


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

    score_book = score(predictions, measurements)
    run = run_tables(measurements, predictions, Question(how_far=BEST), FAMILY_ERROR)
    about = subject(run, scored(*tables(measurements, predictions)), "raw")
    ranked, _ = plain_rows(score_book.scores, "raw")

    assert [*score_book.ranking("raw").models] == about.ranked == [*ranked] == ["ptc"]


@given(st.floats(1, 200), st.floats(1e-4, 50))
def test_chances_are_those_of_students_t(freedom, t):
    """
    To 1e-10 of what SciPy says, far from 0, too (nearer to 0 SciPy itself is off by more).
    """
    for one in (t, -t):
        assert math.isclose(tail(freedom, one), stdtr(freedom, -one), rel_tol=1e-10)
