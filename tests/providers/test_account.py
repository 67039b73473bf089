"""
Tests for `harness.clusters.local.account`, and for the ways that `harness.clusters.node.account`
opens.
"""

import json
import os
import socket
import subprocess
import sys

from pathlib import Path

import pytest

from harness.base.errors import MachineError
from harness.clusters.local import account
from harness.clusters.node.account import closed_folder
from harness.clusters.node.supervise import Supervisor

PLAIN = {"uid": 65_530, "gid": 65_530}

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


class TestChoice:
    def test_root_runs_nothing_as_root(self, monkeypatch):
        """
        An account of its own with namespaces, without them one that every machine has.
        """
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr(account, "_has_account", lambda _: True)
        monkeypatch.setattr(account, "_NEEDED_CAPABILITIES", {})

        chosen = account.choose(flat=""), account.choose(flat="no namespaces")

        assert [one["uid"] for one in chosen] == [65_530, 65_534]

    def test_root_without_capabilities_is_refused(self, monkeypatch):
        """
        It could not change to another account, and is not to go on as root.
        """
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr(account, "_has_account", lambda _: True)
        monkeypatch.setattr(account, "_NEEDED_CAPABILITIES", {63: "OF_THE_FUTURE"})

        with pytest.raises(MachineError, match="root lacks the capabilities OF_THE_FUTURE"):
            account.choose(flat="")

    def test_the_only_user_of_a_namespace_stays_who_it_is(self, monkeypatch):
        """
        It is called root there, and is an ordinary user outside.
        """
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr(account, "_has_account", lambda _: False)

        assert account.choose(flat="") is None

    def test_a_user_without_an_entry_needs_namespaces(self, monkeypatch):
        """
        They bring an entry; without them Java's login would fail, much later.
        """
        monkeypatch.setattr(os, "geteuid", lambda: 54_321)

        assert account.choose(flat="") is None
        with pytest.raises(MachineError, match="user 54321 has no entry in /etc/passwd"):
            account.choose(flat="HARNESS_LOCAL_NETWORK=ports")


class TestWays:
    @pytest.mark.parametrize(
        ("mode", "owner", "closed"),
        [(0o700, 0, True), (0o701, 0, False), (0o710, 0, True), (0o500, 65_530, False)],
    )
    @as_root
    def test_the_mode_says_who_may_enter(self, tmp_path, mode, owner, closed):
        """
        The topmost closed folder is named: whatever is below it cannot be reached.
        """
        way = tmp_path / "way"
        (way / "below").mkdir(parents=True)
        os.chown(way, owner, owner)
        way.chmod(mode)
        expected = closed_folder(str(tmp_path), PLAIN) or (str(way) if closed else None)

        assert closed_folder(str(way / "below"), PLAIN) == expected

    @as_root
    def test_without_namespaces_a_closed_one_is_refused(self, tmp_path):
        """
        The error names the folder that is closed, and what it is on the way to.
        """
        closed = tmp_path / "closed"
        (closed / "home").mkdir(parents=True)
        closed.chmod(0o700)

        with pytest.raises(MachineError, match="their account cannot enter") as raised:
            account.require_ways([closed / "home"], PLAIN, flat="no namespaces")

        assert raised.value.where == str(closed / "home")
        assert account.require_ways([closed / "home"], PLAIN, flat="") is None

    @as_root
    def test_a_supervisor_asks_daemons_as_their_account(self):
        """
        On hosts they answer nobody else, root neither; the supervisor itself stays root.
        """
        with socket.create_server(("127.0.0.1", 0)) as server:
            daemon = {"key": "namenode", "web": server.getsockname()}
            plan = {"daemons": [daemon], "account": PLAIN}
            with Supervisor(plan).connect("namenode") as asked:
                owner = os.fstat(asked.fileno()).st_uid

        assert (owner, os.geteuid()) == (PLAIN["uid"], 0)

    @pytest.mark.process
    @as_root
    def test_what_is_needed_is_shown_and_nothing_beside_it(self, tmp_path):
        """
        Folders, files and where links lead, at their own paths, in one mount namespace alone.
        """
        closed = tmp_path / "closed"
        for name in ("needed/deep", "beside"):
            (closed / name).mkdir(parents=True)
        (closed / "needed" / "deep" / "text").write_text("deep")
        (closed / "agent").write_text("agent")
        (closed / "link").symlink_to(closed / "needed")
        closed.chmod(0o700)
        shown = [str(closed / name) for name in ("link", "agent")]
        program = (
            "import json, os, sys\n"
            "from harness.clusters.node.account import open_ways\n"
            "from harness.clusters.node.processes import drop_to\n"
            f"open_ways({shown}, {PLAIN})\n"
            f"drop_to({PLAIN})\n"
            f"os.chdir({str(closed)!r})\n"
            "names = ['link/deep/text', 'needed/deep/text', 'agent']\n"
            "texts = [open(name).read() for name in names]\n"
            "print(json.dumps([texts, sorted(os.listdir('.'))]))\n"
        )
        alone = ["unshare", "-m", "--propagation", "private", sys.executable, "-c", program]

        done = subprocess.run(alone, capture_output=True, text=True, check=True)

        assert json.loads(done.stdout) == [["deep", "deep", "agent"], ["agent", "link", "needed"]]
        assert sorted(p.name for p in closed.iterdir()) == ["agent", "beside", "link", "needed"]


@as_root
def test_a_cluster_folder_is_handed_over(tmp_path):
    """
    What daemons write is theirs; the folder itself can only be entered, by their group alone.
    """
    (tmp_path / "nodes" / "worker1").mkdir(parents=True)
    (tmp_path / "nodes" / "worker1" / "file").touch()
    (tmp_path / "nodes" / "link").symlink_to("/etc/passwd")
    (tmp_path / "plan.json").touch()

    account.hand_over(tmp_path, PLAIN, ["nodes", "logs"])

    paths = (tmp_path, *sorted(tmp_path.rglob("*")))
    owners = {str(p.relative_to(tmp_path)): p.lstat().st_uid for p in paths}
    assert owners == {
        ".": 0, "nodes": 65_530, "nodes/link": 65_530, "nodes/worker1": 65_530,
        "nodes/worker1/file": 65_530, "plan.json": 0,
    }  # fmt: skip
    assert (tmp_path.stat().st_mode & 0o777, Path("/etc/passwd").stat().st_uid) == (0o710, 0)


def test_entries_are_added_to_those_of_the_machine(tmp_path):
    """
    The machine's own are kept: files of theirs lie about.
    """
    account.add_entries(tmp_path)

    texts = [(tmp_path / name).read_text() for name in ("passwd", "group")]
    assert [text.partition(":")[0] for text in texts] == ["harness", "harness"]
    assert texts[0].endswith(Path("/etc/passwd").read_text())
