"""Commands that are waited for: one that says nothing for too long is killed."""

from __future__ import annotations

import threading
import time

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from harness.providers.host import Running


class Silence:
    """
    Kills a command when one wait for it takes too long; what lies between waits does not count.

    Used as a context manager around all that is read from the command and written to it, and
    `waited` around each such step.  *killed* says afterwards that it came to that.
    """

    def __init__(self, running: Running, limit_s: float) -> None:
        self.killed = False
        self._running, self._limit_s = running, limit_s
        self._since: float | None = None
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True, name="watch")

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._over.set()
        self._watcher.join()

    @contextmanager
    def waited(self) -> Iterator[None]:
        """Wait for the command within."""
        self._since = time.monotonic()
        try:
            yield
        finally:
            self._since = None

    def _watch(self) -> None:
        while not self._over.wait(min(1.0, self._limit_s / 4)):
            since = self._since
            if since is not None and time.monotonic() - since > self._limit_s:
                self.killed = True
                self._running.kill()
                return
