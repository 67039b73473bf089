"""
A model of a user's own, in a process of its own, which answers questions in JSON.

Whatever it does wrong is a `ModelError` with file and line, which costs this model an answer and no
other anything.  That keeps slips away, and is no sandbox.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import resource
import signal
import subprocess
import sys

from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from io import RawIOBase, StringIO
from multiprocessing.connection import Connection, Pipe
from numbers import Number, Real
from reprlib import repr as short_repr
from typing import Annotated, Any
from weakref import finalize

from pydantic import Field, ValidationError

from harness.base.documents.wording import number
from harness.base.errors import MissingStatistic, ModelError
from harness.base.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.base.records.profile import Profile
from harness.base.records.statistics import IN_PROFILES
from harness.base.records.trial import Record
from harness.base.text import excerpt, nearest_name, read_json
from harness.core.evaluate.own_code import OwnCode

LIMIT_S = 20.0  # of an answer; the first one loads libraries
MOST_ANSWER_BYTES = 2**20
MOST_MEMORY_BYTES = 2**33
MOST_PRINTED = 2000
MOST_LAST_LINES = 3  # of what it wrote, where its process ended
END_S = 5.0  # until a process that has closed its pipe is gone
TIMES_OF_A_JOB = ("body_s", "job_s")
OUT_OF_SCALE = 100.0  # times as long as any profiled job, or as short
MEASURABLE = ("map_main_s", "map_tail_s", "shuffle_s", "sort_s", "reduce_rest_s")
_WANTED = 'a dictionary is expected, as {"body_s": 12.5} or {"job_s": 20.5}'
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

    body_s: _Maybe
    job_s: _Maybe
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
        written, stderr = os.pipe()
        os.set_blocking(written, False)
        os.set_blocking(stderr, False)  # what is too much is lost: nothing waits for a reader
        self._written = os.fdopen(written, "rb", buffering=0)
        self._last_written = b""
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-m", __name__, str(child_end.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            cwd="/",
            pass_fds=[child_end.fileno()],
        )
        child_end.close()
        os.close(stderr)
        self._pipe.send_bytes(own_class.model_dump_json().encode())
        self._finish = finalize(self, _end, self._process, self._pipe, self._written)

    def predict(
        self, profile: Profile, configuration: JobConfig, cluster: Cluster, job_input: JobInput
    ) -> Prediction:
        """Times for one cell; `ModelError` for whatever is no prediction."""
        parts = (
            profile.model_copy(update={"refits": (), "draws": ()}),
            configuration,
            cluster,
            job_input,
        )
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
                self._keep_written()
            if not slip:
                given = _Answer.model_validate_json(json.dumps(answer), strict=True)
                if given.body_s is None and given.job_s is None:
                    slip = self.own_class.slip(f"predict gives neither body_s nor job_s: {_WANTED}")
                else:
                    prediction = Prediction(model=self.name, **given.model_dump())
                    return _with_scale_warnings(prediction, profile, job_input)
        except ValidationError as error:
            slip = self.own_class.slip(_field_complaint(error))
        except (EOFError, OSError, ValueError) as error:
            slip = self._why_no_answer(error)
            is_last = True
        if is_last:
            self._failure = slip
            self._finish()
        raise ModelError(slip)

    def _keep_written(self) -> None:
        """Keep the end of what its process has written beside its answers, so that it can go on."""
        with suppress(OSError):
            while chunk := self._written.read(2**16):
                self._last_written = (self._last_written + chunk)[-MOST_PRINTED:]

    def _why_no_answer(self, error: Exception) -> str:
        """Say why there is no answer: none in time, one that is none, or a process that ended."""
        if isinstance(error, TimeoutError):
            return self.own_class.slip(f"no answer within {LIMIT_S:g} s: it is asked no more")
        if isinstance(error, ValueError):
            return self.own_class.slip("what came from its process is no answer")
        if not isinstance(error, EOFError | ConnectionError):
            what = f"its answer has more than {MOST_ANSWER_BYTES} bytes: it is asked no more"
            return self.own_class.slip(what)
        try:
            status = self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            return self.own_class.slip("it has closed the pipe that its answers take")
        self._keep_written()
        written = self._last_written.decode(errors="replace")
        # Python's own report of a fault names the line; it is no text of the model's.
        fault = re.search(rf'File "{re.escape(self.own_class.code.file)}", line (\d+)', written)
        written = written.partition("Fatal Python error")[0]
        lines = [line.strip() for line in written.splitlines() if line.strip()]
        last_lines = excerpt(" / ".join(lines[-MOST_LAST_LINES:]), 250)
        what = f"its process ended before it answered, {_ending(status)}"
        what = f"{what}; the last that it wrote: {last_lines}" if last_lines else what
        own_class = self.own_class
        if fault:
            lines_of_class = own_class.lines | {"predict": int(fault[1])}
            own_class = own_class.model_copy(update={"lines": lines_of_class})
        return own_class.slip(what)


def _ending(status: int) -> str:
    """Say how a process ended."""
    if status >= 0:
        return f"with status {status}: a model returns its answer, and does not end Python"
    if status == -signal.SIGKILL:
        return "killed (SIGKILL): by the system, where memory ran out"
    with suppress(ValueError):
        return f"by {signal.Signals(-status).name}, a crash in a library that it calls"
    return f"by signal {-status}"


def _field_complaint(error: ValidationError) -> str:
    """Say which field of an answer is wrong, with the field that was meant."""
    errors = error.errors(include_url=False)
    extras = [each["loc"][0] for each in errors if each["type"] == "extra_forbidden"]
    first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    field = ".".join(map(str, first["loc"]))
    value = f"{field} = {first['input']!r:.80}"
    if extras:
        near = nearest_name(str(extras[0]), _Answer.model_fields)
        meant = f"did you mean {near}?" if near else f"fields are {', '.join(_Answer.model_fields)}"
        return f"predict gives {value}: there is no such field; {meant}"
    reason = first["msg"].lower().replace("input should", "it should")
    return f"predict gives {value}: {reason}"


def _with_scale_warnings(
    prediction: Prediction, profile: Profile, job_input: JobInput
) -> Prediction:
    """Add warnings where a *prediction* cannot be one in seconds, by the profiled jobs."""
    warnings = list(prediction.warnings)
    for quantity in TIMES_OF_A_JOB:
        seconds = getattr(prediction, quantity)
        if seconds is not None:
            warnings.append(scale_warning(quantity, seconds, profile, job_input))
    return prediction.model_copy(update={"warnings": tuple(filter(None, warnings))})


def scale_warning(quantity: str, seconds: float, profile: Profile, job_input: JobInput) -> str:
    """
    Warn of a time that is 100 times as long as that of every profiled job, or as short; or nothing.

    A job of more input than any profiled one may take as many times as long, and one of less as
    many times as short.  The *quantity* is ``body_s`` or ``job_s``.
    """
    jobs = [job for job in profile.jobs if getattr(job, quantity)]
    if not jobs:
        return ""
    profiled_s = [getattr(job, quantity) for job in jobs]
    longest_s = max(profiled_s)
    shortest_s = min(profiled_s)
    growth = max(1.0, job_input.input_bytes / max(1, *(job.input_bytes for job in jobs)))
    least_bytes = min(job.input_bytes for job in jobs)
    shrinking = min(1.0, job_input.input_bytes / least_bytes) if least_bytes else 1.0
    subject = "which" if quantity == "job_s" else "whose bodies"
    profiled = f"jobs of {profile.workload} {subject} took {shortest_s:.3g} to {longest_s:.3g} s"
    given = f"{quantity} = {number(seconds)}"
    if seconds >= OUT_OF_SCALE * growth * longest_s:
        return (
            f"{given} is {seconds / longest_s:.0f} times as long as the longest of"
            f" the profiled {profiled}: are these milliseconds? {quantity} is in seconds"
        )
    if seconds <= shrinking * shortest_s / OUT_OF_SCALE:
        return (
            f"{given} is less than a hundredth of the profiled {profiled}:"
            f" are these minutes or hours? {quantity} is in seconds"
        )
    return ""


def _end(process: subprocess.Popen[bytes], pipe: Connection, written: RawIOBase) -> None:
    with process, pipe, written:
        process.kill()


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Audit hook of its process: refuse what a model must not do, before it is done."""
    is_written = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if is_written or event in _REFUSED:
        what = "writes no file, starts no process and asks no network"
        raise PermissionError(f"a model {what} ({event} {arguments[0]!r:.80})")


class _Printed(StringIO):
    """What the model prints: kept for its answer, and written out for where its process ends."""

    def write(self, text: str, /) -> int:
        """Take *text*; where nobody reads what is written out, that is lost."""
        with suppress(OSError):
            os.write(2, text[-MOST_PRINTED:].encode(errors="replace"))
        return super().write(text)


def _bound_memory() -> None:
    """Leave this process `MOST_MEMORY_BYTES`, or what it has if that is less (``ulimit -v``)."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    is_less = hard != resource.RLIM_INFINITY and hard < MOST_MEMORY_BYTES
    most_bytes = hard if is_less else MOST_MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))


def _answer_questions(pipe: Connection) -> None:
    """Be that process: load the model, and ask it every question until there are no more."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    _bound_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the harness ends it
    faulthandler.enable(2, all_threads=False)
    model_class = OwnCode.model_validate_json(pipe.recv_bytes())
    model = None
    sys.addaudithook(_refuse)
    while True:
        question = pipe.recv_bytes()
        answer = None
        slip = ""
        function = ""
        sys.stdout = sys.stderr = printed = _Printed()
        try:
            model = model or _made(model_class)
            function = "required"
            inputs = _inputs(model, model_class, question)
            function = "predict"
            answer = plain_answer(model.predict(*inputs))
        except BaseException as error:  # noqa: BLE001 - SystemExit, too
            slip = model_class.slip(error, function)
        reply = [answer, slip, model is None, printed.getvalue()[-MOST_PRINTED:]]
        pipe.send_bytes(json.dumps(reply).encode())


def _made(model_class: OwnCode) -> Any:
    """Make the model; `ModelError` where its class has no function `predict`."""
    model = model_class.load()()
    if not callable(getattr(model, "predict", None)):
        raise ModelError(model_class.lack_of_predict)
    return model


def _inputs(model: Any, model_class: OwnCode, question: bytes) -> tuple[Any, ...]:
    """Profile, configuration, cluster and input of a *question*, if *model* can be asked it."""
    profile, configuration, cluster, job_input = json.loads(question)
    profile = Profile(**profile)
    names = {*profile.statistics, *profile.costs, *profile.frame}
    if profile.jobs:
        names.add("jobs")
    if lacking := required_names(getattr(model, "required", ())) - names:
        raise MissingStatistic(*sorted(lacking), model=model_class.name)
    return (profile, JobConfig(**configuration), Cluster(**cluster), JobInput(**job_input))


def required_names(required: Any) -> set[str]:
    """
    Names of statistics that a model says are *required*.

    `ModelError` where they are no names, or where a profile never has one of them.
    """
    wanted = 'a set of names is expected, as {"map_s_per_record"}'
    if isinstance(required, str):
        raise ModelError(f'required is one text, "{required:.80}": {wanted}')
    if not isinstance(required, set | frozenset | list | tuple | Mapping):
        raise ModelError(f"required is {short_repr(required)}: {wanted}")
    for name in required:
        if not isinstance(name, str):
            raise ModelError(f"required has {short_repr(name)}, which is no name: {wanted}")
        if name != "jobs" and name not in IN_PROFILES:
            near = nearest_name(name, [*IN_PROFILES, "jobs"])
            meant = f"did you mean {near}?" if near else "harness profile RUN lists all"
            raise ModelError(f"required has {name:.80}, and there is no such statistic: {meant}")
    return set(required)


def plain_answer(answer: Any) -> dict[str, Any]:
    """Give a model's *answer* as what JSON can hold; `ModelError` says what of it is none."""
    if isinstance(answer, Prediction):
        answer = answer.model_dump(exclude_defaults=True, exclude={"model", "timeline"})
    if not isinstance(answer, Mapping):
        raise ModelError(f"predict returns {_kind_of(answer)}: {_WANTED}")
    plain = dict[str, Any]()
    for field, value in answer.items():
        if not isinstance(field, str):
            raise ModelError(f"predict's answer has the key {short_repr(field)}: {_WANTED}")
        try:
            plain[field] = json.loads(json.dumps(value, default=_plain_number))
        except (TypeError, ValueError, RecursionError) as error:
            shown = f"{short_repr(value)}, a {type(value).__name__}"
            what = f"predict gives {field} = {shown}: a number is expected"
            raise ModelError(what if isinstance(error, TypeError) else f"{what}: {error}") from None
    check_measurable(plain.get("measurable"))
    return plain


def check_measurable(times_s: Any) -> None:
    """`ModelError` where seconds have a name that no job history shows: none would be scored."""
    names = times_s if isinstance(times_s, dict) else {}
    for name in names:
        if name not in MEASURABLE:
            near = nearest_name(name, MEASURABLE)
            meant = f"did you mean {near}?" if near else f"names are {', '.join(MEASURABLE)}"
            raise ModelError(f"predict gives measurable.{name:.80}: no history shows that; {meant}")


def _plain_number(number: Any) -> Any:
    """Give a *number* of NumPy, or a fraction, as one of Python; `TypeError`: it is none."""
    if hasattr(number, "item"):
        number = number.item()
    if isinstance(number, bool | int | float):
        return number
    if isinstance(number, Real | Decimal):
        return float(number)
    raise TypeError(type(number).__name__)


def _kind_of(answer: Any) -> str:
    """Say what an *answer* is that is none."""
    if answer is None:
        return "None, as no return is reached"
    if hasattr(answer, "close") and hasattr(answer, "send"):
        if hasattr(answer, "cr_code"):
            answer.close()
            return "a coroutine, as it is async"
        return "a generator, as it yields"
    if isinstance(answer, Number | str):
        return f"{short_repr(answer)} alone"
    return f"{short_repr(answer)}, a {type(answer).__name__}"


if __name__ == "__main__":
    with suppress(EOFError):
        _answer_questions(Connection(int(sys.argv[1])))
