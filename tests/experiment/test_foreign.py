"""
Tests for `harness.core.experiment.foreign`: an experiment that somebody else wrote.
"""

import pytest

from harness.base.errors import SpecError
from harness.core.experiment.file import read_experiment
from harness.core.experiment.foreign import require_performance
from harness.core.experiment.grid import expand

TEXT = """\
schema: 1
name: theirs
cluster:
  site: {hadoop.proxyuser.me.hosts: '*', dfs.blocksize: 8 MiB}
workloads:
  - {name: terasort, input: 16 MiB}
configuration:
  mapreduce.job.reduces: [1, 2]
  mapreduce.map.env: LD_PRELOAD=/tmp/x.so
"""


@pytest.fixture
def cells():
    """
    Cells of their experiment.
    """
    return expand(read_experiment(TEXT, "theirs.yaml"))


def test_all_that_do_more_are_named_at_once(cells):
    """
    With what each does, and how it is taken.
    """
    with pytest.raises(SpecError) as raised:
        require_performance(cells, "bundle")
    assert "mapreduce.map.env loads code or runs a command" in raised.value.what
    assert "hadoop.proxyuser.me.hosts says who may reach or use the cluster" in raised.value.what
    assert "mapreduce.job.reduces" not in raised.value.what
    assert raised.value.where == "bundle"
    assert "--allow mapreduce.map.env" in raised.value.fix


def test_what_is_allowed_by_name_passes(cells):
    """
    Those, and no others.
    """
    require_performance(cells, "bundle", ["mapreduce.map.env", "hadoop.proxyuser.me.hosts"])
    with pytest.raises(SpecError, match=r"hadoop\.proxyuser"):
        require_performance(cells, "bundle", ["mapreduce.map.env"])
