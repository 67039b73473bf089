"""
Single cases that somebody found from outside, as commands: each ends with one clear error, in time.
"""

import io
import os
import random
import socket
import tarfile
import threading
import time

from contextlib import suppress

import pytest

from harness.anchoring import stamp
from harness.base.errors import DataError, MachineError
from harness.cli import main
from harness.clusters.ssh import connection
from harness.core.store.extract import extract
from harness.models import EARLIER_NAMES
from tests.hostile.targets import spoken

pytestmark = pytest.mark.process


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """
    A state folder of the test's own.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def said(capsys):
    """
    The status of a command line, and what it says, which is fit for a terminal.
    """

    def run(*words):
        status = main([*map(str, words)])
        printed = capsys.readouterr()
        text = printed.out + printed.err
        spoken(text)
        assert "Traceback" not in text
        return status, text

    return run


def test_an_import_of_three_thousand_nested_folders(tmp_path, said):
    """
    Whatever the system refuses to look into has no history.
    """
    top = tmp_path / "deep"
    top.mkdir()
    folder = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("a", dir_fd=folder)
        below = os.open("a", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    try:
        status, text = said("import", top, "-o", tmp_path / "run")
        assert status == 7
        assert "there is no job history" in text
    finally:
        remove_nested(top)


def remove_nested(top):
    """
    Take folders apart from the innermost on: no path reaches down to it.
    """
    opened = [os.open(top, os.O_RDONLY)]
    with suppress(FileNotFoundError):
        while True:
            opened.append(os.open("a", os.O_RDONLY, dir_fd=opened[-1]))
            if len(opened) > 200:  # so many files may be open
                os.close(opened.pop(0))
    for folder in reversed(opened):
        with suppress(OSError):
            os.rmdir("a", dir_fd=folder)
        os.close(folder)
    if any(top.iterdir()):
        remove_nested(top)


@pytest.mark.parametrize("seed", range(4))
def test_trust_of_a_server_that_speaks_nonsense(seed, said, monkeypatch):
    """
    A first packet of random bytes, for whatever kind of key: status 4.
    """
    monkeypatch.setattr(connection, "BANNER_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        thread = threading.Thread(target=speak_nonsense, args=[server, seed], daemon=True)
        thread.start()
        fingerprint = f"SHA256:{'A' * 43}"
        status, text = said("trust", "127.0.0.1", "--port", port, "--fingerprint", fingerprint)

    assert status == 4
    assert "127.0.0.1" in text


def speak_nonsense(server, seed):
    """
    Greet as an SSH server does, and send a KEXINIT that nobody can read.
    """
    chance = random.Random(seed)
    with suppress(OSError):
        while True:
            peer, _ = server.accept()
            body = b"\x14" + chance.randbytes(250)
            padding = 16 - (len(body) + 5) % 8
            size = (len(body) + padding + 1).to_bytes(4, "big")
            with peer, suppress(OSError):
                peer.sendall(b"SSH-2.0-x\r\n" + size + bytes([padding]) + body + bytes(padding))
                peer.recv(2**16)


def test_a_pipe_as_archive(tmp_path, said):
    """
    Nobody waits for its other end.
    """
    pipe = tmp_path / "run.tar.gz"
    os.mkfifo(pipe)
    status, text = said("unpack", pipe, "--results-dir", tmp_path / "results")

    assert status == 7
    assert "this is no file" in text


def test_a_member_called_dot(tmp_path):
    """
    A file has a name of its own; a folder may be that of the archive.
    """
    for kind, is_refused in ((tarfile.REGTYPE, True), (tarfile.DIRTYPE, False)):
        archive = tmp_path / f"a{kind.decode()}.tar"
        with tarfile.open(archive, "w") as tar:
            info = tarfile.TarInfo(".")
            info.type = kind
            tar.addfile(info, io.BytesIO(b""))
        target = tmp_path / f"into{kind.decode()}"
        if is_refused:
            with pytest.raises(DataError, match="is not a name of results"):
                extract(archive, target)
        else:
            extract(archive, target)


MODEL = """
class Mine:
    name = {name}

    def predict(self, profile, configuration, cluster, job_input):
        return {{"job_s": 1.0 + job_input.num_splits}}
"""
NAMES = {
    "a path": "../../../tmp/x",
    "nothing": "",
    "one of ours": "prophet",
    "an earlier one of ours": min(EARLIER_NAMES),
    "long": "x" * 5000,
    "escapes": "\x1b]0;x\x07\x1b[31mred",
    "turned around": "\u202ex",
    "a formula": "=1+1",
    "markup": "<script>",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_that_no_model_can_have(name, tmp_path, said):
    """
    Checking it says so, as predicting by it would.
    """
    path = tmp_path / "mine.py"
    path.write_text(MODEL.format(name=ascii(name)))
    status, text = said("check", f"{path}:Mine")

    assert status == 2
    assert len(text) < 1000
    assert 'name = "..."' in text


@pytest.mark.parametrize("command", ["harness 'anchor", "x" * 5000], ids=["open", "long"])
def test_a_command_of_anchors_that_is_none(command, tmp_path, said):
    """
    It is refused before anything is measured.
    """
    path = tmp_path / "e.yaml"
    path.write_text("schema: 1\n")
    status, text = said("run", path, "--anchor", command)

    assert status == 2
    assert "--anchor" in text


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x"),
        (b"HTTP/1.1 500 No\r\nContent-Length: 9999\r\n\r\n", b"x"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["headers", "a body", "a refusal", "continue"],
)
def test_an_authority_that_trickles_is_given_up(start, piece, monkeypatch):
    """
    Each byte comes in time, and the whole of it does not.
    """
    monkeypatch.setattr(stamp, "_LIMIT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        threading.Thread(target=trickle, args=[server, start, piece], daemon=True).start()
        began_s = time.monotonic()
        with pytest.raises(MachineError, match="no stamp"):
            stamp.ask_authority(f"http://127.0.0.1:{port}/tsr", "ab" * 32)

    assert time.monotonic() - began_s < 10


def trickle(server, start, piece):
    """
    Answer one request, piece by piece, until the other side has enough.
    """
    peer, _ = server.accept()
    with peer, suppress(OSError):
        peer.recv(2**16)
        peer.sendall(start)
        while True:
            peer.sendall(piece)
            time.sleep(0.02)
