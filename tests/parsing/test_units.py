"""Durations of units, written as the recorder writes them."""

import struct

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ParseError
from harness.observe.parsing.ltrace import read_units


def written(steps, records=5):
    """File of units that took so many steps of 32 ns."""
    words = b"".join(
        struct.pack("<H", n) if n < 0x8000 else struct.pack("<HH", 0x8000 | n >> 16, n & 0xFFFF)
        for n in steps
    )
    return struct.pack("<8sii", b"LTUNITS1", records, 0) + words


class TestReadUnits:
    @given(st.lists(st.integers(1, 2**31 - 1) | st.integers(1, 100), max_size=60))
    def test_what_was_written_is_read(self, steps):
        """
        Short and long durations come back in their order, zeros behind them ignored.
        """
        records, seconds = read_units(written(steps) + bytes(64), "ltrace.units")

        assert (records, [round(s / 32e-9) for s in seconds]) == (5, steps)

    def test_the_first_zero_is_the_end(self):
        """
        Nothing takes no time: what stands behind was never written by the recorder.
        """
        _, seconds = read_units(written([7, 0x20000, 0, 9]), "ltrace.units")

        assert [round(s / 32e-9) for s in seconds] == [7, 0x20000]

    def test_half_a_unit_is_left_out(self):
        """
        A killed JVM may leave the first word of two.
        """
        _, seconds = read_units(written([7, 0x12345])[:-2], "ltrace.units")

        assert [round(s / 32e-9) for s in seconds] == [7]

    @given(st.binary(max_size=200))
    def test_any_bytes_give_durations_or_the_error(self, noise):
        """
        Damage is told, or gives finite durations.
        """
        try:
            _, seconds = read_units(b"LTUNITS1" + noise, "ltrace.units")
        except ParseError:
            return
        assert all(0 < s < 2**31 * 32e-9 for s in seconds)

    @pytest.mark.parametrize("data", [b"", b"LTRACE01" + bytes(20), written([1], records=0)])
    def test_foreign_files_are_refused(self, data):
        """
        What holds no units is an error.
        """
        with pytest.raises(ParseError, match=r"ltrace\.units"):
            read_units(data, "ltrace.units")
