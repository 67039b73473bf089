"""
What the machine itself has.
"""

import os

import pytest

from harness.doctor import machine


class TestDisk:
    """Room for results and clusters."""

    def test_no_room(self, tmp_path, monkeypatch):
        """
        Too little disk is a lack, with what to set.
        """
        monkeypatch.setattr(machine, "LEAST_DISK", 1 << 70)

        found = machine.disk(tmp_path)

        assert found.state == "lacking"
        assert "--results-dir" in found.fix

    def test_no_right_to_write(self, tmp_path, monkeypatch):
        """
        A folder of somebody else is a lack; nobody's bug.
        """
        monkeypatch.setattr(machine.os, "access", lambda *_: False)

        found = machine.disk(tmp_path / "results")

        assert (found.state, found.fix) == ("lacking", "choose another: --results-dir DIR")
        assert found.what.startswith(f"{tmp_path}/results, the place for results, is not")


class TestMemory:
    """Memory for a cluster."""

    def test_no_memory(self, monkeypatch):
        """
        A control group's limit counts where it is below the machine's memory.
        """
        monkeypatch.setattr(machine, "_memory_limit", lambda: 1 << 30)

        found = machine.memory()

        assert found.state == "lacking"
        assert found.what.startswith("1 GiB")


class TestCores:
    """Cores, and what else runs on them."""

    @pytest.mark.parametrize(("quota", "state"), [(None, "ok"), (0.5, "note")])
    def test_quota_of_a_control_group(self, monkeypatch, quota, state):
        """
        Half a core allowed is half a core, whatever the machine has.
        """
        monkeypatch.setattr(machine, "_cpu_quota", lambda: quota)
        monkeypatch.setattr(
            machine, "machine_facts", lambda: {"cores": 8, "cores_usable": 8, "cpu": "some"}
        )

        assert machine.cores().state == state

    @pytest.mark.parametrize(
        ("text", "cores"), [("max 100000\n", None), ("150000 100000\n", 1.5), ("", None)]
    )
    def test_reads_the_quota(self, monkeypatch, text, cores):
        """
        The kernel's own form of a quota, and its absence.
        """
        monkeypatch.setattr(machine, "_text", lambda _file: text)

        assert machine._cpu_quota() == cores

    def test_busy(self, monkeypatch):
        """
        What others run is a note: it disturbs, and stops nothing.
        """
        monkeypatch.setattr(os, "getloadavg", lambda: (1000.0, 0.0, 0.0))

        assert machine.load().state == "note"
