"""
What the image of a node is built on: any Debian 12 or newer; which one is always said.

`find` takes the first of: the one that ``HARNESS_DOCKER_BASE`` names; Debian's or our own, where
the engine has it; Debian's, pulled; a Debian root made on the spot (``docker/base``), where no
registry can be reached, and root is who asks.
"""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import sys
import threading

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.errors import MachineError
from harness.providers.docker.engine import Engine, EngineError
from harness.providers.host import printable

SOURCE = Path(__file__).resolve().parents[3] / "docker"
DEBIAN, OWN = "debian:bookworm-slim", "mapreduce-harness/base:bookworm"
_SILENCE_S = 60.0  # an engine that reaches no registry says so itself after some 15 s, or never
_MAKE_LIMIT_S = 900.0


def say(text: str) -> None:
    """A line for people who wait."""
    sys.stderr.write(f"docker: {printable(text)}\n")
    sys.stderr.flush()


def is_there(engine: Engine, name: str) -> bool:
    """Whether the engine has an image."""
    try:
        with engine.asked(f"image {name}"):
            engine.client.images.get(name)
    except EngineError as error:
        if error.status == 404:
            return False
        raise
    return True


def find(engine: Engine, environment: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """The base, and where it is from, for people; `MachineError` where none can be had."""
    asked = environment.get("HARNESS_DOCKER_BASE")
    for name in [asked] if asked else [DEBIAN, OWN]:
        if is_there(engine, name):
            return name, "which the engine has"
    name = asked or DEBIAN
    say(f"the engine lacks {name}: pulling it (30 MB)")
    try:
        _pull(engine, name)
    except EngineError as error:
        why = "" if asked else cannot_make()
        if asked or why:
            raise _lacking(name, error, why) from error
        say(f"it cannot be had: {error.what}")
        _make(engine)
        return OWN, "a Debian root made here"
    return name, "pulled"


def _lacking(name: str, error: EngineError, why: str) -> MachineError:
    made = f"; none is made here: {why}" if why else ""
    return MachineError(
        f"the base image {name} cannot be had: {error.what}{made}",
        where=error.where,
        fix="sudo docker/base  (makes one by debootstrap), or name one that the engine has: "
        "HARNESS_DOCKER_BASE",
    )


# from a registry


def _pull(engine: Engine, name: str) -> None:
    """Pull an image; `EngineError` where that fails, or nothing comes for `_SILENCE_S`."""
    where = f"Docker engine at {engine.address}, pulling {name}"
    for event in _events(engine, name, where):
        if "error" in event:
            raise EngineError(printable(str(event["error"]))[:500], where=where)
    if not is_there(engine, name):
        raise EngineError(f"the engine has pulled no {name}", where=where)


def _events(engine: Engine, name: str, where: str) -> Iterator[Mapping[str, Any]]:
    """What the engine tells while it pulls; its library would wait for ever."""
    told: queue.SimpleQueue[Mapping[str, Any] | EngineError | None] = queue.SimpleQueue()

    def pull() -> None:
        try:
            with engine.asked(f"pulling {name}"):
                for event in engine.client.api.pull(*_parts(name), stream=True, decode=True):
                    told.put(event)
        except EngineError as error:
            told.put(error)
        told.put(None)

    threading.Thread(target=pull, daemon=True, name="docker-pull").start()
    while True:
        try:
            event = told.get(timeout=_SILENCE_S)
        except queue.Empty:
            raise EngineError(
                f"no registry has answered for {_SILENCE_S:g} s", where=where
            ) from None
        if event is None:
            return
        if isinstance(event, EngineError):
            raise event
        yield event


def _parts(name: str) -> tuple[str, str]:
    """
    Repository and tag; without a tag the library would pull all that there are.

    >>> [_parts(name) for name in ("debian:12", "host:5000/debian", "debian@sha256:0a")]
    [('debian', '12'), ('host:5000/debian', 'latest'), ('debian', 'sha256:0a')]
    """
    repository, at, digest = name.partition("@")
    if at:
        return repository, digest
    repository, _, tag = name.rpartition(":")
    return (repository, tag) if repository and "/" not in tag else (name, "latest")


# on the spot


def cannot_make() -> str:
    """Why this user cannot make a base here, in a few words; empty where that can be tried."""
    if os.geteuid() != 0:
        return "only root makes one"
    if shutil.which("debootstrap") is None:
        return "debootstrap is not installed"
    return "" if (SOURCE / "base").is_file() else f"{SOURCE}/base is not there"


def _make(engine: Engine) -> None:
    """Have ``docker/base`` make a base; it tells what it does, and cleans up whatever ends it."""
    environment = {**os.environ, **engine.settings, "HARNESS_PYTHON": sys.executable}
    process = subprocess.Popen(
        [str(SOURCE / "base")], env=environment, stdin=subprocess.DEVNULL, process_group=0
    )
    try:
        status = process.wait(_MAKE_LIMIT_S)
    except BaseException as error:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        status = -signal.SIGTERM
    if status != 0:
        raise MachineError(
            "neither could a base image be pulled, nor a Debian root be made"
            + (f" within {_MAKE_LIMIT_S:g} s" if status < 0 else ""),
            where=f"{SOURCE}/base",
            fix="read the lines above; then sudo docker/base MIRROR, or name a base that the"
            " engine has: HARNESS_DOCKER_BASE",
        )
