"""Budgets: how much slower or costlier another run may be, and how far off a model."""

from __future__ import annotations

import math
import re

from collections.abc import Sequence
from typing import NamedTuple

from harness.evaluate.changes import Change, Side
from harness.experiment.document import Document
from harness.models import MODELS
from harness.scoring.score import LEVELS
from harness.text import did_you_mean, excerpt
from harness.workloads import WORKLOADS

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
    budgets = list[Budget]()
    known = {"quantity": {*LEVELS}, "workload": {*WORKLOADS}, "model": {*MODELS}}
    known["statistic"] = set()
    for side in sides:
        known["workload"] |= side.axes["workload"]
        known["model"] |= {prediction.model for prediction in side.predictions}
        if side.profiles:
            known["statistic"] |= {key[3] for key, _ in side.estimates({}) if key[0] == "cost"}
    entries = document.at(("budgets",))
    is_known = document.at(("schema",)) == "1" and isinstance(entries, list) and entries
    if not is_known or document.mapping().keys() != {"schema", "budgets"}:
        fix = "write 'schema: 1', 'budgets:' and lines such as '- {quantity: job_s, slower: 5 %}'"
        document.problem((), "the file is not schema 1 with a list of budgets alone", fix)
    for place in range(len(entries) if isinstance(entries, list) else 0):
        path = ("budgets", place)
        entry = document.mapping("budgets", place)
        limit = next((key for key in _LIMITS if key in entry), "slower")
        percent = _PERCENT.fullmatch(str(entry.get(limit)))
        (_, keys) = _LIMITS[limit]
        if percent is None or keys[0] not in entry:
            fix = "write one such as {quantity: job_s, slower: 5 %}"
            fix += " or {statistic: network_s_per_byte, changes: 20 %}"
            document.problem(path, "a budget is a percentage of one quantity or statistic", fix)
            continue
        chosen = {key: str(value) for key, value in entry.items() if key != limit}
        for key, value in chosen.items():
            if key not in keys:
                what = f"{limit} takes no '{excerpt(key)}'"
                fix = did_you_mean(key, keys)
                document.problem((*path, key), what, fix, key=True)
            elif known[key] and value not in known[key]:
                what = f"there is no {key} '{excerpt(value)}'"
                fix = did_you_mean(value, known[key])
                document.problem((*path, key), what, fix)
        name = " ".join((*chosen.values(), limit, percent[0].strip()))
        budgets.append(Budget(name, limit, float(percent[1]) / 100, chosen))
    document.raise_problems()
    return budgets


def judge(budget: Budget, changed: Sequence[Change], *, strict: bool) -> Budget:
    """
    Judge *budget* by the 95 % intervals of what *changed*, of errors those in the other run.

    It is broken where one of them lies beyond the limit as a whole, or *strict* where it cannot be
    decided, and kept where all are within.
    """
    least = -budget.most if budget.limit == "changes" else -math.inf
    texts: dict[str, list[str]] = {"broken": [], "undecided": [], "kept": []}
    for each in changed:
        about = {"workload": each.workload, "model": each.model}
        about |= {"quantity": each.name, "statistic": each.name}
        is_chosen = budget.chosen.items() <= about.items()
        if each.kind != _LIMITS[budget.limit][0] or each.cell or not is_chosen:
            continue
        verdict = "undecided"
        ends = "the interval is not known"
        low = each.low
        high = each.high
        if low is not None and high is not None:
            if each.kind == "error":  # its own interval is as much wider than its spread
                spreads = (each.base_spread or 0.0), (each.other_spread or 0.0)
                reach = (high - each.change) * spreads[1] / (math.hypot(*spreads) or 1.0)
                low = each.other - reach
                high = each.other + reach
            ends = f"{100 * low:.3g} to {100 * high:.3g} %"
            if low > budget.most or high < least:
                verdict = "broken"
            elif least <= low and high <= budget.most:
                verdict = "kept"
        texts[verdict].append(f"{each.model} {each.workload} in {each.run}: {ends}".strip())
    verdict = next((text for text in texts if texts[text]), "undecided")
    reason = "; ".join(texts[verdict]) or "the runs have nothing of it in common"
    if strict and verdict == "undecided":
        verdict = "broken"
        reason = f"undecided, and --strict counts that: {reason}"
    return budget._replace(verdict=verdict, reason=reason)
