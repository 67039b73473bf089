"""
Tests for `harness.clusters.state`.
"""

import os
import subprocess
import sys

from pathlib import Path

import pytest

from harness.base.errors import SpecError
from harness.clusters import state
from harness.clusters.local.supervisor import ClusterState
from harness.clusters.state import Process

pytestmark = pytest.mark.process


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    """
    No test sees the clusters of the user.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.fixture
def sleeper():
    """
    A process that does nothing until it is killed.
    """
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def saved(**fields):
    """
    The state of a cluster held by this very process.
    """
    me = Process.of(os.getpid())
    return ClusterState(name="c", home="/h", user_namespace=True, outer=me, **fields)


def refusing_below(folder):
    """
    A `Path.mkdir` that makes nothing anywhere else, as an ordinary user's.
    """
    make_really = Path.mkdir

    def make(path, mode=0o777, **options):
        if folder not in path.parents:
            raise PermissionError(path)
        return make_really(path, mode, **options)

    return make


class TestProcess:
    def test_kill_waits_for_the_end(self, sleeper):
        """
        After `kill` it does not run, and a second `kill` does nothing.
        """
        process = Process.of(sleeper.pid)
        alive = process.alive()
        process.kill()
        process.kill()

        assert (alive, process.alive()) == (True, False)

    def test_a_reused_process_id_is_another_process(self, sleeper):
        """
        Same number, other start time: not ours, and left alone.
        """
        now = Process.of(sleeper.pid)
        before = Process(now.pid, now.started - 1, now.boot)
        before.kill()

        assert (before.alive(), now.alive()) == (False, True)

    def test_a_process_id_of_another_boot_is_another_process(self, sleeper):
        """
        Start times count from the boot: after the next one they may meet again.
        """
        now = Process.of(sleeper.pid)
        before = Process(now.pid, now.started, "another boot")
        before.kill()

        assert (before.alive(), now.alive()) == (False, True)

    def test_a_process_id_without_a_process_is_an_error(self, sleeper):
        """
        There is nothing to speak about.
        """
        sleeper.kill()
        sleeper.wait()

        with pytest.raises(ProcessLookupError):
            Process.of(sleeper.pid)


class TestFolders:
    @pytest.mark.parametrize("name", ["", "..", "a/b", "-x", "a b", "x" * 65, "a\n", "\x1b"])
    def test_names_stay_in_their_folder(self, name):
        """
        A name is a word, or it is refused.
        """
        with pytest.raises(SpecError, match="not a valid name of a cluster"):
            state.cluster_folder(name)

    def test_a_name_is_a_folder_of_the_users_state(self, tmp_path):
        """
        Below `XDG_STATE_HOME`, as people expect.
        """
        expected = tmp_path / "mapreduce-harness" / "clusters" / "run-20261121T014500Z-0a1b"

        assert state.cluster_folder("run-20261121T014500Z-0a1b") == expected

    def test_a_relative_state_home_is_ignored(self, tmp_path, monkeypatch):
        """
        As the XDG rules have it: such a path is no path.
        """
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("XDG_STATE_HOME", "relative")
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        expected = tmp_path / ".local" / "state" / "mapreduce-harness" / "clusters"

        assert state.clusters_folder() == expected

    @pytest.mark.parametrize("user_home", [None, "", "/no/such/home"])
    def test_a_user_without_a_home_has_a_private_folder(self, tmp_path, monkeypatch, user_home):
        """
        As in containers that run under any number: no entry in passwd, no home of its own.
        """
        monkeypatch.setattr(state.tempfile, "gettempdir", lambda: str(tmp_path))
        monkeypatch.setattr(state.Path, "mkdir", refusing_below(tmp_path))
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        monkeypatch.delenv("XDG_STATE_HOME")
        monkeypatch.delenv("HOME") if user_home is None else monkeypatch.setenv("HOME", user_home)

        assert state.state_folder() == tmp_path / f"mapreduce-harness-{os.getuid()}"

    def test_a_state_of_root_is_not_behind_a_closed_home(self, tmp_path, monkeypatch):
        """
        Daemons run under a plain account, which cannot enter a home of mode 700.
        """
        folders = []
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr(os, "access", lambda *_: True)
        monkeypatch.setattr(state.Path, "mkdir", lambda path, **_: folders.append(path))
        monkeypatch.delenv("XDG_STATE_HOME")

        assert state.state_folder() == Path("/var/lib/mapreduce-harness") == folders[0]

    def test_falls_back_to_a_private_folder(self, tmp_path, monkeypatch):
        """
        Without a usable home the state lies in a temporary folder of this user alone.
        """
        (tmp_path / "file").touch()
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
        monkeypatch.setattr(state.tempfile, "gettempdir", lambda: str(tmp_path))
        folder = state.clusters_folder().parent

        assert folder == tmp_path / f"mapreduce-harness-{os.getuid()}"
        assert folder.stat().st_mode & 0o777 == 0o700

    def test_a_fallback_that_others_may_write_is_refused(self, tmp_path, monkeypatch):
        """
        Somebody may have prepared that folder: its files would decide what we kill.
        """
        (tmp_path / "file").touch()
        (tmp_path / f"mapreduce-harness-{os.getuid()}").mkdir(mode=0o777)
        (tmp_path / f"mapreduce-harness-{os.getuid()}").chmod(0o777)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
        monkeypatch.setattr(state.tempfile, "gettempdir", lambda: str(tmp_path))

        with pytest.raises(SpecError, match="not a folder of this user alone"):
            state.clusters_folder()

    def test_a_path_with_blanks_is_refused(self, tmp_path, monkeypatch):
        """
        Hadoop's start scripts would cut it.
        """
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "my state"))

        with pytest.raises(SpecError, match="XDG_STATE_HOME"):
            state.clusters_folder()

    def test_remove_tree_takes_protected_folders_too(self, tmp_path):
        """
        A task may have left anything: folders without permissions, links to elsewhere.
        """
        deep = tmp_path / "tree" / "a" / "b"
        deep.mkdir(parents=True)
        (deep / "file").touch()
        (tmp_path / "kept").touch()
        (deep / "link").symlink_to(tmp_path / "kept")
        (deep.parent / "closed").mkdir(mode=0o000)
        deep.chmod(0o500)

        state.remove_tree(tmp_path / "tree")
        assert [p.name for p in tmp_path.iterdir()] == ["kept"]


class TestClusterState:
    @pytest.fixture
    def folder(self):
        """
        The folder of the cluster.
        """
        folder = state.cluster_folder("c")
        folder.mkdir()
        return folder

    @pytest.mark.usefixtures("folder")
    def test_comes_back_as_it_was_saved(self):
        """
        What is loaded equals what was saved, with and without a first process inside.
        """
        me = Process.of(os.getpid())
        for cluster_state in (saved(), saved(inner=me, namespaces=({"net": 3, "uts": 4},))):
            cluster_state.save()

            assert ClusterState.load("c") == cluster_state

    @pytest.mark.parametrize("text", [None, "", "{", "[]", "{}", '{"name": "c"}', "7", "\0"])
    def test_a_damaged_file_is_no_state(self, folder, text):
        """
        Whatever stands in the file: then nothing is known, and nothing is killed.
        """
        if text is not None:
            (folder / "state.json").write_text(text)

        assert ClusterState.load("c") is None

    def test_alive_while_both_processes_are(self, sleeper):
        """
        Without the first process inside, or without the outer one, the cluster is gone.
        """
        inner = Process.of(sleeper.pid)
        cluster_state = saved(inner=inner)
        before = cluster_state.alive()
        inner.kill()

        assert (before, cluster_state.alive(), saved().alive()) == (True, False, True)
