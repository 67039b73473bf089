"""What decides how many tasks of a job run at once, and the job without the limit that it sets."""

from __future__ import annotations

import math

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

from harness.base.documents.wording import count
from harness.base.hadoop.slots import KINDS
from harness.base.records.trace import TaskKind
from harness.clusters.workloads.resolved import ResolvedCell

Decider: TypeAlias = Literal["limit", "tasks", "memory", "slots"]

RUNNING_LIMITS: dict[TaskKind, str] = {
    "map": "mapreduce.job.running.map.limit",
    "reduce": "mapreduce.job.running.reduce.limit",
}
NO_LIMIT = "0"


class Decision(NamedTuple):
    """
    What decides how many tasks of a *kind* run *at_once*.

    The job's own *limit* of running tasks (0: none), its number of *tasks*, the memory of the nodes
    (they have room for *room* of *slots* tasks), or their slots.
    """

    kind: TaskKind
    limit: int
    tasks: int
    room: int
    slots: int

    @property
    def at_once(self) -> int:
        """Tasks that run at once."""
        return min(self.tasks, self.room, self.limit or self.room)

    @property
    def decider(self) -> Decider:
        """Which of them it is; of several that are alike the one that the job has anyway."""
        if 0 < self.limit < min(self.tasks, self.room):
            return "limit"
        if self.tasks <= self.room:
            return "tasks"
        return "memory" if self.room < self.slots else "slots"

    @property
    def text(self) -> str:
        """
        The same in words.

        >>> Decision("map", limit=2, tasks=8, room=10, slots=10).text
        'mapreduce.job.running.map.limit = 2 decides: 2 maps at once, of 8, on 10 slots'
        """
        tasks = count(self.tasks, self.kind)
        if self.decider == "limit":
            at_once = f"{count(self.limit, self.kind)} at once, of {self.tasks}"
            name = RUNNING_LIMITS[self.kind]
            return f"{name} = {self.limit} decides: {at_once}, on {count(self.room, 'slot')}"
        if self.decider == "tasks":
            return f"the number of {self.kind}s decides: {tasks} on {count(self.room, 'slot')}"
        if self.decider == "memory":
            room = f"{self.room} of {count(self.slots, 'slot')}"
            return f"the nodes' memory decides: it has room for {room}, for {tasks}"
        waves = count(math.ceil(self.tasks / self.room), "wave")
        return f"the slots decide: {tasks} on {count(self.room, 'slot')}, {waves}"

    def document(self) -> dict[str, Any]:
        """The decision as JSON has it."""
        return {
            "kind": self.kind,
            "decides": self.decider,
            "property": RUNNING_LIMITS[self.kind] if self.decider == "limit" else None,
            "at_once": self.at_once,
            "limit": self.limit or None,
            "tasks": self.tasks,
            "slots": self.room,
            "text": self.text,
        }


def lifted(cell: ResolvedCell) -> ResolvedCell:
    """*cell* whose job may run as many tasks at once as the cluster has room for."""
    unlimited = dict.fromkeys(RUNNING_LIMITS.values(), NO_LIMIT)
    return cell.configured({**cell.cell.configuration, **unlimited})


def decisions(cell: ResolvedCell) -> Iterator[Decision]:
    """Yield what decides how many maps run at once, and reduces if a job of *cell* has any."""
    configuration, with_limits, job_input = cell.model_inputs
    _, cluster, _ = lifted(cell).model_inputs
    node = cell.cell.cluster.node
    tasks = {"map": job_input.num_splits, "reduce": configuration.num_reduces}
    limited = {"map": with_limits.map_slots, "reduce": with_limits.reduce_slots}
    room = {"map": cluster.map_slots, "reduce": cluster.reduce_slots}
    slots = {"map": node.map_slots, "reduce": node.reduce_slots}
    for kind in KINDS:
        if not tasks[kind]:
            continue
        limit = limited[kind] if limited[kind] < room[kind] else 0
        all_slots = cell.cell.cluster.workers * slots[kind]
        yield Decision(kind, limit, tasks[kind], room[kind], all_slots)


def deciding_limits(cell: ResolvedCell) -> list[Decision]:
    """Those limits of the job itself that decide, if any."""
    return [decision for decision in decisions(cell) if decision.decider == "limit"]
