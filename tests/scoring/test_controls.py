"""
Tests for `harness.scoring.controls`: what the test says of perfection, and of a coin.
"""

import math

from statistics import fmean

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.records.score import Score
from harness.base.stats.flips import DRAWS, normal_draws
from harness.scoring.controls import (
    cell_floors,
    coin_errors,
    controls,
    floor_of,
    perfect_errors,
)
from tests.stats.plain_flips import family
from tests.strategies import SEEDS


def row(shares, floors=0.03, *, model="m", inputs=None, quantity="job_s"):
    """
    Scores of a model that predicts these shares of 100 s; one floor for all cells, or one each.
    """
    known = floors if isinstance(floors, list) else [floors] * len(shares)
    return [
        Score(
            model=model, cell=f"c{place:02}", level="job", quantity=quantity, speed="raw",
            predicted_s=100 * share, measured_s=100.0, trials=2, floor=floor,
            signed_error=share - 1, relative_error=abs(share - 1),
            input=inputs[place] if inputs else "",
        )
        for place, (share, floor) in enumerate(zip(shares, known, strict=True))
    ]  # fmt: skip


def of_name(name, rows, scope="jobs"):
    """
    The control of that name beside these models; `None` where there is none.
    """
    return next((made for made in controls(rows, scope) if made.name == name), None)


class TestFloors:
    def test_of_a_cell_without_one_is_the_largest(self):
        """
        Not none.
        """
        assert cell_floors(row([1.0] * 3, [0.01, None, 0.04])) == [0.01, 0.04, 0.04]

    def test_a_floor_of_0_stays(self):
        """
        Beside one that is above it.
        """
        assert cell_floors(row([1.0] * 2, [0.0, 0.04])) == [0.0, 0.04]

    @pytest.mark.parametrize("floors", [[None, None], [0.0, 0.0], [None, 0.0], []])
    def test_are_not_known_where_nothing_varies(self, floors):
        """
        Then nothing says how far perfection errs, and no number comes of it.
        """
        cells = row([1.0] * len(floors), floors)

        assert cell_floors(cells) is None
        assert perfect_errors(cells) is None


class TestPerfect:
    def test_errs_by_the_floor_of_each_cell(self):
        """
        As normal draws do: 0.798 of it on average.
        """
        errors = perfect_errors(row([1.5] * 12, [0.01, 0.05] * 6))

        assert errors.shape == (DRAWS, 12)
        assert errors[:, ::2].mean() == pytest.approx(0.798 * 0.01, rel=0.05)
        assert errors[:, 1::2].mean() == pytest.approx(0.798 * 0.05, rel=0.05)
        assert (errors >= 0).all()
        assert errors[3, 1] == pytest.approx(abs(normal_draws("perfect", 12)[3, 1]) * 0.05)

    def test_the_floor_is_the_mean_error_and_what_95_of_100_draws_do_not_exceed(self):
        """
        Of all draws and cells; of 200 means the 190th.
        """
        errors = np.arange(200.0)[::-1, None] + np.asarray([[-1.0, 1.0]])

        assert floor_of(errors) == (99.5, 189)

    @given(st.lists(st.floats(0.001, 0.2), min_size=6, max_size=30))
    def test_the_floor_is_that_share_of_the_mean_floor(self, floors):
        """
        Whatever the cells: within the error of 200 draws.
        """
        floor, high = floor_of(perfect_errors(row([1.0] * len(floors), floors)))
        spread = 0.603 * math.sqrt(fmean(value**2 for value in floors) / len(floors))

        assert abs(floor - 0.798 * fmean(floors)) <= 4 * spread / math.sqrt(DRAWS)
        assert floor < high <= floor + 4 * spread

    def test_is_nearer_than_a_model_that_is_20_points_off(self):
        """
        On 12 cells with a floor of 3 %: in 95 of 100 draws at least; and hardly ever than one that
        is as good.
        """
        generator = np.random.default_rng(1)
        far = 1.2 + 0.08 * generator.standard_normal(12)
        good = 1 + 0.002 * generator.standard_normal(12)
        perfect = of_name("perfect", {"good": row(good), "far": row(far)})

        assert perfect.nearer["far"] >= 0.95
        assert perfect.nearer["good"] <= 0.02
        assert (perfect.quantity, perfect.cells, perfect.draws) == ("job_s", 12, 200)
        assert perfect.error == pytest.approx(0.798 * 0.03, rel=0.05)
        assert perfect.error < perfect.high < 0.03 * 1.3
        assert perfect.made_of == ""

    def test_on_eight_cells_ten_points_above_the_floor_are_seen(self):
        """
        Off by 10 points and what varies between cells.
        """
        shares = [1.12, 0.87, 1.15, 1.10, 0.90, 1.13, 1.09, 0.88]

        assert of_name("perfect", {"m": row(shares, 0.02)}).nearer["m"] >= 0.95

    def test_shares_are_those_of_the_plain_test(self):
        """
        Each draw asked alone whether perfection is nearer, by a plain program.
        """
        shares = [1.02, 1.05, 0.99, 1.06, 1.01, 0.95]
        errors = np.abs(normal_draws("perfect", 6)) * 0.03
        gaps = errors - np.abs(np.asarray(shares) - 1)
        cells = [score.cell for score in row(shares)]
        chances = [family([pair.tolist()], cells, "first", 0.05)[0][3] for pair in gaps[:200]]

        expected = fmean(chance <= 0.05 for chance in chances)
        assert 0 < expected < 1
        assert of_name("perfect", {"m": row(shares)}).nearer == {"m": expected}

    def test_there_is_none_without_a_noise(self):
        """
        The coin is tossed all the same.
        """
        made = controls({"m": row([1.2] * 6, None)}, "jobs")

        assert [control.name for control in made] == ["coin"]

    def test_of_few_units_nothing_is_tested(self):
        """
        Five cells, or six cells of five inputs where these are asked about; the floor is said.
        """
        five = of_name("perfect", {"m": row([1.2] * 5)})
        inputs = of_name("perfect", {"m": row([1.2] * 6, inputs="aabcde")}, "inputs")

        assert (five.nearer, inputs.nearer) == ({}, {})
        assert five.error > 0
        assert of_name("perfect", {"m": row([1.2] * 6, inputs="aabcde")}).nearer == {"m": 1.0}
        assert of_name("perfect", {"m": row([1.2] * 6)}).nearer == {"m": 1.0}

    def test_cells_of_an_input_are_one_unit_where_inputs_are_asked_about(self):
        """
        12 cells of six inputs decide less than 12 do.
        """
        shares = [1.03, 1.03, 0.99, 0.99, 1.05, 1.05, 1.01, 1.01, 1.04, 1.04, 0.98, 0.98]
        model = {"m": row(shares, inputs=[name for name in "abcdef" for _ in range(2)])}

        of_jobs, of_inputs = (of_name("perfect", model, scope) for scope in ("jobs", "inputs"))
        assert 0 < of_inputs.nearer["m"] < of_jobs.nearer["m"]


class TestCoin:
    def test_errs_to_either_side_by_the_same_factor(self):
        """
        A model that is 25 % too long is so, or 20 % too short; each with a draw of its own.
        """
        errors = coin_errors(row([1.25, 0.8, 1.0]), "coin")
        signs = normal_draws("coin", 3)

        assert errors.shape == (DRAWS, 3)
        assert errors[:, 0] == pytest.approx(np.where(signs[:, 0] > 0, 0.25, 0.2))
        assert errors[:, 1] == pytest.approx(np.where(signs[:, 1] > 0, 0.25, 0.2))
        assert errors[:, 2] == pytest.approx(0)
        assert 0.4 < (signs[:, 0] > 0).mean() < 0.6

    def test_a_prediction_of_nothing_is_a_number_all_the_same(self):
        """
        It is off by 100 % or by more than anybody can say.
        """
        errors = coin_errors(row([0.0] * 6), "coin")

        assert np.isfinite(errors).all()
        assert sorted({*np.round(errors.ravel() / errors.max(), 12)}) == [0, 1]

    def test_is_made_of_the_nearest_model(self):
        """
        The first of the rows, and asked against another toss of it.
        """
        rows = {"a": row([1.1] * 8), "b": row([1.6] * 8)}
        coin = of_name("coin", rows)

        assert (coin.made_of, [*coin.nearer]) == ("a", ["coin"])
        assert (coin.quantity, coin.cells, coin.draws) == ("job_s", 8, 200)
        assert coin.error == pytest.approx((0.1 + 1 - 1 / 1.1) / 2, abs=0.001)
        assert coin.error <= coin.high <= 0.1

    @given(SEEDS, st.sampled_from([6, 8, 12, 24]), st.floats(0.05, 0.6))
    def test_is_seldom_nearer_than_itself(self, seed, cells, spread):
        """
        In 5 of 100 draws; 200 of them say so within 5 points.
        """
        shares = np.exp(spread * np.random.default_rng(seed).standard_normal(cells))

        assert of_name("coin", {"m": row(shares)}).nearer["coin"] <= 0.10

    def test_share_is_that_of_the_plain_test(self):
        """
        Toss by toss, by a plain program.
        """
        shares = [1.3, 1.5, 0.7, 1.2, 1.4, 0.8, 1.25, 0.9]
        gaps = coin_errors(row(shares), "coin") - coin_errors(row(shares), "other coin")
        cells = [score.cell for score in row(shares)]
        chances = [family([pair.tolist()], cells, "first", 0.05)[0][3] for pair in gaps]

        coin = of_name("coin", {"m": row(shares)})
        assert coin.nearer == {"coin": fmean(chance <= 0.05 for chance in chances)}
        assert coin.nearer["coin"] > 0
        assert (coin.error, coin.high) == floor_of(coin_errors(row(shares), "coin"))

    def test_of_few_units_nothing_is_tested(self):
        """
        Its error is said.
        """
        coin = of_name("coin", {"m": row([1.2] * 5)})

        assert coin.nearer == {}
        assert coin.error > 0
        of_one_input = {"m": row([1.2, 1.3, 1.4] * 2, inputs="xxxxxx")}
        assert of_name("coin", of_one_input, "inputs").nearer == {}
        assert [*of_name("coin", of_one_input, "jobs").nearer] == ["coin"]

    def test_one_cell_has_controls_too(self):
        """
        Which test nothing.
        """
        made = controls({"m": row([1.2])}, "jobs")

        assert [(control.name, control.cells, control.quantity) for control in made] == [
            ("perfect", 1, "job_s"), ("coin", 1, "job_s"),
        ]  # fmt: skip


class TestControls:
    @pytest.mark.parametrize("rows", [{}, {"m": []}])
    def test_there_are_none_without_a_cell(self, rows):
        """
        Nothing was scored.
        """
        assert controls(rows, "jobs") == []

    def test_perfection_stands_before_the_coin(self):
        """
        And beside each model, the nearest first.
        """
        rows = {"a": row([1.1] * 6), "b": row([1.6] * 6)}
        made = controls(rows, "jobs")

        assert [control.name for control in made] == ["perfect", "coin"]
        assert [*made[0].nearer] == ["a", "b"]

    def test_the_same_scores_have_the_same_controls(self):
        """
        Nothing is drawn by chance.
        """
        rows = {"a": row([1.1, 1.2, 0.9, 1.0, 1.3, 0.8])}

        assert controls(rows, "jobs") == controls(rows, "jobs")
