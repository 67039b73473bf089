"""Budgets: how much slower or costlier another run may be, and how far off a model."""

from __future__ import annotations

import math
import re

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.base.text import did_you_mean, excerpt
from harness.clusters.workloads import WORKLOADS
from harness.core.evaluate.changes import Change, Side
from harness.core.experiment.document import Document
from harness.models import MODELS
from harness.scoring.score import LEVELS

# The limits that a budget may have: the kind of change, and what names it; the first is needed.
_LIMITS = {
    "slower": ("time", ("quantity", "workload")),
    "error": ("error", ("quantity", "workload", "model")),
    "changes": ("cost", ("statistic", "workload")),
}
_PERCENT = re.compile(r"\s*([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*%\s*", re.ASCII)


class Budget(NamedTuple):
    """*most* is the share that *limit* allows of what *chosen* names; *verdict* says if it does."""

    name: str
    limit: str
    most: float
    chosen: dict[str, str]
    verdict: str = ""
    reason: str = ""


def read_budgets(text: str, source: str, sides: Sequence[Side]) -> list[Budget]:
    """Read the YAML file *source*, about *sides*; `SpecError` has everything that is wrong."""
    document = Document(text, source)
    names = budget_names(sides)
    entries = document.at(("budgets",))
    is_list = isinstance(entries, list) and bool(entries)
    is_schema = document.at(("schema",)) == "1"
    if not is_list or not is_schema or document.mapping().keys() != {"schema", "budgets"}:
        fix = "write 'schema: 1', 'budgets:' and lines such as '- {quantity: job_s, slower: 5 %}'"
        document.problem((), "the file is not schema 1 with a list of budgets alone", fix)
    budgets = list[Budget]()
    for place in range(len(entries) if isinstance(entries, list) else 0):
        budget = read_budget(document, place, names)
        if budget is not None:
            budgets.append(budget)
    document.raise_problems()
    return budgets


def budget_names(sides: Sequence[Side]) -> dict[str, set[str]]:
    """What a budget can be about, by the key that names it; nothing: it may be anything."""
    names = {"quantity": {*LEVELS}, "workload": {*WORKLOADS}, "model": {*MODELS}}
    names["statistic"] = set()
    for side in sides:
        names["workload"] |= side.axes["workload"]
        names["model"] |= {prediction.model for prediction in side.predictions}
        if side.profiles:
            names["statistic"] |= {key[3] for key, _ in side.estimates({}) if key[0] == "cost"}
    return names


def read_budget(document: Document, place: int, names: Mapping[str, set[str]]) -> Budget | None:
    """The budget at a *place* of the list; what is wrong is noted in the *document*."""
    path = ("budgets", place)
    entry = document.mapping("budgets", place)
    limit = next((key for key in _LIMITS if key in entry), "slower")
    percent = _PERCENT.fullmatch(str(entry.get(limit)))
    (_, keys) = _LIMITS[limit]
    if percent is None or keys[0] not in entry:
        fix = "write one such as {quantity: job_s, slower: 5 %}"
        fix += " or {statistic: network_s_per_byte, changes: 20 %}"
        document.problem(path, "a budget is a percentage of one quantity or statistic", fix)
        return None
    chosen = {key: str(value) for key, value in entry.items() if key != limit}
    for key, value in chosen.items():
        if key not in keys:
            what = f"{limit} takes no '{excerpt(key)}'"
            document.problem((*path, key), what, did_you_mean(key, keys), key=True)
        elif names[key] and value not in names[key]:
            what = f"there is no {key} '{excerpt(value)}'"
            document.problem((*path, key), what, did_you_mean(value, names[key]))
    name = " ".join((*chosen.values(), limit, percent[0].strip()))
    return Budget(name, limit, float(percent[1]) / 100, chosen)


def judge(budget: Budget, changed: Sequence[Change], *, strict: bool) -> Budget:
    """
    Judge *budget* by the 95 % intervals of what *changed*, of errors those in the other run.

    It is broken where one of them lies beyond the limit as a whole, or *strict* where it cannot be
    decided, and kept where all are within.
    """
    texts: dict[str, list[str]] = {"broken": [], "undecided": [], "kept": []}
    for change in changed:
        if is_about(budget, change):
            verdict, ends = verdict_of(budget, change)
            what = f"{change.model} {change.workload} in {change.run}: {ends}"
            texts[verdict].append(what.strip())
    verdict = next((verdict for verdict in texts if texts[verdict]), "undecided")
    reason = "; ".join(texts[verdict]) or "the runs have nothing of it in common"
    if strict and verdict == "undecided":
        verdict = "broken"
        reason = f"undecided, and --strict counts that: {reason}"
    return budget._replace(verdict=verdict, reason=reason)


def is_about(budget: Budget, change: Change) -> bool:
    """Whether *budget* limits a change: of all cells together, of what it names."""
    (kind, _) = _LIMITS[budget.limit]
    named = {"workload": change.workload, "model": change.model}
    named |= {"quantity": change.name, "statistic": change.name}
    return change.kind == kind and not change.cell and budget.chosen.items() <= named.items()


def verdict_of(budget: Budget, change: Change) -> tuple[str, str]:
    """Whether a change is `broken`, `kept` or `undecided` by its interval, and that as a text."""
    interval = interval_of(change)
    if interval is None:
        return "undecided", "the interval is not known"
    (low, high) = interval
    least = -budget.most if budget.limit == "changes" else -math.inf
    ends = f"{100 * low:.3g} to {100 * high:.3g} %"
    if low > budget.most or high < least:
        return "broken", ends
    return "kept" if least <= low and high <= budget.most else "undecided", ends


def interval_of(change: Change) -> tuple[float, float] | None:
    """What a budget limits of a change: relative, of an error the one of the other run."""
    if change.low is None or change.high is None:
        return None
    if change.kind != "error":
        return change.low, change.high
    # The interval of the one error is as much narrower than that of the difference as its spread.
    other_spread = change.other_spread or 0.0
    both_spreads = math.hypot(change.base_spread or 0.0, other_spread) or 1.0
    reach = (change.high - change.change) * other_spread / both_spreads
    return change.other - reach, change.other + reach
