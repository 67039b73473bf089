"""
Seals: hashes that show whether a prediction, a profile or the plan changed afterwards.

The first seal of a run, `sealed.json`, stays; where a file under it is made anew, the next one is
`sealed-2.json`, and what the first one names is kept in `predictions/first/`.
"""

from __future__ import annotations

import hashlib
import time

from contextlib import suppress
from itertools import chain, count, takewhile
from pathlib import Path

from harness.errors import DataError, EvidenceError
from harness.records.trial import SCHEMA_VERSION, Record, SchemaVersion
from harness.store.evidence import Chain, differences
from harness.store.files import json_bytes, write_file
from harness.store.opener import Opener
from harness.text import excerpt

PLAN, PROFILES, PREDICTIONS = "plan.jsonl", "profiles", "predictions"
SEAL = f"{PREDICTIONS}/sealed.json"
PREDICT = "predict again, which makes a new seal: harness predict FILE"


class Seal(Record):
    """`sealed.json`: hashes of plan, profiles and predictions, by the name of the file."""

    schema_version: SchemaVersion = SCHEMA_VERSION
    sealed_s: float
    sha256: dict[str, str]


class Seals:
    """
    The seals of the run of *opener*; what is half-done lies in *scratch*.

    Where `is_first` is set, the first seal counts, with the files that it names; else the last one.
    """

    def __init__(self, opener: Opener, scratch: Path) -> None:
        self._opener, self._run, self._scratch = opener, opener.root, scratch
        self.is_first = False

    def paths(self) -> list[Path]:
        """Files of all seals, the first one first."""
        later = (f"{PREDICTIONS}/sealed-{number}.json" for number in count(2))
        return list(takewhile(Path.exists, (self._run / name for name in chain([SEAL], later))))

    def read(self, path: Path) -> dict[str, str]:
        """Hashes that a seal holds, by name of file."""
        return self._opener.read_record(Seal, path, PREDICT).sha256

    def names(self) -> list[str]:
        """Names of the files that a seal is about."""
        patterns = (f"{PREDICTIONS}/*.jsonl", f"{PROFILES}/*.json")
        paths = (path for pattern in patterns for path in sorted(self._run.glob(pattern)))
        return [PLAN, *(path.relative_to(self._run).as_posix() for path in paths)]

    def add(self) -> None:
        """Hash plan, profiles and predictions, so that none can change unseen."""
        hashes = {name: self._opener.sha256(self._run / name) for name in self.names()}
        paths, name = self.paths(), SEAL
        if paths:
            name = f"{PREDICTIONS}/sealed-{len(paths) + 1}.json"
            with suppress(DataError):  # one that is damaged is followed by another
                if self.read(paths[-1]) == hashes:
                    return
        seal = Seal(sealed_s=round(time.time(), 3), sha256=hashes)
        self.store(name, json_bytes(seal.model_dump(mode="json")))

    def store(self, file_name: str, data: bytes) -> None:
        """Write a profile or a seal, once the chain of the run names it."""
        Chain(self._opener).append(file_name, hashlib.sha256(data).hexdigest())
        write_file(self._run / file_name, data, self._scratch)

    def keep_first(self, file_name: str, data: bytes) -> None:
        """Keep what the first seal names *file_name*, in the place of which *data* will be."""
        path, kept, paths = self._run / file_name, self._kept(file_name), self.paths()
        if paths and path.exists() and not kept.exists():
            with suppress(DataError):
                before = self._opener.read(path, PREDICT)
                is_sealed = self.read(paths[0]).get(file_name) == self._opener.sha256(path)
                if is_sealed and before != data:
                    write_file(kept, before, self._scratch)

    def files(self, folder: str) -> list[Path]:
        """Files of *folder* that the seal that counts is about, sorted by their names."""
        names = self.read(self.paths()[0]) if self.is_first else self.names()
        paths = (self._path(name) for name in names if name.startswith(folder))
        return sorted(paths, key=lambda path: path.stem)

    def check(self) -> None:
        """`EvidenceError` names the file that is not as the seal that counts has it."""
        names, paths = self.names(), self.paths() or [self._run / SEAL]
        if not paths[0].exists() and not any(name.startswith(PREDICTIONS) for name in names):
            fix = "make them: harness predict FILE"
            raise DataError("there are no predictions", where=str(self._run), fix=fix)
        seal = paths[0 if self.is_first else -1]
        hashes = self.read(seal)
        for file_name in sorted(hashes if self.is_first else {*names, *hashes}):
            problem, where, path = "", seal, self._path(file_name)
            if file_name not in hashes:
                problem = f"{file_name} is not under the seal"
            elif file_name not in names and path == self._run / file_name:
                problem = f"{excerpt(file_name)} is missing"
            elif not path.is_file() or self._opener.sha256(path) != hashes[file_name]:
                problem, where = f"{file_name} changed after it was sealed", path
            if problem:
                raise EvidenceError(problem, where=str(where), fix=PREDICT)

    def changes(self) -> list[str]:
        """What the last seal has otherwise than the first."""
        paths = self.paths()
        return differences(self.read(paths[0]), self.read(paths[-1])) if paths else []

    def _path(self, file_name: str) -> Path:
        kept = self._kept(file_name)
        return kept if self.is_first and kept.exists() else self._run / file_name

    def _kept(self, file_name: str) -> Path:
        return self._run / PREDICTIONS / "first" / file_name
