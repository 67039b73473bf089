"""
What-If over a grid: `evaluation` for very many configurations at once.

`evaluate_grid` gives the numbers of `evaluation.evaluate` as arrays.  It goes through the grid in
blocks so small that a block's columns stay in the processor's cache, whatever the grid's size; the
configurations of a block take the same way through the equations, but that those of map-only jobs
go apart.

    `grid_inputs`                fields as columns, their checks, Eq. (1)
    `grid_map`, `grid_reduce`    equations with a case or a count, on columns
    `map_task`, `shuffle`, `reduce_task`, `evaluation`    all others: plain arithmetic
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np

from numpy.typing import NDArray

from harness.errors import ModelError
from harness.models.checks import range_error
from harness.models.columns import LARGEST_COUNT, Column
from harness.models.whatif import grid_map as gm
from harness.models.whatif import grid_reduce as gr
from harness.models.whatif import map_task as m
from harness.models.whatif import reduce_task as r
from harness.models.whatif import shuffle as sh
from harness.models.whatif.evaluation import (
    Flow,
    evaluate,
    map_counters,
    map_only_times,
    map_phases,
    map_slots,
    reduce_counters,
    reduce_phases,
    reduce_slots,
    too_large,
)
from harness.models.whatif.grid_inputs import Columns, Given, Grid, Rows, in_grid, read_grid
from harness.models.whatif.inputs import RULES, Costs, Job

# Configurations at once: some fifty columns of 64 KiB are in use together.
BLOCK = 8192


def evaluate_grid(
    statistics: Given,
    costs: Given,
    config: Given,
    cluster: Given,
    rules: str = "mr2",
    *,
    quantities: Iterable[str] = ("job_s",),
) -> dict[str, NDArray[np.float64]]:
    """
    The *quantities* asked for, by name: each an array with one value per configuration.

    Each field of the four mappings is one value or an array (or list) of n values; with no array n
    is 1.  The values are those of `evaluate` for each configuration (counts and flags as floats),
    NaN where that answer does not have the quantity, as the reduce side of a map-only job.
    `quantity_names` lists what can be asked for.  What `evaluate` warns of is not told.

    ``ModelError`` as from `evaluate`, with the number of the first configuration that is refused;
    also where counts, spills among them, are so many (2**53) that floats do not tell them apart.
    """
    asked = dict.fromkeys(quantities)
    if unknown := [name for name in asked if name not in quantity_names()]:
        raise ModelError(
            f"{unknown[0]!r} is no quantity of the model",
            where="what-if grid",
            fix="ask for numbers that `evaluate` answers, such as job_s",
        )
    grid = read_grid(statistics, costs, config, cluster, rules)
    answer = {name: np.full(grid.size, np.nan) for name in asked}
    with np.errstate(all="ignore"):  # 0/0 in cases not taken; what is left of it, `_refuse` finds
        for rows in _blocks(grid):
            found = _evaluated(grid, rows, asked.keys())
            for name in asked.keys() & found.keys():
                answer[name][rows] = found[name]
    return answer


@cache
def quantity_names() -> frozenset[str]:
    """Every number that `evaluate` answers under some rules; of a list there is no column."""
    names: set[str] = set()
    for rules in RULES:
        for reduces in (0, 1):
            config = {"num_maps": 1, "num_reduces": reduces}
            names |= evaluate(
                {"input_record_bytes": 1.0}, {}, config, {"num_nodes": 1}, rules
            ).keys()
    return frozenset(names - {"warnings", "disk_file_units"})


def dataflow(job: Job) -> Flow | m.MapFlow:
    """Dataflow of the jobs' tasks; of map-only jobs the map function's alone."""
    flow = m.map_flow(job)
    if np.all(job.config.num_reduces == 0):
        return flow
    spills = gm.spills(flow, job)
    merge = gm.map_merge(spills, job)
    segments = sh.segments(merge, job)
    files = gr.shuffle_files(segments, job)
    disk = gr.disk_merges(files, job)
    eviction = gr.eviction(segments, files, disk, job)
    steps = gr.later_steps(segments, files, disk, eviction, job)
    reduce = r.reduce_flow(segments, files, job)
    return Flow(flow, spills, merge, segments, files, disk, eviction, steps, reduce)


def quantities_of(flow: Flow | m.MapFlow, job: Job) -> Columns:
    """Every quantity that is no time, by name."""
    waves = {"map_waves": _waves(job.config.num_maps, map_slots(job), job)}
    if isinstance(flow, m.MapFlow):
        written = flow.map_out_bytes * job.statistics.output_compression_ratio
        return {
            **vars(flow),
            "map_hdfs_bytes_read": job.config.split_bytes,
            "map_hdfs_bytes_written": written,
            **waves,
            "reduce_waves": 0,
        }
    waves["reduce_waves"] = _waves(job.config.num_reduces, reduce_slots(job), job)
    stages: Columns = {}
    for stage in vars(flow).values():
        stages |= {k: v for k, v in vars(stage).items() if v is not None}
    return stages | map_counters(flow, job) | reduce_counters(flow, job) | waves


def times(flow: Flow | m.MapFlow, job: Job, c: Costs) -> Columns:
    """Every time in seconds, by name; setup and cleanup under mr2 rules only (W04)."""
    if isinstance(flow, m.MapFlow):
        tasks: Columns = dict(map_only_times(flow, job, c))
    else:
        tasks = map_times(flow, job, c) | reduce_times(flow, job, c)
    if job.mr2:
        own = c.setup_cpu_s + c.cleanup_cpu_s
        tasks |= {k: tasks[k] + own for k in ("map_task_s", "reduce_task_s") if k in tasks}
        tasks |= {"setup_cpu_s": c.setup_cpu_s, "cleanup_cpu_s": c.cleanup_cpu_s}
    return tasks | job_times(tasks, job)


def map_times(flow: Flow, job: Job, c: Costs) -> Columns:
    """Phases of map tasks."""
    spill = gm.spill_s(flow.spills, job, c)
    return map_phases(flow, job, c, spill, gm.map_final_merge_s(flow.spills, flow.merge, job, c))


def reduce_times(flow: Flow, job: Job, c: Costs) -> Columns:
    """Phases of reduce tasks."""
    return reduce_phases(flow, job, c, gr.inmem_merge_s(flow.segments, flow.files, job, c))


def job_times(tasks: Columns, job: Job) -> Columns:
    """Map stage, reduce stage and job, Eqs. (92) to (94): the stages one after the other (W35)."""
    maps = _stage_s(job.config.num_maps, tasks["map_task_s"], map_slots(job), job)
    if "reduce_task_s" not in tasks:
        return {"maps_s": maps, "reduces_s": 0.0, "job_s": maps}
    reduces = _stage_s(job.config.num_reduces, tasks["reduce_task_s"], reduce_slots(job), job)
    return {"maps_s": maps, "reduces_s": reduces, "job_s": maps + reduces}


def _stage_s(tasks: Column, task_s: Column, slots: Column, job: Job) -> Column:
    """Eqs. (92) and (93): fractions of a wave as printed, whole waves under mr2 rules (W34)."""
    return np.ceil(tasks / slots) * task_s if job.mr2 else tasks * task_s / slots


def _waves(tasks: Column, slots: Column, job: Job) -> Column:
    return np.ceil(tasks / slots) if job.mr2 else tasks / slots


def _blocks(grid: Grid) -> Iterator[Rows]:
    """Configurations of one block after the other, map-only jobs apart."""
    reduces = grid.config["num_reduces"]
    for start in range(0, grid.size, BLOCK):
        block = slice(start, start + BLOCK)
        some = reduces[block] > 0 if reduces.size > 1 else reduces > 0
        if some.all() or not some.any():
            yield block
        else:
            yield start + np.flatnonzero(some)
            yield start + np.flatnonzero(~some)


def _evaluated(grid: Grid, rows: Rows, asked: Iterable[str]) -> Columns:
    """Times of some configurations, and the other quantities if one is *asked* for."""
    job, costs = grid.job(rows)
    flow = dataflow(job)
    answer = times(flow, job, costs)
    _refuse(grid, rows, flow, answer["job_s"])
    return answer if answer.keys() >= set(asked) else quantities_of(flow, job) | answer


def _refuse(grid: Grid, rows: Rows, flow: Flow | m.MapFlow, job_s: Column) -> None:
    """Raise for the first configuration whose time is not finite, or whose spills are too many."""
    infinite = ~np.isfinite(job_s)
    if infinite.any():
        error = too_large()
        raise ModelError(error.what, where=_where(grid, rows, infinite))
    if isinstance(flow, m.MapFlow):
        return
    spills: Column = flow.spills.num_spills
    many = spills > LARGEST_COUNT
    if many.any():
        wanted = "within 2**53, where a grid's counts end"
        raise range_error("num_spills", spills[many][0].item(), wanted, _where(grid, rows, many))


def _where(grid: Grid, rows: Rows, bad: Column) -> str:
    return in_grid("what-if", np.arange(grid.size)[rows][bad.argmax()])
