"""
Tests for the versions that nodes report: through the node agent, and over HTTP.
"""

import json
import platform

import pytest

from harness.clusters.existing import discovery
from harness.clusters.host import LocalHost
from harness.clusters.node.facts import java_version
from harness.clusters.survey import RanOn, node_versions
from tests.node_agent import node_agent

pytestmark = pytest.mark.process


def program(_):
    """
    The program as it runs on a node.
    """
    return node_agent("facts", "versions")


def host(tmp_path, java_home):
    """
    This machine with a Java of its own.
    """
    return LocalHost("worker1", "127.0.0.1", str(tmp_path), list, {"JAVA_HOME": str(java_home)})


def test_a_java_says_its_full_version(tmp_path):
    """
    Of the build, not of the release alone; no JVM is started.
    """
    (tmp_path / "release").write_text('A="b"\nJAVA_RUNTIME_VERSION="17.0.19+10-Debian"\n')

    assert node_versions([host(tmp_path, tmp_path)], program, "3.5.0") == {
        "worker1": RanOn("3.5.0", "17.0.19+10-Debian", platform.release())
    }


def test_a_java_without_its_file_is_asked(tmp_path):
    """
    And one that says nothing has no version.
    """
    command = tmp_path / "bin" / "java"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\necho '    java.runtime.version = 17.0.2+8' >&2\n")
    command.chmod(0o755)

    assert (java_version(str(tmp_path)), java_version(str(tmp_path / "none"))) == ("17.0.2+8", "")


@pytest.mark.parametrize(
    ("says", "java", "kernel"),
    [
        ("", "", ""),
        ("{", "", ""),
        ("[1]", "", ""),
        ('{"java": 17, "kernel": "6.1\\u001b[31m"}', "", "6.1\\x1b[31m"),
        (json.dumps({"java": "x" * 9999, "kernel": "a\n\tb"}), "x" * 77 + "...", "a b"),
    ],
    ids=["nothing", "no JSON", "no object", "escapes", "long"],
)
def test_what_a_node_says_is_not_believed(tmp_path, says, java, kernel):
    """
    Texts are short and safe to print; all else counts as not said.
    """
    command = ["printf", "%s", says]
    (answer,) = node_versions([host(tmp_path, tmp_path)], lambda _: command, "3.5.0").values()

    assert answer == RanOn("3.5.0", java, kernel)


def test_a_node_that_cannot_be_asked(tmp_path):
    """
    Has no versions, and stops nobody.
    """
    command = ["/no/such/program"]
    (answer,) = node_versions([host(tmp_path, tmp_path)], lambda _: command, "3.5.0").values()

    assert answer == RanOn("3.5.0", "", "")


@pytest.mark.parametrize(
    ("beans", "java", "kernel"),
    [
        (
            {
                "Runtime": {
                    "VmVersion": "17.0.9",
                    "SystemProperties": [{"key": "java.runtime.version", "value": "17.0.9+9"}],
                },
                "OperatingSystem": {"Version": "6.1.0-18"},
            },
            "17.0.9+9",
            "6.1.0-18",
        ),
        ({"Runtime": {"VmVersion": "11.0.2"}}, "11.0.2", ""),
        ({"Runtime": {"SystemProperties": "x"}}, "", ""),
    ],
    ids=["all", "little", "strange"],
)
def test_a_nodemanager_tells_of_its_jvm(monkeypatch, beans, java, kernel):
    """
    Over HTTP, where nodes have no connection.
    """

    def get_json(address, path):
        return {"beans": [beans[kind]] if (kind := path.rpartition("=")[2]) in beans else []}

    monkeypatch.setattr(discovery, "get_json", get_json)

    assert discovery.ran_on("w1:8042", "3.4.1") == RanOn("3.4.1", java, kernel)
