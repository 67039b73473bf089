"""
Alarms of nights beside Otava, PELT and asv, by one protocol: when a shift is found, and how often
an alarm is false.

90 nights; in half of the series everything is slower by d times the nightly noise from night 61 on,
the other half is the same series left alone.  All see the same series, night by night: after night
t a detector is shown nights 1 to t and says whether there is an alarm.  The first alarm counts; one
before night 61 is early, and the shift then not found.  Where there are cells the peers look at
each by itself, and any of them is an alarm.

- harness: `Judge`, replayed; for some series each night is also judged as if it were the last.
- otava: Apache Otava 0.8, p = 1e-5, window and magnitude as it has them.  Its analysis knows no
  nights: it is asked for the change points of the nights so far, and any is an alarm.  It wants a
  NumPy of its own, so it answers from a virtual environment of its own (`scripts/peer otava`).
- pelt: least squares by ruptures, segments of three nights at least, from night 20 on.  Its penalty
  is so many times log(n) times the variance, which is that of the differences of neighbours: 3
  times, and the least with which one in a hundred of other quiet series alarms (tuned); and this
  for one that is told the variance, which nobody knows (told).
- asv: its steps and its rule for a regression, with its threshold of 5 % and without one.

    bench_nightly.py [--series N] [--only harness,otava,pelt,asv] [--seed 20]

N is 1,000, of which the first 100 are shown too; 100 where a look takes milliseconds, 20 for asv at
many cells.  Constants are chosen by other seeds than the one whose figures are given.  Shares are
of 100 series, with the 95 % interval by Wilson.  A peer that is not installed is left out.
"""

import argparse
import json
import math
import subprocess
import time

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness.nightly.alarms import Judge
from harness.nightly.columns import csv_table
from harness.nightly.records import Alarm

NIGHTS, MOVED, WITHIN, SEED = 90, 61, (3, 5, 10, 30), 20
FEWEST, FEW, MANY = 20, 100, 1000
NOISE, CELLS, COMMON = 0.03, 12, 0.01
FIRST, PELT_FIRST, SEGMENT = 8, 20, 3  # nights
OTAVA_PYTHON = Path(__file__).parents[1] / ".cache" / "otava" / "bin" / "python"
OTAVA = """
import json, sys
from otava.analysis import compute_change_points
for line in sys.stdin:
    cells = json.loads(line)
    print(int(any(compute_change_points(each, max_pvalue=1e-5)[0] for each in cells)), flush=True)
"""

Look = Callable[[np.ndarray], bool]  # of the seconds (night, cell) so far: is there an alarm?
Draw = Callable[[np.random.Generator], np.ndarray]  # logarithms (night, cell) of nothing but noise


class Case(NamedTuple):
    name: str
    draw: Draw
    shifts: dict[str, float]  # logarithms


class Detector(NamedTuple):
    """
    *first* gives the first night of these seconds with an alarm, looked for from a night on;
    *count* and *joint* are the numbers of series, of one cell and of many.
    """

    name: str
    first: Callable[[np.ndarray, int], int | None]
    count: int = FEW
    joint: int = FEW


def normal(random: np.random.Generator) -> np.ndarray:
    return NOISE * random.standard_normal((NIGHTS, 1))


def autocorrelated(random: np.random.Generator, phi: float = 0.3) -> np.ndarray:
    """Of first order, and the same variance."""
    noise = random.standard_normal((NIGHTS, 1))
    for night in range(1, NIGHTS):
        noise[night] = phi * noise[night - 1] + math.sqrt(1 - phi**2) * noise[night]
    return NOISE * noise


def with_outliers(random: np.random.Generator) -> np.ndarray:
    """One night in fifty lies 5 to 10 standard deviations off, to either side."""
    noise, is_outlier = random.standard_normal((NIGHTS, 1)), random.random((NIGHTS, 1)) < 0.02
    outliers = random.uniform(5, 10, noise.shape) * random.choice((-1, 1), noise.shape)
    return NOISE * np.where(is_outlier, outliers, noise)


def joint(random: np.random.Generator) -> np.ndarray:
    cells = NOISE * random.standard_normal((NIGHTS, CELLS))
    return cells + COMMON * random.standard_normal((NIGHTS, 1))


CASES = (
    Case("normal noise", normal, {"d = 5/3": 5 / 3 * NOISE, "d = 10/3": 10 / 3 * NOISE}),
    Case("autocorrelation 0.3", autocorrelated, {"d = 5/3": 5 / 3 * NOISE}),
    Case("2 % outliers", with_outliers, {"d = 5/3": 5 / 3 * NOISE}),
    Case("12 cells (3 % each) and 1 % common", joint, {"all 5 % slower": math.log(1.05)}),
)


def series(case: Case, number: int, shift: float = 0.0, seed: int = SEED) -> np.ndarray:
    """Seconds (night, cell); the same noise whatever the shift."""
    random = np.random.default_rng([seed, [each.name for each in CASES].index(case.name), number])
    logarithms = case.draw(random)
    logarithms[MOVED - 1 :] += shift
    return 100 * np.exp(logarithms)


def judged(seconds: np.ndarray) -> list[Alarm]:
    """Alarms of the product, as they were raised."""
    names = [f"c{cell}" for cell in range(seconds.shape[1])]
    return Judge(csv_table(names, seconds)).judge()


def replayed(seconds: np.ndarray, _begin: int) -> int | None:
    return min((alarm.raised for alarm in judged(seconds)), default=None)


def online(look: Look) -> Callable[[np.ndarray, int], int | None]:
    """First night of the nights after which *look* sees an alarm in all so far."""

    def first(seconds: np.ndarray, begin: int) -> int | None:
        nights = range(max(begin, FIRST), len(seconds) + 1)
        return next((night for night in nights if look(seconds[:night])), None)

    return first


def pelt(factor: float, *, is_told: bool = False) -> Look:
    import ruptures

    def look(seconds: np.ndarray) -> bool:
        if len(seconds) < PELT_FIRST:
            return False
        for cell in np.log(seconds).T:
            variance = NOISE**2 if is_told else np.var(np.diff(cell)) / 2
            search = ruptures.KernelCPD("linear", min_size=SEGMENT, jump=1)  # PELT in C
            if len(search.fit(cell).predict(pen=factor * math.log(len(cell)) * variance)) > 1:
                return True
        return False

    return look


def tuned(*, is_told: bool, most: float = 0.01, count: int = MANY) -> float:
    """Least factor, in quarters, with which so many quiet series of another seed alarm at most."""
    alarming, factor = list(range(count)), 3.0
    while True:
        first = online(pelt(factor, is_told=is_told))
        alarming = [each for each in alarming if first(series(CASES[0], each, seed=1), 0)]
        if len(alarming) <= most * count:
            return factor
        factor += 0.25


def asv(limit: float) -> Look:
    from asv.step_detect import detect_regressions

    def look(seconds: np.ndarray) -> bool:
        steps = (asv_steps(tuple(cell.tolist())) for cell in seconds.T)
        return any(detect_regressions(each, limit)[2] for each in steps)

    return look


@lru_cache(50_000)
def asv_steps(cell: tuple[float, ...]) -> list[tuple[float, ...]]:
    from asv.step_detect import detect_steps

    return detect_steps(list(cell))


@contextmanager
def otava() -> Iterator[Look]:
    """Ask Otava, in its own environment."""
    command = [str(OTAVA_PYTHON), "-c", OTAVA]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def look(seconds: np.ndarray) -> bool:
            print(json.dumps(seconds.T.tolist()), file=process.stdin, flush=True)
            return process.stdout.readline().strip() == "1"

        yield look
        process.stdin.close()


def detectors(only: Sequence[str], otava_look: Look | None) -> Iterator[Detector]:
    """Those that are wanted and installed; says of the others that they are not."""
    if "harness" in only:
        yield Detector("harness", replayed, MANY, MANY)
    if "otava" in only:
        if otava_look:
            yield Detector("otava p = 1e-5", online(otava_look))
        else:
            print("otava is not installed: left out (scripts/setup bench)")
    if "pelt" in only:
        try:
            factors = {"tuned": tuned(is_told=False), "told": tuned(is_told=True)}
        except ImportError:
            print("ruptures is not installed: left out (requirements/bench.txt has it)")
        else:
            yield Detector("pelt 3 log n", online(pelt(3)), MANY, MANY)
            for how, factor in factors.items():
                look = pelt(factor, is_told=how == "told")
                yield Detector(f"pelt {factor:g} log n, {how}", online(look), MANY, MANY)
    if "asv" in only:
        try:
            print(f"asv is {version('asv')}")
        except ImportError:
            print("asv is not installed: left out (requirements/bench.txt has it)")
        else:
            yield Detector("asv, threshold 5 %", online(asv(0.05)), FEW, FEWEST)
            yield Detector("asv, no threshold", online(asv(0.0)), FEW, FEWEST)


def wilson(hits: int, count: int, z: float = 1.96) -> str:
    """So many of 100, and the interval."""
    middle, spread = hits + z * z / 2, z * math.sqrt(hits * (count - hits) / count + z * z / 4)
    low, high = (100 * (middle + sign * spread) / (count + z * z) for sign in (-1, 1))
    return f"{100 * hits / count:.3g} ({low:.0f} to {high:.0f})"


class Outcome(NamedTuple):
    """First nights with an alarm: of quiet series, and of the same shifted."""

    quiet: int | None
    shifted: dict[str, int | None]


def outcome(detector: Detector, case: Case, number: int, seed: int = SEED) -> Outcome:
    """Of one series; what came before the shift is looked at once."""
    quiet = detector.first(series(case, number, seed=seed), 0)
    is_early = quiet is not None and quiet < MOVED
    return Outcome(quiet, {
        name: quiet if is_early else detector.first(series(case, number, shift, seed), MOVED)
        for name, shift in case.shifts.items()
    })  # fmt: skip


def row(first_alarms: Sequence[int | None]) -> list[str]:
    """Shares of the early ones, and of those within so many nights."""
    early = sum(night is not None and night < MOVED for night in first_alarms)
    return [wilson(early, len(first_alarms)), *(
        wilson(sum(night is not None and 0 <= night - MOVED < nights for night in first_alarms),
               len(first_alarms))
        for nights in WITHIN
    )]  # fmt: skip


def compare(case: Case, chosen: Sequence[Detector], wanted: int | None, seed: int) -> None:
    print(f"\n{case.name}\n")
    head = ("detector", "series", "shift", "quiet with an alarm", "early")
    print("|", " | ".join((*head, *(f"within {nights}" for nights in WITHIN))), "|")
    print("|" + "---|" * (len(head) + len(WITHIN)))
    taken = []
    for detector in chosen:
        began = time.perf_counter()
        is_joint = series(case, 0).shape[1] > 1
        count = wanted or (detector.joint if is_joint else detector.count)
        outcomes = [outcome(detector, case, number, seed) for number in range(count)]
        for number in sorted({count, min(count, FEW)}):
            quiet = sum(each.quiet is not None for each in outcomes[:number])
            for shift in case.shifts:
                shares = row([each.shifted[shift] for each in outcomes[:number]])
                first = (detector.name, f"{number:,}", shift, wilson(quiet, number))
                print("|", " | ".join((*first, *shares)), "|", flush=True)
        taken.append(f"{detector.name} {time.perf_counter() - began:.0f} s")
    print(f"\ntook: {', '.join(taken)}")


def check_replay(count: int = 5) -> None:
    """Alarms of a replay are those of each night judged as the last."""
    wrong = 0
    for number in range(count):
        seconds = series(CASES[number % len(CASES)], number, math.log(1.1))
        whole = judged(seconds)
        for night in range(1, NIGHTS + 1):
            expected = [alarm.id for alarm in whole if alarm.raised <= night]
            wrong += [alarm.id for alarm in judged(seconds[:night])] != expected
    print(f"harness: {count * NIGHTS} nights judged as the last one: {wrong} unlike the replay")


def long_history(otava_look: Look | None, nights: int = 1000, columns: int = 40) -> None:
    """Years with two shifts: seconds to judge each night, and of Otava for the last one."""
    logarithms = NOISE * np.random.default_rng(SEED).standard_normal((nights, columns))
    logarithms[nights // 2 :] += math.log(1.05)
    logarithms[nights * 7 // 10 :, 0] += math.log(1.1)
    seconds = 100 * np.exp(logarithms)
    taken = []
    for _ in range(3):
        clock, core = time.perf_counter(), time.process_time()
        alarms = judged(seconds)
        taken.append((time.process_time() - core, time.perf_counter() - clock))
    cores, clocks = zip(*taken, strict=True)
    print(f"\n{nights:,} nights of {columns} series, each night judged: {min(cores):.2f} to"
          f" {max(cores):.2f} s of the core, three times, by the clock {min(clocks):.2f} to"
          f" {max(clocks):.2f} s, {len(alarms)} alarms")  # fmt: skip
    if otava_look:
        clocks = []
        for _ in range(3):
            clock = time.perf_counter()
            otava_look(seconds)
            clocks.append(time.perf_counter() - clock)
        print(f"one look of otava at the last night, by the clock: {min(clocks):.2f} to"
              f" {max(clocks):.2f} s")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="alarms of nights beside Otava, PELT and asv")
    parser.add_argument("--series", type=int)
    parser.add_argument("--only", default="harness,otava,pelt,asv")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    only = options.only.split(",")
    with otava() if "otava" in only and OTAVA_PYTHON.exists() else nullcontext() as otava_look:
        chosen = list(detectors(only, otava_look))
        if "harness" in only:
            check_replay()
        for case in CASES:
            compare(case, chosen, options.series, options.seed)
        long_history(otava_look)


if __name__ == "__main__":
    main()
