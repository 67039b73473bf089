"""
Tests for the questions that a supervisor asks its daemons.
"""

import contextlib
import socket
import time

import pytest

from harness.clusters.node import answers
from harness.clusters.node.answers import Questions, connect

ROUND_S = 0.01


class Service:
    """
    A web service that takes questions, and answers them when the test has it do so.
    """

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.settimeout(0.0)
        self.open = []

    def connect(self, _key):
        return connect("127.0.0.1", self.server.getsockname()[1])

    def answer(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                self.open.append(self.server.accept()[0])
        for connection in self.open:
            connection.sendall(b"HTTP/1.0 403 Forbidden\r\n\r\n")
            connection.close()
        self.open.clear()

    def close(self):
        for each in (self.server, *self.open):
            each.close()


@pytest.fixture
def service(monkeypatch):
    """
    The service of one daemon, whose rounds are short; as many of them make 15 s as always.
    """
    monkeypatch.setattr(answers, "_ROUND_S", ROUND_S)
    monkeypatch.setattr(answers, "UNANSWERED_S", 4 * ROUND_S)
    made = Service()
    yield made
    made.close()


@pytest.fixture
def questions(service):
    """
    The questions to that daemon.
    """
    made = Questions(service.connect)
    yield made
    for connection in made._open:
        connection.close()


def rounds(questions, service, answered):
    """
    Who is named in each round; *answered* says in which of them the service answers.
    """
    named = []
    for is_answered in answered:
        while not questions._open:  # the first round begins
            questions.wait([], ROUND_S)
            questions.begin_round(["daemon"])
        questions.wait([], ROUND_S)  # what was asked is sent
        if is_answered:
            service.answer()
        end_s = time.monotonic() + ROUND_S
        while time.monotonic() < end_s:
            questions.wait([], ROUND_S)
        named.append(questions.begin_round(["daemon"]))
    return named


def test_one_that_stops_answering_is_named_once(questions, service):
    """
    In the round that ends 15 s after the first question it has left open.
    """
    named = rounds(questions, service, [True, *[False] * 9])

    assert [number for number, keys in enumerate(named) if keys] == [4]


def test_one_that_has_never_answered_is_starting(questions, service):
    """
    The health check waits for it.
    """
    assert not any(rounds(questions, service, [False] * 9))


@pytest.mark.process
def test_one_that_is_slow_is_not_named(questions, service):
    """
    Its question stays open from round to round.
    """
    answered = [True, False, False, False, True] * 4

    assert not any(rounds(questions, service, answered))


@pytest.mark.process
def test_a_supervisor_that_stands_still_names_nobody(questions, service):
    """
    Long without a processor, it has asked nobody meanwhile.
    """
    rounds(questions, service, [True])
    time.sleep(20 * ROUND_S)

    assert not any(rounds(questions, service, [False, True]))


@pytest.mark.process
def test_one_that_was_started_again_has_to_answer_first(questions, service):
    """
    What its predecessor has answered does not count.
    """
    rounds(questions, service, [True])
    time.sleep(ROUND_S)
    questions.begin_round([])

    assert not any(rounds(questions, service, [False] * 9))


@pytest.mark.process
def test_one_that_refuses_connections_after_its_answers_is_named(questions, service):
    """
    A port that is closed is no answer.
    """
    rounds(questions, service, [True])
    address = service.server.getsockname()
    service.server.close()
    questions._connect = lambda _: connect(*address)
    named = []
    end_s = time.monotonic() + 20 * ROUND_S
    while time.monotonic() < end_s:
        questions.wait([], ROUND_S)
        named += questions.begin_round(["daemon"])

    assert named == ["daemon"]
