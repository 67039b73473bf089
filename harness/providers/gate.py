"""
The health gate, one for all providers: live DataNodes = active NodeManagers = workers.

The looking is done by one process inside the cluster (`harness.node.health`); how it
gets there is the provider's.
"""

from __future__ import annotations

import time

from collections.abc import Callable
from typing import Any

from harness.errors import ClusterError
from harness.providers.host import printable

_KNOWN_BY = {
    "datanode": "namenode", "historyserver": "namenode", "nodemanager": "resourcemanager",
}  # fmt: skip
_MOST_NAMES, _MOST_SECONDS = 2000, 86400.0

Ask = Callable[[dict[str, Any]], dict[str, Any]]


def await_healthy(
    ask: Ask, question: dict[str, Any], *, where: str, log: Callable[[str], str]
) -> float:
    """
    Return when every daemon has answered; seconds that it took.

    *ask* puts the question to the waiter; *log* gives the last lines of a daemon (``datanode on
    worker2``).  `ClusterError` names who died or is silent, with those lines.
    """
    begun = time.monotonic()
    answer = ask({"until": "healthy", **question})
    waited = time.monotonic() - begun
    if answer.get("ok") is True:
        return _seconds(answer, waited)
    if not answer and waited < question["limit_s"]:
        raise ClusterError(
            f"the cluster was gone after {waited:.0f} s, before it was healthy",
            where=where,
            fix="start it again; another command may have taken it down",
        )
    died = [key.replace("-", " on ", 1) for key in _told(answer, "died")]
    silent = _told(answer, "missing")
    if died:
        what = f"{_list(died)} died at start"
    else:
        what = f"no {_list(silent) or 'answer'} after {question['limit_s']:g} s"
    shown = (died or silent)[:1]
    tail = "\n".join(log(name) for name in shown)
    raise ClusterError(
        f"{what}\n{tail}".rstrip(),
        where=where,
        fix="the last lines of its log are above; a busy machine may need a second try",
    )


def silent_daemons(ask: Ask, question: dict[str, Any]) -> list[str]:
    """
    Daemons (``datanode on worker2``) that do not answer, or that masters have given up, now.

    Of those that are known by a master alone nothing is known where that one is silent.
    """
    answer = ask({"until": "healthy", **question, "limit_s": 0.0})
    silent = [] if answer.get("ok") is True else _told(answer, "missing")
    kinds = {name.partition(" ")[0] for name in silent}
    unknown = {kind for kind, master in _KNOWN_BY.items() if master in kinds}
    return [name for name in silent if name.partition(" ")[0] not in unknown]


def await_idle(ask: Ask, question: dict[str, Any], *, where: str) -> float:
    """Return when nothing runs and no application holds a container; seconds that it took."""
    begun = time.monotonic()
    answer = ask({"until": "idle", **question})
    if answer.get("ok") is True:
        return _seconds(answer, time.monotonic() - begun)
    left = [key.replace("-", " on ", 1) + " died" for key in _told(answer, "died")]
    left += _told(answer, "missing")
    raise ClusterError(
        f"the cluster is not idle after {question['limit_s']:g} s: {_list(left) or 'no answer'}",
        where=where,
        fix="harness cluster down; harness cluster up",
    )


def _seconds(answer: dict[str, Any], waited: float) -> float:
    """How long the waiter says that it took; how long we have, where it tells no time."""
    told = answer.get("seconds")
    return float(told) if isinstance(told, int | float) and 0 <= told < _MOST_SECONDS else waited


def _told(answer: dict[str, Any], key: str) -> list[str]:
    """Names in an answer, which comes from a host: as many and as long as a message holds."""
    names = answer.get(key)
    found = names[:_MOST_NAMES] if isinstance(names, list) else []
    return [printable(str(name))[:80] for name in found]


def _list(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
