"""
The texts of stored files: changed where they stand, in every format that a run has.

Records and histories are JSON, histories also Avro; tables are Parquet; a recording of the tracer
has slots; all else is text, whatever its bytes.  A file with nothing to change stays as it is.
"""

from __future__ import annotations

import json

from collections.abc import Callable, Iterator
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np

from harness.errors import DataError, HarnessError
from harness.evaluate.observations import SHUFFLE_LOG, TASK_LOG
from harness.parsing.history import avro_schema
from harness.parsing.ltrace import CHUNK, HEAD, SLOT
from harness.records.trial import TrialRecord
from harness.store import RawLogs, Run
from harness.store.evidence import SCORES
from harness.store.opener import MANIFEST, MOST_WHOLE_BYTES, Opener
from harness.store.run import EXPERIMENT
from harness.store.seal import PLAN, PREDICTIONS, PROFILES, SEAL
from harness.store.trials import DISCARDED, RECORD
from harness.text import excerpt, read_json

# What becomes of a text, given the name of its field or column (of the keys of one: `KEYS` and its
# name), or nothing.
Change = Callable[[str, str], str]
KEYS = "keys of "

_PARQUET, _AVRO, _RECORDING, _UNITS = b"PAR1", b"Avro-Binary\n", b"LTRACE01", b"LTUNITS1"
# Archives and compressed files (gzip, zip, bzip2, xz, zstd, 7z, lz4) that a task may have written.
_PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf",
           b"\x04\x22\x4d\x18")  # fmt: skip
_DAMAGE = (ArithmeticError, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError)
_PIECE_BYTES = 2**20
_MOST_ROWS = 2**26
_TEXT, _FIRST, _LAST = -1, 8, 48  # a slot with text, and where in it that lies
_PLAIN_TYPES = ("int64", "double", "bool", "list<element: int64>", "list<item: int64>")


def published(run: Run, level: str) -> Iterator[str]:
    """
    Names of the files of *run* that are published at *level*, sorted, but for seals and hashes.

    `scores`: what predictions and scores can be made from again; `traces`: profiles, too; `raw`:
    everything that was measured.
    """
    top, derived = (MANIFEST, EXPERIMENT, PLAN), (PROFILES, PREDICTIONS, SCORES)
    records = run.trials()
    read = (
        {key: _logs_read(run, each) for key, each in records.items()} if level == "traces" else {}
    )
    for name in sorted(run.opener.names(run.path)):
        kind, _, rest = name.partition("/")
        trial, _, part = rest.partition("/")
        if kind == "trials":
            is_wanted = part == RECORD or (part.startswith("trace/") and level != "scores")
            is_wanted |= part.startswith("raw/") and (level == "raw" or part in read.get(trial, ()))
        else:
            is_wanted = name in top or (kind in derived and name != SEAL)
            is_wanted |= kind in DISCARDED and level == "raw"
        if is_wanted:
            yield name


def _logs_read(run: Run, record: TrialRecord) -> set[str]:
    """Names of the raw logs from which, with its traces, the profile is made and times corrected."""
    trial_id = record.trial.id
    names = run.raw(trial_id).names() if run.has_trace(trial_id) else ()
    read = {name for name in names if name.startswith("speed")}
    is_read = record.state == "done" and record.trial.cell.tracing.mode != "off"
    # As `observe` has it: a profile needs logs, other trials where nothing was recorded.
    if is_read and (record.trial.profiling or next(run.read_recordings(trial_id), None) is None):
        parts = run.read_parts(trial_id, "attempts")
        containers = {container for part in parts for container in part["container_id"]}
        for name in names:
            folder, _, log_name = name.rpartition("/")
            if log_name in (TASK_LOG, SHUFFLE_LOG) and folder.rpartition("/")[2] in containers:
                read.add(name)
    return {f"raw/{name}.gz" for name in read}


def file_pieces(opener: Opener, path: Path) -> Iterator[bytes]:
    """Contents of a file in pieces that can be rewritten one by one, those of a log unpacked."""
    if path.suffix != ".gz":
        yield opener.read(path, "restore it from a copy")
        return
    with RawLogs(opener, path.parent).open(path.stem) as stream:
        yield from pieces(stream)


def pieces(stream: IO[bytes]) -> Iterator[bytes]:
    """Contents of a file in pieces that can be rewritten one by one: lines, or all of it."""
    piece = stream.read(_PIECE_BYTES)
    if piece.startswith((_PARQUET, _AVRO, _RECORDING, _UNITS)):
        piece += stream.read(MOST_WHOLE_BYTES)
        if stream.read(1):
            raise DataError(f"more than {MOST_WHOLE_BYTES} bytes, and not a log")
    while piece:
        yield piece + (b"" if piece.endswith(b"\n") else stream.readline())
        piece = stream.read(_PIECE_BYTES)


def rewrite(data: bytes, change: Change) -> bytes:
    """
    *data* with what *change* makes of each text in it, and the same bytes where that is the same.

    `DataError`: it is packed, or damaged, and nobody can say what is in it.
    """
    if data.startswith(_PACKED):
        raise DataError("a packed file, into which nobody looks")
    if data.startswith(_UNITS):
        return data  # numbers alone
    kinds = ((_PARQUET, _table), (_AVRO, _history), (_RECORDING, _recording))
    for magic, rewritten in kinds:
        if data.startswith(magic):
            try:
                return rewritten(data, change)
            except HarnessError as error:
                raise DataError(error.what) from error
            except _DAMAGE as error:
                raise DataError(f"a damaged file: {excerpt(error, 200)}") from error
    text = data.decode("utf-8", "surrogateescape")
    if text.startswith(("{", "Avro-Json")):
        return _documents(text, change).encode("utf-8", "surrogateescape")
    changed = change(text, "")
    return data if changed == text else changed.encode("utf-8", "surrogateescape")


def _walked(value: Any, change: Change, key: str = "") -> Any:
    """*value* of a JSON or Avro document with its texts and keys changed."""
    if isinstance(value, str):
        return change(value, key)
    if isinstance(value, tuple):  # of a union: the name of its type, and the value
        return value[0], _walked(value[1], change, key)
    if isinstance(value, list):
        return [_walked(each, change, key) for each in value]
    if isinstance(value, dict):
        if value.keys() == {"string"}:  # of a union, too
            return {"string": _walked(value["string"], change, key)}
        return {change(name, KEYS + key): _walked(each, change, name)
                for name, each in value.items()}  # fmt: skip
    return value


def _documents(text: str, change: Change) -> str:
    """One JSON document, or lines of them among which others may be."""
    try:
        value = read_json(text)
    except ValueError:
        is_one_line = text.find("\n") in (-1, len(text) - 1)
        if is_one_line:
            return change(text, "")
        return "".join(
            _documents(line, change) if line.startswith("{") else change(line, "")
            for line in text.splitlines(keepends=True)
        )
    changed = _walked(value, change)
    if changed == value:
        return text
    body = text.rstrip()
    indent = 2 if "\n" in body else None
    separators = None if indent or '": ' in body else (",", ":")
    written = json.dumps(changed, indent=indent, separators=separators, ensure_ascii=text.isascii())
    return written + text[len(body) :]


def _history(data: bytes, change: Change) -> bytes:
    """A history in Avro's binary form."""
    from fastavro import schemaless_reader, schemaless_writer

    first, schema_line, events = data.split(b"\n", 2)
    schema = avro_schema(json.loads(schema_line), "a history")
    stream, written = BytesIO(events), BytesIO()
    while stream.tell() < len(events):
        event = schemaless_reader(stream, schema, None, return_named_type=True)
        schemaless_writer(written, schema, _walked(event, change))
    return b"\n".join([first, schema_line, written.getvalue()])


def _recording(data: bytes, change: Change) -> bytes:
    """A recording: the thread of each chunk, and texts, which go on from slot to slot of a span."""
    written = bytearray(data)
    for start in range(HEAD, len(data) - SLOT + 1, CHUNK):
        chunk = np.frombuffer(data[start : start + CHUNK][: CHUNK // SLOT * SLOT], np.uint8)
        kinds = (
            chunk[: len(chunk) // SLOT * SLOT].reshape(-1, SLOT)[1:, :4].copy().view("<i4")[:, 0]
        )
        slots = np.flatnonzero(kinds == _TEXT)
        spans = np.cumsum(kinds > 0)[slots]
        texts = [start + SLOT * (1 + slots[spans == span]) for span in np.unique(spans)]
        for offsets in ([start], *texts):
            parts = [data[at + _FIRST : at + _LAST].rstrip(b"\0") for at in offsets]
            before = b"".join(parts)
            after = change(before.decode("utf-8", "surrogateescape"), "")
            packed = after.encode("utf-8", "surrogateescape")[: (_LAST - _FIRST) * len(offsets)]
            if packed == before:
                continue
            if offsets == [start]:
                written[start + 4 : start + 8] = len(packed).to_bytes(4, "little")
            padded = packed.ljust((_LAST - _FIRST) * len(offsets), b"\0")
            for number, at in enumerate(offsets):
                part = padded[(_LAST - _FIRST) * number :][: _LAST - _FIRST]
                written[at + _FIRST : at + _LAST] = part
    return bytes(written)


def _table(data: bytes, change: Change) -> bytes:
    """A table, as `harness.store.tables` writes them."""
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    written, is_changed = BytesIO(), False
    with parquet.ParquetFile(BytesIO(data), page_checksum_verification=True) as file:
        schema = file.schema_arrow.remove_metadata()
        if file.metadata.num_rows * len(schema) > _MOST_ROWS:
            raise DataError("a table of more rows than any trial has")
        for field in schema:
            if str(field.type) not in ("string", *_PLAIN_TYPES):
                raise DataError(f"a column of {excerpt(field.type)}, which no table has")
        with parquet.ParquetWriter(
            written, schema, compression="zstd", write_page_checksum=True
        ) as writer:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, use_threads=False)
                table.validate(full=True)
                for place, field in enumerate(schema):
                    if field.type != arrow.string():
                        continue
                    column = table.column(place).combine_chunks().dictionary_encode()
                    words = column.dictionary.to_pylist()
                    changed = [change(word, field.name) for word in words]
                    if changed != words:
                        values = arrow.array(changed, arrow.string()).take(column.indices)
                        table, is_changed = table.set_column(place, field, values), True
                writer.write_table(table)
    return written.getvalue() if is_changed else data


def is_open(data: bytes) -> bool:
    """Whether the texts of *data* lie open in its bytes."""
    return not data.startswith((_PARQUET, _RECORDING))
