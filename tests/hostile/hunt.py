"""
Hunts for inputs that a reader answers with something else than a record or its own error.

    python -m tests.hostile.hunt TARGET SEED FIRST COUNT [END_S PLACE]

runs COUNT mutations of a target, or as many as it begins before END_S (of the
monotonic clock), in a process with bounded
memory, and prints a JSON document.
Mutation number N of a target under a seed is always the same bytes (`made`).  A target whose name
begins with ``made-`` is given what a grammar makes, and no file was changed for (`generate`).
PLACE is a file that holds the number under way, so that a process that dies tells of what.
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
import time
import traceback

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

from tests.hostile.mutate import Change, mutate

SEED = 20261121
LIMIT_S = 2.0  # of CPU, for one input and all that is done with it
MEMORY = 768 * 2**20  # that a process may take beyond what it has after its first input
MOST_OF_A_PROCESS = 1_000_000  # mutations, which no process comes to within its time
_SHRINKS = 150
_SHOWN = 1500


class TooSlowError(BaseException):
    """An input that takes more than its time; no reader catches this."""


@dataclass(frozen=True)
class Target:
    """
    Something that reads: *read* bytes or refuse them with one of *errors*, then *go_on*.

    *go_on* is what the harness does next with what was read; it may refuse, too, with *refusals*.
    It is asked for one in *every* inputs that were read.
    """

    name: str
    corpus: tuple[bytes, ...]
    read: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]
    go_on: Callable[[object], object] = lambda _: None
    refusals: tuple[type[Exception], ...] = ()
    every: int = 1
    change: Change = mutate
    limit_s: float = LIMIT_S


@dataclass
class Finding:
    """One kind of failure: what, where in our code, how often, and the smallest input seen."""

    what: str
    where: str
    number: int
    times: int = 1
    size: int = 0
    shrunk: str = ""
    target: str = ""


@dataclass
class Hunt:
    """What became of some mutations."""

    target: str
    seed: int
    count: int = 0
    read: int = 0
    followed: int = 0
    slowest_s: float = 0.0
    memory_bytes: int = 0
    findings: list[Finding] = field(default_factory=list)


def made(target: Target, seed: int, number: int) -> bytes:
    """Mutation *number* of *target*."""
    random = Random(f"{seed} {target.name} {number}")
    return target.change(random.choice(target.corpus), random.choice(target.corpus), random)


def hunt(
    target: Target,
    seed: int,
    numbers: range,
    place: Path | None = None,
    end_s: float = math.inf,
) -> Hunt:
    """
    Try the mutations with these *numbers*, as far as they begin before *end_s*.

    Findings of one kind are told once, shrunk.
    """
    done = Hunt(target.name, seed)
    kinds = dict[tuple[str, str], Finding]()
    tell = _teller(place)
    for number in numbers:
        if done.count and time.monotonic() > end_s:
            break
        tell(number)
        data = made(target, seed, number)
        begin = time.process_time()
        onward = number % target.every == 0
        accepted, failure = attempt(target, data, onward=onward)
        done.slowest_s = max(done.slowest_s, time.process_time() - begin)
        done.count += 1
        done.read += accepted
        done.followed += accepted and onward
        if failure is None:
            continue
        if failure in kinds:
            kinds[failure].times += 1
            continue
        small = shrink(target, data, failure)
        kinds[failure] = Finding(*failure, number, 1, len(data), ascii(small)[:_SHOWN])
    done.findings = list(kinds.values())
    done.memory_bytes = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return done


def _teller(place: Path | None) -> Callable[[int], object]:
    """Give what writes the number under way to *place*, in place: a new file each time is slow."""
    if place is None:
        return lambda number: number
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    return lambda number: os.pwrite(handle, f"{number:12}".encode(), 0)


def attempt(
    target: Target, data: bytes, *, onward: bool = True
) -> tuple[bool, tuple[str, str] | None]:
    """Whether *data* was read, and what failed: the kind of exception and our last line in it."""
    accepted = False
    try:
        with time_limit(target.limit_s):
            try:
                record = target.read(data)
            except target.errors as error:
                return False, _reported(error)
            accepted = True
            if onward:
                try:
                    target.go_on(record)
                except target.refusals as error:
                    return True, _reported(error)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - all that is not foreseen is what is hunted
        return accepted, (f"{type(error).__name__}: {_kind(str(error))}", _place(error))
    return accepted, None


def _reported(error: Exception) -> tuple[str, str] | None:
    """A refusal must be fit to be read: short, and of text that can be written."""
    message_text = str(error)
    if len(message_text) > 20_000:
        return f"{type(error).__name__} of more than 20000 characters", _place(error)
    return None


def _kind(message: str) -> str:
    return (
        "".join("0" if c.isdigit() else c for c in message[:40]).encode("ascii", "replace").decode()
    )


def _place(error: BaseException) -> str:
    """Last line of the harness, or else of the target, that the exception came through."""
    frames = traceback.extract_tb(error.__traceback__)
    project = [f for f in frames if "/harness/" in f.filename] or frames[-1:]
    return f"{Path(project[-1].filename).name}:{project[-1].lineno}" if project else ""


@contextmanager
def time_limit(seconds: float = LIMIT_S) -> Iterator[None]:
    """Raise `TooSlowError` inside after *seconds* of CPU time."""

    def late(*_: object) -> None:
        raise TooSlowError(f"more than {seconds} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def shrink(target: Target, data: bytes, failure: tuple[str, str]) -> bytes:
    """A part of *data* that fails in the same way, found by leaving out ever smaller pieces."""
    if failure[0].startswith("TooSlow"):
        return data
    tries, piece = 0, max(1, len(data) // 2)
    while tries < _SHRINKS and piece:
        at = 0
        while at < len(data) and tries < _SHRINKS:
            less, tries = data[:at] + data[at + piece :], tries + 1
            if attempt(target, less)[1] == failure:
                data = less
            else:
                at += piece
        piece //= 2
    return data


def bound_memory() -> None:
    """Hold this process to what it has now and `MEMORY` more."""
    pages = int(Path("/proc/self/statm").read_text().split()[5])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def in_processes(name: str, seed: int, seconds: float, jobs: int, folder: Path) -> list[Hunt]:
    """Hunt for *seconds* in *jobs* processes with bounded memory; one that dies is a finding."""
    started = []
    end_s = time.monotonic() + seconds  # one clock for all processes of a machine
    for job in range(jobs):
        place = folder / f"{name}-{job}"
        share = (str(job * MOST_OF_A_PROCESS), str(MOST_OF_A_PROCESS), str(end_s), str(place))
        argv = [sys.executable, "-m", "tests.hostile.hunt", name, str(seed), *share]
        started.append((place, subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)))
    return [_ended(name, seed, place, process) for place, process in started]


def _ended(name: str, seed: int, place: Path, process: subprocess.Popen[str]) -> Hunt:
    out, _ = process.communicate()
    if process.returncode:
        number = int(place.read_text()) if place.exists() else -1
        died = Finding(f"the process died with status {process.returncode}", name, number)
        return Hunt(name, seed, findings=[died])
    values = json.loads(out)
    return Hunt(**values | {"findings": [Finding(**f) for f in values["findings"]]})


def main(name: str, seed: str, first: str, count: str, *options: str) -> None:
    """Run one share, and print what became of it."""
    from tests.hostile.targets import targets

    end_s, place = options or ("inf", "")
    with targets([name]) as (target,):
        hunt(target, int(seed), range(3))  # what is imported late is imported now
        bound_memory()
        numbers = range(int(first), int(first) + int(count))
        done = hunt(target, int(seed), numbers, Path(place) if place else None, float(end_s))
    print(json.dumps(asdict(done)))  # noqa: T201 - the answer of the process


if __name__ == "__main__":
    main(*sys.argv[1:])
