"""
A run in an archive, from wherever it comes: unpacked, checked, and put among the results.

The archive is foreign (`harness.core.store.extract`); the run counts when it was checked, by one
rename.
"""

from __future__ import annotations

import re

from itertools import chain
from pathlib import Path
from typing import NamedTuple

from harness.base.errors import DataError
from harness.base.text import excerpt
from harness.core.store import RUN_NAME, Run, Store
from harness.core.store.evidence import CHAIN, DISCARDED, SCORES, Chain, has_manifest_first
from harness.core.store.extract import extract, folder_with
from harness.core.store.published import ORIGINALS
from harness.core.store.run import EXPERIMENT, FINISHED
from harness.core.store.seal import ANALYSES, ANCHORS, PLAN, PREDICTIONS, PROFILES
from harness.observe.storage.files import (
    exclusive_lock,
    os_error_as_machine_error,
    remove_tree,
    rename_durably,
    sync_tree,
)
from harness.observe.storage.opener import MANIFEST

_PACK = "ask for another: tar czf RUN.tar.gz -C results/EXPERIMENT RUN  packs a run"
# What neither the chain nor a seal has a hash of, and no score depends on; and what the chain of
# an earlier version has none of.
_UNCHECKED = ("report.*", "hibench.report")
_REPORTS = r"report\.(html|md|json)|hibench\.report"
_SEALED = rf"({PROFILES}|{PREDICTIONS}|{ANCHORS})/[^/]+\.jsonl?(\.gz)?|{SCORES}/[^/]+\.json(\.gz)?"
_OF_OLDER = rf"{SCORES}/(scores|comparisons|summaries)\.parquet"
_OF_ALL = rf"{MANIFEST}|{PLAN}|{CHAIN}|{FINISHED}|{_REPORTS}|{_SEALED}|{_OF_OLDER}"
_OF_A_RUN = re.compile(
    rf"{_OF_ALL}|{EXPERIMENT}|{ORIGINALS}|lock|(trials|{'|'.join(DISCARDED)})/[^/]+/.*"
    rf"|{ANALYSES}/[^/]+/({_OF_ALL})",
    re.DOTALL,
)


class Unpacked(NamedTuple):
    """A *run* that was taken in; *unchecked* are names in it that no hash is about."""

    run: Run
    has_evidence: bool
    unchecked: list[str]


def unpack(archive: Path, results_dir: Path) -> Unpacked:
    """Put the run in *archive* below *results_dir*; `DataError`, and nothing there, if unsound."""
    if not archive.is_file():  # to read a pipe could take for ever
        what = "this is no file" if archive.exists() else "there is no such file"
        fix = "name the archive of a run: harness unpack run.tar.gz"
        raise DataError(what, where=str(archive), fix=fix)
    scratch = results_dir / ".unpack"
    with exclusive_lock(results_dir / ".unpack.lock", str(scratch)):
        remove_tree(scratch)
        try:
            with os_error_as_machine_error(archive):
                extract(archive, scratch)
            run = _packed_run(archive, scratch)
            require_known_files(run)
            (run.path / "lock").unlink(missing_ok=True)  # that of whoever packed it
            name = run.read_manifest().run
            experiment_name = run.experiment().name
            has_evidence = run.check_evidence()
            for part in (run, *run.analyses()):
                part.check_evidence()
                if part.seal.exists():
                    part.seal.check()
            target = Store(results_dir).folder(experiment_name) / name
            if not RUN_NAME.fullmatch(name):
                raise DataError(f"'{excerpt(name)}' cannot be the name of a run", where=MANIFEST)
        except DataError as error:
            where = error.where.replace(f"{scratch}/", f"{archive}: ")
            raise type(error)(error.what, where=where, fix=_PACK) from error
        else:
            with exclusive_lock(target.parent / ".lock", experiment_name, wait=True):
                if target.exists():
                    fix = "it stays as it is: name another folder with --results-dir"
                    raise DataError(f"run {name} is there already", where=str(target), fix=fix)
                with os_error_as_machine_error(target):
                    sync_tree(run.path)
                    rename_durably(run.path, target)
        finally:
            remove_tree(scratch)
    patterns: tuple[str, ...] = _UNCHECKED
    if not has_manifest_first(Chain(Run(target).opener).lines()):
        patterns += DISCARDED
    unchecked = chain.from_iterable(map(target.glob, patterns))
    return Unpacked(Run(target), has_evidence, sorted(path.name for path in unchecked))


def require_known_files(run: Run) -> None:
    """`DataError` names a file of *run* that no run has, and about which no hash could be."""
    for name in sorted(run.opener.names(run.path)):
        if not _OF_A_RUN.fullmatch(name):
            raise DataError(f"no run has a file {excerpt(name)}", where=str(run.path / name))


def _packed_run(archive: Path, scratch: Path) -> Run:
    """The one run below *scratch*, whose folder may lie within others."""
    folder = folder_with(MANIFEST, scratch)
    if folder is None:
        what = f"there is no {MANIFEST}: this is not one run, or not all of it"
        raise DataError(what, where=str(archive))
    return Run(folder)
