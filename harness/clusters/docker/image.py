"""
The image of a node: built on the engine when a cluster first needs it, or when its inputs changed.

It is built on any Debian 12 or newer, the first of: the image that ``HARNESS_DOCKER_BASE`` names;
Debian's or our own (of ``docker/base``) where the engine has it; Debian's, pulled.  Each step is
reported.
"""

from __future__ import annotations

import hashlib
import os
import queue
import sys
import tempfile
import threading

from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.base.errors import ClusterError, MachineError, SpecError
from harness.base.text import excerpt, printable
from harness.clusters import archives
from harness.clusters import state as states
from harness.clusters.archives import Entries
from harness.clusters.docker.engine import LABEL, Engine, EngineError
from harness.clusters.hadoop_home.home import (
    CLASS_LIST,
    INSTRUMENTED,
    TASK_LIST,
    HadoopHome,
    file_digest,
)
from harness.clusters.hadoop_home.setup import one_at_a_time
from harness.clusters.node.archive import lambdas_file, lambdas_of

IMAGE = "mapreduce-harness/node"
SOURCE = Path(__file__).resolve().parents[3] / "docker"
DEBIAN = "debian:bookworm-slim"
OWN = "mapreduce-harness/base:bookworm"
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_LAMBDAS = lambdas_file(CLASS_LIST.parent, "17")
_BUILD_LIMIT_S = 1800.0
_LAST_LINES = 25  # of a failed build
_SILENCE_S = 60.0  # an engine that reaches no registry reports it after some 15 s, or never


def report(text: object) -> None:
    """Write a line for people who wait."""
    sys.stderr.write(f"docker: {printable(text)}\n")


def is_there(engine: Engine, image_name: str) -> bool:
    """Whether the engine has an image."""
    try:
        with engine.translate_errors(f"image {image_name}"):
            engine.client.images.get(image_name)
    except EngineError as error:
        if error.status == 404:
            return False
        raise
    return True


def ensure(engine: Engine, home: HadoopHome) -> str:
    """Name of the image for nodes with *home*, which is built unless the engine has it."""
    entries = context(home)
    digest = digest_of(entries, home)
    image_name = f"{IMAGE}:{digest[:12]}"
    if is_there(engine, image_name):
        return image_name
    lock_file = states.clusters_folder().parent / "docker-image.lock"
    with one_at_a_time(lock_file, report, "another harness builds the image, waiting for it"):
        if not is_there(engine, image_name):
            _build(engine, image_name, digest, entries)
    return image_name


def context(home: HadoopHome, environment: Mapping[str, str] = os.environ) -> Entries:
    """File or content of all that the build sees, by name; `None` stands for a folder."""
    entries: dict[str, Path | bytes | None] = {
        "Dockerfile": SOURCE / "Dockerfile",
        "lists/dump": SOURCE / "dump",
        "home/path.jar": home.path_jar,
        "home/fence.jar": home.path / "fence.jar",
        "ca": None,
        "trace": None,
    }
    entries |= {f"home/{jar}": home.path / jar for jar in home.sums}
    for path in sorted((home.path / "etc").rglob("*")):
        entries[f"home/{path.relative_to(home.path)}"] = None if path.is_dir() else path
    if home.trace_path_jar is not None:
        entries["trace/path-trace.jar"] = home.trace_path_jar
        entries[f"trace/{INSTRUMENTED}"] = home.path / INSTRUMENTED
    entries |= _class_lists()
    if folder := environment.get("HARNESS_EXTRA_CA"):  # certificates of private authorities
        certificates = sorted(Path(folder).glob("*.crt"))
        if not certificates:
            raise SpecError(
                f"no certificate (*.crt) in {folder!r:.200}",
                where="HARNESS_EXTRA_CA",
                fix="name the folder of your network's authorities, or leave the variable out",
            )
        entries |= {f"ca/{certificate.name}": certificate for certificate in certificates}
    return entries


def _class_lists() -> dict[str, bytes]:
    """Lists of the classes in archives, by name in the build; empty ones where there are none."""
    lists = {}
    for list_name, class_list in (("classes", CLASS_LIST), ("tasks", TASK_LIST)):
        class_names = class_list.read_text() if class_list.is_file() else ""
        lambdas = "".join(f"{line}\n" for line in lambdas_of(_LAMBDAS, class_names.splitlines()))
        with_lambdas = class_names + lambdas if lambdas else ""
        lists[f"lists/{list_name}.lst"] = class_names.encode()
        lists[f"lists/{list_name}-lambdas.lst"] = with_lambdas.encode()
    return lists


def digest_of(entries: Entries, home: HadoopHome) -> str:
    """Hash of all that decides what the image holds, but for what the base's registry changes."""
    state = hashlib.sha256(os.environ.get("HARNESS_DOCKER_BASE", "").encode())
    for entry_name, content in sorted(entries.items()):
        digest = ""
        if isinstance(content, bytes):
            digest = hashlib.sha256(content).hexdigest()
        elif content is not None:  # the jars are verified already
            digest = home.sums.get(entry_name.removeprefix("home/")) or file_digest(content)
        state.update(f"{entry_name} {digest}\n".encode())
    return state.hexdigest()


def _build(engine: Engine, image_name: str, digest: str, entries: Entries) -> None:
    base, origin = find_base(engine)
    report(f"building the image of a node, {image_name} (once, a minute or two)")
    report(f"its base is {base}, {origin}")
    proxies = {name: os.environ[name] for name in _PROXIES if os.environ.get(name)}
    with tempfile.TemporaryFile(prefix="harness-image-") as archive_file:
        archives.pack(dict(sorted(entries.items())), archive_file)
        archive_file.seek(0)
        with engine.translate_errors(f"building {image_name}"):
            events = engine.client.api.build(
                fileobj=archive_file,
                custom_context=True,
                tag=image_name,
                decode=True,
                rm=True,
                forcerm=True,
                network_mode="host",
                timeout=_BUILD_LIMIT_S,
                buildargs={"BASE": base, **proxies},
                labels={LABEL: "image", f"{LABEL}.inputs": digest, f"{LABEL}.base": base},
            )
            follow_build(events, image_name)
    if not is_there(engine, image_name):
        raise ClusterError(
            f"the engine has not built the image {image_name}",
            where=f"Docker engine at {engine.address}",
            fix="read the engine's log",
        )


def follow_build(events: Iterator[Mapping[str, Any]], image_name: str) -> None:
    """Report each step of a build; `ClusterError` with the last lines of a failed one."""
    last_lines: deque[str] = deque(maxlen=_LAST_LINES)
    for build_event in events:
        new_lines = str(build_event.get("stream", "")).splitlines()
        last_lines.extend(printable(log_line) for log_line in new_lines if log_line.strip())
        for log_line in new_lines:
            if log_line.startswith("Step "):
                report(log_line[:120])
        if "error" in build_event:
            last_lines.append(printable(build_event["error"]))
            is_full = any("no space left" in log_line.lower() for log_line in last_lines)
            raise ClusterError(
                "\n".join(["the image of a node was not built:", *last_lines]),
                where=f"building {image_name}",
                fix="free some space on the engine's disk: docker system df, docker system prune"
                if is_full
                else "the last lines above name the command that failed; in a network with its "
                "own certificate authority: HARNESS_EXTRA_CA=/folder/of/certificates",
            )


# the base


def find_base(engine: Engine, environment: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """The base, and where it is from, for people; `MachineError` where none can be had."""
    chosen = environment.get("HARNESS_DOCKER_BASE")
    for image_name in [chosen] if chosen else [DEBIAN, OWN]:
        if is_there(engine, image_name):
            return image_name, "which the engine has"
    image_name = chosen or DEBIAN
    report(f"the engine lacks {image_name}: pulling it (30 MB)")
    try:
        _pull(engine, image_name)
    except EngineError as error:
        raise MachineError(
            f"the base image {image_name} is not available: {error.what}",
            where=error.where,
            fix="sudo docker/base  (builds one with debootstrap), or name one that the engine has:"
            " HARNESS_DOCKER_BASE",
        ) from error
    return image_name, "pulled"


def _pull(engine: Engine, image_name: str) -> None:
    """Pull an image; `EngineError` where that fails, or nothing comes for `_SILENCE_S`."""
    from docker.utils import parse_repository_tag

    events: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()

    def pull() -> None:
        try:
            with engine.translate_errors(f"pulling {image_name}"):
                repository, tag = parse_repository_tag(image_name)  # without one, all are pulled
                tag = tag or "latest"
                for event in engine.client.api.pull(repository, tag, stream=True, decode=True):
                    events.put(event)
        except EngineError as error:
            events.put({"error": error.what})
        events.put(None)

    # by a thread: the client's library would wait for ever
    threading.Thread(target=pull, daemon=True, name="docker-pull").start()
    problem = ""
    try:
        while not problem and (pull_event := events.get(timeout=_SILENCE_S)) is not None:
            problem = excerpt(pull_event.get("error", ""), 500)
    except queue.Empty:
        problem = f"no registry has answered for {_SILENCE_S:g} s"
    if not problem and not is_there(engine, image_name):
        problem = f"the engine has not pulled {image_name}"
    if problem:
        raise EngineError(problem, where=f"Docker engine at {engine.address}, pulling {image_name}")
