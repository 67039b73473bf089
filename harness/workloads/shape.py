"""What the workloads share: sizes of files, checked parameters, quoted data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from harness.errors import SpecError
from harness.records.trial import WorkloadSpec
from harness.workloads.base import Parameter, Value
from harness.text import nearest_name

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


def arguments(spec: WorkloadSpec, known: Mapping[str, Parameter]) -> dict[str, Value]:
    """
    Value of every parameter in *known*: that of *spec*, or its default.

    Raises `SpecError` for a parameter that is unknown, of another kind, or out of its range.
    """
    for name, value in spec.parameters.items():
        if name not in known:
            raise _unknown(spec.name, name, known)
        if wrong := _wrong(value, known[name]):
            raise SpecError(
                f"{name} of {spec.name} is {shown(str(value))}: {wrong}",
                where=f"workload {spec.name!r}, {name}",
                fix=f"write, for example, {name}: {known[name].default}",
            )
    return {name: spec.parameters.get(name, each.default) for name, each in known.items()}


def _unknown(workload: str, name: str, known: Mapping[str, Parameter]) -> SpecError:
    near = nearest_name(name, known)
    others = (
        f"its parameters are {', '.join(known)}" if known else "input and seed are all it takes"
    )
    return SpecError(
        f"{workload} knows no parameter {shown(name)}",
        where=f"workload {workload!r}",
        fix=f"did you mean {near}?" if near else f"remove it: {others}",
    )


def _wrong(value: Value, known: Parameter) -> str:
    """What is wrong with *value*, or nothing; a whole number may stand for a fraction."""
    if known.choices:
        return "" if value in known.choices else f"it is one of {', '.join(known.choices)}"
    if isinstance(known.default, str):
        return "" if isinstance(value, str) else "it is a text"
    kinds = (int,) if isinstance(known.default, int) else (int, float)
    if not isinstance(value, kinds):
        return "it is a whole number" if kinds == (int,) else "it is a number"
    if not known.least <= float(value) <= known.most:
        return f"it lies from {known.least:g} to {known.most:g}"
    return ""


def shown(value: str | bytes) -> str:
    """
    Quote *value* for a message: ASCII without control characters, at most 60 characters of it.

    >>> shown("word" + chr(27)) == ascii("word" + chr(27))
    True
    """
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return ascii(text if len(text) <= 60 else text[:57] + "...")
