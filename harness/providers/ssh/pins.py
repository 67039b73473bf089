"""
Host keys that the user has vouched for: the harness's own ``known_hosts``, in OpenSSH's format.

A key is added by its fingerprint alone (``harness trust``), which the host's owner has given the
user by another way; nothing is ever trusted because it was seen first.
"""

from __future__ import annotations

import base64
import hashlib
import re

from pathlib import Path

from harness.errors import ClusterError, SpecError
from harness.hadoop_home.home import write_whole
from harness.providers.state import exclusive, state_folder
from harness.text import excerpt, printable

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")
_ADDRESS = re.compile(r"[0-9A-Fa-f:.]{2,45}")


def pins_file() -> Path:
    """The file of pinned keys; it need not exist."""
    return state_folder() / "known_hosts"


def host_name(text: str) -> str:
    """*text*, if it is a host's name or address and nothing else; `SpecError` otherwise."""
    if not _NAME.fullmatch(text) and not (":" in text and _ADDRESS.fullmatch(text)):
        raise SpecError(
            f"'{excerpt(text)}' is not a valid name or address of a host",
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


def write_pin(host: str, port: int, key: str) -> None:
    """Put *key* (its kind and itself) in the place of what is pinned for the host, in one step."""
    entry, known_hosts = entry_name(host, port), pins_file()
    with exclusive():
        earlier_lines = known_hosts.read_text().splitlines() if known_hosts.exists() else []
        kept = [line for line in earlier_lines if line.split(" ")[0] != entry]
        content = "".join(f"{line}\n" for line in [*kept, f"{entry} {key}"])
        write_whole(known_hosts, content.encode())
        known_hosts.chmod(0o600)


def key_error(host: str, port: int, key: bytes, pinned: bytes | None = None) -> ClusterError:
    """The error for a host that shows *key*, which is not the one pinned; `None`: none is."""
    shown = fingerprint(key)
    option = "" if port == 22 else f" --port {port}"
    command = f"harness trust {host}{option} --fingerprint {shown}"
    if pinned is None:
        return ClusterError(
            f"the key of {host} is not known; the host shows {shown}",
            where=f"{host}, port {port}",
            fix=f"if the host's administrator confirms this fingerprint: {command}",
        )
    return ClusterError(
        f"the key of {host} has changed: it shows {shown}, pinned is {fingerprint(pinned)};"
        " this may be an attack",
        where=f"{host}, port {port}; {printable(pins_file())}",
        fix=f"only if the host's administrator explains the change: {command}",
    )
