"""
Tests for `harness.base.hadoop.daemons`.
"""

from hypothesis import given
from hypothesis import strategies as st

from harness.base.hadoop import daemons
from harness.base.hadoop.daemons import Layout, make_members


def layout(workers=2, **fields):
    """
    A cluster in `/c` of the home `/h`.
    """
    return Layout(make_members(workers), "/c", "/h", **fields)


def named(kind, member, **fields):
    """
    Command line of one daemon.
    """
    made = layout(**fields)
    daemon = next(d for d in daemons.daemons(made) if d.name == f"{kind} on {member}")
    return daemons.daemon_argv("/j/bin/java", made, daemon)


@given(st.integers(1, 200))
def test_every_node_has_its_daemons(workers):
    """
    Three on the master, two on each worker, each once.
    """
    names = [d.name for d in daemons.daemons(layout(workers))]

    assert len(names) == len(set(names)) == 3 + 2 * workers


def test_a_daemon_is_one_java_command():
    """
    No script stands between: launcher, options, class path, main class, nothing else.
    """
    argv = named("datanode", "worker2")
    path = argv[argv.index("-cp") + 1]

    assert (argv[0], path, argv[-1]) == (
        "/j/bin/java",
        "/h/path.jar:/c/conf/worker2:/h/etc:/h/fence.jar",
        "org.apache.hadoop.hdfs.server.datanode.DataNode",
    )


def test_temporary_files_lie_with_the_node():
    """
    A killed JVM leaves its unpacked web applications where the cluster's folder goes with them.
    """
    assert "-Djava.io.tmpdir=/c/nodes/worker1/jtmp" in named("nodemanager", "worker1")


def test_archive_is_optional():
    """
    With an archive its file is named; without one the JVM starts as usual.
    """
    with_it = named("namenode", "master", archive="/h/a.jsa")
    without = named("namenode", "master")

    assert [a for a in with_it if a not in without] == [
        "-XX:SharedArchiveFile=/h/a.jsa",
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:ArchiveRelocationMode=0",
        "-Xlog:cds=off",
        "-Xlog:cds+dynamic=off",
    ]


@given(st.lists(st.text()))
def test_arguments_of_a_client_pass_unchanged(arguments):
    """
    Whatever characters they hold: there is no shell.
    """
    argv = daemons.client_argv("/j/bin/java", layout(), "a.Main", arguments, ["/my.jar"])

    assert argv[argv.index("a.Main") + 1 :] == arguments
    assert argv[argv.index("-cp") + 1].endswith(":/my.jar")


def test_environment_holds_no_secret_and_no_other_hadoop():
    """
    What is kept is what a JVM needs; the rest of the caller's variables stays out.
    """
    inherited = {
        "PATH": "/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "HADOOP_HOME": "/other",
        "TZ": "Asia/Tokyo",
        "JAVA_TOOL_OPTIONS": "-Dx", "TOKEN": "secret",
    }  # fmt: skip
    made = daemons.environment(inherited, "/j", layout(), make_members(2)[1])

    assert made == {
        "PATH": "/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "TZ": "UTC", "JAVA_HOME": "/j",
        "HADOOP_CONF_DIR": "/c/conf/worker1", "HADOOP_USER_NAME": "hadoop",
    }  # fmt: skip


def test_every_jvm_is_in_utc():
    """
    Whatever the zone of its machine: a log has local time, and its reader may be elsewhere.
    """
    namenode = daemons.daemons(layout())[0]
    commands = [
        daemons.daemon_argv("/j/bin/java", layout(), namenode),
        daemons.client_argv("/j/bin/java", layout(), "a.Main", []),
        daemons.container_options(layout(), 512).split(),
    ]

    assert ["-Duser.timezone=UTC" in argv for argv in commands] == [True] * 3


class TestMembers:
    def test_all_differ(self):
        """
        Names and addresses are unique, beyond one byte of an address too.
        """
        made = make_members(600)

        assert (len({m.name for m in made}), len({m.address for m in made})) == (601, 601)

    def test_last_bytes_are_host_addresses(self):
        """
        No address ends in 0 or 255, and all lie in 198.18.0.0/15.
        """
        bytes_ = [tuple(map(int, m.address.split("."))) for m in make_members(600)]

        assert all(b[:2] == (198, 18) and 0 < b[3] < 255 for b in bytes_)
