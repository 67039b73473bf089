"""
What alarms of nights see of a step and of a wider spread, and how often one is false: a table.

All series are columns of one file of 50, judged night by night as `harness nightly judge` does.
Each column has a spread of its own, 2 to 15 %; *noise* is what its nights are drawn from.

- *false*: alarms in a year of 365 nights in which nothing moves.
- *step*: one column of the 50 rises by five of its spreads, after 10 nights and after 20.  It is
  seen where an alarm about it is raised within three nights.
- *alone*: the same after 10 nights, where the file has no other column.
- *wider*: from night 31 to 90 the nights of one column lie twice as far apart: what its first alarm
  says, of a spread or of a shift.

    bench_nightly_steps.py [--years 4] [--series 100]       the table: minutes on one core
    bench_nightly_steps.py --control                        a control that takes 25 % longer
    bench_nightly_steps.py --calibrate [--years 150]        chances and scores of `shifts`
"""

import argparse
import math
import time

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from bench_nightly import wilson

from harness.nightly import shifts
from harness.nightly.alarms import Judge
from harness.nightly.columns import csv_table
from harness.nightly.records import SPREAD, Alarm

COLUMNS = 50
YEAR = 365
SEED = 21
STEP = 5.0
WITHIN = 3
QUIET, WIDE = 30, 60  # nights before a spread doubles, and with it
CONTROL, CONTROLS = 0.05, 30  # the spread of a control, as the example's nights have it
RATES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)

Noise = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def normal(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return random.standard_normal(shape)


def autocorrelated(phi: float) -> Noise:
    """Of first order, and of unit variance."""

    def draw(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        nights = random.standard_normal(shape)
        for night in range(1, shape[0]):
            nights[night] = phi * nights[night - 1] + math.sqrt(1 - phi**2) * nights[night]
        return nights

    return draw


def far_outliers(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """One night in fifty lies 5 to 10 spreads off, to either side."""
    outliers = random.uniform(5, 10, shape) * random.choice((-1, 1), shape)
    return np.where(random.random(shape) < 0.02, outliers, random.standard_normal(shape))


def wide_nights(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """One night in ten is drawn with five times the spread."""
    factors = np.where(random.random(shape) < 0.1, 5.0, 1.0)
    return factors * random.standard_normal(shape)


def heavy_tails(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Student's t with three degrees of freedom, of unit variance."""
    return random.standard_t(3, shape) / math.sqrt(3)


NOISES: dict[str, Noise] = {
    "normal": normal,
    "autocorrelation 0.3": autocorrelated(0.3),
    "autocorrelation 0.6": autocorrelated(0.6),
    "2 % of nights 5 to 10 spreads off": far_outliers,
    "10 % of nights five times as wide": wide_nights,
    "heavy tails (Student's t, 3)": heavy_tails,
}


def judged(deviates: np.ndarray, random: np.random.Generator, spread: float = 0.0) -> list[Alarm]:
    """Alarms of columns of *deviates*, (night, column), each with a *spread* drawn for it."""
    count = deviates.shape[1]
    drawn = np.exp(random.uniform(math.log(0.02), math.log(0.15), count))
    spreads = np.full(count, spread) if spread else drawn
    names = [f"c{place}" for place in range(count)]
    return Judge(csv_table(names, 100 * np.exp(spreads * deviates))).judge()


def false_alarms(noise: Noise, years: int) -> float:
    """Alarms in a year in which nothing moves."""
    random = np.random.default_rng(SEED)
    counts = [len(judged(noise(random, (YEAR, COLUMNS)), random)) for _ in range(years)]
    return float(np.mean(counts))


def steps_seen(noise: Noise, before: int, count: int, columns: int = COLUMNS) -> int:
    """Of *count* series those whose step is seen in time."""
    seen = 0
    for number in range(count):
        random = np.random.default_rng([SEED, before, number])
        deviates = noise(random, (before + WITHIN, columns))
        deviates[before:, 0] += STEP
        alarms = judged(deviates, random)
        seen += any(is_about_first(alarm) and alarm.raised > before for alarm in alarms)
    return seen


def is_about_first(alarm: Alarm) -> bool:
    """Whether a shift of the first column is among what an alarm says."""
    return alarm.cause != SPREAD and "c0" in (alarm.series, *alarm.cells)


def first_of_wider(noise: Noise, count: int) -> tuple[int, int]:
    """Of *count* series in which nights lie farther apart: first alarms of a spread, and others."""
    spreads, others = 0, 0
    for number in range(count):
        random = np.random.default_rng([SEED, QUIET, number])
        deviates = noise(random, (QUIET + WIDE, COLUMNS))
        deviates[QUIET:, 0] *= 2
        alarms = judged(deviates, random)
        late = [
            alarm
            for alarm in alarms
            if "c0" in (alarm.series, *alarm.cells) and alarm.raised > QUIET
        ]
        spreads += bool(late) and late[0].cause == SPREAD
        others += bool(late) and late[0].cause != SPREAD
    return spreads, others


def rows(years: int, count: int) -> Iterator[Sequence[str]]:
    for name, noise in NOISES.items():
        false = false_alarms(noise, years)
        shares = [
            wilson(steps_seen(noise, 10, count), count),
            wilson(steps_seen(noise, 20, count), count),
            wilson(steps_seen(noise, 10, count, columns=1), count),
        ]
        wider = max(count // 2, 1)
        spreads, others = (wilson(hits, wider) for hits in first_of_wider(noise, wider))
        yield name, f"{false:.2g}", *shares, spreads, others


def show(years: int, count: int) -> None:
    head = (
        "noise",
        "false alarms a year",
        "step after 10 nights",
        "after 20",
        "after 10, alone",
        "wider: told so",
        "wider: told a shift",
    )
    print("|", " | ".join(head), "|")
    print("|" + "---|" * len(head))
    for row in rows(years, count):
        print("|", " | ".join(row), "|", flush=True)


def control() -> None:
    """How many of thirty controls are seen that take a quarter longer after 13 quiet nights."""
    seen = 0
    for number in range(CONTROLS):
        random = np.random.default_rng([SEED, 13, number])
        deviates = normal(random, (13 + WITHIN, COLUMNS))
        deviates[13:, 0] += math.log(1.25) / CONTROL
        seen += any(map(is_about_first, judged(deviates, random, CONTROL)))
    print(f"25 % after 13 nights that spread by {CONTROL:.0%}: seen in {seen} of {CONTROLS}")


def calibrate(years: int) -> None:
    """Scores that a quiet series exceeds so often a year, of as many files as *years*."""
    largest = list[np.ndarray]()
    clips = np.full(COLUMNS, shifts.CLIP)
    for number in range(years):
        nights = normal(np.random.default_rng([SEED, number]), (YEAR, COLUMNS))
        scores = np.full(COLUMNS, -np.inf)
        for night in range(shifts.FEWEST_NIGHTS, YEAR + 1):
            scores = np.maximum(scores, shifts.scan(nights[:night], clips).scores.max(axis=0))
        largest.append(scores)
    for rate in RATES:
        score = np.quantile(np.concatenate(largest), math.exp(-rate))
        print(f"{rate:g} a year: {score:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="steps and spreads that alarms of nights see")
    parser.add_argument("--years", type=int)
    parser.add_argument("--series", type=int, default=100)
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--calibrate", action="store_true")
    options = parser.parse_args()
    began = time.perf_counter()
    if options.calibrate:
        calibrate(options.years or 150)
    elif options.control:
        control()
    else:
        show(options.years or 4, options.series)
    print(f"\ntook {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
