"""
What a machine that slows down does to a verdict, and what sentinels take back: a simulation.

    .venv/bin/python bench/bench_drift.py            # a minute on one core

Two models are equally good: one says 2.5 % too little, one as much too much, and both miss each
cell by the same further 10 %.  Behind the seal all jobs take longer by the drift, so that the
longer one seems to be nearer.  Each trial varies by 6.5 %, each cell has two; two profiling cells
have three each, and one trial in six behind the seal repeats one of them.

Printed is in how many of 100 draws the longer model is called nearer, asked alone at 5 %:

- measured: by the times as they are;
- corrected: by the times over the drift that sentinels show;
- at both ends: where that holds at both ends of the drift's interval, too, as runs are scored.
"""

from __future__ import annotations

import numpy as np

from harness.base.records.question import Question
from harness.base.records.score import Drift, Score
from harness.base.stats.drift import ratio_of
from harness.base.stats.flips import flip_chances
from harness.scoring.comparisons import compare
from harness.scoring.speeds import ReadAt

CELLS = (6, 12, 24, 48, 96)
DRIFTS = (1.0, 1.05, 1.1, 1.2)
DRAWS = 400
ERROR = 0.05
NOISE = 0.065  # of a trial
MISSED = 0.10  # of a cell, by both models alike
OWN = 0.02  # of a cell, by each model
GAP = 0.05
REPEATS = 2
PROFILED = {"first": 3, "second": 3}  # trials of each profiling cell
ONE_IN = 6


def drift_seen(generator, drift, count, noise=NOISE):
    """
    The drift that so many sentinels show, where trials vary by *noise*.
    """
    before = {
        name: np.exp(noise * generator.standard_normal(trials)).tolist()
        for name, trials in PROFILED.items()
    }
    names = [*PROFILED]
    later = {name: [] for name in names}
    for number in range(count):
        time_s = drift * np.exp(noise * generator.standard_normal())
        later[names[number % len(names)]].append(time_s)
    found = ratio_of(before, later)
    return Drift(
        ratio=found.value, low=found.low, high=found.high, sentinels=count, cells=len(names)
    )


def chance_of(measured_s, short_s, long_s):
    """
    Chance that the longer model seems to be nearer by so much, or more.
    """
    gaps = np.abs(long_s / measured_s - 1) - np.abs(short_s / measured_s - 1)
    names = [f"{number:04}" for number in range(len(gaps))]
    return float(flip_chances(gaps[None], names)[0])


def is_nearer(measured_s, short_s, long_s, drift):
    """
    Whether the longer model is called nearer, as a run with that drift is scored.
    """
    rows = []
    for model, predicted_s in (("long", long_s), ("short", short_s)):
        for cell, times_s in enumerate(zip(predicted_s, measured_s / drift.ratio, strict=True)):
            one_s, other_s = map(float, times_s)
            error = one_s / other_s - 1
            rows.append(
                Score(
                    model=model, cell=f"{cell:04}", level="job", quantity="job_s",
                    speed="reference", predicted_s=one_s, measured_s=other_s, trials=REPEATS,
                    floor=NOISE / REPEATS**0.5, signed_error=error, relative_error=abs(error),
                )
            )  # fmt: skip
    asks = Question(nearer=("long", "short"))
    _, pairs = compare(rows, question=asks, read_at=ReadAt.of((), drift))
    (asked,) = [pair for pair in pairs if pair.family == "asked"]
    return asked.verdict == "nearer"


def found_nearer(cells, drift):
    """
    In how many of 100 draws the longer model is called nearer, by each of the three rules.
    """
    generator = np.random.default_rng([cells, round(100 * drift)])
    sentinels = max(1, round(cells * REPEATS / (ONE_IN - 1)))
    found = np.zeros(3)
    for _ in range(DRAWS):
        true_s = generator.uniform(10, 60, cells)
        noise = np.exp(NOISE * generator.standard_normal((REPEATS, cells)))
        measured_s = drift * (true_s * noise).mean(axis=0)
        missed = MISSED * generator.standard_normal(cells)
        short_s, long_s = (
            true_s * np.exp(missed + side + OWN * generator.standard_normal(cells))
            for side in (-GAP / 2, GAP / 2)
        )
        seen = drift_seen(generator, drift, sentinels)
        found[0] += chance_of(measured_s, short_s, long_s) <= ERROR
        found[1] += chance_of(measured_s / seen.ratio, short_s, long_s) <= ERROR
        found[2] += is_nearer(measured_s, short_s, long_s, seen)
    return sentinels, 100 * found / DRAWS


def main():
    """
    Print the table.
    """
    print("the longer of two equal models is called nearer, %")
    print("   cells  sentinels  drift   measured   corrected   at both ends")
    for cells in CELLS:
        for drift in DRIFTS:
            sentinels, shares = found_nearer(cells, drift)
            row = f"   {cells:5}  {sentinels:9}  {100 * (drift - 1):4.0f} %"
            print(row + f"   {shares[0]:8.1f}   {shares[1]:9.1f}   {shares[2]:12.1f}", flush=True)


if __name__ == "__main__":
    main()
