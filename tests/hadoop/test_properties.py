"""
Tests for `harness.base.hadoop.properties`.
"""

import re
import subprocess

from contextlib import suppress

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import SpecError
from harness.base.hadoop.properties import job_config, parallel_max_memory, serial_max_memory
from harness.base.records.prediction import JobConfig

MIB = 2**20
OPTS = "mapreduce.reduce.java.opts"


def test_no_properties_are_hadoops_defaults():
    """
    What a job does not set, Hadoop 3 sets.
    """
    assert job_config({}) == JobConfig()


def test_reads_every_property_that_models_know():
    """
    Each name goes to its field, as a number or a switch.
    """
    config = job_config(
        {
            "mapreduce.job.reduces": "4",
            "mapreduce.task.io.sort.mb": " 16 ",
            "mapreduce.map.sort.spill.percent": "0.9",
            "mapreduce.task.io.sort.factor": "20",
            "mapreduce.map.combine.minspills": "2",
            "mapreduce.reduce.merge.inmem.threshold": "-1",
            "mapreduce.reduce.shuffle.input.buffer.percent": "0.5",
            "mapreduce.reduce.shuffle.merge.percent": "0.8",
            "mapreduce.reduce.shuffle.memory.limit.percent": "0.3",
            "mapreduce.reduce.input.buffer.percent": "0.1",
            "mapreduce.job.reduce.slowstart.completedmaps": "1.0",
            "mapreduce.reduce.shuffle.parallelcopies": "3",
            "mapreduce.map.output.compress": "true",
            "mapreduce.output.fileoutputformat.compress": "TRUE",
            "mapreduce.reduce.java.opts": "-Xmx400m",
            "some.other.property": "nonsense",
        }
    )

    assert config == JobConfig(
        num_reduces=4, sort_buffer_mb=16, sort_spill_percent=0.9, merge_factor=20,
        combine_min_spills=2, inmem_merge_segments=-1, shuffle_buffer_percent=0.5,
        shuffle_merge_percent=0.8, shuffle_segment_limit_percent=0.3, reduce_buffer_percent=0.1,
        reduce_slowstart=1.0, parallel_copies=3, map_output_compressed=True,
        output_compressed=True, reduce_heap_bytes=400 * MIB,
    )  # fmt: skip


class TestHeap:
    @pytest.mark.parametrize(
        ("options", "heap"),
        [
            ("-Xmx400m", 400 * MIB),
            ("-Xmx1G -server", 2**30),
            ("-verbose:gc -Xmx409600k", 400 * MIB),
            ("-Xmx419430400", 400 * MIB),
            ("-Xmx100m -Xmx400m", 400 * MIB),
            ("-XX:MaxHeapSize=400m", 400 * MIB),
            ("-Xmx400m -XX:+UseG1GC", 400 * MIB),
            ("-Xmx820m -XX:+UseSerialGC", 831193088),
            ("-Xmx820m -XX:+UseSerialGC -XX:NewRatio=1", 820 * MIB),
            ("-Xmx820m -XX:+UseParallelGC", 729 * MIB),
            ("-Xms820m -Xmx820m -XX:+UseParallelGC", 786 * MIB),
            ("-Xmx819m -XX:NewRatio=8 -XX:+UseParallelGC", 790 * MIB),
            ("-Xmx820m -XX:+UseParallelGC -Xmn100m", 820 * MIB),
        ],
    )
    def test_is_read_from_the_jvms_options(self, options, heap):
        """
        Sizes as a JVM reads them, the last one holding; the serial collector keeps a space back.
        """
        assert job_config({OPTS: options}).reduce_heap_bytes == heap

    @pytest.mark.parametrize(
        ("heap", "seen"),
        [
            (64 * MIB, 64880640), (128 * MIB, 129761280), (400 * MIB, 405471232),
            (1639 * MIB, 1662386176), (3 * 2**30, 3113877504), (123457 * 2**10, 123666432),
        ],
    )  # fmt: skip
    def test_serial_collector_as_a_jvm_says_it(self, heap, seen):
        """
        What Runtime.maxMemory() printed on OpenJDK 17.0.15 with -XX:+UseSerialGC.
        """
        assert serial_max_memory(heap) == seen

    @pytest.mark.process
    @pytest.mark.parametrize(
        ("heap_mb", "initial_mb", "ratio"),
        [(64, 2, 2), (409, 16, 2), (409, 409, 2), (820, 32, 2), (1000, 900, 2), (820, 32, 8)],
    )
    def test_parallel_collector_as_this_jvm_says_it(self, heap_mb, initial_mb, ratio):
        """
        Runtime.maxMemory(), which a JVM prints with its settings.
        """
        options = [f"-XX:MaxHeapSize={heap_mb}m", f"-XX:InitialHeapSize={initial_mb}m"]
        options += [f"-XX:NewRatio={ratio}", "-XX:+UseParallelGC", "-XshowSettings:vm", "-version"]
        printed = subprocess.run(["java", *options], capture_output=True, text=True, check=True)
        (seen_mb,) = re.findall(r"Max\. Heap Size \(Estimated\): ([0-9.]+)M", printed.stderr)

        expected = parallel_max_memory(heap_mb * MIB, initial_mb * MIB, ratio)
        assert float(seen_mb) == pytest.approx(expected / MIB, abs=0.01)

    def test_is_a_share_of_the_container_without_options(self):
        """
        Hadoop gives the JVM 0.8 of its container, or the ratio that is set.
        """
        memory = "mapreduce.reduce.memory.mb"
        ratio = "mapreduce.job.heap.memory-mb.ratio"

        assert job_config({memory: "1000"}).reduce_heap_bytes == 800 * MIB
        assert job_config({memory: "1000", ratio: "0.5"}).reduce_heap_bytes == 500 * MIB
        assert job_config({memory: "-1"}) == job_config({})

    def test_old_name_serves_where_the_new_one_is_absent(self):
        """
        mapred.child.java.opts is Hadoop 1's name for both kinds of tasks.
        """
        old = {"mapred.child.java.opts": "-Xmx200m"}

        assert job_config(old).reduce_heap_bytes == 200 * MIB
        assert job_config(old | {OPTS: "-Xmx300m"}).reduce_heap_bytes == 300 * MIB

    def test_total_set_by_hand_wins(self):
        """
        mapreduce.reduce.memory.totalbytes replaces what the JVM says.
        """
        total = {"mapreduce.reduce.memory.totalbytes": "123456789", OPTS: "-Xmx400m"}

        assert job_config(total).reduce_heap_bytes == 123456789


class TestCombiner:
    @pytest.mark.parametrize("name", ["mapreduce.job.combine.class", "mapred.combiner.class"])
    def test_is_told_by_its_class(self, name):
        """
        Either API's property says that a combiner is set.
        """
        assert job_config({name: "org.example.Sum"}).use_combiner

    @pytest.mark.parametrize("known", [True, False])
    def test_is_told_by_the_workload_before_that(self, known):
        """
        The workload knows its job before there is one.
        """
        named = {"mapreduce.job.combine.class": "org.example.Sum"}

        assert job_config(named, use_combiner=known).use_combiner is known


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mapreduce.job.reduces", "-1"),
        ("mapreduce.job.reduces", "two"),
        ("mapreduce.job.reduces", "1.5"),
        ("mapreduce.task.io.sort.mb", "0"),
        ("mapreduce.task.io.sort.mb", "2048"),
        ("mapreduce.task.io.sort.factor", "1"),
        ("mapreduce.map.sort.spill.percent", "0"),
        ("mapreduce.map.sort.spill.percent", "80"),
        ("mapreduce.reduce.shuffle.merge.percent", "nan"),
        ("mapreduce.reduce.input.buffer.percent", "-0.1"),
        ("mapreduce.reduce.shuffle.parallelcopies", "0"),
        ("mapreduce.map.output.compress", "yes"),
        ("mapreduce.reduce.memory.mb", "1 GiB"),
        ("mapreduce.job.heap.memory-mb.ratio", "1.5"),
        ("mapreduce.reduce.memory.totalbytes", "lots"),
        (OPTS, "-Xmx400mb"),
        (OPTS, "-Xmx1"),
        (OPTS, "-Xmx" + "9" * 5000),
        ("mapreduce.job.reduces", "1_0"),
        ("mapreduce.job.reduces", "9" * 5000),
        ("mapreduce.map.sort.spill.percent", "0_1"),
    ],
    ids=lambda text: text[-24:],
)
def test_wrong_value_is_named_with_its_property(name, value):
    """
    The error says which property, and what it holds.
    """
    with pytest.raises(SpecError) as refused:
        job_config({name: value})

    assert name in str(refused.value)
    assert value[:150] in str(refused.value)


def test_limit_that_hadoop_refuses_is_refused_before():
    """
    A segment limit at the merge threshold stops every reduce, but a map-only job has none.
    """
    limit = {"mapreduce.reduce.shuffle.memory.limit.percent": "0.66"}

    with pytest.raises(SpecError, match=r"limit of 0\.66"):
        job_config(limit)
    assert job_config(limit | {"mapreduce.job.reduces": "0"}).num_reduces == 0


@given(
    st.sampled_from(
        [
            "mapreduce.job.reduces", "mapreduce.map.output.compress", OPTS,
            "mapreduce.reduce.memory.mb", "mapreduce.map.sort.spill.percent",
        ]
    ),
    st.text() | st.from_regex(r"-Xmx[0-9]*[kmg]?") | st.from_regex(r"[0-9._]*"),
)  # fmt: skip
def test_any_value_is_read_or_refused(name, text):
    """
    Whatever an experiment file holds, the answer is a configuration or `SpecError`.
    """
    with suppress(SpecError):
        assert isinstance(job_config({name: text}), JobConfig)
