"""
Tests for `harness.clusters.gpus`.
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.clusters.gpus import Devices, find_devices, here
from harness.clusters.host import Completed, printable
from harness.errors import ClusterError

LISTED = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-2)\n"
LIBRARY = "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/libcuda.so.1\n"


def node(**said):
    """
    A node whose commands say *said*, by their names, and fail where nothing is given.
    """

    def run(argv):
        name = argv[0].replace("-", "_")
        return Completed(tuple(argv), 0 if name in said else 127, said.get(name, ""), "not found")

    return run


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (
            {"nvidia_smi": LISTED, "ldconfig": LIBRARY},
            Devices(("NVIDIA H100 80GB HBM3",) * 2, "/usr/lib/libcuda.so.1"),
        ),
        (
            {"find": "/dev/nvidia1\n/dev/nvidia0\n/dev/nvidiactl\n", "ldconfig": LIBRARY},
            Devices(("nvidia0", "nvidia1"), "/usr/lib/libcuda.so.1", "not found"),
        ),
        ({"find": "/dev/nvidia0\n"}, Devices((), "", "not found")),
        ({}, Devices((), "", "not found")),
    ],
    ids=["the driver's list", "device files", "files without a driver", "nothing"],
)
def test_devices_of_a_node(said, found):
    """
    The driver's tool lists them; without it, device files count where the driver's library is.
    """
    assert find_devices(node(**said)) == found


def test_a_node_whose_driver_hangs_has_none():
    """
    A tool that does not end says nothing of devices.
    """

    def hang(argv):
        raise ClusterError(f"{argv[0]} has not ended after 60 s")

    assert find_devices(hang).names == ()


@given(st.text())
def test_any_answer_is_read(text):
    """
    Whatever a tool prints, names have no character that moves a terminal's cursor.
    """
    found = find_devices(node(nvidia_smi=f"GPU 0: {text}")).names

    assert [printable(name) for name in found] == list(found)


def test_a_missing_command_has_failed():
    """
    As in a shell, its status is 127.
    """
    assert here(["/no/such/command"]).status == 127
