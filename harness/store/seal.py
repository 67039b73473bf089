"""
The seal: hashes that show whether a prediction, a profile or the plan changed afterwards.

It guards against mistakes and makes tampering visible to whoever keeps a copy of the seal; it is
no signature.
"""

from __future__ import annotations

import time

from collections.abc import Sequence
from pathlib import Path

from harness.errors import DataError
from harness.store.files import SCHEMA_VERSION, json_bytes, parse_json, read_file, sha256

SEAL, PROFILES, PREDICTIONS = "predictions/sealed.json", "profiles", "predictions"
_AGAIN = "predict again, which seals anew: harness predict FILE"


def files(run: Path) -> list[str]:
    """Names, relative to *run*, of the profiles and predictions that it holds."""
    found = [*(run / PROFILES).glob("*.json"), *(run / PREDICTIONS).glob("*.jsonl")]
    return sorted(p.relative_to(run).as_posix() for p in found)


def sealed(run: Path, names: Sequence[str]) -> bytes | None:
    """Content of the seal over *names*, or `None` where the present seal says the same."""
    hashes = {name: _hash(run, name) for name in names}
    if (run / SEAL).exists() and _read(run) == hashes:
        return None
    return json_bytes(
        {"schema_version": SCHEMA_VERSION, "sealed_s": round(time.time(), 3), "sha256": hashes}
    )


def check(run: Path, names: Sequence[str]) -> None:
    """Raise `DataError` unless the seal and *names* agree, file by file."""
    predicted = any(name.startswith(f"{PREDICTIONS}/") for name in names)
    if not predicted and not (run / SEAL).exists():
        raise DataError(
            "there are no predictions", where=str(run), fix="make them: harness predict FILE"
        )
    hashes = _read(run)
    for name in sorted({*names, *hashes}):
        if name not in hashes:
            raise DataError(f"{name} is not under the seal", where=str(run / SEAL), fix=_AGAIN)
        if name not in names:  # it may say anything, a path out of the run among it
            said = ascii(name)[1:-1][:100]
            raise DataError(f"{said} is missing", where=str(run / SEAL), fix=_AGAIN)
        if _hash(run, name) != hashes[name]:
            raise DataError(
                f"{name} changed after it was sealed", where=str(run / name), fix=_AGAIN
            )


def _hash(run: Path, name: str) -> str:
    if not (run / name).is_file():
        raise DataError(f"{name} is missing", where=str(run / name), fix=_AGAIN)
    return sha256(run / name)


def _read(run: Path) -> dict[str, str]:
    path = run / SEAL
    hashes = parse_json(read_file(path, _AGAIN), path, _AGAIN).get("sha256")
    if not isinstance(hashes, dict):
        raise DataError("the seal holds no hashes", where=str(path), fix=_AGAIN)
    return hashes
