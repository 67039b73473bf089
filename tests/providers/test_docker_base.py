"""
Tests for `harness.clusters.docker.image.find_base`: on which base an image is built.
"""

import threading

from contextlib import nullcontext
from typing import ClassVar

import pytest

from harness.base.errors import MachineError
from harness.clusters.docker import image as images
from harness.clusters.docker.engine import EngineError
from harness.clusters.docker.image import DEBIAN, OWN

ANOTHER = "registry.example:5000/debian"


class FakeEngine:
    """
    An engine that has the images *there*, and of which the registry has those in *registry*.

    pulls that are *stuck* never end.
    """

    address = "unix:///fake"
    settings: ClassVar = {"DOCKER_HOST": "unix:///fake"}

    def __init__(self, there=(), registry=(), *, stuck=False, events=()):
        self.there = set(there)
        self.registry = set(registry)
        self.events = events
        self.client = self.images = self.api = self
        self.over = threading.Event()
        self.stuck = stuck

    def translate_errors(self, subject=""):
        return nullcontext()

    def get(self, name):
        if name not in self.there:
            raise EngineError(f"no such image: {name}", status=404)

    def pull(self, repository, tag, *, stream, decode):
        name = f"{repository}:{tag}"
        if self.stuck:
            self.over.wait()
        if name not in self.registry:
            raise EngineError("no route to host")
        self.there.add(name)
        return iter([{"status": "Pulling"}, *self.events])


@pytest.mark.parametrize(
    ("there", "base"),
    [
        ([DEBIAN, OWN], (DEBIAN, "which the engine has")),
        ([OWN], (OWN, "which the engine has")),
        ([], (DEBIAN, "pulled")),
    ],
    ids=["both", "own", "none"],
)
def test_a_base_that_the_engine_has_comes_first(capsys, there, base):
    """
    Debian's, else our own; only where it has none one is pulled, and that is reported.
    """
    engine = FakeEngine(there=there, registry=[DEBIAN])

    assert images.find_base(engine, {}) == base
    assert ("pulling" in capsys.readouterr().err) == (not there)


def test_a_chosen_base_has_no_substitute():
    """
    The one that ``HARNESS_DOCKER_BASE`` names, or an error.
    """
    environment = {"HARNESS_DOCKER_BASE": ANOTHER}

    assert images.find_base(FakeEngine([OWN, ANOTHER]), environment) == (
        ANOTHER,
        "which the engine has",
    )
    with pytest.raises(
        MachineError, match=r"registry\.example:5000/debian is not available: no route"
    ):
        images.find_base(FakeEngine([OWN]), environment)


def test_without_a_registry_the_fix_is_a_command():
    """
    Why the registry gave none, and how to build one.
    """
    with pytest.raises(MachineError, match=r"no route to host") as caught:
        images.find_base(FakeEngine(), {})
    assert caught.value.fix.startswith("sudo docker/base")


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        (FakeEngine(stuck=True), r"no registry has answered for 0\.05 s"),
        (FakeEngine(registry=[DEBIAN], events=[{"error": "cut \x1b[2J"}]), r"cut \\x1b"),
    ],
    ids=["stuck", "cut"],
)
def test_a_failed_pull_is_an_error(monkeypatch, engine, reason):
    """
    It is given up after a while of silence; errors in its midst are errors.
    """
    monkeypatch.setattr(images, "_SILENCE_S", 0.05)

    with pytest.raises(MachineError, match=reason):
        images.find_base(engine, {})
    engine.over.set()
