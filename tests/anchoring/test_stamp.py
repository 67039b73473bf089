"""
Tests for `harness.anchoring.stamp`, with an authority of our own.
"""

import pytest

from harness.anchoring.stamp import ask_authority, is_stamp, read_stamp, verify_stamp
from harness.base.errors import EvidenceError, MachineError, SpecError
from tests.anchoring.authority import make_certificates, openssl, serving, stamp

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
    assert "Clock" in found.name


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
    assert is_stamp(b"published as commit 5af1") == b""


def test_one_that_does_not_answer():
    """
    Its address is named.
    """
    with pytest.raises(MachineError, match="no stamp"):
        ask_authority("http://127.0.0.1:9/tsr", DIGEST)
    with pytest.raises(SpecError, match="no address"):
        ask_authority("ftp://example", DIGEST)
