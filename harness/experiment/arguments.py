"""
What an experiment file says of workloads' inputs, in their own words: sizes by name, arguments.

A size by name is put into the tree as bytes, so that all that follows knows sizes alone.
"""

from __future__ import annotations

import re

from collections.abc import Callable, Iterator, Mapping, Sequence

from harness.experiment import shapes
from harness.experiment.yamltree import Entries, Items, Node, Problems, Scalar, nearest, shown

Scales = Mapping[str, Mapping[str, int]]
Refusal = Callable[[str, str, str | int | float], tuple[str, str] | None]

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_NO_ARGUMENTS = ("name", "input", "seed")


def resolve_scales(tree: Entries, scales: Scales, problems: Problems) -> None:
    """
    Put bytes in the place of names of sizes; *scales* has those of each workload.

    In `profile_on` a name means the bytes of every workload of the file that has it.
    """
    mine = {}
    for path, name, entries in _workloads(tree):
        if name in scales and "input" in entries.entries:
            mine[name] = scales[name]
            resolved = _sizes(entries.entries["input"], path, name, scales[name], problems)
            entries.entries["input"] = resolved
    predict = tree.entries.get("predict")
    chosen = predict.entries.get("profile_on") if isinstance(predict, Entries) else None
    if isinstance(chosen, Entries) and "input" in chosen.entries:
        chosen.entries["input"] = _of_any(chosen.entries["input"], mine, problems)


def check_arguments(tree: Entries, refusal: Refusal, problems: Problems) -> None:
    """Note what *refusal* has against the value of an argument: what is wrong, what to write."""
    for _, name, entries in _workloads(tree):
        given = ((k, v) for k, v in entries.entries.items() if k not in _NO_ARGUMENTS)
        for key, scalar in ((k, scalar) for k, v in given for scalar in _scalars(v)):
            try:
                value = shapes.argument(scalar)
            except ValueError:
                continue  # the table of the file's format tells of it
            if wrong := refusal(name, key, value):
                problems.add(scalar.at, *wrong)


def _workloads(tree: Entries) -> Iterator[tuple[str, str, Entries]]:
    """Path, name and entry of each workload that has a name."""
    listed = tree.entries.get("workloads")
    for index, item in enumerate(listed.items if isinstance(listed, Items) else []):
        name = item.entries.get("name") if isinstance(item, Entries) else None
        if isinstance(item, Entries) and isinstance(name, Scalar):
            yield f"workloads.{index}.input", name.text, item


def _scalars(node: Node) -> list[Scalar]:
    each = node.items if isinstance(node, Items) else [node]
    return [item for item in each if isinstance(item, Scalar)]


def _sizes(
    node: Node, path: str, workload: str, scales: Mapping[str, int], problems: Problems
) -> Node:
    if isinstance(node, Items):
        pairs = [(item, _sizes(item, path, workload, scales, problems)) for item in node.items]
        return Items(node.at, list(_distinct(pairs, path, scales, problems)))
    if not isinstance(node, Scalar) or not _WORD.fullmatch(node.text):
        return node
    if node.text not in scales:
        what = f"{path}: {workload} has no size called '{shown(node.text)}'"
        problems.add(node.at, what, _fix(node.text, scales))
        return Scalar(node.at, str(1 + node.at.column))  # any size, and not the same twice
    return Scalar(node.at, str(scales[node.text]))


def _distinct(
    pairs: Sequence[tuple[Node, Node]], path: str, scales: Mapping[str, int], problems: Problems
) -> Iterator[Node]:
    """Give the sizes, but a name that means the same as one before it, which is noted."""
    seen: dict[str, str] = {}
    for before, after in pairs:
        if isinstance(before, Scalar) and isinstance(after, Scalar) and before.text in scales:
            name = seen.setdefault(after.text, before.text)
            if name != before.text:
                what = f"{path}: '{before.text}' is as large as '{name}' here"
                problems.add(before.at, what, "leave one")
                continue
        yield after


def _fix(name: str, scales: Mapping[str, int]) -> str:
    if not scales:
        return "write a size such as 32 MiB"
    return f"{nearest(name, list(scales))} (or a size such as 32 MiB)"


def _of_any(node: Node, mine: Scales, problems: Problems) -> Node:
    found: dict[str, Node] = {}
    for scalar in node.items if isinstance(node, Items) else [node]:
        if not isinstance(scalar, Scalar) or not _WORD.fullmatch(scalar.text):
            found[f"{scalar.at} {len(found)}"] = scalar
            continue
        sizes = {str(scales[scalar.text]) for scales in mine.values() if scalar.text in scales}
        if not sizes:
            what = f"predict.profile_on: no workload here has a size called '{shown(scalar.text)}'"
            names = list(dict.fromkeys(name for scales in mine.values() for name in scales))
            problems.add(scalar.at, what, _fix(scalar.text, dict.fromkeys(names, 1)))
            sizes = {"1"}
        found |= {size: Scalar(scalar.at, size) for size in sorted(sizes)}
    kept = list(found.values())
    return Items(node.at, kept) if isinstance(node, Items) or len(kept) > 1 else kept[0]
