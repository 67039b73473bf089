"""
Every reader of the product, each with the same number of hostile inputs: a command with a table.

    python -m tests.hostile.survey [--count 10000] [--seed N] [--store FILE] [READER...]

runs the mutations of each reader in a process with bounded memory, one reader after the other, ends
by itself, and prints a table: reader, inputs, refused, accepted, followed into later steps, bugs.
A bug is whatever is neither a record nor a documented error: a traceback (status 70 of a command),
a process that dies, more than the reader's time.  Each kind of bug stands below the table.

With FILE, a JSON document, results of readers that it has for the same seed and sources stay, so
that a survey that was interrupted goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.base.version import __version__
from tests.hostile import bundles, later, services, stored, witnesses
from tests.hostile.hunt import SEED, Finding, Hunt, bound_memory, hunt
from tests.hostile.targets import GENERATED, NAMES, STORED, targets

# Readers by what has to be made for them, which is made once; each by its targets, which share its
# inputs: damaged files, and what a grammar makes.
GROUPS: dict[str, dict[str, tuple[str, ...]]] = {
    "answers": {name: (name,) for name in services.NAMES},
    "witnesses": {name: (name,) for name in witnesses.NAMES},
    "stored": {
        name: (*((name,) if name in STORED else ()), f"made-{name}") for name in stored.NAMES
    },
    "logs": {name: (name, f"made-{name}") for name in NAMES},
    "later steps": {name: (name,) for name in later.NAMES},
    "bundles": {name: (name,) for name in bundles.NAMES},
}
READERS = {name: of for group in GROUPS.values() for name, of in group.items()}
COUNT = 10_000
_NEVER = 10**6  # no process is begun again so often


@dataclass(frozen=True)
class Row:
    """What became of the inputs of one *reader*."""

    reader: str
    inputs: int = 0
    accepted: int = 0
    followed: int = 0
    slowest_s: float = 0.0
    peak_bytes: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def bugs(self) -> int:
        """How many inputs neither gave a record nor a documented error."""
        return sum(finding.times for finding in self.findings)

    def plus(self, done: Hunt) -> Row:
        """Give the same with what became of further inputs."""
        return replace(
            self,
            inputs=self.inputs + done.count,
            accepted=self.accepted + done.read,
            followed=self.followed + done.followed,
            slowest_s=max(self.slowest_s, done.slowest_s),
            peak_bytes=max(self.peak_bytes, done.memory_bytes),
            findings=(*self.findings, *done.findings),
        )


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Lines of the table, as Markdown."""
    yield "| reader | inputs | refused | accepted | followed | bugs | slowest | peak memory |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows:
        numbers = (row.inputs, row.inputs - row.accepted, row.accepted, row.followed, row.bugs)
        cells = [f"`{row.reader}`", *(f"{number:,}" for number in numbers)]
        cells += [f"{row.slowest_s:.2g} s", f"{row.peak_bytes >> 20} MiB"]
        yield f"| {' | '.join(cells)} |"
    inputs = sum(row.inputs for row in rows)
    bugs = sum(row.bugs for row in rows)
    yield f"| {len(rows)} readers | {inputs:,} | | | | {bugs:,} | | |"


def problems(rows: Sequence[Row]) -> Iterator[str]:
    """Each kind of bug, with the command that meets it again."""
    for row in rows:
        for finding in row.findings:
            again = f"python -m tests.hostile.hunt {finding.target} SEED {finding.number} 1"
            yield f"{finding.times}x {finding.what} at {finding.where}: {again}; {finding.shrunk}"


def surveyed(
    names: Sequence[str], seed: int, count: int, known: Mapping[str, Row], folder: Path
) -> Iterator[Row]:
    """The row of each of the readers *names*, as soon as it is there; *known* ones at once."""
    yield from (known[name] for name in names if name in known)
    for group in GROUPS.values():
        left = [name for name in group if name in names and name not in known]
        for _ in range(_NEVER):
            if not left:
                break
            for row in _of_process(left, seed, count, folder / "place"):
                yield row
                left.remove(row.reader)


def _of_process(names: Sequence[str], seed: int, count: int, place: Path) -> Iterator[Row]:
    """Rows that a process gives; where it dies, that is a bug of the reader under way."""
    place.unlink(missing_ok=True)
    words = ["--child", str(place), "--seed", str(seed), "--count", str(count), *names]
    command = [sys.executable, "-m", "tests.hostile.survey", *words]
    given = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            given += 1
            yield row_of(json.loads(line))
    if process.returncode:
        number = int(place.read_text()) if place.exists() else -1
        died = Finding(f"the process died with status {process.returncode}", "", number)
        yield Row(names[given], findings=(died,))


def row_of(document: Mapping[str, Any]) -> Row:
    """A row as it was stored."""
    findings = tuple(Finding(**finding) for finding in document["findings"])
    return Row(**{**document, "findings": findings})


def survey_here(names: Sequence[str], seed: int, count: int, place: Path) -> None:
    """Be the process of some readers: print a line of JSON for each."""
    wanted = [target for name in names for target in READERS[name]]
    with targets(wanted) as made:
        by_name = {target.name: target for target in made}
        for target in made:
            hunt(target, seed, range(2))  # what is imported late is imported now
        bound_memory()
        for name in names:
            row = Row(name)
            parts = READERS[name]
            for part, target_name in enumerate(parts):
                share = count // len(parts) + (part < count % len(parts))
                done = hunt(by_name[target_name], seed, range(share), place)
                for finding in done.findings:
                    finding.target = target_name
                row = row.plus(done)
            print(json.dumps(asdict(row)), flush=True)  # noqa: T201 - the answer of the process


def main(words: Sequence[str]) -> int:
    """Run the command; 1 where there is a bug."""
    assert {*GENERATED, *NAMES, *STORED} <= {name for of in READERS.values() for name in of}
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.survey")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--child", type=Path)
    parser.add_argument("readers", nargs="*")
    given = parser.parse_args(words)
    names = given.readers or [*READERS]
    if given.child is not None:
        survey_here(names, given.seed, given.count, given.child)
        return 0
    settings = {"harness": __version__, "seed": given.seed, "count": given.count}
    known = dict[str, Row]()
    if given.store and given.store.exists():
        stored_before = json.loads(given.store.read_text())
        if {name: stored_before[name] for name in settings} == settings:
            known = {row["reader"]: row_of(row) for row in stored_before["rows"]}
    rows = []
    began_s = time.monotonic()
    with TemporaryDirectory() as folder:
        for row in surveyed(names, given.seed, given.count, known, Path(folder)):
            rows.append(row)
            spent = f"{time.monotonic() - began_s:.0f} s"
            print(f"{row.reader}: {row.inputs} inputs, {row.bugs} bugs, {spent}", file=sys.stderr)  # noqa: T201
            if given.store:
                kept = {**known, **{each.reader: each for each in rows}}
                in_order = [asdict(kept[name]) for name in READERS if name in kept]
                scratch = given.store.with_suffix(".new")
                scratch.write_text(json.dumps({**settings, "rows": in_order}, indent=1) + "\n")
                scratch.replace(given.store)
    in_order_of_readers = sorted(rows, key=lambda row: [*READERS].index(row.reader))
    for line in (*table(in_order_of_readers), *problems(in_order_of_readers)):
        print(line)  # noqa: T201 - what was asked for
    return int(any(row.bugs for row in rows))


if __name__ == "__main__":
    os.environ.setdefault("HADOOP_USER_NAME", "hostile")
    sys.exit(main(sys.argv[1:]))
