"""
Tests for `harness.models.vet.change_point`: the split of exact arithmetic, and of the obvious form.
"""

from fractions import Fraction

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.models.vet import change_point as module
from harness.models.vet.change_point import line_error
from tests.models.vet.obvious import obvious_change_point

# Few values, many equal; a coarse clock; heavy tails; the last digits of a tenth.
coarse = st.integers(0, 5).map(lambda n: n * 32e-9)
heavy = st.floats(0, 0.999).map(lambda u: 0.001 * (1 - u) ** -0.8)
close = st.integers(0, 3).map(lambda n: 0.1 + n * 2.0**-56)
wide = st.floats(1e-12, 1e12)
lists = st.one_of(
    *(st.lists(each, min_size=6, max_size=24) for each in (coarse, heavy, close, wide))
)


def change_point(ordered, omega):
    """
    The change point of units in order.
    """
    return module.change_point(module.split_errors(ordered), omega)


def exact(ordered, omega):
    """
    The change point by rational numbers.
    """
    ordered = [Fraction(value) for value in ordered]
    if ordered[0] == ordered[-1]:
        return omega
    errors = {
        k: exact_error(ordered[:k]) + exact_error(ordered[k:])
        for k in range(omega, len(ordered) - omega + 1)
    }
    mean = sum(ordered) / len(ordered)
    limit = min(errors.values()) + Fraction(1e-12) * sum((v - mean) ** 2 for v in ordered)
    return min(k for k, error in errors.items() if error <= limit)


def exact_error(ordered):
    """
    Squared error of the line through *y*.
    """
    count, mean = len(ordered), sum(ordered) / len(ordered)
    x = [Fraction(2 * i - count - 1, 2) for i in range(1, count + 1)]
    sxy = sum(i * (v - mean) for i, v in zip(x, ordered, strict=True))
    sxx = sum(i * i for i in x)
    return sum((v - mean) ** 2 for v in ordered) - (sxy**2 / sxx if sxx else 0)


def units(kind, count, seed=3):
    """
    Ordered unit times of a kind.
    """
    random = np.random.default_rng(seed)
    made = {
        "heavy": lambda: 1 + random.pareto(1.3, count),
        "normal": lambda: random.lognormal(-9, 0.2, count),
        "line": lambda: 0.1 * np.arange(count),
        "step": lambda: (
            np.where(np.arange(count) < count // 3, 1.0, 5.0) + 1e-3 * random.random(count)
        ),
    }
    return np.sort(made[kind]())


class TestChangePoint:
    @given(lists, st.integers(2, 12))
    def test_is_that_of_exact_arithmetic(self, values, omega):
        """
        Rounding decides nothing: not of equal units, a coarse clock, or times nearly equal.
        """
        ordered, omega = sorted(values), min(omega, len(values) // 2)

        assert change_point(np.array(ordered), omega) == exact(ordered, omega)

    @pytest.mark.parametrize("kind", ["heavy", "normal", "line", "step"])
    @pytest.mark.parametrize("count", [256, 257])
    def test_is_that_of_the_obvious_form(self, kind, count):
        """
        Also with an odd number of units.
        """
        ordered = units(kind, count)

        for omega in (3, count // 2):
            assert change_point(ordered, omega) == obvious_change_point(ordered.tolist(), omega)

    @pytest.mark.parametrize("kind", ["heavy", "normal", "step"])
    def test_finds_the_best_of_several_chunks(self, kind):
        """
        No split of nine thousand units, three chunks, has a smaller error than this one.
        """
        ordered = units(kind, 9_000)
        split = change_point(ordered, 3)
        error = line_error(ordered[:split]) + line_error(ordered[split:])

        others = [
            *range(3, len(ordered) - 3, 97),
            *range(max(3, split - 50), min(len(ordered) - 3, split + 50)),
        ]
        assert error <= min(line_error(ordered[:k]) + line_error(ordered[k:]) for k in others) * (
            1 + 1e-9
        )

    def test_of_a_long_line_is_the_first(self):
        """
        A hundred thousand splits are equally good, and the smallest is chosen.
        """
        assert change_point(units("line", 100_000), 3) == 3

    @given(lists, st.floats(1e-9, 1e9))
    def test_units_cancel(self, values, factor):
        """
        Time in other units has the same change point: here powers of two, which round nothing.
        """
        ordered, power = np.sort(values), 2.0 ** np.round(np.log2(factor))

        assert change_point(ordered * power, 3) == change_point(ordered, 3)


@given(lists)
def test_error_of_a_line(values):
    """
    The squared error agrees with rational numbers to the digits of its values.
    """
    ordered = sorted(values)
    scale = float(sum((v - ordered[0]) ** 2 for v in ordered))

    assert line_error(np.array(ordered)) == pytest.approx(
        float(exact_error([Fraction(v) for v in ordered])), rel=1e-9, abs=1e-13 * scale
    )
