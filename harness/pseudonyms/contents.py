"""
What of a run is published, and the texts in it: changed where they stand, in every format.

Records and histories are JSON, histories also Avro; tables are Parquet; a recording of the tracer
has slots; all else is text, whatever its bytes.  A file with nothing to change stays as it is.
"""

from __future__ import annotations

import json
import re

from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from harness.base.errors import DataError, HarnessError
from harness.base.text import excerpt, read_json
from harness.core.evaluate.observations import SHUFFLE_LOG, TASK_LOG
from harness.core.store import RawLogs, Run
from harness.core.store.evidence import DISCARDED, SCORES
from harness.core.store.run import EXPERIMENT
from harness.core.store.seal import ANCHORS, PLAN, PREDICTIONS, PROFILES, SEAL
from harness.core.store.trials import RECORD
from harness.observe.parsing.history import avro_schema
from harness.observe.parsing.ltrace import CHUNK, HEAD, SLOT
from harness.observe.storage.opener import MANIFEST, MOST_WHOLE_BYTES, Opener

# What becomes of a text, given the name of its field (of the keys of one: `KEYS` and that name).
Change = Callable[[str, str], str]
KEYS = "keys of "

_PARQUET = b"PAR1"
_AVRO = b"Avro-Binary\n"
_RECORDING = b"LTRACE01"
_UNITS = b"LTUNITS1"
# gzip, zip, bzip2, xz, zstd: what a task may have written among its logs.
_PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
_DAMAGE = (ArithmeticError, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError)
_PIECE_BYTES = 2**20
_MOST_ROWS = 2**26
# Names of files by level; no profile is made of units: rows of every few records of a task.
_LEAN = rf"{MANIFEST}|{EXPERIMENT}|{PLAN}|({PROFILES}|{PREDICTIONS}|{ANCHORS}|{SCORES})/.*"
_TASK_LOG = rf"(.*/)?({TASK_LOG}|{SHUFFLE_LOG})\.gz"
_SAMPLES = r"(speed|machine|processes)[^/]*"  # of each second: profiles rest on them
_CONF = r"job-[0-9]+-conf\.xml\.gz"  # in which Hadoop itself has the seal
_OF_JOB = rf"{_CONF}|job-[0-9]+-history\.jhist\.gz"  # from which another tool makes its own
_KEPT = rf"{_OF_JOB}|{_SAMPLES}|{_TASK_LOG}"
_DISCARDED = rf"({'|'.join(DISCARDED)})/[^/]+"
_ALWAYS = rf"{_LEAN}|{_DISCARDED}/{RECORD}"
_PUBLISHED = {
    "scores": rf"{_ALWAYS}|trials/\w+/({RECORD}|raw/{_CONF})",
    "traces": rf"{_ALWAYS}|trials/\w+/({RECORD}|trace/(?!units\.).*|raw/({_KEPT}))",
    "raw": rf"{_LEAN}|trials/\w+/({RECORD}|(trace|raw)/.*)|{_DISCARDED}/({RECORD}|(trace|raw)/.*)",
}
_TEXT = -1
_START = 8
_ROOM = SLOT - 8  # a slot with text, where that starts, and its bytes


def published(run: Run, level: str) -> Iterator[str]:
    """
    Names of the files of *run* that are published at *level*, sorted, but for seals and hashes.

    `scores`: from which predictions and scores can be made again, and the configurations of jobs,
    which name the seal; `traces`: profiles, too, and what Hadoop says of each job; `raw`: all that
    was measured.
    """
    pattern = re.compile(_PUBLISHED[level], re.DOTALL)
    records = run.trials()
    for name in filter(pattern.fullmatch, sorted(run.opener.names(run.path))):
        if level == "traces" and re.fullmatch(_TASK_LOG, name, re.DOTALL):
            # As `observe` has it: a profile needs logs of tasks, and other trials need them where
            # nothing was recorded.
            trial = name.split("/")[1]
            tasks = run.path / "trials" / trial / "trace" / "tasks.parquet"
            if tasks.exists() and records[trial].trial.is_scored:
                continue
        if name != SEAL:
            yield name


def pieces(opener: Opener, path: Path) -> Iterator[bytes]:
    """Contents of a file in pieces that can be rewritten one by one, those of a log unpacked."""
    if path.suffix != ".gz":
        yield opener.read(path, "restore it from a copy")
        return
    with RawLogs(opener, path.parent).open(path.stem) as stream:
        piece = stream.read(_PIECE_BYTES)
        if piece.startswith((_PARQUET, _AVRO, _RECORDING, _UNITS)):
            piece += stream.read(MOST_WHOLE_BYTES)
            if stream.read(1):
                raise DataError(f"more than {MOST_WHOLE_BYTES} bytes, and not a log")
        while piece:
            yield piece + (b"" if piece.endswith(b"\n") else stream.readline())
            piece = stream.read(_PIECE_BYTES)


def is_open(data: bytes) -> bool:
    """Whether the texts of *data* stand in its bytes as they are."""
    return not data.startswith((_PARQUET, _AVRO, _RECORDING))


def rewrite(data: bytes, change: Change) -> bytes:
    """
    *data* with what *change* makes of each text in it, and the same bytes where that is the same.

    `DataError`, without a place: it is packed or damaged, and nobody can say what is in it.
    """
    if data.startswith(_PACKED):
        raise DataError("a packed file, into which nobody looks")
    if data.startswith(_UNITS):
        return data  # numbers alone
    for magic, rewritten in (
        (_PARQUET, rewrite_table),
        (_AVRO, rewrite_history),
        (_RECORDING, rewrite_recording),
    ):
        if data.startswith(magic):
            try:
                return rewritten(data, change)
            except HarnessError as error:
                raise DataError(error.what) from error
            except _DAMAGE as error:
                raise DataError(f"a damaged file: {excerpt(error, 200)}") from error
    text = data.decode("utf-8", "surrogateescape")
    is_json = text.startswith(("{", "Avro-Json"))
    changed = rewrite_documents(text, change) if is_json else change(text, "")
    return data if changed == text else changed.encode("utf-8", "surrogateescape")


def _walked(value: Any, change: Change, key: str = "") -> Any:
    """*value* of a JSON or Avro document with its texts and keys changed."""
    if isinstance(value, str):
        return change(value, key)
    if isinstance(value, tuple):  # of a union: the name of its type, and the value
        return value[0], _walked(value[1], change, key)
    if isinstance(value, list):
        return [_walked(element, change, key) for element in value]
    if isinstance(value, dict):
        if value.keys() == {"string"}:  # of a union, too
            return {"string": _walked(value["string"], change, key)}
        fields = value.items()
        return {change(name, KEYS + key): _walked(field, change, name) for name, field in fields}
    return value


def rewrite_documents(text: str, change: Change) -> str:
    """A JSON document, or lines of them among which others may be."""
    try:
        value = read_json(text)
    except ValueError:
        lines = text.splitlines(keepends=True)
        if len(lines) < 2:
            return change(text, "")
        changed_lines = list[str]()
        for line in lines:
            is_document = line[0] == "{"
            changed_lines.append(
                rewrite_documents(line, change) if is_document else change(line, "")
            )
        return "".join(changed_lines)
    changed = _walked(value, change)
    if changed == value:
        return text
    body = text.rstrip()
    indent = 2 if "\n" in body else None
    separators = None if indent or '": ' in body else (",", ":")
    written = json.dumps(changed, indent=indent, separators=separators, ensure_ascii=text.isascii())
    return written + text[len(body) :]


def rewrite_history(data: bytes, change: Change) -> bytes:
    """A history in Avro's binary form."""
    from fastavro import schemaless_reader, schemaless_writer

    first, schema_line, events = data.split(b"\n", 2)
    schema = avro_schema(json.loads(schema_line), "a history")
    stream = BytesIO(events)
    written = BytesIO()
    while stream.tell() < len(events):
        event = schemaless_reader(stream, schema, None, return_named_type=True)
        schemaless_writer(written, schema, _walked(event, change))
    return b"\n".join([first, schema_line, written.getvalue()])


def rewrite_recording(data: bytes, change: Change) -> bytes:
    """A recording: the thread of each chunk, and texts, which go on from slot to slot of a span."""
    written = bytearray(data)
    for start in range(HEAD, len(data) - SLOT + 1, CHUNK):
        count = len(data[start : start + CHUNK]) // SLOT
        kinds = np.ndarray((count, SLOT // 4), "<i4", data, start)[1:, 0]
        slots = np.flatnonzero(kinds == _TEXT)
        spans = np.cumsum(kinds > 0)[slots]
        texts = [(start + SLOT * (1 + slots[spans == span])).tolist() for span in np.unique(spans)]
        for offsets in ([start], *texts):
            parts = [data[offset + _START : offset + SLOT].rstrip(b"\0") for offset in offsets]
            before = b"".join(parts)
            room = _ROOM * len(offsets)
            changed = change(before.decode("utf-8", "surrogateescape"), "")
            after = changed.encode("utf-8", "surrogateescape")[:room]
            if after == before:
                continue
            if offsets == [start]:
                written[start + 4 : start + _START] = len(after).to_bytes(4, "little")
            for number, offset in enumerate(offsets):
                part = after.ljust(room, b"\0")[_ROOM * number :][:_ROOM]
                written[offset + _START : offset + SLOT] = part
    return bytes(written)


def rewrite_table(data: bytes, change: Change) -> bytes:
    """A table, written as `harness.observe.storage.tables` does."""
    import pyarrow as arrow

    from pyarrow import parquet

    written = BytesIO()
    with parquet.ParquetFile(BytesIO(data), page_checksum_verification=True) as file:
        types = _column_types(file)
        texts = [name for name, kind in types.items() if kind == arrow.string()]
        if not _is_changed(file, texts, change):
            return data
        schema = arrow.schema(types)
        options = {"compression": "zstd", "write_page_checksum": True}
        with parquet.ParquetWriter(written, schema, **options) as writer:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, use_threads=False).cast(schema)
                for name in texts:
                    column = table[name].combine_chunks().dictionary_encode()
                    words = [change(word, name) for word in column.dictionary.to_pylist()]
                    values = arrow.array(words, arrow.string()).take(column.indices)
                    table = table.set_column(schema.get_field_index(name), name, values)
                writer.write_table(table.cast(schema))
    return written.getvalue()


def _column_types(file: Any) -> dict[str, Any]:
    """Types of the columns of a table by their names; `DataError`: it is none of ours."""
    import pyarrow as arrow

    numbers = (arrow.int64(), arrow.float64(), arrow.bool_())
    known_types = (arrow.string(), *numbers, arrow.list_(arrow.int64()))
    types = dict[str, Any]()
    for field in file.schema_arrow:
        types[field.name] = next((kind for kind in known_types if kind == field.type), None)
    if None in types.values() or file.metadata.num_rows * len(types) > _MOST_ROWS:
        raise DataError("a column or a number of rows that no table has")
    return types


def _is_changed(file: Any, texts: list[str], change: Change) -> bool:
    """Whether *change* makes something else of a word in the columns *texts* of a table."""
    for group in range(file.num_row_groups):
        for name in texts:
            words = file.read_row_group(group, [name])[name].unique().to_pylist()
            if any(word is not None and change(word, name) != word for word in words):
                return True
    return False
