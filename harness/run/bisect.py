"""The commit since which a night's stored results are made otherwise."""

from __future__ import annotations

import subprocess
import sys

from pathlib import Path
from tempfile import TemporaryDirectory

from harness.errors import DataError, MachineError
from harness.evaluate.alarms import current
from harness.records.nightly import Night
from harness.store.history import History

_LIMIT_S = 3600.0
# What `git bisect run` runs in each commit: 0 where the results are the stored ones, 1 where NAME
# makes others, 125 where the commit says nothing.
_TRY = """
import json, os, subprocess, sys
run, name = sys.argv[1:]
command = [sys.executable, "-c", "import sys; from harness.cli.entry import main; sys.exit(main())"]
done = subprocess.run([*command, "reproduce", run, "--json"], env={**os.environ, "PYTHONPATH": "."},
                      capture_output=True, text=True)
if done.returncode not in (0, 1):
    sys.exit(125)
stages = {"parser": "trace", "profile fit": "profiles", "scoring": "scores"}
for stage in json.loads(done.stdout)["stages"]:
    models = {each["model"] for each in stage["differs"]}
    if stage["differs"] and (stages.get(name) == stage["stage"] or name in models):
        sys.exit(1)
"""


def find_commit(history: History, prefix: str) -> tuple[str, str]:
    """Commit and subject of what the alarm of this *prefix* is about."""
    entries = history.entries()
    alarms = [each for each in current(entries)[0] if prefix and each.id.startswith(prefix)]
    codes = [each for each in alarms if each.cause.startswith("code: ")]
    if len(codes) != 1:
        what = f"'{prefix}' is not one alarm whose cause is code"
        raise DataError(what, where=str(history.path), fix="harness nightly judge lists the alarms")
    nights = [entry for entry in entries if isinstance(entry, Night)]
    night = nights[codes[0].since - 1]
    before = [each for each in nights[: codes[0].since - 1] if each.series == night.series][-1]
    commits = [each.facts.get("commit", "") for each in (before, night)]
    if not all(commits) or commits[0] == commits[1] or any("dirty" in each for each in commits):
        what = f"no commits lie between the nights: '{commits[0]}' and '{commits[1]}'"
        fix = "bisect needs nights on committed code; compare the files that were changed by hand"
        raise DataError(what, where=str(history.path), fix=fix)
    run = history.folder.absolute().parent / night.baseline
    if not run.is_dir():
        what = f"the baseline night's run is not here: {night.baseline}"
        raise DataError(what, where=str(run), fix="restore its folder from a copy")
    source = Path(__file__).resolve().parents[2]
    good, bad = (commit.rpartition("-g")[2] for commit in commits)
    with TemporaryDirectory(prefix="harness-bisect-") as folder:
        tree = f"{folder}/tree"
        _git(source, "worktree", "add", "--quiet", "--detach", tree, bad)
        try:
            _git(Path(tree), "bisect", "start", bad, good)
            name = codes[0].cause.removeprefix("code: ")
            words = (sys.executable, "-c", _TRY, str(run), name)
            _git(Path(tree), "bisect", "run", *words)
            log = _git(Path(tree), "show", "--no-patch", "--format=%H %s", "refs/bisect/bad")
        finally:
            _git(source, "worktree", "remove", "--force", tree)
    commit, _, subject = log.strip().partition(" ")
    return commit, subject


def _git(folder: Path, *words: str) -> str:
    argv = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_LIMIT_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        what = f"git {words[0]} failed: {getattr(error, 'stderr', '') or error}"
        fix = "run the harness from a clone of its repository that has the commits"
        raise MachineError(what, where=str(folder), fix=fix) from error
    return done.stdout
