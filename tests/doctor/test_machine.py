"""
What the machine itself has.
"""

import os

import pytest

from harness.doctor import checks


class TestDisk:
    """Room for results and clusters."""

    def test_no_room(self, tmp_path, monkeypatch):
        """
        Too little disk is a lack, with what to set.
        """
        monkeypatch.setattr(checks, "LEAST_DISK", 1 << 70)

        finding = checks.check_disk(tmp_path)

        assert finding.state == "lacking"
        assert "--results-dir" in finding.fix

    def test_no_right_to_write(self, tmp_path, monkeypatch):
        """
        A folder of somebody else is a lack; nobody's bug.
        """
        monkeypatch.setattr(checks.os, "access", lambda *_: False)

        finding = checks.check_disk(tmp_path / "results")

        assert (finding.state, finding.fix) == ("lacking", "choose another: --results-dir DIR")
        assert finding.what == f"this user may not write {tmp_path}/results, where results go"


class TestMemory:
    """Memory for a cluster."""

    def test_no_memory(self, monkeypatch):
        """
        A control group's limit counts where it is below the machine's memory.
        """
        monkeypatch.setattr(checks, "memory_bytes", lambda: 1 << 30)

        finding = checks.check_memory()

        assert finding.state == "lacking"
        assert finding.what.startswith("1 GiB")


class TestCores:
    """Cores, and what else runs on them."""

    @pytest.mark.parametrize(("quota", "state"), [(None, "ok"), (0.5, "note")])
    def test_quota_of_a_control_group(self, monkeypatch, quota, state):
        """
        Half a core allowed is half a core, whatever the machine has.
        """
        monkeypatch.setattr(checks, "cpu_quota", lambda: quota)
        monkeypatch.setattr(
            checks, "machine_facts", lambda: {"cores": 8, "cores_usable": 8, "cpu": "some"}
        )

        assert checks.check_cores().state == state

    @pytest.mark.parametrize(
        ("text", "cores"), [("max 100000\n", None), ("150000 100000\n", 1.5), ("", None)]
    )
    def test_reads_the_quota(self, monkeypatch, text, cores):
        """
        The kernel's own form of a quota, and its absence.
        """
        monkeypatch.setattr(checks, "read_or_empty", lambda _file: text)

        assert checks.cpu_quota() == cores

    def test_busy(self, monkeypatch):
        """
        What others run is a note: it disturbs, and stops nothing.
        """
        monkeypatch.setattr(os, "getloadavg", lambda: (1000.0, 0.0, 0.0))

        assert checks.check_load().state == "note"


class TestKernel:
    """Namespaces, disks and links of nodes."""

    @pytest.mark.process
    def test_refused_namespaces(self, shim):
        """
        Clusters use ports instead; the fix is named.
        """
        shim("unshare", "echo 'unshare: unshare failed: Operation not permitted' >&2; exit 1")

        finding = checks.check_namespaces()

        assert finding.state == "note"
        assert "ports of the loopback address" in finding.what
        assert finding.fix

    @pytest.mark.process
    def test_no_shaping(self, shim):
        """
        A kernel without the queue is a note: only limits of links need it.
        """
        shim("unshare", "echo 'Error: Specified qdisc kind is unknown.' >&2; exit 2")

        finding = checks.check_traffic_control()

        assert (finding.state, finding.fix) == ("note", "modprobe sch_tbf")

    def test_disks_of_nodes(self, monkeypatch):
        """
        What they take is named: commands by their packages, else the reason.
        """
        monkeypatch.setattr(checks.namespace, "find_tool", lambda tool: None)
        without = checks.check_node_disks()
        monkeypatch.setattr(checks.namespace, "find_tool", lambda tool: f"/sbin/{tool}")
        monkeypatch.setattr(checks.kernel, "disks_refusal", lambda: "only root can make disks")
        refused = checks.check_node_disks()
        monkeypatch.setattr(checks.kernel, "disks_refusal", lambda: "")

        assert (without.state, without.fix) == ("note", "apt-get install -y e2fsprogs mount")
        assert refused.what == "only root can make disks: disks of nodes cannot be limited"
        assert checks.check_node_disks().state == "ok"
