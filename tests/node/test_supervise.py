"""
Tests for the verbs `supervise`, `exec` and `dump` of the node agent, as processes here.
"""

import contextlib
import json
import os
import signal
import subprocess
import time

from pathlib import Path

import pytest

from tests.node_agent import node_agent

pytestmark = pytest.mark.process

PATIENCE_S = 30.0


def piece(content=b""):
    """
    Input as the leash reads it.
    """
    return len(content).to_bytes(4, "big") + content


@pytest.fixture
def leashed():
    """
    Starts commands on a leash; none outlives its test.
    """
    started = []

    def start(*argv, streams="two"):
        process = subprocess.Popen(
            node_agent("exec", streams, *argv),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()


def gone(pid):
    """
    Whether a process has ended, or does so soon.
    """
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


class TestLeash:
    def test_hands_input_on(self, leashed):
        """
        All input reaches the command, in pieces of any size, and then its end.
        """
        content = os.urandom(300_000)
        process = leashed("sha256sum")
        sent = piece() + b"".join(
            piece(content[i : i + 7000]) for i in range(0, len(content), 7000)
        )

        process.stdin.write(sent + piece())

        expected = subprocess.run(["sha256sum"], input=content, capture_output=True, check=True)
        assert process.stdout.read() == expected.stdout
        assert process.wait(timeout=PATIENCE_S) == 0

    def test_no_input_is_an_end_of_input(self, leashed):
        """
        Begin and end in one go: the command reads nothing, and does not wait for more.
        """
        process = leashed("cat")

        process.stdin.write(piece() + piece())

        assert process.wait(timeout=PATIENCE_S) == 0

    @pytest.mark.parametrize(
        ("argv", "status"),
        [
            (["sh", "-c", "exit 7"], 7),
            (["sh", "-c", "kill -TERM $$"], 128 + 15),
            (["/no/such/program"], 127),
            (["/etc/passwd"], 126),
        ],
        ids=["its own", "a signal's", "missing", "no program"],
    )
    def test_ends_as_the_command_does(self, leashed, argv, status):
        """
        The status is the command's, with the words of a shell for those that cannot run.
        """
        process = leashed(*argv)

        process.stdin.write(piece() + piece())

        assert process.wait(timeout=PATIENCE_S) == status

    @pytest.mark.parametrize(
        ("streams", "out", "err"),
        [("two", b"1\n3\n", b"2\n"), ("one", b"1\n2\n3\n", b"")],
    )
    def test_streams(self, leashed, streams, out, err):
        """
        Output and errors apart, or as one in the order in which they were written.
        """
        process = leashed("sh", "-c", "echo 1; echo 2 >&2; echo 3", streams=streams)

        process.stdin.write(piece() + piece())

        assert (process.stdout.read(), process.stderr.read()) == (out, err)

    def test_nothing_runs_before_it_is_told_to(self, leashed, tmp_path):
        """
        A connection that ends before the first piece starts nothing.
        """
        process = leashed("touch", tmp_path / "made")

        process.stdin.close()

        assert process.wait(timeout=PATIENCE_S) == 128 + signal.SIGKILL
        assert not (tmp_path / "made").exists()

    @pytest.mark.parametrize("sent", [piece(), piece() + piece()], ids=["input open", "ended"])
    def test_a_lost_connection_kills_the_group(self, leashed, sent):
        """
        Whether or not its input had ended, the command goes, and what it has started, too.
        """
        process = leashed("sh", "-c", "sleep 600 & echo $!; exec sleep 600")
        process.stdin.write(sent)
        child = int(process.stdout.readline())

        process.stdin.close()

        assert process.wait(timeout=PATIENCE_S) == 128 + signal.SIGKILL
        assert gone(child)

    def test_a_command_that_does_not_read_is_killed_as_well(self, leashed):
        """
        Input that nobody takes does not hide that the other side is gone.
        """
        process = leashed("sh", "-c", "echo here; exec sleep 600")
        process.stdin.write(piece())
        process.stdout.readline()
        os.set_blocking(process.stdin.fileno(), False)
        with contextlib.suppress(BlockingIOError):
            while process.stdin.write(piece(bytes(60_000))):
                time.sleep(0.001)

        process.stdin.close()

        assert process.wait(timeout=PATIENCE_S) == 128 + signal.SIGKILL

    def test_a_command_that_wants_no_more_input_goes_on(self, leashed):
        """
        Its input closed, it still ends as it likes.
        """
        process = leashed("sh", "-c", "exec <&-; sleep 0.2; echo done")

        process.stdin.write(piece() + piece(bytes(60_000)) + piece())

        assert process.stdout.read() == b"done\n"
        assert process.wait(timeout=PATIENCE_S) == 0


@pytest.fixture
def kept(tmp_path):
    """
    Starts a keeper of the daemons given as shell commands; it is ended with the test.
    """
    started = []

    def start(*, later=(), plan_fields=None, **commands):
        daemons = [
            {
                "key": key, "argv": ["sh", "-c", command], "env": {"PATH": os.environ["PATH"]},
                "cwd": str(tmp_path), "log": str(tmp_path / f"{key}.log"),
                "at_once": key not in later,
            }
            for key, command in commands.items()
        ]  # fmt: skip
        (tmp_path / "daemons").mkdir()
        plan = {
            "control": str(tmp_path / "control"), "deaths": str(tmp_path / "deaths"),
            "daemons_folder": str(tmp_path / "daemons"), "daemons": daemons, **(plan_fields or {}),
        }  # fmt: skip
        (tmp_path / "plan.json").write_text(json.dumps(plan))
        process = subprocess.Popen(
            node_agent("supervise", tmp_path / "plan.json"),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.terminate()
        process.wait(timeout=PATIENCE_S)
        process.stdout.close()


def until(condition):
    """
    The condition's first true value.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return value


class TestKeeper:
    def test_reports_who_has_ended_and_how(self, kept, tmp_path):
        """
        A death is a line in the file and on standard output; the others run on.
        """
        process = kept(stays="exec sleep 600", goes="exit 3", missing="exec /no/such/program")
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]

        assert sorted(lines, key=lambda line: line["key"]) == [
            {"key": "goes", "status": 3},
            {"key": "missing", "status": 127},
        ]
        assert [json.loads(s) for s in (tmp_path / "deaths").read_text().splitlines()] == lines
        assert [p.name for p in (tmp_path / "daemons").iterdir()] == ["stays"]

    def test_a_signal_is_negative(self, kept, tmp_path):
        """
        One that was killed is distinguished from one that gave up.
        """
        process = kept(victim="exec sleep 600")
        file = tmp_path / "daemons" / "victim"
        pid = until(lambda: file.exists() and file.read_text())

        os.kill(int(pid), signal.SIGKILL)

        assert json.loads(process.stdout.readline()) == {"key": "victim", "status": -9}

    def test_starts_what_it_is_told(self, kept, tmp_path):
        """
        What is not to start at once starts by a line; names that are not in the plan start nothing.
        """
        kept(later=["late"], early="exec sleep 600", late="touch started; exec sleep 600")
        until((tmp_path / "daemons" / "early").exists)
        before = (tmp_path / "started").exists()

        with (tmp_path / "control").open("w") as control:
            control.write("start nobody\nstart late\n")

        assert until((tmp_path / "started").exists)
        assert not before

    def test_ends_with_all_that_hangs_on_it(self, kept, tmp_path):
        """
        Told to end, it takes daemons, their children, and orphans in sessions of their own along.
        """
        process = kept(parent="setsid sleep 601 & echo $!; sleep 602 & echo $!; exec sleep 603")
        log = tmp_path / "parent.log"
        pids = until(lambda: log.exists() and len(s := log.read_text().split()) == 2 and s)

        process.terminate()

        assert process.wait(timeout=PATIENCE_S) == 0
        assert all(gone(pid) for pid in pids)


class TestLease:
    def test_its_end_ends_all(self, kept, tmp_path):
        """
        Without anybody who renews it, the supervisor ends its daemons and itself.
        """
        process = kept(plan_fields={"lease_s": 1}, parent="setsid sleep 601 & echo $!; sleep 600")
        log = tmp_path / "parent.log"
        orphan = until(lambda: log.exists() and log.read_text().strip())

        assert process.wait(timeout=PATIENCE_S) == 0
        assert gone(orphan)

    def test_it_is_renewed_by_a_line(self, kept, tmp_path):
        """
        The seconds count from the line on; a line that makes no sense renews nothing.
        """
        process = kept(plan_fields={"lease_s": 1}, stays="exec sleep 600")
        until((tmp_path / "daemons" / "stays").exists)
        with (tmp_path / "control").open("w") as control:
            control.write("renew 600\nrenew\nrenew -1\nrenew soon\n")

        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=2.0)

        with (tmp_path / "control").open("w") as control:
            control.write("renew 0\n")
        assert process.wait(timeout=PATIENCE_S) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
class TestAccount:
    def test_daemons_and_their_children_run_under_it(self, kept, tmp_path):
        """
        User, group and no other group; the supervisor stays who it is.
        """
        account = {"uid": 64_198, "gid": 64_199}
        kept(plan_fields={"account": account}, plain="sh -c 'id -u; id -g; id -G'; exec sleep 600")
        log = tmp_path / "plain.log"

        lines = until(lambda: log.exists() and len(s := log.read_text().split()) == 3 and s)

        assert lines == ["64198", "64199", "64199"]

    def test_a_command_under_it_ends_with_its_parent(self, tmp_path):
        """
        The change of account does not make the kernel forget whose end ends the command.
        """
        script = "id -u; echo $$; exec sleep 600"
        argv = node_agent("become", "64198", "64199", "sh", "-c", script)
        parent = subprocess.Popen(
            ["sh", "-c", 'setpriv --pdeathsig KILL -- "$@" & wait', "-", *argv],
            stdout=subprocess.PIPE,
        )
        account, child = parent.stdout.readline().strip(), int(parent.stdout.readline())

        parent.kill()
        parent.wait()
        parent.stdout.close()

        assert account == b"64198"
        assert gone(child)


def test_dumps_go_to_a_folder_that_is_made(tmp_path):
    """
    A file that is not wholly written names no daemon, and one that has ended gives no dump.
    """
    (tmp_path / "daemons").mkdir()
    (tmp_path / "daemons" / "datanode-worker1").write_text("2000000000")
    (tmp_path / "daemons" / "half-written").write_text("")
    alone = ["unshare", "-fp" if os.geteuid() == 0 else "-Ufpr", "--mount-proc"]

    subprocess.run(
        [*alone, *node_agent("dump", tmp_path / "daemons", tmp_path / "into")], check=True
    )

    assert list((tmp_path / "into").iterdir()) == []
