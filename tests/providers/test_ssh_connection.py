"""
Tests for `harness.providers.ssh.connection`: servers that are none.
"""

import socket
import struct
import threading

import pytest

from harness.errors import ClusterError
from harness.providers.ssh import connection as ssh_connection
from harness.providers.ssh.connection import Access, Connection


@pytest.fixture
def server():
    """
    A socket that takes connections.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def said(server):
    """
    The error of somebody who asks it for a session.
    """
    with pytest.raises(ClusterError) as caught:
        Connection("127.0.0.1", Access("root", server.getsockname()[1])).session()
    return caught.value.what


@pytest.mark.parametrize("reset", [False, True])
def test_server_that_closes_at_once(server, reset):
    """
    It is not said that anybody has waited, however the connection ends.
    """

    def close():
        door, _ = server.accept()
        if reset:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        door.close()

    threading.Thread(target=close).start()

    assert said(server) == "no greeting of an SSH server: the connection was closed"


def test_server_that_says_nothing(server, monkeypatch):
    """
    The time that was waited is told.
    """
    monkeypatch.setattr(ssh_connection, "BANNER_S", 0.2)

    assert said(server) == "no greeting of an SSH server within 0.2 s"
