"""Nights for other programs: OpenMetrics text, CSV for Apache Otava, cases of a test report."""

from __future__ import annotations

import csv
import io

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from harness.records.nightly import Alarm, Night
from harness.reports.nightly import ACTIVE, comparable, is_about, sentence
from harness.reports.wording import moment
from harness.text import printable

Samples = dict[str, float]  # by their labels
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def _labels(**labels: str) -> str:
    escaped = {key: printable(each).translate(_ESCAPES) for key, each in labels.items()}
    return ",".join(f'{key}="{each}"' for key, each in escaped.items())


def open_metrics(name: str, nights: Sequence[Night], alarms: Sequence[Alarm]) -> str:
    """Write the last night, and the alarms of all, as OpenMetrics text."""
    own, last = _labels(experiment=name), nights[-1] if nights else None
    points = [(each, fmean(each.raw)) for each in last.points if each.raw] if last else []
    jobs_s = {
        _labels(experiment=name, workload=point.workload, cell=point.cell): mean
        for point, mean in points if point.quantity == "job_s"
    }  # fmt: skip
    errors = defaultdict[str, list[float]](list)
    for point, ratio in points:
        if point.kind == "residual" and ratio:
            errors[_labels(experiment=name, model=point.model)].append(abs(1 / ratio - 1))
    mean_errors = {labels: fmean(each) for labels, each in errors.items()}
    states = {
        _labels(experiment=name, id=each.id, cause=each.cause, state=each.state): 1.0
        for each in alarms
    }
    families: dict[str, tuple[str, Samples]] = {
        "nights": ("Nights in the history.", {own: len(nights)}),
        "time_seconds": ("When the last night began.", {own: last.time_s} if last else {}),
        "whole": ("1 if the last night is whole.", {own: last.whole} if last else {}),
        "job_seconds": ("Mean time of each job in the last night.", jobs_s),
        "model_error_ratio": ("Mean relative error of bodies in the last night.", mean_errors),
        "alarm": ("1 for each alarm, whatever its state.", states),
    }
    text = ""
    for family, (help_text, samples) in families.items():
        full, unit = f"harness_nightly_{family}", family.rpartition("_")[2]
        text += f"# TYPE {full} gauge\n# HELP {full} {help_text}\n"
        text += f"# UNIT {full} {unit}\n" if unit in ("seconds", "ratio") else ""
        text += "".join(f"{full}{{{labels}}} {value:.17g}\n" for labels, value in samples.items())
    return text + "# EOF\n"


def otava_csv(nights: Sequence[Night]) -> str:
    """Write the nights that the last one can be compared with, a column for each number."""
    chosen, text = comparable(nights), io.StringIO()
    names = dict.fromkeys(point.name for night in chosen for point in night.points)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", "commit", *map(printable, names)])
    for night in chosen:
        means = {point.name: fmean(point.raw) for point in night.points if point.raw}
        time, commit = moment(night.time_s)[:19].replace(" ", "T"), night.facts.get("commit", "")
        values = (means.get(name, "nan") for name in names)
        writer.writerow([f"{time}Z", commit if commit.isalnum() else "", *values])
    return text.getvalue()


def junit_suites(
    nights: Sequence[Night], alarms: Sequence[Alarm]
) -> dict[str, list[tuple[str, str, str]]]:
    """Cases for `harness.api.export.junit_xml`: each number of the last night, by its kind."""
    suites: dict[str, list[tuple[str, str, str]]] = {}
    points = {point.name: point for night in comparable(nights) for point in night.points}
    measured = {point.name: point for night in nights[-1:] for point in night.points}
    active = [alarm for alarm in alarms if alarm.state in ACTIVE]
    for name, point in (points | measured).items():
        about = [sentence(each, nights) for each in active if is_about(each, point, nights)]
        outcome, message = "failure" if about else "", "; ".join(about)
        if not about and not (name in measured and nights[-1].whole):
            outcome = "skipped"
            message = "; ".join(("the last night lacks it, or is not whole", *nights[-1].lacks))
        suites.setdefault(point.kind, []).append((name, outcome, message))
    return suites
