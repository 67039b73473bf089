"""
Models and workloads of a user's own, by path: ``./mine.py:Mine`` is a class in a file.

What the user names himself (in an experiment file, an option, `harness check`) may run, and is kept
in the state folder by its SHA-256.  Of what a stored run names, only that runs which is kept there:
a run may come from anybody.
"""

from __future__ import annotations

import ast
import sys
import traceback

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from harness.base.errors import DataError, HarnessError, SpecError
from harness.base.installed import see
from harness.base.records.trial import Code, Record
from harness.base.text import did_you_mean, excerpt

if TYPE_CHECKING:  # a model's process imports no more than it needs
    from harness.clusters.workloads.base import Workload


class OwnCode(Record):
    """A user's class: how a run names it, its own name, its file, and lines of its functions."""

    code: Code
    name: str
    source: str
    lines: dict[str, int]

    def slip(self, what: str | BaseException, function: str = "predict") -> str:
        """Say *what* is wrong behind file and line: where it raised that, or of its *function*."""
        line = self.lines.get(function, self.lines[""])
        if isinstance(what, BaseException):
            frames = traceback.extract_tb(what.__traceback__)
            raised_at = [frame.lineno for frame in frames if frame.filename == self.code.file]
            line = [line, *raised_at][-1] or line
            what = getattr(what, "what", f"{type(what).__name__}: {what}")
        return excerpt(f"{self.code.file}:{line}: {what}", 500)

    @contextmanager
    def named_slips(self, function: str = "") -> Iterator[None]:
        """Turn whatever its *function* raises into a `SpecError` with file and line."""
        try:
            yield
        except HarnessError:
            raise
        except (Exception, SystemExit) as error:
            raise SpecError(self.slip(error, function)) from error

    def load(self) -> Any:
        """Run the file, and return the class."""
        module = ModuleType(f"own_{self.code.sha256}")
        sys.modules[module.__name__] = module  # dataclasses look there
        exec(compile(self.source, self.code.file, "exec"), vars(module))  # noqa: S102 - the user's
        return vars(module)[self.code.class_name]


def read_own(text: str, folder: Path = Path()) -> OwnCode:
    """
    Read ``PATH:Class``, which the user named, relative to *folder*: it may run from now on.

    `SpecError` where there is no such class in such a file; nothing of it is run here.
    """
    file_name, _, class_name = text.rpartition(":")
    path = folder / Path(file_name or text).expanduser()
    if (folder / "manifest.json").exists():
        what = f"'{excerpt(text)}' is named by the experiment of a stored run, and is not run"
        raise SpecError(what, where=str(folder), fix="name the run's folder, or a file of your own")
    try:
        source = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        what = f"'{excerpt(text)}' is no class in a file: {getattr(error, 'strerror', error)}"
        fix = "write ./mine.py:Mine, relative to the experiment file (to here, in an option)"
        raise SpecError(what, where=str(path.absolute()), fix=fix) from error
    from harness.clusters.hadoop_home.home import write_whole

    own_class = _find_class(source, path.name, class_name)
    write_whole(_kept_path(own_class.code), source.encode())
    return own_class


def _kept_path(code: Code) -> Path:
    from harness.clusters.state import state_folder

    folder = state_folder() / "code"
    folder.mkdir(exist_ok=True)
    return folder / code.sha256


def kept_own(code: Code) -> OwnCode:
    """Give the *code* that a run names; `DataError` where the user never named it himself."""
    try:
        source = _kept_path(code).read_bytes().decode()
    except FileNotFoundError as error:
        name = excerpt(f"{code.file}:{code.class_name}")
        what = f"the run names code that never ran here: {name}, SHA-256 {code.sha256}"
        fix = f"read that file, and if you trust it: harness check PATH/{name}"
        raise DataError(what, where="the run's plan and manifest", fix=fix) from error
    return _find_class(source, code.file, code.class_name)


def _find_class(source: str, file: str, class_name: str) -> OwnCode:
    """Find a class without running it; ``name = "..."`` in it is its name."""
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", 1)
        reason = getattr(error, "msg", error)
        raise SpecError(f"{file}:{line}: not Python: {reason}") from error
    classes = {
        statement.name: statement for statement in statements if isinstance(statement, ast.ClassDef)
    }
    if class_name not in classes:
        fix = "write one into it: the file defines no class" + see("own-model.md", "shows one")
        if classes:
            fix = did_you_mean(class_name, [*classes])
        raise SpecError(f"{file} has no class '{excerpt(class_name)}'", where=file, fix=fix)
    name = class_name.lower()
    lines = {"": classes[class_name].lineno}
    for statement in classes[class_name].body:
        match statement:
            case ast.FunctionDef():
                lines[statement.name] = statement.lineno
            case ast.Assign([ast.Name("name")], ast.Constant(str() as given)):
                name = given
    code = Code(file=file, class_name=class_name, sha256=sha256(source.encode()).hexdigest())
    return OwnCode(code=code, name=name, source=source, lines=lines)


@cache
def own_workload(code: Code) -> Workload:
    """Make the workload of *code*, whose slips become `SpecError`; `DataError` as `kept_own`."""
    from harness.clusters.workloads.base import Workload

    own_class = kept_own(code)
    with own_class.named_slips():
        workload = own_class.load()()
        if not isinstance(workload, Workload):
            raise TypeError(
                f"{code.class_name} is no subclass of harness.clusters.workloads.base.Workload"
            )
    workload.name = own_class.name
    for function in vars(Workload):
        if not function.startswith("_") and callable(method := getattr(workload, function)):
            setattr(workload, function, own_class.named_slips(function)(method))
    return workload
