"""The audit of pinned packages, and the list that it compares them with."""

import datetime as dt
import importlib.machinery
import importlib.util
import json
import re
import tomllib

from pathlib import Path

import pytest

from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
NETTY = {
    "id": "CVE-1", "package": "maven:io.netty:*", "introduced": "4.1.0", "fixed": "4.1.135",
    "severity": "high", "what": "a flaw", "source": "a page",
}  # fmt: skip
OLD, NEW = ("maven:io.netty:netty-buffer", "4.1.130.Final"), ("maven:io.netty:netty-all", "4.1.140")
versions = st.lists(st.integers(0, 30), min_size=1, max_size=4).map(tuple)


def loaded(name):
    """
    A script without ending as a module.
    """
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


audit = loaded("audit")


def dotted(numbers):
    """
    Numbers as a version.
    """
    return ".".join(map(str, numbers))


class TestRange:
    @given(versions, versions, versions)
    def test_from_the_first_to_before_the_fixed(self, introduced, fixed, version):
        """
        A release has a flaw from the first that has it on, until before the first that has not;
        zeros at the end of a version say nothing.
        """
        width = 4
        padded = [each + (0,) * (width - len(each)) for each in (introduced, fixed, version)]
        advisory = NETTY | {"introduced": dotted(introduced), "fixed": dotted(fixed)}

        affected = audit.is_affected(advisory, NEW[0], dotted(version))

        assert affected == (padded[0] <= padded[2] < padded[1])

    @pytest.mark.parametrize(
        ("version", "numbers"),
        [
            ("4.1.140.Final", (4, 1, 140)),
            ("9.4.58.v20250814", (9, 4, 58)),
            ("33.4.8-jre", (33, 4, 8)),
            ("1.84.0", (1, 84)),
        ],
    )
    def test_words_end_a_version(self, version, numbers):
        """
        What follows the numbers of a version does not count.
        """
        assert audit.number(version) == numbers

    def test_the_last_affected_is_affected(self):
        """
        Where no release is fixed, the last one that has the flaw ends the range, itself in it.
        """
        advisory = {key: value for key, value in NETTY.items() if key != "fixed"} | {"last": "2.6"}
        advisory["introduced"] = "2.0"

        answers = [audit.is_affected(advisory, NEW[0], each) for each in ("2.6", "2.7")]

        assert answers == [True, False]


class TestProblems:
    def test_an_affected_pin(self):
        """
        A pin in the range is named, with the release that is fixed; another one is not.
        """
        lines = list(audit.problems([NETTY], {OLD, NEW}))

        assert lines == [
            "CVE-1 (high): maven:io.netty:netty-buffer 4.1.130.Final: a flaw; fixed in 4.1.135"
        ]

    def test_accepted_with_a_reason(self):
        """
        A version that is accepted passes, and no other one of the same range.
        """
        advisory = NETTY | {"accepts": ["4.1.130.Final"], "accepted": "it is not loaded"}
        other = ("maven:io.netty:netty-buffer", "4.1.129.Final")

        lines = list(audit.problems([advisory], {OLD, other}))

        assert [line.split()[3] for line in lines] == ["4.1.129.Final:"]

    def test_what_is_accepted_for_nothing(self):
        """
        A version that is accepted and pinned no more is a fault of the list.
        """
        advisory = NETTY | {"accepts": ["4.1.130.Final"], "accepted": "it is not loaded"}

        (line,) = audit.problems([advisory], {NEW})

        assert "4.1.130.Final is accepted, but is no pin any more" in line

    @pytest.mark.parametrize("missing", ["accepted", "accepts", "what"])
    def test_a_wrong_list(self, missing):
        """
        A field that is missing, or an acceptance without its reason, is refused.
        """
        advisory = NETTY | {"accepts": ["4.1.130.Final"], "accepted": "it is not loaded"}
        del advisory[missing]
        lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in advisory.items())

        with pytest.raises(ValueError, match="CVE-1"):
            audit.read_list(f"compared = 2026-01-01\n[[advisory]]\n{lines}\n")


class TestList:
    def test_the_pins_that_are_committed(self):
        """
        No pinned package has a recorded flaw that nobody accepted.
        """
        _, advisories = audit.read_list((ROOT / "requirements/advisories.toml").read_text())

        assert list(audit.problems(advisories, audit.pins())) == []

    def test_names_no_address(self):
        """
        Sources are named by what they call the flaw, for addresses change.
        """
        assert "://" not in (ROOT / "requirements/advisories.toml").read_text()

    def test_both_languages_are_pinned(self):
        """
        Pins of Python and of Java are matched, Maven's plugins among them.
        """
        names = {name for name, _ in audit.pins()}

        assert names > {
            "pypi:requests", "maven:io.netty:netty-buffer", "maven:net.bytebuddy:byte-buddy",
            "maven:org.apache.maven.plugins:maven-compiler-plugin",
        }  # fmt: skip


class TestRefresh:
    def test_osv_records(self, tmp_path):
        """
        Of an advisory database come the records that concern a pin, and of these the ranges.
        """
        ranges = [
            {"type": "ECOSYSTEM", "events": [{"introduced": "4.1.0"}, {"fixed": "4.1.131"}]},
            {"type": "ECOSYSTEM", "events": [{"introduced": "4.2.0"}, {"fixed": "4.2.9"}]},
        ]
        package = {"ecosystem": "Maven", "name": "io.netty:netty-buffer"}
        record = {
            "id": "GHSA-1", "summary": "a flaw", "database_specific": {"severity": "MODERATE"},
            "affected": [
                {"package": package, "ranges": ranges},
                {"package": package | {"name": "io.netty:other"}, "ranges": ranges},
            ],
        }  # fmt: skip
        (tmp_path / "one.json").write_text(json.dumps(record))
        (tmp_path / "two.json").write_text(json.dumps(record | {"withdrawn": "2026-01-01"}))

        matched = list(audit.read_osv(tmp_path, {OLD}))

        assert matched == [
            {
                "id": "GHSA-1", "package": OLD[0], "introduced": "4.1.0", "severity": "medium",
                "what": "a flaw", "fixed": "4.1.131", "source": "OSV",
            }
        ]  # fmt: skip

    def test_the_list_grows(self, tmp_path, monkeypatch):
        """
        What is matched is added behind what is there, with today's date; the list stays readable.
        """
        (tmp_path / "requirements").mkdir()
        file = tmp_path / "requirements" / "advisories.toml"
        lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in NETTY.items())
        file.write_text(f"# words\ncompared = 2020-01-01\n[[advisory]]\n{lines}\n")
        matched = audit.entry("GHSA-2", OLD[0], "4.1.0", [], "low", 'a "quoted" flaw')
        for name, value in {
            "LIST": file, "ROOT": tmp_path, "pins": lambda: {OLD}, "index_url": lambda: None,
            "read_osv": lambda *_: [matched],
        }.items():  # fmt: skip
            monkeypatch.setattr(audit, name, value)

        audit.refresh([tmp_path])

        compared, advisories = audit.read_list(file.read_text())
        assert (compared, advisories) == (dt.date.today(), [NETTY, matched])  # noqa: DTZ011


def test_sums_of_both_lists_agree():
    """
    A jar of the Hadoop home has one checksum, in the list of Maven's jars as in the home's own.
    """
    lines = (ROOT / "workloads/SHA256SUMS").read_text().splitlines()
    home_lines = (ROOT / "workloads/hadoop-home/SHA256SUMS").read_text().splitlines()
    known = {(line[:64], line.rpartition("/")[2]) for line in lines}

    assert {(line[:64], line.rpartition("/")[2]) for line in home_lines} <= known


def test_versions_that_are_lifted():
    """
    What the parent pom lifts or leaves out is so in the Hadoop home.
    """
    pom = (ROOT / "workloads/pom.xml").read_text()
    jars = (ROOT / "workloads/hadoop-home/SHA256SUMS").read_text()
    netty = re.search(r"<netty.version>(.*)</netty.version>", pom)[1]
    left_out = set(re.findall(r"<exclusion>\s*<groupId>.*</groupId>\s*<artifactId>([^*]*?)</", pom))
    present = {re.sub(r"-\d.*", "", line[70:]) for line in jars.splitlines()}

    assert (f"netty-buffer-{netty}.jar" in jars, left_out & present) == (True, set())
    assert tomllib.loads((ROOT / "requirements/advisories.toml").read_text())["advisory"]
