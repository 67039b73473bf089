"""
Tests for `harness.core.experiment.foreign`: an experiment that somebody else wrote.
"""

import pytest

from harness.base.errors import SpecError
from harness.core.experiment.file import read_experiment
from harness.core.experiment.foreign import require_own_place, require_performance
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


@pytest.mark.parametrize(
    "value", ["${file:/etc/passwd}", "${env:HOME}", "INFO$(touch /tmp/x)", "`id`", "1;id", "a'b"]
)
def test_a_value_that_a_shell_or_a_reference_would_read_is_none_of_performance(value):
    """
    Hadoop writes values into the line of a shell; references name files of whoever reads.
    """
    text = TEXT.replace("LD_PRELOAD=/tmp/x.so", f'"{value}"')
    text = text.replace("mapreduce.map.env", "mapreduce.task.timeout")
    text = text.replace("hadoop.proxyuser.me.hosts: '*', ", "")

    with pytest.raises(SpecError, match=r"mapreduce\.task\.timeout loads code or runs a command"):
        require_performance(expand(read_experiment(text, "theirs.yaml")), "bundle")


PLACE = (
    "{provider: ansible, hosts: [198.18.0.1, 198.18.0.2], ssh: {key: ~/.ssh/id_rsa}, workers: 1}"
)


class TestPlace:
    @pytest.fixture
    def elsewhere(self):
        """
        Cells that are to be measured on hosts of their owner's choice, by a key of the reader's.
        """
        text = TEXT.replace(
            "cluster:\n  site: {hadoop.proxyuser.me.hosts: '*', dfs.blocksize: 8 MiB}",
            f"cluster: {PLACE}",
        )
        return expand(read_experiment(text, "theirs.yaml"))

    def test_of_somebody_else_is_refused(self, elsewhere):
        """
        With the keys that say where.
        """
        with pytest.raises(SpecError) as raised:
            require_own_place(elsewhere, "bundle", ["repeat=1"])
        for key in ("cluster.hosts", "cluster.provider", "cluster.ssh"):
            assert key in raised.value.what

    def test_of_the_reader_passes(self, elsewhere):
        """
        Who gives all of it has chosen it.
        """
        own = ["cluster.provider=ansible", "cluster.hosts=[a, b]", "cluster.ssh={key: k}"]
        require_own_place(elsewhere, "bundle", own)

    def test_of_this_machine_passes(self, cells):
        """
        Processes and containers here.
        """
        require_own_place(cells, "bundle", [])
