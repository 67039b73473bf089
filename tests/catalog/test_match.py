"""
The matcher: the same program first, then classes, then the closest dataflow; each with its reasons.
"""

import math

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import DataError
from harness.catalog.catalog import Catalog
from harness.catalog.match import gaps, similar
from harness.past.fill import fill
from tests.catalog.made import put, words

OTHER = "org.example.Other"


@pytest.fixture
def catalog(tmp_path):
    """
    Word counts and others; the first is the one that others are like.
    """
    done = tmp_path / "done"
    put(done, 1, conf=words(), name="word count 3")
    put(done, 2, conf=words(), name="word count 7", times=4.0)  # the same program
    put(done, 3, conf=words(), name="counting")  # the same classes
    put(done, 4, conf=words(reducer=OTHER), name="counting")  # the same mapper
    put(done, 5, conf=words(mapper=OTHER, combiner=""), name="counting")  # the same reducer
    put(done, 6, conf=words(OTHER, "", OTHER), name="counting", times=1.5)  # nothing
    put(done, 7, conf=words(OTHER, "", OTHER), name="counting", times=1.1)
    put(done, 8, conf=words(), name="word count 8", recorded="failed")  # it failed
    put(done, 9, name="counting")  # classes that nobody knows
    fill(Catalog(tmp_path / "catalog"), [done], 1, lambda _: None)
    return Catalog(tmp_path / "catalog")


def job_id(number):
    """
    Id of a job of the catalog.
    """
    return f"job_1795224441974_{number:04d}"


def test_order(catalog):
    """
    By level, and by distance where that is the same; a job is not like itself, nor one that failed.
    """
    matches = similar(catalog, job_id(1), 10)

    assert [(match.job_id[-1], match.level) for match in matches] == [
        ("2", "same program"), ("3", "same classes"), ("4", "same mapper"), ("5", "same reducer"),
        ("7", "other program"), ("9", "other program"), ("6", "other program"),
    ]  # fmt: skip


def test_as_many_as_are_wanted(catalog):
    """
    The best ones.
    """
    assert [match.job_id for match in similar(catalog, job_id(1), 2)] == [job_id(2), job_id(3)]


def test_the_distance_is_explained(catalog):
    """
    It is the sum of what each field adds, and a field that is equal adds nothing.
    """
    best, second = similar(catalog, job_id(1), 2)
    adds = {each.field: each.adds for each in best.differences}

    assert best.distance == pytest.approx(sum(adds.values()))
    assert adds["map_bytes_selectivity"] == pytest.approx(math.log(4))
    assert adds["map_records_selectivity"] == 0
    assert second.distance == 0


def test_a_job_that_is_not_there(catalog):
    """
    One clear error.
    """
    with pytest.raises(DataError, match="the catalog has no job 'job_9_0009'"):
        similar(catalog, "job_9_0009", 1)


amounts = st.none() | st.just(0.0) | st.floats(1e-6, 1e12)


@given(amounts, amounts)
def test_gaps_are_a_distance(one, other):
    """
    The same in both directions, nothing between equal values, and bounded.
    """

    def gap(value, against):
        return float(gaps(value, np.array([math.nan if against is None else against]))[0])

    assert gap(one, other) == pytest.approx(gap(other, one))
    assert gap(one, one) == 0
    assert 0 <= gap(one, other) <= math.log(10)
