"""
Tests for `harness.clusters.node.system`: what a node tells of itself.
"""

import json
import os
import shutil
import subprocess

from pathlib import Path

import pytest

from harness.clusters.node import system as module
from harness.clusters.node.system import disk, fields, hide, processor
from tests.node_agent import node_agent

PARTS = {
    "processor": {
        "model", "architecture", "sockets", "cores", "threads", "usable_threads", "caches",
        "microcode", "governor", "frequency_limits_hz", "numa_nodes",
    },
    "memory": {
        "total_bytes", "huge_pages", "huge_page_bytes", "transparent_huge_pages",
        "transparent_huge_pages_defrag", "swap_bytes", "swappiness",
    },
    "virtualisation": {"hypervisor_flag", "vendor", "product", "hypervisor", "container"},
    "control_groups": {"version", "limits"},
    "kernel": {"release", "version", "command_line", "clock_source"},
    "java": {"implementor", "implementor_version", "java_runtime_version", "java_version"},
}  # fmt: skip


@pytest.mark.process
def test_a_node_tells_what_it_is(tmp_path):
    """
    Every field is there, each text is a value or the reason for which there is none.
    """
    (tmp_path / "release").write_text('IMPLEMENTOR="Somebody"\nJAVA_VERSION="17.0.9"\n')
    answer = subprocess.run(
        node_agent("facts", "system", f"hdfs={tmp_path}/not/yet", "local=/proc"),
        env={"JAVA_HOME": str(tmp_path)}, capture_output=True, check=True,
    )  # fmt: skip
    facts = json.loads(answer.stdout)

    assert {part: set(facts[part]) for part in PARTS} == PARTS
    assert (facts["java"]["implementor"], facts["java"]["java_version"]) == ("Somebody", "17.0.9")
    assert facts["java"]["java_runtime_version"].startswith("not known: ")
    assert facts["processor"]["usable_threads"] == len(os.sched_getaffinity(0))
    assert facts["kernel"]["release"] == os.uname().release
    assert facts["network"]["lo"]["mtu"] > 1000
    total_kib = int(Path("/proc/meminfo").read_text().split()[1])
    assert facts["memory"]["total_bytes"] == total_kib * 1024
    device, size_bytes = (facts["disks"]["hdfs"][name] for name in ("device", "size_bytes"))
    if not device.startswith("not known: "):
        folder = Path("/sys/class/block", device.partition(" on ")[0])
        assert size_bytes == int((folder / "size").read_text()) * 512
    assert set(facts["disks"]) == {"hdfs", "local"}
    assert facts["disks"]["local"]["file_system"] == "proc"
    assert facts["disks"]["local"]["device"].startswith("not known: ")
    assert str(tmp_path) not in answer.stdout.decode()


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("quiet root=UUID=0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f ro", "quiet root=(left out) ro"),
        ("rd.lvm.lv=vg/root quiet", "rd.lvm.lv=(left out) quiet"),
        ("a=0A1B2C3D-0a1b-0a1b-0a1b-0a1b2c3d4e5f psi=1", "a=(left out) psi=1"),
        ("ip=10.0.0.2::10.0.0.1:255.0.0.0:box:eth0", "ip=(left out)"),
        ("enx0a1b2c3d4e5f", "(left out)"),
        ("systemd.hostname=box rd.luks.key=/k my.TOKEN=1,ro",
         "systemd.hostname=(left out) rd.luks.key=(left out) my.TOKEN=(left out),ro"),
        ("addr=box.example.org,vers=4", "addr=(left out),vers=4"),
        ("isolcpus=2-3 hugepages=512 size=123456789012k #1 SMP 10:20:30", None),
    ],
)  # fmt: skip
def test_what_identifies_a_machine_is_hidden(text, hidden):
    """
    And what a comparison needs stays.
    """
    assert hide(text) == (text if hidden is None else hidden)


def test_a_file_that_cannot_be_read_gives_the_reason(tmp_path):
    """
    In the place of its text; one without lines of the form has no fields.
    """
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "some").write_text('a : "1"\na : 2\nplain\n')

    assert module.read(tmp_path / "none") == "not known: none: No such file or directory"
    assert module.read(tmp_path / "empty") == "not known: empty is empty"
    assert fields(str(tmp_path / "some")) == {"a": "1", "plain": ""}


@pytest.fixture
def mounts(monkeypatch):
    """
    A function that puts its text in the place of the mounted file systems.
    """

    def put(text):
        real = module.read
        is_table = "mountinfo".__eq__
        monkeypatch.setattr(
            module, "read", lambda path: text if is_table(str(path)[-9:]) else real(path)
        )

    return put


def test_the_topmost_file_system_counts(mounts, tmp_path):
    """
    The last of those at the longest path; what options say of places is left out.
    """
    mounts(
        f"22 1 0:1 / / rw - ext4 /dev/none rw\n"
        f"23 1 0:9999 / {tmp_path.parent} rw - xfs /dev/none rw\n"
        f"24 1 0:9999 / {tmp_path} rw,noatime - overlay overlay rw,upperdir=/var/lib/x,xino=off\n"
        f"25 1 0:9999 / {tmp_path}-other rw - tmpfs none rw\n"
        "broken line\n"
    )

    facts = disk(tmp_path / "data")

    assert facts["file_system"] == "overlay"
    assert facts["mount_options"] == ["noatime", "rw", "upperdir=(left out)", "xino=off"]
    assert facts["device"] == "not known: overlay shows no disk here"
    assert facts["size_bytes"].startswith("not known: ")


@pytest.mark.parametrize("below", ["", "a"])
def test_of_two_at_one_place_the_last_counts(mounts, tmp_path, below):
    """
    Also for folders below that place; options that only look like places stay.
    """
    (tmp_path / "a").mkdir()
    mounts(
        f"23 1 0:9999 / {tmp_path} rw - xfs /dev/none rw\n"
        f"24 1 0:9999 / {tmp_path} rw - tmpfs none rw,errors=remount-ro\n"
        f"22 1 0:1 / / rw - ext4 /dev/none rw\n"
    )
    facts = disk(tmp_path / below)

    assert (facts["file_system"], facts["mount_options"]) == ("tmpfs", ["errors=remount-ro", "rw"])


def test_the_command_line_is_the_kernels_alone(monkeypatch):
    """
    What it hands on to the first process is not told.
    """
    line = "quiet psi=1 root=/dev/sda1 -- --addr 0.0.0.0 --key abc"
    monkeypatch.setattr(module, "read", lambda path: line if "cmdline" in str(path) else "")

    facts = module.system_facts({})
    assert facts["kernel"]["command_line"] == "quiet psi=1 root=(left out)"


def test_a_folder_on_no_file_system_says_so(mounts, tmp_path):
    """
    Rather than nothing, in each field.
    """
    mounts("")
    facts = disk(tmp_path)
    reason = "not known: no file system has this folder"

    assert (facts["file_system"], facts["mount_options"]) == (reason, [reason])
    assert all("not known: " in str(value) for value in facts.values())


def test_limits_of_groups_are_those_in_force(monkeypatch):
    """
    Our own and those above; what limits nothing is left out.
    """
    files = {
        "/proc/self/cgroup": "4:memory:/a/b\n1:cpu:/a\n0::/",
        "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "9223372036854771712",
        "/sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1073741824",
        "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "50000",
        "/sys/fs/cgroup/cpu/a/cpu.shares": "1024",
    }
    monkeypatch.setattr(module, "read", lambda path: files.get(str(path), "not known: gone"))

    limits = module.control_groups()["limits"]

    assert limits == ["memory.limit_in_bytes: 1073741824", "cpu.cfs_quota_us: 50000"]


def test_a_machine_without_topology_says_what_it_can(monkeypatch):
    """
    No field is left out, no number is made up.
    """
    monkeypatch.setattr(module, "read", lambda path: "not known: gone")
    facts = processor()

    assert set(facts) == PARTS["processor"]
    assert [facts[name] for name in ("model", "sockets", "cores", "microcode")] == [
        "not known: nothing here says it"
    ] * 4


@pytest.mark.process
def test_the_oldest_python_here_tells_the_same(tmp_path):
    """
    But for its own version.
    """
    argv = node_agent("facts", "system", f"hdfs={tmp_path}")
    others = filter(None, (shutil.which(f"python3.{minor}") for minor in range(6, 11)))
    answers = []
    for python in (argv[0], *others):
        done = subprocess.run([python, *argv[1:]], capture_output=True, text=True, check=False)
        if "command not found" not in done.stderr:  # a shim without its Python
            answers.append({**json.loads(done.stdout), "python": ""})

    assert answers == answers[:1] * len(answers)
