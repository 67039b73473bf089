"""
Tests for `harness.records.device`.
"""

import pytest

from harness.records.device import devices


@pytest.mark.parametrize(
    ("tasks", "kinds"),
    [
        ([], ()),
        ([{"TaskCounter.SPILLED_RECORDS": 4}, {"Device.BLOCKS": 2}], ()),
        ([{"Device.DEVICE_CPU": 0}], ()),
        ([{"Device.DEVICE_CPU": 1}, {}], ("cpu",)),
        ([{"Device.DEVICE_CUDA": 1}, {"Device.DEVICE_CUDA": 1}], ("cuda",)),
        ([{"Device.DEVICE_CUDA": 1}, {"Device.DEVICE_CPU": 1}], ("cpu", "cuda")),
    ],
)
def test_kinds_of_device(tasks, kinds):
    """
    A counter above 0 tells the kind; a task without one used no device.
    """
    assert devices(tasks) == kinds
