"""
Whose processes are at the other end of connections, by the kernel: for daemons on one machine.

Daemons of a cluster that shares the machine's addresses ask before they let a connection in
(`mapreduce.harness.fence.Peers`).  A line on a socket in their folder of configuration, which is
closed to others, is two addresses, ``ADDRESS PORT ADDRESS PORT``: the caller's and their own.  The
answer is the caller's user, or -1 where the kernel knows of no open socket with them.

The kernel finds one connection among thousands at once; the tables in /proc are read from their
beginning, and grow with whoever opens connections.
"""

import os
import selectors
import signal
import socket
import struct

from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, Iterable, Optional

from .processes import die_with_parent

NAME = "peers"  # of the socket, in a folder of configuration
MOST_PATH = 100  # bytes: what an address of such a socket may have, nearly
_SOCK_DIAG = 4
_BY_FAMILY = 20
_REQUEST = 1
_ERROR = 2
_NO_COOKIE = 0xFFFFFFFF
_ALL_STATES = 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")
_ASKED = struct.Struct("=BBBBI")
_SOCKET_BYTES = 48  # of both ends in a message
_FOUND = struct.Struct("=BBBB48sIIIII")
_MOST_LINE = 2**12


def owner_of(
    kernel: socket.socket, address: str, port: int, own_address: str, here_port: int
) -> Optional[int]:
    """User of the open socket at *address* connected to *own_address*; `None`: there is none."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    ends = [socket.inet_pton(family, text).ljust(16, b"\0") for text in (address, own_address)]
    sockets = struct.pack("!HH", port, here_port) + ends[0] + ends[1]
    sockets += struct.pack("=III", 0, _NO_COOKIE, _NO_COOKIE)
    asked = _ASKED.pack(family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES) + sockets
    size = _HEADER.size + len(asked)
    kernel.send(_HEADER.pack(size, _BY_FAMILY, _REQUEST, 1, 0) + asked)
    answer = kernel.recv(2**13)
    kind = _HEADER.unpack_from(answer)[1]
    if kind != _BY_FAMILY:  # an error: no such socket
        return None
    *_, user, inode = _FOUND.unpack_from(answer, _HEADER.size)
    return int(user) if inode else None  # a closed socket lingers without an inode, as root's


class Answers:
    """Answers on one listening socket, at *path*, to whoever may enter its folder."""

    def __init__(self, path: Path, account: Optional[Dict[str, int]]) -> None:
        """Listen, for processes of the *account*, if there is one, and for our own."""
        with suppress(FileNotFoundError):
            path.unlink()
        self.kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG)
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listening.bind(str(path))
        path.chmod(0o600)
        if account:
            os.chown(str(path), account["uid"], account["gid"])
        self.listening.listen(128)
        self.listening.setblocking(False)  # noqa: FBT003 (it has no name)
        self.ready = selectors.DefaultSelector()
        self.ready.register(self.listening, selectors.EVENT_READ, None)

    def close(self) -> None:
        """Hang up on all, and listen no more."""
        for key in [*self.ready.get_map().values()]:
            key.fileobj.close()  # type: ignore[union-attr]
        self.ready.close()
        self.kernel.close()

    def serve(self) -> None:
        """Answer until this process is ended."""
        while True:
            self.answer_once(None)

    def answer_once(self, timeout_s: Optional[float]) -> None:
        """Answer all that waits; wait so long for the first."""
        for key, _ in self.ready.select(timeout_s):
            if key.data is None:
                with suppress(OSError):
                    connection = self.listening.accept()[0]
                    self.ready.register(connection, selectors.EVENT_READ, bytearray())
            elif not self._answer(key.fileobj, key.data):
                self.ready.unregister(key.fileobj)
                key.fileobj.close()  # type: ignore[union-attr]

    def _answer(self, connection: Any, pending: bytearray) -> bool:
        """Answer the lines that have come; whether the connection goes on."""
        try:
            received = connection.recv(_MOST_LINE)
            pending += received
            *lines, rest = bytes(pending).split(b"\n")
            pending[:] = rest
            for line in lines:
                connection.sendall(b"%d\n" % self._user(line.decode("ascii")))
        except (OSError, ValueError):  # whoever asks nonsense is not answered
            return False
        return bool(received) and len(pending) < _MOST_LINE

    def _user(self, line: str) -> int:
        """User in answer to a *line*; -1 where there is none."""
        address, port, own_address, here_port = line.split(" ")
        owner = owner_of(self.kernel, address, int(port), own_address, int(here_port))
        return -1 if owner is None else owner


def start(folders: Iterable[str], account: Optional[Dict[str, int]]) -> None:
    """
    Answer on a socket in the first of *folders*, which the others have a link to, in a child.

    Where its path is too long for a socket there is none, and daemons read the kernel's tables.
    """
    paths = [Path(folder) / NAME for folder in folders]
    if not paths or len(os.fsencode(str(paths[0]))) > MOST_PATH:
        return
    first, *other_paths = paths
    answers = Answers(first, account)
    for link in other_paths:
        with suppress(FileNotFoundError):
            link.unlink()
        link.symlink_to(first)
    supervisor = os.getpid()
    if os.fork() == 0:
        try:
            die_with_parent(supervisor, signal.SIGKILL)
            answers.serve()
        finally:
            os._exit(1)
    answers.listening.close()
    answers.kernel.close()
