"""
Tests for `harness.hadoop.layout`.
"""

from harness.hadoop.layout import make_members


class TestMembers:
    def test_all_differ(self):
        """
        Names and addresses are unique, beyond one byte of an address too.
        """
        made = make_members(600)

        assert (len({m.name for m in made}), len({m.address for m in made})) == (601, 601)

    def test_last_bytes_are_host_addresses(self):
        """
        No address ends in 0 or 255, and all lie in 198.18.0.0/15.
        """
        bytes_ = [tuple(map(int, m.address.split("."))) for m in make_members(600)]

        assert all(b[:2] == (198, 18) and 0 < b[3] < 255 for b in bytes_)
