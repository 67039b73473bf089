"""Foreign text in messages, and names that were nearly right."""

from __future__ import annotations

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.text import did_you_mean, excerpt, nearest_name, printable, read_json


@given(st.text())
def test_printable_text_cannot_steer_a_terminal(text):
    """Only line feeds and tabs are left of what a terminal obeys; printable text is unchanged."""
    for char in printable(text).replace("\n", "").replace("\t", ""):
        assert char.isprintable() or char.isspace()
        assert char not in "\x1b\r\x85\u2028\u2029"
    assert printable(printable(text)) == printable(text)
    if text.isprintable():
        assert printable(text) == text


@given(st.text() | st.binary(), st.integers(min_value=4, max_value=80))
def test_an_excerpt_is_one_short_line(text, most):
    """An excerpt never has more characters than allowed, and no line end."""
    line = excerpt(text, most)

    assert len(line) <= most
    assert "\n" not in line


def test_an_excerpt_shows_that_it_was_cut():
    """A text that does not fit ends in dots, wherever its characters went."""
    assert excerpt("a" * 100) == "a" * 100
    assert excerpt("a" * 101) == "a" * 97 + "..."
    assert excerpt(b"a" * 10**6, 5) == "aa..."
    assert excerpt("a" + " " * 500 + "b", 20) == "a..."
    assert excerpt("\ud800x\U000e0001") == "\\ud800x\\U000e0001"


def test_the_nearest_name_has_the_case_of_the_known_one():
    """The case of neither side matters, and far names have no neighbour."""
    assert nearest_name("LOCAL", ["docker", "local"]) == "local"
    assert nearest_name("mapp", ["Map", "Reduce"]) == "Map"
    assert nearest_name("zebra", ["docker", "local"]) is None
    assert nearest_name("locl", ["local"], cutoff=0.95) is None
    assert did_you_mean("zebra", ["docker", "local"]) == "choose one of: docker, local"


@pytest.mark.parametrize("depth", [33, 400, 900, 100_000])
def test_deep_json_is_refused_before_it_is_walked_down(depth):
    """However deep a text is, the answer is a value of bounded depth or `ValueError`."""
    assert read_json("[" * 33 + "]" * 33)
    with pytest.raises(ValueError, match="nested too deeply"):
        read_json("[" * (depth + 1) + "]" * (depth + 1))
