"""
Tests for `harness.core.evaluate.contract`: what `harness check` says of a workload.
"""

import itertools

from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads.base import InputPlan, JobCommand
from harness.clusters.workloads.wordcount import WordCount
from harness.core.evaluate.contract import workload_complaints

COUNT = itertools.count()


class Careless(WordCount):
    """
    A workload that gets everything wrong which can be.
    """

    def plan_input(self, spec, block_bytes):
        return InputPlan("a b", (0, spec.input_bytes // 2), JobCommand("M", ()))

    def submit(self, spec, input_uri, output_uri):
        return (JobCommand("M", (str(next(COUNT)),)),)

    def complaint(self, spec, outputs, sample):
        return "" if sum(len(c) for _, chunks in outputs for c in chunks) < 5 else "long"


def test_what_is_wrong_with_a_workload():
    """
    A check that passes on nothing above all.
    """
    complaints = [
        *workload_complaints(
            Careless(),
            WorkloadSpec(name="careless", input_bytes=150_000),
            {"f": b"a b\n"},
            b"a\t1\nb\t1\n",
        )
    ]

    assert complaints == [
        "plan_input and submit give something else each time",
        "plan_input does not plan 150000 bytes in files of 1 to 1048576",
        "the key 'a b' is that of another input, too, or not of letters, digits, -",
        "submit does not hand on the input and the output that it is given",
        "complaint refuses the right output: long",
        "complaint passes no output",
        "complaint passes an empty output",
        "complaint passes half of the output",
    ]
