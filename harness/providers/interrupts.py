"""
Ctrl-C and its kin at moments that must not be cut in half.

Ctrl-C raises `KeyboardInterrupt` in the main thread, wherever it is: right for a wait, wrong for a
cluster that is half removed, or for logs that are half copied.
"""

from __future__ import annotations

import math
import signal
import threading

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class DeferredInterrupt:
    """
    A ``with`` block in which signals that end a program wait until it is over.

    *patience* is how many of them wait; the next one takes effect at once.  *notify* is called for
    each that waits.  An error that leaves the block goes first.  It can be used again, and inside
    another one; in a thread other than the main one, which gets no signals, it does nothing.
    """

    patience: float = math.inf
    notify: Callable[[], None] = lambda: None
    waiting: list[int] = field(default_factory=list)
    _handlers: dict[int, Any] = field(default_factory=dict)

    @property
    def is_pending(self) -> bool:
        """Whether a signal waits."""
        return bool(self.waiting)

    def __enter__(self) -> Self:
        self.waiting, self._handlers = [], {}
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):  # else it is ignored, or ends the process at once
                    self._handlers[number] = handler
                    signal.signal(number, self._defer)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if self.waiting and error is None:
            self._handlers[self.waiting[0]](self.waiting[0], None)

    def _defer(self, number: int, frame: FrameType | None) -> None:
        self.waiting.append(number)
        if len(self.waiting) > self.patience:
            self._handlers[number](number, frame)
        else:
            with suppress(RuntimeError, OSError):  # the stream is in use just now, or gone
                self.notify()
