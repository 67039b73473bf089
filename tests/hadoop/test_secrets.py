"""
Tests for `harness.base.hadoop.secrets`: what is secret, and what stands in its place.
"""

import re
import zipfile

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import SpecError
from harness.base.hadoop import site
from harness.base.hadoop.secrets import (
    DIGEST,
    HADOOPS_LIST,
    LEAST_SEARCHED,
    SECRETS,
    SENSITIVE_KEYS,
    Secrets,
)

LIBRARY = Path(__file__).parents[2] / "workloads" / "hadoop-home" / "home" / "lib"
KEY = bytes(32)

# Few characters, so that values are parts of each other and of the texts around them.
CHARACTERS = st.sampled_from('ab1.&<"/ é\n')
VALUES = st.text(CHARACTERS, min_size=LEAST_SEARCHED, max_size=9).filter(lambda v: "1" in v)
TEXTS = st.lists(st.one_of(VALUES, st.text(CHARACTERS, max_size=4)), max_size=8).map("".join)


def knowing(*values, key=KEY):
    """
    Secrets that these values are.
    """
    secrets = Secrets()
    secrets.find_key = lambda: key
    for value in values:
        secrets.hide(value)
    return secrets


def conf(**properties):
    """
    A ``job.xml`` as Hadoop writes it; a name's underscores stand for dots.
    """
    lines = [
        f"<property><name>{name.replace('_', '.')}</name><value>{escape(value)}</value>"
        f"<final>false</final><source>{source}</source><source>job.xml</source></property>\n"
        for name, (value, source) in properties.items()
    ]
    return f"<configuration>{''.join(lines)}</configuration>".encode()


class TestWhatIsSecret:
    @pytest.mark.skipif(not LIBRARY.is_dir(), reason="make setup")
    def test_is_by_the_list_of_hadoop_itself(self):
        """
        That of the release in use, but for the name of the list.
        """
        (jar,) = LIBRARY.glob("hadoop-common-3*.jar")
        with zipfile.ZipFile(jar) as archive:
            properties = ET.fromstring(archive.read("core-default.xml")).iter("property")
        (listed,) = [p.findtext("value") for p in properties if p[0].text == SENSITIVE_KEYS]

        assert set(HADOOPS_LIST.split()) == set(listed.split()) - {SENSITIVE_KEYS}

    @pytest.mark.parametrize(
        ("name", "is_sensitive"),
        [
            ("fs.s3a.secret.key", True),
            ("fs.s3a.bucket.logs.secret.key", True),
            ("ssl.server.keystore.password", True),
            ("oauth.some.token", True),
            ("fs.azure.account.key.x.blob.core.windows.net", True),
            (SENSITIVE_KEYS, False),
            ("mapreduce.job.token.tracking.ids", False),
            ("mapreduce.job.reduces", False),
        ],
    )
    def test_names(self, name, is_sensitive):
        """
        As Hadoop looks for them: anywhere in the name.
        """
        assert Secrets().is_sensitive(name) == is_sensitive

    def test_a_site_adds_its_own(self):
        """
        With commas or on lines, beside Hadoop's.
        """
        secrets = Secrets()
        secrets.add_keys("my.pin$, other\n  third")

        names = ["my.pin", "my.pins", "x.other", "third", "password"]
        assert [secrets.is_sensitive(n) for n in names] == [True, False, True, True, True]

    def test_a_list_that_is_none_is_refused(self):
        """
        With the part that is wrong.
        """
        with pytest.raises(SpecError, match=r"'\*pin' is no regular expression"):
            Secrets().add_keys("*pin")


class TestDigest:
    def test_equal_values_have_equal_digests(self):
        """
        Under one key; under another, nothing can be compared.
        """
        values = ["a", "a", "b"]
        one = knowing()
        other = knowing(key=b"x" * 32)

        first, second = ([secrets.hide(v) for v in values] for secrets in (one, other))
        assert first[0] == first[1] != first[2]
        assert all(DIGEST.fullmatch(d) for d in first)
        assert set(first).isdisjoint(second)

    def test_stays_where_it_stands_for_a_value(self):
        """
        A stored experiment is read as it is.
        """
        digest = knowing().hide("x")

        assert Secrets().conceal("a.password", digest) == digest

    def test_of_an_unknown_value_gives_none_back(self):
        """
        Results hold no value, so a stored experiment cannot be measured again.
        """
        with pytest.raises(SpecError, match="stands for a value that results do not hold"):
            Secrets().reveal(knowing().hide("x"))


class TestTexts:
    @given(TEXTS, st.lists(VALUES, max_size=3), st.lists(st.integers(0, 60), max_size=5))
    def test_are_cleaned_alike_wherever_they_are_cut(self, text, values, cuts):
        """
        A value across two chunks is found.
        """
        secrets = knowing(*values)
        data = text.encode()
        ends = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
        chunks = [data[a:b] for a, b in pairwise(ends)]

        assert b"".join(secrets.filter(chunks)).decode() == secrets.clean(text)

    @given(TEXTS, st.lists(VALUES, max_size=3))
    def test_hold_no_value_and_give_it_back(self, text, values):
        """
        As written, and as XML; whoever knows the values has the text again.
        """
        secrets = knowing(*values)
        cleaned = secrets.clean(text)

        left = [secrets.clean(text), secrets.clean(escape(text))]
        left = [DIGEST.sub(" ", each) for each in left]

        assert [v for v in values if v in left[0] or escape(v) in left[1]] == []
        assert secrets.clean(cleaned) == cleaned

    def test_of_letters_alone_are_words(self):
        """
        Somebody's password is hadoop, and logs can be read all the same.
        """
        text = "at org.apache.hadoop.io (hadoop-common.jar): password=hadoop, or hadoop."

        cleaned = knowing("hadoop").clean(text)

        assert DIGEST.sub("#", cleaned) == text.replace("=hadoop,", "=#,").replace(
            " hadoop.", " #."
        )

    def test_of_a_cluster_are_known(self):
        """
        What its daemons are given for their web services is looked for in all logs.
        """
        texts = site.conf_texts({}, "0f" * 32)

        assert SECRETS.clean(texts["secret"]).startswith("X-Harness-Secret: secret:")

    def test_short_values_are_not_looked_for(self):
        """
        They would be anywhere.
        """
        assert knowing("abc12").clean("abc12") == "abc12"

    def test_without_secrets_are_passed_on(self):
        """
        No byte is copied.
        """
        chunks = [b"a", b"b"]

        assert [a is b for a, b in zip(Secrets().filter(chunks), chunks, strict=True)] == [True] * 2


class TestJobConfiguration:
    def test_has_digests_of_sensitive_properties(self):
        """
        However short a value is, and whoever set it; Hadoop's own defaults are known to all.
        """
        secrets = knowing("long-secret-1")
        xml = conf(
            a_password=("abc&", "core-site.xml"),
            fs_gs_auth_type=("COMPUTE_ENGINE", "core-default.xml"),
            empty_password=("", "core-site.xml"),
            other=("-Dx=long-secret-1", "job.xml"),
            plain=("abc&", "job.xml"),
        )

        cleaned = secrets.clean_conf(xml).decode()

        values = dict(re.findall(r"<name>(.*?)</name><value>(.*?)</value>", cleaned))
        assert values == {
            "a.password": secrets.hide("abc&"), "fs.gs.auth.type": "COMPUTE_ENGINE",
            "empty.password": "", "other": f"-Dx={secrets.hide('long-secret-1')}",
            "plain": "abc&amp;",
        }  # fmt: skip

    def test_of_a_client_makes_its_secrets_known(self):
        """
        What a foreign cluster's client has been given is looked for in its logs, too.
        """
        secrets = knowing()
        files = {SENSITIVE_KEYS: "my.pin", "my.pin": "pin-of-1234", "a": "b"}

        concealed = secrets.conceal_all(files)

        assert concealed == {**files, "my.pin": secrets.hide("pin-of-1234")}
        assert "1234" not in secrets.clean("pin-of-1234")
