"""
A lack, from the error that tells it.
"""

from harness.doctor.finding import Finding, lacking
from harness.errors import MachineError


def test_lacking_keeps_what_the_error_says():
    """
    The place stands in brackets where the error has one; the cure is the error's.
    """
    placed = MachineError("no java", where="PATH", fix="install one")
    found = [lacking("java", placed), lacking("java", MachineError("no java", fix="install one"))]

    assert found == [
        Finding("java", "lacking", "no java (PATH)", "install one"),
        Finding("java", "lacking", "no java", "install one"),
    ]
