"""What tasks run on: the Java and the kernel of each worker, as the worker itself tells them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from harness.errors import ClusterError
from harness.providers.host import Host, from_json, printable

_MOST_HOSTS = 32
_MOST_TEXT = 80


@dataclass(frozen=True, slots=True)
class RanOn:
    """Versions of Hadoop, Java and the kernel on one node; empty where it does not tell."""

    hadoop: str
    java: str
    kernel: str


def ask(hosts: Sequence[Host], program: Callable[[Host], list[str]], hadoop: str) -> list[RanOn]:
    """
    Ask *hosts*, all at once, by a command line of the node agent.

    One that does not answer has empty texts: whether it is well is for others to tell.
    """
    if not hosts:
        return []
    with ThreadPoolExecutor(min(len(hosts), _MOST_HOSTS)) as pool:
        return list(pool.map(lambda host: _answer(host, program, hadoop), hosts))


def _answer(host: Host, program: Callable[[Host], list[str]], hadoop: str) -> RanOn:
    try:
        answer: Any = from_json(host.run(program(host)).out)
    except (ClusterError, OSError, ValueError):
        answer = None
    known = answer if isinstance(answer, dict) else {}
    return RanOn(hadoop, short(known.get("java")), short(known.get("kernel")))


def short(told: object) -> str:
    """A version that somebody else tells, short and safe to print; empty where it is no text."""
    return " ".join(printable(told).split())[:_MOST_TEXT] if isinstance(told, str) else ""
