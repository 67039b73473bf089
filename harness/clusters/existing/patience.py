"""Requests whose answers are waited for no longer, in all, than the documented time."""

from __future__ import annotations

from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool

from harness.clusters.node.transport import TooSlowError, patient


class PatientConnection(HTTPConnection):
    """A connection whose waits are counted: for headers, refusals and bodies alike."""

    def connect(self) -> None:
        """Connect, and count each wait from then on."""
        super().connect()
        assert self.sock is not None
        each_s = self.sock.gettimeout() or 0.0
        self.sock = patient(self.sock, each_s)


class PatientPool(HTTPConnectionPool):
    """Connections of that kind to one address."""

    ConnectionCls = PatientConnection


class PatientAdapter(HTTPAdapter):
    """Requests by connections of that kind."""

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        """Make the pools."""
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": PatientPool}


def slowness_in(error: BaseException) -> TooSlowError | None:
    """Give what made *error*, where that is that an answer came too slowly; `None`: it is not."""
    seen = list[BaseException]()
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        if isinstance(cause, TooSlowError):
            return cause
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
    return None
