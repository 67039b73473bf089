"""Budgets: how much slower or costlier another run may be, and how far off a model."""

from __future__ import annotations

import re

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.evaluate.changes import Change, Side
from harness.experiment.document import Document
from harness.models import MODELS
from harness.scoring.score import LEVELS
from harness.stats.resampling import FEWEST_CELLS
from harness.text import did_you_mean, excerpt
from harness.workloads import WORKLOADS

# The limits that a budget may have, with what each is about; the first of these is needed.
_KEYS = {
    "slower": ("quantity", "workload"),
    "error": ("quantity", "workload", "model"),
    "changes": ("statistic", "workload"),
}
_LIMITED = {"slower": "time", "changes": "cost"}
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
    document, budgets = Document(text, source), list[Budget]()
    known = {"quantity": {*LEVELS}, "workload": {*WORKLOADS}, "model": {*MODELS}}
    known["statistic"] = set()
    for side in sides:
        known["workload"] |= side.axes["workload"]
        known["model"] |= {each.model for each in side.predictions}
        if side.profiles:
            known["statistic"] |= {key[3] for key, _ in side.estimates({}) if key[0] == "cost"}
    entries = document.at(("budgets",))
    if document.at(("schema",)) != "1" or not isinstance(entries, list) or not entries:
        fix = "write 'schema: 1', 'budgets:' and lines such as '- {quantity: job_s, slower: 5 %}'"
        document.problem((), "the file lacks schema 1, or a list of budgets", fix)
    for place in range(len(entries) if isinstance(entries, list) else 0):
        path, entry = ("budgets", place), document.mapping("budgets", place)
        limit = next((key for key in _KEYS if key in entry), "slower")
        percent = _PERCENT.fullmatch(str(entry.get(limit)))
        if percent is None or _KEYS[limit][0] not in entry:
            fix = "write one such as {quantity: job_s, slower: 5 %}"
            fix += " or {statistic: network_s_per_byte, changes: 20 %}"
            document.problem(path, "a budget is a percentage of one quantity or statistic", fix)
            continue
        chosen = {key: str(value) for key, value in entry.items() if key != limit}
        for key, value in chosen.items():
            if key not in _KEYS[limit]:
                what, fix = f"{limit} takes no '{excerpt(key)}'", did_you_mean(key, _KEYS[limit])
                document.problem((*path, key), what, fix, key=True)
            elif known[key] and value not in known[key]:
                what, fix = f"there is no {key} '{excerpt(value)}'", did_you_mean(value, known[key])
                document.problem((*path, key), what, fix)
        name = " ".join((*chosen.values(), limit, percent[0].strip()))
        budgets.append(Budget(name, limit, float(percent[1]) / 100, chosen))
    document.raise_problems()
    return budgets


def judge(
    budget: Budget, changed: Sequence[Change], others: Sequence[Side], *, strict: bool
) -> Budget:
    """
    Judge *budget* by the 95 % intervals of what *changed*, or of the errors in the *others*.

    It is broken where one of them lies beyond the limit as a whole, or *strict* where it cannot be
    decided, and kept where all are within.
    """
    texts: dict[str, list[str]] = {"broken": [], "undecided": [], "kept": []}
    for what, low, high in _intervals(budget, changed, others):
        verdict, ends = "undecided", "the interval is not known"
        if low is not None and high is not None:
            ends = f"{100 * low:.3g} to {100 * high:.3g} %"
            verdict = "broken" if low > budget.most else "kept" if high <= budget.most else verdict
        texts[verdict].append(f"{what}: {ends}")
    verdict = next((each for each in texts if texts[each]), "undecided")
    reason = "; ".join(texts[verdict]) or "the runs have nothing of it in common"
    if strict and verdict == "undecided":
        verdict, reason = "broken", f"undecided, and --strict counts that: {reason}"
    return budget._replace(verdict=verdict, reason=reason)


def _intervals(
    budget: Budget, changed: Sequence[Change], others: Sequence[Side]
) -> Iterator[tuple[str, float | None, float | None]]:
    """What *budget* is about, each with the ends of its interval."""
    for change in changed:
        about = dict.fromkeys(("quantity", "statistic"), change.name)
        about["workload"] = change.workload
        is_chosen = change.kind == _LIMITED.get(budget.limit) and not change.cell
        if is_chosen and budget.chosen.items() <= about.items():
            low, high = change.low, change.high
            if change.kind == "cost" and low is not None and high is not None:
                low, high = max(0.0, low, -high), max(-low, high)
            yield f"{change.workload} in {change.run}", low, high
    for side in others if budget.limit == "error" else ():
        for each in side.scores.summaries:
            about = {"quantity": each.quantity, "workload": each.workload, "model": each.model}
            is_chosen = each.speed == "raw" and each.workload != "*"
            if is_chosen and budget.chosen.items() <= about.items():
                error = each.metrics.get("mape") if each.cells >= FEWEST_CELLS else None
                low, high = (error.low, error.high) if error else (None, None)
                yield f"{each.model} for {each.workload} in {side.run.id}", low, high
