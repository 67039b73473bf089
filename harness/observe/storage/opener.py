"""
The one way to what is stored: a run may come from anywhere, and must not lead anywhere else.

No link is followed below the folder of a run, only plain files are opened, and none is read beyond
a bound.  What is not as the harness writes it is `DataError` with its path.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import shutil
import stat
import zlib

from collections.abc import Callable, Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from harness.base.errors import DataError
from harness.base.installed import PROJECT, by_form
from harness.base.records.trial import SCHEMA_VERSION, Record
from harness.base.text import excerpt
from harness.base.units import format_bytes
from harness.observe.storage.files import os_error_as_machine_error, walk_folders

MANIFEST = "manifest.json"
PACKED = ".gz"  # of a record that was packed to be published; it is read, and hashed, as it was
MOST_WHOLE_BYTES = 2**28  # of a file that is read at once: scores of 500 trials are a tenth of it
_MOST_BYTES = 2**36  # of any file
_PLAIN = "restore it from a copy: a run consists of plain files and folders"
_LATER = by_form("git pull; make setup", f"pip install --upgrade {PROJECT}")
_NEWER = (
    f"use the harness that wrote it or a later one ({_LATER}), or another folder with --results-dir"
)
_FOLDER = os.O_PATH | os.O_DIRECTORY
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_NOT_PLAIN = (errno.ELOOP, errno.ENOTDIR, errno.ENXIO)

R = TypeVar("R", bound=Record)
T = TypeVar("T")


class Opener:
    """
    Opens what is stored below *root*, which alone may be reached through links.

    Where *base* is given, a name below *root* that leads through a link is opened in *base*.
    """

    def __init__(self, root: Path, base: Path | None = None) -> None:
        """Open nothing yet: *root* need not exist."""
        self.root = root
        self._base = base

    def open(self, path: Path, fix: str, most_bytes: int = _MOST_BYTES) -> FileIO:
        """Plain file at *path*, to be read; `DataError` for any other, with *fix* if missing."""
        parts = path.relative_to(self.root).parts
        with os_error_as_machine_error(path):
            try:
                try:
                    handle = _open_plain(self.root, parts)
                except OSError as error:
                    if self._base is None or error.errno not in _NOT_PLAIN:
                        raise
                    handle = _open_plain(self._base, parts)
            except FileNotFoundError as error:
                raise DataError(f"{path.name} is missing", where=str(path), fix=fix) from error
            except OSError as error:
                name = Path(error.filename).name
                error.filename = str(path)
                if error.errno not in _NOT_PLAIN:
                    raise
                raise _not_plain_error(name, path) from error
            stream = FileIO(handle)
            size_bytes = os.fstat(handle).st_size
        if size_bytes > most_bytes:
            stream.close()
            what = f"{path.name} has {format_bytes(size_bytes)}"
            what += f", and {format_bytes(most_bytes)} are the most that is read of such a file"
            raise DataError(what, where=str(path), fix=fix)
        return stream

    def read(self, path: Path, fix: str) -> bytes:
        """Bytes of a file of results; a missing one is `DataError` with *fix*."""
        is_packed = self._is_packed(path)
        file = path.with_name(path.name + PACKED) if is_packed else path
        with self.open(file, fix, MOST_WHOLE_BYTES) as stream, os_error_as_machine_error(file):
            if not is_packed:
                return stream.readall()
            try:
                data = gzip.GzipFile(fileobj=stream).read(MOST_WHOLE_BYTES + 1)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise DataError(f"it is damaged: {error}", where=str(file), fix=fix) from error
        if len(data) > MOST_WHOLE_BYTES:
            what = f"it unpacks to more than {format_bytes(MOST_WHOLE_BYTES)}"
            raise DataError(what, where=str(file), fix=fix)
        return data

    def exists(self, path: Path) -> bool:
        """Whether there is such a file, packed or not."""
        return path.exists() or self._is_packed(path)

    def glob(self, pattern: str) -> Iterator[Path]:
        """Files below the root whose names, without that of their packing, *pattern* selects."""
        yield from self.root.glob(pattern)
        for path in self.root.glob(pattern + PACKED):
            yield path.with_name(path.name.removesuffix(PACKED))

    def _is_packed(self, path: Path) -> bool:
        return not path.exists() and path.with_name(path.name + PACKED).exists()

    def copy(self, path: Path, target: Path) -> None:
        """Copy a file to *target*, which does not exist."""
        with self.open(path, _PLAIN) as stream, target.open("xb") as copied:
            shutil.copyfileobj(stream, copied)

    def sha256(self, path: Path) -> str:
        """SHA-256 of a file, in hex."""
        if self._is_packed(path):
            return hashlib.sha256(self.read(path, _PLAIN)).hexdigest()
        with self.open(path, _PLAIN) as stream, os_error_as_machine_error(path):
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def names(self, folder: Path) -> Iterator[str]:
        """Names of all files below *folder*, from there; `DataError` for a link to a folder."""
        start = len(str(folder)) + 1
        for root, folders, names in walk_folders(folder):
            yield from (f"{root}/{name}"[start:] for name in names)
            for path in (Path(root, name) for name in folders):
                if path.is_symlink():
                    raise _not_plain_error(path.name, path)

    def hashes(self, folder: Path) -> dict[str, str]:
        """SHA-256 of every file below *folder*, by its name there."""
        return {name: self.sha256(folder / name) for name in self.names(folder)}

    def require_plain(self) -> None:
        """`DataError` for the first link, pipe or device below the root: nothing is written."""
        for path in (self.root / name for name in self.names(self.root)):
            if not stat.S_ISREG(path.lstat().st_mode):
                raise _not_plain_error(path.name, path)

    def read_record(self, record_type: type[R], path: Path, fix: str) -> R:
        """Return the record of *record_type* in a file."""
        return self.parse_record(record_type, self.read(path, fix), path, fix)

    def read_lines(self, record_type: type[R], path: Path, fix: str) -> Iterator[R]:
        """Return the records of *record_type* in a file of lines; the error names the line."""
        for number, line in enumerate(self.read(path, fix).splitlines(), start=1):
            where = path.with_name(f"{path.name}:{number}")
            yield self.parse_record(record_type, line, where, fix)

    def parse_json(self, data: bytes, path: Path, fix: str) -> dict[str, Any]:
        """Return the JSON object in *data*, of a version that is known; the error names *path*."""
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as error:
            what = f"{path.name} is not JSON: {excerpt(error, 200)}"
            raise DataError(what, where=str(path), fix=fix) from error
        if not isinstance(value, dict):
            raise DataError(f"{path.name} is not a JSON object", where=str(path), fix=fix)
        version = value.get("schema_version")
        if type(version) is not int or version < 1:
            what = f"schema_version {excerpt(repr(version))} is not a version"
            fix = "this file was not written by the harness: restore it from a copy"
            raise DataError(what, where=str(path), fix=fix)
        if version > SCHEMA_VERSION:
            what = f"schema_version {excerpt(repr(version))} is newer than {SCHEMA_VERSION}"
            raise self.newer_error(f"{what}, the last one known here", path)
        return value

    def parse_record(self, record_type: type[R], data: bytes, path: Path, fix: str) -> R:
        """Return the record of *record_type* in *data*; *path* is named in the error."""
        value = self.parse_json(data, path, fix)
        version = value["schema_version"]
        if "schema_version" not in record_type.model_fields:
            del value["schema_version"]
        if version == SCHEMA_VERSION and (unknown := value.keys() - record_type.model_fields):
            raise self.newer_error(f"the field '{excerpt(min(unknown))}' is not known here", path)
        return self.validate(record_type.model_validate, value, path, fix, version)

    def validate(
        self, check: Callable[[Any], T], value: Any, path: Path, fix: str, version: int
    ) -> T:
        """Return what pydantic's *check* makes of *value*; `DataError` names a bad field."""
        try:
            return check(value)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            # Keys of a mapping are among the fields: they are data.
            field = excerpt(".".join(str(part) for part in first["loc"]), 200)
            if first["type"] == "extra_forbidden" and version == SCHEMA_VERSION:
                raise self.newer_error(f"the field '{field}' is not known here", path) from error
            what = f"{field or error.title}: {excerpt(first['msg'].lower(), 200)}"
            if version < SCHEMA_VERSION:
                what += f" (schema_version {version}, and {SCHEMA_VERSION} is written now)"
            raise DataError(what, where=str(path), fix=fix) from error

    def newer_error(self, what: str, path: Path) -> DataError:
        """Error about a file with *what* no harness up to this one has written."""
        writer = "written by a newer harness"
        # The manifest may be unreadable, too.
        with suppress(DataError, ValueError, RecursionError, LookupError, TypeError):
            manifest = json.loads(self.read(self.root / MANIFEST, ""))
            writer += f" ({excerpt(manifest['harness'], 40)})"
        return DataError(f"{writer}: {what}", where=str(path), fix=_NEWER)


def _open_plain(root: Path, parts: tuple[str, ...]) -> int:
    """Open the plain file *parts* below *root*; what is none is `OSError` of `_NOT_PLAIN`."""
    handle = os.open(root, _FOLDER)
    try:
        for number, part in enumerate(parts, 1):
            if part == "..":
                raise OSError(errno.ELOOP, "leads elsewhere", part)
            flags = (_FILE if number == len(parts) else _FOLDER) | os.O_NOFOLLOW
            below = os.open(part, flags, dir_fd=handle)
            os.close(handle)
            handle = below
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.ENXIO, "not a plain file", parts[-1])
    except BaseException:
        os.close(handle)
        raise
    return handle


def _not_plain_error(name: str, path: Path) -> DataError:
    what = f"{name} is not a plain file or folder"
    return DataError(what, where=str(path), fix=_PLAIN)
