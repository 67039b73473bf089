"""Which kind of device did the work of a job's maps, as their counters tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

CUDA, CPU = "cuda", "cpu"

# The group of the GPU jobs' own counters.
DEVICE_COUNTER = "mapreduce.harness.gpu.Device"

_COUNTERS = {CPU: f"{DEVICE_COUNTER}.DEVICE_CPU", CUDA: f"{DEVICE_COUNTER}.DEVICE_CUDA"}


def devices(tasks: Iterable[Mapping[str, int]]) -> tuple[str, ...]:
    """
    Kinds of device that *tasks*, each given by its counters, have used: none, one, or both.

    >>> devices([{f"{DEVICE_COUNTER}.DEVICE_CPU": 1}, {"Other.DEVICE_CUDA": 9}])
    ('cpu',)
    """
    seen = {k for task in tasks for k, counter in _COUNTERS.items() if task.get(counter, 0) > 0}
    return tuple(sorted(seen))
