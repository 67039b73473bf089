"""
Tests for `harness.clusters.hadoop_home.home`.
"""

import pytest

from harness.base.errors import MachineError
from harness.clusters.hadoop_home.home import find_java


@pytest.fixture
def jdk(tmp_path):
    """
    A function that makes the folder of a JDK of some version.
    """

    def make(version, commands=("java", "javac")):
        (tmp_path / "bin").mkdir(parents=True, exist_ok=True)
        for command in commands:
            (tmp_path / "bin" / command).write_text("#!/bin/sh\n")
            (tmp_path / "bin" / command).chmod(0o755)
        (tmp_path / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_RUNTIME_VERSION="{version}"\n')
        return tmp_path

    return make


def test_java_home_wins(jdk):
    """
    The variable is taken before the search path, and the full version is reported.
    """
    home = jdk("17.0.15+6-Debian")
    java = find_java({"JAVA_HOME": str(home), "PATH": "/usr/bin"})

    assert (java.home, java.version, java.launcher) == (
        home,
        "17.0.15+6-Debian",
        f"{home}/bin/java",
    )


def test_launcher_on_the_path_leads_to_its_jdk(jdk, tmp_path_factory):
    """
    A link in a folder of commands is followed.
    """
    home = jdk("21.0.1+12")
    commands = tmp_path_factory.mktemp("commands")
    (commands / "java").symlink_to(home / "bin" / "java")

    assert find_java({"PATH": str(commands)}).home == home


@pytest.mark.process
@pytest.mark.parametrize("version", ["11.0.2+9", "1.8.0_402", "16", ""])
def test_old_java_is_refused(jdk, version):
    """
    The error shows the version, where it was found, and a command.
    """
    with pytest.raises(
        MachineError, match=r"(?s)Hadoop 3\.5 needs 17.*JAVA_HOME=.*unset JAVA_HOME"
    ):
        find_java({"JAVA_HOME": str(jdk(version))})


def test_a_runtime_is_no_jdk(jdk):
    """
    Our own jars are compiled here.
    """
    with pytest.raises(MachineError, match="without javac"):
        find_java({"JAVA_HOME": str(jdk("17", commands=["java"]))})


def test_no_java_at_all(tmp_path):
    """
    Nothing set and nothing on the path, or a folder without Java: exit 3 both times.
    """
    with pytest.raises(MachineError, match="no java on this machine"):
        find_java({"PATH": str(tmp_path)})
    with pytest.raises(MachineError, match="no java in") as raised:
        find_java({"JAVA_HOME": str(tmp_path)})
    assert raised.value.exit_status == 3


def test_a_package_is_named_where_nothing_was_chosen(jdk, tmp_path_factory):
    """
    Without JAVA_HOME an old Java on the path is cured by installing a newer one.
    """
    home = jdk("11.0.2+9")
    commands = tmp_path_factory.mktemp("commands")
    (commands / "java").symlink_to(home / "bin" / "java")

    with pytest.raises(MachineError, match=r"(?s)on PATH.*apt-get install"):
        find_java({"PATH": str(commands)})
