"""
Tests for `harness.workloads.rows`, and for the bytes of `generate.Noise`.
"""

import itertools

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.workloads.rows import checksum, noise
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
