"""
Waits for answers: none lasts longer than what is documented, whoever is silent, and when.
"""

import socket
import threading
import time

import pytest

from harness.clusters.node import transport
from harness.clusters.node.transport import TooSlowError, answers, limit_s, patient


@pytest.fixture
def pair():
    """
    Two ends of a connection: one that waits patiently, and one that a test holds.
    """
    here, there = socket.socketpair(socket.AF_UNIX)
    with patient(here, 0.3) as waiting, there:
        yield waiting, there


class TestSilence:
    def test_ends(self, pair):
        """
        A service that says nothing is waited for so long, and no longer.
        """
        waiting, _ = pair
        started_s = time.monotonic()

        with pytest.raises(socket.timeout):
            waiting.recv_into(bytearray(1))

        assert 0.25 < time.monotonic() - started_s < 2.0

    def test_ends_earlier_of_one_that_is_not_there(self, pair):
        """
        Who answers nobody is given up at the first look.
        """
        waiting, _ = pair
        waiting.each_s = 60.0
        waiting.look_s = 0.1
        waiting.still_there = lambda: False

        with pytest.raises(socket.timeout):
            waiting.recv_into(bytearray(1))

    def test_goes_on_of_one_that_is_there(self, pair):
        """
        It waits for its disk: what it says behind some looks is read.
        """
        waiting, there = pair
        looks = []
        waiting.each_s = 60.0
        waiting.look_s = 0.05

        def still_there():
            looks.append(1)
            if len(looks) == 3:
                there.sendall(b"x")
            return True

        waiting.still_there = still_there

        assert waiting.recv_into(bytearray(1)) == 1
        assert len(looks) == 3

    def test_of_one_that_takes_nothing(self, pair):
        """
        A file that nobody takes is waited for no longer than an answer.
        """
        waiting, _ = pair

        with pytest.raises(socket.timeout):
            waiting.sendall(bytes(2**22))

    def test_between_pieces_that_are_taken(self, pair):
        """
        All of a file arrives at a reader that takes it slowly, in its order.
        """
        waiting, there = pair
        data = bytes(range(256)) * 2**12
        received = bytearray()

        def take():
            while len(received) < len(data):
                time.sleep(0.005)
                received.extend(there.recv(2**16))

        reader = threading.Thread(target=take)
        reader.start()
        waiting.sendall(data)
        reader.join()

        assert received == data


class TestTrickle:
    def test_ends_though_each_byte_is_in_time(self, pair, monkeypatch):
        """
        A byte now and then is no answer: the whole has a limit.
        """
        monkeypatch.setattr(transport, "START_S", 0.2)
        waiting, there = pair
        ended = threading.Event()

        def trickle():
            while not ended.wait(0.02):
                there.sendall(b"x")

        writer = threading.Thread(target=trickle)
        writer.start()

        def read_on():
            while waiting.recv_into(bytearray(1)):
                pass

        try:
            with pytest.raises(TooSlowError, match="have come in"):
                read_on()
        finally:
            ended.set()
            writer.join()

    def test_grows_with_what_has_come(self):
        """
        A large file may take long.
        """
        assert limit_s(2**30) > limit_s(0)


class TestAnswers:
    def test_any_byte_is_one(self):
        """
        A refusal, too.
        """
        with socket.create_server(("127.0.0.1", 0)) as server:

            def refuse():
                connection, _ = server.accept()
                with connection:
                    connection.recv(100)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

            thread = threading.Thread(target=refuse)
            thread.start()
            assert answers(f"127.0.0.1:{server.getsockname()[1]}")
            thread.join()

    def test_one_that_hangs_gives_none(self, monkeypatch):
        """
        The kernel takes the connection, and nobody reads it.
        """
        monkeypatch.setattr(transport, "LOOK_LIMIT_S", 0.1)
        with socket.create_server(("127.0.0.1", 0)) as server:
            assert not answers(f"127.0.0.1:{server.getsockname()[1]}")

    def test_where_nobody_listens(self):
        """
        No connection is no answer.
        """
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = f"127.0.0.1:{server.getsockname()[1]}"

        assert not answers(address)
