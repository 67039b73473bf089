"""
Who of a cluster in containers has died: told by the engine as it happens, not asked for.

One thread per node follows its container's log, in which the keeper names the dead
(`harness.node.supervise`); the end of the log is the end of the node.  Nothing runs in the
containers for it, and the engine has nothing to do while nobody dies.
"""

from __future__ import annotations

import threading
import time

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from harness.providers.docker.engine import Engine, EngineError
from harness.providers.host import from_json

_JOIN_S = 5.0
_AGAIN_S = 1.0


@dataclass(frozen=True, slots=True)
class Death:
    """A daemon, by its key, that has ended: its status; whether for want of memory."""

    key: str
    status: int
    oom: bool = False


class Watch:
    """The deaths in *containers* (node -> name of its container), from now on."""

    def __init__(self, engine: Engine, containers: Mapping[str, str]) -> None:
        self._engine, self._lock = engine, threading.Lock()
        self._deaths: dict[str, Death] = {}
        self._ended: set[str] = set()
        self._lost: EngineError | None = None
        self._over = False
        for container in containers.values():  # what happened so far is known when we return
            with engine.asked(f"log of {container}"):
                self._read(engine.client.api.logs(container, stdout=True, stderr=False))
        self._threads = [
            threading.Thread(target=self._follow, args=place, daemon=True, name="docker-watch")
            for place in containers.items()
        ]
        for thread in self._threads:
            thread.start()

    def deaths(self) -> dict[str, Death]:
        """Daemons that have ended, by their keys; `EngineError` where the engine was lost."""
        with self._lock:
            if self._lost is not None:
                raise self._lost
            return dict(self._deaths)

    def ended(self) -> set[str]:
        """Nodes that have ended."""
        with self._lock:
            return set(self._ended)

    def close(self) -> None:
        """Wait for the threads: removed containers have ended their logs."""
        self._over = True
        for thread in self._threads:
            thread.join(_JOIN_S)

    def _follow(self, node: str, container: str) -> None:
        """Read the log of one node until the node ends."""
        while not self._over:
            with suppress(EngineError), self._engine.asked(container):
                rest = b""
                for piece in self._engine.client.api.logs(
                    container, stdout=True, stderr=False, stream=True, follow=True
                ):
                    whole, _, rest = (rest + piece).rpartition(b"\n")
                    self._read(whole)
            if self._over or not self._runs(node, container):
                return
            time.sleep(_AGAIN_S)

    def _runs(self, node: str, container: str) -> bool:
        """Whether the container goes on; if not, that is noted."""
        try:
            with self._engine.asked(f"state of {node}"):
                state = self._engine.client.api.inspect_container(container)["State"]
        except EngineError as error:
            with self._lock:
                if error.status == 404:
                    self._ended.add(node)
                else:
                    self._lost = error
            return False
        if not state["Running"]:
            with self._lock:
                self._ended.add(node)
        return bool(state["Running"])

    def _read(self, lines: bytes) -> None:
        for line in lines.splitlines():
            death = _death(line)
            if death is not None:
                with self._lock:
                    self._deaths[death.key] = death


def _death(line: bytes) -> Death | None:
    """A line of the keeper; `None` for any other text."""
    try:
        said: Any = from_json(line)
        return Death(str(said["key"]), int(said["status"]), bool(said.get("oom")))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
