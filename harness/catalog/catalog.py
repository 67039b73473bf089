"""
The catalog on disk: Parquet files of jobs, and an index of them that any query can make again.

    jobs/000001.parquet ...   batches of rows, each written whole; of a job's rows the last counts
    index.parquet             what queries need of all rows; it names the batches that it is made of
    rules.yaml                rules of families, where somebody wrote some
    lock                      of the one that adds
"""

from __future__ import annotations

import json

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from harness.base.errors import DataError, HarnessError, MachineError, SpecError
from harness.base.text import excerpt
from harness.catalog.families import RULES_FILE, families, read_rules
from harness.catalog.jobs import COLUMNS, FEATURES, LATER, Row
from harness.catalog.sources import is_of_history_alone, rank_of
from harness.observe.storage.files import (
    exclusive_lock,
    os_error_as_machine_error,
    remove_tree,
    rename_durably,
    sync_tree,
    write_file,
)
from harness.observe.storage.opener import MOST_WHOLE_BYTES, Opener
from harness.observe.storage.tables import read_columns, read_table, write_table

_JOBS = "jobs"
_INDEX = "index.parquet"
_LOCK = "lock"
_SCRATCH = ".new"
_INDEX_VERSION = 2
_TEXTS = ("job_id", "source_key", "name", "state", "mapper", "combiner", "reducer", "program")
NUMBERS = ("submit_s", "job_s", "input_bytes", *FEATURES)
_REPAIR = "move this file out of the catalog, and add its sources again: harness catalog add SOURCE"


class Known(NamedTuple):
    """
    What a catalog has: *keys* of sources, and by job *ranks* of the row that counts.

    Ids of jobs, which are all that a server has, are among the keys.
    """

    keys: set[str]
    ranks: dict[str, int]


class Catalog:
    """Past jobs in a folder; whoever adds has its lock, readers need none."""

    def __init__(self, folder: Path, rules: Path | None = None) -> None:
        """Use the rules of families in the file *rules*, else those in the folder, if any."""
        self.folder = folder
        self._opener = Opener(folder)
        path = rules or folder / RULES_FILE
        self.rules = read_rules(path) if rules or path.exists() else {}

    @contextmanager
    def lock(self) -> Iterator[None]:
        """
        Be the only one that adds; `SpecError` for a folder of something else.

        A folder that was not there, and to which nothing is added, is not there afterwards.
        """
        is_new = not self.folder.exists()
        with os_error_as_machine_error(self.folder):
            names = set[str]() if is_new else {path.name for path in self.folder.iterdir()}
        foreign_names = names - {_LOCK, _SCRATCH, RULES_FILE}
        if foreign_names and _JOBS not in names:
            example = excerpt(min(foreign_names))
            what = f"this folder is no catalog: it has other files, such as {example}"
            fix = "name another one with --catalog DIR; it is made where it is not there"
            raise SpecError(what, where=str(self.folder), fix=fix)
        with exclusive_lock(self.folder / _LOCK, "this catalog"):
            remove_tree(self.folder / _SCRATCH)
            try:
                yield
            finally:
                if is_new and not self.batches():
                    remove_tree(self.folder)

    def batches(self) -> list[Path]:
        """Files of jobs, in the order in which they were added."""
        return sorted(self.folder.glob(f"{_JOBS}/{'[0-9]' * 6}.parquet"))

    def write(self, rows: Sequence[Row]) -> None:
        """Add a batch of *rows*, whole or not at all; the caller has the lock."""
        number = max((int(path.stem) for path in self.batches()), default=0) + 1
        scratch = self.folder / _SCRATCH / f"{number:06d}.parquet"
        jobs = self.folder / _JOBS
        with os_error_as_machine_error(scratch):
            for folder in (scratch.parent, jobs):
                folder.mkdir(exist_ok=True)
            write_table(scratch, COLUMNS, rows)
            sync_tree(scratch.parent)
            rename_durably(scratch, jobs / scratch.name)

    def known(self) -> Known:
        """
        What need not be read again.

        A row from before all columns were known, whose job has a configuration, is to be read; so
        is one whose configuration was there and could not be read, or may be found by now.
        """
        stored = Known(set(), {})
        table = self.table(["source_key", "job_id", "mapper", "program", "is_current"])
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        for key, job_id, mapper, program, is_current in rows:
            if is_current:
                stored.ranks[job_id] = rank_of(key, job_id, program)
                if mapper is None:
                    stored.keys.add(job_id)
                if program is not None or (mapper is None and is_of_history_alone(key)):
                    stored.keys.update((key, job_id))
        return stored

    def read_job(self, job_id: str) -> Row:
        """Row of a job, from its batch; `DataError` where the catalog has no such job."""
        for is_anew in (False, True):  # a batch that does not agree has the index made again
            table = self.table(["job_id", "batch", "row", "is_current"], anew=is_anew)
            (place,) = table.take([self.position(table, job_id)]).to_pylist()
            with _with_repair(), suppress(IndexError, ValueError):
                rows = read_table(self._opener, self.batches()[place["batch"]], COLUMNS, LATER)
                row = next(islice(rows, place["row"], None), {})
                if row.get("job_id") == job_id:
                    return row
        raise DataError("the batches changed meanwhile", where=str(self.folder), fix="try again")

    def position(self, table: Any, job_id: str) -> int:
        """Where in a *table* of it the row of a job is that counts; `DataError`: there is none."""
        from pyarrow import compute

        is_job = compute.and_(compute.equal(table["job_id"], job_id), table["is_current"])
        if not (places := np.flatnonzero(is_job.to_numpy())).size:
            what = f"the catalog has no job '{excerpt(job_id)}'"
            fix = "harness catalog list FAMILY"
            raise DataError(what, where=str(self.folder), fix=f"{fix} names those of a family")
        return int(places[0])

    def table(self, columns: list[str] | None = None, *, anew: bool = False) -> Any:
        """
        Arrow table of what queries need of each row: its place, family, texts and numbers.

        The stored index is used where it names all batches as they are, and the same rules; else it
        is brought up to date, or made again where it is damaged or *anew*.
        """
        paths = self.batches()
        if not paths:
            what = "there is no catalog yet"
            fix = "make one: harness catalog add SOURCE"
            raise DataError(what, where=str(self.folder), fix=fix)
        contents = self._contents(paths)
        stored, stored_batches = (None, 0) if anew else self._stored(columns, contents)
        if stored_batches == len(paths):
            return stored
        import pyarrow as arrow

        from pyarrow import parquet

        parts = [] if stored is None else [stored.replace_schema_metadata(None)]
        for number in range(stored_batches, len(paths)):
            with _with_repair():
                batch = read_columns(self._opener, paths[number], COLUMNS, LATER)
                parts.extend(self._part(number, part) for part in batch)
        table = arrow.concat_tables(parts)
        last_rows = {job_id: row for row, job_id in enumerate(table["job_id"].to_pylist())}
        flags = np.zeros(len(table), bool)
        flags[[*last_rows.values()]] = True
        table = table.set_column(0, "is_current", arrow.array(flags))
        table = table.replace_schema_metadata({"catalog": json.dumps(contents)})
        sink = arrow.BufferOutputStream()
        parquet.write_table(table, sink, compression="zstd", write_page_checksum=True)
        with suppress(MachineError):  # who may only read does without
            write_file(self.folder / _INDEX, sink.getvalue().to_pybytes(), self.folder)
        return table.select(columns) if columns else table

    def _contents(self, paths: Sequence[Path]) -> dict[str, Any]:
        """What an index is made of: the rules, and the batches at *paths* with size and time."""
        batches = []
        with os_error_as_machine_error(self.folder):
            for path in paths:
                facts = path.lstat()
                batches.append([path.name, facts.st_size, facts.st_mtime_ns])
        rules = [[*pair] for pair in self.rules.items()]
        return {"version": _INDEX_VERSION, "rules": rules, "batches": batches}

    def _stored(self, columns: list[str] | None, contents: dict[str, Any]) -> tuple[Any, int]:
        """The stored index, and of how many batches it is; `None` and 0 where it is of no use."""
        import pyarrow as arrow

        from pyarrow import parquet

        with (
            suppress(
                HarnessError, arrow.ArrowException, OSError, ValueError, LookupError, TypeError
            ),
            self._opener.open(self.folder / _INDEX, "", MOST_WHOLE_BYTES) as stream,
            parquet.ParquetFile(stream, page_checksum_verification=True) as file,
        ):
            stored = json.loads(file.schema_arrow.metadata[b"catalog"])
            batch_count = len(stored["batches"])
            schema = self._part(0, [[]] * len(COLUMNS)).schema
            is_prefix = stored == {**contents, "batches": contents["batches"][:batch_count]}
            if is_prefix and file.schema_arrow.equals(schema):
                is_whole = batch_count == len(contents["batches"])
                return file.read(columns if is_whole else None), batch_count
        return None, 0

    def _part(self, number: int, part: list[Any]) -> Any:
        """Rows of the index for a *part* of the batch *number*, counted from 0: its columns."""
        import pyarrow as arrow

        columns = dict(zip(COLUMNS, part, strict=True))
        names = ("name", "mapper", "combiner", "reducer", "program")
        jobs = [*zip(*(columns[name] for name in names), strict=True)]
        numbers = {name: np.asarray(columns[name], float) for name in NUMBERS}
        counts = (columns[name] for name in ("num_maps", "num_reduces", "properties"))
        settings = [setting_of(*setting) for setting in zip(*counts, strict=True)]
        return arrow.table(
            {
                "is_current": arrow.array(np.ones(len(jobs), bool)),
                "batch": arrow.array(np.full(len(jobs), number)),
                "row": arrow.array(np.arange(len(jobs))),
                "family": arrow.array(families(self.rules, jobs), arrow.string()),
                "setting": arrow.array(settings, arrow.string()),
                **{name: arrow.array(columns[name], arrow.string()) for name in _TEXTS},
                **{name: arrow.array(values, from_pandas=True) for name, values in numbers.items()},
            }
        )


def setting_of(num_maps: float, num_reduces: float, properties: Sequence[str]) -> str:
    """What is equal for jobs of a family that ask the same of Hadoop, but for their input."""
    text = "\n".join([f"{num_maps:.0f} {num_reduces:.0f}", *properties])
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@contextmanager
def _with_repair() -> Iterator[None]:
    """Say of a damaged batch what to do about it."""
    try:
        yield
    except DataError as error:
        raise DataError(error.what, where=error.where, fix=_REPAIR) from error
