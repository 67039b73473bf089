"""
Experiments that somebody else wrote: what of them is taken as it is, and what is asked for.

A bundle is measured again as one's own user.  Its settings that change the time of a job pass; what
loads code, names a file or opens the cluster does so by name alone, when the user has read it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from harness.base.documents.wording import listing
from harness.base.errors import SpecError
from harness.base.hadoop.kinds import MEANING, kind_of
from harness.base.records.trial import Cell

_MOST_NAMED = 12
_HERE = ("local", "docker")


def require_performance(cells: Iterable[Cell], source: str, allowed: Collection[str] = ()) -> None:
    """
    `SpecError` names each property of *cells* that does more than change the time of a job.

    *source* is whose they are; those that are *allowed* by name pass.
    """
    reasons = dict[str, str]()
    for cell in cells:
        for name, value in (*cell.configuration.items(), *cell.cluster.site.items()):
            kind = kind_of(name, str(value))
            if kind != "performance" and name not in allowed:
                reasons[name] = MEANING[kind]
    if reasons:
        named = [f"{name} {reason}" for name, reason in reasons.items()]
        what = f"somebody else chose these properties: {listing(named, most=_MOST_NAMED)}"
        options = " ".join(f"--allow {name}" for name in reasons)
        raise SpecError(what, where=source, fix=f"read what they do; to take them: {options}")


def require_own_place(cells: Iterable[Cell], source: str, overrides: Iterable[str]) -> None:
    """
    `SpecError` where *cells* of a *source* are to be measured at a place that its owner chose.

    Hosts, how they are reached, and whether others may reach them are the reader's to say, by
    *overrides* of his own; clusters of processes or containers of this machine are not.
    """
    given = {override.partition("=")[0].strip() for override in overrides}
    given |= {".".join(key.split(".")[:2]) for key in given}
    chosen = set[str]()
    for cluster in (cell.cluster for cell in cells):
        if cluster.exposed:
            chosen.add("cluster.exposed")
        if cluster.provider not in _HERE:
            chosen.add("cluster.provider")
            chosen |= {"cluster.hosts"} if cluster.hosts else set()
            chosen |= {"cluster.ssh"} if cluster.ssh else set()
    foreign = sorted(chosen - given)
    if foreign:
        what = f"somebody else chose where to measure: {listing(foreign)}"
        fix = "say where: --set cluster.provider=local, or each of these keys with --set"
        raise SpecError(what, where=source, fix=fix)
