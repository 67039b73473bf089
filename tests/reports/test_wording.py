"""
Tests for `harness.base.documents.wording`.
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.documents.wording import (
    UNKNOWN,
    by_number,
    count,
    decimals,
    listing,
    moment,
    number,
    one_line,
    percent,
    seconds,
    typographic,
)


class TestOneLine:
    @given(st.text(), st.integers(2, 60))
    def test_is_short(self, text, most):
        """
        A text for a plot keeps to its line and its length.
        """
        line = one_line(text, most)

        assert "\n" not in line
        assert len(line) <= most


class TestNumbers:
    @given(st.floats(1e-6, 1e6), st.floats(1e-4, 1e4))
    def test_rounding_stays_inside_the_noise(self, value, noise):
        """
        What rounding takes away is less than the noise, as far as decimals are kept at all.
        """
        shown = float(number(value, noise))

        assert abs(shown - value) <= max(noise, 0.5 * 10 ** -decimals(noise)) * (1 + 1e-9)

    @pytest.mark.parametrize(
        ("noise", "text"),
        [(12.0, "38"), (3.0, "38"), (1.2, "38.1"), (0.3, "38.1"), (0.02, "38.12"), (None, "38.1")],
    )
    def test_noise_decides_the_digits(self, noise, text):
        """
        A number ends where the first digit of its noise stands, one later if that digit is 1.
        """
        assert number(38.1234, noise) == text

    @pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
    def test_what_is_not_known_is_a_dash(self, value):
        """
        No value, and no number, reads as a dash in each unit.
        """
        assert {number(value), percent(value), seconds(value)} == {UNKNOWN}

    def test_zero_has_no_sign(self):
        """
        An error that rounds to nothing is neither short nor long.
        """
        assert (percent(-0.001, 0.05, signed=True), number(-0.01, 1.0)) == ("0 %", "0.0")

    def test_only_small_percentages_have_a_decimal(self):
        """
        Below 10 %, and with a noise below 1 %.
        """
        shown = [percent(v, n) for v, n in [(0.056, 0.004), (0.056, 0.02), (0.56, 0.004)]]

        assert shown == ["5.6 %", "6 %", "56 %"]


def test_sentences():
    """
    Lists and counts read as English.
    """
    assert (listing(["a"]), listing(["a", "b", "c"]), count(1, "cell"), count(0, "cell")) == (
        "a",
        "a, b and c",
        "1 cell",
        "0 cells",
    )


def test_units_stay_beside_their_numbers():
    """
    Minus signs are real ones, model names keep their hyphens, and no line breaks before a unit.
    """
    assert typographic("whatif-mr2: -8 % in 3 s") == ("whatif-mr2: \u22128\u00a0% in 3\u00a0s")


@pytest.mark.parametrize(("amount", "verb"), [(0, "lie"), (1, "lies"), (2, "lie")])
def test_a_verb_follows_the_number(amount, verb):
    """
    One cell lies somewhere; none and several lie there.
    """
    assert by_number(amount, "lies", "lie") == verb


def test_moment_out_of_range_is_shown_as_it_is():
    """
    A time that no calendar holds does not stop the report.
    """
    assert moment(1e300) == "1e+300"
