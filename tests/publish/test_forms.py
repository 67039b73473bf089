"""
Tests for `harness.pseudonyms.forms`: secrets that tasks print, by what they look like.
"""

import base64

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.pseudonyms.forms import conceal, encoded, secrets_in

LETTERS = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0iL"
# What a task may print, with the part that is secret; made so that no scanner takes them for real.
PRINTED = {
    "AWS_SECRET_ACCESS_KEY=" + LETTERS + "aB3dE6gH": LETTERS + "aB3dE6gH",
    "key AKIA" + "ABCDEFGH12345678" + " used": "AKIA" + "ABCDEFGH12345678",
    "token: gh" + "p_" + LETTERS + "abcd": "gh" + "p_" + LETTERS + "abcd",
    "glp" + "at-" + LETTERS: "glp" + "at-" + LETTERS,
    "xo" + "xb-123456789012-" + LETTERS: "xo" + "xb-123456789012-" + LETTERS,
    "ey" + "JhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl": "ey"
    "JhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl",
    "Authorization: Bearer " + LETTERS: LETTERS,
    "authorization: Basic dXNlcjpwYXNz": "dXNlcjpwYXNz",
    "X-Api-Key: " + LETTERS: LETTERS,
    "jdbc:postgresql://db/x?user=jo&password=hunter22": "hunter22",
    "jdbc:mysql://jo:hunter2@db:3306/x": "hunter2",
    "https://jo:hunter2@example.org/": "hunter2",
    "https://a.blob.core.windows.net/x?sv=2020&sig=" + LETTERS + "%3D": LETTERS + "%3D",
    "AccountKey=" + LETTERS + "==": LETTERS + "==",
    "password=correct-horse": "correct-horse",
    # hdfs-admin:hunter22, of which nothing says what it is
    "sent aGRmcy1hZG1pbjpodW50ZXIyMg== to": "aGRmcy1hZG1pbjpodW50ZXIyMg==",
    '{"client_secret": "' + LETTERS + '"}': LETTERS,
    "curl --token " + LETTERS: LETTERS,
    "b3BlbnNz" + "aC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ": "b3BlbnNz"
    "aC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ",
    "-----BEGIN OPENSSH PRIVATE" + " KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----":
    "-----BEGIN OPENSSH PRIVATE" + " KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----",
}  # fmt: skip
# What Hadoop prints every day.
HARMLESS = (
    "mapreduce.job.token.tracking.ids.enabled=false",
    "dfs.namenode.delegation.token.max-lifetime=604800000",
    "Kind: mapreduce.job, Service: job_1795293000123_0001, Ident: (token for hadoop)",
    "hadoop.security.credential.provider.path=jceks://file/etc/hadoop/x.jceks",
    "fs.s3a.secret.key=secret:0123456789abcdef",
    "token=true password=null secret=${env:SECRET}",
    "yarn.nodemanager.container.token: org.apache.hadoop.yarn.security.ContainerTokenIdentifier",
    "INFO [main] Executing with tokens: [Kind: YARN_AM_RM_TOKEN, Service: , Ident: (appAttemptId)]",
    "keytab=/etc/security/keytabs/nn.service.keytab",
    "key spill 3 of map 1; keys=524288",
    "classpath /opt/QgQgAAAA/QgQg org.apache.hadoop.mapreduce.Job aGVsbG8gd29ybGQgb2YgaGFkb29w",
)


@pytest.mark.parametrize(("text", "secret"), PRINTED.items())
def test_a_secret_is_known_by_its_form(text, secret):
    """
    It alone is replaced, what is around it stays, and it is told with its line.
    """
    line = f"first\n2026-11-30 10:00:00,123 INFO {text} more"
    concealed = line.replace(secret, f"<{len(secret)}>")
    assert conceal(line, lambda found: f"<{len(found)}>") == concealed
    assert [number for number, _ in secrets_in(line)] == [2]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text):
    """
    Names of properties and classes are full of such words.
    """
    assert conceal(text, lambda _: "<secret>") == text
    assert [*secrets_in(text)] == []


@given(st.text(alphabet="abcXYZ=:\"' &?/@-_.0123456789\n", max_size=200))
def test_concealing_twice_is_concealing_once(text):
    """
    What stands in the place of a secret is none.
    """
    once = conceal(text, lambda _: "secret-1")
    assert conceal(once, lambda _: "secret-2") == once


@given(st.binary(max_size=20), st.text(min_size=8, max_size=30), st.binary(max_size=20))
def test_a_value_is_found_in_base64_whatever_is_around_it(before, value, after):
    """
    One of three codes is in it, but for the letters that a neighbour changes.
    """
    code = base64.b64encode(before + value.encode() + after).decode()
    assert any(form in code for form in encoded(value))


def test_short_values_are_looked_for_as_they_are():
    """
    Else any text would hold them.
    """
    assert encoded("abc") == frozenset()
    assert "6b726f6e6f732d64" in encoded("kronos-d")
