"""
Commands of `DockerHost` through Docker's own client, the exec wrapper, and an engine that is faked.
"""

import hashlib
import ssl
import subprocess
import threading

import pytest

from harness.base.errors import ClusterError
from harness.clusters.collect import Source, collect
from harness.clusters.docker.engine import Engine
from harness.clusters.docker.host import AGENT_COMMAND, DockerHost
from harness.clusters.host import HostTimeoutError, log_tail
from tests.providers.fake_engine import fake_engine

pytestmark = pytest.mark.process
LIMIT_S = 60.0
CONTENT = bytes(range(256)) * 20_000


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """
    A folder as ``DOCKER_CERT_PATH`` wants it: an authority, a certificate for 127.0.0.1, its key.
    """
    folder = tmp_path_factory.mktemp("certificates")
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", folder / "key.pem", "-out", folder / "cert.pem",
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    (folder / "ca.pem").write_bytes((folder / "cert.pem").read_bytes())
    return folder


@pytest.fixture(params=["plain", "tls"])
def host(request, tmp_path):
    """
    A node of an engine at a port, with and without TLS.
    """
    context = None
    more = {}
    if request.param == "tls":
        certificates = request.getfixturevalue("certificates")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")
        more = {"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": str(certificates)}
    with fake_engine(context) as port:
        engine = Engine.connect({"DOCKER_HOST": f"tcp://127.0.0.1:{port}", **more})
        yield DockerHost("worker1", "", str(tmp_path), "c", engine, {})
        engine.client.close()


def test_files_go_to_a_node_and_come_back(host, tmp_path):
    """
    By commands: a file is put, the end of a log is read, wanted files are collected.
    """
    (tmp_path / "here").write_bytes(CONTENT)
    (tmp_path / "logs").mkdir()

    host.put(tmp_path / "here", "logs/there")
    (tmp_path / "logs" / "log").write_text("first\nsecond \x1b[2J\nlast\n")
    paths = collect(
        [Source(host, f"{host.folder}/logs", tmp_path / "into")],
        lambda _: [*AGENT_COMMAND, "pack"],
        "th.*",
    )

    assert [(path.name, path.read_bytes() == CONTENT) for path in paths] == [("there", True)]
    assert log_tail(host, f"{host.folder}/logs/log", 2) == "second \\x1b[2J\nlast"
    with pytest.raises(ClusterError, match="the host cannot write /no/folder"):
        host.put(tmp_path / "here", "/no/folder")


def test_input_and_output_of_any_size(host):
    """
    All input arrives with its end, and the status is the command's.
    """
    completed = host.run(["sh", "-c", "sha256sum; echo problem >&2; exit 3"], LIMIT_S, CONTENT)

    assert completed.out == f"{hashlib.sha256(CONTENT).hexdigest()}  -\n"
    assert (completed.err, completed.status) == ("problem\n", 3)


def test_both_directions_at_once(host):
    """
    What is written comes back while more is written.
    """
    running = host.open(["cat"])
    writer = threading.Thread(target=lambda: (running.stdin.write(CONTENT), running.stdin.close()))
    writer.start()
    with running.stdout, running.stderr:
        output = running.stdout.read()
    writer.join()

    assert (output == CONTENT, running.wait(LIMIT_S)) == (True, 0)


def test_input_and_output_alternate_line_by_line(host):
    """
    No line waits for the next one.
    """
    running = host.open(["cat"])
    lines = []
    for number in range(50):
        running.stdin.write(b"%d\n" % number)
        running.stdin.flush()
        lines.append(running.stdout.readline())
    running.stdin.close()

    assert (lines, running.wait(LIMIT_S)) == ([b"%d\n" % number for number in range(50)], 0)
    running.stdout.close()
    running.stderr.close()


def test_a_command_that_takes_too_long_is_killed(host):
    """
    The error names the command; it is ended on its host.
    """
    with pytest.raises(HostTimeoutError, match="sleep has not ended after"):
        host.run(["sleep", "600"], 0.5)


def test_endless_output_is_an_error(host, monkeypatch):
    """
    A command that never stops writing is stopped, whichever stream it writes to.
    """
    monkeypatch.setattr("harness.clusters.host.MOST_OUTPUT", 2**18)
    for script in ("yes", "yes >&2"):
        with pytest.raises(ClusterError, match="has written more than 262144 bytes"):
            host.run(["sh", "-c", script], LIMIT_S)


def test_a_killed_command_has_a_status(host):
    """
    Even where it has filled a pipe that nobody reads.
    """
    running = host.open(["yes"])
    running.stdout.readline()

    running.kill()

    assert running.wait(LIMIT_S) == -9
    for pipe in (running.stdin, running.stdout, running.stderr):
        pipe.close()


def test_output_and_errors_go_to_a_log_in_their_order(host, tmp_path):
    """
    A log is written as a terminal would show it.
    """
    log = tmp_path / "log"

    status = host.start(["sh", "-c", "echo 1; echo 2 >&2; echo 3"], log).wait(LIMIT_S)

    assert (status, log.read_text()) == (0, "1\n2\n3\n")
