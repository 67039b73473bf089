"""
Tests for `harness.clusters.local.namespace`.
"""

import os
import socket

import pytest

from harness.base.errors import ClusterError, MachineError
from harness.base.hadoop.daemons import BLOCK_PORTS
from harness.clusters.local import namespace
from harness.clusters.local.supervisor import ClusterState
from harness.clusters.state import Process


def state(*, user_namespace, inner=True):
    """
    A cluster of two nodes whose first process inside is this very process.
    """
    me = Process.of(os.getpid())
    namespaces = ({"net": 5, "uts": 6}, {"net": 7, "uts": 8})
    return ClusterState(
        name="c", home="/h", user_namespace=user_namespace, outer=me,
        inner=me if inner else None, namespaces=namespaces,
    )  # fmt: skip


def test_an_ordinary_user_makes_a_user_namespace_too(monkeypatch):
    """
    Root needs none; all else is the same.
    """
    command_lines = []
    for user_id in (0, 1000):
        monkeypatch.setattr(namespace.os, "geteuid", lambda number=user_id: number)
        command_lines.append(namespace.make_argv(["x"]))
    root, user = command_lines

    assert (root[1], user[1], root[2:]) == ("-nmu", "-Urnmu", user[2:])


def test_the_kernel_ends_all_with_the_outer_process():
    """
    The options on which tearing down rests.
    """
    argv = namespace.make_argv(["x"])

    assert {"--fork", "--pid", "--kill-child", "--mount-proc"} < set(argv)


def test_a_command_enters_its_node_and_ends_with_its_entrance():
    """
    The node's own network and host name, everybody's files and processes; then the command, which
    the kernel kills when `nsenter` outside is killed.
    """
    argv = state(user_namespace=False).node_argv(1, ["ls", "/"])
    me = os.getpid()

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
    installed = {"mount", "setpriv", "unshare"}
    monkeypatch.setattr(namespace, "find_tool", lambda tool: tool if tool in installed else None)

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


class TestPorts:
    def test_are_free(self):
        """
        Enough of them, in a row.
        """
        first = namespace.free_ports(3)
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", first + 3 * BLOCK_PORTS - 1))

        assert 20_000 <= first < 32_000

    def test_a_block_with_one_that_is_taken_is_passed_over(self, monkeypatch):
        """
        The next one is tried.
        """
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            taken = listener.getsockname()[1]
            free = namespace.free_ports(1)
            tried = iter([taken - 3, free])
            monkeypatch.setattr(namespace.random, "randrange", lambda low, high: next(tried))

            assert namespace.free_ports(1) == free

    def test_none_is_free(self, monkeypatch):
        """
        The error says where was looked.
        """

        class TakenSocket(socket.socket):
            def bind(self, address):
                raise OSError(98, "in use", address)

        monkeypatch.setattr(namespace.socket, "socket", TakenSocket)

        with pytest.raises(MachineError, match="no 20 ports in a row are free between 20000"):
            namespace.free_ports(2)


@pytest.mark.process
class TestReason:
    @pytest.fixture(autouse=True)
    def fresh(self, monkeypatch):
        """
        The machine is asked once per process.
        """
        monkeypatch.delenv(namespace.VARIABLE, raising=False)
        namespace.kernel_refusal.cache_clear()
        yield
        namespace.kernel_refusal.cache_clear()

    def test_asked_for(self, monkeypatch):
        """
        By the environment.
        """
        monkeypatch.setenv(namespace.VARIABLE, "ports")

        assert namespace.loopback_reason() == "HARNESS_LOCAL_NETWORK=ports"

    @pytest.mark.parametrize(
        ("program", "begins"),
        [
            ("echo 'unshare: unshare failed: Operation not permitted' >&2; exit 1", "this "),
            ("exit 0", ""),
            ("echo 'unshare: something else' >&2; exit 1", ""),
        ],
        ids=["refused", "allowed", "other"],
    )
    def test_what_the_kernel_says(self, monkeypatch, program, begins):
        """
        Only a refusal is a reason: another failure is reported by the start itself.
        """
        monkeypatch.setattr(namespace, "make_argv", lambda argv: ["sh", "-c", program])
        processes = namespace.loopback_reason()

        assert (processes.startswith(begins), bool(processes)) == (True, bool(begins))
