"""
Tests for `harness.clusters.workloads.wordcount` and the tally that proves its output.
"""

import json
import re

from collections import Counter

import pytest

from hypothesis import example, given
from hypothesis import strategies as st

from harness.base.errors import SpecError
from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads import WORKLOADS
from harness.clusters.workloads.base import JobCommand

MIB = 2**20
workload = WORKLOADS["wordcount"]


def spec(size=9 * MIB, seed=1, **parameters):
    """
    A WordCount of *size* bytes.
    """
    return WorkloadSpec(name="wordcount", input_bytes=size, seed=seed, parameters=parameters)


def tally(*files):
    """
    What is kept of files given as bytes, or as lists of chunks.
    """
    chunked = (f if isinstance(f, list) else [f] for f in files)
    return workload.sample(spec(), ((f"f{i}", c) for i, c in enumerate(chunked)))


def verdict(sample, *outputs):
    """
    What is said of output files with these bytes.
    """
    files = ((f"part-r-{i:05d}", [data]) for i, data in enumerate(outputs))
    return workload.verdict(spec(), files, sample)


class TestPlanInput:
    """Files and their key."""

    def test_refuses_parameters(self):
        """
        A parameter that nothing would read is an error, not an axis of the grid.
        """
        with pytest.raises(SpecError, match="has no parameter 'vocabulary'"):
            workload.plan_input(spec(vocabulary=7), MIB)


@pytest.mark.parametrize(("kind", "content"), [("zipf", "ZipfText"), ("random", "RandomText")])
def test_generates_the_text_asked_for(kind, content):
    """
    Its kind is a parameter; another kind is another content.
    """
    job = workload.generate(spec(text=kind), MIB, "hdfs:///in")

    assert job.arguments == (
        f"mapreduce.harness.jobs.text.{content}",
        "288",
        "9",
        "1",
        "hdfs:///in",
    )
    is_default = (
        workload.plan_input(spec(text=kind), MIB).key == workload.plan_input(spec(), MIB).key
    )
    assert is_default == (kind == "zipf")


def test_submits_one_job():
    """
    The program, the configuration, then input and output, as the examples' driver wants them.
    """
    (job,) = workload.submit(spec(), "hdfs://m:1/in", "hdfs://m:1/out")

    assert job.main_class == "org.apache.hadoop.examples.ExampleDriver"
    assert job.argv({"mapreduce.job.reduces": "2"}) == (
        "wordcount", "-Dmapreduce.job.reduces=2", "hdfs://m:1/in", "hdfs://m:1/out",
    )  # fmt: skip


def test_a_command_keeps_its_own_properties():
    """
    What a workload needs wins over the trial's configuration.
    """
    command = JobCommand("Main", ("x",), properties={"a": "own"})

    assert command.argv({"a": "trial", "b": "2"}) == ("-Da=own", "-Db=2", "x")


class TestSample:
    """The independent count."""

    @given(st.lists(st.binary(max_size=40), max_size=8))
    @example([b"a\r", b"\nb"])
    @example([b"a\0", b"a"])
    @example([b"longer than eight bytes"])
    @example([b"a\x0bb"])
    def test_equals_the_obvious_count(self, chunks):
        """
        Wherever the chunks are cut, words and lines are those of the whole.
        """
        whole = b"".join(chunks)
        words = [w.decode("utf-8", "replace") for w in re.split(rb"[ \t\n\r\f]+", whole) if w]
        lines = re.split(rb"\r\n|\r|\n", whole)

        assert tally(chunks) == {
            "counts": dict(Counter(words)),
            "words": len(words),
            "records": len(lines) - (not lines[-1]),
        }

    def test_words_end_with_their_file(self):
        """
        The last word of a file and the first of the next are two words, on two lines.
        """
        sample = tally(b"one two", b"three\n")

        assert sample["counts"] == {"one": 1, "two": 1, "three": 1}
        assert sample["records"] == 2

    @pytest.mark.process
    def test_counts_much_text(self):
        """
        Over more than one block the count is the obvious one, and survives JSON.
        """
        text = b"".join(b"%x of %x\n" % (n % 999, n % 7) for n in range(10**6))
        sample = tally(text)

        assert json.loads(json.dumps(sample)) == sample
        assert sample["counts"] == dict(Counter(text.decode().split()))
        assert sample["records"] == 10**6


class TestVerdict:
    """The proof of the output."""

    sample = tally(b"b a b\nc\n")

    def test_accepts_the_right_counts(self):
        """
        Every word once, in any file.
        """
        answer = verdict(self.sample, b"a\t1\nc\t1\n", b"", b"b\t2\n")

        assert answer == ""

    @pytest.mark.parametrize(
        ("output", "reason"),
        [
            (b"a\t1\nb\t3\nc\t1\n", "'b' is counted 3 times and occurs 2 times; 1 of 3 words"),
            (b"a\t1\nc\t1\n", "'b' is counted 0 times and occurs 2 times; 1 of 3 words"),
            (b"a\t1\nb\t2\nc\t1\nd\t1\n", "'d' is counted 1 times and occurs 0 times"),
            (b"a\t2\nb\t1\nc\t1\n", "'a' is counted 2 times and occurs 1 times; 2 of 3 words"),
            (b"a\t1\nb\t1\nb\t1\nc\t1\n", "part-r-00000:3: 'b' is counted twice"),
            (b"a\t1\nb\t2\nc\n", "part-r-00000:3: 'c' is not a word, a tab and its count"),
            (b"a\t1\nb\t2\nc\t-1\n", "'c\\t-1' is not a word"),
            ("a\t1\nb\t2\nc\t\u0661\n".encode(), "is not a word, a tab and its count"),
            (b"a\t1\nb\t2\nc\t1\n\n", "part-r-00000:4: '' is not a word"),
            (b"\x1b[2J\n", "'\\x1b[2J' is not a word"),
            (b"", "'a' is counted 0 times and occurs 1 times; 3 of 3 words differ"),
        ],
    )
    def test_refuses_and_says_why(self, output, reason):
        """
        A changed, lost, foreign, repeated or mangled count fails, with the first word of it.
        """
        answer = verdict(self.sample, output)

        assert answer
        assert reason in answer

    def test_refuses_a_word_in_two_files(self):
        """
        A word belongs to one reduce.
        """
        answer = verdict(self.sample, b"a\t1\nb\t1\n", b"b\t1\nc\t1\n")

        assert answer == "part-r-00001:1: 'b' is counted twice"

    @given(st.binary(max_size=60))
    def test_any_output_gets_a_verdict(self, data):
        """
        Whatever the files hold, the answer is right or says what is wrong.
        """
        answer = verdict(self.sample, data)

        assert answer.isascii()
