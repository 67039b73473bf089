"""
Tests for `harness.scoring.repeats`: which cells are measured once more.
"""

import pytest

from harness.base.records.prediction import Prediction
from harness.base.records.question import Question
from harness.base.records.score import Measurement
from harness.scoring import score
from harness.scoring.repeats import next_repeats

QUIET, NOISY, WILD = (99.0, 101.0), (94.0, 106.0), (75.0, 125.0)


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


def differing(times, points, **options):
    """
    Scores and trials of b, 10 points too short, and of a, so many points farther off the other way.
    """
    predictions = [
        Prediction(model=model, cell=cell, job_s=100 + sign * (10 + more))
        for model, sign, row in (("a", 1, points), ("b", -1, [0] * len(points)))
        for cell, more in zip(times, row, strict=True)
    ]
    return score(predictions, trials(times), **options), trials(times)


class TestNextRepeats:
    def test_go_to_the_noisy_cell(self):
        """
        As many trials as there are cells, most of them where they narrow the difference.
        """
        times = {f"c{i}": QUIET for i in range(8)} | {"c1": WILD}
        cells, reason = next_repeats(*differing(times, (-3, 5, -3, 5, -3, 5, -3, -3)))

        assert (len(cells), cells[0]) == (8, "c1")
        assert cells.count("c1") > 1
        assert reason.startswith("a or b is undecided: ")

    def test_none_once_the_verdict_is_reached(self):
        """
        One is nearer, or both are equal.
        """
        quiet = {f"c{i}": QUIET for i in range(6)}

        assert wanted(quiet, a=1.1, b=0.6) == ([], "the verdict is reached")
        assert wanted(quiet, a=1.1, b=1.1) == ([], "the verdict is reached")

    def test_who_is_farther_off_does_not_matter(self):
        """
        Two that are far off may stay undecided.
        """
        quiet = {f"c{i}": QUIET for i in range(8)}

        score_book = score(
            [
                Prediction(model=model, cell=f"c{i}", job_s=100 * shares[i % 2])
                for model, shares in (("a", (1.05, 1.05)), ("b", (1.60, 1.9)), ("c", (1.9, 1.61)))
                for i in range(8)
            ],
            trials(quiet),
        )
        verdicts = {(pair.better, pair.worse): pair.verdict for pair in score_book.comparisons}
        assert verdicts["b", "c"] == "undecided"
        assert next_repeats(score_book, trials(quiet)) == ([], "the verdict is reached")

    def test_none_where_cells_differ_by_more_than_repeats(self):
        """
        The same gaps: of cells that vary more themselves repeats may tell, of quiet ones not.
        """
        points = (-9, 22, -9, 20, -8, 24, -9, 19)
        quiet = {f"c{i}": QUIET for i in range(8)}

        cells, reason = next_repeats(*differing(quiet, points))
        assert cells == []
        assert reason.startswith("no repeat of these cells tells enough: ")
        assert "more cells would show" in reason
        assert next_repeats(*differing(dict.fromkeys(quiet, WILD), points))[0]

    def test_none_where_the_other_model_is_nearer(self):
        """
        What was asked has its answer: no.
        """
        quiet = {f"c{i}": QUIET for i in range(8)}
        asks = Question(nearer=("a", "b"))
        score_book, measured = differing(quiet, (30, 25, 20, 35, 30, 25, 20, 35), question=asks)

        assert [pair.verdict for pair in score_book.asked()] == ["undecided"]
        assert score_book.answer.outcome == "no"
        assert next_repeats(score_book, measured) == ([], "the verdict is reached")

    def test_the_pair_closest_to_a_verdict_is_taken(self):
        """
        Not the one that would take longest.
        """
        times = {f"c{i}": WILD for i in range(8)}
        predictions = [
            Prediction(model=model, cell=cell, job_s=100 + miss)
            for model, misses in (
                ("a", (10, 11, 9, 10, 12, 8, 10, 11)),
                ("b", (2, 1, 3, 18, 2, 40, 16, 2)),
                ("c", (19, 5, 17, 12, 15, 13, 14, 6)),
            )
            for cell, miss in zip(times, misses, strict=True)
        ]
        score_book = score(predictions, trials(times))
        chances = {(pair.better, pair.worse): pair.chance for pair in score_book.comparisons}

        _, reason = next_repeats(score_book, trials(times))
        assert 0.05 < chances["a", "c"] < chances["a", "b"]
        assert reason.startswith("a or c is undecided: ")

    def test_one_model_needs_none(self):
        """
        There is nothing to decide.
        """
        assert wanted({"c0": QUIET}, a=1.1) == ([], "there are no two models to compare")

    def test_without_a_job_time_there_are_no_models(self):
        """
        Nothing is ranked.
        """
        assert next_repeats(score([], []), []) == ([], "there are no two models to compare")

    def test_cells_without_a_spread_are_not_preferred(self):
        """
        Of two cells that differ by nothing but their repeats the one that varies comes first.
        """
        times = {"c0": (100.0, 100.0), "c1": (100.0,), "c2": (80.0, 120.0)}
        times |= {f"c{i}": (100.0, 100.0) for i in range(3, 6)}

        predictions = [
            Prediction(model=model, cell=cell, job_s=100 * share)
            for model, shares in (("a", (1.1,) * 6), ("b", (0.8, 0.95, 0.8, 0.95, 0.8, 0.95)))
            for cell, share in zip(times, shares, strict=True)
        ]

        cells, reason = next_repeats(score(predictions, trials(times)), trials(times))
        assert cells[0] == "c2"
        assert reason.startswith("a or b is undecided: ")


@pytest.mark.parametrize(("error", "verdict"), [(0.05, "nearer"), (0.01, "undecided")])
def test_looks_have_levels_of_their_own(error, verdict):
    """
    What is proved at 5 % may be open at 1 %.
    """
    times = {f"c{i}": QUIET if i % 2 else (97.0, 101.0) for i in range(6)}
    predictions = [
        Prediction(model=model, cell=cell, job_s=seconds)
        for model, seconds in (("a", 105.0), ("b", 88.0))
        for cell in times
    ]

    (pair,) = score(predictions, trials(times), error=error).comparisons

    assert (pair.verdict, pair.chance) == (verdict, 2 / 64)
