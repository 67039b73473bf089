"""
The one table of statistics and costs: whatever a profile, or the costs of a machine, may hold.

A row of `STATISTICS` says of each its name, unit and meaning, in which part of a task it counts,
what it is spent on, what is typical, how it comes to another machine, and which equation uses it.
A row of `TASK_PARTS` says of a part of a task what it waits for and which equation gives it.
Profiling, transfer, calibration and reports read these two tables, and ``docs/statistics.md`` is
made from them (``scripts/statistics``).

To add one: write its row here, and its term where its kind is computed (`COMPUTED_IN`).  The order
of rows is the order of columns in fits: a new row goes to the end of its kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from harness.base.records.prediction import JobConfig
from harness.base.records.trial import NETWORK_IN, NETWORK_OUT

Kind = Literal[
    "dataflow", "job cost", "task time", "machine cost", "processor time", "frame",
    "fixed seconds", "test job", "rate", "process", "machine",
]  # fmt: skip
Unit = Literal[
    "", "B", "B/s", "B/record", "B/B", "record", "record/record", "s", "s/B", "s/record", "task",
    "job", "0 or 1", "core", "node",
]  # fmt: skip
# Of which tasks it is; `either`: of the maps of a job without reduces, else of the reduces; `job`:
# of no single task.
Side = Literal["map", "reduce", "both", "either", "job"]
# What it is spent on; a fixed cost passes once for each file, segment, task or job.
Resource = Literal["none", "processor", "disk", "network", "memory", "device", "fixed"]
# How it comes to another machine: it stays; it becomes longer by the factor of its parts, or of
# computing as a whole; a rate becomes smaller by the factor of copying; it is measured there.
Move = Literal["stays", "with its parts", "as computing", "as a rate", "measured there"]
# Whose compression a time depends on, so that jobs which compress have a statistic of their own.
Codec = Literal["", "map_output", "output"]

KINDS: tuple[Kind, ...] = get_args(Kind)
UNITS: tuple[Unit, ...] = get_args(Unit)
# Where the terms of each kind stand: what a task's times and counters say of it.
COMPUTED_IN: Mapping[Kind, tuple[str, ...]] = MappingProxyType(
    {
        "dataflow": ("harness/observe/profiling/dataflow.py", "harness/observe/profiling/fit.py"),
        "job cost": (
            "harness/models/whatif/map_task.py",
            "harness/models/whatif/shuffle.py",
            "harness/models/whatif/reduce_task.py",
            "harness/models/whatif/evaluation.py",
        ),
        "task time": ("harness/observe/profiling/task_statistics.py",),
        "machine cost": ("harness/observe/profiling/platform.py",),
        "processor time": ("harness/observe/profiling/platform.py",),
        "frame": ("harness/observe/profiling/frame.py",),
        "fixed seconds": ("harness/observe/profiling/fixed.py",),
        "test job": ("harness/observe/profiling/gpu.py",),
        "rate": ("harness/clusters/monitor/rates.py",),
        "process": ("harness/observe/profiling/processes.py",),
        "machine": ("harness/observe/profiling/processes.py",),
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskPart:
    """
    A part of a task that recordings or logs time on its own.

    *waits_for* is what it takes most of its time for.  *equation* is What-If's, *prophets* the one
    that Prophet has in its place.  *shared_by* are the fields of a job's configuration with which a
    combiner or a codec of the job works in it, too.  One that *overlaps* holds others, or measures
    them once more, so that it is in no sum over parts.
    """

    name: str
    side: Side
    waits_for: str
    text: str
    equation: str = ""
    prophets: str = ""
    shared_by: tuple[str, ...] = ()
    overlaps: bool = False

    def is_shared(self, configuration: JobConfig) -> bool:
        """Whether a combiner or a codec of a job with this configuration works in it, too."""
        return any(getattr(configuration, field) for field in self.shared_by)


_COMBINES = "use_combiner"
_READS_COMPRESSED = "input_compressed"
_COMPRESSES_MAP_OUTPUT = "map_output_compressed"
_COMPRESSES_OUTPUT = "output_compressed"
PROCESSOR = "processor"
_LOCAL_DISK = "local disk"
_HDFS_READING = "HDFS, reading"
_HDFS_WRITING = "HDFS, writing"

LOGGED_SPILL = "spill_s"
MAP_CPU = "map_cpu_s"
NETWORK_ALONE = "network alone"

_PARTS = (
    TaskPart(
        name="map_read_s",
        side="map",
        waits_for=_HDFS_READING,
        equation="(4)",
        text="reading the records of the split",
    ),
    TaskPart(
        name="map_function_s",
        side="map",
        waits_for=PROCESSOR,
        equation="(5)",
        text="the job's map function",
    ),
    TaskPart(
        name="collect_s",
        side="map",
        waits_for=PROCESSOR,
        equation="(19)",
        text="serialising what the map function gives, into the sort buffer",
    ),
    TaskPart(
        name="map_s",
        side="map",
        waits_for=PROCESSOR,
        equation="(4), (5), (19)",
        prophets="(4)",
        overlaps=True,
        text="reading, map function and collecting together",
    ),
    TaskPart(
        name="map_write_s",
        side="map",
        waits_for=_HDFS_WRITING,
        equation="(8)",
        shared_by=(_COMPRESSES_OUTPUT,),
        text="writing the output of a job without reduces",
    ),
    TaskPart(
        name="spill_sort_s",
        side="map",
        waits_for=PROCESSOR,
        equation="(20)",
        prophets="(2), (3)",
        text="sorting in all spills",
    ),
    TaskPart(
        name="spill_write_s",
        side="map",
        waits_for=_LOCAL_DISK,
        equation="(20)",
        prophets="(2), (3)",
        shared_by=(_COMBINES, _COMPRESSES_MAP_OUTPUT),
        text="combining and writing in all spills",
    ),
    TaskPart(
        name=LOGGED_SPILL,
        side="map",
        waits_for=PROCESSOR,
        shared_by=(_COMBINES, _COMPRESSES_MAP_OUTPUT),
        text="all spills as a whole, where a log tells no parts of them",
    ),
    TaskPart(
        name=MAP_CPU,
        side="map",
        waits_for=PROCESSOR,
        shared_by=(_COMPRESSES_MAP_OUTPUT,),
        overlaps=True,
        text="processor time of the whole map, by its counter, where nothing is recorded",
    ),
    TaskPart(
        name="map_merge_s",
        side="map",
        waits_for=_LOCAL_DISK,
        equation="(36)",
        shared_by=(_COMPRESSES_MAP_OUTPUT,),
        text="merging the spills of a map",
    ),
    TaskPart(
        name="copy_s",
        side="reduce",
        waits_for="network",
        equation="(64)",
        shared_by=(_COMPRESSES_MAP_OUTPUT,),
        text="copying map outputs, with what is written straight to disk meanwhile",
    ),
    TaskPart(
        name="inmem_merge_s",
        side="reduce",
        waits_for=_LOCAL_DISK,
        equation="(62)",
        shared_by=(_COMPRESSES_MAP_OUTPUT,),
        text="merging copied segments from memory",
    ),
    TaskPart(
        name="ondisk_merge_s",
        side="reduce",
        waits_for=_LOCAL_DISK,
        equation="(63)",
        shared_by=(_COMPRESSES_MAP_OUTPUT,),
        text="merging files on disk while copying goes on",
    ),
    TaskPart(
        name="reduce_merge_s",
        side="reduce",
        waits_for=PROCESSOR,
        equation="(82)",
        text="the last merge before the reduce function",
    ),
    TaskPart(
        name="reduce_function_s",
        side="reduce",
        waits_for=PROCESSOR,
        equation="(88)",
        text="the job's reduce function, with reading what it is given",
    ),
    TaskPart(
        name="reduce_write_s",
        side="reduce",
        waits_for=_HDFS_WRITING,
        equation="(89)",
        shared_by=(_COMPRESSES_OUTPUT,),
        text="writing the output of a reduce",
    ),
    # Of no recording: what a transfer takes out of `copy_s`.
    TaskPart(
        name=NETWORK_ALONE,
        side="job",
        waits_for="network",
        text="copying, without what is written to disk meanwhile",
    ),
)
TASK_PARTS: Mapping[str, TaskPart] = MappingProxyType({part.name: part for part in _PARTS})


@dataclass(frozen=True, kw_only=True, slots=True)
class StatisticRow:
    """
    What a statistic or a cost is.

    *parts* are those of a task in which it counts, *typical* its order of magnitude on one core of
    a server of the 2020s, *equation* where ``docs/models`` uses it.  *node_rates* are rates of a
    node that give it without a job (the slowest of them).  A job's cost that tasks of both kinds
    have is fitted for each under *map_name* and *reduce_name*; a time that depends on a *codec* is
    *compressed_name* for jobs that compress.  A job's cost that has a *switch* counts only in jobs
    in whose configuration the field of that name is on.
    """

    name: str
    kind: Kind
    unit: Unit
    side: Side
    text: str
    equation: str = ""
    parts: tuple[str, ...] = ()
    resource: Resource = "none"
    moves: Move = "stays"
    typical: float | None = None
    node_rates: frozenset[str] = frozenset()
    map_name: str = ""
    reduce_name: str = ""
    codec: Codec = ""
    compressed_name: str = ""
    switch: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Each name under which a profile may hold it, the common one first."""
        names = (self.name, self.map_name, self.reduce_name, self.compressed_name)
        return tuple(name for name in names if name)

    def name_for(self, configuration: JobConfig) -> str:
        """Its name for a job with this configuration, that of its codec if it compresses."""
        is_compressed = {
            "": False,
            "map_output": configuration.map_output_compressed,
            "output": configuration.output_compressed,
        }
        return self.compressed_name if is_compressed[self.codec] else self.name

    def side_name(self, side: str) -> str:
        """Its name as a cost of maps alone, or of reduces alone."""
        return self.map_name if side == "map" else self.reduce_name


_DATAFLOW = (
    StatisticRow(
        name="input_record_bytes",
        kind="dataflow",
        unit="B/record",
        side="map",
        equation="whatif (3)",
        text="bytes of an input record, uncompressed",
    ),
    StatisticRow(
        name="map_bytes_selectivity",
        kind="dataflow",
        unit="B/B",
        side="map",
        equation="whatif (6), (9); prophet (u2)",
        text="bytes that a map gives for each byte that it reads",
    ),
    StatisticRow(
        name="map_records_selectivity",
        kind="dataflow",
        unit="record/record",
        side="map",
        equation="whatif (7), (10); prophet (u1)",
        text="records that a map gives for each record that it reads",
    ),
    StatisticRow(
        name="records_per_reduce_group",
        kind="dataflow",
        unit="record",
        side="reduce",
        equation="whatif, errata W03",
        text="records of a key, which the reduce function is given together",
    ),
    StatisticRow(
        name="reduce_bytes_selectivity",
        kind="dataflow",
        unit="B/B",
        side="reduce",
        equation="whatif (85)",
        text="bytes that a reduce gives for each byte of its input",
    ),
    StatisticRow(
        name="reduce_records_selectivity",
        kind="dataflow",
        unit="record/record",
        side="reduce",
        equation="whatif (86)",
        text="records that a reduce gives for each record of its input",
    ),
    StatisticRow(
        name="combine_records_selectivity",
        kind="dataflow",
        unit="record/record",
        side="map",
        equation="whatif (17), (30)",
        text="share of a spill's records that the combiner leaves",
    ),
    StatisticRow(
        name="combine_bytes_selectivity",
        kind="dataflow",
        unit="B/B",
        side="map",
        equation="whatif (18), (29)",
        text="share of a spill's bytes that the combiner leaves, before compression",
    ),
    StatisticRow(
        name="records_per_combine",
        kind="dataflow",
        unit="record",
        side="map",
        equation="whatif, errata W42",
        text="records of a spill for which both shares of the combiner hold",
    ),
    StatisticRow(
        name="combine_records_exponent",
        kind="dataflow",
        unit="",
        side="map",
        equation="whatif, errata W42",
        text="power of the records that a combiner sees, with which those that it leaves grow",
    ),
    StatisticRow(
        name="combine_bytes_exponent",
        kind="dataflow",
        unit="",
        side="map",
        equation="whatif, errata W42",
        text="power of the records that a combiner sees, with which the bytes that it leaves grow",
    ),
    StatisticRow(
        name="input_compression_ratio",
        kind="dataflow",
        unit="B/B",
        side="map",
        equation="whatif (2)",
        text="compressed over uncompressed bytes of the input",
    ),
    StatisticRow(
        name="map_output_compression_ratio",
        kind="dataflow",
        unit="B/B",
        side="both",
        equation="whatif (18)",
        text="compressed over uncompressed bytes of the map output",
    ),
    StatisticRow(
        name="output_compression_ratio",
        kind="dataflow",
        unit="B/B",
        side="either",
        equation="whatif (8), (89)",
        text="compressed over uncompressed bytes of the job's output",
    ),
    StatisticRow(
        name="jobs_per_trial",
        kind="dataflow",
        unit="job",
        side="job",
        equation="README section 9",
        text="jobs of a trial whose workload takes as many as it needs",
    ),
)

# Costs of a job on a machine: all that writing takes, for each file and record too, is in a byte.
# Only the ratios of what is typical matter, and only inside a group of costs that the profiling
# trials cannot distinguish (warm page cache, and a gigabit network or better).
_JOB_COSTS = (
    StatisticRow(
        name="hdfs_read_s_per_byte",
        map_name="hdfs_read_s_per_byte_map",
        reduce_name="hdfs_read_s_per_byte_reduce",
        kind="job cost",
        unit="s/B",
        side="map",
        parts=("map_read_s",),
        resource="disk",
        moves="with its parts",
        typical=5e-9,
        equation="whatif (4)",
        text="reading a stored byte from HDFS",
    ),
    StatisticRow(
        name="hdfs_write_s_per_byte",
        map_name="hdfs_write_s_per_byte_map",
        reduce_name="hdfs_write_s_per_byte_reduce",
        kind="job cost",
        unit="s/B",
        side="either",
        parts=("reduce_write_s", "map_write_s"),
        resource="disk",
        moves="with its parts",
        typical=2e-8,
        equation="whatif (8), (89)",
        text="writing a stored byte to HDFS",
    ),
    StatisticRow(
        name="local_read_s_per_byte",
        map_name="local_read_s_per_byte_map",
        reduce_name="local_read_s_per_byte_reduce",
        kind="job cost",
        unit="s/B",
        side="both",
        parts=("map_merge_s", "inmem_merge_s", "ondisk_merge_s"),
        resource="disk",
        moves="with its parts",
        typical=3e-9,
        equation="whatif (34), (35), (63), (76), (81), (88)",
        text="reading a stored byte from a local disk",
    ),
    StatisticRow(
        name="local_write_s_per_byte",
        map_name="local_write_s_per_byte_map",
        reduce_name="local_write_s_per_byte_reduce",
        kind="job cost",
        unit="s/B",
        side="both",
        parts=("spill_write_s",),
        resource="disk",
        moves="with its parts",
        typical=6e-9,
        equation="whatif (20), (34), (35), (62), (63), (71), (76), (81)",
        text="writing a byte to a local disk",
    ),
    StatisticRow(
        name="network_s_per_byte",
        map_name="network_s_per_byte_map",
        reduce_name="network_s_per_byte_reduce",
        kind="job cost",
        unit="s/B",
        side="reduce",
        parts=(NETWORK_ALONE,),
        resource="network",
        moves="with its parts",
        typical=1e-8,
        equation="whatif (64)",
        text="copying a byte of the map output, as it is sent",
    ),
    StatisticRow(
        name="map_cpu_s_per_record",
        map_name="map_cpu_s_per_record_map",
        reduce_name="map_cpu_s_per_record_reduce",
        kind="job cost",
        unit="s/record",
        side="map",
        parts=("map_function_s",),
        resource="processor",
        moves="with its parts",
        typical=1e-6,
        equation="whatif (5)",
        text="the map function, for an input record",
    ),
    StatisticRow(
        name="reduce_cpu_s_per_record",
        map_name="reduce_cpu_s_per_record_map",
        reduce_name="reduce_cpu_s_per_record_reduce",
        kind="job cost",
        unit="s/record",
        side="reduce",
        parts=("reduce_function_s",),
        resource="processor",
        moves="with its parts",
        typical=5e-7,
        equation="whatif (88)",
        text="the reduce function, for an input record",
    ),
    StatisticRow(
        name="combine_cpu_s_per_record",
        map_name="combine_cpu_s_per_record_map",
        reduce_name="combine_cpu_s_per_record_reduce",
        switch=_COMBINES,
        kind="job cost",
        unit="s/record",
        side="both",
        parts=("spill_write_s", "map_merge_s", "inmem_merge_s"),
        resource="processor",
        moves="as computing",
        typical=3e-7,
        equation="whatif (20), (35), (62)",
        text="the combiner, for a record that it is given",
    ),
    StatisticRow(
        name="partition_cpu_s_per_record",
        map_name="partition_cpu_s_per_record_map",
        reduce_name="partition_cpu_s_per_record_reduce",
        kind="job cost",
        unit="s/record",
        side="map",
        parts=("collect_s",),
        resource="processor",
        moves="with its parts",
        typical=5e-8,
        equation="whatif (19)",
        text="choosing the reduce of a record",
    ),
    StatisticRow(
        name="serde_cpu_s_per_record",
        map_name="serde_cpu_s_per_record_map",
        reduce_name="serde_cpu_s_per_record_reduce",
        kind="job cost",
        unit="s/record",
        side="map",
        parts=("collect_s",),
        resource="processor",
        moves="with its parts",
        typical=3e-7,
        equation="whatif (19)",
        text="serialising a record of the map output",
    ),
    StatisticRow(
        name="sort_cpu_s_per_record",
        map_name="sort_cpu_s_per_record_map",
        reduce_name="sort_cpu_s_per_record_reduce",
        kind="job cost",
        unit="s/record",
        side="map",
        parts=("spill_sort_s",),
        resource="processor",
        moves="with its parts",
        typical=3e-8,
        equation="whatif (20)",
        text="sorting a record in a spill, for each level of comparison",
    ),
    StatisticRow(
        name="merge_cpu_s_per_record",
        map_name="merge_cpu_s_per_record_map",
        reduce_name="merge_cpu_s_per_record_reduce",
        kind="job cost",
        unit="s/record",
        side="both",
        parts=("map_merge_s", "inmem_merge_s", "ondisk_merge_s"),
        resource="processor",
        moves="with its parts",
        typical=3e-7,
        equation="whatif (34), (35), (62), (63), (71), (76), (81)",
        text="merging a record",
    ),
    StatisticRow(
        name="input_decompress_s_per_byte",
        map_name="input_decompress_s_per_byte_map",
        reduce_name="input_decompress_s_per_byte_reduce",
        switch=_READS_COMPRESSED,
        kind="job cost",
        unit="s/B",
        side="map",
        parts=("map_read_s",),
        resource="processor",
        moves="as computing",
        typical=5e-9,
        equation="whatif (4)",
        text="decompressing a stored byte of the input",
    ),
    StatisticRow(
        name="map_output_decompress_s_per_byte",
        map_name="map_output_decompress_s_per_byte_map",
        reduce_name="map_output_decompress_s_per_byte_reduce",
        switch=_COMPRESSES_MAP_OUTPUT,
        kind="job cost",
        unit="s/B",
        side="both",
        parts=("map_merge_s", "inmem_merge_s", "ondisk_merge_s"),
        resource="processor",
        moves="as computing",
        typical=5e-9,
        equation="whatif (34), (35), (62), (63), (76), (81), (88)",
        text="decompressing a stored byte of the map output",
    ),
    StatisticRow(
        name="map_output_compress_s_per_byte",
        map_name="map_output_compress_s_per_byte_map",
        reduce_name="map_output_compress_s_per_byte_reduce",
        switch=_COMPRESSES_MAP_OUTPUT,
        kind="job cost",
        unit="s/B",
        side="both",
        parts=("spill_write_s", "map_merge_s", "inmem_merge_s", "ondisk_merge_s"),
        resource="processor",
        moves="as computing",
        typical=1e-8,
        equation="whatif (20), (34), (35), (62), (63), (71), (76), (81)",
        text="compressing a byte of the map output",
    ),
    StatisticRow(
        name="output_compress_s_per_byte",
        map_name="output_compress_s_per_byte_map",
        reduce_name="output_compress_s_per_byte_reduce",
        switch=_COMPRESSES_OUTPUT,
        kind="job cost",
        unit="s/B",
        side="either",
        parts=("reduce_write_s", "map_write_s"),
        resource="processor",
        moves="as computing",
        typical=1e-8,
        equation="whatif (8), (89)",
        text="compressing a byte of the job's output",
    ),
    StatisticRow(
        name="setup_cpu_s",
        map_name="setup_cpu_s_map",
        reduce_name="setup_cpu_s_reduce",
        kind="job cost",
        unit="s",
        side="both",
        resource="fixed",
        typical=1.5,
        equation="whatif (90), (91), not as printed",
        text="start of a task; the frame stands for it on another machine",
    ),
    StatisticRow(
        name="cleanup_cpu_s",
        map_name="cleanup_cpu_s_map",
        reduce_name="cleanup_cpu_s_reduce",
        kind="job cost",
        unit="s",
        side="both",
        resource="fixed",
        typical=0.2,
        equation="whatif (90), (91), not as printed",
        text="end of a task; the frame stands for it on another machine",
    ),
)

_TASK_TIMES = (
    StatisticRow(
        name="map_s_per_record",
        kind="task time",
        unit="s/record",
        side="map",
        parts=("map_read_s", "map_function_s", "collect_s"),
        resource="processor",
        moves="with its parts",
        equation="prophet (u13), (u17)",
        text="map function with reading and collecting, for an input record, while no spill runs",
    ),
    StatisticRow(
        name="map_while_spilling_s_per_record",
        compressed_name="map_while_spilling_s_per_record_compressed",
        codec="map_output",
        kind="task time",
        unit="s/record",
        side="map",
        parts=("map_read_s", "map_function_s", "collect_s"),
        resource="processor",
        moves="with its parts",
        equation="prophet (u12), (u16)",
        text="the same while a spill runs",
    ),
    StatisticRow(
        name="read_s_per_record",
        kind="task time",
        unit="s/record",
        side="map",
        parts=("map_read_s",),
        resource="disk",
        moves="with its parts",
        text="reading, for an input record",
    ),
    StatisticRow(
        name="collect_s_per_record",
        kind="task time",
        unit="s/record",
        side="map",
        parts=("collect_s",),
        resource="processor",
        moves="with its parts",
        text="collecting, for a record of the map output",
    ),
    StatisticRow(
        name="sort_s_per_record",
        kind="task time",
        unit="s/record",
        side="map",
        parts=("spill_sort_s",),
        resource="processor",
        moves="with its parts",
        equation="prophet (u8), (3)",
        text="sorting in a spill, for a record of it",
    ),
    StatisticRow(
        name="combine_s_per_record",
        compressed_name="combine_s_per_record_compressed",
        codec="map_output",
        kind="task time",
        unit="s/record",
        side="map",
        parts=("spill_write_s",),
        resource="processor",
        moves="with its parts",
        equation="prophet (u8), (3)",
        text="combining in a spill with writing as it goes, for a record of it",
    ),
    StatisticRow(
        name="spill_write_s_per_byte",
        compressed_name="spill_write_s_per_byte_compressed",
        codec="map_output",
        kind="task time",
        unit="s/B",
        side="map",
        parts=("spill_write_s",),
        resource="disk",
        moves="with its parts",
        equation="prophet (u8), (3)",
        text="writing a byte of a spill's file",
    ),
    StatisticRow(
        name="spill_s_per_record",
        compressed_name="spill_s_per_record_compressed",
        codec="map_output",
        kind="task time",
        unit="s/record",
        side="map",
        parts=("spill_sort_s", "spill_write_s"),
        resource="processor",
        moves="with its parts",
        equation="prophet section 13",
        text="a whole spill, for a record of it, where logs tell no parts",
    ),
    StatisticRow(
        name="spill_bytes_selectivity",
        compressed_name="spill_bytes_selectivity_compressed",
        codec="map_output",
        kind="task time",
        unit="B/B",
        side="map",
        equation="prophet (u7)",
        text="bytes of a spill's file for each byte that it took from the sort buffer",
    ),
    StatisticRow(
        name="map_merge_s_per_byte",
        compressed_name="map_merge_s_per_byte_compressed",
        codec="map_output",
        kind="task time",
        unit="s/B",
        side="map",
        parts=("map_merge_s",),
        resource="disk",
        moves="with its parts",
        text="merging a byte of the spills' files",
    ),
    StatisticRow(
        name="copy_s_per_byte",
        compressed_name="copy_s_per_byte_compressed",
        codec="map_output",
        kind="task time",
        unit="s/B",
        side="reduce",
        parts=("copy_s",),
        resource="network",
        moves="with its parts",
        equation="prophet section 5; mrtuner-ptc, v",
        text="connecting and copying of one copier while others copy too, for a byte sent",
    ),
    StatisticRow(
        name="memory_merge_s_per_byte",
        compressed_name="memory_merge_s_per_byte_compressed",
        codec="map_output",
        kind="task time",
        unit="s/B",
        side="reduce",
        parts=("inmem_merge_s",),
        resource="disk",
        moves="with its parts",
        text="merging from memory, for a byte written",
    ),
    StatisticRow(
        name="disk_merge_s_per_byte",
        compressed_name="disk_merge_s_per_byte_compressed",
        codec="map_output",
        kind="task time",
        unit="s/B",
        side="reduce",
        parts=("ondisk_merge_s",),
        resource="disk",
        moves="with its parts",
        text="merging on disk, for a byte written",
    ),
    StatisticRow(
        name="reduce_read_s_per_record",
        kind="task time",
        unit="s/record",
        side="reduce",
        parts=("reduce_function_s",),
        resource="disk",
        moves="with its parts",
        text="reading what a reduce is given, with the last merge, for a record",
    ),
    StatisticRow(
        name="reduce_s_per_record",
        kind="task time",
        unit="s/record",
        side="reduce",
        parts=("reduce_function_s",),
        resource="processor",
        moves="with its parts",
        text="the reduce function, for a record",
    ),
    StatisticRow(
        name="reduce_write_s_per_record",
        compressed_name="reduce_write_s_per_record_compressed",
        codec="output",
        kind="task time",
        unit="s/record",
        side="reduce",
        parts=("reduce_write_s",),
        resource="disk",
        moves="with its parts",
        text="writing a record of the output",
    ),
    StatisticRow(
        name="network_bps",
        kind="task time",
        unit="B/s",
        side="reduce",
        parts=(NETWORK_ALONE,),
        resource="network",
        moves="as a rate",
        equation="mrtuner-ptc, v; spn-gc (7), (12)",
        text="bytes sent to a node's reduces for each second in which some were on their way",
    ),
)

# Costs of a machine, whatever runs there: what a file and a record take is apart from what a byte
# takes, and early bytes (`harness.observe.profiling.platform.WAITING`) from those that wait for the
# disk.
_MACHINE_COSTS = (
    StatisticRow(
        name="hdfs_read_s_per_byte",
        kind="machine cost",
        unit="s/B",
        side="map",
        parts=("map_read_s",),
        resource="disk",
        moves="measured there",
        typical=5e-9,
        text="reading a stored byte from HDFS",
    ),
    StatisticRow(
        name="hdfs_read_s_per_record",
        kind="machine cost",
        unit="s/record",
        side="map",
        parts=("map_read_s",),
        resource="processor",
        moves="measured there",
        typical=1e-7,
        text="making a record of what is read",
    ),
    StatisticRow(
        name="hdfs_read_s_per_file",
        kind="machine cost",
        unit="s",
        side="map",
        parts=("map_read_s",),
        resource="fixed",
        moves="measured there",
        typical=2e-2,
        text="opening the file of a split",
    ),
    StatisticRow(
        name="serde_s_per_byte",
        kind="machine cost",
        unit="s/B",
        side="map",
        parts=("collect_s",),
        resource="processor",
        moves="measured there",
        typical=4e-10,
        text="serialising a byte of the map output",
    ),
    StatisticRow(
        name="serde_cpu_s_per_record",
        kind="machine cost",
        unit="s/record",
        side="map",
        parts=("collect_s",),
        resource="processor",
        moves="measured there",
        typical=1.5e-7,
        text="serialising a record of the map output",
    ),
    StatisticRow(
        name="sort_cpu_s_per_record",
        kind="machine cost",
        unit="s/record",
        side="map",
        parts=("spill_sort_s", LOGGED_SPILL),
        resource="processor",
        moves="measured there",
        typical=6e-8,
        text="sorting a record in a spill, for each level of comparison",
    ),
    StatisticRow(
        name="sort_s_per_byte",
        kind="machine cost",
        unit="s/B",
        side="map",
        parts=("spill_sort_s", LOGGED_SPILL),
        resource="processor",
        moves="measured there",
        typical=1e-9,
        text="sorting, for a byte of the map output",
    ),
    StatisticRow(
        name="local_write_s_per_byte",
        kind="machine cost",
        unit="s/B",
        side="map",
        parts=("spill_write_s", LOGGED_SPILL),
        resource="disk",
        moves="measured there",
        typical=6e-9,
        node_rates=frozenset({"buffered_write"}),
        text="writing a byte of a spill that waits for the disk",
    ),
    StatisticRow(
        name="local_write_s_per_early_byte",
        kind="machine cost",
        unit="s/B",
        side="map",
        parts=("spill_write_s", LOGGED_SPILL),
        resource="memory",
        moves="measured there",
        typical=6e-9,
        text="writing an early byte of a spill, which need not wait for the disk",
    ),
    StatisticRow(
        name="local_write_s_per_record",
        kind="machine cost",
        unit="s/record",
        side="map",
        parts=("spill_write_s", LOGGED_SPILL),
        resource="processor",
        moves="measured there",
        typical=1e-7,
        text="writing a record of a spill",
    ),
    StatisticRow(
        name="local_write_s_per_file",
        kind="machine cost",
        unit="s",
        side="map",
        parts=("spill_write_s", LOGGED_SPILL),
        resource="fixed",
        moves="measured there",
        typical=5e-3,
        text="opening and closing the file of a spill",
    ),
    StatisticRow(
        name="merge_s_per_byte",
        kind="machine cost",
        unit="s/B",
        side="both",
        parts=("map_merge_s", "inmem_merge_s", "ondisk_merge_s"),
        resource="disk",
        moves="measured there",
        typical=5e-9,
        text="merging a byte that waits for the disk",
    ),
    StatisticRow(
        name="merge_s_per_early_byte",
        kind="machine cost",
        unit="s/B",
        side="both",
        parts=("map_merge_s", "inmem_merge_s", "ondisk_merge_s"),
        resource="memory",
        moves="measured there",
        typical=5e-9,
        text="merging an early byte, which need not wait for the disk",
    ),
    StatisticRow(
        name="merge_cpu_s_per_record",
        kind="machine cost",
        unit="s/record",
        side="both",
        parts=("map_merge_s", "inmem_merge_s", "ondisk_merge_s"),
        resource="processor",
        moves="measured there",
        typical=3e-7,
        text="merging a record",
    ),
    StatisticRow(
        name="merge_s_per_file",
        kind="machine cost",
        unit="s",
        side="both",
        parts=("map_merge_s", "inmem_merge_s", "ondisk_merge_s"),
        resource="fixed",
        moves="measured there",
        typical=5e-3,
        text="opening and closing the file of a merge",
    ),
    StatisticRow(
        name="network_s_per_byte",
        kind="machine cost",
        unit="s/B",
        side="reduce",
        parts=("copy_s",),
        resource="network",
        moves="measured there",
        typical=1e-8,
        node_rates=frozenset({NETWORK_IN, NETWORK_OUT}),
        text="copying a byte of the map output, as it is sent",
    ),
    StatisticRow(
        name="network_s_per_segment",
        kind="machine cost",
        unit="s",
        side="reduce",
        parts=("copy_s",),
        resource="fixed",
        moves="measured there",
        typical=3e-3,
        text="asking for the output of a map",
    ),
    StatisticRow(
        name="hdfs_write_s_per_byte",
        kind="machine cost",
        unit="s/B",
        side="either",
        parts=("map_write_s", "reduce_write_s"),
        resource="disk",
        moves="measured there",
        typical=2e-8,
        node_rates=frozenset({"buffered_write"}),
        text="writing a byte to HDFS that waits for the disk",
    ),
    StatisticRow(
        name="hdfs_write_s_per_early_byte",
        kind="machine cost",
        unit="s/B",
        side="either",
        parts=("map_write_s", "reduce_write_s"),
        resource="memory",
        moves="measured there",
        typical=2e-8,
        text="writing an early byte to HDFS, which need not wait for the disk",
    ),
    StatisticRow(
        name="hdfs_copy_s_per_byte",
        kind="machine cost",
        unit="s/B",
        side="either",
        parts=("map_write_s", "reduce_write_s"),
        resource="network",
        moves="measured there",
        typical=1e-9,
        node_rates=frozenset({NETWORK_IN, NETWORK_OUT}),
        text="sending a byte to where its copy is kept, if HDFS keeps more than one",
    ),
    StatisticRow(
        name="hdfs_write_s_per_record",
        kind="machine cost",
        unit="s/record",
        side="either",
        parts=("map_write_s", "reduce_write_s"),
        resource="processor",
        moves="measured there",
        typical=3e-7,
        text="writing a record to HDFS",
    ),
    StatisticRow(
        name="hdfs_write_s_per_file",
        kind="machine cost",
        unit="s",
        side="either",
        parts=("map_write_s", "reduce_write_s"),
        resource="fixed",
        moves="measured there",
        typical=5e-2,
        text="opening and closing a file in HDFS",
    ),
    StatisticRow(
        name="computing",
        kind="machine cost",
        unit="",
        side="map",
        parts=("collect_s", "spill_sort_s", MAP_CPU),
        resource="processor",
        moves="measured there",
        text="how many times as long as by typical costs sorting and serialising take together",
    ),
)

# Beside which `computing` is measured where nothing is recorded: of maps whose functions do next to
# nothing.  They are typical for ever, and never fitted.
_PROCESSOR_TIMES = (
    StatisticRow(
        name="cpu_s_per_task",
        kind="processor time",
        unit="s",
        side="map",
        parts=(MAP_CPU,),
        resource="fixed",
        typical=0.14,
        text="processor time of a map, whatever it reads",
    ),
    StatisticRow(
        name="cpu_s_per_record",
        kind="processor time",
        unit="s/record",
        side="map",
        parts=(MAP_CPU,),
        resource="processor",
        typical=2e-6,
        text="processor time of a map for a record that it gives",
    ),
    StatisticRow(
        name="cpu_s_per_byte",
        kind="processor time",
        unit="s/B",
        side="map",
        parts=(MAP_CPU,),
        resource="processor",
        typical=5e-9,
        text="processor time of a map for a byte that it gives",
    ),
)

_FRAME = (
    StatisticRow(
        name="job_start_s",
        kind="frame",
        unit="s",
        side="job",
        resource="fixed",
        moves="measured there",
        equation="README section 9",
        text="submission to the first task's start",
    ),
    StatisticRow(
        name="job_end_s",
        kind="frame",
        unit="s",
        side="job",
        resource="fixed",
        moves="measured there",
        equation="README section 9",
        text="the last task's end to the job's",
    ),
    StatisticRow(
        name="map_start_s",
        kind="frame",
        unit="s",
        side="map",
        resource="fixed",
        moves="measured there",
        equation="README section 9",
        text="start of a map's JVM, up to its record loop",
    ),
    StatisticRow(
        name="map_end_s",
        kind="frame",
        unit="s",
        side="map",
        resource="fixed",
        moves="measured there",
        equation="README section 9",
        text="end of a map's JVM, behind its work",
    ),
    StatisticRow(
        name="reduce_start_s",
        kind="frame",
        unit="s",
        side="reduce",
        resource="fixed",
        moves="measured there",
        equation="README section 9",
        text="start of a reduce's JVM, up to its shuffle",
    ),
    StatisticRow(
        name="reduce_end_s",
        kind="frame",
        unit="s",
        side="reduce",
        resource="fixed",
        moves="measured there",
        equation="README section 9",
        text="end of a reduce's JVM, behind its work",
    ),
    StatisticRow(
        name="task_gap_s",
        kind="frame",
        unit="s",
        side="job",
        resource="fixed",
        moves="measured there",
        equation="README section 9",
        text="between two tasks of a slot",
    ),
    StatisticRow(
        name="reduce_gap_s",
        kind="frame",
        unit="s",
        side="reduce",
        resource="fixed",
        moves="measured there",
        equation="README section 9",
        text="between the last map's end and the first reduce's start",
    ),
)

# What a task takes in each phase of a job history beside all parts that have an equation.  Opening
# the input is in the frame's start of a map, and committing in its ends of tasks.
_FIXED = (
    StatisticRow(
        name="map_main_fixed_s",
        kind="fixed seconds",
        unit="s",
        side="map",
        resource="fixed",
        moves="as computing",
        equation="README section 11",
        text="a map's record loop beside reading, map function, collecting and blocking",
    ),
    StatisticRow(
        name="map_tail_fixed_s",
        kind="fixed seconds",
        unit="s",
        side="map",
        resource="fixed",
        moves="as computing",
        equation="README section 11",
        text="behind the record loop beside spills and merge: closing, renaming a single spill",
    ),
    StatisticRow(
        name="shuffle_fixed_s",
        kind="fixed seconds",
        unit="s",
        side="reduce",
        resource="fixed",
        moves="as computing",
        equation="README section 11",
        text="up to the last copy beside copying and merging: opening, asking, connecting",
    ),
    StatisticRow(
        name="sort_fixed_s",
        kind="fixed seconds",
        unit="s",
        side="reduce",
        resource="fixed",
        moves="as computing",
        equation="README section 11",
        text="last copy to reducer beside merging: closing the shuffle",
    ),
    StatisticRow(
        name="reduce_rest_fixed_s",
        kind="fixed seconds",
        unit="s",
        side="reduce",
        resource="fixed",
        moves="as computing",
        equation="README section 11",
        text="a reducer beside reading, reduce function and writing: opening its output",
    ),
)

# What SPN-GC needs of a job whose maps compute on a device.
_TEST_JOB = (
    StatisticRow(
        name="test_input_bytes",
        kind="test job",
        unit="B",
        side="map",
        equation="spn-gc (9)",
        text="bytes that the test job reads",
    ),
    StatisticRow(
        name="test_num_maps",
        kind="test job",
        unit="task",
        side="map",
        equation="spn-gc section 11",
        text="maps of the test job",
    ),
    StatisticRow(
        name="test_map_bytes",
        kind="test job",
        unit="B",
        side="map",
        equation="spn-gc (11)",
        text="bytes that its maps give, before they are combined",
    ),
    StatisticRow(
        name="test_map_spilled_records",
        kind="test job",
        unit="record",
        side="map",
        equation="spn-gc (11), errata S30",
        text="records that its maps spill for the first time",
    ),
    StatisticRow(
        name="test_map_output_bytes",
        kind="test job",
        unit="B",
        side="reduce",
        equation="spn-gc (12)",
        text="bytes that its reduces copy",
    ),
    StatisticRow(
        name="test_reduce_bytes",
        kind="test job",
        unit="B",
        side="reduce",
        equation="spn-gc (14)",
        text="bytes that its reduces write to HDFS",
    ),
    StatisticRow(
        name="load_s",
        kind="test job",
        unit="s",
        side="job",
        resource="fixed",
        equation="spn-gc (6)",
        text="its submission to the start of its first map",
    ),
    StatisticRow(
        name="map_gpu_s",
        kind="test job",
        unit="s",
        side="map",
        resource="device",
        equation="spn-gc (9)",
        text="all its kernels on the device",
    ),
    StatisticRow(
        name="gpu_block_bytes",
        kind="test job",
        unit="B",
        side="map",
        equation="spn-gc (8), (9)",
        text="bytes that are given to the device at once",
    ),
    StatisticRow(
        name="map_s",
        kind="test job",
        unit="s",
        side="map",
        resource="processor",
        equation="spn-gc (8)",
        text="a mapper's run, without reading, blocking and the device's steps",
    ),
    StatisticRow(
        name="reduce_s",
        kind="test job",
        unit="s",
        side="reduce",
        resource="processor",
        equation="spn-gc (14)",
        text="the reduce functions of all its reduces",
    ),
    StatisticRow(
        name="gpu_stand_in",
        kind="test job",
        unit="0 or 1",
        side="map",
        text="1 where the processor did the work of the device",
    ),
    StatisticRow(
        name="reduce_uses_gpu",
        kind="test job",
        unit="0 or 1",
        side="reduce",
        equation="spn-gc (14)",
        text="1 where reduces use the device, too",
    ),
    StatisticRow(
        name="gpu_h2d_bps",
        kind="test job",
        unit="B/s",
        side="map",
        resource="device",
        equation="spn-gc (8)",
        text="rate of copies to the device",
    ),
    StatisticRow(
        name="gpu_d2h_bps",
        kind="test job",
        unit="B/s",
        side="map",
        resource="device",
        equation="spn-gc (10)",
        text="rate of copies from the device",
    ),
    StatisticRow(
        name="gpu_mem_read_bps",
        kind="test job",
        unit="B/s",
        side="map",
        resource="device",
        equation="spn-gc (9)",
        text="rate at which the device reads its own memory",
    ),
    StatisticRow(
        name="gpu_open_s",
        kind="test job",
        unit="s",
        side="map",
        resource="device",
        text="opening the device, and its memory, once for each map",
    ),
)

_NODE_RATES = (
    StatisticRow(
        name="disk_read_bps",
        kind="rate",
        unit="B/s",
        side="job",
        resource="disk",
        equation="spn-gc (7), (8), (12), (13)",
        text="rate at which a node reads a file",
    ),
    StatisticRow(
        name="disk_write_bps",
        kind="rate",
        unit="B/s",
        side="job",
        resource="disk",
        equation="spn-gc (7), (10), (11), (12), (13), (14)",
        text="rate at which a node writes a file",
    ),
    StatisticRow(
        name="mem_read_bps",
        kind="rate",
        unit="B/s",
        side="job",
        resource="memory",
        equation="spn-gc (8), (11), (13), (14)",
        text="rate at which a core reads memory",
    ),
    StatisticRow(
        name="mem_write_bps",
        kind="rate",
        unit="B/s",
        side="job",
        resource="memory",
        equation="spn-gc (10), (13)",
        text="rate at which a core writes memory",
    ),
)

# Processor seconds of whole processes, beside which others have to run.
_PROCESSES = (
    StatisticRow(
        name="map_boot_cpu_s",
        kind="process",
        unit="s",
        side="map",
        resource="processor",
        moves="as computing",
        text="processor seconds of a map's process until main: launch script, start of the JVM",
    ),
    StatisticRow(
        name="reduce_boot_cpu_s",
        kind="process",
        unit="s",
        side="reduce",
        resource="processor",
        moves="as computing",
        text="processor seconds of a reduce's process until main: launch script, start of the JVM",
    ),
    StatisticRow(
        name="map_process_cpu_s",
        kind="process",
        unit="s",
        side="map",
        resource="processor",
        moves="as computing",
        text="processor seconds of a map's process, all of it",
    ),
    StatisticRow(
        name="reduce_process_cpu_s",
        kind="process",
        unit="s",
        side="reduce",
        resource="processor",
        moves="as computing",
        text="processor seconds of a reduce's process, all of it",
    ),
    StatisticRow(
        name="map_helper_cpu_s",
        kind="process",
        unit="s",
        side="map",
        resource="processor",
        moves="as computing",
        text="processor seconds of a map's threads without spans: compiler, garbage collector",
    ),
    StatisticRow(
        name="reduce_helper_cpu_s",
        kind="process",
        unit="s",
        side="reduce",
        resource="processor",
        moves="as computing",
        text="processor seconds of a reduce's threads without spans: compiler, garbage collector",
    ),
    StatisticRow(
        name="outside_cpu_s_per_job",
        kind="process",
        unit="s",
        side="job",
        resource="processor",
        moves="as computing",
        text="processor seconds outside of tasks for each job: its master and client, daemons",
    ),
    StatisticRow(
        name="outside_cpu_s_per_container",
        kind="process",
        unit="s",
        side="job",
        resource="processor",
        moves="as computing",
        text="processor seconds outside of tasks for each task's container: daemons",
    ),
)

_MACHINES = (
    StatisticRow(
        name="machine_cores",
        kind="machine",
        unit="core",
        side="job",
        moves="measured there",
        text="cores of a machine that runs tasks, whatever its nodes are limited to",
    ),
    StatisticRow(
        name="machine_nodes",
        kind="machine",
        unit="node",
        side="job",
        moves="measured there",
        text="workers that share one machine, and its cores",
    ),
)

STATISTICS: tuple[StatisticRow, ...] = (
    *_DATAFLOW, *_JOB_COSTS, *_TASK_TIMES, *_MACHINE_COSTS, *_PROCESSOR_TIMES, *_FRAME, *_FIXED,
    *_TEST_JOB, *_NODE_RATES, *_PROCESSES, *_MACHINES,
)  # fmt: skip


def rows_of(kind: Kind) -> Iterator[StatisticRow]:
    """Yield the rows of one *kind*, in their order."""
    return (row for row in STATISTICS if row.kind == kind)


JOB_COSTS: Mapping[str, StatisticRow] = MappingProxyType(
    {row.name: row for row in rows_of("job cost")}
)
TASK_TIMES: Mapping[str, StatisticRow] = MappingProxyType(
    {row.name: row for row in rows_of("task time")}
)
MACHINE_COSTS: Mapping[str, StatisticRow] = MappingProxyType(
    {row.name: row for row in rows_of("machine cost")}
)
# Rows by every name that a profile may hold, those of a side or of a codec too.
_OF_NO_PROFILE: tuple[Kind, ...] = ("machine cost", "processor time")


def _rows_by_name() -> dict[str, StatisticRow]:
    rows = dict[str, StatisticRow]()
    for row in STATISTICS:
        if row.kind not in _OF_NO_PROFILE:
            rows |= dict.fromkeys(row.names, row)
    return rows


IN_PROFILES: Mapping[str, StatisticRow] = MappingProxyType(_rows_by_name())


def typical_values(kind: Kind) -> dict[str, float]:
    """What is typical of each row of one *kind*, by name and in their order."""
    return {row.name: row.typical for row in rows_of(kind) if row.typical is not None}


def compressed_name(name: str) -> str:
    """Name of a task time of jobs that compress; `name` must be one that depends on a codec."""
    return TASK_TIMES[name].compressed_name


def costs_by_part() -> dict[str, tuple[str, ...]]:
    """What is worked on in each part of a task: a machine's costs of it, in their order."""
    typical = typical_values("machine cost")
    by_part = {}
    for part in TASK_PARTS:
        names = tuple(name for name in typical if part in MACHINE_COSTS[name].parts)
        if names:
            by_part[part] = names
    places = {name: place for place, name in enumerate(typical)}
    # Parts follow each other as their last costs do.
    return dict(sorted(by_part.items(), key=lambda item: places[item[1][-1]]))
