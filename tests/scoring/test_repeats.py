"""
Tests for `harness.core.scoring.repeats`: which cells are measured once more.
"""

import pytest

from harness.base.records.prediction import Prediction
from harness.base.records.score import Measurement
from harness.core.scoring import score
from harness.core.scoring.repeats import next_repeats

QUIET, NOISY = (99.0, 101.0), (94.0, 106.0)


def trials(times):
    """
    Trials of cells with these job times.
    """
    return [
        Measurement(
            cell=cell, workload="w", trial=f"{cell}-{number}", raw_s={"job_s": time},
            reference_s={},
        )
        for cell, several in times.items()
        for number, time in enumerate(several)
    ]  # fmt: skip


def wanted(times, **models):
    """
    The next repeats, of models that predict these shares of 100 s in each cell.
    """
    predictions = [
        Prediction(model=model, cell=cell, job_s=100 * share)
        for model, share in models.items()
        for cell in times
    ]
    return next_repeats(score(predictions, trials(times)), trials(times))


class TestNextRepeats:
    def test_go_to_the_noisy_cell(self):
        """
        As many trials as there are cells, most of them where they narrow the difference.
        """
        cells, reason = wanted({"c0": QUIET, "c1": NOISY, "c2": QUIET}, a=1.1, b=0.85)

        assert (len(cells), cells[0]) == (3, "c1")
        assert reason.startswith("a or b is undecided: ")

    def test_none_once_the_verdict_is_reached(self):
        """
        One is nearer, or both are equal.
        """
        quiet = {f"c{i}": QUIET for i in range(4)}

        assert wanted(quiet, a=1.1, b=0.6) == ([], "the verdict is reached")
        assert wanted(quiet, a=1.1, b=1.1) == ([], "the verdict is reached")

    def test_who_is_farther_off_does_not_matter(self):
        """
        Two that are far off may stay undecided.
        """
        quiet = {f"c{i}": QUIET for i in range(4)}

        assert wanted(quiet, a=1.05, b=1.60, c=0.41) == ([], "the verdict is reached")

    def test_the_pair_closest_to_a_verdict_is_taken(self):
        """
        Not the one that would take longest.
        """
        _, reason = wanted({f"c{i}": NOISY for i in range(4)}, a=1.1, b=0.89, c=0.86)

        assert reason.startswith("a or c is undecided: ")

    def test_one_model_needs_none(self):
        """
        There is nothing to decide.
        """
        assert wanted({"c0": QUIET}, a=1.1) == ([], "there are no two models to compare")

    def test_repeats_that_never_differ_ask_for_more(self):
        """
        Their noise is not known yet.
        """
        cells, reason = wanted({"c0": (100.0, 100.0)}, a=1.1, b=0.7)

        assert cells == ["c0"]
        assert "noise is not known" in reason


@pytest.mark.parametrize("error", [0.05, 0.001])
def test_looks_have_levels_of_their_own(error):
    """
    What is proved at 5 % may be open at 0.1 %.
    """
    times = {f"c{i}": QUIET if i % 2 else (97.0, 101.0) for i in range(4)}
    predictions = [
        Prediction(model=model, cell=cell, job_s=seconds)
        for model, seconds in (("a", 105.0), ("b", 88.0))
        for cell in times
    ]

    (pair,) = score(predictions, trials(times), error=error).comparisons

    assert pair.verdict == ("nearer" if pair.chance <= error else "undecided")
    assert 0.001 < pair.chance < 0.05
