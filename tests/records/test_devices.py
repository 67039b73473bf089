"""
Tests for `harness.base.records.trace`.
"""

import pytest

from harness.base.records.trace import DEVICE_COUNTER, TASK_COUNTER, devices


@pytest.mark.parametrize(
    ("tasks", "kinds"),
    [
        ([], ()),
        ([{f"{TASK_COUNTER}.SPILLED_RECORDS": 4}, {f"{DEVICE_COUNTER}.BLOCKS": 2}], ()),
        ([{f"{DEVICE_COUNTER}.DEVICE_CPU": 0}], ()),
        ([{f"{DEVICE_COUNTER}.DEVICE_CPU": 1}, {}], ("cpu",)),
        ([{f"{DEVICE_COUNTER}.DEVICE_CUDA": 1}, {f"{DEVICE_COUNTER}.DEVICE_CUDA": 1}], ("cuda",)),
        (
            [{f"{DEVICE_COUNTER}.DEVICE_CUDA": 1}, {f"{DEVICE_COUNTER}.DEVICE_CPU": 1}],
            ("cpu", "cuda"),
        ),
    ],
)
def test_kinds_of_device(tasks, kinds):
    """
    A counter above 0 tells the kind; a task without one used no device.
    """
    assert devices(tasks) == kinds
