"""
What the kernel lets this user do.
"""

from harness.doctor import kernel


class TestKernel:
    """Namespaces, disks and links of nodes."""

    def test_refused_namespaces(self, shim):
        """
        Clusters get by without, and lose by it; a cure is told.
        """
        shim("unshare", "echo 'unshare: unshare failed: Operation not permitted' >&2; exit 1")

        found = kernel.namespaces()

        assert found.state == "note"
        assert "ports of the loopback address" in found.what
        assert found.fix

    def test_no_shaping(self, shim):
        """
        A kernel without the queue is a note: only limits of links need it.
        """
        shim("unshare", "echo 'Error: Specified qdisc kind is unknown.' >&2; exit 2")

        found = kernel.traffic_control()

        assert (found.state, found.fix) == ("note", "modprobe sch_tbf")

    def test_disks_of_nodes(self, monkeypatch):
        """
        What they take is named: commands by their packages, else the reason.
        """
        monkeypatch.setattr(kernel.namespace, "find_tool", lambda tool: None)
        without = kernel.node_disks()
        monkeypatch.setattr(kernel.namespace, "find_tool", lambda tool: f"/sbin/{tool}")
        monkeypatch.setattr(kernel.disks, "refusal", lambda: "only root makes disks")
        refused = kernel.node_disks()
        monkeypatch.setattr(kernel.disks, "refusal", lambda: "")

        assert (without.state, without.fix) == ("note", "apt-get install -y e2fsprogs mount")
        assert refused.what == "only root makes disks: disks of nodes cannot be limited"
        assert kernel.node_disks().state == "ok"
