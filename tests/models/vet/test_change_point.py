"""
Tests for `harness.models.vet.change_point`: the split of exact arithmetic, and of the obvious form.
"""

from fractions import Fraction

import numpy as np
import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.models.vet.change_point import change_point, change_point_obvious, line_error

# Few values, many ties; a coarse clock; heavy tails; the last digits of a tenth.
coarse = st.integers(0, 5).map(lambda n: n * 32e-9)
heavy = st.floats(0, 0.999).map(lambda u: 0.001 * (1 - u) ** -0.8)
close = st.integers(0, 3).map(lambda n: 0.1 + n * 2.0**-56)
wide = st.floats(1e-12, 1e12)
lists = st.one_of(
    *(st.lists(each, min_size=6, max_size=24) for each in (coarse, heavy, close, wide))
)


def exact(y, omega):
    """
    The change point by rational numbers.
    """
    y = [Fraction(value) for value in y]
    if y[0] == y[-1]:
        return omega
    errors = {k: exact_error(y[:k]) + exact_error(y[k:]) for k in range(omega, len(y) - omega + 1)}
    mean = sum(y) / len(y)
    limit = min(errors.values()) + Fraction(1e-12) * sum((v - mean) ** 2 for v in y)
    return min(k for k, error in errors.items() if error <= limit)


def exact_error(y):
    """
    Squared error of the line through *y*.
    """
    m, mean = len(y), sum(y) / len(y)
    x = [Fraction(2 * i - m - 1, 2) for i in range(1, m + 1)]
    sxy = sum(i * (v - mean) for i, v in zip(x, y, strict=True))
    sxx = sum(i * i for i in x)
    return sum((v - mean) ** 2 for v in y) - (sxy**2 / sxx if sxx else 0)


def units(kind, n, seed=3):
    """
    Ordered unit times of a kind.
    """
    random = np.random.default_rng(seed)
    made = {
        "heavy": lambda: 1 + random.pareto(1.3, n),
        "normal": lambda: random.lognormal(-9, 0.2, n),
        "line": lambda: 0.1 * np.arange(n),
        "step": lambda: np.where(np.arange(n) < n // 3, 1.0, 5.0) + 1e-3 * random.random(n),
    }
    return np.sort(made[kind]())


class TestChangePoint:
    @settings(max_examples=60)
    @given(lists, st.integers(2, 12))
    def test_is_that_of_exact_arithmetic(self, values, omega):
        """
        Rounding decides nothing: not with ties, a coarse clock, or times equal but for a digit.
        """
        y, omega = sorted(values), min(omega, len(values) // 2)

        assert change_point(np.array(y), omega) == exact(y, omega)

    @pytest.mark.parametrize("kind", ["heavy", "normal", "line", "step"])
    @pytest.mark.parametrize("n", [256, 257])
    def test_is_that_of_the_obvious_form(self, kind, n):
        """
        Also over the edges of rows, of which most are never looked at.
        """
        y = units(kind, n)

        for omega in (3, n // 2):
            assert change_point(y, omega) == change_point_obvious(y.tolist(), omega)

    @pytest.mark.parametrize("kind", ["heavy", "normal", "step"])
    def test_finds_the_best_of_many_rows(self, kind):
        """
        No split of three thousand units has a smaller error than the one found.
        """
        y = units(kind, 3_000)
        found = change_point(y, 3)
        error = line_error(y[:found]) + line_error(y[found:])

        others = [
            *range(3, len(y) - 3, 97),
            *range(max(3, found - 50), min(len(y) - 3, found + 50)),
        ]
        assert error <= min(line_error(y[:k]) + line_error(y[k:]) for k in others) * (1 + 1e-9)

    @pytest.mark.parametrize("kind", ["heavy", "normal", "line", "step"])
    def test_may_be_decided_by_the_first_rows(self, kind, monkeypatch):
        """
        Looking at one row of units before all others finds what looking at all at once does.
        """
        y = units(kind, 3_000)
        found = [change_point(y, omega) for omega in (3, 300, 1500)]

        monkeypatch.setattr("harness.models.vet.change_point._AT_ONCE", 1)

        assert [change_point(y, omega) for omega in (3, 300, 1500)] == found

    def test_of_a_long_line_is_the_first(self):
        """
        A hundred thousand splits tie, and the smallest is taken.
        """
        assert change_point(units("line", 100_000), 3) == 3

    @given(lists, st.floats(1e-9, 1e9))
    def test_units_cancel(self, values, factor):
        """
        Time in other units has the same change point: here powers of two, which round nothing.
        """
        y, power = np.sort(values), 2.0 ** np.round(np.log2(factor))

        assert change_point(y * power, 3) == change_point(y, 3)


@given(lists)
def test_error_of_a_line(values):
    """
    The squared error agrees with rational numbers to the digits of its values.
    """
    y = sorted(values)
    scale = float(sum((v - y[0]) ** 2 for v in y))

    assert line_error(np.array(y)) == pytest.approx(
        float(exact_error([Fraction(v) for v in y])), rel=1e-9, abs=1e-13 * scale
    )
