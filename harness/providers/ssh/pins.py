"""
Host keys that the user has vouched for: the harness's own ``known_hosts``, in OpenSSH's format.

A key gets in by its fingerprint alone (``harness trust``), which its owner has told the user by
another way; nothing is ever trusted because it was seen first.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import re

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.errors import ClusterError, SpecError
from harness.providers.host import printable

_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}=?")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")
_ADDRESS = re.compile(r"[0-9A-Fa-f:.]{2,45}")

# What asks a server for a key of each kind, the best first.
_KINDS = (
    "ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
    "rsa-sha2-512", "rsa-sha2-256",
)  # fmt: skip


def pins_file() -> Path:
    """The file of pinned keys, below ``XDG_STATE_HOME``; it need not exist."""
    base = os.environ.get("XDG_STATE_HOME", "")
    state = Path(base if base.startswith("/") else "~/.local/state").expanduser()
    return state / "mapreduce-harness" / "known_hosts"


def host_name(text: str) -> str:
    """*text*, if it is a host's name or address and nothing else; `SpecError` otherwise."""
    if not _NAME.fullmatch(text) and not (":" in text and _ADDRESS.fullmatch(text)):
        raise SpecError(
            f"{text!r:.100} is no name or address of a host",
            where="name of a host",
            fix="write letters, digits, dots and hyphens, such as node1.example.org or 10.0.0.7",
        )
    return text


def entry_name(host: str, port: int = 22) -> str:
    """
    Name of a host in the file.

    >>> entry_name("10.0.0.7"), entry_name("10.0.0.7", 2222)
    ('10.0.0.7', '[10.0.0.7]:2222')
    """
    return host if port == 22 else f"[{host}]:{port}"


def fingerprint(key: bytes) -> str:
    """Fingerprint of a public key, as ``ssh-keygen -l`` prints it."""
    digest = base64.b64encode(hashlib.sha256(key).digest()).decode()
    return f"SHA256:{digest.rstrip('=')}"


def trust_command(host: str, port: int, mark: str) -> str:
    """The command that pins the key with fingerprint *mark*."""
    where = "" if port == 22 else f" --port {port}"
    return f"harness trust {host}{where} --fingerprint {mark}"


def trust(
    host: str,
    mark: str,
    port: int = 22,
    *,
    ask: Callable[[str, int, str], Any | None] | None = None,
) -> str:
    """
    Pin the key of *host* that has fingerprint *mark*; its kind (``ssh-ed25519``).

    Keys pinned for this host before go.  *ask* fetches the host's key of a kind, `None` where it
    has none.  `ClusterError`: the host cannot be reached, or has no key with that fingerprint.
    """
    host_name(host)
    if not _FINGERPRINT.fullmatch(mark):
        raise SpecError(
            f"{mark!r:.100} is no fingerprint of a key",
            where="--fingerprint",
            fix="on the host: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub",
        )
    offered = []
    for kind in _KINDS:
        key = (ask or fetch)(host, port, kind)
        if key is not None and fingerprint(key.asbytes()) == mark.rstrip("="):
            _pin(entry_name(host, port), f"{key.get_name()} {key.get_base64()}")
            return str(key.get_name())
        if key is not None:
            offered.append(f"{fingerprint(key.asbytes())} ({key.get_name()})")
    raise ClusterError(
        f"{host} has no key with fingerprint {mark}; it has {', '.join(dict.fromkeys(offered))}"
        if offered
        else f"{host} shows no key of a kind that is known here",
        where=f"{host}, port {port}",
        fix="ask who runs the host: another fingerprint means another host, or one in between",
    )


def fetch(host: str, port: int, kind: str) -> Any | None:
    """The public key of *kind* that the host proves to have; `None` where it has none."""
    import paramiko

    from harness.providers.ssh.connection import BANNER_S, dial, quiet, unreachable

    quiet()
    where = f"{host}, port {port}"
    transport = paramiko.Transport(dial(host, port))
    try:
        transport.banner_timeout = BANNER_S
        transport.get_security_options().key_types = (kind,)
        transport.start_client(timeout=BANNER_S)
        return transport.get_remote_server_key()
    except paramiko.ssh_exception.IncompatiblePeer:
        return None
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise unreachable(error, where) from error
    finally:
        transport.close()


def _pin(name: str, key: str) -> None:
    """Put *key* into the file in the place of what it had for *name*, in one step."""
    file = pins_file()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        old = file.read_text().splitlines() if file.exists() else []
        kept = [line for line in old if line.split(" ")[0] != name]
        part = file.with_suffix(".part")
        part.write_text("".join(f"{line}\n" for line in [*kept, f"{name} {key}"]))
        part.chmod(0o600)
        part.replace(file)
    finally:
        os.close(handle)


def unknown(host: str, port: int, key: bytes) -> ClusterError:
    """The error for a host without a pin."""
    mark = fingerprint(key)
    return ClusterError(
        f"the key of {host} is not known; the host shows {mark}",
        where=f"{host}, port {port}",
        fix=f"if who runs the host names the same fingerprint: {trust_command(host, port, mark)}",
    )


def changed(host: str, port: int, key: bytes, pinned: bytes) -> ClusterError:
    """The error for a host that shows another key than the pinned one."""
    mark = fingerprint(key)
    return ClusterError(
        f"the key of {host} has changed: it shows {mark}, pinned is {fingerprint(pinned)};"
        " somebody may stand in between",
        where=f"{host}, port {port}; {printable(str(pins_file()))}",
        fix=f"only if who runs the host says why it changed: {trust_command(host, port, mark)}",
    )
