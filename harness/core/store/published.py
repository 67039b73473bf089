"""
What a run that was published can be asked: the levels of evidence of `harness publish`.

A run in a bundle says in `originals.json` at which level it was published.  What is left out of it
cannot be made again there, so the error names what the run can be asked without it.
"""

from __future__ import annotations

from pathlib import Path

from harness.base.errors import DataError
from harness.observe.storage.opener import Opener

ORIGINALS = "originals.json"

# What a run of each level lacks, from the leanest level on; the last one lacks nothing.
LACKS = {
    "scores": "its scores alone: it has no traces of its tasks",
    "traces": "its traces, and without its raw logs: it has neither histories nor times of records",
    "raw": "",
}
_ANSWERS = {
    "scores": "harness show, compare, profile, ask, tune and reproduce take this run",
    "traces": "harness report, predict, score, plot and export take this run",
}
_OF_BUNDLE = "harness compare and publish --check take its bundle"
_RESTORE = "get the bundle again: harness publish makes it"


def level_of(opener: Opener) -> str:
    """Level of evidence at which the run below *opener* was published; empty: it was not."""
    path = opener.root / ORIGINALS
    if not opener.exists(path):
        return ""
    level = opener.parse_json(opener.read(path, _RESTORE), path, _RESTORE).get("level")
    return level if isinstance(level, str) and level in LACKS else ""


def require_published(opener: Opener, needed: str) -> None:
    """`DataError` where the run below *opener* was published at a level below the *needed* one."""
    level = level_of(opener)
    levels = [*LACKS]
    if not level or levels.index(level) >= levels.index(needed):
        return
    fix = f"{_ANSWERS[level]}; {_OF_BUNDLE}"
    report = _report_beside(opener.root)
    if report is not None:
        fix += f"; the report of its makers is {report}"
    what = f"this run was published with {LACKS[level]}"
    raise DataError(what, where=str(opener.root), fix=fix)


def _report_beside(run_path: Path) -> Path | None:
    """Give the report in the bundle around the run at *run_path*, if it lies in one."""
    bundle = run_path.absolute().parent.parent
    for name in (f"report-{run_path.name}.html", "report.html"):
        if (bundle / name).is_file():
            return bundle / name
    return None
