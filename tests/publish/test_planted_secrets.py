"""
Secrets in the log of a task, in each of the forms in which a scanner of secrets knows them, and
names in other cases and codes: none is in a file of a bundle, at any level, or nothing is
published.
"""

import base64
import gzip
import ipaddress

import pytest

from harness.base.errors import DataError
from harness.pseudonyms.names import Pseudonyms
from harness.publish.bundle import publish
from harness.publish.evidence import copy_run
from tests.hostile.whole import hash_again, nothing_drawn
from tests.publish.planted import ADDRESSES, HOSTS, USERS, planted_run, texts

pytestmark = pytest.mark.process

LEVELS = ("scores", "traces", "raw")
WORD = (
    "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0iL"  # the parts are put together: no scanner takes them for real
)
HOST, USER, ADDRESS = HOSTS[0], USERS[0], ADDRESSES[0]
SHORT = HOST.partition(".")[0]
PACKED = ipaddress.IPv4Address(ADDRESS).packed


def in_base64(text):
    """
    As HTTP has names and passwords.
    """
    return base64.b64encode(text.encode()).decode()


# What a task prints, and what of it is for nobody.
SECRETS = {
    "AWS key": ("using {}", "AKIA" + "ABCDEFGH12345678"),
    "AWS secret": ("AWS_SECRET_ACCESS_KEY={}", WORD + "aB3dE6gH"),
    "AWS secret in JSON": ('{{"SecretAccessKey": "{}"}}', WORD + "zz3dE6gH"),
    "AWS session": ("aws_session_token = {}", WORD + "sess"),
    "S3A secret": ("fs.s3a.secret.key={}", WORD + "s3a"),
    "S3A key": ("fs.s3a.access.key={}", "AKIA" + "QQQQFGH12345678Q"),
    "Azure account": ("fs.azure.account.key.a.blob.core.windows.net={}", WORD + "az=="),
    "GitHub token": ("token: {}", "gh" + "p_" + WORD + "abcd"),
    "GitHub fine token": ("used {} here", "github" + "_pat_" + WORD + WORD),
    "GitLab token": ("used {} here", "gl" + "pat-" + WORD),
    "Slack token": ("used {} here", "xo" + "xb-123456789012-" + WORD),
    "Slack hook": ("https://hooks.slack.com/services/{}", "T00000000/B00000000/" + WORD[:24]),
    "Google key": ("used {} here", "AI" + "za" + WORD + "abc"),
    "Stripe key": ("used {} here", "sk_" + "live_" + WORD),
    "npm token": ("used {} here", "np" + "m_" + WORD + "abcd"),
    "model key": ("used {} here", "hf" + "_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZabcdefgh"),
    "SendGrid key": ("used {} here", "SG" + "." + WORD[:22] + "." + WORD),
    "web token": ("used {} here", "ey" + "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"),
    "Bearer": ("Authorization: Bearer {}", WORD + "bearer"),
    "Basic": ("authorization: Basic {}", "dXNlcjpwYXNzd29yZA=="),
    "Negotiate": ("Authorization: Negotiate {}", WORD + "neg"),
    "cookie": ('Cookie: hadoop.auth="u=x&t=kerberos&s={}"', WORD + "ck"),
    "set cookie": ("Set-Cookie: JSESSIONID={}; Path=/", WORD + "sc"),
    "API key": ("X-Api-Key: {}", WORD + "xk"),
    "password": ("password={}", "correct-horse-battery"),
    "password in JSON": ('"password" : "{}"', "correct-horse-colon"),
    "password in words": ("the password is {}", "hunter2hunter2"),
    "password of MySQL": ("mysql -u jo -p{} db", "hunter3hunter3"),
    "password as argument": ("curl --password {}", "hunter4hunter4"),
    "password as property": ("java -Ddb.password={} X", "hunter5hunter5"),
    "password of curl": ("curl -s -u jo:{} http://x/", "hunter6hunter6"),
    "JDBC query": ("jdbc:postgresql://db/x?user=jo&password={}", "hunter7x"),
    "JDBC address": ("jdbc:mysql://jo:{}@db:3306/x", "hunter8x"),
    "JDBC address of a whole host": ("jdbc:mysql://u:{}@db01.corp.example.com:3306/x", "pw12345"),
    "JDBC of Oracle": ("jdbc:oracle:thin:jo/{}@db:1521:x", "hunter9hunter"),
    "JDBC of SQL Server": ("jdbc:sqlserver://db;user=jo;password={};", "hunterAx"),
    "address": ("https://jo:{}@example.org/", "hunterBx"),
    "address without a user": ("redis://:{}@cache:6379/0", "hunterCxx"),
    "shared access": ("https://a.blob.core.windows.net/x?sv=2020&sig={}%3D", WORD + "sas"),
    "signed address": ("https://b.s3.amazonaws.com/k?X-Amz-Signature={}", WORD.lower() * 2),
    "account key": ("AccountName=x;AccountKey={}", WORD + "ak=="),
    "OpenSSH key": ("{}", "b3BlbnNz" + "aC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAA"),
    "private key": (
        "-----BEGIN RSA PRIVATE" + " KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
        "MIIEdeadbeefdeadbeef",
    ),
    "delegation": ("http://nn:9870/webhdfs/v1/x?op=OPEN&delegation={}", WORD + "dt"),
}
# Names that the run has in its fields, as a program may write them.
NAMES = {
    "user in capitals": ("owner {}", USER.upper()),
    "user with a capital": ("owner {}", USER.capitalize()),
    "user beside letters": ("file x{}y.tmp", USER),
    "user beside a digit": ("file {}7.tmp", USER),
    "host with capitals": ("at {}", HOST.title()),
    "host in a word": ("node_{}_log", SHORT),
    "host of a cloud": ("at {}", "ip-10-77-3-41.ec2.internal"),
    "host of a region": ("at {}", "ip-10-77-3-42.eu-west-1.compute.internal"),
    "address in hexadecimal": ("0x{}", PACKED.hex().upper()),
    "address of /proc/net": ("{}:1F90", PACKED[::-1].hex().upper()),
    "address backwards": ("{}.in-addr.arpa", ".".join(reversed(ADDRESS.split(".")))),
    "address of version 6": ("::ffff:{}", ADDRESS),
    "host in base64": ("{}", in_base64(HOST)),
    "host in hexadecimal": ("{}", HOST.encode().hex()),
    "host reversed": ("{}", HOST[::-1]),
    "host in percent": ("{}", "".join(f"%{byte:02X}" for byte in HOST.encode())),
    "mail": ("told {}", "jo@acme-corp.net"),
}
PLANTED = SECRETS | NAMES


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """
    The run, with a line for each of them in the log of a task that feeds the profile, which all
    levels but one have; not to be changed.
    """
    made = planted_run(tmp_path_factory.mktemp("results"))
    add_to_log(made, "".join(f"{line.format(secret)}\n" for line, secret in PLANTED.values()))
    return made


def add_to_log(run, text):
    """
    Put *text* behind what Hadoop logged in the first task of each trial, and make all hashes anew.
    """
    for trial in run.read_plan():
        log = next(run.trial_dir(trial.id).glob("raw/containers/*/*/syslog.gz"))
        logged = gzip.decompress(log.read_bytes()) + text.encode()
        log.write_bytes(gzip.compress(logged, mtime=0))
        hash_again(run, log.relative_to(run.path).as_posix())


def test_all_of_them_are_in_the_run(run):
    """
    Else the others would prove nothing.
    """
    stored = "\n".join(text for _, text in texts(run.path))

    assert [name for name, (_, secret) in PLANTED.items() if secret not in stored] == []


@pytest.mark.parametrize("level", LEVELS)
def test_none_is_in_what_is_published(run, level, tmp_path):
    """
    In no file of a level, as text, unpacked, in tables and in recordings; and a search agrees.
    """
    pseudonyms = Pseudonyms.of([run], level=level)
    copy_run(run, tmp_path / "runs" / run.id, level, pseudonyms)
    published = "\n".join(text for _, text in texts(tmp_path))

    assert [name for name, (_, secret) in PLANTED.items() if secret in published] == []
    assert [*pseudonyms.found_in(tmp_path)] == []


@pytest.mark.parametrize("level", LEVELS)
def test_a_bundle_has_none_or_is_refused_with_file_and_line(run, level, tmp_path, monkeypatch):
    """
    Where a secret is not replaced, for whatever reason, nothing is published that has it.
    """
    _, secret = SECRETS["AWS secret"]
    with nothing_drawn():
        publish([run], tmp_path / "bundle", level=level)
        assert secret not in "\n".join(text for _, text in texts(tmp_path / "bundle"))

        monkeypatch.setattr("harness.pseudonyms.names.conceal", lambda text, _: text)
        if level == "scores":  # which has no log
            publish([run], tmp_path / "again", level=level)
            assert secret not in "\n".join(text for _, text in texts(tmp_path / "again"))
            return
        with pytest.raises(DataError, match=r"syslog\.gz: line \d+: ") as caught:
            publish([run], tmp_path / "again", level=level)

    assert secret not in str(caught.value)
    assert not (tmp_path / "again").exists()
