"""
Tests for `harness.clusters.workloads.sort`.
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import SpecError
from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads import WORKLOADS

workload = WORKLOADS["sort"]
LINES = [b"b\t1\n", b"a b\t2\n", b"a\t3\n", b"c\t4\n"]


def spec(**parameters):
    """
    A sort.
    """
    return WorkloadSpec(name="sort", input_bytes=10**6, parameters=parameters)


def verdict(*outputs, lines=LINES, **parameters):
    """
    What is said of output files with these bytes.
    """
    sample = workload.sample(spec(), [("part-m-00000", lines)])
    files = ((f"part-r-{i:05d}", [data]) for i, data in enumerate(outputs))
    return workload.verdict(spec(**parameters), files, sample)


class TestVerdict:
    def test_files_in_order_each_for_itself(self):
        """
        As in HiBench each partition is in order; from one file to the next anything goes.
        """
        outputs = (b"b\t1\nc\t4\n", b"a\t3\na b\t2\n")

        assert verdict(*outputs) == ""
        assert verdict(*outputs[::-1]) == ""

    @pytest.mark.parametrize(
        ("output", "reason"),
        [
            (b"a b\t2\na\t3\nb\t1\nc\t4\n", "part-r-00000:2: key 'a' is smaller than 'a b'"),
            (b"a\t3\na b\t2\nb\t1\n", "records: 3 in the output, 4 in the input"),
            (b"a\t3\na b\t1\nb\t2\nc\t4\n", "checksum: "),
            (b"a\t3\na b\t2\nb\t1\nc\t4", "checksum: "),
            (b"", "records: 0 in the output, 4 in the input"),
        ],
    )
    def test_refuses_and_says_why(self, output, reason):
        """
        A descent, a lost record, values exchanged, a record that lost its end, nothing.
        """
        assert reason in verdict(output)

    @given(st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"") + b"\n")), st.data())
    def test_any_sorted_lines_are_right(self, lines, data):
        """
        Whatever they hold, wherever the chunks are cut, and in whatever order equal keys come.
        """
        shuffled = data.draw(st.permutations(lines))
        ordered = sorted(shuffled, key=lambda line: line.removesuffix(b"\n").split(b"\t")[0])

        assert verdict(b"".join(ordered), lines=lines) == ""


def test_keys_end_at_the_first_tab():
    """
    A key without a tab behind it is the whole line, and its end is no part of it.
    """
    assert verdict(b"a\na\tz\nb\n", lines=[b"a\tz\na\nb\n"]) == ""


def test_form_reaches_the_job():
    """
    As a property; an order is none of its parameters: that of all files together is TeraSort's.
    """
    (job,) = workload.submit(spec(), "/in", "/out")

    assert job.argv({}) == ("-Dsort.form=lines", "/in", "/out")
    with pytest.raises(SpecError, match="has no parameter 'order'"):
        workload.plan_input(spec(order="total"), 2**20)
