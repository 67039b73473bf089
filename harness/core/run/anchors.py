"""
Telling somebody outside what a run has sealed: a command of the user's, and what it answers.

The command gets 64 hexadecimal digits as its last argument, and whatever it prints is kept.  One
that does not answer stops no measurement: then the run is not anchored, and says so.  It stands in
no experiment, as these travel, and a command in one would be a stranger's.
"""

from __future__ import annotations

import base64
import shlex
import subprocess
import time

from collections.abc import Callable
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

Say = Callable[[str], None]


def anchor_seal(run: Run, command: str, say: Say) -> None:
    """Anchor the seal of *run* before its first scored trial; not where one has been measured."""
    sha256 = run.seal.sha256()
    known = read_anchor(run, "seal")
    if known is not None and known.sha256 == sha256:
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
        say(f"not anchored: {answered.error}; the run goes on")
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
            if not answer.strip():
                problem = "it printed nothing"
            elif len(answer) > MOST_ANSWER_BYTES:
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
    """Words of a *command*, as a shell would take them; `SpecError`: a quotation has no end."""
    if len(command) > _MOST_COMMAND:
        what = f"the command has {len(command)} characters, and {_MOST_COMMAND} are the most"
        raise SpecError(what, where="--anchor", fix="put it into a script, and name that")
    try:
        return shlex.split(command)
    except ValueError as error:
        what = f"'{excerpt(command)}' is no command: {str(error).lower()}"
        raise SpecError(what, where="--anchor", fix="close its quotation marks") from error


def _problem(command: str, sha256: str, output: IO[bytes], errors: IO[bytes]) -> str:
    """Why a command gave no answer; empty: it ended well, and *output* has what it printed."""
    try:
        ended = subprocess.run(
            [*words_of(command), sha256],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {LIMIT_S:.0f} s"
    except (OSError, ValueError) as error:  # a NUL in it
        return str(getattr(error, "strerror", error) or error).lower()
    if ended.returncode == 0:
        return ""
    errors.seek(0)
    printed = errors.read(MOST_ANSWER_BYTES).decode(errors="replace").strip().splitlines()
    last_line = printed[-1] if printed else "it says nothing"
    return f"status {ended.returncode}: {excerpt(last_line, 200)}"
