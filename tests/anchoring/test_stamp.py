"""
Tests for `harness.anchoring.stamp`, with an authority of our own.
"""

import hashlib

import pytest

from harness.anchoring.stamp import ask_authority, read_stamp, verify_stamp
from harness.base.errors import EvidenceError, MachineError, SpecError
from harness.core.store.stamps import stamp_in
from tests.anchoring.authority import configure, make_certificates, openssl, serving, stamp

pytestmark = pytest.mark.process

DIGEST = "ab" * 32


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """
    Folder of an authority with its certificates.
    """
    return make_certificates(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def answer(authority):
    """
    Its answer to the digits.
    """
    with serving(lambda query: stamp(authority, query)) as url:
        return ask_authority(url, DIGEST)


def roots(folder):
    """
    Certificates that a reader believes.
    """
    return [(folder / "root.pem").read_bytes()]


def test_a_stamp_is_verified_without_a_network(authority, answer):
    """
    By the authority's root alone, which the answer does not bring.
    """
    found = verify_stamp(answer, DIGEST, roots(authority), "a stamp")
    assert found == read_stamp(answer, "a stamp")
    assert found.name == "CN=Clock"


def test_other_tools_verify_it_too(authority, answer):
    """
    Stamped are the digits as a text.
    """
    (authority / "digest").write_text(DIGEST)
    (authority / "kept.tsr").write_bytes(answer)
    verified = openssl(
        "ts", "-verify", "-data", "digest", "-in", "kept.tsr", "-CAfile", "root.pem",
        folder=authority,
    )  # fmt: skip
    assert b"OK" in verified


@pytest.mark.parametrize(
    ("digest", "root"),
    [("ba" * 32, "authority"), (DIGEST, "another")],
    ids=["another text", "another authority"],
)
def test_one_that_is_no_proof_is_refused(authority, answer, tmp_path, digest, root):
    """
    Of another seal, or by whom nobody believes.
    """
    believed = authority if root == "authority" else make_certificates(tmp_path / "another")
    with pytest.raises(EvidenceError, match="does not hold"):
        verify_stamp(answer, digest, roots(believed), "a stamp")


def test_a_signer_that_had_expired_is_refused(tmp_path):
    """
    Whatever it signs.
    """
    expired = make_certificates(tmp_path / "expired", days="-1")
    with serving(lambda query: stamp(expired, query)) as url:
        late = ask_authority(url, DIGEST)
    with pytest.raises(EvidenceError, match="does not hold"):
        verify_stamp(late, DIGEST, roots(expired), "a stamp")


def test_what_is_no_stamp_is_refused(authority):
    """
    Pages of errors, and what a command prints.
    """
    with serving(lambda _: b"<html>busy</html>") as url, pytest.raises(EvidenceError, match="no"):
        ask_authority(url, DIGEST)
    assert stamp_in(b"published as commit 5af1") == b""


def test_one_that_does_not_answer():
    """
    Its address is named.
    """
    with pytest.raises(MachineError, match="no stamp"):
        ask_authority("http://127.0.0.1:9/tsr", DIGEST)
    with pytest.raises(SpecError, match="no address"):
        ask_authority("ftp://example", DIGEST)


def test_several_certificates_in_any_order(tmp_path):
    """
    OpenSSL sends them as they stand in its file, and not as DER sorts them.
    """
    folder = make_certificates(tmp_path / "several")
    pems = [(folder / name).read_bytes() for name in ("root.pem", "signer.pem")]
    for number, order in enumerate((pems, pems[::-1])):
        (folder / f"chain{number}.pem").write_bytes(b"".join(order))
        configure(folder, certificates=f"chain{number}.pem")
        with serving(lambda query: stamp(folder, query)) as url:
            kept = ask_authority(url, DIGEST)
        assert verify_stamp(kept, DIGEST, roots(folder), "a stamp").name == "CN=Clock"
        changed = kept.replace(b"Clock", b"Klock", 1)  # within what is signed
        with pytest.raises(EvidenceError, match="does not hold"):
            verify_stamp(changed, DIGEST, roots(folder), "a stamp")


def test_an_authority_that_takes_another_hash(tmp_path):
    """
    It is asked once more, by SHA-256, and verified so.
    """
    folder = make_certificates(tmp_path / "older")
    configure(folder, digests="sha256")
    with serving(lambda query: stamp(folder, query)) as url:
        kept = ask_authority(url, DIGEST)
    assert hashlib.sha256(DIGEST.encode()).digest() in kept
    assert verify_stamp(kept, DIGEST, roots(folder), "a stamp").name == "CN=Clock"


def test_what_an_authority_says_reaches_the_user(tmp_path):
    """
    Whether in a refusal, or on a page of an error; bounded.
    """
    folder = make_certificates(tmp_path / "picky")
    configure(folder, digests="sha384")
    with (
        serving(lambda query: stamp(folder, query)) as url,
        pytest.raises(MachineError, match="Message digest algorithm is not supported") as caught,
    ):
        ask_authority(url, DIGEST)
    assert "SHA512 or SHA256" in caught.value.fix
    with (
        serving(lambda _: b"quota of today is used " * 999, status=429) as url,
        pytest.raises(MachineError, match="status 429: quota of today") as caught,
    ):
        ask_authority(url, DIGEST)
    assert len(caught.value.what) < 300


def test_an_answer_to_somebody_else(answer):
    """
    A stamp of other digits, or one that it gave before.
    """
    for digest in ("ba" * 32, DIGEST):
        with (
            serving(lambda _: answer) as url,
            pytest.raises(EvidenceError, match="something else than it was asked"),
        ):
            ask_authority(url, digest)
