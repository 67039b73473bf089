"""What tests on real clusters share."""

import pytest

from tests.live import bare_hosts


@pytest.fixture(scope="session")
def can_make_hosts():
    """
    Skip where no bare hosts can be made; what they take is unpacked when the first test asks.
    """
    if reason := bare_hosts.lacking():
        pytest.skip(reason)
