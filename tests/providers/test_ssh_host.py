"""
Tests for `harness.clusters.ssh.host` against a server of SSH on the loopback.
"""

import base64
import hashlib
import os
import subprocess
import sys
import threading
import time

from pathlib import Path

import pytest

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from harness.base.errors import ClusterError
from harness.base.records.trial import SshAccess
from harness.clusters.collect import Source, collect
from harness.clusters.host import HostTimeoutError
from harness.clusters.ssh import host as ssh_host
from harness.clusters.ssh.connection import Connection, trust
from harness.clusters.ssh.host import SshHost
from tests.node_agent import node_agent

pytestmark = pytest.mark.process

SERVER = str(Path(__file__).with_name("ssh_server.py"))


@pytest.fixture
def keys(tmp_path, monkeypatch):
    """
    Keys of a client and of a host, and a state folder of the test's own.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    for name in ("client", "host"):  # without ssh-keygen, which a bare machine lacks
        key = Ed25519PrivateKey.generate()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        (tmp_path / name).write_bytes(private)
        (tmp_path / name).chmod(0o600)
        (tmp_path / f"{name}.pub").write_bytes(public + b" key of a test\n")
    return tmp_path


@pytest.fixture
def server(keys):
    """
    A server, as a process.

    It must never run the program `kill`: that of procps 4.0.2 ends all processes where it is to
    end a group.
    """
    program = keys / "bin" / "kill"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {keys}/program-was-run\n")
    program.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, SERVER, keys],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"},
    )  # fmt: skip
    with process:
        process.port = int(process.stdout.readline())
        yield process
        process.kill()
    assert not (keys / "program-was-run").exists()


@pytest.fixture
def host(server, keys):
    """
    The host behind it, trusted.
    """
    content = base64.b64decode((keys / "host.pub").read_text().split()[1])
    digest = base64.b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    trust("127.0.0.1", f"SHA256:{digest}", server.port)
    access = SshAccess(port=server.port, key=str(keys / "client"))
    connection = Connection("127.0.0.1", access)
    yield SshHost("worker1", "127.0.0.1", str(keys), connection, {"WORD": "a 'b' $c"})
    connection.close()


def lives(pid):
    """
    Whether a process lives, of the number that a file holds.
    """
    path = Path("/proc", pid.read_text().strip(), "stat")
    return path.exists() and path.read_text().rpartition(")")[2].split()[0] != "Z"


def await_true(condition, within_s=10):
    """
    Return when *condition* is true; a failure when that takes too long.
    """
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_input_output_environment_and_status(host):
    """
    All of a command's facts arrive, large as they may be.
    """
    given = os.urandom(1_000_000).hex()

    done = host.run(
        ["sh", "-c", 'printf "%s\n" "$WORD"; cat; echo no >&2; exit 3'], 30, given.encode()
    )

    assert (done.out == "a 'b' $c\n" + given, done.err, done.status) == (True, "no\n", 3)


def test_arguments_arrive_as_they_are(host):
    """
    No shell makes anything of them.
    """
    words = ["", " ", "$HOME", "`id`", "'", '"', "\\", "\n", "*", "; id", "é", "-n"]

    assert host.run(["printf", r"%s\0", *words]).out.split("\0")[:-1] == words


def test_command_that_takes_too_long_ends_with_its_children(host, tmp_path):
    """
    The error gives the limit.
    """
    with pytest.raises(HostTimeoutError, match="has not ended after 1 s"):
        host.run(["sh", "-c", f"sleep 99 & echo $! > {tmp_path}/pid; sleep 99"], timeout=1)

    await_true(lambda: not lives(tmp_path / "pid"))


def test_killed_command_ends_with_its_children(host, tmp_path):
    """
    Its output is in the log; its status is that of a killed process.
    """
    log = tmp_path / "log"
    script = f"sleep 99 & echo $! > {tmp_path}/pid; echo out; echo err >&2; sleep 99"
    command = host.start(["sh", "-c", script], log)
    await_true(lambda: len(log.read_bytes()) == 8)
    running = command.poll()
    command.kill()

    assert (running, command.wait(5), sorted(log.read_text().split())) == (None, -9, ["err", "out"])
    await_true(lambda: not lives(tmp_path / "pid"))


def test_lost_connection_ends_the_command_on_its_host(host, server, tmp_path):
    """
    Whoever waits gets an error; the watcher beside the command ends it with its children.
    """
    script = f"sleep 99 & echo $! > {tmp_path}/pid; sleep 99"
    command = host.start(["sh", "-c", script], tmp_path / "log")
    await_true((tmp_path / "pid").exists)
    server.kill()
    server.wait()  # the watcher takes a process that nobody has waited for as living

    with pytest.raises(ClusterError, match="connection was lost"):
        command.wait(10)
    await_true(lambda: not lives(tmp_path / "pid"))


def test_pipes_carry_what_is_written(host):
    """
    Both ways at once, with the end of both.
    """
    command = host.open(["sh", "-c", "cat; echo over >&2; exit 5"])
    sent = os.urandom(3_000_000)
    writer = threading.Thread(target=lambda: (command.stdin.write(sent), command.stdin.close()))
    writer.start()
    received = command.stdout.read()
    writer.join()

    assert (received == sent, command.stderr.read(), command.wait(5)) == (True, b"over\n", 5)


def test_line_is_answered_at_once(host):
    """
    A conversation by lines, as the clocks of hosts are compared.
    """
    command = host.open(["cat"])
    for number in range(3):
        command.stdin.write(b"%d\n" % number)
        command.stdin.flush()
        assert command.stdout.readline(100) == b"%d\n" % number
    command.kill()


def test_writing_to_a_command_that_has_ended_is_a_broken_pipe(host):
    """
    As with a process of this machine.
    """
    command = host.open(["true"])
    command.wait(5)

    with pytest.raises(BrokenPipeError):
        command.stdin.write(b"x" * 2**22)


def test_endless_output_is_stopped(host, tmp_path, monkeypatch):
    """
    Neither memory nor disk of this machine is filled.
    """
    monkeypatch.setattr("harness.clusters.host.MOST_OUTPUT", 2**18)
    monkeypatch.setattr(ssh_host, "MOST_LOG", 2**18)
    for script in ("yes", "yes >&2"):
        with pytest.raises(ClusterError, match="has written more than 262144 bytes"):
            host.run(["sh", "-c", script])
    log = tmp_path / "log"

    assert (host.start(["yes"], log).wait(30), log.stat().st_size < 2**18 + 200) == (-9, True)


def test_a_file_is_put(host, tmp_path):
    """
    A relative name is in the node's own folder.
    """
    (tmp_path / "a").write_bytes(os.urandom(300_000))
    host.put(tmp_path / "a", "it's a file")

    assert (tmp_path / "a").read_bytes() == (tmp_path / "it's a file").read_bytes()
    with pytest.raises(ClusterError, match="cannot write /no/folder"):
        host.put(tmp_path / "a", "/no/folder")


def test_files_are_collected_through_the_channel_of_a_command(host, tmp_path):
    """
    As they are; names with an archive's longer forms included.
    """
    files = {"c1/syslog": os.urandom(2_000_000), f"c1/{'n' * 150}": b"long", "c2/stderr": b""}
    for name, content in files.items():
        (tmp_path / "logs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "logs" / name).write_bytes(content)

    source = Source(host, str(tmp_path / "logs"), tmp_path / "into")
    paths = collect([source], lambda _: node_agent("pack"), r"c\d/.*")

    assert {str(p.relative_to(tmp_path / "into")): p.read_bytes() for p in paths} == files


def test_key_that_is_not_pinned_is_refused(host, server, keys):
    """
    The error gives the fingerprint, and whether another one is pinned.
    """
    connections = [Connection(name, host.connection.access) for name in ("127.1", "127.0.0.1")]
    pins = keys / "state" / "mapreduce-harness" / "known_hosts"
    pinned_key = (keys / "client.pub").read_text().rsplit(" ", 1)[0]
    pins.write_text(f"[127.0.0.1]:{server.port} {pinned_key}\n")

    with pytest.raises(ClusterError, match="is not known; the host shows SHA256:"):
        connections[0].open_channel()
    with pytest.raises(ClusterError, match=r"has changed: it shows SHA256:.*, pinned is SHA256:"):
        connections[1].open_channel()


def test_key_that_the_host_does_not_know(host, keys):
    """
    The error names the key and the user.
    """
    access = SshAccess(port=host.connection.access.port, key=str(keys / "host"))

    with pytest.raises(ClusterError, match=f"none of our keys: the key {keys}/host, for root"):
        Connection("127.0.0.1", access).open_channel()


def test_wrong_fingerprint_pins_nothing(server, keys):
    """
    The error gives the key that the host has.
    """
    with pytest.raises(ClusterError, match=r"it has SHA256:.* \(ssh-ed25519\)"):
        trust("127.0.0.1", "SHA256:" + "A" * 43, server.port)

    assert not (keys / "state" / "mapreduce-harness" / "known_hosts").exists()
