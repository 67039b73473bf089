"""`history.jsonl`: the nights of an experiment, each line with the hash of the line before."""

from __future__ import annotations

from pathlib import Path

from harness.base.errors import DataError
from harness.core.store.evidence import chained, growing
from harness.nightly.records import Acceptance, Entry, Night
from harness.observe.storage.files import json_bytes, os_error_as_machine_error, sync_folder
from harness.observe.storage.opener import Opener

FOLDER = "nightly"
HISTORY = "history.jsonl"
_RESTORE = "restore it from a copy, or begin a new one: move it away"
_CUT = "harness nightly FILE takes such an end off, and writes the night again from its run"


class History:
    """The nights in *folder*, that of an experiment's nights; there need not be any."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / HISTORY
        self._opener = Opener(folder)

    def entries(self, *, repairs: bool = False) -> list[Entry]:
        """
        Read all lines, in order.

        `EvidenceError`: one does not follow from the line before; `DataError`: one cannot be read,
        or the last is cut, unless the reader *repairs* it by the next `append`.
        """
        entries = [*chained(self._opener, self.path, self._parse, _RESTORE).values()]
        content = self._opener.read(self.path, _RESTORE) if entries or self.path.exists() else b"\n"
        if content.rpartition(b"\n")[2] and not repairs:
            what = f"the history is cut within line {len(entries) + 1}"
            raise DataError(what, where=str(self.path), fix=_CUT)
        return entries

    def append(self, entry: Entry) -> None:
        """Add a line; where the disk does not take all of it, the file is as it was."""
        with os_error_as_machine_error(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        with growing(self._opener, self.path) as add:
            lines = chained(self._opener, self.path, self._parse, _RESTORE)
            linked = entry.model_copy(update={"previous": next(reversed(lines), "")})
            document = linked.model_dump(mode="json", exclude_defaults=True)
            document |= {"schema_version": entry.schema_version, "kind": entry.kind}
            add(json_bytes(document, indent=None))
        sync_folder(self.folder)

    def _parse(self, text: bytes, where: Path) -> Entry:
        kind = self._opener.parse_json(text, where, _RESTORE).get("kind")
        record_type: type[Entry] = Acceptance if kind == "accepted" else Night
        return self._opener.parse_record(record_type, text, where, _RESTORE)
