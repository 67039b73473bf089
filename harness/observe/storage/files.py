"""
How results reach the disk: whole, or not at all.

A file is written under another name, synced, renamed, and its folder is synced; a reader, or a
machine that loses power, sees the old content or the new one.  A disk that cannot take a file is
`MachineError`, with the path.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.base.errors import DataError, MachineError, SpecError
from harness.base.text import excerpt
from harness.base.units import MIB, format_bytes

# Host, container, workload and file names become parts of paths: no separator, no leading dot.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+=-]{0,149}", re.ASCII)
_BELOW = "x" * 99  # room for the name of what lies below a path
_LOCK_TEXT = re.compile(r'\{"pid": ([1-9]\d{1,9}), "since": "([^"]{,40})"')

# A trial is started, and a failure counts, only where so much is free: the logs of a small trial.
LEAST_FREE_BYTES = 16 * MIB

MAKE_ROOM = "free some space there, and start the same command again: it resumes"
_NOT_OURS = (
    "choose a folder that you may write with --results-dir, with a copy of the run if it exists;"
    " where it is, 'harness reproduce RUN' and 'harness report FILE -o FOLDER' read it"
)
_FIX = {
    errno.ENOENT: "check the path: nothing is there",
    errno.ENOSPC: MAKE_ROOM,
    errno.EDQUOT: MAKE_ROOM,
    errno.ENOMEM: "end other programs, or lower cluster.workers; then start the same command again",
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), _NOT_OURS),
    errno.ELOOP: "restore it from a copy: results have no links",
    errno.ENOTDIR: "there is a file where a folder is needed: move it, or use --results-dir",
}
# What a machine lacks; whatever else the operating system says of a file is more likely a bug.
_LACKS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENOMEM, errno.EIO})


def is_name(name: str) -> bool:
    """Whether *name* is safe as one part of a path."""
    return _NAME.fullmatch(name) is not None


def is_path(text: str | Path) -> bool:
    """Whether *text* may be a path: the system refuses to look where one is too long."""
    try:
        Path(text, _BELOW).lstat()
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG
    except ValueError:  # what no name can have
        return False
    return True


def check_name(name: str, problem: str) -> str:
    """
    Return *name* if it is safe as one part of a path; *problem* says in the error what it names.

    >>> check_name("container_1_0001_01_000001", "a container")
    'container_1_0001_01_000001'
    """
    if not is_name(name):
        raise DataError(
            f"'{excerpt(name)}' cannot name {problem} in the results",
            where="harness.core.store",
            fix="use letters, digits and _ . @ + = -, starting with a letter, digit or _",
        )
    return name


@contextmanager
def os_error_as_machine_error(path: Path, *, is_long: bool = False) -> Iterator[None]:
    """
    Turn what the operating system refuses inside into `MachineError` with a fix.

    Of a *long* stretch of work only what a machine lacks is: a full or broken disk, or memory that
    is used up.  Any other `OSError` is left to be reported as a bug.
    """
    try:
        yield
    except OSError as error:
        if is_long and error.errno not in _LACKS:
            raise
        where = Path(error.filename) if isinstance(error.filename, str) else path
        problem = (error.strerror or str(error)).lower()
        if error.errno == errno.ENOSPC:
            problem += f" ({format_bytes(free_bytes(where))} free)"
        fix = _FIX.get(error.errno or 0, "check this disk, or use another with --results-dir")
        raise MachineError(problem, where=str(where), fix=fix) from error


def free_bytes(path: Path) -> int:
    """Bytes that this user may still write on the file system of *path*, which need not exist."""
    nearest = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
    with os_error_as_machine_error(nearest):
        return shutil.disk_usage(nearest).free


@contextmanager
def exclusive_lock(path: Path, problem: str, *, wait: bool = False) -> Iterator[None]:
    """
    Lock the file *path* for this harness alone; *problem* says in the error what is in use.

    The kernel drops the lock when its process ends; the text in the file only names that process.
    Raises `MachineError` where another process has the lock and *wait* is false.
    """
    with os_error_as_machine_error(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # What is there may be somebody's link: nothing behind it is emptied.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        open_file = os.fdopen(os.open(path, flags, 0o666), "r+")
    with open_file:
        with os_error_as_machine_error(path):
            try:
                fcntl.flock(open_file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError as error:
                open_file.seek(0)
                user = "another harness"
                fix = "wait for it to end"
                if owner := _LOCK_TEXT.match(open_file.read(99)):
                    user = f"process {owner[1]} since {owner[2]}"
                    # SIGINT would do nothing to one that a shell script has put in the background.
                    fix += f", or end it: kill {owner[1]}  (what is finished is kept)"
                what = f"{problem} is in use by {user}"
                raise MachineError(what, where=str(path), fix=fix) from error
            open_file.truncate(0)
            since = datetime.now(UTC).isoformat(timespec="seconds")
            # No buffer, which would be written again when the file is closed.
            text = json.dumps({"pid": os.getpid(), "since": since}) + "\n"
            os.pwrite(open_file.fileno(), text.encode(), 0)
        yield


def is_locked(path: Path) -> bool:
    """Whether another process holds the lock *path*; nothing is made or written to find out."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # nobody has ever locked it, or it is none
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def walk_folders(
    top: str | Path, leave_out: Callable[[OSError], object] = lambda _: None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """
    Each folder from *top* down, with the names of its folders and of its other files, sorted.

    However deep they lie: `os.walk` calls itself for each.  No link is followed.  Folders that are
    taken out of the list are not entered; of one that cannot be read *leave_out* gets the error.
    """
    waiting = [str(top)]
    while waiting:
        parent = waiting.pop()
        try:
            with os.scandir(parent) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            leave_out(error)
            continue
        links = {entry.name for entry in found if entry.is_symlink()}
        names = [entry.name for entry in found if entry.is_dir()]
        yield parent, names, [entry.name for entry in found if not entry.is_dir()]
        waiting += [str(Path(parent, name)) for name in reversed(names) if name not in links]


def folders(parent: Path) -> list[Path]:
    """Folders in *parent*, sorted; none where it does not exist."""
    with os_error_as_machine_error(parent):
        paths = parent.iterdir() if parent.is_dir() else ()
        return sorted(path for path in paths if path.is_dir())


def sync_folder(folder: Path) -> None:
    """Make renames inside *folder* survive a loss of power."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Sync every file and folder under *folder*, and itself."""
    for root, _, file_names in os.walk(folder):
        for name in file_names:
            with Path(root, name).open("rb") as open_file:
                os.fsync(open_file.fileno())
        sync_folder(Path(root))


def rename_durably(source: Path, target: Path) -> None:
    """Rename the synced *source* to *target*: the one step that makes it count."""
    source.rename(target)
    sync_folder(target.parent)


def refuse_special(path: Path) -> None:
    """`SpecError` where *path* is a device, a pipe or a socket: a rename would replace it."""
    if path.exists() and not path.is_file() and not path.is_dir():
        fix = "name a file: what is there would be replaced by it"
        raise SpecError("this is no plain file", where=str(path), fix=fix)


def refuse_unwritable(path: Path) -> None:
    """
    Refuse a file that could not be written once all is done: its folder is not there, or not ours.

    `SpecError`: it is named wrongly; `MachineError`: nothing can be written there.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        fix = "name a file in a folder that is there"
        raise SpecError("its folder is not there", where=str(path), fix=fix)
    if not os.access(folder, os.W_OK | os.X_OK):
        fix = "name a file in a folder that you may write to"
        raise MachineError("its folder cannot be written to", where=str(path), fix=fix)
    refuse_special(path)


def write_file(path: Path, data: bytes, scratch: Path) -> None:
    """
    Put *data* at *path* in one step; *scratch* is a folder on the same file system.

    `SpecError`: a device, a pipe or a socket is there; `MachineError`: a folder.
    """
    with os_error_as_machine_error(path):
        refuse_special(path)
        scratch.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = scratch / f"{path.name}.{os.getpid()}"
        try:
            temporary.write_bytes(data)
            _put_in_place(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """
    Have *write* fill a new file, which then takes the place of *path*; what fails changes nothing.

    What is no plain file (a device, a pipe), or is what this process prints to, is written where it
    is.  An `OSError` names *path*.
    """
    if _is_written_in_place(path):
        write(path)
        return
    try:
        target = path.resolve()  # a link stays one
        if target.exists():
            os.close(os.open(target, os.O_WRONLY))  # refused where it may not be written
        with TemporaryDirectory(prefix=".harness-", dir=target.parent) as scratch:
            temporary = Path(scratch, target.name)
            write(temporary)
            if target.exists():
                shutil.copymode(target, temporary)
            _put_in_place(temporary, target)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _put_in_place(temporary: Path, path: Path) -> None:
    """Give the file *temporary* the name *path*, once all of it is on the disk."""
    with temporary.open("rb") as whole_file:
        os.fsync(whole_file.fileno())
    rename_durably(temporary, path)


def _is_written_in_place(path: Path) -> bool:
    """Whether *path* is no plain file, or the one that stdout or stderr leads to."""
    if not path.exists() or path.is_dir():
        return False
    if not path.is_file():
        return True
    printed_to = list[os.stat_result]()
    for stream in (1, 2):
        with suppress(OSError):  # it may be closed
            printed_to.append(os.fstat(stream))
    return any(os.path.samestat(path.stat(), printed) for printed in printed_to)


def remove_tree(folder: Path) -> None:
    """Remove *folder* and all below it; nothing happens where it does not exist."""
    if folder.exists():
        with os_error_as_machine_error(folder):
            shutil.rmtree(folder)


def json_bytes(value: Mapping[str, Any], *, indent: int | None = 2) -> bytes:
    """*value* as JSON with sorted keys, ended by a newline: equal values give equal bytes."""
    return (json.dumps(value, indent=indent, sort_keys=True, allow_nan=False) + "\n").encode()
