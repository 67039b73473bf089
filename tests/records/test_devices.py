"""
Tests for `harness.records.trace`.
"""

import pytest

<<<<<<< HEAD:tests/records/test_device.py
from harness.records.trace import DEVICE_COUNTER, TASK_COUNTER, devices
=======
from harness.records.trace import devices
>>>>>>> c056ca0 (Manifest: a record, read and written by the store; controls of limited nodes are named as the field names them):tests/records/test_devices.py


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
