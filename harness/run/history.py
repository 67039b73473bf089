"""The history and the configuration of a job, from where the history server keeps them."""

from __future__ import annotations

import time

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from harness.errors import ClusterError, HarnessError, JobError
from harness.parsing.history import read_history
from harness.providers.hdfs import Hdfs
from harness.records.trace import JobTrace
from harness.units import format_bytes

MOST_BYTES = 2**32  # of a job's history: a task takes some KiB of it


class HistoryCluster(Protocol):
    """What reading a history asks of a cluster."""

    hdfs: Hdfs

    def history_folders(self, job: str) -> Sequence[str]:
        """Return the folders below which the history of *job* lies when it has ended."""
        ...


def fetch_history(
    cluster: HistoryCluster, job: str, raw: Path, number: int, wait_s: float
) -> JobTrace:
    """
    Copy history and configuration of *job*, the *number*-th of its trial, into *raw*; read it.

    Waits at most *wait_s* seconds for both to lie where the history server looks; `JobError` after.
    """
    history, configuration = raw / f"job-{number}-history.jhist", raw / f"job-{number}-conf.xml"
    deadline = time.monotonic() + wait_s
    while not _copied(cluster, job, history, configuration):
        if time.monotonic() > deadline:
            raise JobError(
                f"no history of {job} after {wait_s:g} s",
                where=" and ".join(cluster.history_folders(job)),
                fix="read the application master's syslog among the trial's container logs",
            )
        time.sleep(0.1)
    with history.open("rb") as lines:
        return read_history(lines, history.name)


def _copied(cluster: HistoryCluster, job: str, history: Path, configuration: Path) -> bool:
    wanted = {".jhist": history, "_conf.xml": configuration}
    for folder in cluster.history_folders(job):
        # Of several attempts of an application master the last has the whole history.
        found = list(find(cluster.hdfs, folder, job))[::-1]
        lying = (next((p for p in found if p.endswith(ending)), "") for ending in wanted)
        if all(sources := tuple(lying)):
            return _fetched(cluster.hdfs, sources, tuple(wanted.values()))
    return False


def _fetched(hdfs: Hdfs, sources: Sequence[str], targets: Sequence[Path]) -> bool:
    try:
        for target, (_, pieces) in zip(targets, hdfs.open_many(sources), strict=True):
            write_chunks(target, pieces)
    except ClusterError:  # the history server moved them between the look and the copy
        return False
    return True


def find(hdfs: Hdfs, root: str, word: str, depth: int = 6) -> Iterator[str]:
    """Paths of the files below *root* whose names hold *word*; no folder, no files."""
    try:
        entries = hdfs.list(root)
    except HarnessError:
        return
    for name, _, is_folder in entries:
        if is_folder and depth:
            yield from find(hdfs, f"{root}/{name}", word, depth - 1)
        elif not is_folder and word in name:
            yield f"{root}/{name}"


def write_chunks(path: Path, chunks: Iterator[bytes]) -> None:
    """Write *chunks* to the new file *path*; `JobError` for more than `MOST_BYTES`."""
    left = MOST_BYTES
    with path.open("wb") as target:
        for chunk in chunks:
            left -= len(chunk)
            if left < 0:
                raise JobError(
                    f"the history of a job is larger than {format_bytes(MOST_BYTES)}",
                    where=path.name,
                    fix="look at the cluster's master: no job writes so much",
                )
            target.write(chunk)
