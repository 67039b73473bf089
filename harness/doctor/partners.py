"""What some providers work with, and the clusters that are there."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import socket

from importlib.util import find_spec
from urllib.parse import urlsplit

from harness.doctor.asking import reason
from harness.doctor.finding import Finding
from harness.errors import HarnessError
from harness.providers import state as states
from harness.providers.existing import finding

_DOCKER_SOCKET = "unix:///var/run/docker.sock"


def docker() -> Finding:
    """A Docker engine that answers, at ``DOCKER_HOST`` or its usual socket."""
    address = os.environ.get("DOCKER_HOST") or _DOCKER_SOCKET
    try:
        version = docker_version(address)
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, PermissionError):
            fix = "add this user to the group docker, and log in again"
        elif os.environ.get("DOCKER_HOST"):
            fix = "unset DOCKER_HOST, or set it to unix://PATH or tcp://HOST:PORT of an engine"
        elif shutil.which("dockerd"):
            fix = "start the engine: sudo systemctl start docker"
        else:
            fix = "apt-get install -y docker.io"
        return Finding("docker", "note", f"no engine answers at {address}: {reason(error)}", fix)
    return Finding("docker", "ok", f"{version} at {address}")


def docker_version(address: str, limit_s: float = 3.0) -> str:
    """
    Version of the engine at *address* (``unix://PATH`` or ``tcp://HOST:PORT``).

    Raises `OSError`, `http.client.HTTPException` or `ValueError` where none answers.
    """
    parts = urlsplit(address)
    if parts.scheme not in ("unix", "tcp"):
        raise ValueError(f"{parts.scheme or 'no'} scheme: cannot ask it from here")
    connection = http.client.HTTPConnection(
        parts.hostname or "localhost", parts.port or 2375, timeout=limit_s
    )
    try:
        if parts.scheme == "unix":
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(limit_s)
            connection.sock.connect(parts.path)
        connection.request("GET", "/_ping")
        with connection.getresponse() as reply:
            reply.read(64)
        server = re.search(r"Docker/(\S+)", reply.getheader("Server") or "")
        if reply.status != http.client.OK:
            raise ValueError(f"status {reply.status}")
        return f"Docker {server[1]}" if server else "an engine"
    finally:
        connection.close()


def ssh() -> Finding:
    """What Ansible needs on this machine; hosts are asked when a cluster is started."""
    if find_spec("ansible_runner") is None:
        return Finding("ssh", "note", "no ansible-runner among Python's packages", "make setup")
    if shutil.which("ssh") is None:
        return Finding("ssh", "note", "no ssh", "apt-get install -y openssh-client")
    return Finding("ssh", "ok", "ansible-runner and ssh, for bare hosts")


def existing_cluster() -> Finding:
    """The cluster that ``HADOOP_CONF_DIR`` leads to, as far as it tells of itself."""
    try:
        text = finding.look()
    except HarnessError as error:
        return Finding("existing cluster", "lacking", error.what, error.fix)
    if not text:
        text, fix = "none: HADOOP_CONF_DIR is not set", "export HADOOP_CONF_DIR=/etc/hadoop/conf"
        return Finding("existing cluster", "note", text, fix)
    return Finding("existing cluster", "ok", text)


def clusters() -> Finding:
    """Clusters of this user that are up, or that left something behind."""
    names = states.known_names()
    if not names:
        return Finding("clusters", "ok", "none is up")
    return Finding("clusters", "note", f"there: {', '.join(names)}", "harness cluster down --all")
