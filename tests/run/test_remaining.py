"""
The time left of a run: what was expected, at the pace of what was measured, without leaps.
"""

import csv

from itertools import pairwise
from pathlib import Path

import pytest

from harness.core.run.estimate import (
    BYTES_PER_S,
    CLUSTER_START_S,
    GENERATION_S,
    PRIOR_TRIALS,
    TRIAL_S,
    Remaining,
)

# Trials of the published run of experiments/quick.yaml on two cores, which no other run preceded.
RECORDED = Path(__file__).parent / "data" / "quick-trials.csv"


def recorded():
    """
    Expected seconds of each trial by the rule, and those that it took with all that came before.
    """
    expected_s = {}
    measured_s = {}
    ended_s = 0.0
    inputs = set()
    for number, row in enumerate(csv.DictReader(RECORDED.read_text().splitlines())):
        size_s = int(row["input_bytes"]) / BYTES_PER_S
        trial_s = TRIAL_S + size_s
        before_s = 0.0 if inputs else CLUSTER_START_S + trial_s  # with its warm-up
        if (row["workload"], row["input_bytes"]) not in inputs:
            before_s += GENERATION_S + size_s
        inputs.add((row["workload"], row["input_bytes"]))
        expected_s[str(number)] = before_s + trial_s
        measured_s[str(number)] = float(row["finished_s"]) - ended_s
        ended_s = float(row["finished_s"])
    return expected_s, measured_s


def ends_s(expected_s, measured_s):
    """
    When the run was said to end: before its first trial, and after each.
    """
    remaining = Remaining(expected_s)
    waiting = dict.fromkeys(measured_s)
    said_s = [remaining.left_s(waiting)]
    for trial, seconds in measured_s.items():
        remaining.measured_s[trial] = seconds
        del waiting[trial]
        said_s.append(sum(remaining.measured_s.values()) + remaining.left_s(waiting))
    return said_s


def test_of_a_recorded_run_its_end_moves_little():
    """
    Within a factor of 1.5 from the start, and no trial moves the end by more than an eighth.
    """
    expected_s, measured_s = recorded()
    said_s = ends_s(expected_s, measured_s)
    real_s = sum(measured_s.values())

    assert len(measured_s) == 32
    assert all(real_s / 1.5 < end_s < 1.5 * real_s for end_s in said_s)
    assert max(abs(later - end_s) for end_s, later in pairwise(said_s)) < real_s / 6
    assert max(abs(later / end_s - 1) for end_s, later in pairwise(said_s)) < 1 / 8
    assert said_s[-1] == pytest.approx(real_s)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_on_another_machine_the_end_is_approached(factor):
    """
    Where the rule is wrong by a factor of two, the end goes one way, the faster the sooner.
    """
    expected_s = {str(number): 10.0 for number in range(16)}
    said_s = ends_s(expected_s, dict.fromkeys(expected_s, 10.0 * factor))
    steps_s = [later - end_s for end_s, later in pairwise(said_s)]

    assert said_s[0] == 160.0
    assert said_s[-1] == pytest.approx(160 * factor)
    assert all((step_s > 0) == (factor > 1) for step_s in steps_s)
    assert all(abs(later) < abs(step_s) for step_s, later in pairwise(steps_s))
    assert abs(said_s[8] - 160 * factor) < 0.2 * 160 * factor


def test_one_trial_alone_turns_nothing_over():
    """
    However long it took: it counts as one of five.
    """
    expected_s = {str(number): 10.0 for number in range(16)}
    one = Remaining(expected_s, measured_s={"0": 60.0})

    pace = (PRIOR_TRIALS * 10 + 60) / (PRIOR_TRIALS * 10 + 10)
    assert one.left_s([*expected_s][1:]) == pytest.approx(pace * 150)


def test_the_longest_weigh_most_and_the_end_comes_behind():
    """
    What is left of each is what was expected of it.
    """
    expected_s = {"a": 10.0, "b": 40.0, "c": 60.0}
    left_s = [Remaining(expected_s, 8.0).left_s(waiting) for waiting in ("abc", "bc", "c", "")]

    assert left_s == [118.0, 108.0, 68.0, 0.0]


def test_without_an_expectation_the_done_ones_say_it():
    """
    None of them done, nothing does; one that was added later is a mean one.
    """
    assert Remaining().left_s("ab") is None
    assert Remaining(measured_s={"a": 4.0, "b": 8.0}).left_s("cd") == pytest.approx(12.0)
    assert Remaining({"a": 10.0, "b": 20.0}).left_s("x") == 15.0
    assert Remaining({"a": 0.0}).left_s("a") is None
