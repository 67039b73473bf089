"""
Evidence of a node: files of a folder, and what its JVMs do.

    node.pyz pack FOLDER WANTED     sends the plain files of a folder to standard output, as a tar

The names are those below the folder; only files whose whole name matches the pattern WANTED are
sent, up to the size that they had when they were opened: a log may grow.  Links, pipes and devices
are left out, and so is a folder that is not there.

    node.pyz dump DAEMONS INTO      (DAEMONS: the folder with process ids; INTO: one for dumps)

dumps the threads of every JVM, for a job that does not end.  A JVM writes its dump to its standard
output when it gets SIGQUIT, as long as it still answers anything at all.  No other process is
started, and nothing is attached: a machine that hangs has enough to do.  A JVM whose standard
output is not a file gives no dump.
"""

import os
import re
import signal
import stat
import sys
import tarfile
import time

from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping

LIMIT_S = 3.0
_LAST_LINE = b"JNI global refs"
_MOST_BYTES = 4 * 2**20
_CONTAINER = re.compile(r"/(container_[0-9e_]+)/")


def pack(arguments: List[str]) -> None:
    """Send all files, in the order of their names."""
    folder = arguments[0]
    wanted = re.compile(arguments[1])
    try:
        with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
            for parent, subfolders, file_names in os.walk(folder):
                subfolders.sort()  # `os.walk` enters them in this order
                for file_name in sorted(file_names):
                    path = os.path.join(parent, file_name)
                    name = os.path.relpath(path, folder)
                    if wanted.fullmatch(name):
                        _add(archive, path, name)
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone
        raise SystemExit(1) from None


def _add(archive: tarfile.TarFile, path: str, name: str) -> None:
    """Add the plain file at *path* to *archive*, with the size that it has now."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return  # a link, or gone meanwhile
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if stat.S_ISREG(status.st_mode):
            member = tarfile.TarInfo(name)
            member.size = status.st_size
            archive.addfile(member, file)


def dump(arguments: List[str]) -> None:
    """Dump the threads of every JVM of this node, each into a file of its own."""
    daemons, target_folder = map(Path, arguments)
    names = {}
    for pid_file in daemons.iterdir():
        with suppress(OSError, ValueError):  # it has ended meanwhile
            names[int(pid_file.read_text())] = pid_file.name
    target_folder.mkdir(parents=True, exist_ok=True)
    running = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    dump_threads(find_jvms(running, names), target_folder)


def find_jvms(pids: Iterable[int], daemons: Mapping[int, str]) -> Dict[str, int]:
    """
    JVMs among *pids*, by a name that is fit for a file.

    A name is that of *daemons*, or the container's id, or ``client``; a number distinguishes those
    that would have the same one.
    """
    jvm_processes: Dict[str, int] = {}
    for process_id in sorted(pids):
        if _link_target(process_id, "exe").rpartition("/")[2] != "java":
            continue
        container = _CONTAINER.search(_link_target(process_id, "fd/1"))
        file_name = daemons.get(process_id) or (container.group(1) if container else "client")
        same = sum(name == file_name or name.startswith(f"{file_name}-") for name in jvm_processes)
        jvm_processes[f"{file_name}-{same + 1}" if same else file_name] = process_id
    return jvm_processes


def dump_threads(processes: Mapping[str, int], into: Path, limit_s: float = LIMIT_S) -> List[Path]:
    """
    Have *processes* (name -> process id) dump their threads, each to ``into/<name>.txt``.

    Returns the files after *limit_s* seconds at the latest; a JVM without an answer has none.
    """
    with ExitStack() as stack:
        outputs: Dict[str, Any] = {}
        for file_name, process_id in processes.items():
            with suppress(OSError):  # it has ended meanwhile
                path = Path(f"/proc/{process_id}/fd/1")
                if stat.S_ISREG(path.stat().st_mode):
                    output = stack.enter_context(path.open("rb"))
                    outputs[file_name] = (output, output.seek(0, os.SEEK_END))
                    os.kill(process_id, signal.SIGQUIT)

        def dump_of(file_name: str) -> bytes:
            output, start = outputs[file_name]
            output.seek(start)
            text: bytes = output.read(_MOST_BYTES)
            return text

        deadline = time.monotonic() + limit_s
        while any(_LAST_LINE not in dump_of(file_name) for file_name in outputs):
            if time.monotonic() >= deadline:
                break
            time.sleep(0.05)
        time.sleep(0.1)  # deadlocks and the heap come after the last thread
        files = []
        for file_name in outputs:
            dump = dump_of(file_name)
            if dump:
                into.mkdir(parents=True, exist_ok=True)
                files.append(into / f"{file_name}.txt")
                files[-1].write_bytes(dump)
    return files


def _link_target(process_id: int, file_name: str) -> str:
    """Where a link of a process leads, such as ``exe``; empty where that cannot be read."""
    try:
        return os.readlink(f"/proc/{process_id}/{file_name}")
    except OSError:
        return ""
