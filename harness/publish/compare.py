"""
A bundle compared: with itself made again, with its experiment measured again, with other bundles.

Bundles are ranked only where rules, experiment, division and system are the same; all that differs
stands in the head, and a closed bundle beside an open one says why that is open.
"""

from __future__ import annotations

import json
import math
import re

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

from harness.base.documents.wording import by_number
from harness.base.errors import DataError, EvidenceError
from harness.base.records.score import Comparison, ScoreBook
from harness.base.records.trial import SCHEMA_VERSION, Record, SchemaVersion, digest
from harness.base.stats.resampling import FEWEST_CELLS
from harness.base.text import excerpt, read_json
from harness.core.evaluate.flow import Evaluation
from harness.core.reports.sections.method import flatten
from harness.core.run.reproduce import reproduce
from harness.core.store import Run
from harness.core.store.compare import Difference
from harness.core.store.packed import home_of, opened
from harness.core.store.run import measured_part
from harness.core.store.sums import REPLICATIONS, SUMS
from harness.observe.storage.files import folders, json_bytes, write_file
from harness.observe.storage.opener import Opener
from harness.pseudonyms.names import Pseudonyms
from harness.publish import verify
from harness.publish.data import (
    CLAIM,
    FIX,
    TABLES,
    in_present_words,
    make_claim,
    paragraphs_of,
    read_table,
    write_tables,
)
from harness.publish.publication import read_publication, sources_sha256
from harness.publish.remade import NOT_COMPARED, PAGES, PICTURES, PROFILES, Compared, remade_pages
from harness.publish.rules import check
from harness.publish.system import system_document
from harness.publish.verifiers import whole_verifier

# What needs the logs of jobs: at a leaner level of evidence it is taken as it stands.
_OF_LOGS = re.compile(r"data/(trials\.csv: .*: seal|runs\.csv: .*: (blind|sealed))")
_KEYS = ("run", "cell", "trial", "workload", "model", "rung", "quantity", "refit", "speed",
         "better", "worse", "metric")  # fmt: skip
# Facts of a system that are others in every run: what was measured, the program, which any commit
# changes, and what belongs to a job.
_EXPERIMENT = re.compile(r"experiments\.[^.]+\.")
_OF_A_RUN = re.compile(
    r"(measured|harness)\.|.*properties of a cell's jobs|.*(job\.dir|jar|outputdir)$"
)
# Numbered anew in each bundle.
_NAMES = re.compile(r"/path-\d+|job_\d+_\d+|\b(host|user|queue|secret)-\d+\b")
_ROUNDING = 1e-9
_ERROR = "{:.1f} % ({:.1f} to {:.1f})"
Outcome = Literal["holds", "does not hold", "undecided"]
# Kinds of conclusions, the strongest first.
KINDS = ("nearer", "equal", "mean error", "bias")
_OUTCOMES: dict[bool | None, Outcome] = {True: "holds", False: "does not hold", None: "undecided"}


class Conclusion(Record):
    """
    One thing that a bundle says of *run*, as *published*, and what was *measured* again.

    *kind* is one of `KINDS`; records of earlier versions have none.
    """

    run: str
    what: str
    published: str
    measured: str
    outcome: Outcome
    kind: str = ""


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
    what to quote of each run, and the footnote.
    """

    bundles: list[str]
    head: dict[str, list[str]]
    not_ranked: str
    why_open: dict[str, list[str]]
    rows: list[Row]
    quotes: dict[str, tuple[list[str], str]]


def bundled_runs(bundle: Path) -> list[Run]:
    """
    Runs of the folder *bundle*, which is checked.

    `EvidenceError` names what was changed, or a verifier in it that is not ours of then.
    """
    whole_verifier(bundle)
    runs = [Run(folder) for folder in folders(bundle / "runs")]
    if not runs:
        raise DataError("the bundle has no run", where=str(bundle / "runs"), fix=FIX)
    return runs


def reproduce_bundle(bundle: Path, folder: Path, given: str) -> Iterator[Compared]:
    """
    Each stage of each run after *given*, then all pages of the bundle, with what differs.

    Of a bundle that another release made these are its tables and its claim; what is not compared
    then is a stage, too.
    """
    bundle = opened(bundle)
    runs = bundled_runs(bundle)
    opener = Opener(bundle)
    for run in runs:
        made = list[str]()
        for stage, differences in reproduce(run, folder / run.id, given, is_lean=True):
            made.append(stage)
            yield f"{stage} of {run.id}", differences
        if given not in ("profiles", "predictions") and "profiles" not in made:
            why = "taken as published, as its traces are not here"
            yield f"{PROFILES} of {run.id}, {why}: {NOT_COMPARED}", None
    publication = read_publication(opener)
    if publication is None:
        yield f"{PAGES}, which an earlier version made: {NOT_COMPARED}", None
    elif publication.release.sources == sources_sha256():
        yield from remade_pages(opener, folder, publication)
        return
    else:
        sources = excerpt(publication.release.sources[:16])
        yield f"{PAGES}, which another release made (sources {sources}): {NOT_COMPARED}", None
    evaluations = [*map(Evaluation.of, runs)]
    write_tables(evaluations, folder / "data", str)
    is_older = publication is None or publication.schema_version < SCHEMA_VERSION
    for name in TABLES:
        compared = compare_tables(opener, Opener(folder), name, may_lack=is_older)
        yield f"data/{name}.csv", [*compared]
    stated_lines = stated_claim(opener)
    differing = list[Difference]()
    lines = zip_longest(stated_lines, make_claim(evaluations).lines)
    for number, (old, new) in enumerate(lines, 1):
        # Whether it is blind is shown by logs, and by what the rules say of trials.csv.
        is_same = in_present_words(old or "") == (new or "")
        if not is_same and "were sealed" not in (old or ""):
            place = f"README.md: line {number} of the claim"
            differing.append(Difference("", place, old, new, None))
    yield "README.md: claim", differing


def stated_claim(bundle: Opener) -> list[str]:
    """Lines of the claim of README.md; none where it has none."""
    text = bundle.read(bundle.root / "README.md", FIX).decode(errors="replace")
    stated = re.search(CLAIM.format("(.*?)"), text, re.DOTALL)
    return stated[1].splitlines() if stated else []


# What a verifier raises: of numbers, of tables that lack a row, of files that are none.
_UNFOUNDED = (ArithmeticError, LookupError, OSError, RecursionError, TypeError, ValueError)


def verified_claim(bundle: Path) -> list[str]:
    """The lines of the claim of *bundle*; `EvidenceError`: they do not follow from its tables."""
    try:
        verify.check(bundle)
    except _UNFOUNDED as error:
        what = f"the claim does not follow from the tables: {excerpt(str(error), 300)}"
        raise EvidenceError(what, where=str(bundle), fix=FIX) from error
    return stated_claim(Opener(bundle))


def compare_tables(
    stored: Opener, remade: Opener, name: str, *, may_lack: bool = False
) -> Iterator[Difference]:
    """
    What differs between the tables *name* of a bundle and of what was made again.

    That of an earlier version *may_lack* columns that it did not have.
    """
    old_rows = _rows_by_key(stored, name)
    new_rows = _rows_by_key(remade, name)
    missing = set[str]()
    if may_lack and old_rows:
        missing = missing.union(*new_rows.values()).difference(*old_rows.values())
    for key in sorted({*old_rows, *new_rows}):
        old_row = old_rows.get(key, {})
        new_row = new_rows.get(key, {})
        for column in old_row | new_row:
            if column in missing:
                continue
            old = old_row.get(column)
            new = new_row.get(column)
            place = f"data/{name}.csv: {key}: {column}"
            # A column that an earlier version did not have is as good as one that says nothing.
            if (old or "") != (new or "") and not _OF_LOGS.fullmatch(place):
                yield Difference("", place, old, new, relative_change(old, new))


def _rows_by_key(opener: Opener, name: str) -> dict[str, dict[str, str]]:
    """Rows of a table by what they are about, as a text."""
    rows = dict[str, dict[str, str]]()
    for row in read_table(opener, name):
        rows[" ".join(row[key] for key in _KEYS if row.get(key))] = row
    return rows


def relative_change(old: str | None, new: str | None) -> float | None:
    """By which part of itself a number has changed; `None`: one of both is no number, or 0."""
    with suppress(ValueError, ZeroDivisionError):
        change = (float(new or "") - float(old or "")) / abs(float(old or ""))
        return change if math.isfinite(change) else None
    return None


def replicate(bundle: Path, measure: Callable[[Run], Evaluation]) -> Replication:
    """
    Measure the experiments of *bundle* again, by *measure*; say which conclusions carry over.

    The record, with what the system is, lies in the bundle's `replications/` afterwards; of a
    packed bundle beside the archive, which stays as it is.
    """
    folder = opened(bundle)
    published = bundled_runs(folder)
    opener = Opener(folder)
    runs = [measure(run).run for run in published]
    conclusions = list[Conclusion]()
    for first, second in zip(published, runs, strict=True):
        conclusions += conclude(first.id, first.read_scores(), second.read_scores())
    system = Pseudonyms.of(runs).text(json.dumps(system_document(runs)))
    old, new = map(system_facts, (opener.read(folder / "system.json", FIX).decode(), system))
    replication = Replication(
        bundle=opener.sha256(folder / SUMS),
        runs=tuple(run.id for run in runs),
        conclusions=tuple(conclusions),
        differences={
            name: (old.get(name, ""), new.get(name, ""))
            for name in sorted({name for name, _ in old.items() ^ new.items()})
        },
    )
    target = home_of(bundle) / REPLICATIONS / runs[0].id
    record = json_bytes(replication.model_dump(mode="json"))
    write_file(target / "replication.json", record, target)
    write_file(target / "system.json", json_bytes(json.loads(system)), target)
    return replication


def system_facts(text: str) -> dict[str, str]:
    """What of a `system.json` can be compared with that of another run, by dotted names."""
    facts = dict[str, str]()
    try:
        flat = [*flatten(read_json(text))]
    except (ValueError, AttributeError, RecursionError) as error:
        what = f"system.json cannot be read: {excerpt(str(error), 200)}"
        raise DataError(what, where="system.json of the bundle", fix=FIX) from error
    for dotted_name, value in flat:
        name = _EXPERIMENT.sub("", dotted_name, 1)
        if not _OF_A_RUN.match(name):
            facts[name] = _NAMES.sub("", str(value))
    return facts


class Finding(NamedTuple):
    """What a run says, as *published* and *measured* again; *is_same* is `None` where undecided."""

    what: str
    published: str
    measured: str
    is_same: bool | None
    kind: str


def conclude(run: str, published: ScoreBook, measured: ScoreBook) -> Iterator[Conclusion]:
    """
    Each decided verdict, each mean error and each sign of a bias of *published*, held again.

    Of fewer than six cells a mean error has no interval, and nothing is concluded from it.
    """
    ranking = published.ranking()
    quantity = ranking.quantity if ranking else ""
    findings = [
        *verdict_findings(published, measured),
        *error_findings(published, measured, quantity),
        *bias_findings(published, measured, quantity),
    ]
    for finding in findings:
        yield Conclusion(
            run=run,
            what=finding.what,
            published=finding.published,
            measured=finding.measured,
            outcome=_OUTCOMES[finding.is_same],
            kind=finding.kind,
        )


def verdict_findings(published: ScoreBook, measured: ScoreBook) -> Iterator[Finding]:
    """
    The verdicts about pairs of models that are decided.

    Of two that predict the same nothing is concluded: they are equal wherever they are measured.
    """
    times_s = _predicted_times(published)
    new_verdicts = {_pair_key(pair): _verdict(pair) for pair in measured.comparisons}
    for pair in published.comparisons:
        old = _verdict(pair)
        new = new_verdicts.get(_pair_key(pair), "none")
        models = (pair.better, pair.worse)
        first, second = (times_s[model, pair.quantity, pair.speed] for model in models)
        if old == "undecided" or (first and _are_same(first, second)):
            continue
        what = f"{pair.quantity}, {pair.speed}: {pair.better} and {pair.worse}"
        is_same = None if new in ("none", "undecided") else new == old
        yield Finding(what, old, new, is_same, pair.verdict)


def _predicted_times(score_book: ScoreBook) -> dict[tuple[str, str, str], dict[str, float]]:
    """Predicted seconds of each cell, by model, quantity and speed."""
    times_s = defaultdict[tuple[str, str, str], dict[str, float]](dict)
    for score in score_book.scores:
        times_s[score.model, score.quantity, score.speed][score.cell] = score.predicted_s
    return times_s


def _are_same(first_s: dict[str, float], second_s: dict[str, float]) -> bool:
    """Whether two models predict the same in all cells, but for rounding."""
    return first_s.keys() == second_s.keys() and all(
        math.isclose(seconds, second_s[cell], rel_tol=_ROUNDING)
        for cell, seconds in first_s.items()
    )


def _pair_key(pair: Comparison) -> tuple[str, ...]:
    """What a pair is known by, whichever model is better."""
    return (pair.quantity, pair.speed, *sorted((pair.better, pair.worse)))


def _verdict(pair: Comparison) -> str:
    return f"{pair.better} nearer" if pair.verdict == "nearer" else pair.verdict


def error_findings(published: ScoreBook, measured: ScoreBook, quantity: str) -> Iterator[Finding]:
    """The mean errors: the same where the new one is in the old interval."""
    new_errors = _mean_errors(measured, quantity)
    for model, (old, old_low, old_high) in _mean_errors(published, quantity).items():
        what = f"mean error of {model}"
        text = _ERROR.format(old, old_low, old_high)
        if model not in new_errors:
            yield Finding(what, text, "no answer", None, "mean error")
            continue
        new, new_low, new_high = new_errors[model]
        is_within = old_low <= new <= old_high
        is_apart = new_high < old_low or old_high < new_low
        is_same = is_within if is_within or is_apart else None
        new_text = _ERROR.format(new, new_low, new_high)
        yield Finding(what, text, new_text, is_same, "mean error")


def _mean_errors(score_book: ScoreBook, quantity: str) -> dict[str, tuple[float, float, float]]:
    """Mean error of each model over enough cells, in percent, and its low and its high end."""
    errors = dict[str, tuple[float, float, float]]()
    asked = (quantity, score_book.speed, "*")
    for summary in score_book.summaries:
        kind = (summary.quantity, summary.speed, summary.workload)
        error = summary.metrics.get("mape")
        if kind != asked or summary.cells < FEWEST_CELLS or error is None:
            continue
        if error.low is not None and error.high is not None:
            errors[summary.model] = (100 * error.value, 100 * error.low, 100 * error.high)
    return errors


def bias_findings(published: ScoreBook, measured: ScoreBook, quantity: str) -> Iterator[Finding]:
    """The signs of the biases."""
    new_signs = _signs(measured, quantity)
    for model, old in _signs(published, quantity).items():
        new = new_signs.get(model)
        is_same = None if new is None else new == old
        yield Finding(f"sign of the bias of {model}", old, new or "none", is_same, "bias")


def _signs(score_book: ScoreBook, quantity: str) -> dict[str, str]:
    """Models that err to one side in each of six cells or more: by chance 3 % of them would."""
    errors = defaultdict[str, list[float]](list)
    for score in score_book.scores:
        if (score.quantity, score.speed) == (quantity, score_book.speed):
            errors[score.model].append(score.signed_error)
    signs = dict[str, str]()
    for model, signed_errors in errors.items():
        if len(signed_errors) >= FEWEST_CELLS and min(signed_errors) > 0:
            signs[model] = "too long"
        elif len(signed_errors) >= FEWEST_CELLS and max(signed_errors) < 0:
            signs[model] = "too short"
    return signs


def side_by_side(bundles: Sequence[Path]) -> SideBySide:
    """Compare *bundles*, packed or not, each checked; `EvidenceError` names a changed file."""
    sides = list[dict[str, str]]()
    rows = list[Row]()
    quotes = dict[str, tuple[list[str], str]]()
    why_open = dict[str, list[str]]()
    for bundle in bundles:
        name = str(bundle)
        folder = opened(bundle)
        opener = Opener(folder)
        runs = bundled_runs(folder)
        evaluations = [*map(Evaluation.of, runs)]
        rules_check = check(folder)
        if rules_check.claimed not in ("closed", "open"):
            what = "rules.json does not say by which rules, and in which division"
            raise EvidenceError(what, where=str(folder / "rules.json"), fix=FIX)
        claim = make_claim(evaluations)
        system = system_facts(opener.read(folder / "system.json", "get the bundle again").decode())
        measured = [digest(measured_part(evaluation.experiment)) for evaluation in evaluations]
        sides.append(
            {
                "rules": rules_check.claimed_by,
                "division": rules_check.claimed,
                "experiment": " ".join(measured),
            }
            | {f"system: {key}": value for key, value in system.items()}
        )
        if rules_check.claimed == "open":
            why_open[name] = [*rules_check.unmet.values()]
        for evaluation in evaluations:
            rows += error_rows(evaluation, name)
        footnote = f"{claim.title}; bundle {opener.sha256(folder / SUMS)[:16]},"
        footnote += f" rules {rules_check.claimed_by or 'of no version'},"
        footnote += f" {rules_check.claimed} division, {claim.date}; {_status(bundle)}."
        if rules_check.labels:
            footnote += f" Labels: {', '.join(rules_check.labels)}."
        quotes[name] = (paragraphs_of(verified_claim(folder)), footnote)
    head = differing_facts(sides)
    not_ranked = why_not_ranked(head)
    rows.sort(key=lambda row: row[:4] if not_ranked else (row.experiment, row.error, row.model))
    return SideBySide([*map(str, bundles)], head, not_ranked, why_open, rows, quotes)


def error_rows(evaluation: Evaluation, bundle: str) -> Iterator[Row]:
    """The mean errors of the models of a run by the quantity that they are ranked by."""
    score_book = evaluation.run.read_scores()
    ranking = score_book.ranking()
    if ranking is None:
        return
    ranked = ("*", ranking.quantity, ranking.speed)
    for summary in score_book.summaries:
        error = summary.metrics.get("mape")
        if error and (summary.workload, summary.quantity, summary.speed) == ranked:
            yield Row(
                experiment=evaluation.experiment.name,
                model=summary.model,
                quantity=summary.quantity,
                bundle=bundle,
                error=error.value,
                low=error.low,
                high=error.high,
            )


def differing_facts(sides: Sequence[dict[str, str]]) -> dict[str, list[str]]:
    """What is not the same on all *sides*, with the value of each, none being an empty one."""
    head = dict[str, list[str]]()
    for key in dict.fromkeys(chain.from_iterable(sides)):
        values = [side.get(key, "") for side in sides]
        if len({*values}) > 1:
            head[key] = values
    return head


def why_not_ranked(head: dict[str, list[str]]) -> str:
    """Why bundles that differ by *head* are not ranked; nothing: they are."""
    but_systems = [key for key in head if not key.startswith("system: ")]
    if but_systems:
        return f"not ranked: they differ in {' and '.join(but_systems)}"
    return "not ranked: they were measured on different systems" if head else ""


def _status(bundle: Path) -> str:
    """What is known of a bundle beyond its own word: recomputed or not, measured again by whom."""
    with TemporaryDirectory(prefix="harness-reproduce-") as folder:
        status = status_of([*reproduce_bundle(bundle, Path(folder), "predictions")])
    number = len(replicated(bundle))
    if not number:
        return status
    lie = by_number(number, "record lies", "records lie")
    say = by_number(number, "says", "say")
    records = f"{number} {lie} beside it that {say} it was measured again"
    return f"{status}; {records}, which anybody can write"


def status_of(stages: Sequence[Compared]) -> str:
    """What is known of a bundle by the *stages* that were made again."""
    compared = [differences for _, differences in stages if differences is not None]
    if not all(difference.is_equal for difference in chain.from_iterable(compared)):
        return "unverified"
    left = ", ".join(what_is_left(stages))
    return f"numbers recomputed, {left} not compared" if left else "recomputed"


def what_is_left(stages: Sequence[Compared]) -> Iterator[str]:
    """Kinds of files that were not compared, of the *stages* that a bundle was made again in."""
    left = [stage for stage, differences in stages if differences is None]
    yield from (
        kind
        for kind in (PROFILES, PAGES, PICTURES)
        if any(stage.startswith(kind) for stage in left)
    )


def replicated(bundle: Path) -> set[str]:
    """
    Runs that measured *bundle* again, by the records in it, and those beside its archive.

    A record counts if it can be read, is about this very bundle and concludes something of a run
    of it.  Who wrote it is not known: anybody can make a folder.
    """
    folder = opened(bundle)
    sums = Opener(folder).sha256(folder / SUMS)
    runs = set[str]()
    for place in {folder, home_of(bundle)}:
        opener = Opener(place)
        for path in folders(place / REPLICATIONS):
            with suppress(DataError):
                record = opener.read_record(Replication, path / "replication.json", FIX)
                is_about = record.bundle == sums and any(
                    (folder / "runs" / conclusion.run).is_dir() for conclusion in record.conclusions
                )
                runs |= {path.name} if is_about else set()
    return runs
