"""
The image of a node: built on the engine when a cluster first asks for it, or its inputs changed.

    python -m harness.providers.docker.image                build it unless it is there
    python -m harness.providers.docker.image import TAG     an image of a whole root, a tar on stdin

Nothing is pulled unsaid: see `harness.providers.docker.base`.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import sys
import tarfile
import tempfile

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.errors import ClusterError, HarnessError, SpecError
from harness.hadoop_home.archive import CLASS_LIST, TASK_LIST, lambda_file, lambdas_of
from harness.hadoop_home.checksums import file_digest
from harness.hadoop_home.home import JAR_TIME, WOVEN, HadoopHome
from harness.providers import state as states
from harness.providers.docker import base as docker_base
from harness.providers.docker.base import SOURCE, is_there, say
from harness.providers.docker.engine import LABEL, Engine
from harness.providers.host import printable

IMAGE = "mapreduce-harness/node"
HOME, JAVA = "/opt/hadoop", "/opt/java"
ARCHIVE, TASKS_ARCHIVE = f"{HOME}/classes.jsa", f"{HOME}/tasks.jsa"
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_LIMIT_S = 1800.0
_TOLD = 25  # lines of a failed build

Entries = dict[str, Path | bytes | None]


def ensure(engine: Engine, home: HadoopHome) -> str:
    """The image for nodes with *home*, by its name; built, with a word about it, unless there."""
    entries = context(home)
    digest = digest_of(entries, home)
    name = f"{IMAGE}:{digest[:12]}"
    if not is_there(engine, name):
        with _one_at_a_time():
            if not is_there(engine, name):
                _build(engine, name, digest, entries)
    return name


# what goes in


def context(home: HadoopHome, environment: Mapping[str, str] = os.environ) -> Entries:
    """Name -> file or content of all that the build sees; `None` stands for a folder."""
    entries: Entries = {
        "Dockerfile": SOURCE / "Dockerfile", "lists/dump": SOURCE / "dump",
        "home/path.jar": home.path_jar, "ca": None, "trace": None,
    }  # fmt: skip
    entries |= {f"home/{jar}": home.path / jar for jar in home.sums}
    for path in sorted((home.path / "etc").rglob("*")):
        entries[f"home/{path.relative_to(home.path)}"] = None if path.is_dir() else path
    if home.trace_path_jar is not None:
        entries["trace/path-trace.jar"] = home.trace_path_jar
        entries[f"trace/{WOVEN}"] = home.path / WOVEN
    for name, file in (("classes", CLASS_LIST), ("tasks", TASK_LIST)):
        text = file.read_text() if file.is_file() else ""
        more = "".join(f"{line}\n" for line in lambdas_of(_LAMBDAS, text.splitlines()))
        entries[f"lists/{name}.lst"] = text.encode()
        entries[f"lists/{name}-lambdas.lst"] = (text + more).encode() if more else b""
    return entries | _authorities(environment)


_LAMBDAS = lambda_file("17")


def _authorities(environment: Mapping[str, str]) -> Entries:
    """Certificates of private authorities, from the folder ``HARNESS_EXTRA_CA``."""
    folder = environment.get("HARNESS_EXTRA_CA")
    if not folder:
        return {}
    files = sorted(Path(folder).glob("*.crt"))
    if not files:
        raise SpecError(
            f"no certificate (*.crt) in {folder!r:.200}",
            where="HARNESS_EXTRA_CA",
            fix="name the folder of your network's authorities, or leave the variable out",
        )
    return {f"ca/{file.name}": file for file in files}


def digest_of(entries: Entries, home: HadoopHome) -> str:
    """Hash of all that decides what the image holds, but for what the base's registry changes."""
    state = hashlib.sha256(os.environ.get("HARNESS_DOCKER_BASE", "").encode())
    for name, content in sorted(entries.items()):
        if isinstance(content, bytes):
            found = hashlib.sha256(content).hexdigest()
        elif content is None:
            found = ""
        else:  # the jars are verified already
            found = home.sums.get(name.removeprefix("home/")) or file_digest(content)
        state.update(f"{name} {found}\n".encode())
    return state.hexdigest()


def write_context(entries: Entries, file: Any) -> None:
    """Write the archive that the engine builds from; equal files make equal archives."""
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, content in sorted(entries.items()):
            info = tarfile.TarInfo(name)
            info.mtime, info.mode = JAR_TIME, 0o644
            if content is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(info)
            elif isinstance(content, bytes):
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            else:
                with content.open("rb") as stream:
                    info.size = os.fstat(stream.fileno()).st_size
                    archive.addfile(info, stream)


# what comes out


def _build(engine: Engine, name: str, digest: str, entries: Entries) -> None:
    base, origin = docker_base.find(engine)
    say(f"building the image of a node, {name} (once, a minute or two)")
    say(f"its base is {base}, {origin}")
    proxies = {n: os.environ[n] for n in _PROXIES if os.environ.get(n)}
    with tempfile.TemporaryFile(prefix="harness-image-") as file:
        write_context(entries, file)
        file.seek(0)
        with engine.asked(f"building {name}"):
            events = engine.client.api.build(
                fileobj=file, custom_context=True, tag=name, decode=True, rm=True, forcerm=True,
                network_mode="host", timeout=_LIMIT_S, buildargs={"BASE": base, **proxies},
                labels={LABEL: "image", f"{LABEL}.inputs": digest, f"{LABEL}.base": base},
            )  # fmt: skip
            follow(events, name)
    if not is_there(engine, name):
        raise ClusterError(
            f"the engine has built no image {name}",
            where=f"Docker engine at {engine.address}",
            fix="read the engine's log",
        )


def follow(events: Iterator[Mapping[str, Any]], name: str) -> None:
    """Tell each step of a build as it comes; `ClusterError` with the last lines of a failed one."""
    last: deque[str] = deque(maxlen=_TOLD)
    for event in events:
        lines = str(event.get("stream", "")).splitlines()
        last.extend(printable(line) for line in lines if line.strip())
        for line in lines:
            if line.startswith("Step "):
                say(line[:120])
        if "error" in event:
            raise _failed(str(event["error"]), list(last), name)


def _failed(said: str, last: Sequence[str], name: str) -> ClusterError:
    full = "no space left" in said or any("no space left" in line.lower() for line in last)
    return ClusterError(
        "\n".join(["the image of a node was not built:", *last, printable(said)]),
        where=f"building {name}",
        fix="make room on the engine's disk: docker system df, docker system prune"
        if full
        else "the last lines above name the command that failed; behind a network with an "
        "authority of its own: HARNESS_EXTRA_CA=/folder/of/certificates",
    )


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Let a second harness of this user wait: it then finds the image."""
    with (states.clusters_folder().parent / "docker-image.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another harness builds the image, waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def import_root(engine: Engine, tag: str, stream: Any) -> None:
    """Make an image of a whole file system, a tar that comes in *stream*."""
    repository, _, version = tag.rpartition(":")
    pieces = iter(lambda: stream.read(2**20), b"")
    with engine.asked(f"importing {tag}"):
        engine.client.api.import_image_from_stream(
            pieces, repository=repository, tag=version, changes=["ENV LANG=C.UTF-8"]
        )


def main(arguments: Sequence[str]) -> None:
    """Entry of ``python -m harness.providers.docker.image``."""
    try:
        engine = Engine.connect()
        if arguments[:1] == ["import"]:
            import_root(engine, arguments[1], sys.stdin.buffer)
            say(f"{arguments[1]} is on the engine at {engine.address}")
        else:
            say(f"ready: {ensure(engine, HadoopHome.find())}")
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(error.exit_status) from None


if __name__ == "__main__":
    main(sys.argv[1:])
