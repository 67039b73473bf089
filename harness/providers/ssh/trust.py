"""How a host's key is pinned: fetched from the host, and compared with a fingerprint."""

from __future__ import annotations

import re

from collections.abc import Callable
from typing import Any

from harness.errors import ClusterError, SpecError
from harness.providers.ssh.connection import BANNER_S, connect_socket, unreachable_error
from harness.providers.ssh.pins import fingerprint, host_name, write_pin
from harness.text import excerpt

_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}=?")

# A server shows one key of the kind that it is asked for; the best kinds first.
_KINDS = (
    "ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
    "rsa-sha2-512", "rsa-sha2-256",
)  # fmt: skip


def fetch_key(host: str, port: int, kind: str) -> Any | None:
    """The public key of *kind* that the host proves to have; `None` where it has none."""
    import paramiko

    transport = paramiko.Transport(connect_socket(host, port))
    try:
        transport.banner_timeout = BANNER_S
        transport.get_security_options().key_types = (kind,)
        transport.start_client(timeout=BANNER_S)
        return transport.get_remote_server_key()
    except paramiko.ssh_exception.IncompatiblePeer:
        return None
    except (paramiko.SSHException, EOFError, OSError) as error:
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
    Pin the key of *host* that has fingerprint *mark*; its kind (``ssh-ed25519``).

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
            key_fingerprint = fingerprint(host_key.asbytes())
            if key_fingerprint == wanted_fingerprint.rstrip("="):
                write_pin(host, port, f"{host_key.get_name()} {host_key.get_base64()}")
                return str(host_key.get_name())
            offered[key_fingerprint] = host_key.get_name()
    keys = ", ".join(f"{key_fingerprint} ({kind})" for key_fingerprint, kind in offered.items())
    raise ClusterError(
        f"{host} has no key with fingerprint {wanted_fingerprint}; it has {keys}"
        if offered
        else f"{host} shows no key of a kind that is known here",
        where=f"{host}, port {port}",
        fix="ask the host's administrator: another fingerprint means another host, or an attack",
    )
