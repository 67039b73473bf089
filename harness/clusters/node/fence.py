"""
What root does on a host before its daemons start: their account, its folders, the packet filter.

docs/clusters/hosts.md says what it lets through.  A first packet (SYN) of the account is marked in
its urgent pointer, which means nothing without its flag, and which routers do not touch.  The mark
is the cluster's own.  Whoever may write raw packets could set it, so what a host forwards, as for a
container behind it, reaches no host of the cluster with any.  An answer to a first packet carries
the uid of who listens, each later packet that of who has the socket.
"""

import hashlib
import json
import os
import pwd
import subprocess

from pathlib import Path
from typing import Any, Dict, Iterable

from .facts import find_tool

ACCOUNT = "mapreduce-harness"  # where we connect as root; otherwise whoever connects
_MARK = 0x4000000
_FIRST = "tcp flags & (syn | ack) == syn"
_NOT_AN_ANSWER = "tcp flags & (syn | ack) != (syn | ack) accept"
_DAEMON_PORTS = "tcp sport >= 1024"


def nonce_of(secret: str) -> int:
    """Give the mark of first packets in the cluster that has this *secret*: 16 bits, not 0."""
    digest = hashlib.sha256(f"fence {secret}".encode()).digest()
    return 1 + int.from_bytes(digest[:4], "big") % 0xFFFF


def rules(cluster: str, uid: int, addresses: Iterable[str], nonce: int) -> str:
    """
    Packet filter of a host, for nft.

    *addresses* are the cluster's, *uid* is the account's, *nonce* marks its first packets.
    """
    members = ", ".join(sorted(set(addresses)))
    table = f"table inet {ACCOUNT}-{cluster}"
    return f"""{table}
delete {table}
{table} {{
    chain outgoing {{
        type filter hook output priority 0; policy accept;
        meta l4proto != tcp accept
        oifname "lo" goto inside
        ip daddr {{ {members} }} goto inside
        meta skuid {uid} drop
        {_NOT_AN_ANSWER}
        meta skuid 0-4294967295 accept
        {_DAEMON_PORTS} drop
    }}
    chain inside {{
        {_FIRST} meta skuid {uid} tcp urgptr set {nonce}
        {_NOT_AN_ANSWER}
        ct mark & {_MARK} != 0 accept
        meta skuid {uid} drop
        meta skuid 0-4294967295 accept
        {_DAEMON_PORTS} drop
    }}
    chain incoming {{
        type filter hook input priority 0; policy accept;
        {_FIRST} tcp urgptr {nonce} ct mark set ct mark or {_MARK}
    }}
    chain passing {{
        type filter hook forward priority 0; policy accept;
        ip daddr {{ {members} }} {_FIRST} tcp urgptr != 0 drop
    }}
}}
"""


def prepare(plan: Dict[str, Any], plan_file: Path) -> None:
    """
    Make the account of *plan* where there is none, give it what it writes, set the packet filter.

    The plan has the account's numbers then, in its file, too.  Safe to repeat.
    """
    folder = Path(plan["folder"])
    base = Path(plan["base"])
    if plan["user"] == ACCOUNT:
        try:
            pwd.getpwnam(ACCOUNT)
        except KeyError:
            (base / "account-made").touch()  # so that it goes with our folder (`clear`)
            options = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
            nobody = ["--shell", "/usr/sbin/nologin", ACCOUNT]
            subprocess.run([find_tool("useradd"), *options, *nobody], check=True)
    entry = pwd.getpwnam(plan["user"])
    account = {"uid": entry.pw_uid, "gid": entry.pw_gid}
    for path in [*(folder / "nodes").rglob("*"), *folder.glob("conf/*/secret")]:
        os.chown(str(path), entry.pw_uid, entry.pw_gid, follow_symlinks=False)
    os.chown(str(folder), os.geteuid(), entry.pw_gid)
    folder.chmod(0o750)  # other users see nothing of the cluster, and the account changes no plan
    if plan["addresses"]:
        text = rules(plan["cluster"], entry.pw_uid, plan["addresses"], plan["nonce"])
        subprocess.run([find_tool("nft"), "-f", "-"], input=text.encode(), check=True)
    partial_file = plan_file.with_name(".plan.json")
    partial_file.write_text(json.dumps({**plan, "account": account}, indent=1))
    partial_file.replace(plan_file)
