"""
Facts that hosts report: clocks, resources, versions, and GPUs that are really there.

Clocks are compared as NTP does it: each host reports its time a few times, the quickest answer
counts, and half of its round trip bounds the error of the offset.
"""

from __future__ import annotations

import math
import os
import re
import time

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import IO, Any, Literal

from harness.base.errors import ClusterError, HarnessError
from harness.base.hadoop.secrets import SECRETS
from harness.base.text import excerpt, first_line, read_json
from harness.base.units import MIB
from harness.clusters.host import (
    LOOK_S,
    Completed,
    Host,
    LocalHost,
    at_once,
    end_command,
    system_reason,
    time_limit,
)

LIMIT_S = 30.0
_ROUNDS = 5
_MOST_LINE = 65536
_MOST_VERSION = 80
_MOST_ERROR = 200
_MOST_TEXT = 4096
_WHOLE_NUMBERS = ("cores", "memory_bytes", "disk_bytes", "disk_free_bytes")

LIBRARY = "libcuda.so.1"
_GPU_LIMIT_S = 20.0
_MOST_DEVICES = 64
_MOST_OUTPUT = 2**16
_MOST_MESSAGE = 300
_MOST_NAME = 80
_DEVICE = re.compile(r"^/dev/(nvidia\d+)$", re.MULTILINE)
_LIBRARY = re.compile(rf"^\s*{re.escape(LIBRARY)} .*=> (/\S+)$", re.MULTILINE)
# a name may hold commas, so it stands between fields that do not
_FIELDS = ("index", "name", "memory.total", "driver_version")

Run = Callable[[Sequence[str]], Completed]


@dataclass(frozen=True, slots=True)
class Finding:
    """What `harness doctor` found of one thing, and *fix*, the command that repairs it."""

    name: str
    state: Literal["ok", "note", "lacking"]
    what: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """
    One host, as it reports itself.

    *clock_s* is how far its clock is ahead of ours, *clock_within_s* the bound of its error, both
    in seconds.  Sizes are bytes.  *error* says why there is nothing else, where there is not.
    """

    name: str
    address: str
    clock_s: float | None = None
    clock_within_s: float | None = None
    cores: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0
    disk_free_bytes: int = 0
    load: float = 0.0
    kernel: str = ""
    python: str = ""
    java: str = ""
    gpus: dict[str, Any] = field(default_factory=dict)
    error: str = ""


def survey(hosts: Sequence[Host], command: Callable[[Host], list[str]]) -> list[HostFacts]:
    """
    Facts of *hosts*; *command* makes the command line of ``facts survey``.

    One that does not answer within `LIMIT_S` has its error.
    """

    def survey_host(host: Host) -> HostFacts:
        empty = HostFacts(host.name, host.address)
        try:
            host_facts = _survey(empty, host, command(host))
            devices = find_on(host)  # only of one that answers: so its time is bounded
            return replace(host_facts, gpus=devices.described()) if devices.gpus else host_facts
        except (HarnessError, OSError, ValueError, TypeError, OverflowError) as error:
            return replace(empty, error=excerpt(str(error).partition("\n")[0], _MOST_ERROR))

    return at_once(survey_host, hosts)


def _survey(empty: HostFacts, host: Host, argv: Sequence[str]) -> HostFacts:
    process = host.open(argv)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin = process.stdin
        stdout = process.stdout
        with time_limit(LIMIT_S, process.kill):  # when it is killed, our reading ends as well
            offset, within = min(
                (_clock_offset(stdin, stdout) for _ in range(_ROUNDS)), key=lambda pair: pair[1]
            )
            answer = read_json(_request(stdin, stdout, b"facts"))
    finally:
        end_command(process)
    if not isinstance(answer, dict):
        raise TypeError("its answer is not an object")
    checked: dict[str, Any] = {name: int(answer.get(name, 0)) for name in _WHOLE_NUMBERS}
    checked |= {name: excerpt(answer.get(name, ""), 60) for name in ("kernel", "python", "java")}
    load = float(answer.get("load", 0.0))
    return replace(
        empty,
        clock_s=offset,
        clock_within_s=within,
        load=load if math.isfinite(load) else 0.0,
        **checked,
    )


def _clock_offset(stdin: IO[bytes], stdout: IO[bytes]) -> tuple[float, float]:
    """Seconds by which the host's clock is ahead of ours, and the bound of that."""
    before = time.time()
    started = time.monotonic()
    host_time = float(_request(stdin, stdout, b"time"))
    round_trip = time.monotonic() - started
    if not math.isfinite(host_time):
        raise ValueError("its clock reports no time")
    return host_time - (before + round_trip / 2), round_trip / 2


def _request(stdin: IO[bytes], stdout: IO[bytes], word: bytes) -> bytes:
    stdin.write(word + b"\n")
    stdin.flush()
    answer_line = stdout.readline(_MOST_LINE)
    if not answer_line.endswith(b"\n"):
        raise ValueError(f"no answer within {LIMIT_S:g} s, or no Python there")
    return answer_line


@dataclass(frozen=True, slots=True)
class RanOn:
    """Versions of Hadoop, Java and the kernel on one node; empty where it reports none."""

    hadoop: str
    java: str
    kernel: str


def node_versions(
    hosts: Sequence[Host], command: Callable[[Host], list[str]], hadoop: str
) -> Mapping[str, RanOn]:
    """
    Versions on *hosts*, by their names; *command* makes the command line of ``facts versions``.

    A host that does not answer has empty texts: its health is checked elsewhere.
    """

    def versions_of(host: Host) -> RanOn:
        try:
            answer = read_json(host.run(command(host)).out)
        except (ClusterError, OSError, ValueError):
            answer = None
        stated = answer if isinstance(answer, dict) else {}
        return RanOn(hadoop, version_text(stated.get("java")), version_text(stated.get("kernel")))

    versions = at_once(versions_of, hosts)
    return {host.name: stated for host, stated in zip(hosts, versions, strict=True)}


def node_systems(hosts: Sequence[Host], agent: Callable[..., list[str]]) -> dict[str, Any]:
    """
    What each of *hosts* is, by its name; *agent* makes command lines of the node agent.

    A text instead: the name of another host whose answer is the same, or ``not known: why``.
    """

    def system_of(host: Host) -> Any:
        try:
            folders = (f"hdfs={host.folder}/data", f"local={host.folder}/local")
            completed = host.run(agent(host, "facts", "system", *folders), LOOK_S)
            if completed.status:
                last = completed.err.strip().rpartition("\n")[2]
                raise ValueError(f"it ended with status {completed.status}: {last}")
            answer = read_json(completed.out[:_MOST_LINE])
            if not isinstance(answer, dict):
                raise TypeError("its answer is not an object")
            return printable_json(answer)
        except (HarnessError, OSError, ValueError, TypeError) as error:
            return f"not known: {excerpt(getattr(error, 'what', error), _MOST_ERROR)}"

    systems = dict[str, Any]()
    for host, answer in zip(hosts, at_once(system_of, hosts), strict=True):
        alike = (name for name, system in systems.items() if system == answer)
        systems[host.name] = next(alike, answer)
    return systems


def printable_json(value: Any) -> Any:
    """A foreign *value* of JSON, with each text in one short line, safe to print and to store."""
    if isinstance(value, dict):
        return {excerpt(name, _MOST_NAME): printable_json(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [printable_json(element) for element in value]
    if isinstance(value, str):
        return excerpt(SECRETS.clean(value), _MOST_TEXT)
    return value


def version_text(value: object) -> str:
    """A version that a host reports, short and safe to print; empty where it is not a text."""
    return excerpt(value, _MOST_VERSION) if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One device; what the driver does not report is `None`."""

    name: str
    memory_bytes: int | None = None
    driver: str | None = None


@dataclass(frozen=True, slots=True)
class Devices:
    """
    GPUs of one node, and the file of the driver's library (empty: it is not there).

    *message* is the answer of the driver's tool where it failed, or about a device that is lost.
    """

    gpus: tuple[Gpu, ...]
    driver: str
    message: str = ""

    def described(self) -> dict[str, Any]:
        """These devices as plain values of JSON; what is not known is left out."""
        devices = [
            {key: value for key, value in asdict(device).items() if value is not None}
            for device in self.gpus
        ]
        message = {"message": self.message} if self.message else {}
        return {"devices": devices, "library": self.driver, **message}


def find_on(host: Host) -> Devices:
    """GPUs of *host*; one that does not answer has none, and a message why."""
    return find_devices(lambda argv: host.run(argv, _GPU_LIMIT_S))


def find_devices(run: Run) -> Devices:
    """
    GPUs of the node on which *run* runs commands, by the driver's tool.

    Where that is missing or hangs, device files count if the driver's library is there: a task
    cannot use a device without it.
    """
    library = _LIBRARY.search(_output_of(run, ["ldconfig", "-p"]).out)
    driver = excerpt(library[1], _MOST_MESSAGE) if library else ""
    query = f"--query-gpu={','.join(_FIELDS)}"
    answer = _output_of(run, ["nvidia-smi", query, "--format=csv,noheader,nounits"])
    if answer.status != 0:
        files = _output_of(run, ["find", "/dev", "-maxdepth", "1", "-name", "nvidia[0-9]*"])
        names = sorted(_DEVICE.findall(files.out))[:_MOST_DEVICES] if driver else ()
        return Devices(tuple(map(Gpu, names)), driver, first_line(answer.out or answer.err, ""))
    lines = [line for line in answer.out[:_MOST_OUTPUT].splitlines() if line.strip()]
    gpus = []
    messages = []  # lines that describe no device, but say that one is lost
    for line in lines[:_MOST_DEVICES]:
        if device := _device(line):
            gpus.append(device)
        else:
            messages.append(line)
    return Devices(tuple(gpus), driver, first_line(messages[0], "") if messages else "")


def _device(output_line: str) -> Gpu | None:
    """Description of a device; `None` for any other line."""
    fields = output_line.split(",")
    name = excerpt(",".join(fields[1:-2]), _MOST_NAME)
    if len(fields) < len(_FIELDS) or _number(fields[0]) is None or not name:
        return None
    memory_mib = _number(fields[-2])
    version = excerpt(fields[-1], _MOST_NAME)
    memory_bytes = None if memory_mib is None else memory_mib * MIB
    return Gpu(name, memory_bytes, version if re.match(r"[0-9]", version) else None)


def _number(text: str) -> int | None:
    """A whole number; `None` for ``[N/A]``, ``[Not Supported]`` and all else."""
    return int(text) if re.fullmatch(r" *[0-9]{1,9} *", text) else None


def _output_of(run: Run, argv: Sequence[str]) -> Completed:
    try:
        return run(argv)
    except (ClusterError, OSError) as error:  # it hangs (a lost device), or there is no command
        reason = error.what if isinstance(error, ClusterError) else system_reason(error)
        return Completed(tuple(argv), 127, "", reason)


def here(argv: Sequence[str], environment: Mapping[str, str] = os.environ) -> Completed:
    """Run a command on this machine; one that hangs or is missing has status 127."""
    host = LocalHost("this machine", "127.0.0.1", "/", list, environment)
    return _output_of(lambda words: host.run(words, _GPU_LIMIT_S), argv)
