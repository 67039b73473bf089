"""
What some providers work with.
"""

import http.server
import socketserver
import threading

import pytest

from harness.doctor import partners


class Engine(http.server.BaseHTTPRequestHandler):
    """
    Answers a ping as a Docker engine does.
    """

    status = 200
    server_version = "Docker/29.1.2"

    def do_GET(self):
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(b"OK")

    def address_string(self):
        return "a socket"

    def log_message(self, *args):
        pass


@pytest.fixture
def engine(tmp_path):
    """
    A socket behind which an engine answers.
    """
    path = tmp_path / "docker.sock"
    with socketserver.UnixStreamServer(str(path), Engine) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"unix://{path}"
        server.shutdown()
        thread.join()


class TestDocker:
    """An engine, or why there is none."""

    def test_engine_answers(self, engine, monkeypatch):
        """
        The engine's version and where it is.
        """
        monkeypatch.setenv("DOCKER_HOST", engine)

        found = partners.docker()

        assert found.state == "ok"
        assert found.what.startswith("Docker 29.1.2 at unix://")

    def test_engine_that_refuses(self, engine, monkeypatch):
        """
        Something else behind that socket is no engine.
        """
        monkeypatch.setenv("DOCKER_HOST", engine)
        monkeypatch.setattr(Engine, "status", 503)

        assert "status 503" in partners.docker().what

    @pytest.mark.parametrize(
        ("address", "reason"),
        [("unix:///no/such/socket", "No such file"), ("ssh://host", "ssh scheme")],
    )
    def test_no_engine(self, monkeypatch, address, reason):
        """
        Why none answers, and what would bring one.
        """
        monkeypatch.setenv("DOCKER_HOST", address)

        found = partners.docker()

        assert found.state == "note"
        assert address in found.what
        assert reason in found.what
        assert found.fix.startswith("unset DOCKER_HOST")

    def test_no_engine_where_none_was_named(self, monkeypatch):
        """
        Then it is an engine that is lacking, or its start.
        """
        monkeypatch.delenv("DOCKER_HOST", raising=False)
        monkeypatch.setattr(partners, "_DOCKER_SOCKET", "unix:///no/such/socket")

        assert "docker" in partners.docker().fix
        assert "DOCKER_HOST" not in partners.docker().fix

    def test_engine_of_others(self, monkeypatch):
        """
        Wherever it listens: the cure is its group.
        """

        def closed(address):
            raise PermissionError(13, "Permission denied", address)

        monkeypatch.setattr(partners, "docker_version", closed)
        monkeypatch.setenv("DOCKER_HOST", "unix:///run/other.sock")

        assert partners.docker().fix == "add this user to the group docker, and log in again"


class TestSsh:
    """What Ansible works through."""

    def test_no_ssh(self, monkeypatch):
        """
        What Ansible works through, and the package that has it.
        """
        monkeypatch.setenv("PATH", "/nonexistent")

        found = partners.ssh()

        assert (found.state, found.fix) == ("note", "apt-get install -y openssh-client")
