"""
Tests for `harness.clusters.workloads.terasort`.
"""

import json
import re
import subprocess

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import JobError, SpecError
from harness.base.records.trial import WorkloadSpec
from harness.clusters.hadoop_home.home import SOURCE
from harness.clusters.workloads import WORKLOADS
from tests.workloads.generators import printed

MIB = 2**20
ROWS = "org.apache.hadoop.examples.terasort.TeraRows"
GEN_SORT = "org.apache.hadoop.examples.terasort.GenSort"
workload = WORKLOADS["terasort"]
# Few different bytes, so that keys share long beginnings and are sometimes equal.
rows = st.lists(
    st.tuples(st.binary(min_size=0, max_size=3), st.binary(max_size=5)).map(
        lambda kv: kv[0].ljust(10, b"\xf0") + kv[1].ljust(90, b".")
    ),
    max_size=12,
)


def spec(size=10_000_300, seed=1, **parameters):
    """
    A TeraSort of *size* bytes.
    """
    return WorkloadSpec(name="terasort", input_bytes=size, seed=seed, parameters=parameters)


def random_rows(count=25_000):
    """
    Rows in no order, more than are looked at together.
    """
    data = np.random.default_rng(3).bytes(100 * count)
    return [data[start : start + 100] for start in range(0, len(data), 100)]


def sampled(*files, chunk=64_000):
    """
    What is kept of files given as lists of rows.
    """
    return workload.sample(spec(), named(files, chunk))


def verdict(sample, *files, chunk=64_000):
    """
    What is said of output files with these rows.
    """
    return workload.verdict(spec(), named(files, chunk), sample)


def named(files, chunk):
    """
    Files with names, in chunks that cut rows.
    """
    for number, parts in enumerate(files):
        data = b"".join(parts)
        yield f"part-r-{number:05d}", [data[i : i + chunk] for i in range(0, len(data), chunk)]


class TestPlanInput:
    """Files and rows."""

    @pytest.mark.parametrize(
        ("size", "block", "files"),
        [
            (100, 4 * MIB, [100]),
            (4_194_300, 4 * MIB, [4_194_300]),
            (4_194_400, 4 * MIB, [2_097_200, 2_097_200]),
            (10_000_300, 1_428_700, [1_428_700] + 6 * [1_428_600]),
        ],
    )
    def test_is_what_hadoop_makes(self, size, block, files):
        """
        The sizes that TeraGen of Hadoop 3.5.0 left on a real cluster with this many maps.
        """
        assert [f.bytes for f in workload.plan_input(spec(size), block).files] == files

    @given(st.integers(5000, 2**42), st.integers(MIB, 2**28))
    def test_fits_blocks_and_comes_near(self, size, block):
        """
        As many files as the size has blocks, whole rows, short of it by less than a row a block.
        """
        size = min(size, 1000 * block)
        sizes = [f.bytes for f in workload.plan_input(spec(size), block).files]

        assert -50 <= size - sum(sizes) < 100 * len(sizes)
        assert len(sizes) == -(-size // block)
        assert max(sizes) <= block
        assert {size % 100 for size in sizes} == {0}

    def test_seed_does_not_matter(self):
        """
        TeraGen's rows depend on their number alone: one content, one key.
        """
        keys = {workload.plan_input(spec(seed=seed), MIB).key for seed in (1, 2)}

        assert len(keys) == 1
        assert workload.plan_input(spec(), 2 * MIB).key not in keys

    @pytest.mark.parametrize(
        ("requested", "block", "complaint"),
        [
            (spec(149), MIB, "149 bytes is not within 1 % of 1 or more whole records of 100"),
            (spec(), 99, "a block of 99 bytes does not hold a record"),
            (spec(skew=2), MIB, "has no parameter 'skew'"),
        ],
    )
    def test_refuses_what_it_cannot_make(self, requested, block, complaint):
        """
        Sizes off by more than 1 %, blocks below a row and unknown parameters are errors.
        """
        with pytest.raises(SpecError, match=complaint):
            workload.plan_input(requested, block)


def test_generates_by_a_job():
    """
    TeraGen gets the rows of the plan and as many maps as the plan has files, whatever the trial's
    configuration says.
    """
    job = workload.generate(spec(1_000_030_000), 142_870_000, "hdfs://m:1/in")

    assert job.argv({"mapreduce.job.maps": "2"}) == (
        "teragen", "-Dmapreduce.job.maps=7", "10000300", "hdfs://m:1/in",
    )  # fmt: skip


def test_a_small_input_is_written_without_teragen():
    """
    By our generator, which spreads the rows evenly; inputs of other programs have other keys.
    """
    plan = workload.plan_input(spec(10_000_500), 1_428_700)
    job = workload.generate(spec(10_000_500), 1_428_700, "hdfs://m:1/in")

    assert job.main_class == "mapreduce.harness.jobs.generate.Generate"
    assert job.arguments == (ROWS, "100005", "7", "0", "hdfs://m:1/in")
    assert [file.bytes for file in plan.files] == [1_428_700] * 3 + [1_428_600] * 4
    assert plan.key.startswith("terarows-")


@pytest.mark.process
@pytest.mark.parametrize(("first", "count"), [(0, 300), (4_000_000_007, 20)])
def test_its_rows_are_those_of_hadoop(tmp_path, first, count):
    """
    Byte for byte what Hadoop's own generator of rows writes.
    """
    target = tmp_path / "rows"
    command = ["java", "-cp", str(SOURCE / "home" / "path.jar"), GEN_SORT]
    subprocess.run([*command, f"-b{first}", str(count), str(target)], check=True, timeout=60)
    assert printed(ROWS, first=first, count=count) == target.read_bytes()


def test_submits_one_job():
    """
    The program, the configuration, then input and output.
    """
    (job,) = workload.submit(spec(), "in", "out")

    assert job.argv({"a": "1"}) == ("terasort", "-Da=1", "in", "out")


class TestSample:
    """What is kept of the input."""

    @given(rows, st.randoms(use_true_random=False), st.integers(1, 300))
    def test_ignores_order_files_and_chunks(self, given_rows, random, chunk):
        """
        However the rows are ordered, spread over files and cut into chunks, the sample is one.
        """
        shuffled = random.sample(given_rows, len(given_rows))
        middle = len(given_rows) // 2

        assert sampled(shuffled[:middle], shuffled[middle:], chunk=chunk) == sampled(given_rows)

    def test_never_changes(self):
        """
        Samples are kept beside cached inputs: the checksum of a fixed row stays what it is.
        """
        row = bytes(range(100))

        assert sampled([row]) == {"records": 1, "checksum": "71829a1525155e41"}
        assert json.loads(json.dumps(sampled([row]))) == sampled([row])

    def test_sees_every_byte(self):
        """
        A change of any one byte of a row changes the checksum.
        """
        row = bytearray(random_rows(1)[0])
        seen = {sampled([row])["checksum"]}
        for position in range(100):
            row[position] ^= 1
            seen.add(sampled([row])["checksum"])
            row[position] ^= 1

        assert len(seen) == 101

    def test_refuses_half_a_row(self):
        """
        A file that TeraGen did not write is an error that names it.
        """
        with pytest.raises(JobError, match="part-r-00001 has 130 bytes, not a whole number"):
            sampled([b"." * 100], [b"." * 130])


class TestVerdict:
    """The proof of the output."""

    @given(rows, st.integers(1, 300), st.integers(0, 12))
    def test_accepts_sorted_rows(self, given_rows, chunk, cut):
        """
        Rows in the order of their keys are right, wherever they are cut into files.
        """
        ordered = sorted(given_rows)
        answer = verdict(sampled(given_rows), ordered[:cut], ordered[cut:], chunk=chunk)

        assert answer == ""

    @given(rows, st.integers(1, 300), st.integers(0, 12))
    def test_accepts_no_other_order(self, given_rows, chunk, cut):
        """
        The obvious comparison of neighbours agrees.
        """
        keys = [row[:10] for row in given_rows]
        answer = verdict(sampled(given_rows), given_rows[:cut], given_rows[cut:], chunk=chunk)

        assert (answer == "") == (keys == sorted(keys))

    def test_says_where_the_order_breaks(self):
        """
        The row is counted from the start of its file, beyond what is looked at together.
        """
        ordered = sorted(random_rows())
        sample = sampled(ordered)
        ordered[20_000], ordered[20_001] = ordered[20_001], ordered[20_000]
        answer = verdict(sample, ordered[:5], ordered[5:])

        assert answer == (
            f"part-r-00001: key {ordered[20_001][:10].hex()} of row 19996 is smaller"
            f" than key {ordered[20_000][:10].hex()} before it"
        )

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (lambda r: r[:7] + r[8:], "records: 24999 in the output, 25000 in the input"),
            (lambda r: r[:7] + r[6:], "records: 25001 in the output, 25000 in the input"),
            (lambda r: r[:7] + r[6:7] + r[8:], "checksum: .* in the output"),
            (lambda r: [*r[:7], r[7][:50] + b"!" + r[7][51:], *r[8:]], "checksum: "),
            (lambda r: [*r[:7], r[7][:9] + r[8][9:], r[8][:9] + r[7][9:], *r[9:]], "checksum"),
            (lambda r: r[12_500:] + r[:12_500], "part-r-00000: key 0.* of row 12500 is smaller"),
            (lambda r: [*r, b"?"], "part-r-00000 has 2500001 bytes, not a whole number"),
            (lambda r: [], "records: 0 in the output, 25000 in the input"),
        ],
        ids=["lost", "twice", "replaced", "byte", "values", "halves", "cut", "empty"],
    )
    def test_refuses_and_says_why(self, change, reason):
        """
        Lost, repeated, replaced, changed and exchanged rows fail.
        """
        ordered = sorted(random_rows())
        answer = verdict(sampled(ordered), change(ordered))

        assert answer
        assert re.search(reason, answer)
