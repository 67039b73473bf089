"""
A model of a user's own, in a process of its own, which answers questions in JSON.

Whatever it does wrong is a `ModelError` with file and line, which costs this model an answer and no
other anything.  That keeps slips away, and is no sandbox.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys

from contextlib import suppress
from io import StringIO
from multiprocessing.connection import Connection, Pipe
from typing import Annotated, Any
from weakref import finalize

from pydantic import Field, ValidationError

from harness.base.errors import MissingStatistic, ModelError
from harness.base.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.base.records.profile import Profile
from harness.base.records.trial import Record
from harness.base.text import read_json
from harness.core.evaluate.own_code import OwnCode

LIMIT_S = 20.0  # of an answer; the first one loads libraries
MOST_ANSWER_BYTES = 2**20
MOST_MEMORY_BYTES = 2**33
MOST_PRINTED = 2000
_REFUSED = {
    "os.exec",
    "os.fork",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.system",
    "os.truncate",
    "socket.connect",
    "subprocess.Popen",
}

_Number = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]
_Maybe = Annotated[_Number | None, Field(default=None)]
_Numbers = Annotated[dict[str, _Number], Field(default_factory=dict)]


class _Answer(Record):
    """What of a prediction is a model's to give."""

    body_s: _Number
    published_s: _Maybe
    map_task_s: _Maybe
    reduce_task_s: _Maybe
    map_waves: _Maybe
    reduce_waves: _Maybe
    phases: _Numbers
    measurable: _Numbers
    parts: _Numbers
    estimates: _Numbers
    dataflow: dict[str, _Number | bool | list[int]] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class OwnModel:
    """One like those of `MODELS`, until its process hangs or ends; *printed* by its last answer."""

    description = "your own"
    required = frozenset[str]()
    evaluators = tuple[Any, ...]()

    def __init__(self, own_class: OwnCode) -> None:
        """Start its process."""
        self.own_class = own_class
        self.name = own_class.name
        self.printed = ""
        self._failure = ""
        self._pipe, child_end = Pipe()
        process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-m", __name__, str(child_end.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            pass_fds=[child_end.fileno()],
        )
        child_end.close()
        self._pipe.send_bytes(own_class.model_dump_json().encode())
        self._finish = finalize(self, _end, process, self._pipe)

    def predict(
        self, profile: Profile, configuration: JobConfig, cluster: Cluster, job_input: JobInput
    ) -> Prediction:
        """Times for one cell; `ModelError` for whatever is no prediction."""
        parts = (profile.model_copy(update={"refits": ()}), configuration, cluster, job_input)
        slip = self._failure
        is_last = False
        try:
            if not slip:
                question = json.dumps([part.model_dump() for part in parts])
                self._pipe.send_bytes(question.encode())
                if not self._pipe.poll(LIMIT_S):
                    raise TimeoutError
                reply = read_json(self._pipe.recv_bytes(MOST_ANSWER_BYTES))
                answer, slip, is_last, self.printed = reply
            if not slip:
                given = _Answer.model_validate_json(json.dumps(answer), strict=True)
                return Prediction(model=self.name, **given.model_dump())
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(map(str, first["loc"]))
            value = f" = {first['input']!r:.80}"
            shown = "no body_s" if first["type"] == "missing" else field + value
            slip = self.own_class.slip(f"predict gives {shown}: {first['msg'].lower()}")
        except (EOFError, OSError, ValueError) as error:
            limits = f"no answer of up to {MOST_ANSWER_BYTES} bytes within {LIMIT_S:g} s"
            slip = self.own_class.slip(f"{limits} ({type(error).__name__})")
            is_last = True
        if is_last:
            self._failure = slip
            self._finish()
        raise ModelError(slip)


def _end(process: subprocess.Popen[bytes], pipe: Connection) -> None:
    with process, pipe:
        process.kill()


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Audit hook of its process: refuse what a model must not do, before it is done."""
    is_written = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if is_written or event in _REFUSED:
        what = "writes no file, starts no process and asks no network"
        raise PermissionError(f"a model {what} ({event} {arguments[0]!r:.80})")


def _answer_questions(pipe: Connection) -> None:
    """Be that process: load the model, and ask it every question until there are no more."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the harness ends it
    model_class = OwnCode.model_validate_json(pipe.recv_bytes())
    model = None
    sys.addaudithook(_refuse)
    while True:
        question = pipe.recv_bytes()
        answer = None
        slip = ""
        sys.stdout = sys.stderr = printed = StringIO()
        try:
            model = model or model_class.load()()
            answer = _answer(model, model_class.name, question)
        except BaseException as error:  # noqa: BLE001 - SystemExit, too
            slip = model_class.slip(error)
        reply = [answer, slip, model is None, printed.getvalue()[-MOST_PRINTED:]]
        pipe.send_bytes(json.dumps(reply).encode())


def _answer(model: Any, name: str, question: bytes) -> dict[str, Any]:
    """Ask the *model* of this *name*; its answer, of which JSON can hold all."""
    profile, configuration, cluster, job_input = json.loads(question)
    profile = Profile(**profile)
    statistics = {*profile.statistics, *profile.costs}
    if profile.jobs:
        statistics.add("jobs")
    if lacking := set(getattr(model, "required", ())) - statistics:
        raise MissingStatistic(*sorted(lacking), model=name)
    inputs = (JobConfig(**configuration), Cluster(**cluster), JobInput(**job_input))
    answer = model.predict(profile, *inputs)
    if isinstance(answer, Prediction):
        answer = answer.model_dump(exclude_defaults=True, exclude={"model", "timeline"})
    if not isinstance(answer, dict):
        raise TypeError(f"predict returns no Prediction and no dict, but {answer!r}")
    # Numbers of NumPy's become Python's own.
    plain: dict[str, Any] = json.loads(json.dumps(answer, default=lambda number: number.item()))
    return plain


if __name__ == "__main__":
    with suppress(EOFError):
        _answer_questions(Connection(int(sys.argv[1])))
