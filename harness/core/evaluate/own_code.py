"""
Models and workloads of a user's own, by path: ``./mine.py:Mine`` is a class in a file.

What the user names himself (in an experiment file, an option, `harness check`) may run, and is kept
in the state folder by its SHA-256.  Of what a stored run names, only that runs which is kept there:
a run may come from anybody.
"""

from __future__ import annotations

import ast
import re
import sys
import traceback

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from harness.base.errors import DataError, HarnessError, SpecError
from harness.base.installed import see
from harness.base.records.statistics import IN_PROFILES
from harness.base.records.trial import Code, Record
from harness.base.text import did_you_mean, excerpt, nearest_name
from harness.core.store.published import source_name

if TYPE_CHECKING:  # a model's process imports no more than it needs
    from harness.clusters.workloads.base import Workload

PREDICT = "def predict(self, profile, configuration, cluster, job_input)"
_BUILDS_ONE = "builds one from an empty file"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
_ATTRIBUTES = ("predict", "required")  # what a class may also be given by an assignment


class OwnCode(Record):
    """
    A user's class: how a run names it, its own name, its file, and lines of its functions.

    *is_derived*: it has a base that is not in its file, and may inherit what that has.
    """

    code: Code
    name: str
    source: str
    lines: dict[str, int]
    is_derived: bool = False

    def slip(self, what: str | BaseException, function: str = "predict") -> str:
        """Say *what* is wrong behind file and line: where it raised that, or of its *function*."""
        line = self.lines.get(function, self.lines[""])
        if isinstance(what, BaseException):
            frames = traceback.extract_tb(what.__traceback__)
            raised_at = [frame.lineno for frame in frames if frame.filename == self.code.file]
            line = [line, *raised_at][-1] or line
            what = self._said(what)
        return excerpt(f"{self.code.file}:{line}: {what}", 500)

    def _said(self, error: BaseException) -> str:
        """Say what an *error* says, and where it breaks the rule of one file, that rule."""
        if isinstance(error, HarnessError):
            return error.what
        text = f"{type(error).__name__}: {error}".removesuffix(": ")
        if isinstance(error, SystemExit):
            return f"{text}: it ends Python: raise an exception where it has no answer"
        file = self.code.file
        is_of_its_folder = isinstance(error, NameError) and error.name == "__file__"
        if is_of_its_folder or "relative import" in text:
            return f"{text}: a class of your own is one file, and has no folder beside it"
        if isinstance(error, KeyError):
            return text + _meant_statistic(error)
        if isinstance(error, ModuleNotFoundError):
            return (
                f"{text}: a class of your own is one file, and files beside it are not found:"
                f" write what it needs of {error.name} into {file}, or install that as a package"
                " into the harness's Python"
            )
        return text

    @property
    def lack_of_predict(self) -> str:
        """Say that it has no method `predict`, and which of its functions was meant for it."""
        near = nearest_name("predict", [name for name in self.lines if name])
        meant = f": line {self.lines[near]} has {near}" if near and near != "predict" else ""
        return f"{self.code.class_name} has no method predict{meant}"

    def require_predict(self) -> None:
        """Raise `SpecError` where its file shows that it is no model."""
        if "predict" not in self.lines and not self.is_derived:
            what = self.slip(self.lack_of_predict, "")
            fix = f"write {PREDICT}{see('own-model.md', _BUILDS_ONE)}"
            raise SpecError(what, where=self.code.file, fix=fix)

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


def _meant_statistic(error: KeyError) -> str:
    """Say which statistic a key that is not there was meant to be, or that a profile lacks it."""
    key = error.args[0] if error.args else None
    if key in IN_PROFILES:
        return ": a profile has what its jobs show, and may lack this: name it in required"
    near = nearest_name(key, IN_PROFILES) if isinstance(key, str) else ""
    return f": there is no such statistic: did you mean {near}?" if near else ""


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

    own_class = _find_class(source, path.name, class_name if file_name else "")
    write_whole(_kept_path(own_class.code), source.encode())
    return own_class


def read_own_models(names: Iterable[str]) -> dict[str, OwnCode]:
    """Code of those of *names* that are ``PATH:Class``, by them; `SpecError`: one is no model."""
    own_code = {name: read_own(name) for name in names if ".py:" in name}
    for own_class in own_code.values():
        own_class.require_predict()
    return own_code


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
        fix = (
            f"read that file, and if you trust it: harness check PATH/{name}; a bundle may have it"
        )
        fix += f" beside the run, as {source_name(code)}"
        raise DataError(what, where="the run's plan and manifest", fix=fix) from error
    return _find_class(source, code.file, code.class_name)


def _find_class(source: str, file: str, class_name: str) -> OwnCode:
    """
    Find a class without running it; ``name = "..."`` in it is its name.

    That becomes part of paths, tables and reports, so it is one as experiments have it.
    """
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", 1)
        reason = getattr(error, "msg", error)
        raise SpecError(f"{file}:{line}: not Python: {reason}") from error
    classes = {
        statement.name: statement for statement in statements if isinstance(statement, ast.ClassDef)
    }
    if not class_name:
        name = next(iter(classes), "Mine")
        raise SpecError(f"no class of {file} is named", where=file, fix=f"write {file}:{name}")
    if class_name not in classes:
        fix = "write one into it: the file defines no class" + see("own-model.md", "shows one")
        if classes:
            fix = did_you_mean(class_name, [*classes])
        raise SpecError(f"{file} has no class '{excerpt(class_name)}'", where=file, fix=fix)
    name = class_name.lower()
    for statement in classes[class_name].body:
        match statement:
            case ast.Assign([ast.Name("name")], ast.Constant(str() as given)):
                name = given
    if _NAME.fullmatch(name) is None:
        where = f"{file}:{classes[class_name].lineno}"
        what = f"{where}: '{excerpt(name)}' cannot name a model or a workload"
        fix = 'write name = "..." into it, of up to 64 letters, digits, _ and -, a letter first'
        raise SpecError(what, where=file, fix=fix)
    code = Code(file=file, class_name=class_name, sha256=sha256(source.encode()).hexdigest())
    lines, is_derived = _lines_of(classes[class_name], classes)
    return OwnCode(code=code, name=name, source=source, lines=lines, is_derived=is_derived)


def _lines_of(
    found: ast.ClassDef, classes: Mapping[str, ast.ClassDef]
) -> tuple[dict[str, int], bool]:
    """Lines of a class and its functions, inherited ones too; whether a base is elsewhere."""
    lines = {"": found.lineno}
    is_derived = False
    waiting = [found]
    seen = set[str]()
    while waiting:
        looked_at = waiting.pop(0)
        seen.add(looked_at.name)
        for statement in looked_at.body:
            for function in _named_by(statement):
                lines.setdefault(function, statement.lineno)
        for base in looked_at.bases:
            base_name = base.id if isinstance(base, ast.Name) else ""
            if base_name not in classes:
                is_derived |= base_name != "object"
            elif base_name not in seen:
                waiting.append(classes[base_name])
    return lines, is_derived


def _named_by(statement: ast.stmt) -> list[str]:
    """Names of functions that a *statement* of a class gives it, and of what a model needs."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return [statement.name]
        case ast.Assign([ast.Name(name)]) | ast.AnnAssign(ast.Name(name)) if name in _ATTRIBUTES:
            return [name]
    return []


@cache
def own_workload(code: Code) -> Workload:
    """Make the workload of *code*, whose slips become `SpecError`; `DataError` as `kept_own`."""
    from harness.clusters.workloads.base import Workload
    from harness.core.evaluate.own_returns import attribute_complaint

    own_class = kept_own(code)
    with own_class.named_slips():
        loaded = own_class.load()
        if not (isinstance(loaded, type) and issubclass(loaded, Workload)):
            fix = f"name a subclass of {_BASE}{see('own-workload.md', _BUILDS_ONE)}"
            raise SpecError(own_class.slip(_no_workload(own_class, loaded), ""), fix=fix)
        workload = loaded()
        workload.name = own_class.name
        if complaint := attribute_complaint(workload):
            raise SpecError(own_class.slip(complaint, ""))
        for function in vars(Workload):
            if not function.startswith("_") and callable(method := getattr(workload, function)):
                setattr(workload, function, _guarded(own_class, function, method))
    return workload


_BASE = "harness.clusters.workloads.base.Workload"


def _no_workload(own_class: OwnCode, loaded: Any) -> str:
    """Say why a class is no workload; and that it is no model either, where it is none."""
    name = own_class.code.class_name
    if callable(getattr(loaded, "predict", None)):
        return f"{name} is no subclass of {_BASE}: it is a model"
    return f"{own_class.lack_of_predict}, and is no subclass of {_BASE}"


def _guarded(own_class: OwnCode, function: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Give the *method*, whose slips, and returning what it must not, are `SpecError` with line."""
    from harness.core.evaluate.own_returns import return_complaint

    def called(*arguments: Any, **named: Any) -> Any:
        with own_class.named_slips(function):
            answer = method(*arguments, **named)
            if complaint := return_complaint(function, answer):
                raise SpecError(own_class.slip(complaint, function))
            return answer

    return called


def is_own_model(own_class: OwnCode) -> bool:
    """
    Whether a user's class is a model, by its file, or by what it inherits from elsewhere.

    Only in that case it is loaded here; the class of a workload is, in any case.
    """
    if "predict" in own_class.lines or not own_class.is_derived:
        return "predict" in own_class.lines
    from harness.clusters.workloads.base import Workload

    with own_class.named_slips():
        loaded = own_class.load()
        is_workload = isinstance(loaded, type) and issubclass(loaded, Workload)
        return not is_workload and callable(getattr(loaded, "predict", None))
