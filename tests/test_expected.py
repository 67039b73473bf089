"""Skips that are failures where CI expects what they lack."""

import types

import pytest

from tests import expected


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        ("Skipped: no Docker engine: no dockerd: apt-get install -y docker.io", "docker"),
        ("Skipped: only root can start a Docker engine, and none answers", "docker"),
        ("Skipped: no sshd: apt-get install -y openssh-server", "ssh"),
        ("Skipped: apt cannot download strace: E: no address", "tools"),
        ("Skipped: there is no g++", "tools"),
        ("Skipped: this machine has a GPU", ""),
        ("Skipped: this engine has the NVIDIA runtime", ""),
        ("Skipped: others keep this machine busy: 2 cores", ""),
        ("Skipped: only root may mount a small disk", ""),
    ],
)
def test_reasons(reason, name, monkeypatch):
    """
    A skip denies what its reason names; what depends on the machine's kind denies nothing.
    """
    monkeypatch.setenv("HARNESS_EXPECT", "docker,ssh,tools")

    assert expected.denied(reason) == name


@pytest.mark.parametrize(("expects", "outcome"), [("docker", "failed"), ("", "skipped")])
def test_reports(expects, outcome, monkeypatch):
    """
    A test that is skipped for lack of what is expected fails; without the expectation it does not.
    """
    monkeypatch.setenv("HARNESS_EXPECT", expects)
    longrepr = ("file", 1, "Skipped: no Docker engine: no dockerd")
    report = types.SimpleNamespace(skipped=True, outcome="skipped", longrepr=longrepr)
    hook = expected.pytest_runtest_makereport()
    next(hook)

    with pytest.raises(StopIteration) as done:
        hook.send(report)

    assert done.value.value.outcome == outcome
