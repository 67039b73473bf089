"""
Whether the plain account of daemons may enter this clone: without namespaces it has to.
"""

from pathlib import Path

import pytest

from harness.clusters.node.account import closed_folder

PROJECT = Path(__file__).resolve().parents[2]
NOBODY = 65534


def closed_to_others():
    """
    The folder above this clone, or that itself, which others may not enter; `None`: they may.
    """
    return closed_folder(str(PROJECT), {"uid": NOBODY, "gid": NOBODY})


def skip_where_closed():
    """
    Skip a test of a cluster without namespaces, which is refused where its files are closed.
    """
    if closed := closed_to_others():
        pytest.skip(f"daemons without namespaces cannot enter {closed}: clone elsewhere")
