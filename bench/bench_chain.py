"""
Lines added to a chain of evidence: by a writer that knows its end, beside one that reads it all.

The second is what every writer did before, and what one still does behind another's line.  Both
write the same names and hashes into chains of their own, in turn; times are processor seconds.
"""

import time

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.core.store.evidence import CHAIN, Chain
from harness.observe.storage.opener import Opener

SIZES = (500, 1000, 2000)


def known_end(folder: Path) -> Iterator[Chain]:
    """The chain of *folder* for each line, by one opener."""
    chain = Chain(Opener(folder))
    while True:
        yield chain


def read_anew(folder: Path) -> Iterator[Chain]:
    """The chain of *folder* for each line, opened anew."""
    while True:
        yield Chain(Opener(folder))


def seconds_of(chains: Iterator[Chain], lines: int) -> float:
    """Processor seconds that so many *lines* take."""
    started_s = time.process_time()
    for number, chain in zip(range(lines), chains, strict=False):
        chain.append(f"trials/{number:016x}", f"{number:064x}", starts=True)
    return time.process_time() - started_s


def main() -> None:
    """Print a line for each size."""
    for lines in SIZES:
        seconds = []
        lengths = set()
        for ways in (known_end, read_anew):
            with TemporaryDirectory() as folder:
                seconds.append(seconds_of(ways(Path(folder)), lines))
                lengths.add((Path(folder) / CHAIN).read_bytes().count(b"\n"))
        assert lengths == {lines}
        known_s, anew_s = seconds
        print(
            f"{lines:5} lines: {known_s:.2f} s by a known end, {anew_s:.2f} s read anew,"
            f" {anew_s / known_s:.0f} times"
        )


if __name__ == "__main__":
    main()
