"""
Pinned host keys: what gets into the file, and under which name.
"""

import stat

from base64 import b64encode
from hashlib import sha256

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ClusterError, HarnessError, SpecError
from harness.clusters.ssh.connection import host_name, pins_file, trust


def fingerprint(content):
    """
    Of a key, as ``ssh-keygen -l`` prints it.
    """
    return f"SHA256:{b64encode(sha256(content).digest()).decode().rstrip('=')}"


class Key:
    """
    A public key as the SSH library gives it.
    """

    def __init__(self, content, kind="ssh-ed25519"):
        self.content = content
        self.kind = kind

    @property
    def fingerprint(self):
        return fingerprint(self.content)

    def get_name(self):
        return self.kind

    def get_base64(self):
        return b64encode(self.content).decode()


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """
    A state folder of the test's own.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def server(*keys):
    """
    A server that has these keys.
    """
    return lambda _host, _port, kind: next((k for k in keys if k.kind == kind), None)


def pinned():
    """
    Lines of the file.
    """
    return pins_file().read_text().splitlines() if pins_file().exists() else []


def test_key_is_pinned_by_its_fingerprint():
    """
    Of several keys of a server only the one that was vouched for is pinned.
    """
    keys = Key(b"a"), Key(b"b", "ecdsa-sha2-nistp256")

    kind = trust("10.0.0.7", fingerprint(b"b"), fetch=server(*keys))

    assert (kind, pinned()) == ("ecdsa-sha2-nistp256", ["10.0.0.7 ecdsa-sha2-nistp256 Yg=="])


def test_other_key_is_refused_with_what_the_host_has():
    """
    A fingerprint that the host does not have leaves the file as it was.
    """
    with pytest.raises(ClusterError, match="it has " + fingerprint(b"a").replace("+", r"\+")):
        trust("10.0.0.7", fingerprint(b"b"), fetch=server(Key(b"a")))

    assert pinned() == []


def test_new_key_takes_the_place_of_the_old_one():
    """
    Other hosts, and other ports of the host, keep theirs.
    """
    for host, port, content in [
        ("a", 22, b"1"),
        ("a", 2222, b"2"),
        ("b", 22, b"3"),
        ("a", 22, b"4"),
    ]:
        trust(host, fingerprint(content), port, fetch=server(Key(content)))

    assert pinned() == [
        "[a]:2222 ssh-ed25519 Mg==", "b ssh-ed25519 Mw==", "a ssh-ed25519 NA==",
    ]  # fmt: skip


def test_file_is_its_owners_alone():
    """
    Nobody else may add a key.
    """
    trust("a", fingerprint(b"1"), fetch=server(Key(b"1")))

    assert stat.S_IMODE(pins_file().stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "mark", ["", "SHA256:short", "MD5:" + "0" * 43, "SHA256:" + "A" * 42 + "\n"]
)
def test_invalid_fingerprint_is_refused(mark):
    """
    The host is not even asked.
    """
    with pytest.raises(SpecError, match="not a valid fingerprint"):
        trust("a", mark, fetch=lambda *_: pytest.fail("it was asked"))


@pytest.mark.parametrize("name", ["node1", "node1.example.org", "10.0.0.7", "fe80::1", "a-b"])
def test_names_and_addresses_of_hosts(name):
    """
    What people write is taken as it is.
    """
    assert host_name(name) == name


@given(st.text(max_size=40))
def test_no_name_reaches_another_line_or_option(text):
    """
    A name is a word of few characters that begins with none of `-`, or it is refused.
    """
    try:
        name = host_name(text)
    except HarnessError:
        return

    assert set(name) <= set("-.:") | {c for c in name if c.isascii() and c.isalnum()}
    assert name[0] != "-"
