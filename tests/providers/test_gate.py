"""
Tests for `harness.providers.gate`: who is silent, of those of whom that can be known.
"""

import pytest

from harness.providers import gate

NN, DN, RM, NM = "namenode on m", "datanode on w", "resourcemanager on m", "nodemanager on w"


@pytest.mark.parametrize(
    ("silent", "told"),
    [
        ([], []),
        ([NM], [NM]),
        ([DN, NM], [DN, NM]),
        ([NN, DN, "historyserver on m"], [NN]),
        ([RM, NM, DN], [RM, DN]),
    ],
)
def test_silent_daemons(silent, told):
    """
    Where a master is silent, nothing is known of those that it alone hears.
    """
    asked = []

    def ask(question):
        asked.append(question)
        return {"ok": not silent, "missing": silent, "died": []}

    assert gate.silent_daemons(ask, {"services": {}}) == told
    assert asked == [{"until": "healthy", "services": {}, "limit_s": 0.0}]


def test_a_cluster_that_is_gone_tells_nothing():
    """
    That it is gone is told by others.
    """
    assert gate.silent_daemons(lambda _: {}, {}) == []
