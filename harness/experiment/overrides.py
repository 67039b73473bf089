"""``--set a.b=c``: changes to an experiment's tree before it is read."""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import SpecError
from harness.experiment.yamltree import (
    Entries,
    Items,
    Node,
    Place,
    Problems,
    Scalar,
    read_tree,
    shown,
)

# After these, the rest of the path is one key: names of properties hold dots.
_PROPERTIES = (("configuration",), ("cluster", "site"), ("predict", "profile_on"))

# First words of Hadoop's properties; no key of an experiment begins with one.
_HADOOP = frozenset({"mapreduce", "mapred", "yarn", "dfs", "hadoop", "io", "ipc", "fs"})


def apply_overrides(tree: Entries, overrides: Sequence[str], problems: Problems) -> None:
    """
    Put the value of each ``KEY=VALUE`` into *tree*; VALUE is YAML.

    A workload is meant by its number from 0 or by its name.  Problems, here and later, are at the
    override.
    """
    for override in overrides:
        key, equals, value = override.partition("=")
        at = Place(f"--set {override}")
        if not key.strip() or not equals:
            raise SpecError(
                f"'{shown(override)}' is not an override",
                where="--set",
                fix="write KEY=VALUE, such as --set cluster.workers=2",
            )
        if key.strip().partition(".")[0] in _HADOOP:
            problems.add(
                at,
                f"'{shown(key.strip())}' is a property of Hadoop, not a key of the experiment",
                "put configuration. before it (each job), or cluster.site. (the whole cluster)",
            )
            continue
        node = read_tree(value, at.source, problems, override=True)
        _put(tree, _parts(key.strip()), node, at, problems)


def _parts(key: str) -> list[str]:
    parts = key.split(".")
    for head in _PROPERTIES:
        if tuple(parts[: len(head)]) == head and len(parts) > len(head):
            return [*head, ".".join(parts[len(head) :])]
    return parts


def _put(tree: Node, parts: list[str], value: Node, at: Place, problems: Problems) -> None:
    *path, last = parts
    for part in path:
        if isinstance(tree, Entries) and part not in tree.entries:
            tree.entries[part], tree.keys[part] = Entries(at), at
        below = _child(tree, part)
        if below is None:
            return problems.add(at, f"nothing is at '{shown(part)}'", _names(tree))
        tree = below
    if isinstance(tree, Entries):
        tree.entries[last], tree.keys[last] = value, at
    elif (index := _index(tree, last)) is not None:
        assert isinstance(tree, Items)
        tree.items[index] = value
    else:
        problems.add(at, f"nothing is at '{shown(last)}'", _names(tree))
    return None


def _child(node: Node, part: str) -> Node | None:
    if isinstance(node, Entries):
        return node.entries[part]
    index = _index(node, part)
    return node.items[index] if isinstance(node, Items) and index is not None else None


def _index(node: Node, part: str) -> int | None:
    """Where *part*, a number or the name of an item, is in a list."""
    if not isinstance(node, Items):
        return None
    names = [_name(item) for item in node.items]
    if part in names:
        return names.index(part)
    number = int(part) if part.isascii() and part.isdecimal() and len(part) < 6 else len(names)
    return number if number < len(names) else None


def _name(item: Node) -> str:
    name = item.entries.get("name") if isinstance(item, Entries) else None
    return name.text if isinstance(name, Scalar) else ""


def _names(node: Node) -> str:
    if not isinstance(node, Items):
        return "a single value stands there: override it as a whole"
    known = [shown(_name(item)) or str(index) for index, item in enumerate(node.items)]
    return f"name one of {', '.join(known)}, or a number below {len(known)}"
