"""
Workloads in HiBench's form, with the jobs as they are: in Hadoop's local runner, without a cluster.
"""

import json
import re

from collections import Counter

import pytest

from scipy import stats

from harness.base.records.trial import WorkloadSpec
from harness.clusters.hadoop_home.home import job_jar
from harness.clusters.workloads import workload_for
from harness.clusters.workloads.base import JOBS
from harness.clusters.workloads.files import read_sequence
from tests.workloads.generators import printed
from tests.workloads.local_runner import LocalRunner

pytestmark = pytest.mark.process
BLOCK = 64 * 1024
SEQUENCE = "mapreduce.harness.jobs.text.SequenceText"


def pairs(file):
    """
    Keys and values of a sequence file.
    """
    return [line[:-1].split(b"\t") for line in read_sequence(file)[1]]


def forty_pages():
    """
    A file of so many.
    """
    size = 40 * (32 * 1024 - 78)
    return "one", [printed(SEQUENCE, count=40, properties={"pages.bytes": size})]


@pytest.mark.parametrize("name", ["wordcount", "sort", "pagerank", "kmeans"])
def test_the_jobs_output_is_right(name, tmp_path):
    """
    Generated, submitted and judged as in a trial; the files have the sizes planned, each job reads
    the records that are due, and the output of one input is wrong for another.
    """
    runner = LocalRunner(tmp_path, job_jar(JOBS))
    spec = WorkloadSpec(name=name, input_bytes=150_000, parameters={"hibench": "true"})
    workload = workload_for(spec)
    plan = workload.plan_input(spec, BLOCK)
    assert runner.run(workload.generate(spec, BLOCK, str(tmp_path / "in"))) == 0, runner.output
    files = runner.files("in")

    sizes = [len(data[0]) for _, data in files]
    assert sizes == pytest.approx([f.bytes for f in plan.files], rel=0.001)
    assert name == "pagerank" or sum(sizes) == plan.bytes
    sample = json.loads(json.dumps(workload.sample(spec, files)))
    for command in workload.submit(spec, str(tmp_path / "in"), str(tmp_path / "out")):
        assert runner.run(command) == 0, runner.output
        counters = runner.output.split("INFO Job: Counters:")[1:]
        records = [re.search(r"Map input records=(\d+)", job)[1] for job in counters]
        assert set(records) == {str(sample["records"])}
        assert len(records) == {"pagerank": 6, "kmeans": len(sample.get("steps", ()))}.get(name, 1)
    outputs = runner.files(workload.outputs(spec, "out"))
    assert workload.verdict(spec, outputs, sample) == ""
    fewer = workload.sample(spec, files[:1])
    assert workload.verdict(spec, outputs, fewer)


class TestSequenceText:
    """Sequence files by the law of RandomTextWriter."""

    def test_words_are_even(self):
        """
        Each of the 1,000 words is as frequent as the others, in keys and values together.
        """
        counts = Counter(
            word for pair in pairs(forty_pages()) for text in pair for word in text.split()
        )

        assert len(counts) == 1000
        assert stats.chisquare(list(counts.values())).pvalue > 0.001

    def test_records_have_a_key_and_a_value(self):
        """
        Of 5 to 9 and 10 to 99 words, each number as frequent as the others; but for the value of a
        page's last record.
        """
        keys = Counter(len(key.split()) for key, _ in pairs(forty_pages()))
        values = Counter(len(value.split()) for _, value in pairs(forty_pages()))

        assert set(keys) == {5, 6, 7, 8, 9}
        assert stats.chisquare(list(keys.values())).pvalue > 0.001
        whole = [values[count] for count in range(10, 100)]
        assert stats.chisquare(whole).pvalue > 0.001
        assert values.total() - sum(whole) <= 40

    @pytest.mark.parametrize("size", [30, 158, 287, 5000])
    def test_any_size_is_met(self, size):
        """
        However short the page is, its records fill it.
        """
        data = printed(SEQUENCE, properties={"pages.bytes": size})

        assert len(data) == 78 + size
        assert pairs(("one", [data]))
