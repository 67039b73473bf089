"""
Names of Hadoop's properties: a slip is refused with the name that was meant, an own one is left.
"""

import time

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.hadoop.daemons import Layout, make_members
from harness.base.hadoop.properties import is_known, is_own, meant, objection, resembling, successor
from harness.base.hadoop.site import client_properties, merged, site_files
from harness.base.records.trial import ClusterSpec

SETTINGS = sorted(
    name
    for name in client_properties(ClusterSpec())
    # what the local provider names after its own slots
    if not name.endswith("-slot")
)


class TestSlips:
    @pytest.mark.parametrize(
        ("written", "right"),
        [
            ("mapreduce.task.io.sort.bm", "mapreduce.task.io.sort.mb"),
            ("mapreduce.task.io.sort.factr", "mapreduce.task.io.sort.factor"),
            ("mapreduce.io.sort.mb", "mapreduce.task.io.sort.mb"),
            ("task.io.sort.mb", "mapreduce.task.io.sort.mb"),
            ("mapreduec.task.io.sort.mb", "mapreduce.task.io.sort.mb"),
            ("mapreduce.job.Reduces", "mapreduce.job.reduces"),
            ("mapreduce.job.reducers", "mapreduce.job.reduces"),
            ("mapreduce.reduce.shuffle.parallel.copies", "mapreduce.reduce.shuffle.parallelcopies"),
            ("mapreduce.job.reduce.slowstart", "mapreduce.job.reduce.slowstart.completedmaps"),
            ("dfs.block-size", "dfs.blocksize"),
            ("yarn.nodemanager.resource.memroy-mb", "yarn.nodemanager.resource.memory-mb"),
        ],
    )
    def test_are_refused_with_the_name_that_was_meant(self, written, right):
        """
        One letter, part, dot or case away from a known name is that name misspelled.
        """
        what, fix = objection(written)

        assert (written in what, fix.startswith(f"did you mean {right}?")) == (True, True)

    @given(st.sampled_from(SETTINGS), st.data())
    def test_of_two_swapped_letters_stand_for_a_known_name(self, name, data):
        """
        Whatever two neighbours change places in a name's last part, a known name is offered.
        """
        head, _, last = name.rpartition(".")
        at = data.draw(st.integers(0, max(0, len(last) - 2)))
        swapped = f"{head}.{last[:at]}{last[at + 1 : at + 2]}{last[at : at + 1]}{last[at + 2 :]}"

        assert is_known(swapped) or is_known(meant(swapped)) or any(c.isdigit() for c in last)


class TestOtherNames:
    def test_that_are_set_or_read_here_are_known(self):
        """
        Nothing that the harness itself sets or reads is taken for a slip.
        """
        names = [*SETTINGS, "io.sort.record.percent", "mapred.combiner.class"]

        assert [n for n in names if not is_known(n) or objection(n) is not None] == []

    @pytest.mark.parametrize(
        "name",
        [
            "yarn.scheduler.capacity.root.night.capacity",
            "yarn.resourcemanager.address.rm1",
            "dfs.namenode.rpc-address.ns1.nn2",
            "fs.s3a.bucket.logs.endpoint",
            "hadoop.proxyuser.hive.hosts",
            "mapreduce.map.resource.gpu",
        ],
    )
    def test_that_hold_words_of_their_user_are_known(self, name):
        """
        Queues, hosts, buckets and resources have names that no table has.
        """
        assert (is_known(name), objection(name)) == (True, None)

    @pytest.mark.parametrize("name", ["wordcount.case.sensitive", "com.acme.job.reduces", "x"])
    def test_with_a_first_word_of_their_own_are_left_alone(self, name):
        """
        A job's own code reads them.
        """
        assert (is_own(name), objection(name)) == (True, None)

    @pytest.mark.parametrize(
        ("name", "near"),
        [
            ("mapreduce.map.sort.spill.pct", "mapreduce.map.sort.spill.percent"),
            ("mapreduce.acme.rows", ""),
        ],
    )
    def test_that_begin_as_hadoops_do_are_taken(self, name, near):
        """
        They are not refused; the nearest name is for a warning.
        """
        assert (is_known(name), objection(name), resembling(name)) == (False, None, near)


class TestOldNames:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("mapred.reduce.tasks", "mapreduce.job.reduces"),
            ("io.sort.mb", "mapreduce.task.io.sort.mb"),
            ("dfs.block.size", "dfs.blocksize"),
        ],
    )
    def test_are_refused_with_their_successors(self, old, new):
        """
        Hadoop would take them; models and slots go by the new ones, and would assume defaults.
        """
        assert (successor(old), objection(old)[1]) == (new, f"write {new}")


def test_a_file_full_of_strange_names_takes_no_time():
    """
    Two thousand names in less than five seconds, the table included.
    """
    began = time.process_time()
    for number in range(2000):
        objection(f"mapreduce.task.io.sort.m{'b' * (number % 150)}x")

    assert time.process_time() - began < 5


def test_every_property_of_the_site_files_is_known():
    """
    The table is that of the Hadoop that is run here.
    """
    layout = Layout(make_members(1), base="", home="")
    files = site_files(ClusterSpec(workers=1), layout, layout.workers[0])

    assert [n for n in merged(files) if not is_known(n) and not n.endswith("-slot")] == []
