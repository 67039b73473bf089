"""
The health check, one for all providers: live DataNodes = active NodeManagers = workers.

One process of the cluster looks (`harness.node.health`); here its answer is awaited and judged.
"""

from __future__ import annotations

import time

from collections.abc import Callable
from typing import Any

from harness.errors import ClusterError
from harness.text import excerpt

_MASTER_OF = {
    "datanode": "namenode", "historyserver": "namenode", "nodemanager": "resourcemanager",
}  # fmt: skip
_MOST_NAMES, _SHOWN = 2000, 4

Check = Callable[[dict[str, Any]], dict[str, Any]]


def await_healthy(
    check: Check, request: dict[str, Any], *, where: str, log: Callable[[str], str]
) -> None:
    """
    Return when every daemon has answered.

    *check* sends the request to the node agent; *log* gives the last lines of a daemon (``datanode
    on worker2``).  `ClusterError` names the daemons that died or do not answer, with those lines.
    """
    started = time.monotonic()
    answer = check({"until": "healthy", **request})
    waited = time.monotonic() - started
    if answer.get("ok") is True:
        return
    if not answer and waited < request["limit_s"]:
        raise ClusterError(
            f"the cluster was gone after {waited:.0f} s, before it was healthy",
            where=where,
            fix="start it again; another command may have taken it down",
        )
    dead_names, missing = _died(answer), _names(answer, "missing")
    if dead_names:
        what = f"{_shortened(dead_names)} died at start"
    else:
        what = f"no {_shortened(missing) or 'answer'} after {request['limit_s']:g} s"
    log_tail = "\n".join(log(daemon_name) for daemon_name in (dead_names or missing)[:1])
    raise ClusterError(
        f"{what}\n{log_tail}".rstrip(),
        where=where,
        fix="the last lines of its log are above; a busy machine may need a second try",
    )


def missing_daemons(check: Check, request: dict[str, Any]) -> list[str]:
    """
    Daemons (``datanode on worker2``) that do not answer, or that masters have given up, now.

    While a master does not answer, nothing is known of the daemons that only it knows.
    """
    answer = check({"until": "healthy", **request, "limit_s": 0.0})
    missing = [] if answer.get("ok") is True else _names(answer, "missing")
    kinds = {daemon_name.partition(" ")[0] for daemon_name in missing}
    unknown = {kind for kind, master in _MASTER_OF.items() if master in kinds}
    return [daemon_name for daemon_name in missing if daemon_name.partition(" ")[0] not in unknown]


def await_idle(check: Check, request: dict[str, Any], *, where: str) -> None:
    """Return when nothing runs and no application has a container."""
    answer = check({"until": "idle", **request})
    if answer.get("ok") is True:
        return
    left_names = [f"{name} died" for name in _died(answer)] + _names(answer, "missing")
    limit_s = request["limit_s"]
    raise ClusterError(
        f"the cluster is not idle after {limit_s:g} s: {_shortened(left_names) or 'no answer'}",
        where=where,
        fix="harness cluster down; harness cluster up",
    )


def _died(answer: dict[str, Any]) -> list[str]:
    return [key.replace("-", " on ", 1) for key in _names(answer, "died")]


def _names(answer: dict[str, Any], key: str) -> list[str]:
    """Names in an answer, which comes from a host: as many and as long as a message holds."""
    names = answer.get(key)
    return [excerpt(name, 80) for name in names[:_MOST_NAMES]] if isinstance(names, list) else []


def _shortened(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
