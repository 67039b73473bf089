"""
From an experiment to its cells and trials.

An axis has one name everywhere (in `profile_on`, in labels, in reports): `workload`, `input`,
`seed`, `provider`, `workers`, `map_slots`, `reduce_slots`, `task_memory`, `gpus`, `cores`, `disk`,
`network`, `memory`, a workload's argument, or a Hadoop property.
"""

from __future__ import annotations

import itertools
import math
import re

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, NamedTuple

from harness.base.errors import SpecError
from harness.base.records.trial import (
    Cell,
    ClusterSpec,
    Hardware,
    NodeSpec,
    SshAccess,
    Trial,
    Versions,
    WorkloadSpec,
    digest,
)
from harness.base.units import format_bit_rate, format_bytes, format_rate, parse_bytes, parse_rate
from harness.core.experiment.drawn import require_drawn
from harness.core.experiment.model import UNLIMITED, Experiment, Predict, WorkloadAxes
from harness.core.experiment.sentinels import require_sentinels, with_sentinels

# Values of each axis, by part of the cell and name in it: a property's name may occur in two parts.
_Grid = dict[tuple[str, str], tuple[Any, ...]]
_Point = dict[tuple[str, str], Any]

_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?")
# How values are written; others stand for themselves.
_FORMATS = {
    "input": format_bytes, "task_memory": format_bytes,
    "disk": format_rate, "network": format_bit_rate, "memory": format_bytes,
}  # fmt: skip
# Last words of property names that say nothing alone.
_VAGUE = {"mb", "ms", "bytes", "limit", "enable", "enabled", "percent", "factor", "size", "max"}


def expand(experiment: Experiment) -> tuple[Cell, ...]:
    """
    All cells of the design, each once, in the order of the file; `SpecError`: far too many.

    Of a drawn design these are all that may be drawn, with those that feed the profiles.
    """
    if experiment.is_until_decided and not experiment.predict.is_blind:
        what = "repeat: until decided needs predictions to decide between"
        fix = "write predict with models, profile_on and order: blind"
        raise SpecError(what, where="repeat", fix=fix)
    if experiment.is_until_decided and experiment.fastest:
        what = "repeat: until decided chooses its cells by the verdict, not the fastest"
        raise SpecError(what, where="fastest", fix="leave it out, or write repeat: 3")
    require_sentinels(experiment)
    require_drawn(experiment)
    grids = [(workload, _grid(experiment, workload)) for workload in experiment.workloads]
    _refuse_size(experiment, [grid for _, grid in grids])
    cells = (_cell(experiment, workload, point) for workload, point in _points(experiment, grids))
    by_id = {cell.id: cell for cell in cells}
    _require_starts(experiment, by_id.values())
    return tuple(by_id.values())


def _grid(experiment: Experiment, workload: WorkloadAxes) -> _Grid:
    """The axes of *experiment* that cells of *workload* have."""
    cluster = experiment.cluster
    parts: dict[str, dict[str, tuple[Any, ...]]] = {
        "cluster": {"workers": cluster.workers},
        "node": {name: getattr(cluster.node, name) for name in NodeSpec.model_fields},
        "site": cluster.site,
        "workload": {"input_bytes": workload.input_bytes},
        "parameters": workload.parameters,
        "configuration": experiment.configuration,
    }
    grid: _Grid = {}
    for part, axes in parts.items():
        grid |= {(part, name): values for name, values in axes.items()}
    return grid


def _refuse_size(experiment: Experiment, grids: Sequence[_Grid]) -> None:
    """`SpecError` where *grids* have far too many cells or trials; none is made to count them."""
    count = experiment.design.points
    if count is None or experiment.is_drawn:
        count = sum(math.prod(map(len, grid.values())) for grid in grids)
    for number, most, noun in (
        (count, 10_000, "cells"),
        (count * experiment.first_repeats, 100_000, "trials"),
        (count * max(map(len, grids)), 1_000_000, "values in its cells"),
    ):
        if number > most:
            where = "workloads, configuration, cluster, repeat"
            fix = "shorten some lists, or take a part of the grid: design: {sobol: 32}"
            raise SpecError(f"the grid has more than {most} {noun}", where=where, fix=fix)


def is_profiling(cell: Cell, predict: Predict) -> bool:
    """
    Whether `profile_on` selects *cell*: its value is allowed on every axis named that it has.

    Values are compared by meaning: ``32 MiB`` is ``33554432``, ``1.0`` is ``1``.  With
    ``profile_on: auto`` it is whether the cell was chosen.
    """
    if predict.cells is not None:
        return cell.id in predict.cells
    values = axis_values(cell)
    for axis, allowed in predict.profile_on.items():
        if axis in values and meaning(values[axis]) not in map(meaning, allowed):
            return False
    return bool(predict.profile_on)


def order(experiment: Experiment, cells: Sequence[Cell], versions: Versions) -> tuple[Trial, ...]:
    """
    All trials in the order in which they are run.

    Grouped by cluster; within a group every cell once in random order, then every cell again in
    another.  The order is by a hash of the seed, so it is the same on every machine.  Where it is
    blind, all profiling cells come first; the cluster of the last of them goes on with its others.
    They are left out where the profiles are another run's.  Sentinels lie among the scored ones.
    With several `starts` clusters run in turn, each with a share of the repetitions: what differs
    between clusters is then not what differs between hours.
    """
    profiling = {cell.id for cell in cells if is_profiling(cell, experiment.predict)}
    groups: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.cluster.id, {})[cell.id] = cell

    def shuffled(ids: Iterable[str], repetition: int) -> list[str]:
        return sorted(ids, key=lambda name: digest([experiment.seed, repetition, name]))

    groups = {cluster: groups[cluster] for cluster in shuffled(groups, 0)}
    trials: list[Trial] = []
    for stage_clusters, stage_cells in _stages(experiment.predict, groups, profiling):
        for turn in _turns(experiment, stage_clusters):
            cells_there = groups[turn.cluster]
            chosen = turn.chosen(cells_there.keys() & stage_cells, profiling)
            trials += [
                Trial.of(cells_there[cell], turn.repetition, versions, profiling=cell in profiling)
                for cell in shuffled(chosen, turn.repetition)
            ]
    if experiment.sentinels and experiment.predict.is_blind:
        feeding = [cell for cell in cells if cell.id in profiling]
        trials = [*with_sentinels(trials, feeding, experiment, versions)]
    return tuple(trials)


class _Turn(NamedTuple):
    """A *repetition* on a *cluster*: of its profiling cells, of the others, or of both."""

    cluster: str
    repetition: int
    is_of_profiling: bool
    is_of_scored: bool

    def chosen(self, cells: AbstractSet[str], profiling: AbstractSet[str]) -> set[str]:
        """Those of *cells* that have this repetition, where *profiling* are the profiling ones."""
        chosen = set[str]()
        if self.is_of_profiling:
            chosen |= cells & profiling
        if self.is_of_scored:
            chosen |= cells - profiling
        return chosen


def _turns(experiment: Experiment, clusters: Sequence[str]) -> Iterator[_Turn]:
    """Yield each cluster with each of its repetitions, round by round."""
    rounds = zip(
        rounds_of(experiment.profiling_repeats, experiment.starts),
        rounds_of(experiment.first_repeats, experiment.starts),
        strict=True,
    )
    for (of_profile, of_score), cluster in itertools.product(rounds, clusters):
        for repetition in sorted({*of_profile, *of_score}):
            yield _Turn(cluster, repetition, repetition in of_profile, repetition in of_score)


def rounds_of(repeats: int, starts: int) -> list[range]:
    """
    The repetitions of each round, in which every cluster starts once.

    >>> rounds_of(3, 2)
    [range(0, 2), range(2, 3)]
    """
    ends = [-(-repeats * number // starts) for number in range(starts + 1)]
    return [range(first, last) for first, last in itertools.pairwise(ends)]


def _require_starts(experiment: Experiment, cells: Collection[Cell]) -> None:
    """`SpecError` where clusters cannot be started so often in turn."""
    starts = experiment.starts
    if starts == 1:
        return
    repeats = experiment.first_repeats
    if starts > repeats:
        what = f"{starts} starts need as many repeats: each cell has {repeats} to begin with"
        raise SpecError(what, where="starts", fix=f"write starts: {repeats}, or repeat: {starts}")
    if len({cell.cluster.id for cell in cells}) == 1:
        what = "starts spreads several clusters over the hours, and all cells run on one"
        fix = "leave it out, or give an axis of the cluster more values"
        raise SpecError(what, where="starts", fix=fix)


def _stages(
    predict: Predict, groups: Mapping[str, Mapping[str, Cell]], profiling: set[str]
) -> list[tuple[list[str], set[str]]]:
    """
    What is run before what: clusters in their order, with the cells that are then measured.

    *groups* are the cells by cluster, *profiling* the ids of those that feed the profiles.
    """
    clusters = [*groups]
    scored = set(itertools.chain.from_iterable(groups.values())) - profiling
    if predict.source:
        return [(clusters, scored)]
    if not predict.is_blind:
        return [(clusters, scored | profiling)]
    first = [cluster for cluster in clusters if profiling & groups[cluster].keys()]
    # The cluster that runs last in the first stage need not be started again for the second.
    following = sorted(clusters, key=lambda cluster: cluster not in first[-1:])
    return [(first, profiling), (following, scored)]


def axis_values(cell: Cell) -> dict[str, str | int | float]:
    """Value of *cell* on each axis, by the axis' name; a job's property hides the cluster's."""
    node = cell.cluster.node
    return {
        **cell.cluster.site,
        **cell.configuration,
        **cell.workload.parameters,
        "provider": cell.cluster.provider,
        "workers": cell.cluster.workers,
        "map_slots": node.map_slots,
        "reduce_slots": node.reduce_slots,
        "task_memory": node.task_memory_bytes,
        "gpus": node.gpus,
        "cores": node.cores or UNLIMITED,
        "disk": node.disk_bytes_per_s or UNLIMITED,
        "network": node.network_bytes_per_s or UNLIMITED,
        "memory": node.memory_bytes or UNLIMITED,
        "workload": cell.workload.name,
        "input": cell.workload.input_bytes,
        "seed": cell.workload.seed,
    }


def varying(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Names of the axes on which *cells* differ."""
    seen: dict[str, set[str]] = {}
    for cell in cells:
        for name, value in axis_values(cell).items():
            seen.setdefault(name, set()).add(str(value))
    return tuple(name for name, values in seen.items() if len(values) > 1)


def label(cell: Cell, axes: Collection[str]) -> str:
    """
    Short name of *cell* for people: its workload, and its values on *axes* (see `varying`).

    >>> work = WorkloadSpec(name="terasort", input_bytes=2**26)
    >>> reduces = {"mapreduce.job.reduces": "2"}
    >>> cell = Cell(cluster=ClusterSpec(), workload=work, configuration=reduces)
    >>> label(cell, ["workload", "input", "mapreduce.job.reduces"])
    'terasort 64 MiB reduces=2'
    """
    values = axis_values(cell)
    words = [cell.workload.name]
    if "input" in axes:
        words.append(format_bytes(cell.workload.input_bytes))
    for name in sorted(set(axes) & values.keys() - {"workload", "input"}):
        parts = name.split(".")
        short = name
        # The shortest end of a property's name that says which of *axes* it is.
        for start in range(len(parts) - 1, 0, -1):
            tail = ".".join(parts[start:])
            alike = sum(axis == tail or axis.endswith(f".{tail}") for axis in axes)
            if alike == 1 and tail not in _VAGUE:
                short = tail
                break
        words.append(f"{short}={readable(name, values[name])}")
    return " ".join(words)


def readable(axis: str, value: str | float) -> str:
    """
    *value* on *axis* for people: sizes and rates with their units.

    >>> readable("network", 12_500_000), readable("disk", "unlimited")
    ('100 Mbit/s', 'unlimited')
    """
    written = _FORMATS.get(axis)
    return written(value) if written and not isinstance(value, str) else str(value)


def limit_texts(limits: Hardware) -> list[str]:
    """Each of the *limits* of a node, for people."""
    texts: list[str] = []
    for field, limit in limits.limits().items():
        if limit is not None:
            axis = field.partition("_")[0]
            texts.append(f"{axis} {readable(axis, limit)}")
    return texts


def meaning(value: str | float) -> str | float:
    """
    Return what *value* stands for: a number (bytes where it is a size), or the text itself.

    >>> meaning("32 MiB"), meaning("1.0") == meaning(1), meaning("TRUE"), meaning("8 Mbit/s")
    (33554432, True, 'true', 1000000)
    """
    if not isinstance(value, str):
        return value
    for parse in (parse_bytes, parse_rate):
        with suppress(ValueError):
            return parse(value)
    text = value.strip()
    return float(text) if _NUMBER.fullmatch(text) else text.lower()


def _cell(experiment: Experiment, workload: WorkloadAxes, point: _Point) -> Cell:
    parts: dict[str, dict[str, Any]] = defaultdict(dict)
    for (part, name), value in point.items():
        parts[part][name] = value
    cluster = experiment.cluster
    return Cell(
        cluster=ClusterSpec(
            provider=cluster.provider,
            node=NodeSpec(**parts["node"]),
            site=parts["site"],
            nodes={name: Hardware(**node.limits()) for name, node in cluster.nodes.items()},
            hosts=cluster.hosts,
            ssh=None if cluster.ssh is None else SshAccess(**cluster.ssh.model_dump()),
            exposed=cluster.exposed,
            **parts["cluster"],
        ),
        workload=WorkloadSpec(
            name=workload.name,
            code=workload.code,
            seed=workload.seed,
            parameters=parts["parameters"],
            **parts["workload"],
        ),
        configuration=parts["configuration"],
        tracing=experiment.tracing,
    )


def _points(
    experiment: Experiment, grids: Sequence[tuple[WorkloadAxes, _Grid]]
) -> Iterator[tuple[WorkloadAxes, _Point]]:
    """
    All points of *grids*, or those that the design of *experiment* chooses.

    These are points of the unit cube, the workload as its first side, snapped to the axes' values.
    """
    if experiment.design.points is None or experiment.is_drawn:
        for workload, grid in grids:
            for values in itertools.product(*grid.values()):
                yield workload, dict(zip(grid, values, strict=True))
        return
    from scipy.stats import qmc

    varying_axes: set[tuple[str, str]] = set()
    for _, grid in grids:
        varying_axes.update(axis for axis, values in grid.items() if len(values) > 1)
    axes = sorted(varying_axes)
    count = experiment.design.points
    seed = experiment.seed
    if experiment.design.kind == "latin":
        rows = qmc.LatinHypercube(1 + len(axes), rng=seed).random(count)
    else:
        # Sobol points come in powers of two; the first of them are the most even.
        power = math.ceil(math.log2(count))
        rows = qmc.Sobol(1 + len(axes), rng=seed).random_base2(power)[:count]
    for row in rows.tolist():
        workload, grid = _snap(grids, row[0])
        chosen = dict(zip(axes, row[1:], strict=True))
        point = {axis: _snap(values, chosen.get(axis, 0.0)) for axis, values in grid.items()}
        yield workload, point


def _snap(values: Sequence[Any], share: float) -> Any:
    return values[min(int(share * len(values)), len(values) - 1)]
