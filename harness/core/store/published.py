"""
What a run that was published can be asked: the levels of evidence of `harness publish`.

A run in a bundle says in `originals.json` at which level it was published.  What is left out of it
cannot be made again there, so the error names what the run can be asked without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.base.errors import DataError
from harness.base.records.trial import Code
from harness.core.store.sums import SUMS
from harness.observe.storage.opener import Opener

ORIGINALS = "originals.json"
CODE = "code"  # sources of models and workloads of their owner's, beside a published run

# What a run of each level lacks, from the leanest level on; the last one lacks nothing.
LACKS = {
    "scores": "its scores alone: it has no traces of its tasks",
    "traces": "its traces, and without its raw logs: it has no times of records",
    "raw": "",
}
WITH_EVIDENCE = ("traces", "raw")  # what was recorded in trials, and not their times alone
_OF_SCORES = (
    "harness show, report, plot, export, score, predict, compare, profile, ask and tune take"
    " this run"
)
_ANSWERS = {
    "scores": _OF_SCORES,
    "traces": f"{_OF_SCORES}, and so do harness trace, import and catalog add",
}
_OF_BUNDLE = "harness compare and publish --check take its bundle"
RESTORE_BUNDLE = "get the bundle again: harness publish makes it"


def source_name(code: Code) -> str:
    """Name of the source of *code* in a published run: that of what is in it."""
    return f"{CODE}/{code.sha256}.py"


def unpublished_code(opener: Opener, own_code: Mapping[str, Code]) -> tuple[str, ...]:
    """Models and workloads of *own_code* whose sources are not in the published run at *opener*."""
    if not level_of(opener):
        return ()
    lacking = (
        name
        for name, code in own_code.items()
        if not opener.exists(opener.root / source_name(code))
    )
    return tuple(lacking)


def bundle_of(run_path: Path) -> Path | None:
    """Give the folder of the bundle in which the run at *run_path* lies; `None`: in none."""
    folder = run_path.absolute().parent
    is_in_one = folder.name == "runs" and (folder.parent / SUMS).is_file()
    return folder.parent if is_in_one else None


def level_of(opener: Opener) -> str:
    """Level of evidence at which the run below *opener* was published; empty: it was not."""
    level = _originals(opener).get("level")
    return level if isinstance(level, str) and level in LACKS else ""


def has_other_ids(opener: Opener) -> bool:
    """Whether the run below *opener* was published with other ids of its cells."""
    return bool(_originals(opener).get("ids"))


def _originals(opener: Opener) -> dict[str, Any]:
    """What a published run says of the one that was measured; nothing: it is that one."""
    path = opener.root / ORIGINALS
    if not opener.exists(path):
        return {}
    return opener.parse_json(opener.read(path, RESTORE_BUNDLE), path, RESTORE_BUNDLE)


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
