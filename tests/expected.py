"""
What CI expects of a machine: HARNESS_EXPECT=docker,ssh,tools (`.ci/run` sets it).

A test that is skipped for lack of one of these is a failure then: nothing is left out silently
where it was thought to be tested.
"""

import os
import re

import pytest

SKIPS = {
    "docker": r"Docker engine",
    "ssh": r"sshd|openssh|only root can join",
    "tools": r"apt|there is no (g\+\+|bash)|no gcc|needs unshare|Maven|cannot make an archive",
}


def denied(reason):
    """
    Which expected part of a machine a skip for that reason denies, or nothing.
    """
    names = [each for each in os.environ.get("HARNESS_EXPECT", "").split(",") if each]
    return next((name for name in names if re.search(SKIPS[name], reason)), "")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """
    Make a failure of a skip for lack of what is expected.
    """
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr[2])
        if name := denied(reason):
            report.outcome = "failed"
            report.longrepr = f"{reason}; HARNESS_EXPECT expects {name} of this machine"
    return report
