"""
Tests for leases: whose a cluster is, what becomes of it when nobody answers for it, and what others
may do to it.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
import weakref

from pathlib import Path

import pytest

from harness import clusters as providers
from harness.base.errors import SpecError
from harness.cli import main
from harness.clusters import lease, state
from harness.clusters.state import NotOursError, Owner
from tests.node_agent import node_agent

pytestmark = pytest.mark.process

PROJECT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
AS_ROOT = [] if os.geteuid() == 0 else ["-Ur"]
# A harness that makes a cluster of no processes, says so, and lives until its input ends.
HARNESS = """
import os, signal, sys
from harness.clusters import lease, state
from harness.clusters.lease import Lease
own = Lease("c")
state.make_folder(state.cluster_folder("c"), "local")
own.record()
{then}
print("made", flush=True)
sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    """
    No test sees the clusters of the user.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))


@pytest.fixture
def start():
    """
    Starts a harness that has made a cluster; it is killed with the test.
    """
    with contextlib.ExitStack() as stack:

        def start_harness(*before, then=""):
            argv = [*before, sys.executable, "-c", HARNESS.format(then=then)]
            process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=PROJECT
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            stack.callback(process.stdout.close)
            stack.callback(process.stdin.close)
            assert process.stdout.readline() == b"made\n"
            return process

        yield start_harness


def until(condition):
    """
    The condition's first true value.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return value


def watchdogs(tmp_path):
    """
    Command lines of the watchdogs, and of what they have become, for clusters of this test.
    """
    lines = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            if b"watch" in words and any(str(tmp_path).encode() in word for word in words):
                lines.append(words)
    return lines


class TestWatchdog:
    def test_removes_the_cluster_of_a_killed_harness(self, start, tmp_path):
        """
        The pipe ends without a word: the ordinary removal runs, and nothing is left of either.
        """
        harness = start()
        watched = len(watchdogs(tmp_path))

        harness.stdin.close()

        assert harness.wait(PATIENCE_S) == -9
        assert until(lambda: not state.cluster_folder("c").exists())
        assert (watched, until(lambda: not watchdogs(tmp_path))) == (1, True)

    def test_a_removed_cluster_needs_none(self, start, tmp_path):
        """
        Whoever removes a cluster ends its watchdog, from any process.
        """
        start()

        assert providers.remove("c")
        assert until(lambda: not watchdogs(tmp_path))

    def test_a_cluster_of_nobody_lives_until_its_lease_ends(self, start, tmp_path):
        """
        Its harness may end; the lease can be renewed.
        """
        start(then=FREE)
        before = state.lease_s("c")
        lease.renew("c", 3, {})
        time.sleep(1.0)
        alive = state.cluster_folder("c").exists()

        assert until(lambda: not state.cluster_folder("c").exists())
        assert (0 < before <= 2, alive, until(lambda: not watchdogs(tmp_path))) == (True,) * 3

    @pytest.mark.parametrize(
        ("words", "lease_s", "becomes"),
        [(b"", 60, True), (b"end\n", 60, False), (b"free\n", 0, True), (b"free\n", None, False)],
        ids=["killed", "removed", "ended", "no lease"],
    )
    def test_becomes_the_removal_or_ends(self, tmp_path, words, lease_s, becomes):
        """
        Of a cluster that is gone nothing needs to be removed.
        """
        if lease_s is not None:
            lease.write_lease(tmp_path, lease_s, os.O_CREAT)
        argv = node_agent("watch", tmp_path, "/bin/echo", "removal")

        done = subprocess.run(argv, input=words, capture_output=True, check=False)

        assert (done.stdout == b"removal\n") == becomes

    def test_it_removes_no_cluster_but_its_own(self, start):
        """
        The name may be another's by now.
        """
        start()

        providers.remove_orphan("c", "another token")

        assert state.cluster_folder("c").exists()


FREE = "lease.renew('c', 2, {}); own.end(b'free\\n')"


class TestRenewal:
    def test_each_supervisor_hears_of_it(self, tmp_path, monkeypatch):
        """
        At once, and then again and again; one that cannot be reached keeps no other from it.  At
        the end nothing holds the pipes: closed files of the SSH library fail as garbage of a cycle.
        """
        monkeypatch.setattr(lease, "_RENEW_S", 0.01)
        written = []
        closed = []
        pipes = weakref.WeakSet()

        class Pipe:
            def write(self, line):
                written.append(line)
                pipes.add(self)

            def close(self):
                closed.append(id(self))

        def fail():
            raise BrokenPipeError("it has ended")

        held_lease = lease.Lease("c")
        state.make_folder(held_lease.folder, "local")
        held_lease.record()
        held_lease.keep_renewing({"worker1": Pipe, "worker2": fail})
        until(lambda: len(written) > 3)
        left_s = state.lease_s("c")
        providers.remove("c")
        held_lease.end()

        assert (set(written), len(closed), 50 < left_s <= 60) == ({b"renew 60\n"}, 1, True)
        assert list(pipes) == []

    def test_it_waits_for_the_supervisors_pipe(self, tmp_path):
        """
        A supervisor that is slow to start finds no file of ours in the place of its pipe.
        """
        path = tmp_path / "control"

        class Here:
            def open(self, argv):
                return subprocess.Popen(argv, stdin=subprocess.PIPE)

        with contextlib.closing(lease.HostControl(Here(), str(path))) as control:
            control.write(b"renew 60\n")
            time.sleep(0.3)
            was_made = path.exists()
            os.mkfifo(path)
            with path.open("rb") as pipe:
                assert (was_made, pipe.readline()) == (False, b"renew 60\n")

    def test_a_failure_is_reported_once(self, tmp_path, monkeypatch, capsys):
        """
        It is tried again all the same: hosts come back.
        """
        monkeypatch.setattr(lease, "_RENEW_S", 0.01)
        tries = []

        def fail():
            tries.append(1)
            raise BrokenPipeError("it has ended")

        held_lease = lease.Lease("c")
        held_lease.keep_renewing({"worker2": fail})
        until(lambda: len(tries) > 3)
        held_lease.end()

        assert capsys.readouterr().err == (
            "warning: the lease of cluster 'c' is not renewed: worker2: it has ended\n"
        )


def as_other_machine(tmp_path):
    """
    What makes a command one of a machine of another id that shares this home.
    """
    other_id = tmp_path / "machine-id"
    other_id.write_text("0123456789abcdef0123456789abcdef\n")
    bind = 'mount --bind "$0" /etc/machine-id && exec "$@"'
    alone = ["unshare", *AS_ROOT, "-m", "--propagation", "private"]
    return [*alone, "sh", "-c", bind, str(other_id)]


class TestElsewhere:
    @pytest.fixture(params=["container", "machine"])
    def elsewhere(self, request, start, tmp_path):
        """
        A harness of another process namespace, or of another machine, with a cluster in this home.
        """
        before = ["unshare", *AS_ROOT, "-mp", "--fork", "--mount-proc", "--kill-child"]
        if request.param == "machine":
            if not Path("/etc/machine-id").is_file():
                pytest.skip("this machine has no id that could be covered")
            before = as_other_machine(tmp_path)
        return request.param, start(*before)

    def test_what_is_alive_is_refused_by_name(self, elsewhere):
        """
        Neither removed nor replaced, nor adopted, whatever the number of its process means here.
        """
        kind, _ = elsewhere
        owner = Owner.of("c")
        expected = f"belongs to process {owner.process.pid} on {owner.host} \\(another {kind} with"

        for act in (lambda: providers.remove("c"), lambda: state.adopt("c")):
            with pytest.raises(NotOursError, match=expected):
                act()
        assert (owner.process.alive(), state.cluster_folder("c").exists()) == (False, True)

    def test_all_leaves_it_alone_and_says_so(self, elsewhere, capsys):
        """
        What is ours goes, the other stays: no error.
        """
        assert elsewhere
        state.make_folder(state.cluster_folder("ours"), "local")

        status = main(["cluster", "down", "--all"])

        lines = capsys.readouterr().err.splitlines()
        assert (status, state.known_names()) == (0, ["c"])
        assert [line[:34] for line in lines] == [
            "left alone: cluster 'c' belongs to", "cluster 'ours' is down",
        ]  # fmt: skip

    def test_what_is_orphaned_is_adopted(self, elsewhere, capsys):
        """
        Only by the word for it: its owner may be on a machine that merely sleeps.
        """
        _, process = elsewhere
        process.kill()
        process.wait()
        os.utime(state.cluster_folder("c") / "lease", (0, 0))

        refused = main(["cluster", "down", "--name", "c"])
        fix = capsys.readouterr().err.splitlines()[-1]
        adopted = main(["cluster", "down", "--name", "c", "--adopt"])

        assert (refused, adopted, state.known_names()) == (4, 0, [])
        assert fix == "  fix: harness cluster down --name c --adopt"


class TestOwner:
    def test_lists_whose_clusters_are(self, start, capsys):
        """
        With the seconds until each is removed.
        """
        process = start()

        assert main(["cluster", "list", "--json"]) == 0

        (listed,) = json.loads(capsys.readouterr().out)
        assert 0 < listed.pop("lease_s") <= 600
        assert listed == {
            "name": "c", "provider": "local",
            "owner": f"process {process.pid} on {os.uname().nodename}",
        }  # fmt: skip

    def test_a_token_that_others_may_read_is_refused(self, start):
        """
        With the command that closes it.
        """
        start()
        file = state.cluster_folder("c") / "owner.json"
        file.chmod(0o644)

        with pytest.raises(SpecError, match="can be read by others") as raised:
            providers.remove("c")
        file.chmod(0o600)

        assert raised.value.fix == f"chmod 600 {file}"

    @pytest.mark.parametrize("text", ["", "{}", '{"process": 1}', "\x00"])
    def test_a_damaged_file_keeps_nobody_from_removing(self, text):
        """
        As for a cluster of an older version, which has none.
        """
        state.make_folder(state.cluster_folder("c"), "local")
        (state.cluster_folder("c") / "owner.json").write_text(text)
        (state.cluster_folder("c") / "owner.json").chmod(0o600)

        assert providers.remove("c")
