"""A bundle made again: from its own evidence, and by measuring its experiment once more."""

from __future__ import annotations

import csv
import io
import json
import re

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from harness.errors import DataError
from harness.evaluate.flow import Evaluation
from harness.publish.bundle import REPLICATIONS, SUMS, check_sums
from harness.publish.claim import CLAIM, CLAIM_END, make_claim
from harness.publish.data import TABLES, write_tables
from harness.publish.pseudonyms import Pseudonyms
from harness.publish.system import system_document
from harness.records.score import Comparison, MetricValue, ScoreBook, Summary
from harness.records.trial import SCHEMA_VERSION, Record, SchemaVersion
from harness.reports.sections.method import flatten
from harness.run.reproduce import reproduce
from harness.store import Run
from harness.store.compare import Difference
from harness.store.files import folders, json_bytes, write_file
from harness.store.opener import Opener

# Columns of tables that need the logs of jobs: at a leaner level they are taken as they stand.
_OF_LOGS = {"trials": ("seal",), "runs": ("blind", "sealed")}
_KEYS = ("run", "cell", "trial", "workload", "model", "rung", "quantity", "refit", "speed",
         "better", "worse", "metric")  # fmt: skip
_GET = "get the bundle again"
# Facts that are others in every run: what was measured; and the program, which any commit changes.
OF_A_RUN = re.compile(r"experiments\.[^.]+\.(measured|harness)\.")
Outcome = Literal["holds", "does not hold", "undecided"]


class Conclusion(Record):
    """One thing that a bundle says of *run*, as *published*, and what was *measured* again."""

    run: str
    what: str
    published: str
    measured: str
    outcome: Outcome


class Replication(Record):
    """
    `replication.json`: which conclusions of a bundle carry over to another cluster.

    *bundle* is the SHA-256 of its `SHA256SUMS`, *runs* are those that were measured, *differences*
    what the two systems say otherwise, published and here.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    bundle: str
    runs: tuple[str, ...]
    conclusions: tuple[Conclusion, ...]
    differences: dict[str, tuple[str, str]]


def bundled_runs(bundle: Path) -> list[Run]:
    """Runs of *bundle*, whose files are checked; `EvidenceError` names what was changed."""
    check_sums(bundle)
    runs = [Run(folder) for folder in folders(bundle / "runs")]
    if not runs:
        raise DataError("the bundle has no run", where=str(bundle / "runs"), fix=_GET)
    return runs


def reproduce_bundle(
    bundle: Path, folder: Path, given: str
) -> Iterator[tuple[str, list[Difference]]]:
    """Each stage of each run after *given*, then the tables and the claim, with what differs."""
    runs = bundled_runs(bundle)
    for run in runs:
        for stage, differences in reproduce(run, folder / run.id, given, is_lean=True):
            yield f"{stage} of {run.id}", differences
    evaluations = [*map(Evaluation.of, runs)]
    write_tables(evaluations, folder / "data", str)
    for name in TABLES:
        yield f"data/{name}.csv", list(_compare_table(bundle, folder, name))
    opener = Opener(bundle)
    text = opener.read(bundle / "README.md", _GET).decode(errors="replace")
    stated = re.search(f"{CLAIM}\n(.*?){CLAIM_END}", text, re.DOTALL)
    lines = stated[1].splitlines() if stated else []
    made = make_claim(evaluations, 0.0).lines
    length = max(len(lines), len(made))
    pairs = zip(_padded(lines, length), _padded(made, length), strict=True)
    yield (
        "README.md: claim",
        [
            Difference("", f"README.md: line {number} of the claim", old, new, None)
            for number, (old, new) in enumerate(pairs, 1)
            if old != new
            and "were sealed" not in old  # which the logs of jobs show, if they are there
        ],
    )


def _padded(lines: Sequence[str], length: int) -> list[str]:
    return [*lines, *[""] * (length - len(lines))]


def _compare_table(bundle: Path, folder: Path, name: str) -> Iterator[Difference]:
    """What differs in a table of *bundle* from that which was made in *folder*."""
    path, tables = Path("data", f"{name}.csv"), []
    for root in (bundle, folder):
        text = Opener(root).read(root / path, _GET).decode(errors="replace")
        rows = csv.DictReader(io.StringIO(text, newline=""))
        tables.append({" ".join(row[key] for key in _KEYS if row.get(key)): row for row in rows})
    stored, made = tables
    for key in sorted({*stored, *made}):
        old, new = stored.get(key, {}), made.get(key, {})
        for column in old | new:
            before, after = old.get(column), new.get(column)
            if before == after or column in _OF_LOGS.get(name, ()):
                continue
            relative = None
            if before and after and column not in _KEYS:
                try:
                    relative = (float(after) - float(before)) / abs(float(before))
                except (ValueError, ZeroDivisionError):
                    relative = None
            yield Difference("", f"{path}: {key}: {column}", before, after, relative)


def replicate(bundle: Path, measure: Callable[[Run], Evaluation]) -> Replication:
    """
    Measure the experiments of *bundle* again, by *measure*; say which conclusions carry over.

    The record, with what the system is, lies in the bundle's `replications/` afterwards.
    """
    published = bundled_runs(bundle)
    again = [measure(run) for run in published]
    conclusions = [
        conclusion
        for run, evaluation in zip(published, again, strict=True)
        for conclusion in conclude(run.id, run.read_scores(), evaluation.run.read_scores())
    ]
    runs = [evaluation.run for evaluation in again]
    pseudonyms, opener = Pseudonyms.of(runs), Opener(bundle)
    system = json.loads(pseudonyms.text(json.dumps(system_document(runs))))
    before = json.loads(opener.read(bundle / "system.json", _GET))
    old, new = (dict(flatten(each)) for each in (before, system))
    replication = Replication(
        bundle=opener.sha256(bundle / SUMS),
        runs=tuple(run.id for run in runs),
        conclusions=tuple(conclusions),
        differences={
            name: (str(old.get(name, "")), str(new.get(name, "")))
            for name in sorted({*old, *new})
            if old.get(name) != new.get(name) and not OF_A_RUN.match(name)
        },
    )
    target = bundle / REPLICATIONS / runs[0].id
    documents: dict[str, Mapping[str, object]] = {
        "replication.json": replication.model_dump(mode="json"),
        "system.json": system,
    }
    for name, document in documents.items():
        write_file(target / name, json_bytes(document), target)
    return replication


def conclude(run: str, published: ScoreBook, measured: ScoreBook) -> Iterator[Conclusion]:
    """Each decided verdict, each mean error and each sign of a bias of *published*, held again."""

    def pair_key(pair: Comparison) -> tuple[object, ...]:
        return (pair.quantity, pair.speed, *sorted((pair.better, pair.worse)))

    pairs_there = {pair_key(pair): pair for pair in measured.comparisons}
    outcome: Outcome
    for pair in published.comparisons:
        if pair.verdict == "undecided":
            continue
        other = pairs_there.get(pair_key(pair))
        if other is None or other.verdict == "undecided":
            outcome = "undecided"
        else:
            is_same = pair.verdict == other.verdict
            is_same &= pair.verdict == "equal" or pair.better == other.better
            outcome = "holds" if is_same else "does not hold"
        what = f"{pair.quantity}, {pair.speed}: {pair.better} and {pair.worse}"
        yield Conclusion(
            run=run, what=what, published=_verdict(pair), measured=_verdict(other), outcome=outcome
        )
    ranking = published.ranking("raw")

    def metrics(score_book: ScoreBook, metric: str) -> dict[str, MetricValue]:
        of = ("*", ranking.quantity if ranking else "", "raw")
        chosen: list[Summary] = [
            each
            for each in score_book.summaries
            if (each.workload, each.quantity, each.speed) == of
        ]
        return {each.model: each.metrics[metric] for each in chosen if metric in each.metrics}

    for metric, noun in (("mape", "mean error"), ("signed_error", "sign of the bias")):
        others = metrics(measured, metric)
        for model, old in metrics(published, metric).items():
            if old.low is None or old.high is None:
                continue
            new = others.get(model)
            outcome = "undecided"
            if metric == "signed_error":
                if old.low <= 0 <= old.high:
                    continue
                if new is not None and new.low is not None and new.high is not None:
                    is_decided = not new.low <= 0 <= new.high
                    is_same = (new.value > 0) == (old.value > 0)
                    outcome = ("holds" if is_same else "does not hold") if is_decided else outcome
            elif new is not None:
                low = new.value if new.low is None else new.low
                high = new.value if new.high is None else new.high
                if old.low <= new.value <= old.high:
                    outcome = "holds"
                elif high < old.low or low > old.high:
                    outcome = "does not hold"
            yield Conclusion(
                run=run, what=f"{noun} of {model}", published=_range(old), measured=_range(new),
                outcome=outcome,
            )  # fmt: skip


def _verdict(pair: Comparison | None) -> str:
    """A verdict in words."""
    if pair is None:
        return "not compared"
    return f"{pair.better} nearer" if pair.verdict == "nearer" else pair.verdict


def _range(number: MetricValue | None) -> str:
    """A share with its interval, in percent."""
    if number is None:
        return "no answer"
    ends = [f"{100 * end:.1f}" for end in (number.low, number.high) if end is not None]
    return f"{100 * number.value:.1f} % ({' to '.join(ends)})"
