"""
Tests for `harness.clusters.node.peers`: who is at the other end of a connection.
"""

import os
import socket

import pytest

from harness.clusters.node.peers import Answers, owner_of


@pytest.fixture
def kernel():
    """
    A connection to the kernel's diagnosis of sockets.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 4) as diagnosis:
        yield diagnosis


@pytest.fixture(params=["127.0.0.1", "::1", "mapped"])
def ends(request):
    """
    A connection by each version of the protocol, also by one of version 6 that speaks version 4.
    """
    host = request.param
    family = socket.AF_INET if host == "127.0.0.1" else socket.AF_INET6
    listened = "::" if host == "mapped" else host
    try:
        server = socket.create_server((listened, 0), family=family, dualstack_ipv6=listened == "::")
    except OSError:
        pytest.skip("no IPv6 here")
    called = "127.0.0.1" if host == "mapped" else host
    with server, socket.create_connection((called, server.getsockname()[1])) as caller:
        accepted, _ = server.accept()
        with accepted:
            yield called, caller, accepted


def asked_of(ends):
    """
    Both addresses: the caller's and that of who accepts.
    """
    host, caller, accepted = ends
    return host, caller.getsockname()[1], host, accepted.getsockname()[1]


def test_an_open_connection_has_its_user(kernel, ends):
    """
    Whatever version of the protocol it has.
    """
    assert owner_of(kernel, *asked_of(ends)) == os.getuid()


def test_one_that_was_closed_has_none(kernel, ends):
    """
    It lingers for its other end, and the kernel shows it as root's.
    """
    asked = asked_of(ends)
    ends[1].close()
    assert owner_of(kernel, *asked) is None


def test_one_that_never_was_has_none(kernel):
    """
    As of an address elsewhere.
    """
    assert owner_of(kernel, "198.18.0.9", 1, "127.0.0.1", 2) is None


def test_answers_lines_until_nonsense_comes(tmp_path, ends):
    """
    A question may come in pieces, and several at once; who asks nonsense is hung up on.
    """
    answers = Answers(tmp_path / "peers", None)
    line = "{} {} {} {}\n".format(*asked_of(ends)).encode()
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(tmp_path / "peers"))
        answers.answer_once(5)
        for piece in (line[:7], line[7:] + line, b"x\n"):
            caller.sendall(piece)
            answers.answer_once(5)
        assert caller.recv(100) == b"%d\n%d\n" % (os.getuid(), os.getuid())
        assert caller.recv(100) == b""
    answers.close()
    assert (tmp_path / "peers").stat().st_mode & 0o777 == 0o600
