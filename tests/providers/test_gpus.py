"""
Tests for `harness.clusters.survey`.
"""

import json

from types import SimpleNamespace

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ClusterError
from harness.base.text import excerpt
from harness.base.units import MIB
from harness.clusters.host import Completed
from harness.clusters.survey import Devices, Gpu, find_devices, find_on, here

LISTED = """\
0, NVIDIA H100 80GB HBM3, 81559, 550.54.15
1, NVIDIA A100-PCIE, 40GB, 40960, 550.54.15
"""
LIBRARY = "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/libcuda.so.1\n"
H100 = Gpu("NVIDIA H100 80GB HBM3", 81559 * MIB, "550.54.15")
A100 = Gpu("NVIDIA A100-PCIE, 40GB", 40960 * MIB, "550.54.15")


def node(**outputs):
    """
    A node whose commands say *said*, by their names, and fail where nothing is given.
    """

    def run(argv):
        name = argv[0].replace("-", "_")
        return Completed(
            tuple(argv), 0 if name in outputs else 127, outputs.get(name, ""), "not found"
        )

    return run


@pytest.mark.parametrize(
    ("outputs", "devices"),
    [
        (
            {"nvidia_smi": LISTED, "ldconfig": LIBRARY},
            Devices((H100, A100), "/usr/lib/libcuda.so.1"),
        ),
        (
            {"nvidia_smi": f"Unable to determine the device handle\n{LISTED.splitlines()[1]}\n"},
            Devices((A100,), "", "Unable to determine the device handle"),
        ),
        ({"nvidia_smi": "No devices were found\n"}, Devices((), "", "No devices were found")),
        (
            {"find": "/dev/nvidia1\n/dev/nvidia0\n/dev/nvidiactl\n", "ldconfig": LIBRARY},
            Devices((Gpu("nvidia0"), Gpu("nvidia1")), "/usr/lib/libcuda.so.1", "not found"),
        ),
        ({"find": "/dev/nvidia0\n"}, Devices((), "", "not found")),
        ({}, Devices((), "", "not found")),
    ],
    ids=[
        "the driver's list", "one is lost", "an empty list", "device files",
        "files without a driver", "nothing",
    ],
)  # fmt: skip
def test_devices_of_a_node(outputs, devices):
    """
    The driver's tool describes them; without it, device files count where the driver's library is.
    """
    assert find_devices(node(**outputs)) == devices


def test_what_is_not_known_is_left_out():
    """
    Of a description in plain values, as a manifest has it.
    """
    assert Devices((A100, Gpu("nvidia1")), "/lib", "lost").described() == {
        "devices": [
            {
                "name": "NVIDIA A100-PCIE, 40GB", "memory_bytes": 40960 * MIB,
                "driver": "550.54.15",
            },
            {"name": "nvidia1"},
        ],
        "library": "/lib",
        "message": "lost",
    }  # fmt: skip


def test_a_node_whose_driver_hangs_has_none():
    """
    A tool that does not end says nothing of devices.
    """

    def hang(argv):
        raise ClusterError(f"{argv[0]} has not ended after 60 s")

    assert find_devices(hang).gpus == ()


@pytest.mark.parametrize("error", [ClusterError("it is gone"), FileNotFoundError("no such file")])
def test_a_host_that_cannot_be_reached_has_the_reason(error):
    """
    Its connection is refused, or there is no such command behind it.
    """

    def run(argv, timeout):
        raise error

    assert find_on(SimpleNamespace(run=run)) == Devices((), "", str(error))


@given(st.text(), st.lists(st.text() | st.from_regex(r"\d{0,12}"), max_size=7))
def test_any_answer_is_read(text, fields):
    """
    Whatever a tool prints, what is kept is short and has no character that moves a cursor.
    """
    listing = f"0, {text}, {', '.join(fields)}\n{text}"
    devices = find_devices(node(nvidia_smi=listing))
    texts = [devices.message]
    for gpu in devices.gpus:
        texts += [gpu.name, gpu.driver or ""]

    assert [excerpt(text, 300) for text in texts] == texts
    assert json.loads(json.dumps(devices.described())).keys() >= {"devices", "library"}


@pytest.mark.process
def test_a_missing_command_has_failed():
    """
    As in a shell, its status is 127.
    """
    assert here(["/no/such/command"]).status == 127
