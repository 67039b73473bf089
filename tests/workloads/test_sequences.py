"""
Sequence files: read as their parts say, by another way than they are written.
"""

import struct

from collections import Counter
from contextlib import suppress

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import JobError
from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads import WORKLOADS
from harness.clusters.workloads.files import read_sequence

MARK = bytes(range(16))
SYNC = b"\xff\xff\xff\xff" + MARK
PAIRS = [(b"b ", b"y x "), (b"a ", b"x "), (b"c ", b"y y ")]


def text(value):
    """
    A text as Hadoop writes it.
    """
    size = len(value)
    if size < 128:
        return bytes([size]) + value
    digits = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes([144 - len(digits)]) + digits + value


def number(value):
    """
    A whole number as Hadoop writes it.
    """
    return struct.pack(">i", value)


def sequence(pairs, write=text):
    """
    A sequence file of these pairs, with a mark before every second.
    """
    names = ("org.apache.hadoop.io.Text", f"org.apache.hadoop.io.{write.__name__.title()}")
    names = tuple(n.replace("io.Number", "io.IntWritable").encode() for n in names)
    data = b"SEQ\6" + b"".join(map(text, names)) + bytes(6) + MARK
    for place, (key, value) in enumerate(pairs):
        parts = text(key), write(value)
        data += (SYNC if place % 2 else b"") + struct.pack(
            ">ii", len(b"".join(parts)), len(parts[0])
        )
        data += b"".join(parts)
    return data


def read(*chunks):
    """
    Lines of one file.
    """
    return list(read_sequence(("part", chunks))[1])


def judged(name, *outputs, pairs=PAIRS):
    """
    What is said of these files as output of a job over *pairs*.
    """
    spec = WorkloadSpec(name=name, input_bytes=10**6, parameters={"hibench": "true"})
    sample = WORKLOADS[name].sample(spec, [("part-m-00000", [sequence(pairs)])])
    files = ((f"part-r-{i:05d}", [data]) for i, data in enumerate(outputs))
    return WORKLOADS[name].verdict(spec, files, sample)


@given(st.lists(st.tuples(st.binary(max_size=300), st.binary(max_size=300))), st.integers(1, 500))
def test_lines_are_the_pairs(pairs, piece):
    """
    Of whatever length, and wherever the chunks are cut.
    """
    data = sequence(pairs)
    chunks = (data[i : i + piece] for i in range(0, len(data), piece))

    assert read(*chunks) == [key + b"\t" + value + b"\n" for key, value in pairs]


@given(st.integers(-(2**31), 2**31 - 1))
def test_numbers_are_decimals(value):
    """
    With their sign.
    """
    assert read(sequence([(b"a", value)], number)) == [b"a\t%d\n" % value]


@given(st.binary(max_size=50), st.integers(0, 200), st.integers(0, 50))
def test_damage_is_an_error_or_other_lines(noise, place, cut):
    """
    Whatever the bytes are: never another kind of error.
    """
    data = sequence(PAIRS)
    damaged = data[:place] + noise + data[place + cut :]
    with suppress(JobError):
        read(damaged)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is not a plain sequence file of texts"),
        (b"text\t1\n" * 20, "it is not a plain sequence file of texts"),
        (sequence(PAIRS).replace(b"Text", b"Size"), "it is not a plain sequence file of texts"),
        (sequence(PAIRS)[:-1], "it is damaged, or ends within a record"),
        (sequence(PAIRS) + SYNC[:-1] + b"\0", "it is damaged, or ends within a record"),
        (sequence(PAIRS).replace(b"\3b ", b"\4b ").replace(b"\2b ", b"\3b "), "behind its length"),
    ],
)
def test_says_what_is_wrong(data, reason):
    """
    Nothing, lines, another class, a file cut short, a mark of another file, a length that is not.
    """
    with pytest.raises(JobError, match=reason):
        read(data)


class TestWordCount:
    counts = sorted(Counter(b"y x x y y".split()).items())

    def test_counts_values_alone(self):
        """
        Words of keys are not counted.
        """
        assert judged("wordcount", sequence(self.counts, number), sequence([], number)) == ""
        keys_too = [(b"a", 1), *self.counts]
        assert "'a' is counted 1 times and occurs 0" in judged(
            "wordcount", sequence(keys_too, number)
        )

    @pytest.mark.parametrize("place", [0, 40, 90, -1])
    def test_one_bit_is_enough(self, place):
        """
        Of the header, of a length, of a count.
        """
        data = bytearray(sequence(self.counts, number))
        data[place] ^= 1

        assert judged("wordcount", bytes(data))

    def test_job_reads_and_writes_sequence_files(self):
        """
        Hadoop's own program, by the properties that HiBench sets.
        """
        spec = WorkloadSpec(name="wordcount", input_bytes=10**6, parameters={"hibench": "true"})
        (job,) = WORKLOADS["wordcount"].submit(spec, "/in", "/out")

        library = "org.apache.hadoop.mapreduce.lib"
        assert job.argv({}) == (
            "wordcount",
            f"-Dmapreduce.job.inputformat.class={library}.input.SequenceFileInputFormat",
            f"-Dmapreduce.job.outputformat.class={library}.output.SequenceFileOutputFormat",
            "/in", "/out",
        )  # fmt: skip


class TestSort:
    def test_keys_ascend_in_each_file(self):
        """
        With the values that they came with, and all records.
        """
        b, a, c = PAIRS

        assert judged("sort", sequence([b, c]), sequence([a])) == ""
        assert "is smaller than" in judged("sort", sequence([b, a, c]))
        assert "records: 2 in the output, 3" in judged("sort", sequence([a, b]))
        exchanged = [(a[0], b[1]), (b[0], a[1]), c]
        assert "checksum" in judged("sort", sequence(exchanged))
        assert "not a plain sequence file" in judged("sort", b"a \tx \nb \ty x \nc \ty y \n")

    def test_the_form_reaches_the_job(self):
        """
        As a property.
        """
        parameters = {"hibench": "true"}
        spec = WorkloadSpec(name="sort", input_bytes=10**6, parameters=parameters)
        (job,) = WORKLOADS["sort"].submit(spec, "/in", "/out")

        assert job.argv({}) == ("-Dsort.form=sequence", "/in", "/out")
