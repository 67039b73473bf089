"""Estimates of what tracing costs: they find what was put into made-up tasks, and no more."""

import json
import random

from dataclasses import replace

import pytest

from tracer_effects import HEAD, Effect, Sample, contrasts, effects, least_known, rows
from tracer_tasks import MAPS, _drawn, _next_job, load


def samples(cost, jobs=20, noise=0.05, seed=3, speed=0.0):
    """
    Tasks of two seconds: *cost* by mode is added, as a part.

    The machine is slower job by job, and with *speed* task by task, as its probe tells.
    """
    chance = random.Random(seed)
    estimates = []
    for job in range(jobs):
        for place, mode in enumerate(_drawn(chance, MAPS["wordcount"], tuple(cost))):
            slow = 1 + speed * chance.random()
            cpu_s = 2 * (1 + job / jobs) * (1 + cost[mode]) * slow
            cpu_s *= 1 + noise * chance.gauss()
            estimates.append(
                Sample("wordcount", f"job_1_{job:04d}", mode, 10.0 * place, cpu_s, 1.0, 1e6 / slow)
            )
    return estimates


def test_what_was_added_is_found():
    """
    Within the interval, which is as narrow as the noise allows.
    """
    spans, units = effects(samples({"off": 0.0, "spans": 0.01, "units": 0.05}))

    assert (spans.mode, spans.tasks, spans.stock) == ("spans", 240, 240)
    assert spans.low < 0.01 < spans.high
    assert units.low < 0.05 < units.high
    assert units.low > 0.02
    assert spans.high - spans.low == pytest.approx(4 * 0.05 * (2 / 240) ** 0.5, rel=0.2)
    assert spans.start_up_s == pytest.approx(0.0)


def test_intervals_hold_the_truth_as_often_as_they_say():
    """
    95 of 100: at least 88 of these 100, and not all of them.
    """
    nothing = dict.fromkeys(("off", "spans", "units"), 0.0)
    covered = 0
    for seed in range(1000, 1100):
        (spans, _) = effects(samples(nothing, jobs=3, seed=seed))
        covered += spans.low <= 0 <= spans.high

    assert 88 <= covered < 100


def test_the_probe_takes_the_machine_out():
    """
    Tasks that a slow core made slow do not widen the interval.
    """
    cost = {"off": 0.0, "spans": 0.01, "units": 0.05}

    corrected = effects(samples(cost, speed=0.8))[0]
    uncorrected = effects(without_rates(samples(cost, speed=0.8)))[0]

    assert corrected.high - corrected.low < 0.5 * (uncorrected.high - uncorrected.low)


def without_rates(estimates):
    """The same tasks without a probe beside them."""
    return [
        Sample(s.workload, s.job, s.mode, s.start_s, s.cpu_s, s.start_up_s, None) for s in estimates
    ]


def test_too_few_tasks_give_no_estimate():
    """
    Nothing is said where nothing is known.
    """
    few = samples({"off": 0.0, "spans": 0.0, "units": 0.0}, jobs=1)[:3]

    with pytest.raises(ValueError, match="too few"):
        contrasts(few, lambda s: s.cpu_s, ("spans", "units"))
    assert effects(few) == []


def test_modes_are_drawn_evenly():
    """
    Neighbours of three have one of each; the order differs.
    """
    drawn = _drawn(random.Random(1), 36, ("off", "spans", "units"))
    threes = [drawn[i : i + 3] for i in range(0, len(drawn), 3)]

    assert {tuple(sorted(three)) for three in threes} == {("off", "spans", "units")}
    assert len({tuple(three) for three in threes}) > 2


def test_numbers_of_jobs_go_on_beyond_four_digits():
    """
    As YARN writes them.
    """
    assert _next_job("job_17_0099") == "job_17_0100"
    assert _next_job("job_17_9999") == "job_17_10000"


def test_what_was_measured_of_another_tracer_does_not_count(tmp_path):
    """
    Neither does a file that cannot be read.
    """
    file = tmp_path / "overhead.json"
    (one,) = samples({"off": 0, "spans": 0, "units": 0}, jobs=1)[:1]
    values = {name: getattr(one, name) for name in Sample.__dataclass_fields__}
    file.write_text(json.dumps({"of": {"tracer": "a"}, "samples": [values]}))

    assert load(file, {"tracer": "a"}) == [one]
    assert load(file, {"tracer": "b"}) == []
    file.write_text("{")
    assert load(file, {"tracer": "a"}) == []


def test_the_least_known_workload_is_next():
    """
    First those of which nothing is known, then the one with the wider interval.
    """
    narrow = Effect("wordcount", "spans", 0.0, -0.01, 0.01, 1, 1, 0.1, 1.0)
    wide = Effect("terasort", "spans", 0.0, -0.02, 0.02, 1, 1, 0.1, 1.0)

    corrected = [least_known(estimates) for estimates in ([], [narrow], [wide], [narrow, wide])]

    assert corrected == ["wordcount", "terasort", "wordcount", "terasort"]


def test_rows_for_people():
    """
    Each figure with its interval.
    """
    estimates = effects(samples({"off": 0.0, "spans": 0.01, "units": 0.05}, noise=1e-6))

    start_up = "+0.00 s (+0.00 to +0.00)"
    first = ("wordcount", "maps", "spans", "+1.0% (+1.0% to +1.0%)", start_up)
    assert rows(estimates)[0] == (*first, "240, 240 stock", "0.0%", "1 each")
    assert len(rows(estimates)[0]) == len(HEAD)


def test_hooks_without_their_recorder_are_a_mode_of_their_own():
    """
    Jobs with and without it count together, in blocks as long as their modes ask.
    """
    cost = {"off": 0.0, "instrumented": 0.03, "spans": 0.01, "units": 0.05}
    without = {mode: cost[mode] for mode in ("off", "spans", "units")}
    both = [*samples(cost), *(replace(s, job=f"{s.job}0") for s in samples(without, seed=4))]

    estimates = {e.mode: e for e in effects(both)}

    assert list(estimates) == ["instrumented", "spans", "units"]
    assert all(e.low < cost[mode] < e.high for mode, e in estimates.items())
    assert (estimates["instrumented"].tasks, estimates["units"].tasks) == (180, 180 + 240)


def test_maps_and_reduces_are_compared_apart():
    """
    Each kind is compared with stock tasks of its own; which workload is next, maps alone decide.
    """
    maps = samples({"off": 0.0, "spans": 0.01, "units": 0.05}, noise=0.01)
    dear = samples({"off": 0.0, "spans": 0.2, "units": 0.3})
    reduces = [replace(s, kind="reduce") for s in dear]
    other = [replace(s, workload="terasort") for s in samples({"off": 0.0, "spans": 0.0})]

    estimates = effects([*maps, *reduces, *other])

    shares = {(e.workload, e.kind): round(e.share, 1) for e in estimates if e.mode == "spans"}
    assert shares == {
        ("wordcount", "map"): 0.0,
        ("wordcount", "reduce"): 0.2,
        ("terasort", "map"): 0.0,
    }
    assert least_known(estimates) == "terasort"


def test_tasks_needed_for_one_percent():
    """
    That many of each mode give an interval of 1 % to either side, with the spread that is left.
    """
    wanted = Effect("wordcount", "spans", 0.0, -0.01, 0.01, 1, 1, spread=0.05, stock_cpu_s=1.0)
    jobs = round(wanted.needed / (MAPS["wordcount"] / 3))

    (spans, _) = effects(samples({"off": 0.0, "spans": 0.0, "units": 0.0}, jobs=jobs))

    assert (spans.high - spans.low) / 2 == pytest.approx(0.01, rel=0.15)
