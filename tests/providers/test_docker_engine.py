"""
Tests for `harness.clusters.docker.engine`: engines that cannot be used, and why.
"""

import http.server
import os
import platform
import socket
import socketserver
import subprocess
import sys
import threading

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.base.errors import HarnessError, MachineError, SpecError
from harness.clusters.docker import engine as engines
from harness.clusters.docker.cluster import DockerCluster
from harness.clusters.docker.engine import Engine, EngineError
from harness.clusters.host import at_once

PROJECT = Path(__file__).parents[2]


def connect_error(**environment):
    """
    The error for an engine that cannot be used.
    """
    with pytest.raises(HarnessError) as caught:
        Engine.connect(environment)
    return caught.value


class TestConnect:
    def test_a_missing_socket(self, tmp_path):
        """
        A `MachineError`, and how to start an engine.
        """
        error = connect_error(DOCKER_HOST=f"unix://{tmp_path}/none")

        assert isinstance(error, MachineError)
        assert error.what.startswith("no Docker engine answers")
        assert str(tmp_path) in error.where
        assert "systemctl start docker" in error.fix

    def test_a_socket_on_which_nobody_listens(self, tmp_path):
        """
        What a killed engine leaves is not mistaken for one.
        """
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(tmp_path / "left"))

        assert "refused" in connect_error(DOCKER_HOST=f"unix://{tmp_path}/left").what

    def test_port_that_nobody_listens_on(self):
        """
        The system's own word, and nothing of the libraries between.
        """
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = f"tcp://127.0.0.1:{server.getsockname()[1]}"

        assert (
            connect_error(DOCKER_HOST=address).what
            == "no Docker engine answers: Connection refused"
        )

    @pytest.mark.process
    @pytest.mark.skipif(os.geteuid() != 0, reason="root can become somebody who may not")
    def test_a_socket_that_this_user_may_not_use(self, tmp_path_factory):
        """
        The error is about permission, not about a missing engine.
        """
        with socket.socket(socket.AF_UNIX) as listening:
            place = f"/tmp/harness-test-{os.getpid()}.sock"
            listening.bind(place)
            listening.listen()
            Path(place).chmod(0o600)
            program = (
                "import os\n"
                "from docker.client import DockerClient\n"
                "from harness.clusters.docker.engine import Engine\n"
                "from harness.base.errors import MachineError\n"
                "import requests, urllib3\n"
                "os.setuid(65534)\n"
                "try:\n"
                f"    Engine.connect({{'DOCKER_HOST': 'unix://{place}'}})\n"
                "except MachineError as error:\n"
                "    print(error)\n"
            )
            done = subprocess.run(
                [sys.executable, "-c", program], capture_output=True, text=True, check=False,
                cwd=PROJECT, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )  # fmt: skip
            Path(place).unlink()

        assert "this user may not use the Docker engine" in done.stdout, done.stderr
        assert "usermod -aG docker" in done.stdout

    def test_an_address_that_cannot_be_used(self):
        """
        An engine behind SSH is reached by carrying its socket here; the command is given.
        """
        error = connect_error(DOCKER_HOST="ssh://somebody@far")

        assert isinstance(error, SpecError)
        assert "ssh -nNT -L" in error.fix


def refused(text, status=500):
    """
    Our error for a refusal of the engine.
    """
    from docker.errors import APIError
    from requests import Response

    response = Response()
    response.status_code = status
    with pytest.raises(EngineError) as caught, Engine(None, {}).translate_errors("a container"):
        raise APIError("x", response=response, explanation=text)
    return caught.value


@pytest.mark.parametrize(
    ("reason", "fix"),
    [
        ("write /var/lib/docker/x: no space left on device", "docker system df"),
        ('Conflict. The container name "/x" is already in use by container "1"', "another name"),
        ("something\x1b[2J else", "read the engine's log"),
    ],
    ids=["disk", "name", "other"],
)
def test_a_refusal_becomes_an_error_with_a_fix(reason, fix):
    """
    In its own words, safe to print, with what to do.
    """
    error = refused(reason, 409)

    assert error.what == reason.replace("\x1b", r"\x1b")
    assert fix in error.fix
    assert "a container" in error.where
    assert error.status == 409


def test_a_lost_connection_is_an_engine_error():
    """
    An engine that dies in the midst of a request is reported as that.
    """
    with pytest.raises(EngineError, match="does not answer"), Engine(None, {}).translate_errors():
        raise ConnectionResetError("reset by peer")


@pytest.mark.parametrize(
    ("address", "name", "near"),
    [
        ("unix:///s", platform.node(), True),
        ("unix:///s", "elsewhere", False),
        ("tcp://10.0.0.1:2375", platform.node(), False),
    ],
)
def test_an_engine_behind_a_forwarded_socket_is_not_near(address, name, near):
    """
    ``ssh -L`` makes a socket here of an engine there: the name of its machine shows it.
    """
    client = SimpleNamespace(info=lambda: {"Name": name})

    assert Engine(client, {"DOCKER_HOST": address}).is_near is near


def test_owners_differ_by_their_state_folder(tmp_path, monkeypatch):
    """
    Two state folders never see each other's clusters, on whichever engine.
    """
    owners = []
    for name in ("one", "two", "one"):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / name))
        owners.append(engines.owner())

    assert owners[0] == owners[2] != owners[1]


def test_all_parallel_tasks_end_before_the_first_error_is_raised():
    """
    Nothing still runs when clean-up after an error starts.
    """
    done = []

    def fail_or_end(number):
        if number == 0:
            raise EngineError("no")
        done.append(number)

    with pytest.raises(EngineError, match="no"):
        at_once(fail_or_end, range(3))

    assert sorted(done) == [1, 2]


class TestDoctor:
    """The check of `harness doctor`."""

    def check(self):
        return DockerCluster.doctor_check()

    def test_an_engine_that_answers(self, tmp_path, monkeypatch):
        """
        The engine's version and where it is.
        """
        address = f"unix://{tmp_path}/docker.sock"
        with socketserver.UnixStreamServer(f"{tmp_path}/docker.sock", FakeEngine) as server:
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            monkeypatch.setenv("DOCKER_HOST", address)
            finding = self.check()
            server.shutdown()

        assert (finding.state, finding.what) == ("ok", f"Docker 29.1.2 at {address}")

    def test_no_engine(self, tmp_path, monkeypatch):
        """
        Why none answers, and what would bring one: a note, as most machines need none.
        """
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")

        finding = self.check()

        assert (finding.state, "No such file" in finding.what) == ("note", True)
        assert "apt-get install docker.io" in finding.fix


class FakeEngine(http.server.BaseHTTPRequestHandler):
    """
    Answers a request for its version as an engine does.
    """

    def do_GET(self):
        content = b'{"ApiVersion": "1.44", "Version": "29.1.2"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def address_string(self):
        return "a socket"

    def log_message(self, *args):
        pass
