"""
Telling somebody outside what a run has sealed: a command of the user's, and what it answers.

The command gets 64 hexadecimal digits as its last argument, and whatever it prints is kept.  One
that does not answer stops no measurement: then the run is not anchored, and says so.  It stands in
no experiment, as these travel, and a command in one would be a stranger's.

Readers see the name of who was told (`blind, anchored by NAME`): the one that the user gives, else
the one in a stamp, else the host of the address in the command, else the program's.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple

from harness.base.errors import SpecError
from harness.base.hadoop.secrets import SECRETS
from harness.base.text import excerpt
from harness.core.store import Run
from harness.core.store.anchors import (
    About,
    Anchor,
    name_of_answer,
    name_of_command,
    read_anchor,
    stamp_problem,
    write_anchor,
)

LIMIT_S = 60.0
MOST_ANSWER_BYTES = 2**18
_MOST_COMMAND = 4096
_MOST_NAME = 100
_MOST_NONCE = 200
_MOST_WRITTEN = 2**26  # bytes of a file, what it prints too
_SCRIPT = (".sh", ".bash", ".py", ".pl", ".rb", ".js", ".exe", ".jar")
_STARTERS = frozenset(
    {"bash", "dash", "env", "node", "perl", "python", "python3", "ruby", "sh", "ssh", "sudo", "zsh"}
)

Say = Callable[[str], None]


class Notary(NamedTuple):
    """Who is told: the *command* that does so, and the *name* that readers see, if one is given."""

    command: str = ""
    name: str = ""


def anchor_seal(run: Run, notary: Notary, say: Say) -> None:
    """Anchor the seal of *run* before its first scored trial; not where one has been measured."""
    sha256 = run.seal.sha256()
    earlier_anchor = read_anchor(run, "seal")
    if earlier_anchor is not None and earlier_anchor.sha256 == sha256:
        return
    if not any(record.trial.is_scored for record in run.trials().values()):
        anchor(run, "seal", sha256, notary, say)


def anchor(run: Run, about: About, sha256: str, notary: Notary, say: Say) -> None:
    """Tell the *notary* the *sha256*, and keep the answer; without a command, show the digits."""
    if not notary.command:
        say(f"publish this line now, and nobody can say that the {about} came later: {sha256}")
        return
    answered = ask(about, sha256, notary)
    write_anchor(run, answered)
    if answered.error:
        say(f"not anchored: {answered.error}; the run goes on: publish this line now: {sha256}")
        return
    say(f"anchored by {answered.told}: {answered.command} was told {sha256}")
    if problem := stamp_problem(answered):
        say(f"warning: this counts as no anchor: {problem}")


def ask(about: About, sha256: str, notary: Notary) -> Anchor:
    """Run the command of *notary* without a shell, bounded in time and in what it prints."""
    command, name = notary
    asked_s = time.time()
    answer = b""
    with TemporaryFile() as output, TemporaryFile() as errors:
        problem = _problem(command, sha256, output, errors)
        if not problem:
            output.seek(0)
            answer = output.read(MOST_ANSWER_BYTES + 1)
            if len(answer) > MOST_ANSWER_BYTES:
                problem = f"it printed more than {MOST_ANSWER_BYTES} bytes"
    cleaned = SECRETS.clean(command)
    if problem:
        answer = b""
    return Anchor(
        about=about,
        sha256=sha256,
        command=cleaned,
        asked_s=round(asked_s, 3),
        answered_s=round(time.time(), 3),
        answer=base64.b64encode(answer).decode(),
        error=SECRETS.clean(f"{cleaned}: {problem}") if problem else "",
        name=SECRETS.clean(name or name_of_answer(cleaned, answer, sha256)),
    )


def require_name(name: str) -> None:
    """`SpecError` where readers could not take *name* for who was told."""
    fix = f"write who is told, in one line of at most {_MOST_NAME} characters: 'Example Notary'"
    where = "--anchor-name"
    _require_line(name, _MOST_NAME, where, fix)
    if "/" in name:
        raise SpecError(f"'{excerpt(name)}' is a path or an address", where=where, fix=fix)


def require_nonce(text: str) -> None:
    """`SpecError` where *text*, what nobody knew before, is no line that a seal can show."""
    fix = f"write one line of at most {_MOST_NONCE} characters: a headline, or the hash of a page"
    _require_line(text, _MOST_NONCE, "--not-before", fix)


def _require_line(text: str, most_chars: int, where: str, fix: str) -> None:
    """`SpecError`, with a *fix*, where *text* is no printable line of so many characters."""
    if len(text) > most_chars:
        what = f"it has {len(text)} characters, and {most_chars} are the most"
        raise SpecError(what, where=where, fix=fix)
    if not text.strip() or not text.isprintable():
        raise SpecError(f"'{excerpt(text)}' is no line that can be shown", where=where, fix=fix)


def unclear_name(notary: Notary) -> str:
    """What readers would see of *notary*, where they could not judge it; empty: they can."""
    if notary.name or not notary.command:
        return ""
    name = name_of_command(notary.command)
    words = shlex.split(notary.command)
    is_address = "://" in notary.command
    is_path = not is_address and "/" in words[0]
    is_script = name.lower().endswith(_SCRIPT) or name in _STARTERS
    if _is_loopback(name) or is_path or (is_script and not is_address):
        return name
    return ""


def _is_loopback(host: str) -> bool:
    """Whether *host* is this machine, or any."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def words_of(command: str) -> list[str]:
    """
    Words of a *command*, as a shell would take them, the first one the path of a program.

    `SpecError`: a quotation has no end, or there is no such program.
    """
    if len(command) > _MOST_COMMAND:
        what = f"the command has {len(command)} characters, and {_MOST_COMMAND} are the most"
        raise SpecError(what, where="--anchor", fix="put it into a script, and name that")
    try:
        name, *rest = shlex.split(command)
    except ValueError as error:
        what = f"'{excerpt(command)}' is no command: {str(error).lower()}"
        raise SpecError(what, where="--anchor", fix="close its quotation marks") from error
    # Whoever types .venv/bin/harness has none in his PATH, and means the one that runs.
    own_program = Path(sys.executable).with_name(name) if name == "harness" else Path(name)
    program = shutil.which(name) or shutil.which(str(own_program))
    if program is None:
        what = f"there is no program '{excerpt(name)}'"
        raise SpecError(what, where="--anchor", fix="give its path, and try it by hand first")
    return [program, *rest]


def _problem(command: str, sha256: str, output: IO[bytes], errors: IO[bytes]) -> str:
    """Why a command gave no answer; empty: it ended well, and *output* has what it printed."""
    try:
        started = subprocess.Popen(
            [*words_of(command), sha256],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
    except SpecError as error:
        return error.what
    except (OSError, ValueError) as error:  # a NUL in it
        return str(getattr(error, "strerror", error) or error).lower()
    with started:
        try:
            with suppress(ProcessLookupError):  # it has ended already
                resource.prlimit(started.pid, resource.RLIMIT_FSIZE, (_MOST_WRITTEN,) * 2)
            status = started.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            return f"no answer within {LIMIT_S:.0f} s"
        finally:
            with suppress(ProcessLookupError):  # what it has started ends with it
                os.killpg(started.pid, signal.SIGKILL)
    if status == 0:
        return ""
    errors.seek(0)
    printed = errors.read(MOST_ANSWER_BYTES).decode(errors="replace").strip().splitlines()
    last_line = printed[-1] if printed else "it says nothing"
    return f"status {status}: {excerpt(last_line, 200)}"
