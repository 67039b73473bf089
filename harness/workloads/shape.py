"""What the workloads share: sizes of files, refused parameters, quoted data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.errors import SpecError
from harness.records.trial import WorkloadSpec

EXAMPLES = "org.apache.hadoop.examples.ExampleDriver"

MOST_FILES = 100_000  # of one input: a NameNode on one machine holds them, and a plan lists them


def blocks(spec: WorkloadSpec, block_bytes: int) -> int:
    """Blocks, and so files, of an input; `SpecError` where they are more than anybody generates."""
    count = -(-spec.input_bytes // block_bytes)
    if count > MOST_FILES:
        raise SpecError(
            f"an input of {spec.input_bytes} bytes has {count} blocks, more than {MOST_FILES}",
            where=f"{spec.name}, input",
            fix="ask for less input, or for larger blocks (cluster.site.dfs.blocksize)",
        )
    return count


def even_sizes(total: int, parts: int) -> list[int]:
    """
    Split *total* into *parts* that differ by one at most.

    >>> even_sizes(11, 3)
    [4, 4, 3]
    """
    size, rest = divmod(total, parts)
    return [size + (part < rest) for part in range(parts)]


def regroup(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """
    Cut the same bytes anew, every piece *size* long but the last.

    >>> list(regroup([b"ab", b"cdefg"], 3))
    [b'abc', b'def', b'g']
    """
    held = bytearray()
    for chunk in chunks:
        held += chunk
        whole = len(held) // size * size
        for start in range(0, whole, size):
            yield bytes(held[start : start + size])
        del held[:whole]
    if held:
        yield bytes(held)


def refuse_parameters(spec: WorkloadSpec) -> None:
    """Raise `SpecError` where *spec* holds parameters: for workloads that know none."""
    if spec.parameters:
        names = ", ".join(sorted(map(shown, spec.parameters)))
        raise SpecError(
            f"{spec.name} knows no parameter {names}",
            where=f"workload {spec.name!r}",
            fix="remove it: input and seed are all that this workload takes",
        )


def shown(value: str | bytes) -> str:
    """
    Quote *value* for a message: ASCII without control characters, at most 60 characters of it.

    >>> shown("word" + chr(27)) == ascii("word" + chr(27))
    True
    """
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return ascii(text if len(text) <= 60 else text[:57] + "...")
