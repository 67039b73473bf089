"""
Tests for `harness.providers.docker.image.find_base`: on which base an image is built.
"""

import os
import signal
import threading
import time

from contextlib import nullcontext

import pytest

from harness.errors import MachineError
from harness.providers.docker import image as images
from harness.providers.docker.engine import EngineError
from harness.providers.docker.image import DEBIAN, OWN

ANOTHER = "registry.example:5000/debian"


class FakeEngine:
    """
    An engine that has the images *there*, and of which the registry has those in *registry*.

    pulls that are *stuck* never end.
    """

    address, settings = "unix:///fake", {"DOCKER_HOST": "unix:///fake"}

    def __init__(self, there=(), registry=(), *, stuck=False, events=()):
        self.there, self.registry, self.events = set(there), set(registry), events
        self.client = self.images = self.api = self
        self.over, self.stuck = threading.Event(), stuck

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


@pytest.fixture(autouse=True)
def ordinary_user(monkeypatch):
    """
    Nobody makes a Debian root for a test.
    """
    monkeypatch.setattr(images.os, "geteuid", lambda: 1000)


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
    Why the registry gave none, why none is built here, and how to build one.
    """
    with pytest.raises(
        MachineError, match=r"no route to host; it cannot be built here: only root"
    ) as caught:
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


@pytest.mark.process
class TestMakeBase:
    @pytest.fixture
    def script(self, tmp_path, monkeypatch):
        """
        Makes a ``docker/base`` that does something else, for root.
        """
        monkeypatch.setattr(images.os, "geteuid", lambda: 0)
        monkeypatch.setattr(images.shutil, "which", lambda name: name)
        monkeypatch.setattr(images, "SOURCE", tmp_path)
        monkeypatch.chdir(tmp_path)

        def write(text):
            (tmp_path / "base").write_text(f"#!/bin/bash\n{text}\n")
            (tmp_path / "base").chmod(0o755)
            return tmp_path

        return write

    def test_makes_a_debian_root(self, script, capfd):
        """
        For that engine; why the registry gave none is reported before.
        """
        folder = script('echo "$DOCKER_HOST" > where; echo making >&2')

        assert images.find_base(FakeEngine(), {}) == (OWN, "a Debian root built here")
        assert (folder / "where").read_text() == "unix:///fake\n"
        assert "no route to host" in capfd.readouterr().err

    def test_a_root_that_cannot_be_made_is_an_error(self, script):
        """
        Both ways are named.
        """
        script("exit 3")

        with pytest.raises(MachineError, match=r"pulled and no Debian root could be built\n"):
            images.find_base(FakeEngine(), {})

    def test_ends_at_its_time_limit_and_cleans_up(self, script, monkeypatch):
        """
        It gets SIGTERM, so that it removes what it has made; its children end, too.
        """
        monkeypatch.setattr(images, "_MAKE_LIMIT_S", 0.5)
        folder = script("trap 'touch cleaned' EXIT\nsleep 600 & echo $! > pid; wait")

        with pytest.raises(MachineError, match=r"built within 0\.5 s"):
            images.find_base(FakeEngine(), {})
        assert (folder / "cleaned").exists()
        assert gone(int((folder / "pid").read_text()))


def gone(pid, limit_s=60.0):
    """
    Whether a process has ended, or does so soon.
    """
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        try:
            os.kill(pid, signal.SIG_DFL)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False
