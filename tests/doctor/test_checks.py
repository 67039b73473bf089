"""
All findings of a machine, and who lacks what.
"""

import pytest

from harness.base.errors import MachineError
from harness.clusters.survey import Finding
from harness.doctor import checks
from harness.doctor.checks import examine, missing_needs, needs

pytestmark = pytest.mark.process


class TestExamine:
    """All findings of a machine."""

    def test_every_check_answers(self, tmp_path):
        """
        Each finding has a name of its own and says what was seen; what a provider needs is among
        them.
        """
        findings = examine(tmp_path / "not" / "made" / "yet")
        names = [f.name for f in findings]

        assert len(set(names)) == len(names)
        assert all(f.what and f.state in ("ok", "note", "lacking") for f in findings)
        assert set().union(*needs().values()) <= set(names)
        assert not (tmp_path / "not").exists()

    @pytest.mark.parametrize(("where", "what"), [("PATH", "no java (PATH)"), ("", "no java")])
    def test_what_is_lacking_keeps_what_the_error_says(self, tmp_path, monkeypatch, where, what):
        """
        The place stands in brackets where the error has one; the cure is the error's.
        """

        def fail():
            raise MachineError("no java", where=where, fix="install one")

        monkeypatch.setattr(checks, "find_java", fail)

        assert Finding("java", "lacking", what, "install one") in examine(tmp_path)


class TestMissingNeeds:
    """Who needs what is lacking."""

    def test_what_is_lacking_by_who_needs_it(self):
        """
        A note keeps nobody from working; a lack keeps those who need it.
        """
        findings = [
            Finding("java", "lacking", "none"),
            Finding("maven", "note", "old"),
            Finding("disk", "ok", "enough"),
        ]

        assert missing_needs(findings) == {
            name: ["java"] if "java" in needed else [] for name, needed in needs().items()
        }

    @pytest.mark.parametrize(
        ("name", "provider"),
        [("docker", "docker"), ("ssh", "ansible"), ("existing cluster", "existing")],
    )
    def test_a_provider_is_not_ready_without_its_own(self, name, provider):
        """
        An engine that nobody asks for is no lack of the machine; its provider waits for it.
        """
        missing_by_name = missing_needs([Finding(name, "note", "none")])

        assert missing_by_name[provider] == [name]
        assert missing_by_name["local"] == []
