"""Ids that a cluster gives: they become parts of paths and addresses, so no other text may."""

from __future__ import annotations

import re

from harness.errors import ClusterError

_APPLICATION = re.compile(r"application_\d{1,20}_\d{1,10}", re.ASCII)
CONTAINER = re.compile(r"container_[0-9e_]{1,80}", re.ASCII)
LOG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}", re.ASCII)


def application_name(text: str) -> str:
    """*text*, if it is the id of an application."""
    if not _APPLICATION.fullmatch(text):
        raise ClusterError(
            f"{text!r} is no id of an application",
            where="logs of a job's containers",
            fix="an id looks like application_1700000000000_0001",
        )
    return text
