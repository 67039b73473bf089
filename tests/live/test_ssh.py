"""
Hosts that are reached by SSH: a real sshd in namespaces of this machine, and all that goes wrong.
"""

import hashlib
import os
import shlex
import socket
import subprocess
import threading
import time

import pytest

from harness.base.errors import ClusterError
from harness.base.records.trial import SshAccess
from harness.cli import main
from harness.clusters.collect import Source, collect
from harness.clusters.host import HostTimeoutError
from harness.clusters.ssh import connection as ssh_connection
from harness.clusters.ssh import host as ssh
from harness.clusters.ssh.connection import Connection, pins_file, trust
from harness.clusters.ssh.host import SshHost
from tests.live.agent import agent
from tests.live.bare_hosts import BareHosts, keygen
from tests.node_agent import node_agent_path

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("can_make_hosts")]

NASTY = [
    "",
    " ",
    "a b",
    "$HOME",
    "`id`",
    "$(id)",
    "'",
    '"',
    "\\",
    "\n",
    "*",
    "~",
    "; id",
    "é",
    "-n",
]


@pytest.fixture(scope="module")
def hosts():
    """
    A place for hosts, with one host in it.
    """
    with BareHosts() as made:
        made.add()
        yield made


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """
    A state folder of the test's own, short waits, and no agent.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setattr(ssh_connection, "CONNECT_S", 2.0)
    monkeypatch.setattr(ssh_connection, "BANNER_S", 2.0)


@pytest.fixture
def node(hosts):
    """
    The first host, trusted.
    """
    made = way_to(hosts.hosts[0], hosts.key)
    yield made
    made.connection.close()


def way_to(host, key, user="root", environment=None):
    """
    A host that has been vouched for.
    """
    trust(host.address, host.fingerprint)
    access = SshAccess(user=user, key=key and str(key))
    folder = "/root" if user == "root" else f"/home/{user}"
    return SshHost(
        host.name, host.address, folder, Connection(host.address, access), environment or {}
    )


def running(host, mark):
    """
    How many processes of a host have *mark* in their command lines.
    """
    commands = host.execute("ps", "-eo", "args").splitlines()
    return sum(mark in c and "harness: process group" not in c and "env" not in c for c in commands)


def await_none(host, mark):
    """
    Return when no process of a host has *mark* in its command line any more; seconds it took.
    """
    start = time.monotonic()
    while running(host, mark):
        assert time.monotonic() - start < 15
        time.sleep(0.1)
    return time.monotonic() - start


class TestKeys:
    def test_unknown_host_is_refused_with_the_command_that_trusts_it(self, hosts, capsys):
        """
        The command of the error pins the key; then the host is let in.
        """
        host = hosts.hosts[0]
        connection = Connection(host.address, SshAccess(key=str(hosts.key)))
        node = SshHost("n", host.address, "/root", connection)
        with pytest.raises(ClusterError, match="is not known") as refused:
            node.run(["true"])
        words = shlex.split(refused.value.fix.partition("fingerprint: ")[2])

        assert (words[0], main(words[1:]), node.run(["hostname"]).out) == ("harness", 0, "host1\n")
        connection.close()

    def test_changed_key_is_refused(self, hosts):
        """
        A host that shows another key than the pinned one is not talked to.
        """
        host = hosts.hosts[0]
        keygen(hosts.folder / "other")
        other = (hosts.folder / "other.pub").read_text()
        (hosts.folder / "other").unlink()
        pins_file().write_text(f"{host.address} {other}")
        connection = Connection(host.address, SshAccess(key=str(hosts.key)))

        with pytest.raises(ClusterError, match="has changed: it shows ") as refused:
            connection.open_channel()
        assert f"shows {host.fingerprint}, pinned is" in str(refused.value)

    def test_wrong_fingerprint_pins_nothing(self, hosts):
        """
        The error says which keys the host has.
        """
        host = hosts.hosts[0]

        with pytest.raises(ClusterError, match=r"it has .*ssh-ed25519"):
            trust(host.address, "SHA256:" + "A" * 43)

        assert not pins_file().exists()

    def test_locked_key_works_through_an_agent_alone(self, hosts, tmp_path, monkeypatch):
        """
        Without an agent the error names the command that loads the key.
        """
        host, key = hosts.hosts[0], tmp_path / "locked"
        key.write_bytes(hosts.key.read_bytes())
        key.chmod(0o600)
        change = ["ssh-keygen", "-q", "-p", "-P", "", "-N", "a long word", "-f", key]
        subprocess.run(change, check=True, capture_output=True)
        node = way_to(host, key)
        with pytest.raises(ClusterError) as refused:
            node.run(["true"])
        with agent(hosts.key, monkeypatch):
            let_in = node.run(["echo", "in"]).out
            node.connection.close()

        assert (refused.value.fix, let_in) == (f"ssh-add {key}", "in\n")


class TestCommands:
    def test_arguments_arrive_as_they_are(self, node):
        """
        No shell of the host makes anything of them.
        """
        done = node.run(["printf", r"%s\0", *NASTY])

        assert done.out.split("\0")[:-1] == NASTY

    def test_environment_and_input(self, hosts):
        """
        A command has the node's environment and what it is given to read.
        """
        node = way_to(hosts.hosts[0], hosts.key, environment={"WORD": "a 'b' $c"})
        given = os.urandom(3_000_000).hex().encode()

        done = node.run(["sh", "-c", 'printf "%s\n" "$WORD"; cat; echo no >&2; exit 3'], 60, given)
        node.connection.close()

        expected = ("a 'b' $c\n" + given.decode(), "no\n", 3)
        assert (done.out, done.err, done.status) == expected

    @pytest.mark.parametrize(
        ("argv", "status"),
        [(["true"], 0), (["no-such-command"], 127), (["sh", "-c", "kill -9 $$"], -9)],
    )
    def test_status(self, node, argv, status):
        """
        A status is the command's own, the signal's number below zero.
        """
        assert node.run(argv).status == status

    def test_slow_command_ends_with_its_children(self, hosts, node):
        """
        After the time-out nothing of it runs on the host.
        """
        with pytest.raises(HostTimeoutError, match="has not ended after 1 s"):
            node.run(["sh", "-c", "sleep 1111 & sleep 1111"], timeout=1)

        assert await_none(hosts.hosts[0], "sleep 1111") < 5

    def test_started_command_is_killed_with_its_children(self, hosts, node, tmp_path):
        """
        Its output is in the log; its end is that of a killed one.
        """
        log = tmp_path / "log"
        command = node.start(["sh", "-c", "echo out; echo err >&2; sleep 2222 & sleep 2222"], log)
        while len(log.read_bytes()) < 8:
            time.sleep(0.05)
        before = command.poll(), running(hosts.hosts[0], "sleep 2222") > 1
        command.kill()
        await_none(hosts.hosts[0], "sleep 2222")

        seen = (before, command.wait(5), sorted(log.read_text().split()))
        assert seen == ((None, True), -9, ["err", "out"])

    def test_pipes(self, node):
        """
        What is written to an open command comes back as it came; its end is told.
        """
        command = node.open(["sh", "-c", "cat; echo over >&2; exit 5"])
        sent = os.urandom(5_000_000)
        writer = threading.Thread(target=lambda: (command.stdin.write(sent), command.stdin.close()))
        writer.start()
        received = command.stdout.read()
        writer.join()

        seen = (received == sent, command.stderr.read(), command.wait(5))
        assert seen == (True, b"over\n", 5)

    def test_reader_that_has_gone_is_a_broken_pipe(self, node):
        """
        Writing to a command that has ended fails as with a process of this machine.
        """
        command = node.open(["true"])
        command.wait(5)

        with pytest.raises(BrokenPipeError):
            command.stdin.write(b"x" * 2**24)

    def test_many_at_once(self, node):
        """
        More commands than a server allows on one connection run beside each other.
        """
        commands = [node.open(["cat"]) for _ in range(25)]
        for number, command in enumerate(commands):
            command.stdin.write(b"%d" % number)
            command.stdin.close()

        assert [int(c.stdout.read()) for c in commands] == list(range(25))

    def test_noise_of_a_login_shell_is_no_output(self, hosts, node):
        """
        What a start-up file prints stands in no answer.
        """
        hosts.hosts[0].execute("sh", "-c", "echo 'echo hello; echo ho >&2' > /root/.bashrc")

        done = node.run(["echo", "answer"])
        hosts.hosts[0].execute("rm", "/root/.bashrc")

        assert (done.out, done.err) == ("answer\n", "")

    def test_files_go_and_come(self, node, tmp_path):
        """
        A relative name is in the node's own folder; names may be of any kind.
        """
        (tmp_path / "a").write_bytes(os.urandom(300_000))
        node.put(tmp_path / "a", "it's a file")
        checksum = node.run(["sha256sum", "/root/it's a file"]).out

        assert hashlib.sha256((tmp_path / "a").read_bytes()).hexdigest() in checksum


class TestFaults:
    @pytest.mark.long
    def test_more_than_a_gigabyte_in_one_go(self, node):
        """
        As the proof of a large sort reads it: all of it arrives, whoever changes keys meanwhile.
        """
        size = 1200 * 2**20
        command = node.open(["head", "-c", str(size), "/dev/zero"])

        received = sum(len(piece) for piece in iter(lambda: command.stdout.read(2**20), b""))

        assert (received, command.wait(10)) == (size, 0)

    def test_lost_connection(self, hosts, node, tmp_path):
        """
        Whoever waits gets an error; the command ends on the host; the next one connects again.
        """
        command = node.start(["sh", "-c", "sleep 3333 & sleep 3333"], tmp_path / "log")
        # One sshd ends with the other: `kill` may find it gone already.
        hosts.hosts[0].execute("sh", "-c", "kill -9 $(pgrep -f '^sshd: root@') || true")

        with pytest.raises(ClusterError, match="connection was lost"):
            command.wait(10)
        assert await_none(hosts.hosts[0], "sleep 3333") < 5
        assert node.run(["echo", "again"]).out == "again\n"

    def test_nobody_there(self, hosts):
        """
        An address without a machine.
        """
        connection = Connection(f"{hosts.net}.200", SshAccess())

        with pytest.raises(ClusterError, match=r"no answer within|cannot be reached"):
            connection.open_channel()

    def test_nothing_listens(self, hosts):
        """
        A machine without sshd on that port.
        """
        connection = Connection(hosts.hosts[0].address, SshAccess(port=2222))

        with pytest.raises(ClusterError, match="nothing listens"):
            connection.open_channel()

    def test_no_such_name(self):
        """
        A name that stands for no host.
        """
        with pytest.raises(ClusterError, match="no such host"):
            Connection("nobody.invalid", SshAccess()).open_channel()

    def test_silent_server(self):
        """
        Somebody takes the connection and says nothing.
        """
        with socket.create_server(("127.0.0.1", 0)) as server:
            connection = Connection("127.0.0.1", SshAccess(port=server.getsockname()[1]))
            start = time.monotonic()

            with pytest.raises(ClusterError, match="no greeting"):
                connection.open_channel()
        assert time.monotonic() - start < 10

    def test_password_is_asked_for(self, hosts):
        """
        The harness types none; the error says for which user the host asks.
        """
        sshd = "PasswordAuthentication yes\nPubkeyAuthentication no"
        node = way_to(hosts.add(sshd=sshd), hosts.key)

        with pytest.raises(ClusterError, match="asks root for a password") as refused:
            node.run(["true"])
        assert refused.value.fix.endswith(f"ssh-copy-id -p 22 root@{node.address}")

    def test_key_that_the_host_does_not_know(self, hosts):
        """
        The error names the key and the user.
        """
        node = way_to(hosts.add(authorized=False), hosts.key)

        complaint = f"accepts none of our keys: the key {hosts.key}, for"
        with pytest.raises(ClusterError, match=complaint):
            node.run(["true"])

    def test_account_without_a_shell(self, hosts):
        """
        What the host says instead stands in the error, without the escapes in it.
        """
        prepare = (
            r"sed -i '/^worker:/d' etc/passwd; echo 'worker:x:1234:1234::/:/bin/no' >> etc/passwd"
        )
        prepare += """; printf '#!/bin/sh\\necho "\\033[2Jgo away"\\n' > bin/no; chmod +x bin/no"""
        node = way_to(hosts.add(prepare=prepare), hosts.key, "worker")

        with pytest.raises(ClusterError, match=r"runs no command: \\x1b\[2Jgo away"):
            node.run(["true"])

    def test_endless_output_is_stopped(self, hosts, node, monkeypatch, tmp_path):
        """
        Neither memory nor disk of this machine is filled by a host that does not stop talking.
        """
        monkeypatch.setattr("harness.clusters.host.MOST_OUTPUT", 2**20)
        monkeypatch.setattr(ssh, "MOST_LOG", 2**20)
        with pytest.raises(ClusterError, match="has written more than 1048576 bytes"):
            node.run(["yes"])
        log = tmp_path / "log"

        status = node.start(["yes"], log).wait(30)
        await_none(hosts.hosts[0], "yes")

        assert (status, log.stat().st_size < 2**20 + 200) == (-9, True)

    def test_full_disk(self, hosts, tmp_path):
        """
        The error says so.
        """
        node = way_to(hosts.add(size="8m"), hosts.key)
        (tmp_path / "big").write_bytes(os.urandom(9_000_000))

        with pytest.raises(
            ClusterError, match=r"cannot write /root/big: .*No space left on device"
        ):
            node.put(tmp_path / "big", "big")
        node.connection.close()


class TestCollection:
    def test_logs_of_two_hosts_survive_cut_connections(self, hosts, tmp_path):
        """
        Connections that are killed again and again: every file is here in the end, and whole.
        """
        nodes = [way_to(host, hosts.key) for host in (hosts.hosts[0], hosts.add())]
        sums = {}
        for node in nodes:
            node.put(node_agent_path(), "node.pyz")
            write = (
                "mkdir -p logs/c1; for n in 1 2 3; do head -c 4M /dev/urandom > logs/c1/$n; done"
            )
            node.run(["sh", "-c", f"cd; {write}"])
            sums[node.name] = node.run(["sh", "-c", "cat /root/logs/c1/* | sha256sum"]).out[:64]
        over = threading.Event()

        def cut():
            for host in hosts.hosts * 2:
                if not over.wait(0.7):
                    host.execute("sh", "-c", "kill -9 $(pgrep -f '^sshd: root@') || true")

        cutter = threading.Thread(target=cut)
        cutter.start()
        sources = [Source(node, "/root/logs", tmp_path / node.name) for node in nodes]
        paths = collect(
            sources, lambda node: ["python3", "-I", "-S", f"{node.folder}/node.pyz", "pack"], r".*"
        )
        over.set()
        cutter.join()
        for node in nodes:
            node.connection.close()

        received = {
            node.name: hashlib.sha256(
                b"".join(p.read_bytes() for p in paths if p.is_relative_to(tmp_path / node.name))
            ).hexdigest()
            for node in nodes
        }
        assert received == sums
