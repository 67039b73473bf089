"""HTTP as the verbs speak it: one request to a daemon of Hadoop, one answer."""

import http.client
import json

from typing import Any, Dict, Optional

TIMEOUT_S = 60.0


class WebError(Exception):
    """A service refuses, with an HTTP status; 0 where it does not answer as HTTP."""

    def __init__(self, reason: str, status: int = 0) -> None:
        super().__init__(reason)
        self.status = status


def send(
    address: str,
    method: str,
    url_path: str,
    body: Any = None,
    *,
    headers: Optional[Dict[str, str]] = None,
    timeout_s: float = TIMEOUT_S,
) -> http.client.HTTPResponse:
    """
    Send one request to ``host:port``; the reply is not yet read.

    `OSError` where the connection fails, `WebError` where no HTTP comes back.  A DataNode that
    takes no more of a file answers before it hangs up: that refusal is returned.
    """
    connection = http.client.HTTPConnection(address, timeout=timeout_s)
    try:
        try:
            connection.request(method, url_path, body, dict(headers or {}, Connection="close"))
        except (BrokenPipeError, ConnectionResetError) as error:
            if body is None:
                raise
            return _early_refusal(connection, address, error)
        return connection.getresponse()
    except http.client.HTTPException as error:
        connection.close()
        raise WebError(f"{type(error).__name__}: {error}") from error
    except OSError:
        connection.close()
        raise


def _early_refusal(
    connection: http.client.HTTPConnection, address: str, error: OSError
) -> http.client.HTTPResponse:
    try:
        response = connection.getresponse()
        if response.status >= 400:
            return response
    except (OSError, http.client.HTTPException):
        pass  # the answer went with the connection
    raise WebError(f"{address} has hung up while it was sent a file") from error


def checked(response: http.client.HTTPResponse) -> http.client.HTTPResponse:
    """The reply, unless it is a refusal: that raises `WebError` with Hadoop's own message."""
    if response.status < 400:
        return response
    content = response.read()
    try:
        reason = json.loads(content.decode())["RemoteException"]["message"]
    except (ValueError, KeyError, TypeError):
        reason = content.decode(errors="replace")[:500] or response.reason
    raise WebError(reason.partition("\n")[0], response.status)


def read_json(response: http.client.HTTPResponse) -> Any:
    """Body of a reply as JSON."""
    return json.loads(response.read().decode())
