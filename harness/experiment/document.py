"""
YAML as mappings, lists and scalars that know their places, with all problems of a file.

A file may come from anybody.  Nothing in it is executed: anchors, aliases and tags are refused, and
so are texts that are large or deep.
"""

from __future__ import annotations

import re

from collections.abc import Callable, Collection, Iterator, Mapping
from io import StringIO
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from harness.errors import SpecError
from harness.experiment.model import Experiment, WorkloadAxes
from harness.experiment.values import Scalar
from harness.text import did_you_mean, excerpt

MAX_CHARACTERS = 50_000
MAX_DEPTH = 12
_MOST_PROBLEMS = 50  # in one message: whoever has more will read it again

# After these, the rest of an override's path is one key: names of properties hold dots.
PROPERTIES = (("configuration",), ("cluster", "site"), ("predict", "profile_on"))
# First words of Hadoop's properties; no key of an experiment starts with one.
_HADOOP = frozenset({"mapreduce", "mapred", "yarn", "dfs", "hadoop", "io", "ipc", "fs"})

Path = tuple[str | int, ...]


class Place(NamedTuple):
    """Where something is: 1-based line and column of *source*; line 0 is an override."""

    line: int
    column: int
    source: str

    def __str__(self) -> str:
        """Write it as editors read it."""
        source = excerpt(self.source)
        return f"{source}:{self.line}:{self.column}" if self.line else source


class _RefusedError(MarkedYAMLError):
    """YAML that no experiment file needs."""


class _PlainComposer(Composer):
    """Refuses anchors, aliases, tags and depth before anything is made of them."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.parser.peek_event()
        complaint = note = ""
        if isinstance(event, AliasEvent) or event.anchor is not None:
            name = excerpt(event.anchor)
            complaint, note = f"anchors and aliases ({name}) are not allowed", "write it out"
        elif event.tag is not None:
            complaint, note = f"the tag {excerpt(event.tag)} is not used", "remove it"
        elif self.depth >= MAX_DEPTH:
            complaint, note = f"more than {MAX_DEPTH} levels deep", "see docs/guide.md"
        if complaint:
            raise _RefusedError(problem=complaint, problem_mark=event.start_mark, note=note)
        return super().compose_node(parent, index)


class Document:
    """
    An experiment file as mappings, lists and scalars, with the place of each and all problems.

    A part is known by its path: ``("cluster", "workers", 0)``.
    """

    def __init__(self, text: str, source: str) -> None:
        """Read *text*; *source* names its file in errors."""
        self.source = source
        self.places: dict[Path, Place] = {}
        self.key_places: dict[Path, Place] = {}
        self.known_parameters: Mapping[str, Collection[str]] = {}  # of each workload
        self.reported: set[Path] = set()
        self._problems: dict[tuple[Place, str], str] = {}
        self.data = self._load(text, ())

    def at(self, path: Path) -> Any:
        """Give what the file has at *path*, or `None`."""
        node: Any = self.data
        for part in path:
            if isinstance(node, dict):
                node = node.get(part)
            elif isinstance(node, list) and isinstance(part, int) and part < len(node):
                node = node[part]
            else:
                return None
        return node

    def mapping(self, *path: str | int) -> dict[str, Any]:
        """Give the mapping at *path*; it is empty where there is none."""
        node = self.at(path)
        return node if isinstance(node, dict) else {}

    def scalars(self, path: Path) -> Iterator[tuple[Path, Scalar]]:
        """Path and text of the scalar at *path*, or of each in the list there."""
        node = self.at(path)
        items = enumerate(node) if isinstance(node, list) else ()
        parts = [((*path, index), item) for index, item in items] or [(path, node)]
        yield from (part for part in parts if isinstance(part[1], Scalar))

    def workloads(self) -> Iterator[tuple[Path, str, dict[str, Any]]]:
        """Path, name and entry of each workload that has a name."""
        listed = self.at(("workloads",))
        for index in range(len(listed) if isinstance(listed, list) else 0):
            entry = self.mapping("workloads", index)
            if isinstance(entry.get("name"), Scalar):
                yield ("workloads", index), entry["name"], entry

    def put(self, path: Path, node: Any) -> None:
        """Replace what is at *path*, whose parent exists."""
        parent: Any = self.at(path[:-1])
        parent[path[-1]] = node

    def place(self, path: Path, *, key: bool = False) -> Place:
        """Where *path*, or its *key*, is; else where the nearest part around it is."""
        if key and path in self.key_places:
            return self.key_places[path]
        while path not in self.places:
            path = path[:-1]
        return self.places[path]

    def problem(self, path: Path, problem: str, fix: str, *, key: bool = False) -> None:
        """Note that *complaint* is wrong at *path* (or with its *key*), and how to correct it."""
        self.reported.add(path)
        self._problems.setdefault((self.place(path, key=key), problem), fix)

    def raise_problems(self) -> None:
        """Raise `SpecError` with everything noted, in the order of the file."""
        if not self._problems:
            return
        problems = sorted(self._problems.items())
        (first, problem), fix = problems[0]
        if len(problems) == 1:
            raise SpecError(problem, where=str(first), fix=fix)
        lines = [f"  {at}: {problem}; {fix}" for (at, problem), fix in problems[:_MOST_PROBLEMS]]
        if len(problems) > _MOST_PROBLEMS:
            lines.append(f"  and {len(problems) - _MOST_PROBLEMS} more")
        raise SpecError(
            "\n".join([f"{len(problems)} things are wrong with this experiment", *lines]),
            where=str(first),
            fix="correct these lines; 'harness plan FILE' checks the file and starts nothing",
        )

    def add_errors(self, error: ValidationError) -> None:
        """Note what *error* says of the file, but where a problem is noted already."""
        earlier = frozenset(self.reported)
        for each in error.errors(include_url=False):
            kind, context, location = each["type"], each.get("ctx", {}), each["loc"]
            # Parts that the file does not have: the index of a single value, branches of a model.
            path: Path = ()
            for part in location:
                here = self.at(path)
                if (isinstance(here, dict) and part in here) or (
                    isinstance(here, list) and isinstance(part, int)
                ):
                    path = (*path, part)
            if path in earlier and kind not in ("missing", "extra_forbidden"):
                continue
            item, is_key, fix = path, False, "correct this value"
            around, name = dotted(path[:-1]), dotted(path)
            model = _model_at(path[:-1] if kind == "extra_forbidden" else path)
            keys = {
                str(info.validation_alias or field): info.description or ""
                for field, info in model.model_fields.items()
                if not str(info.validation_alias).startswith("(")  # not a key of the file
            }
            if kind == "missing":
                missing = str(location[-1])
                problem = f"{name or 'the experiment'} lacks '{missing}'"
                fix = f"add {missing}: {keys[missing]}"
            elif kind == "extra_forbidden":
                known_names = list(keys)
                if model is WorkloadAxes:
                    workload = self.mapping(*path[:-1]).get("name", "")
                    known_names += self.known_parameters.get(workload, ())
                problem = f"unknown key '{excerpt(path[-1])}' in {around or 'the experiment'}"
                fix, is_key = did_you_mean(str(path[-1]), known_names), True
            elif kind in ("model_type", "dict_type"):
                names = f"; names are {', '.join(keys)}" if kind == "model_type" else ""
                problem, fix = f"{name} is not a mapping", f"write NAME: VALUE lines{names}"
            elif kind in ("value_error", "given_twice"):
                text = str(context["error"]) if kind == "value_error" else each["msg"]
                # The errors of `harness.units` say what to write after a colon.
                problem, _, advice = re.sub(r": (?=write )", "; ", text, count=1).partition("; ")
                is_key, fix = location[-1] == "[key]", advice or fix
                colon = " " if problem.startswith(("is ", "limits ")) else ": "
                problem = f"{around if is_key else name}{colon}{problem}"
                item = (*path, context["index"]) if kind == "given_twice" else path
            else:  # a bound of a record, beyond those of the file
                problem = f"{name}: {excerpt(each['msg'].lower())}"
            self.problem(item, problem, fix, key=is_key)

    def override(self, override: str) -> None:
        """
        Put the value of ``KEY=VALUE`` into the document; VALUE is YAML.

        A workload is meant by its number from 0 or by its name.  Problems of what is put are at the
        override.
        """
        key, equals, text = override.partition("=")
        key = key.strip()
        if not key or not equals:
            raise SpecError(
                f"'{excerpt(override)}' is not an override",
                where="--set",
                fix="write KEY=VALUE, such as --set cluster.workers=2",
            )
        place = Place(0, 0, f"--set {override}")
        if key.partition(".")[0] in _HADOOP:
            problem = f"'{excerpt(key)}' is a property of Hadoop, not a key of the experiment"
            fix = "put configuration. before it (each job), or cluster.site. (the whole cluster)"
            self._problems.setdefault((place, problem), fix)
            return
        parts = key.split(".")
        for head in PROPERTIES:
            if tuple(parts[: len(head)]) == head and len(parts) > len(head):
                parts = [*head, ".".join(parts[len(head) :])]
        path: Path = ()
        for part in parts:
            around = self.at(path)
            names: list[Any] = []
            step: str | int = part
            if isinstance(around, list):
                names = [item.get("name") if isinstance(item, dict) else None for item in around]
                short = part.isascii() and part.isdecimal() and len(part) < 6
                number = int(part) if short else len(names)
                step = names.index(part) if part in names else number
            if not (isinstance(around, dict) or (isinstance(step, int) and step < len(names))):
                known_names = ", ".join(excerpt(name or index) for index, name in enumerate(names))
                fix = f"name one of {known_names}, or a number below {len(names)}"
                alone = "a single value stands there: override it as a whole"
                problem = f"nothing is at '{excerpt(part)}'"
                self._problems.setdefault((place, problem), fix if names else alone)
                return
            path = (*path, step)
            if isinstance(around, dict) and part not in around:
                around[part] = {}
                self.places[path] = self.key_places[path] = place
        for replaced_path in [old for old in self.places if old[: len(path)] == path]:
            del self.places[replaced_path]
        self.key_places[path] = place
        self.put(path, self._load(text, path, place))

    def _load(self, text: str, path: Path, override: Place | None = None) -> Any:
        """Read *text* as what is at *path*; every place in an *override* is the override."""
        source = override.source if override else self.source

        def place(mark: Any) -> Place:
            return override or Place(mark.line + 1, mark.column + 1, source)

        start = override or Place(1, 1, source)
        if len(text) > MAX_CHARACTERS:
            raise SpecError(
                f"the text has {len(text)} characters, more than {MAX_CHARACTERS}",
                where=str(start),
                fix="an experiment file has a few dozen lines: is this the right file?",
            )
        yaml = YAML(typ="safe", pure=True)
        yaml.Composer = _PlainComposer
        try:
            node = yaml.compose(StringIO(text))
        except _RefusedError as error:
            at = str(place(error.problem_mark))
            raise SpecError(str(error.problem), where=at, fix=str(error.note)) from None
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            reason = error.problem or error.context or ""
            raise _not_yaml_error(reason, place(mark) if mark else start) from error
        except (YAMLError, ValueError, OverflowError, LookupError) as error:
            # A character that YAML forbids, an escape that names none, ...
            raise _not_yaml_error(str(error), start) from error
        self.places[path] = start
        return Scalar("") if node is None else self._collect(node, path, place)

    def _collect(self, node: Node, path: Path, place: Callable[[Any], Place]) -> Any:
        """Give what *node* holds as mappings, lists and scalars, and remember the places."""
        self.places[path] = place(node.start_mark)
        if isinstance(node, ScalarNode):
            return Scalar(node.value, quoted=node.style not in (None, ""))
        if not isinstance(node, MappingNode):
            children = enumerate(node.value)
            return [self._collect(child, (*path, index), place) for index, child in children]
        mapping: dict[str, Any] = {}
        for key, child in node.value:
            inner_path = (*path, key.value) if isinstance(key, ScalarNode) else path
            at = place(key.start_mark)
            if not isinstance(key, ScalarNode):
                self._problems.setdefault((at, "a key is not a word"), "write NAME: VALUE")
            elif key.value in mapping:
                first = self.key_places[inner_path].line
                problem = f"{excerpt(key.value)} is given twice, first in line {first}"
                self._problems.setdefault((at, problem), "leave one of them")
            else:
                self.key_places[inner_path] = at
                mapping[key.value] = self._collect(child, inner_path, place)
        return mapping


def dotted(path: Path) -> str:
    """Write *path* as in an override."""
    return ".".join(excerpt(part) for part in path)


def _not_yaml_error(reason: str, at: Place) -> SpecError:
    return SpecError(
        f"this is not YAML: {excerpt(reason)}",
        where=str(at),
        fix="compare the line with experiments/demo.yaml: indentation, brackets, quotes",
    )


def _model_at(path: Path) -> type[BaseModel]:
    """Give the model of the mapping at *path*, or around it."""
    model: type[BaseModel] = Experiment
    for part in path:
        fields = model.model_fields.items()
        annotations = (
            info.annotation for name, info in fields if part in (name, info.validation_alias)
        )
        annotation = next(annotations, None)
        model = _model_in(annotation) or model
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)
