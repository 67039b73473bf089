"""Files of many hosts, brought here at once: as a tar through the channel of a command."""

from __future__ import annotations

import re
import subprocess
import threading
import time

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.base.errors import ClusterError
from harness.base.text import excerpt, printable
from harness.clusters.archives import CHUNK_BYTES, RefusedArchiveError, in_time, unpack
from harness.clusters.host import Host, IdleTimeout, Running, end_command

_TRIES = 4
_PAUSE_S = 0.5
_LAST_WORDS_S = 1.0  # for a packer that has ended its stream to give the reason
_END_S = 5.0
_MOST_WORDS = 4096
IDLE_S = 60.0


@dataclass(frozen=True, slots=True)
class Source:
    """A folder of a host, and the folder of this machine that takes its files."""

    host: Host
    folder: str
    into: Path


def collect(
    sources: Sequence[Source], packer: Callable[[Host], list[str]], wanted: str
) -> list[Path]:
    """
    The wanted files of all *sources*, each host beside the others; their paths here, in order.

    *packer* gives the command of a host that packs a folder, before its two arguments: the folder,
    and *wanted*, the pattern of the files' names relative to it.  `ClusterError` for a host that
    cannot be read to its end (or is silent for `IDLE_S` seconds), `RefusedArchiveError` for one
    that sends too much or too slowly.
    """
    started: list[Running] = []
    stopped = threading.Event()
    pattern = re.compile(f"({wanted})")

    def fetch(source: Source) -> list[Path]:
        argv = [*packer(source.host), source.folder, wanted]
        for tries_left in reversed(range(_TRIES)):
            try:
                command = source.host.open(argv)
                started.append(command)
                return _receive(source, command, pattern)
            except RefusedArchiveError:
                raise
            except ClusterError:
                if not tries_left or stopped.is_set():
                    raise
                time.sleep(_PAUSE_S)
        raise AssertionError

    with ThreadPoolExecutor(max(1, len(sources)), thread_name_prefix="collect") as pool:
        futures = [pool.submit(fetch, source) for source in sources]
        try:
            paths = []
            for future in futures:
                paths += future.result()
        except BaseException:
            stopped.set()
            for command in started:
                command.kill()
            raise
    return paths


def _receive(source: Source, command: Running, pattern: re.Pattern[str]) -> list[Path]:
    """The files of one stream; the command is over afterwards."""
    output = command.stdout
    where = f"{source.host.name}: {printable(source.folder)}"
    assert output is not None
    waits = IdleTimeout(command, IDLE_S)

    def read() -> bytes:
        with waits.waiting():
            return output.read(CHUNK_BYTES)

    try:
        try:
            pieces = in_time(iter(read, b""), where)
            problem = ""
            paths = unpack(pieces, pattern, source.into, where)
        except RefusedArchiveError:
            raise
        except ClusterError as error:
            problem = error.what
            paths = []
        status = None
        with suppress(subprocess.TimeoutExpired):
            status = command.wait(_LAST_WORDS_S if problem else IDLE_S)
        if status == 0 and not problem:
            return sorted(paths)
        command.kill()
        assert command.stderr is not None
        lines = command.stderr.read(_MOST_WORDS).strip().splitlines()
        if waits.killed:
            problem = f"nothing came for {IDLE_S:g} s"
        elif lines:
            problem = excerpt(lines[-1], 300)
    finally:
        end_command(command)
        with suppress(subprocess.TimeoutExpired, ClusterError):
            command.wait(_END_S)
    raise ClusterError(
        f"the logs of {source.host.name} end early: {problem or f'status {status}'}",
        where=where,
        fix="see whether the host is up and has Python 3.9 or newer; then repeat",
    )
