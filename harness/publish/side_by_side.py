"""
Bundles side by side: ranked only where rules, experiment, division and system are the same.

All that differs stands in the head; a closed bundle beside an open one says why that is open.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from harness.evaluate.flow import Evaluation
from harness.publish.again import bundled_runs, reproduce_bundle, system_facts
from harness.publish.bundle import REPLICATIONS, SUMS
from harness.publish.claim import make_claim
from harness.publish.rules import VERSION, check
from harness.records.trial import digest
from harness.store.files import folders
from harness.store.opener import Opener
from harness.store.run import measured_part


class Row(NamedTuple):
    """Mean relative error of a model, by bundle and experiment, with its interval or range."""

    experiment: str
    model: str
    quantity: str
    bundle: str
    error: float
    low: float | None
    high: float | None


class SideBySide(NamedTuple):
    """
    Several bundles: *head* has what differs, a value for each; *rows* are in the order of errors.

    *not_ranked* says why rows are in the order of names instead.  *quotes* have, for each bundle,
    the sentences to quote and their footnote.
    """

    bundles: list[str]
    head: dict[str, list[str]]
    not_ranked: str
    why_open: dict[str, list[str]]
    rows: list[Row]
    quotes: dict[str, tuple[list[str], str]]


def side_by_side(bundles: Sequence[Path]) -> SideBySide:
    """Compare *bundles*, each checked; `EvidenceError` names a file that was changed."""
    sides, rows = list[dict[str, str]](), list[Row]()
    quotes, why_open = dict[str, tuple[list[str], str]](), dict[str, list[str]]()
    for bundle in bundles:
        name, opener, runs = str(bundle), Opener(bundle), bundled_runs(bundle)
        evaluations, rules_check = [*map(Evaluation.of, runs)], check(bundle)
        claim = make_claim(evaluations)
        system = system_facts(opener.read(bundle / "system.json", "get the bundle again").decode())
        measured = [digest(measured_part(each.experiment)) for each in evaluations]
        sides.append(
            {"rules": VERSION, "division": rules_check.claimed, "experiment": " ".join(measured)}
            | {f"system: {key}": value for key, value in system.items()}
        )
        if rules_check.claimed == "open":
            why_open[name] = [*rules_check.unmet.values()]
        for evaluation in evaluations:
            score_book = evaluation.run.read_scores()
            ranking = score_book.ranking("raw")
            for each in score_book.summaries if ranking else ():
                error = each.metrics.get("mape")
                of = (each.workload, each.quantity, each.speed)
                if error and ranking and of == ("*", ranking.quantity, "raw"):
                    ends = (error.value, error.low, error.high)
                    experiment = evaluation.experiment.name
                    rows.append(Row(experiment, each.model, each.quantity, name, *ends))
        footnote = f"{claim.title}; bundle {opener.sha256(bundle / SUMS)[:16]}, rules {VERSION},"
        footnote += f" {rules_check.claimed} division, {claim.date}; {_status(bundle)}."
        sentences = [line.removeprefix("- ") for line in claim.lines if line.startswith("- ")]
        quotes[name] = (sentences, footnote)
    head = {
        key: values
        for key in dict.fromkeys(key for side in sides for key in side)
        if len({*(values := [side.get(key, "") for side in sides])}) > 1
    }
    others = [key for key in head if not key.startswith("system: ")]
    not_ranked = "not ranked: they were measured on different systems" if head else ""
    if others:
        not_ranked = f"not ranked: their {' and '.join(others)} differ"
    rows.sort(key=lambda row: row[:4] if not_ranked else (row.experiment, row.error, row.model))
    return SideBySide([*map(str, bundles)], head, not_ranked, why_open, rows, quotes)


def _status(bundle: Path) -> str:
    """What is known of a bundle beyond its own word: measured again, recomputed, or nothing."""
    if count := len(folders(bundle / REPLICATIONS)):
        return f"measured again {count} times" if count > 1 else "measured again once"
    with TemporaryDirectory(prefix="harness-reproduce-") as folder:
        stages = reproduce_bundle(bundle, Path(folder), "predictions")
        is_equal = all(each.is_equal for _, differences in stages for each in differences)
    return "recomputed" if is_equal else "unverified"
