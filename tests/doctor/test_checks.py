"""
All findings of a machine, and who lacks what.
"""

import pytest

from harness.doctor.checks import examine, lacks, needs
from harness.doctor.finding import Finding


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
        assert {name for needed in needs().values() for name in needed} <= set(names)
        assert not (tmp_path / "not").exists()


class TestLacks:
    """Who needs what is lacking."""

    def test_what_lacks_is_told_by_who_needs_it(self):
        """
        A note keeps nobody from working; a lack keeps those who need it.
        """
        findings = [
            Finding("java", "lacking", "none"),
            Finding("maven", "note", "old"),
            Finding("disk", "ok", "enough"),
        ]

        assert lacks(findings) == {name: ["java"] for name in needs()}

    @pytest.mark.parametrize(
        ("name", "who"),
        [("docker", "docker"), ("ssh", "ansible"), ("existing cluster", "existing")],
    )
    def test_a_provider_is_not_ready_without_its_own(self, name, who):
        """
        An engine that nobody asks for is no lack of the machine; its provider waits for it.
        """
        found = lacks([Finding(name, "note", "none")])

        assert {each for each, missing in found.items() if missing} == {who}
