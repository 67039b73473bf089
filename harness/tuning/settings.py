"""
What is tuned: each setting with its range, its property, and the term of a model that it changes.

Names are the fields of `JobConfig`, and `split_bytes`, the most that a map reads.  To add one whose
field models read already: a row of `SETTINGS`, whose order is that in which a search draws.
"""

from __future__ import annotations

import math

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from harness.base.hadoop.properties import (
    JOB_PROPERTIES,
    SPLIT_LEAST,
    SPLIT_MOST,
    has_serial_heap,
    whole,
)
from harness.base.hadoop.slots import LARGEST_SORT_MB, largest_array_mb
from harness.base.records.prediction import Cluster, JobConfig, JobInput
from harness.base.units import MIB
from harness.tuning.learned import Learned, Numbers

Values: TypeAlias = dict[str, Numbers]  # of many configurations: an array for each field
Kind: TypeAlias = Literal["share", "count", "switch"]
Ends: TypeAlias = tuple[float, float]  # the least and the most of a range

SPLIT = "split_bytes"
SMALLEST_BYTES = 16 * MIB  # of a split or a partition that is worth a task
_OTHERS_MB = 32  # in the old generation of a map's heap, beside the sort buffer
COPIERS = (1, 2, 3, 5, 10, 20)

SWITCH = "map_output_compressed"


@dataclass(frozen=True)
class Setting:
    """A range of one setting, *low* to *high*; of counts equal ratios are equally far apart."""

    name: str
    low: float
    high: float
    kind: Kind = "share"

    def at(self, places: Numbers) -> Numbers:
        """Values at *places*, shares from 0 to 1 of the range."""
        if self.kind == "count":
            ends = math.log(self.low), math.log(self.high)
            values: Numbers = np.exp(ends[0] + places * (ends[1] - ends[0]))
        else:
            values = self.low + places * (self.high - self.low)
        return np.round(values, 3) if self.kind == "share" else np.rint(values)


@dataclass(frozen=True)
class Job:
    """
    A job to tune: as it is, with the sizes of its *files* and what its heap has room for.

    *properties* are all that it is run with, *can_compress* whether anything is known of codecs.
    *learned* has what measured settings say of a model, by its name.
    """

    configuration: JobConfig
    cluster: Cluster
    job_input: JobInput
    files: tuple[int, ...]
    properties: Mapping[str, str]
    can_compress: bool = False
    learned: Mapping[str, Learned] = field(default_factory=dict)

    @property
    def largest_split(self) -> int:
        """Bytes of the largest split: no file has more."""
        return max(self.files)

    @property
    def smallest_split(self) -> int:
        """Bytes of the smallest split that the job lets Hadoop make."""
        return whole(SPLIT_LEAST, self.properties.get(SPLIT_LEAST, "1"), least=0)

    @property
    def largest_sort_mb(self) -> int:
        """
        MiB of the largest sort buffer that a map's heap has room for, and Hadoop takes.

        One that fills the old generation leaves no room for what else a task keeps.
        """
        array_mb = largest_array_mb(self.properties)
        if not has_serial_heap(self.properties.get("mapreduce.map.java.opts", "")):
            array_mb *= 2 / 3  # whatever collector it is, its old generation has room for that
        return min(LARGEST_SORT_MB, max(1, math.ceil(array_mb) - 1 - _OTHERS_MB))

    def num_maps(self, split_bytes: Numbers) -> Numbers:
        """How many splits of at most *split_bytes* the files have, as `split_counts` counts."""
        split_bytes = np.maximum(split_bytes, self.smallest_split)
        counts = np.zeros(len(split_bytes))
        for size, number in zip(*np.unique(self.files, return_counts=True), strict=True):
            counts += number * (1 + np.maximum(0, np.ceil(size / split_bytes - 1.1 - 1e-9)))
        return counts

    def space(self) -> list[Setting]:
        """The ranges that a search takes; what has one value alone is left out."""
        settings = [
            Setting(name, *row.ends(self), row.kind)
            for name, row in SETTINGS.items()
            if row.matters(self)
        ]
        return [setting for setting in settings if setting.low < setting.high]


def _of_all(_job: Job) -> bool:
    return True


def _has_reduces(job: Job) -> bool:
    return bool(job.configuration.num_reduces)


def _can_compress(job: Job) -> bool:
    return job.can_compress


def _splits(job: Job) -> Ends:
    return min(max(SMALLEST_BYTES, job.smallest_split), job.largest_split), job.largest_split


def _sort_buffers(job: Job) -> Ends:
    return min(16, job.largest_sort_mb), job.largest_sort_mb


def _four_waves(job: Job) -> Ends:
    return 1, 4 * max(1, job.cluster.reduce_slots)


def _always(low: float, high: float) -> Callable[[Job], Ends]:
    """Ends of a range that is the same for all jobs."""
    return lambda _job: (low, high)


@dataclass(frozen=True)
class SettingRow:
    """Why a setting is tuned, its range for a job, and for which jobs it *matters* at all."""

    meaning: str
    ends: Callable[[Job], Ends]
    kind: Kind = "share"
    matters: Callable[[Job], bool] = _of_all


# By the field of `JobConfig`, which a property of `JOB_PROPERTIES` sets and models read.
SETTINGS: dict[str, SettingRow] = {
    SPLIT: SettingRow(
        "fewer and larger maps start less often; more of them overlap copying",
        _splits,
        "count",
    ),
    "sort_buffer_mb": SettingRow(
        "large enough for all that a map writes, it spills once and merges nothing",
        _sort_buffers,
        "count",
    ),
    "sort_spill_percent": SettingRow(
        "how full the sort buffer is before it spills",
        _always(0.5, 0.95),
    ),
    "merge_factor": SettingRow(
        "as many files as are merged at once need no pass in between",
        _always(5, 100),
        "count",
    ),
    "num_reduces": SettingRow(
        "each wave of reduces has its own start, and its own buffer",
        _four_waves,
        "count",
        _has_reduces,
    ),
    "parallel_copies": SettingRow(
        "copiers need only keep up with the maps; more switch between threads",
        _always(COPIERS[0], COPIERS[-1]),
        "count",
        _has_reduces,
    ),
    "shuffle_buffer_percent": SettingRow(
        "share of a reduce's heap that keeps what it copies",
        _always(0.3, 0.9),
        matters=_has_reduces,
    ),
    "shuffle_merge_percent": SettingRow(
        "how full that buffer is before it is merged to disk",
        _always(0.35, 0.95),
        matters=_has_reduces,
    ),
    "shuffle_segment_limit_percent": SettingRow(
        "a map output above that share goes to disk at once",
        _always(0.05, 0.3),
        matters=_has_reduces,
    ),
    "inmem_merge_segments": SettingRow(
        "so many map outputs are merged to disk, however small they are",
        _always(10, 3000),
        "count",
        _has_reduces,
    ),
    "reduce_buffer_percent": SettingRow(
        "share of the heap that keeps its input while it reduces",
        _always(0.0, 0.8),
        matters=_has_reduces,
    ),
    "reduce_slowstart": SettingRow(
        "reduces that start early copy beside maps, and hold slots",
        _always(0.0, 1.0),
        matters=_has_reduces,
    ),
    SWITCH: SettingRow(
        "less to write and copy, for time of the processor",
        _always(0, 1),
        "switch",
        _can_compress,
    ),
}


def properties_of(values: Mapping[str, float]) -> dict[str, str]:
    """Properties, as Hadoop reads them, of settings by their fields."""
    texts = {}
    for name, value in values.items():
        property_name = SPLIT_MOST if name == SPLIT else JOB_PROPERTIES[name][0]
        texts[property_name] = str(bool(value)).lower() if name == SWITCH else f"{value:.12g}"
    return texts


def columns(rows: Sequence[Mapping[str, float]]) -> Values:
    """*rows* that have the same fields, as an array for each."""
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}
