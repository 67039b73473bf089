"""
Tests for what all workloads have in common.
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import SpecError
from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads import WORKLOADS
from harness.clusters.workloads.base import even_sizes, shown
from harness.clusters.workloads.files import regroup
from harness.core.run.preflight import argument_refusal


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_is_registered_under_its_name(name):
    """
    The name in an experiment file is the name in a report; each says what it is.
    """
    assert WORKLOADS[name].name == name
    assert WORKLOADS[name].description


@given(st.integers(0, 10**12), st.integers(1, 500))
def test_even_sizes(total, parts):
    """
    The parts add up and differ by one at most.
    """
    sizes = even_sizes(total, parts)

    assert (len(sizes), sum(sizes)) == (parts, total)
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(st.binary(max_size=30)), st.integers(1, 20))
def test_regroup_keeps_the_bytes(chunks, size):
    """
    All pieces but the last have the size asked for, and none is empty.
    """
    pieces = list(regroup(chunks, size))

    assert b"".join(pieces) == b"".join(chunks)
    assert all(len(piece) == size for piece in pieces[:-1])
    assert all(pieces)


@given(st.text() | st.binary())
def test_shown_is_harmless(value):
    """
    Whatever comes out of a file, a message shows printable ASCII and not much of it.
    """
    text = shown(value)

    assert text.isascii()
    assert text.isprintable()
    assert len(text) <= 62 * 10


HIBENCH = {"hibench": "true"}


@pytest.mark.parametrize("name", [n for n, one in WORKLOADS.items() if one.unlike_hibench])
def test_what_is_not_hibench_s_says_so(name):
    """
    Asked for HiBench's input and jobs, a workload with others refuses, and says what differs.
    """
    workload = WORKLOADS[name]
    with pytest.raises(SpecError) as refused:
        workload.arguments(WorkloadSpec(name=name, input_bytes=1, parameters=HIBENCH))

    assert refused.value.what == f"{name} cannot run as in HiBench: {workload.unlike_hibench}"
    assert argument_refusal(name, "hibench", "true") is not None
    assert argument_refusal(name, "hibench", "false") is None


def test_hibench_s_own_may_be_asked_for():
    """
    TeraSort is HiBench's anyway, others take HiBench's parameters; nothing else is a value.
    """
    assert [n for n in WORKLOADS if argument_refusal(n, "hibench", "true") is None] == [
        "wordcount", "terasort", "sort", "pagerank", "kmeans",
    ]  # fmt: skip
    spec = WorkloadSpec(name="wordcount", input_bytes=1, parameters=HIBENCH)
    assert WORKLOADS["wordcount"].arguments(spec) == {"text": "random", **HIBENCH}
    other = spec.model_copy(update={"parameters": {"text": "zipf", **HIBENCH}})
    with pytest.raises(SpecError, match="text of wordcount is 'zipf': that of HiBench is random"):
        WORKLOADS["wordcount"].arguments(other)
    assert argument_refusal("terasort", "hibench", 7)[0] == (
        "hibench of terasort is '7': it must be one of false, true"
    )
