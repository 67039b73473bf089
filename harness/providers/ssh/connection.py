"""
Connections by SSH: keys pinned, times bounded, every failure an error that names host and cause.

One connection per host is kept, and made anew once when it is lost; a server that lets only so many
commands run on one gets a second one.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import ClusterError
from harness.providers.host import printable
from harness.providers.ssh import pins as ssh_pins

if TYPE_CHECKING:
    import paramiko

CONNECT_S = 10.0
BANNER_S = 15.0  # also for the exchange of keys
AUTH_S = 20.0
CHANNEL_S = 20.0
SILENT_MS = 30_000  # sent and not acknowledged for so long: the connection is lost
_MOST_CONNECTIONS = 4
_PACKET = 2**17  # four times the library's own: each costs it a tenth of a millisecond
_WINDOW = 2**23  # the same: for each tenth of it that is read, the library sends a packet
_AHEAD = 2**18
_CLOSED = (EOFError, ConnectionResetError, BrokenPipeError)
_NO_GREETING = ("banner", "No existing session")  # the library's words for it


@dataclass(frozen=True, slots=True)
class Access:
    """How a host is reached: *user*, *port*, and *key*, a file (`None`: the keys of an agent)."""

    user: str
    port: int = 22
    key: Path | None = None


class Connection:
    """The way to one host; safe to use from several threads."""

    def __init__(self, host: str, access: Access) -> None:
        """*host* is the name or address under which its key is pinned."""
        self.host, self.access = ssh_pins.host_name(host), access
        self._lock = threading.Lock()
        self._clients: list[paramiko.SSHClient] = []

    @property
    def where(self) -> str:
        """The host, for errors."""
        return f"{self.access.user}@{self.host}, port {self.access.port}"

    def close(self) -> None:
        """Hang up; the next command connects again."""
        with self._lock:
            for client in self._clients:
                client.close()
            self._clients.clear()

    def session(self) -> paramiko.Channel:
        """A channel for one command; `ClusterError` where the host cannot be reached."""
        import paramiko

        with self._lock:
            while True:
                for client in self._alive():
                    with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
                        return _opened(client)
                if len(self._alive()) >= _MOST_CONNECTIONS:
                    raise ClusterError(
                        "the host starts no further command",
                        where=self.where,
                        fix="its sshd may limit sessions: MaxSessions 10 or more",
                    )
                self._clients.append(_connected(self.host, self.access, self.where))

    def files(self) -> paramiko.SFTPClient:
        """A new session for the transfer of files."""
        import paramiko

        try:
            channel = self.session()
            with deadline(channel):
                channel.invoke_subsystem("sftp")
            return paramiko.SFTPClient(channel)
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise ClusterError(
                f"the host transfers no files: {_said(error)}",
                where=self.where,
                fix="its sshd needs the sftp subsystem: apt-get install -y openssh-sftp-server",
            ) from error

    def _alive(self) -> list[paramiko.SSHClient]:
        """Connections that are not known to be lost; the others are forgotten."""
        for client in list(self._clients):
            transport = client.get_transport()
            if transport is None or not transport.is_active():
                client.close()
                self._clients.remove(client)
        return self._clients


class _Door(socket.socket):
    """
    A socket that takes all that is there, and gives it in the small parts that it is asked for.

    The library asks twice for each packet; each time it waits for its turn among the threads.
    """

    def __init__(self, plain: socket.socket) -> None:
        """The connection of *plain*, which is not to be used any more."""
        family, kind, protocol, timeout = plain.family, plain.type, plain.proto, plain.gettimeout()
        super().__init__(family, kind, protocol, plain.detach())
        self.settimeout(timeout)
        self._taken = memoryview(bytearray(_AHEAD))
        self._begin = self._end = 0

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        if self._begin == self._end:
            self._end, self._begin = super().recv_into(self._taken, _AHEAD, flags), 0
        part = self._taken[self._begin : min(self._begin + size, self._end)]
        self._begin += len(part)
        return bytes(part)


@contextlib.contextmanager
def deadline(channel: paramiko.Channel) -> Any:
    """Close *channel* when what is done within takes too long: some requests wait for ever."""
    timer = threading.Timer(CHANNEL_S, channel.close)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def dial(host: str, port: int) -> socket.socket:
    """A TCP connection; small messages go at once, and a silent peer is noticed."""
    try:
        plain = socket.create_connection((host, port), CONNECT_S)
    except OSError as error:
        raise unreachable(error, f"{host}, port {port}") from error
    door = _Door(plain)
    door.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    door.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    door.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    door.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_MS)
    return door


def quiet() -> None:
    """Let the library tell us of errors, and not the terminal."""
    logger = logging.getLogger("paramiko")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())


def unreachable(error: BaseException, where: str) -> ClusterError:
    """The error for a host that does not answer as an SSH server does."""
    if isinstance(error, ClusterError):
        return error
    if isinstance(error, socket.gaierror):
        what, fix = "no such host", "write its address, or have its name resolved (/etc/hosts)"
    elif isinstance(error, ConnectionRefusedError):
        what, fix = "nothing listens there", "start the host's sshd, or name its port"
    elif isinstance(error, TimeoutError):
        what = f"no answer within {CONNECT_S:g} s"
        fix = "see whether the host runs, and whether a firewall is in between"
    elif isinstance(error, _CLOSED) or any(word in str(error) for word in _NO_GREETING):
        closed = isinstance(error.__context__ or error, _CLOSED)
        how = ": the connection was closed" if closed else f" within {BANNER_S:g} s"
        what = f"no greeting of an SSH server{how}"
        fix = "see whether the port is that of sshd, and whether the host is overloaded"
    else:
        what, fix = f"cannot be reached: {_said(error)}", "ssh -v to the host says more"
    return ClusterError(what, where=where, fix=fix)


def _said(error: BaseException) -> str:
    return printable(str(error) or type(error).__name__)[:300]


def _transport(client: paramiko.SSHClient) -> Any:
    return client.get_transport()


def _opened(client: paramiko.SSHClient) -> paramiko.Channel:
    """A new channel; nothing comes on it before a command is asked for."""
    from harness.providers.ssh.pipe import Pipe

    channel = _transport(client).open_session(_WINDOW, _PACKET, CHANNEL_S)
    channel.in_buffer, channel.in_stderr_buffer = Pipe(), Pipe()
    return channel


def _connected(host: str, access: Access, where: str) -> paramiko.SSHClient:
    import paramiko

    quiet()
    client = paramiko.SSHClient()
    file = ssh_pins.pins_file()
    if file.exists():
        client.get_host_keys().load(str(file))
    client.set_missing_host_key_policy(_refusing(host, access.port))
    door = dial(host, access.port)
    try:
        client.connect(
            host, access.port, access.user, sock=door,
            key_filename=None if access.key is None else str(access.key.expanduser()),
            look_for_keys=False, allow_agent=True, timeout=CONNECT_S,
            banner_timeout=BANNER_S, auth_timeout=AUTH_S, channel_timeout=CHANNEL_S,
            transport_factory=_quick_transport,
        )  # fmt: skip
    except BaseException as error:
        client.close()
        door.close()
        if not isinstance(error, (paramiko.SSHException, EOFError, OSError, ValueError)):
            raise
        raise _refused(error, host, access, where) from error
    _transport(client).set_keepalive(10)
    return client


def _quick_transport(door: socket.socket, **settings: Any) -> Any:
    """A transport that offers the cipher first that costs this side least."""
    import paramiko

    transport = paramiko.Transport(door, **settings)
    options = transport.get_security_options()
    known = [name for name in options.ciphers if not name.endswith("-cbc")]
    options.ciphers = tuple(sorted(known, key=lambda name: "gcm" not in name))
    return transport


def _refusing(host: str, port: int) -> Any:
    """A policy for unknown keys: none is taken, and the error says which it was."""
    import paramiko

    class Refuse(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
        def missing_host_key(self, client: Any, hostname: str, key: Any) -> None:
            del client, hostname
            raise ssh_pins.unknown(host, port, key.asbytes())

    return Refuse()


def _refused(error: BaseException, host: str, access: Access, where: str) -> ClusterError:
    import paramiko

    if isinstance(error, paramiko.BadHostKeyException):
        shown, pinned = error.key.asbytes(), error.expected_key.asbytes()
        return ssh_pins.changed(host, access.port, shown, pinned)
    if isinstance(error, paramiko.PasswordRequiredException):
        return ClusterError(
            f"the key {access.key} is locked by a passphrase, and no agent has it",
            where=where,
            fix=f"ssh-add {access.key}",
        )
    if isinstance(error, FileNotFoundError):
        return ClusterError(f"no key {access.key}", where=where, fix="name the file: cluster.ssh")
    if isinstance(error, paramiko.BadAuthenticationType):
        return _not_let_in(access, where, error.allowed_types)
    if isinstance(error, (paramiko.AuthenticationException, paramiko.SSHException)) and (
        "uthentication" in str(error)
    ):
        return _not_let_in(access, where, [])
    return unreachable(error, where)


def _not_let_in(access: Access, where: str, allowed: list[str]) -> ClusterError:
    asks = {"password", "keyboard-interactive"} & set(allowed)
    what = f"the host asks {access.user} for a password" if asks else "the host takes none of"
    key = f"the key {access.key}" if access.key else "the agent's keys"
    told = f"{what}: {key} is not enough" if asks else f"{what} our keys: {key}, for {access.user}"
    return ClusterError(
        told,
        where=where,
        fix="the harness never types passwords; put the public key there by hand:"
        f" ssh-copy-id -p {access.port} {where.partition(',')[0]}",
    )
