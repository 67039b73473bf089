"""
Telling somebody outside what a run has sealed: a command of the user's, and what it answers.

The command gets 64 hexadecimal digits as its last argument, and whatever it prints is kept.  One
that does not answer stops no measurement: then the run is not anchored, and says so.  It stands in
no experiment, as these travel, and a command in one would be a stranger's.
"""

from __future__ import annotations

import base64
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
from typing import IO

from harness.base.errors import SpecError
from harness.base.hadoop.secrets import SECRETS
from harness.base.text import excerpt
from harness.core.store import Run
from harness.core.store.anchors import About, Anchor, read_anchor, write_anchor

LIMIT_S = 60.0
MOST_ANSWER_BYTES = 2**18
_MOST_COMMAND = 4096
_MOST_WRITTEN = 2**26  # bytes of a file, what it prints too

Say = Callable[[str], None]


def anchor_seal(run: Run, command: str, say: Say) -> None:
    """Anchor the seal of *run* before its first scored trial; not where one has been measured."""
    sha256 = run.seal.sha256()
    earlier_anchor = read_anchor(run, "seal")
    if earlier_anchor is not None and earlier_anchor.sha256 == sha256:
        return
    if not any(record.trial.is_scored for record in run.trials().values()):
        anchor(run, "seal", sha256, command, say)


def anchor(run: Run, about: About, sha256: str, command: str, say: Say) -> None:
    """Tell the *command* the *sha256*, and keep its answer; without a command, show the digits."""
    if not command:
        say(f"publish this line now, and nobody can say that the {about} came later: {sha256}")
        return
    answered = ask(about, sha256, command)
    write_anchor(run, answered)
    if answered.error:
        say(f"not anchored: {answered.error}; the run goes on: publish this line now: {sha256}")
    else:
        say(f"anchored: {answered.command} was told {sha256}")


def ask(about: About, sha256: str, command: str) -> Anchor:
    """Run the *command* without a shell, bounded in time and in what it prints."""
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
    return Anchor(
        about=about,
        sha256=sha256,
        command=cleaned,
        asked_s=round(asked_s, 3),
        answered_s=round(time.time(), 3),
        answer="" if problem else base64.b64encode(answer).decode(),
        error=SECRETS.clean(f"{cleaned}: {problem}") if problem else "",
    )


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
