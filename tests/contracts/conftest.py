"""
What tests of clusters under attack share.
"""

import tempfile

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def folder():
    """
    A state folder that the daemons' account may enter.
    """
    with (
        tempfile.TemporaryDirectory(prefix="harness-outside-") as made,
        pytest.MonkeyPatch.context() as patch,
    ):
        Path(made).chmod(0o755)
        patch.setenv("XDG_STATE_HOME", made)
        yield Path(made)
