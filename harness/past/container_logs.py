"""Logs of tasks that ran before, beside their histories: in a folder, or at a history server."""

from __future__ import annotations

import gzip

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from harness.base.errors import HarnessError, SpecError
from harness.base.records.trace import JobTrace, TaskAttempt
from harness.base.text import excerpt, printable
from harness.clusters.existing.discovery import ADDRESS, copy_logs
from harness.clusters.host import CONTAINER
from harness.core.evaluate.observations import SHUFFLE_LOG, TASK_LOG, logged_times
from harness.core.store import RawLogs
from harness.observe.parsing.task_log import wanted_lines
from harness.observe.storage.files import is_name, walk_folders
from harness.observe.storage.opener import Opener

_COPY = "copy it again, or leave --logs out"


class ContainerLogs:
    """
    Logs at *place*: a folder with ``container_.../syslog`` anywhere below it, packed or not.

    Such are the folders ``yarn.nodemanager.log-dirs`` of the nodes.  Or ``http://HOST:19888``, a
    history server, which has those that YARN has aggregated.  `SpecError` where it is neither.
    """

    def __init__(self, place: str) -> None:
        self._opener = Opener(Path(place))
        self._server = ""
        if place.startswith("http:"):
            self._server = urlsplit(place).netloc
        if not (ADDRESS.fullmatch(self._server) if self._server else Path(place).is_dir()):
            what = f"'{excerpt(place)}' is neither a folder nor the address of a history server"
            fix = "name a copy of yarn.nodemanager.log-dirs, or http://HISTORYSERVER:19888"
            raise SpecError(what, where="--logs", fix=fix)
        self._folders = dict[str, Path]()  # by container
        self.left_out = dict[str, str]()  # reasons, by folder
        for parent, names, _ in walk_folders(place):
            for name in filter(CONTAINER.fullmatch, names):
                self._folders.setdefault(name, Path(parent, name))

    def copy(self, trace: JobTrace, into: Path) -> int:
        """
        Copy the logs of the tasks of *trace*, to ``into/<host>/<container>/``; how many have one.

        Of their lines only those that are read: others may hold anything.  A log that cannot be
        read is in `left_out`, with the reason.
        """
        attempts = [
            attempt
            for attempt in trace.attempts
            if attempt.state == "succeeded" and is_name(attempt.host)
        ]
        count = 0
        with TemporaryDirectory(prefix="harness-logs-") as scratch:
            folders, opener = self._folders_of(attempts, Path(scratch, "served"))
            for attempt in attempts:
                folder = folders.get(attempt.container_id)
                if folder is None:
                    continue
                checked = Path(scratch, attempt.attempt_id)
                try:
                    names = _extract(opener, folder, checked / attempt.container_id)
                    raw = RawLogs(Opener(checked), checked)
                    alone = replace(trace, attempts=(attempt,))
                    has_times = bool([*logged_times(raw, alone, is_compressed=False)])
                except HarnessError as error:
                    self.left_out[printable(folder)] = error.what
                    continue
                if has_times:
                    count += 1
                    target = into / attempt.host / attempt.container_id
                    _unpack(checked / attempt.container_id, names, Opener(checked), target)
        return count

    def _folders_of(
        self, attempts: Sequence[TaskAttempt], served: Path
    ) -> tuple[Mapping[str, Path], Opener]:
        """Folders by container, and what opens them; a server's logs are copied to *served*."""
        if not self._server:
            return self._folders, self._opener
        hosts = {attempt.container_id: attempt.host for attempt in attempts}
        copies = copy_logs(hosts, (), self._server, served)
        return {path.parent.name: path.parent for path in copies}, Opener(served)


def _extract(opener: Opener, folder: Path, target: Path) -> list[str]:
    """Write the lines that are read of the logs in *folder* to *target*, packed; names of logs."""
    names = [name for name in (TASK_LOG, SHUFFLE_LOG) if opener.exists(folder / name)]
    for name in names:
        lines = opener.read(folder / name, _COPY).splitlines(keepends=True)
        target.mkdir(parents=True, exist_ok=True)
        (target / f"{name}.gz").write_bytes(gzip.compress(b"".join(wanted_lines(lines)), 1))
    return names


def _unpack(folder: Path, names: Iterable[str], opener: Opener, target: Path) -> None:
    """Copy the packed logs *names* of *folder* to *target*, as they were."""
    for name in names:
        target.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(opener.read(folder / name, _COPY))
