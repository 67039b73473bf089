"""
Tests for `harness.clusters.ssh.connection`: what listens on the port is not an SSH server.
"""

import socket
import struct
import threading

import pytest

from harness.base.errors import ClusterError
from harness.base.records.trial import SshAccess
from harness.clusters.ssh import connection as ssh_connection
from harness.clusters.ssh.connection import Connection, connect_socket


@pytest.fixture
def server():
    """
    A socket that takes connections.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def connection_error(server):
    """
    What is wrong, for somebody who wants to run a command there.
    """
    with pytest.raises(ClusterError) as caught:
        Connection("127.0.0.1", SshAccess(port=server.getsockname()[1])).open_channel()
    return caught.value.what


@pytest.mark.parametrize("reset", [False, True])
def test_server_that_closes_at_once(server, reset):
    """
    The error does not speak of waiting, however the connection ends.
    """

    def close():
        connection, _ = server.accept()
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    threading.Thread(target=close).start()

    assert connection_error(server) == "no greeting of an SSH server: the connection was closed"


def test_server_that_sends_nothing(server, monkeypatch):
    """
    The error gives the time that was waited.
    """
    monkeypatch.setattr(ssh_connection, "BANNER_S", 0.2)

    assert connection_error(server) == "no greeting of an SSH server within 0.2 s"


def test_silent_peer_is_noticed(server):
    """
    The kernel asks a connection without traffic, and gives up what is never acknowledged.
    """
    with connect_socket(*server.getsockname()) as connection:
        options = [
            connection.getsockopt(level, option)
            for level, option in [
                (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                (socket.IPPROTO_TCP, socket.TCP_NODELAY),
                (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
                (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
            ]
        ]

    assert options == [1, 1, 10, 30_000]
