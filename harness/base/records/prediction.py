"""
What a model is asked, and what it answers.

Field names of `JobConfig` and `Cluster` are those of ``docs/models/README.md``, section 3.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from harness.base.records.trial import SCHEMA_VERSION, Hardware, Record, SchemaVersion


class JobConfig(Record):
    """
    What the models read of a job's configuration (sizes in bytes, but the sort buffer in MiB).

    Defaults are Hadoop 3's; `harness.base.hadoop.properties.job_config` makes it from properties.
    """

    num_reduces: int = 1
    sort_buffer_mb: int = 100
    sort_spill_percent: float = 0.80
    sort_record_percent: float = 0.05
    merge_factor: int = 10
    combine_min_spills: int = 3
    inmem_merge_segments: int = 1000
    shuffle_buffer_percent: float = 0.70
    shuffle_merge_percent: float = 0.66
    shuffle_segment_limit_percent: float = 0.25
    reduce_buffer_percent: float = 0.0
    reduce_heap_bytes: int = 858993459
    reduce_slowstart: float = 0.05
    parallel_copies: int = 5
    use_combiner: bool = False
    map_output_compressed: bool = False
    output_compressed: bool = False
    input_compressed: bool = False


class Cluster(Record):
    """
    The cluster as models see it: nodes, and the slots that are *effective* on each.

    *nodes* is what each worker is limited to, in their order; it is empty where none is.  Cores of
    the machine itself are in profiles: `machine_cores`, and how many workers share them.
    """

    num_nodes: PositiveInt
    map_slots_per_node: PositiveInt
    reduce_slots_per_node: int
    map_slots: PositiveInt
    reduce_slots: int
    nodes: tuple[Hardware, ...] = ()


class JobInput(Record):
    """
    Input of a job: stored bytes, number of files, number of splits, mean bytes of a split.

    *replication* is that of its blocks.  *gpu_block_bytes* are given to a device at once, by map
    functions that compute on one; 0 of all others.
    """

    input_bytes: int
    num_files: int
    num_splits: int
    split_bytes: float
    replication: PositiveInt = 3
    gpu_block_bytes: NonNegativeInt = 0


class TaskSpan(Record):
    """One task in a predicted timeline; seconds from the start of the job."""

    task: str
    kind: Literal["map", "reduce"]
    start_s: float
    end_s: float


class Prediction(Record):
    """
    Times that a model gives for a cell, before it is measured.

    A model gives *body_s*, a job without its frame (tasks without start and end of their JVMs;
    overlap and waves by the model's own rules), or *job_s*, one whole job with starts, gaps and
    closure, or both; and *published_s*, what the paper's own formula says of the job.  A body alone
    is lent *frame_s*, what passes around tasks, the same for all (`harness.models.frame`).

    In a stored prediction *job_s* is of a trial: of all its *jobs*, each as long as the model says,
    or *body_s* + *frame_s*.  *makespan_s* is the same from the first task's start to the last one's
    end, known with a frame, *each_job_s* one of several jobs; all else is of one job.  *job_s* is
    `None` where the model is not applicable, or no frame is known for its body (*not_applicable*
    names what is missing).

    *phases* are seconds per task under the specification's names;
    *measurable* are the same seconds summed to what a job history shows (`map_main_s`,
    `map_tail_s`, `shuffle_s`, `sort_s`, `reduce_rest_s`).  *dataflow* holds every other
    intermediate quantity by name.  *parts* are seconds per task of single equations, by the names
    that recordings have for them (`harness.observe.profiling.phases`).  *estimates* are further
    bodies
    (`scheduler_separate_s`, ...).  These, the times of tasks and *timeline* are of the body.
    *code* and *profile* are SHA-256 of the sources that the model ran, and of the stored profile.

    *refits* are the `body_s` and `job_s` of a trial, all its jobs, by each of the profile's refits
    (`None`: no answer).  *intervals* are where its measured mean lies by jackknife+ over them, low
    and high by quantity and level (``80``, ``90`` %), `None` where that is unbounded: for that
    level too few cells were profiled, or too many refits have no answer.

    *repeats_s* are the `job_s` by each of the profile's repeats.

    *in_sample_miss* is by how much the model misses the jobs of the profiling trials with the
    profile that was fitted to them: predicted less measured over measured, mean over the profiled
    cells of the workload, at reference speed.  It is known before anything is scored.  `None` where
    the model has no answer there, of a profile of another machine, and in older predictions.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    model: str
    cell: str = ""
    body_s: float | None = None
    published_s: float | None = None
    frame_s: float | None = None
    job_s: float | None = None
    makespan_s: float | None = None
    jobs: float = 1.0
    each_job_s: float | None = None
    map_task_s: float | None = None
    reduce_task_s: float | None = None
    map_waves: float | None = None
    reduce_waves: float | None = None
    phases: dict[str, float] = Field(default_factory=dict)
    measurable: dict[str, float] = Field(default_factory=dict)
    parts: dict[str, float] = Field(default_factory=dict)
    dataflow: dict[str, float | int | bool | list[int]] = Field(default_factory=dict)
    estimates: dict[str, float] = Field(default_factory=dict)
    timeline: tuple[TaskSpan, ...] = ()
    warnings: tuple[str, ...] = ()
    not_applicable: tuple[str, ...] = ()
    refits: dict[str, tuple[float | None, ...]] = Field(default_factory=dict)
    repeats_s: tuple[float | None, ...] = ()
    intervals: dict[str, dict[str, tuple[float, float] | None]] = Field(default_factory=dict)
    in_sample_miss: float | None = None
    code: str = ""
    profile: str = ""
