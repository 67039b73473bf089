"""
Files of inputs and outputs: plans of those that our generators write, and records in their bytes.

An input is a row of records that follow from the seed and their numbers; a MapReduce job of ours
(`mapreduce.harness.jobs.generate`) spreads them evenly over its files.  All bytes together are the
same whatever the number of files.
"""

from __future__ import annotations

import re

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from numpy.typing import NDArray

from harness.base.errors import JobError, SpecError
from harness.base.records.trial import WorkloadSpec, digest
from harness.clusters.workloads.base import (
    PACKAGE,
    File,
    InputPlan,
    Sample,
    Value,
    bad_input_error,
    block_count,
    check_block,
    check_size,
    even_sizes,
    job_of_ours,
    shown,
)

MOST_SEED = 2**63 - 1
PAGE = 32 * 1024
TEXT_VERSION = 2  # part of the content's key: raise it when the bytes change
# Class, bytes of the shortest page, and those that each file begins with: pronounceable words by
# Zipf's law; the law of RandomTextWriter, which HiBench takes, in lines or in sequence files.
TEXTS = {
    "zipf": ("ZipfText", 1, 0),
    "random": ("RandomText", 2, 0),
    "sequence": ("SequenceText", 30, 78),
}
_TEXT = b"\x19org.apache.hadoop.io.Text"  # a name with its length before it
_NUMBER = b"\x20org.apache.hadoop.io.IntWritable"
_MOST_RECORD = 2**26  # bytes of a record; a larger one is a damaged length

Bytes = NDArray[np.uint8]
Bits = NDArray[np.uint64]
ReadBytes = Callable[[int], bytes]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_WORD = 8


def generated_input(
    spec: WorkloadSpec,
    key: str,
    content: str,
    *,
    records: int,
    sizes: Sequence[int],
    properties: Mapping[str, Value],
) -> InputPlan:
    """
    Return the plan of *records* of the class *content*, which a job writes into files of *sizes*.

    *properties* are the content's own.  `SpecError` for a seed that Java cannot hold.
    """
    if spec.seed > MOST_SEED:
        raise SpecError(
            f"the seed {spec.seed} is larger than {MOST_SEED}",
            where="seed",
            fix="choose a smaller one",
        )
    arguments = (f"{PACKAGE}.{content}", str(records), str(len(sizes)), str(spec.seed))
    generator = job_of_ours("generate.Generate", *arguments, properties=properties)
    return InputPlan(key, sizes, generator)


def whole_records(
    spec: WorkloadSpec,
    block_bytes: int,
    record_bytes: int,
    least_files: int = 1,
    least_records: int = 1,
) -> tuple[int, int]:
    """
    Return how many records of one size come nearest to the input asked for, and in how many files.

    There are as many files as blocks, or *least_files*, and no file is larger than a block: 4 full
    blocks of uneven records are 4 files and a few records less, where one more would make a fifth.
    `SpecError` where records and size cannot agree within 1 %, or a file would be empty.
    """
    check_block(spec, block_bytes, record_bytes)
    file_count = max(block_count(spec, spec.input_bytes, block_bytes), least_files)
    nearest = (spec.input_bytes + record_bytes // 2) // record_bytes
    least = max(file_count, least_records)
    records = min(file_count * (block_bytes // record_bytes), max(nearest, least))
    size_units = f"{least} or more whole records of {record_bytes} bytes in {file_count} files"
    check_size(spec, records * record_bytes, size_units, max(50, least) * record_bytes)
    return records, file_count


def plan_noise(
    spec: WorkloadSpec, block_bytes: int, record_bytes: int, least_files: int = 1, **content: Value
) -> InputPlan:
    """Return the plan of random records; what is kept of them depends on *content*, too."""
    records, file_count = whole_records(spec, block_bytes, record_bytes, least_files)
    size = [records, file_count, record_bytes]
    return generated_input(
        spec,
        f"{spec.name}-{digest({'noise': 1, 'seed': spec.seed, 'of': size, **content})}",
        "generate.Noise",
        records=records,
        sizes=[count * record_bytes for count in even_sizes(records, file_count)],
        properties={"noise.bytes": record_bytes},
    )


def plan_text(spec: WorkloadSpec, block_bytes: int, text_kind: str) -> InputPlan:
    """
    Fewest files of whole pages that fit a block each; they differ by a page at most.

    The key has the workload's name, because what is kept of an input is the workload's own.
    """
    content_class, least, header = TEXTS[text_kind]
    page = PAGE - header

    def without_rest(size: int) -> int:
        """Bytes of whole pages, and of one more that can be that short."""
        return size - (size % page if size % page < least else 0)

    check_block(spec, block_bytes, PAGE)
    asked_bytes = without_rest(spec.input_bytes)
    file_count = block_count(spec, asked_bytes, block_bytes // PAGE * PAGE)
    most_bytes = file_count * (block_bytes // PAGE) * page
    text_bytes = without_rest(min(asked_bytes - file_count * header, most_bytes))
    if text_bytes < 1:
        raise SpecError(
            f"a text of {spec.input_bytes} bytes holds no record",
            where=f"{spec.name}, input",
            fix=f"ask for {header + least} bytes or more",
        )
    page_count = -(-text_bytes // page)
    sizes = [header + pages * page for pages in even_sizes(page_count, file_count)]
    sizes[-1] -= page_count * page - text_bytes
    content = {
        "text": TEXT_VERSION,
        "kind": text_kind,
        "seed": spec.seed,
        "bytes": text_bytes,
        "files": file_count,
    }
    return generated_input(
        spec,
        f"{spec.name}-{digest(content)}",
        f"text.{content_class}",
        records=page_count,
        sizes=sizes,
        properties={"pages.bytes": text_bytes},
    )


def regroup(chunks: Iterable[bytes], piece_bytes: int) -> Iterator[bytes]:
    """
    Cut the same bytes anew, every piece *piece_bytes* long but the last.

    >>> list(regroup([b"ab", b"cdefg"], 3))
    [b'abc', b'def', b'g']
    """
    pending = bytearray()
    for new_chunk in chunks:
        pending += new_chunk
        whole_bytes = len(pending) // piece_bytes * piece_bytes
        for piece_start in range(0, whole_bytes, piece_bytes):
            yield bytes(pending[piece_start : piece_start + piece_bytes])
        del pending[:whole_bytes]
    if pending:
        yield bytes(pending)


def read_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines with their ends; what follows the last newline is a line, too."""
    partial_line = b""
    for new_chunk in chunks:
        *lines, partial_line = (partial_line + new_chunk).split(b"\n")
        yield from (whole_line + b"\n" for whole_line in lines)
    if partial_line:
        yield partial_line


def read_sequence(file: File) -> File:
    """
    Return a sequence file as one of lines: key, tab, value; both texts, or the value a number.

    `JobError` where it is none, is compressed, damaged, or ends within a record.
    """
    name, chunks = file
    return name, _sequence_lines(name, _byte_reader(chunks))


def _byte_reader(chunks: Iterable[bytes]) -> ReadBytes:
    """A function that gives the next so many bytes of *chunks*: fewer where there are no more."""
    pending = bytearray()
    following = iter(chunks)

    def take_bytes(count: int) -> bytes:  # no method: each record costs three calls
        while len(pending) < count and (chunk := next(following, None)) is not None:
            pending.extend(chunk)
        taken = bytes(pending[:count])
        del pending[:count]
        return taken

    return take_bytes


def _sequence_lines(name: str, take_bytes: ReadBytes) -> Iterator[bytes]:
    """Records of the sequence file *name* as lines."""
    value_class, mark = _read_head(name, take_bytes)
    is_text = value_class == _TEXT
    while length := take_bytes(4):
        if length == b"\xff" * 4 and take_bytes(16) == mark:
            continue
        size = int.from_bytes(length)
        key_size = int.from_bytes(take_bytes(4))
        record = take_bytes(size) if key_size <= size <= _MOST_RECORD else b""
        if not record or len(record) < size:
            raise JobError(f"{name}: it is damaged, or ends within a record")
        key = _read_text(name, record[:key_size])
        value = record[key_size:]
        if is_text:
            yield b"%s\t%s\n" % (key, _read_text(name, value))
        else:
            yield b"%s\t%d\n" % (key, int.from_bytes(value, signed=True))


def _read_head(name: str, take_bytes: ReadBytes) -> tuple[bytes, bytes]:
    """Class of the values, and the mark that comes again between records."""
    start = take_bytes(30)
    value_class = take_bytes(1)
    value_class += take_bytes(value_class[0] if value_class else 0)
    is_plain = take_bytes(6) == bytes(6)  # neither compressed nor with metadata
    mark = take_bytes(16)
    if start != b"SEQ\6" + _TEXT or value_class not in (_TEXT, _NUMBER) or not is_plain:
        raise JobError(f"{name}: it is not a plain sequence file of texts")
    return value_class, mark


def _read_text(name: str, written: bytes) -> bytes:
    """The text behind its length: a byte up to 127, or one that says how many bytes it takes."""
    first = written[0] if written else 255
    start = 1 if first < 128 else 145 - first
    size = int.from_bytes(written[1:start] or written[:1])
    if first >= 144 or start + size != len(written):
        raise JobError(f"{name}: {shown(written)} is not a text behind its length")
    return written[start:]


def read_matches(
    file: File, pattern: re.Pattern[bytes], what: str
) -> Iterator[tuple[str, re.Match[bytes]]]:
    """
    Every line of *file* as *pattern* matches it, without its end, and its place in messages.

    `JobError` for a line that is not *what* it should be.
    """
    for number, line in enumerate(read_lines(file[1]), start=1):
        text = line.removesuffix(b"\n")
        place = f"{file[0]}:{number}"
        if not (match := pattern.fullmatch(text)):
            raise JobError(f"{place}: {shown(text)} is not {what}")
        yield place, match


def read_rows(
    workload: str, files: Iterable[File], row_bytes: int, together: int = 2**20
) -> Iterator[Bytes]:
    """
    Records of all *files* in order, as arrays (records, *row_bytes*) of about *together* bytes.

    Raises `JobError` naming a file that does not consist of whole records.
    """
    for file_name, chunks in files:
        file_bytes = 0
        for row_piece in regroup(chunks, max(1, together // row_bytes) * row_bytes):
            file_bytes += len(row_piece)
            if len(row_piece) % row_bytes:
                size_units = f"a whole number of records of {row_bytes} bytes"
                raise bad_input_error(
                    workload, f"{file_name} has {file_bytes} bytes, not {size_units}"
                )
            yield np.frombuffer(row_piece, np.uint8).reshape(-1, row_bytes)


def read_points(
    workload: str, files: Iterable[File], number_type: str, dimensions: int
) -> Iterator[NDArray[Any]]:
    """Records of *files* as arrays of numbers of this type; `JobError` where one is not finite."""
    record_bytes = dimensions * np.dtype(number_type).itemsize
    for file in files:
        count = 0
        for rows in read_rows(workload, [file], record_bytes):
            points = rows.view(number_type)
            infinite = np.flatnonzero(~np.isfinite(points).all(axis=1))
            if infinite.size:
                record = f"{file[0]}: record {count + infinite[0]}"
                raise bad_input_error(workload, f"{record} has a coordinate that is not finite")
            count += len(points)
            yield points


def difference(totals: Sample, sample: Sample) -> str:
    """First of the output's *totals* that differs from the input's in *sample*, or nothing."""
    for quantity, total in totals.items():
        if total != sample[quantity]:
            return f"{quantity}: {total} in the output, {sample[quantity]} in the input"
    return ""


def checksum(rows: Bytes) -> int:
    """Sum of the bits of all rows, modulo 2^64."""
    return int(row_bits(rows).sum(dtype=np.uint64))


def row_bits(rows: Bytes) -> Bits:
    """64 bits for each row: SplitMix64's finaliser over its length, then over each word added."""
    row_count, row_bytes = rows.shape
    padded = np.zeros((row_count, -(-row_bytes // _WORD) * _WORD), np.uint8)
    padded[:, :row_bytes] = rows
    row_hashes = np.full(row_count, row_bytes, np.uint64)
    for word_column in padded.view("<u8").T:
        row_hashes = _splitmix(row_hashes + word_column)
    return row_hashes


def noise(seed: int, first: int, row_count: int, row_bytes: int) -> Bytes:
    """
    Rows *first* to *first* + *row_count* - 1 of *row_bytes*, a multiple of 8, that *seed* gives.

    They are those of `generate.Noise`; the words of a row are the draws of `generate.Draws`.
    """
    numbers = np.arange(first, first + row_count, dtype=np.uint64)
    row_starts = _splitmix(np.array([seed], np.uint64) + _GOLDEN) + numbers * _GOLDEN
    word_steps = np.arange(1, row_bytes // _WORD + 1, dtype=np.uint64) * _GOLDEN
    words = _splitmix(_splitmix(row_starts)[:, None] + word_steps[None, :])
    return words.astype("<u8").view(np.uint8)


def _splitmix(word_bits: Bits) -> Bits:
    """Finaliser of SplitMix64."""
    word_bits = (word_bits ^ (word_bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word_bits = (word_bits ^ (word_bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word_bits ^ (word_bits >> np.uint64(31))
