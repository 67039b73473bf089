"""
Tests for `harness.providers.local.namespace`.
"""

import os

import pytest

from harness.errors import ClusterError, MachineError
from harness.providers.local import namespace
from harness.providers.local.supervisor import ClusterState
from harness.providers.state import Process


def state(*, user_namespace, inner=True):
    """
    A cluster of two nodes whose first process inside is this very process.
    """
    me = Process.of(os.getpid())
    namespaces = ({"net": 5, "uts": 6}, {"net": 7, "uts": 8})
    return ClusterState("c", {}, "/h", user_namespace, me, me if inner else None, namespaces)


def test_an_ordinary_user_makes_a_user_namespace_too():
    """
    Root needs none; all else is the same.
    """
    root, user = (namespace.make_argv(["x"], as_root=r) for r in (True, False))

    assert (root[1], user[1], root[2:]) == ("-nmu", "-Urnmu", user[2:])


def test_the_kernel_ends_all_with_the_outer_process():
    """
    The options on which tearing down rests.
    """
    argv = namespace.make_argv(["x"], as_root=True)

    assert {"--fork", "--pid", "--kill-child", "--mount-proc"} < set(argv)


def test_a_command_enters_its_node_and_ends_with_its_entrance():
    """
    The node's own network and host name, everybody's files and processes; then the command, which
    the kernel kills when `nsenter` outside is killed.
    """
    argv, me = state(user_namespace=False).node_argv(1, ["ls", "/"]), os.getpid()

    assert argv == [
        "nsenter", f"--mount=/proc/{me}/ns/mnt", f"--pid=/proc/{me}/ns/pid",
        f"--net=/proc/{me}/fd/7", f"--uts=/proc/{me}/fd/8",
        "--", "setpriv", "--pdeathsig", "KILL", "--", "ls", "/",
    ]  # fmt: skip


def test_an_ordinary_user_enters_the_user_namespace_first():
    """
    Without it the other namespaces are closed.
    """
    argv = state(user_namespace=True).node_argv(0, ["ls"])

    assert argv[1:3] == [f"--user=/proc/{os.getpid()}/ns/user", "--preserve-credentials"]


def test_nobody_enters_what_is_gone():
    """
    A number in an old state file may belong to anybody by now.
    """
    with pytest.raises(ClusterError, match="not running"):
        state(user_namespace=False, inner=False).node_argv(0, ["ls"])


def test_missing_tools_are_named_with_their_packages(monkeypatch):
    """
    All at once, and as one command.
    """
    there = {"mount", "setpriv", "unshare"}
    monkeypatch.setattr(namespace, "find_tool", lambda tool: tool if tool in there else None)

    with pytest.raises(MachineError) as raised:
        namespace.require_tools()
    assert (raised.value.what, raised.value.fix, raised.value.exit_status) == (
        "missing commands: nsenter, ip",
        "apt-get install -y iproute2 util-linux",
        3,
    )


@pytest.mark.parametrize(
    ("file", "value", "fix"),
    [
        (
            "/proc/sys/kernel/unprivileged_userns_clone",
            "0",
            "sudo sysctl -w kernel.unprivileged_userns_clone=1",
        ),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        (
            "/proc/sys/user/max_user_namespaces",
            "0",
            "sudo sysctl -w user.max_user_namespaces=10000",
        ),
        ("", "", "run as root, or in a container with --privileged"),
    ],
)
def test_a_kernel_that_refuses_is_told_by_its_setting(monkeypatch, file, value, fix):
    """
    The fix is the command that changes the setting that stands in the way.
    """

    def read_text(path):
        if str(path) == file:
            return f"{value}\n"
        raise FileNotFoundError(path)

    monkeypatch.setattr(namespace.Path, "read_text", read_text)
    refusal = namespace.refusal_error("unshare: unshare failed: Operation not permitted")

    assert (type(refusal), refusal.fix) == (MachineError, fix)


def test_other_words_are_no_refusal():
    """
    A failing command inside is another matter.
    """
    assert namespace.refusal_error("RTNETLINK answers: File exists") is None
