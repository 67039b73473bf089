"""Where the secrets of an experiment file are read, and the key of their digests is kept."""

from __future__ import annotations

import os
import stat

from contextlib import suppress
from pathlib import Path
from secrets import token_bytes
from tempfile import NamedTemporaryFile

from harness.base.errors import SpecError
from harness.base.hadoop.secrets import SECRETS, Secrets
from harness.clusters.state import state_folder

_MOST_CHARACTERS = 2**16


def user_secrets() -> Secrets:
    """The secrets of this process, read with the rights of its user."""
    SECRETS.find_key = digest_key
    SECRETS.read = read_secret
    return SECRETS


def digest_key() -> bytes:
    """The key of this user's digests, made once: 32 bytes of a file that nobody else reads."""
    path = state_folder() / "digest-key"
    if not path.exists():
        with NamedTemporaryFile(dir=path.parent) as new:
            new.write(token_bytes(32))
            new.flush()
            with suppress(FileExistsError):  # another harness has just made one
                path.hardlink_to(new.name)
    return path.read_bytes()


def read_secret(kind: str, name: str) -> str:
    """Text of a variable (``env``) or of a ``file``; `SpecError` where it is not there, or open."""
    if kind == "env":
        if name in os.environ:
            return os.environ[name]
        raise SpecError(f"the variable {name} is not set", fix=f"export {name}=...")
    path = Path(name).expanduser()
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise SpecError(f"{name} is no plain file", fix="name a file that holds the value")
        if mode & stat.S_IROTH:
            what = f"others may read {name} (mode {stat.S_IMODE(mode):04o})"
            raise SpecError(what, fix=f"chmod o-r {name}")
        with path.open(encoding="utf-8", newline="") as stream:
            text = stream.read(_MOST_CHARACTERS + 1).removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SpecError(f"{name} cannot be read: {reason}", fix="check the path") from error
    if len(text) > _MOST_CHARACTERS:
        raise SpecError(f"{name} has more than {_MOST_CHARACTERS} characters", fix="check the path")
    return text
