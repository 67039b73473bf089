"""``harness trust``: pin the key of a host."""

from __future__ import annotations

import click


@click.command("trust")
@click.argument("host")
@click.option("--fingerprint", required=True, help="The host's fingerprint: SHA256:...")
@click.option("--port", type=click.IntRange(1, 65535), default=22, show_default=True)
def trust(host: str, fingerprint: str, port: int) -> None:
    """
    Pin the SSH key of HOST, if it has the fingerprint that you give.

    Take the fingerprint from whoever runs the host, or from its console, never from the network:
    ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub prints it. A key pinned before is replaced.

    \b
    Example:
        harness trust node1 --fingerprint SHA256:Hq4Ri3tYD5rGdYMTgVfqnjYhHpyFHfNiqCOSxfkxuM0
    """
    from harness.providers.ssh.connection import trust as pin_key
    from harness.providers.ssh.pins import pins_file

    kind = pin_key(host, fingerprint, port)
    click.echo(f"{host}: {kind} key pinned in {pins_file()}", err=True)
