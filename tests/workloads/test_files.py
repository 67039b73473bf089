"""
Tests for `harness.clusters.workloads.files`, and for the bytes of `generate.Noise`.
"""

import itertools

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads.base import JOBS, PACKAGE
from harness.clusters.workloads.files import checksum, generated_input, noise, plan_noise
from tests.workloads.generators import draws, printed

NOISE = "mapreduce.harness.jobs.generate.Noise"
rows = st.integers(1, 20).flatmap(
    lambda size: st.lists(st.binary(min_size=size, max_size=size), min_size=1, max_size=6)
)


def summed(records):
    """
    Checksum of records given as bytes of one length.
    """
    return checksum(np.frombuffer(b"".join(records), np.uint8).reshape(len(records), -1))


class TestChecksum:
    @given(rows, st.randoms())
    def test_no_order_changes_it(self, records, random):
        """
        The sum is that of the same records in any other order.
        """
        assert summed(random.sample(records, len(records))) == summed(records)

    @given(rows, st.data())
    def test_every_bit_counts(self, records, data):
        """
        One bit turned in one record changes the sum.
        """
        which = data.draw(st.integers(0, len(records) - 1))
        at = data.draw(st.integers(0, len(records[0]) * 8 - 1))
        turned = int.from_bytes(records[which], "big") ^ 1 << at
        other = [*records]
        other[which] = turned.to_bytes(len(records[0]), "big")

        assert summed(other) != summed(records)

    def test_bytes_exchanged_between_records_change_it(self):
        """
        A sum of linear hashes would not see that.
        """
        assert summed([b"ab" * 8, b"cd" * 8]) != summed([b"ab" * 4 + b"cd" * 4] * 2)


@pytest.mark.process
class TestNoise:
    @pytest.mark.parametrize("seed", [0, 7, 2**63 - 1])
    def test_is_what_the_generator_makes(self, seed):
        """
        The arrays of this module, the generator's bytes and the obvious draws agree.
        """
        made = printed(NOISE, seed=seed, first=5, count=3, properties={"noise.bytes": 24})
        obvious = b"".join(
            word.to_bytes(8, "little")
            for number in (5, 6, 7)
            for word in itertools.islice(draws(seed, number), 3)
        )

        assert noise(seed, 5, 3, 24).tobytes() == made == obvious


def test_asks_for_the_job_of_ours():
    """
    The content's properties come first, then what the job's usage says; the folder comes last.
    """
    spec = WorkloadSpec(name="shuffle", input_bytes=63, seed=3)
    plan = generated_input(
        spec, "key", "a.B", records=7, sizes=(36, 27), properties={"b.size": "9"}
    )
    job = plan.generator

    assert (job.main_class, job.jar) == (f"{PACKAGE}.generate.Generate", JOBS)
    assert job.argv({}) == ("-Db.size=9", f"{PACKAGE}.a.B", "7", "2", "3")
    assert [(f.name, f.bytes) for f in plan.files] == [("part-m-00000", 36), ("part-m-00001", 27)]


@given(st.integers(1, 100), st.integers(0, 10**5), st.integers(1, 60).map(lambda words: 8 * words))
def test_files_share_the_records_evenly(files, more, size):
    """
    They hold all records, differ by one at most, and the larger ones come first: as the job's
    splits, which Hadoop sorts by their length.
    """
    spec = WorkloadSpec(name="shuffle", input_bytes=(files + more) * size)
    made = plan_noise(spec, spec.input_bytes, size, files).files
    sizes = [f.bytes // size for f in made]

    assert sum(sizes) == files + more
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] - sizes[-1] <= 1
    assert [f.name for f in made] == [f"part-m-{n:05d}" for n in range(files)]
