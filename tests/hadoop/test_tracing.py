"""
Tests for `harness.base.hadoop.site`.
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import SpecError
from harness.base.hadoop import site
from harness.base.hadoop.daemons import Layout, make_members
from harness.base.records.trial import ClusterSpec

LAYOUT = Layout(make_members(2), base="/base", home="/home", archive="/home/classes-1.jsa")
TASKS = "/home/tasks-1.jsa"
DEFAULT = "-Djava.net.preferIPv4Stack=true -Dhadoop.metrics.log.level=WARN"
kinds = st.sampled_from(["map", "reduce"])


def traced(given_=None, mode="spans", spec=None, **more):
    """
    Properties of a traced job.
    """
    spec = spec or ClusterSpec()
    return site.task_properties(mode, LAYOUT, spec, given_ or {}, archive=TASKS, **more)


class TestTaskProperties:
    @pytest.mark.parametrize("mode", ["off", "logs"])
    def test_untraced(self, mode):
        """
        A job that is not traced is the job that it is.
        """
        assert traced(mode=mode) == {}

    @given(kinds)
    def test_options_differ_by_class_path_and_archive_alone(self, kind):
        """
        Traced tasks run with the options of all tasks, but for the classes.
        """
        files = site.site_files(ClusterSpec(), LAYOUT, LAYOUT.master)
        name = f"mapreduce.{kind}.java.opts"
        stock = files["mapred-site.xml"][name]

        assert traced()[name] == stock.replace("/home/path.jar", "/home/path-trace.jar").replace(
            LAYOUT.archive, TASKS
        )

    def test_recorder(self):
        """
        The recorder is told its mode, task, unit and folder, behind Hadoop's own default.
        """
        assert traced(mode="units", unit=3)["mapreduce.admin.map.child.java.opts"] == (
            f"{DEFAULT} -Dltrace=units -Dltrace.task=@taskid@ -Dltrace.unit=3"
            " -Dltrace.dir=<LOG_DIR>"
        )

    @pytest.mark.parametrize(
        "name", ["mapreduce.map.java.opts", "mapred.map.child.java.opts"], ids=["name", "old name"]
    )
    def test_own_options_stay(self, name):
        """
        A job's own options are not replaced, under whatever name; its tasks are traced, too.
        """
        properties = traced({name: "-Xmx100m"})

        assert sorted(properties) == [
            "mapreduce.admin.map.child.java.opts",
            "mapreduce.admin.reduce.child.java.opts",
            "mapreduce.reduce.java.opts",
            "yarn.application.classpath",
        ]

    def test_options_of_the_site_stay(self):
        """
        So are those of the experiment's cluster.
        """
        spec = ClusterSpec(site={"mapreduce.reduce.java.opts": "-Xmx100m"})

        assert "mapreduce.reduce.java.opts" not in traced(spec=spec)

    def test_own_class_path_and_administration(self):
        """
        What a job adds itself stands behind our classes, and before the recorder's options.
        """
        properties = traced(
            {
                "yarn.application.classpath": "/own/*",
                "mapreduce.admin.reduce.child.java.opts": " -Da=b ",
            }
        )

        assert properties["yarn.application.classpath"] == "/home/path-trace.jar,/own/*"
        assert properties["mapreduce.admin.reduce.child.java.opts"].startswith("-Da=b -Dltrace=")

    @pytest.mark.parametrize("option", ["-cp /x", "-classpath /x", "--class-path=/x"])
    def test_own_class_path_in_options(self, option):
        """
        A class path of a job's own would hide our classes: nothing would be recorded.
        """
        with pytest.raises(SpecError, match=r"mapreduce\.map\.java\.opts sets a class path"):
            traced({"mapreduce.map.java.opts": f"-Xmx1g {option}"})
