"""
Connections by SSH: keys pinned, times bounded, every failure an error that names host and cause.

Keys of hosts are in the harness's own ``known_hosts``, in OpenSSH's format.  One is added by its
fingerprint alone (``harness trust``); nothing is ever trusted because it was seen first.
"""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import threading

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.errors import ClusterError, SpecError
from harness.base.extras import CLUSTERS, extra
from harness.base.records.trial import SshAccess
from harness.base.text import excerpt, printable
from harness.clusters.hadoop_home.home import write_whole
from harness.clusters.host import time_limit
from harness.clusters.state import exclusive, state_folder

if TYPE_CHECKING:
    import paramiko

CONNECT_S = 10.0
BANNER_S = 15.0  # also for the exchange of keys
AUTH_S = 20.0
CHANNEL_S = 20.0
UNACKNOWLEDGED_MS = 30_000  # after which the connection is lost
_MOST_CONNECTIONS = 4
_CLOSED = (EOFError, ConnectionResetError, BrokenPipeError)
# A server that speaks nonsense makes errors of all kinds (UnicodeDecodeError is a ValueError), also
# by a packet of 4 GiB, for which the library asks at once.
_NONSENSE = (EOFError, OSError, ValueError, LookupError, MemoryError)
_NO_GREETING = ("banner", "No existing session")  # the library's words for it
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")
_HOST_ADDRESS = re.compile(r"[0-9A-Fa-f:.]{2,45}")
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}=?")

# A server shows one key of the kind that it is asked for; the best kinds first.
_KINDS = (
    "ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
    "rsa-sha2-512", "rsa-sha2-256",
)  # fmt: skip

# The library's messages are for us, as exceptions; they do not belong on the terminal.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


class Connection:
    """The connection to one host; safe to use from several threads."""

    def __init__(self, host: str, access: SshAccess) -> None:
        """*host* is the name or address under which its key is pinned."""
        self.host = host_name(host)
        self.access = access
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

    def open_channel(self) -> paramiko.Channel:
        """A channel for one command; `ClusterError` where the host cannot be reached."""
        with extra(CLUSTERS):
            import paramiko

        with self._lock:
            for client in list(self._clients):
                transport: Any = client.get_transport()
                if transport is None or not transport.is_active():
                    client.close()
                    self._clients.remove(client)
                    continue
                # a server that starts no further session on this connection refuses
                with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
                    return transport.open_session(timeout=CHANNEL_S)
            if len(self._clients) >= _MOST_CONNECTIONS:
                raise ClusterError(
                    "the host starts no further command",
                    where=self.where,
                    fix="its sshd may limit sessions: MaxSessions 10 or more",
                )
            self._clients.append(self._connect())
            with self.errors_as("starts no command", "see whether the host is up: ssh to it"):
                transport = self._clients[-1].get_transport()
                return transport.open_session(timeout=CHANNEL_S)

    def _connect(self) -> paramiko.SSHClient:
        import paramiko

        host = self.host
        access = self.access
        client = paramiko.SSHClient()
        if pins_file().exists():
            client.get_host_keys().load(str(pins_file()))
        client.set_missing_host_key_policy(self)
        connection = connect_socket(host, access.port)
        try:
            client.connect(
                host,
                access.port,
                access.user,
                sock=connection,
                key_filename=None if access.key is None else str(Path(access.key).expanduser()),
                look_for_keys=False,
                allow_agent=True,
                timeout=CONNECT_S,
                banner_timeout=BANNER_S,
                auth_timeout=AUTH_S,
                channel_timeout=CHANNEL_S,
            )
        except BaseException as error:
            client.close()
            connection.close()
            if isinstance(error, (paramiko.SSHException, *_NONSENSE)):
                raise _login_error(error, host, access, self.where) from error
            raise
        transport: Any = client.get_transport()
        transport.set_keepalive(10)
        # A change of keys that this side begins may never end (paramiko, issue 822): sshd begins.
        transport.packetizer.REKEY_BYTES = 2**62
        return client

    def missing_host_key(self, client: Any, hostname: str, key: Any) -> None:
        """As the library's policy for keys that are not pinned: the error says which one it was."""
        raise key_error(self.host, self.access.port, key.fingerprint)

    @contextlib.contextmanager
    def errors_as(self, problem: str, remedy: str, where: str = "") -> Iterator[None]:
        """Make a `ClusterError` of what the library raises within: the host *problem*, because."""
        import paramiko

        try:
            yield
        except (paramiko.SSHException, EOFError, OSError) as error:
            reason = excerpt(str(error) or type(error).__name__, 300)
            raise ClusterError(
                f"the host {problem}: {reason}", where=where or self.where, fix=remedy
            ) from error


def deadline(channel: paramiko.Channel) -> contextlib.AbstractContextManager[None]:
    """Close *channel* when what is done within takes too long: some requests wait for ever."""
    return time_limit(CHANNEL_S, channel.close)


def connect_socket(host: str, port: int) -> socket.socket:
    """A TCP connection; small messages go at once, and a silent peer is noticed."""
    try:
        connection = socket.create_connection((host, port), CONNECT_S)
    except OSError as error:
        raise unreachable_error(error, f"{host}, port {port}") from error
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)
    return connection


def unreachable_error(error: BaseException, where: str) -> ClusterError:
    """The error for a host that does not answer as an SSH server does."""
    if isinstance(error, ClusterError):
        return error
    if isinstance(error, socket.gaierror):
        problem = "no such host"
        remedy = "write its address, or have its name resolved (/etc/hosts)"
    elif isinstance(error, ConnectionRefusedError):
        problem = "nothing listens there"
        remedy = "start the host's sshd, or name its port"
    elif isinstance(error, TimeoutError):
        problem = f"no answer within {CONNECT_S:g} s"
        remedy = "see whether the host runs, and whether a firewall is in between"
    elif isinstance(error, _CLOSED) or any(word in str(error) for word in _NO_GREETING):
        closed = isinstance(error.__context__ or error, _CLOSED)
        circumstance = ": the connection was closed" if closed else f" within {BANNER_S:g} s"
        problem = f"no greeting of an SSH server{circumstance}"
        remedy = "see whether the port is that of sshd, and whether the host is overloaded"
    else:
        problem = f"cannot be reached: {excerpt(str(error) or type(error).__name__, 300)}"
        remedy = "ssh -v to the host shows more"
    return ClusterError(problem, where=where, fix=remedy)


def _login_error(error: BaseException, host: str, access: SshAccess, where: str) -> ClusterError:
    """The error for a login that failed, by its cause."""
    import paramiko

    if isinstance(error, paramiko.BadHostKeyException):
        return key_error(host, access.port, error.key.fingerprint, error.expected_key.fingerprint)
    if isinstance(error, paramiko.PasswordRequiredException):
        problem = f"the key {access.key} is locked by a passphrase, and no agent has it"
        return ClusterError(problem, where=where, fix=f"ssh-add {access.key}")
    if isinstance(error, FileNotFoundError):
        return ClusterError(f"no key {access.key}", where=where, fix="name the file: cluster.ssh")
    if not (isinstance(error, paramiko.SSHException) and "uthentication" in str(error)):
        return unreachable_error(error, where)
    key = f"the key {access.key}" if access.key else "the agent's keys"
    if {"password", "keyboard-interactive"} & set(getattr(error, "allowed_types", ())):
        problem = f"the host asks {access.user} for a password: {key} is not enough"
    else:
        problem = f"the host accepts none of our keys: {key}, for {access.user}"
    return ClusterError(
        problem,
        where=where,
        fix="the harness never types passwords; put the public key there by hand:"
        f" ssh-copy-id -p {access.port} {access.user}@{host}",
    )


def pins_file() -> Path:
    """The file of pinned keys; it need not exist."""
    return state_folder() / "known_hosts"


def host_name(text: str) -> str:
    """*text*, if it is a host's name or address and nothing else; `SpecError` otherwise."""
    if not _HOST_NAME.fullmatch(text) and not (":" in text and _HOST_ADDRESS.fullmatch(text)):
        raise SpecError(
            f"'{excerpt(text)}' is not a valid name or address of a host",
            where="name of a host",
            fix="write letters, digits, dots and hyphens, such as node1.example.org or 10.0.0.7",
        )
    return text


def write_pin(host: str, port: int, key: str) -> None:
    """Put *key* (its kind and itself) in the place of what is pinned for the host, in one step."""
    entry = host if port == 22 else f"[{host}]:{port}"
    known_hosts = pins_file()
    with exclusive():
        earlier_lines = known_hosts.read_text().splitlines() if known_hosts.exists() else []
        kept = [line for line in earlier_lines if line.split(" ")[0] != entry]
        content = "".join(f"{line}\n" for line in [*kept, f"{entry} {key}"])
        write_whole(known_hosts, content.encode())
        known_hosts.chmod(0o600)


def key_error(host: str, port: int, shown: str, pinned: str = "") -> ClusterError:
    """The error for a host that shows a key that is not the one *pinned*, by fingerprints."""
    option = "" if port == 22 else f" --port {port}"
    command = f"harness trust {host}{option} --fingerprint {shown}"
    if not pinned:
        return ClusterError(
            f"the key of {host} is not known; the host shows {shown}",
            where=f"{host}, port {port}",
            fix=f"if the host's administrator confirms this fingerprint: {command}",
        )
    return ClusterError(
        f"the key of {host} has changed: it shows {shown}, pinned is {pinned};"
        " this may be an attack",
        where=f"{host}, port {port}; {printable(pins_file())}",
        fix=f"only if the host's administrator explains the change: {command}",
    )


def fetch_key(host: str, port: int, kind: str) -> Any | None:
    """The public key of *kind* that the host proves to have; `None` where it has none."""
    with extra(CLUSTERS):
        import paramiko

    transport = paramiko.Transport(connect_socket(host, port))
    try:
        transport.banner_timeout = BANNER_S
        transport.get_security_options().key_types = (kind,)
        transport.start_client(timeout=BANNER_S)
        return transport.get_remote_server_key()
    except paramiko.ssh_exception.IncompatiblePeer:
        return None
    except (paramiko.SSHException, *_NONSENSE) as error:
        raise unreachable_error(error, f"{host}, port {port}") from error
    finally:
        transport.close()


def trust(
    host: str,
    wanted_fingerprint: str,
    port: int = 22,
    *,
    fetch: Callable[[str, int, str], Any | None] = fetch_key,
) -> str:
    """
    Pin the key of *host* with fingerprint *wanted_fingerprint*; its kind (``ssh-ed25519``).

    Keys pinned for this host before go.  `ClusterError`: the host cannot be reached, or has no key
    with that fingerprint.
    """
    host_name(host)
    if not _FINGERPRINT.fullmatch(wanted_fingerprint):
        raise SpecError(
            f"'{excerpt(wanted_fingerprint)}' is not a valid fingerprint of a key",
            where="--fingerprint",
            fix="on the host: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub",
        )
    offered = {}
    for kind in _KINDS:
        host_key = fetch(host, port, kind)
        if host_key is not None:
            if host_key.fingerprint == wanted_fingerprint.rstrip("="):
                write_pin(host, port, f"{host_key.get_name()} {host_key.get_base64()}")
                return str(host_key.get_name())
            offered[host_key.fingerprint] = host_key.get_name()
    keys = ", ".join(f"{key_fingerprint} ({kind})" for key_fingerprint, kind in offered.items())
    raise ClusterError(
        f"{host} has no key with fingerprint {wanted_fingerprint}; it has {keys}"
        if offered
        else f"{host} shows no key of a kind that is known here",
        where=f"{host}, port {port}",
        fix="ask the host's administrator: another fingerprint means another host, or an attack",
    )
