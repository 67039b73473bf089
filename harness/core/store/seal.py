"""
The seal: hashes that show whether a prediction, a profile or the plan changed afterwards.

A run is sealed once; what is predicted of it later is an analysis, with a seal of its own.
"""

from __future__ import annotations

import hashlib
import time

from contextlib import suppress
from pathlib import Path

from harness.base.errors import DataError, EvidenceError
from harness.base.records.question import Question
from harness.base.records.trial import SCHEMA_VERSION, Moment, Record, SchemaVersion
from harness.base.text import excerpt
from harness.core.store.evidence import Chain, differences
from harness.core.store.published import ORIGINALS, RESTORE_BUNDLE
from harness.observe.storage.files import folders, json_bytes, write_file
from harness.observe.storage.opener import Opener

ANALYSES = "analyses"
PLAN = "plan.jsonl"
PROFILES = "profiles"
PREDICTIONS = "predictions"
SEAL = f"{PREDICTIONS}/sealed.json"
DRAWN = f"{PREDICTIONS}/drawn.json"
ANCHORS = "anchors"
PREDICT = "predict again, which makes an analysis with a seal of its own: harness predict RUN"


class Seal(Record):
    """
    `sealed.json`: hashes of plan, profiles and predictions, by the name of the file.

    *question* is what was asked, without its words; older seals have none.  *not_before* is what
    nobody could know before some moment, such as the value of a beacon: the seal came after it.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    sealed_s: Moment
    sha256: dict[str, str]
    question: Question | None = None
    not_before: str = ""


class RunSeal:
    """The seal at *path* of the run of *opener*; what is half-done lies in *scratch*."""

    def __init__(self, opener: Opener, scratch: Path) -> None:
        self._opener = opener
        self._run = opener.root
        self._scratch = scratch
        self.path = opener.root / SEAL

    def exists(self) -> bool:
        """Whether predictions are sealed."""
        return self.path.exists()

    def sha256(self) -> str:
        """SHA-256 of the seal itself."""
        return self._opener.sha256(self.path)

    def read(self) -> dict[str, str]:
        """Hashes that the seal holds, by name of file."""
        return self.record().sha256

    def question(self) -> Question | None:
        """What was asked when the predictions were sealed; `None` in older seals."""
        return self.record().question

    def record(self) -> Seal:
        """All that the seal holds."""
        return self._opener.read_record(Seal, self.path, PREDICT)

    def names(self) -> list[str]:
        """Names of the files that a seal is about."""
        paths = [*self.files(PREDICTIONS), *self.files(PROFILES)]
        return [PLAN, *(path.relative_to(self._run).as_posix() for path in paths)]

    def files(self, folder: str) -> list[Path]:
        """Files of *folder* that a seal is about, sorted by their names."""
        paths = {*self._opener.glob(f"{folder}/*.json"), *self._opener.glob(f"{folder}/*.jsonl")}
        files = (path for path in paths if not path.name.startswith("sealed"))
        return sorted(files, key=lambda path: path.stem)

    def add(self, question: Question | None = None, not_before: str = "") -> None:
        """
        Hash plan, profiles and predictions, and keep the *question*: none can change unseen.

        *not_before* is what nobody could know before some moment, if anything.
        """
        hashes = {name: self._opener.sha256(self._run / name) for name in self.names()}
        asked = question and question.asks
        with suppress(DataError):  # none is there yet
            if self.read() == hashes and self.question() in (asked, None):
                return
        sealed_s = round(time.time(), 3)
        seal = Seal(sealed_s=sealed_s, sha256=hashes, question=asked, not_before=not_before)
        self.store(SEAL, json_bytes(seal.model_dump(mode="json")))

    def store(self, file_name: str, data: bytes) -> None:
        """Write a profile or the seal, once the chain of the run names it."""
        # With the profiles of another run a run is sealed before its first trial.
        is_first = self._run.absolute().parent.name != ANALYSES and not folders(
            self._run / "trials"
        )
        sha = hashlib.sha256(data).hexdigest()
        Chain(self._opener).append(file_name, sha, starts=is_first)
        write_file(self._run / file_name, data, self._scratch)

    def check(self, folder: str = "") -> None:
        """`EvidenceError` names the first file, of *folder* alone, that is not as it was sealed."""
        names = [name for name in self.names() if name.startswith(folder)]
        if not self.exists() and not any(name.startswith(PREDICTIONS) for name in names):
            fix = "make them: harness predict RUN"
            raise DataError("there are no predictions", where=str(self._run), fix=fix)
        self._compare(names, folder)

    def _compare(self, names: list[str], folder: str) -> None:
        """`EvidenceError` where the files *names* of *folder* are not those that were sealed."""
        sealed = {name: sha256 for name, sha256 in self.read().items() if name.startswith(folder)}
        present = {name: self._opener.sha256(self._run / name) for name in names}
        if changes := differences(sealed, present):
            what = f"the seal does not hold: {excerpt(changes[0], 200)}"
            is_published = self._opener.exists(self._run / ORIGINALS)
            fix = RESTORE_BUNDLE if is_published else PREDICT
            raise EvidenceError(what, where=str(self.path), fix=fix)
