"""
Families of jobs: runs of one program, by their names and classes or by a user's rules.

A rule's regular expression is matched by RE2, in time linear in the text: neither a name from a
foreign cluster nor an unlucky pattern can make it hang.
"""

from __future__ import annotations

import re

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.base.errors import SpecError
from harness.base.text import excerpt
from harness.clusters.workloads.base import INPUT_TOLERANCE
from harness.core.experiment.document import MAX_CHARACTERS, Document, Scalar
from harness.observe.storage.files import os_error_as_machine_error

RULES_FILE = "rules.yaml"
WIDE_SPREAD = 2.0  # of the times of jobs alike: more than that is warned of
_MOST_RULES = 500
_LONGEST_PATTERN = 500
_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    "|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
# Which stage of a query or step of a flow: that is another program.
STAGE = re.compile(
    r"(?<![a-z])(?:stage|step|phase)(?:-num)?[-_ =:#]{0,2}\d{1,3}(?: ?(?:of|/) ?\d{1,3})?"
    r"(?![\d.:/_-]*\d)|(?<![\d.:/_-])\d{1,2} of \d{1,2}(?![\d.:/_-]*\d)",
    re.IGNORECASE,
)
_HASH = (
    r"(?<![0-9a-z])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?=\d*[a-f])(?:(?=[a-f]*\d)[0-9a-f]{12,}|(?=[a-f]*\d[a-f]*\d)[0-9a-f]{8,11}))(?![0-9a-z])"
)
_DATE = rf"\b(?:\d{{1,2}}[ -])?{_MONTH}[ .,-]{{1,2}}\d{{1,4}}(?:, ?\d{{4}})?\b"  # in words
_NUMBER = r"\d(?:[\d.,:/_T -]*\d)?(?:Z\b)?"  # a date, a time
_VARYING = (
    re.compile(rf"({STAGE.pattern})|{_HASH}", re.IGNORECASE),
    re.compile(rf"({STAGE.pattern})|{_DATE}|{_NUMBER}", re.IGNORECASE),
)
_PACKAGE = re.compile(r"\b([A-Za-z_])\w*\.(?=\w)")

# Name, mapper, combiner, reducer, and what tells the program apart beside them.
Parts = tuple[str, str | None, str | None, str | None, str | None]


def stem(name: str) -> str:
    """
    The name of a job without its numbers, hashes and dates; stages and steps keep theirs.

    >>> stem("etl-2026-11-25 run 7"), stem("load of 3 Nov 2026"), stem("word count")
    ('etl-# run #', 'load of #', 'word count')
    >>> stem("query 17 (Stage-2)"), stem("job_1795224441974_0001"), stem("step 2 of 3")
    ('query # (Stage-2)', 'job_#', 'step 2 of 3')
    """
    for pattern in _VARYING:
        name = pattern.sub(lambda match: match[1] or "#", name)
    return " ".join(name.split()) or "no name"


def short_class(class_name: str) -> str:
    """The name of a class with each package as its first letter."""
    return _PACKAGE.sub(r"\1.", class_name)


@lru_cache(maxsize=10_000)
def own_family(job: Parts) -> str:
    """
    The family that no rule names: the stem of the name, and the classes with short packages.

    >>> own_family(("sort 3", "org.example.SortMap", "", None, "in SequenceFileInputFormat"))
    'sort # [o.e.SortMap, -, ?; in SequenceFileInputFormat]'
    """
    name, *classes, program = job
    short_classes = ["?" if part is None else short_class(part) or "-" for part in classes]
    more = f"; {program}" if program else ""
    return f"{stem(name)} [{', '.join(short_classes)}{more}]"


def families(rules: Mapping[str, str], jobs: Sequence[Parts]) -> list[str]:
    """Family of each job: of the first rule whose pattern is in its name or a class; or its own."""
    names = [own_family(job) for job in jobs]
    texts = ["\n".join(part or "" for part in job) for job in jobs]
    # The first rule counts: it is the last one that is applied.
    for family, pattern in reversed([*rules.items()]):
        for place, fits in enumerate(matches(pattern, texts)):
            if fits:
                names[place] = family
    return names


def matches(pattern: str, texts: Sequence[str]) -> list[bool]:
    """Whether *pattern* is in a line of each text; `ValueError` where it cannot be read."""
    import pyarrow as arrow

    from pyarrow import compute

    column = arrow.array(texts, arrow.string())
    matched: list[bool] = compute.match_substring_regex(column, f"(?m:{pattern})").to_pylist()
    return matched


def read_rules(path: Path) -> dict[str, str]:
    """Regular expressions by family from a YAML file; `SpecError` names each line that is wrong."""
    with os_error_as_machine_error(path), path.open("rb") as file:
        text = file.read(4 * MAX_CHARACTERS + 1).decode(errors="replace")
    document = Document(text, str(path))
    if not isinstance(document.data, dict) or len(document.data) > _MOST_RULES:
        what = f"the rules are not a mapping of at most {_MOST_RULES} families"
        raise SpecError(what, where=str(path), fix='write lines such as: nightly: "^etl-"')
    for family, pattern in document.data.items():
        try:
            if not isinstance(pattern, Scalar) or not 0 < len(pattern) <= _LONGEST_PATTERN:
                raise ValueError(f"not a text of at most {_LONGEST_PATTERN} characters")
            matches(pattern, [""])
        except ValueError as error:
            what = f"no regular expression for {excerpt(family)}: {excerpt(error)}"
            document.problem((family,), what, "write one that RE2 reads")
    document.raise_problems()
    return {excerpt(family): str(pattern) for family, pattern in document.data.items()}


def family_rows(table: Any) -> list[dict[str, Any]]:
    """
    Families in an index *table*, those of most jobs first: how many, how long, how large.

    Times and sizes are the least, the median and the most of the jobs that succeeded; *spread* is
    by how many times one took as long as another of the same setting and input, the most.
    """
    from pyarrow import compute

    table = table.filter(table["is_current"])
    is_success = compute.equal(table["state"], "SUCCEEDED")
    spreads = spreads_of(table.filter(is_success))
    for column in ("job_s", "input_bytes"):
        place = table.column_names.index(column)
        table = table.set_column(place, column, compute.if_else(is_success, table[column], None))
    wanted = {
        "jobs": ("job_id", "count"),
        "succeeded": ("is_success", "sum"),
        "least_job_s": ("job_s", "min"),
        "median_job_s": ("job_s", "approximate_median"),
        "most_job_s": ("job_s", "max"),
        "least_input_bytes": ("input_bytes", "min"),
        "median_input_bytes": ("input_bytes", "approximate_median"),
        "most_input_bytes": ("input_bytes", "max"),
        "last_submit_s": ("submit_s", "max"),
    }
    groups = table.append_column("is_success", is_success).group_by("family")
    rows = groups.aggregate([*wanted.values()]).to_pylist()
    named = [
        {
            "family": row["family"],
            **{name: row["_".join(pair)] for name, pair in wanted.items()},
            "spread": spreads.get(row["family"]),
        }
        for row in rows
    ]
    return sorted(named, key=lambda row: (-row["jobs"], row["family"]))


def spreads_of(table: Any) -> dict[str, float]:
    """Of each family with two jobs alike in an index *table* their most different times' factor."""
    columns = ["family", "setting", "input_bytes", "job_s"]
    sorted_table = table.sort_by([(name, "ascending") for name in columns])
    spreads = dict[str, float]()
    first: tuple[Any, ...] = (None, None, 0.0)
    times_s = list[float]()
    for family, setting, input_bytes, job_s in zip(
        *(sorted_table[name].to_pylist() for name in columns), strict=True
    ):
        size = input_bytes or 0.0
        is_alike = (family, setting) == first[:2] and size <= first[2] * (1 + INPUT_TOLERANCE)
        if not is_alike:
            first = (family, setting, size)
            times_s = []
        times_s.append(job_s)
        if len(times_s) > 1 and min(times_s) > 0:
            spreads[family] = max(spreads.get(family, 1.0), max(times_s) / min(times_s))
    return spreads


def job_rows(table: Any, family: str) -> list[dict[str, Any]]:
    """Jobs of the families whose names start with *family*, the latest first."""
    from pyarrow.compute import starts_with

    table = table.filter(table["is_current"]).select(
        ["job_id", "state", "submit_s", "job_s", "input_bytes", "family"]
    )
    chosen = table.filter(starts_with(table["family"], family))
    jobs: list[dict[str, Any]] = chosen.sort_by([("submit_s", "descending")]).to_pylist()
    return jobs
