"""
Tests for `harness.clusters.survey` and the program at its other end,
`harness.clusters.node.facts`.
"""

import os
import shutil
import sys

from types import SimpleNamespace

import pytest

from harness.base.errors import ClusterError
from harness.base.hadoop.secrets import SECRETS
from harness.clusters import survey as module
from harness.clusters.host import LocalHost
from harness.clusters.survey import node_systems, printable_json
from harness.clusters.survey import survey as survey_hosts
from tests.node_agent import node_agent

pytestmark = pytest.mark.process

LATE = "import sys, time; time.time = (lambda now=time.time: now() + 3600); "
RUN = "import runpy; p = sys.argv.pop(1); sys.argv[0] = p; runpy.run_path(p, run_name='__main__')"
# What stands before our program of a host whose clock is an hour ahead.
AHEAD = [sys.executable, "-c", LATE + RUN]


@pytest.fixture
def cluster(tmp_path):
    """
    A function that makes a cluster of hosts with such command lines, by their names.
    """

    def make(**hosts):
        def host(name, wrap):
            return LocalHost(name, "127.0.0.1", str(tmp_path), wrap, dict(os.environ))

        return SimpleNamespace(
            hosts=[host(name, wrap) for name, wrap in hosts.items()],
            agent=lambda host, *arguments: node_agent(*arguments),
            java_on=lambda host: shutil.which("java"),
        )

    return make


def survey(cluster):
    """
    Facts of its hosts, by their command lines.
    """

    def command(host):
        return cluster.agent(host, "facts", "survey", host.folder, cluster.java_on(host))

    return survey_hosts(cluster.hosts, command)


def test_each_host_reports_its_facts(cluster, tmp_path):
    """
    Its clock, what it has, what runs there.
    """
    (host_facts,) = survey(cluster(here=list))

    assert abs(host_facts.clock_s) <= host_facts.clock_within_s + 0.05
    assert (host_facts.error, host_facts.name, host_facts.cores) == (
        "",
        "here",
        len(os.sched_getaffinity(0)),
    )
    assert host_facts.disk_bytes == shutil.disk_usage(tmp_path).total
    assert (host_facts.kernel, host_facts.python) == (os.uname().release, sys.version.split()[0])
    assert host_facts.java[0].isdigit()
    assert host_facts.memory_bytes > 2**20


def test_gpus_of_hosts_that_have_some(cluster, tmp_path):
    """
    As the driver's tool there describes them, through the host's own connection.
    """
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\n[ -z $GPUS ] || echo '0, NVIDIA L4, 23034, 550.54.15'\n")
    tool.chmod(0o755)
    path = f"PATH={tmp_path}:{os.environ['PATH']}"
    some, none = survey(
        cluster(
            some=lambda argv: ["env", path, "GPUS=1", *argv],
            none=lambda argv: ["env", path, "GPUS=", *argv],
        )
    )

    assert [gpu["name"] for gpu in some.gpus["devices"]] == ["NVIDIA L4"]
    assert some.gpus["devices"][0]["driver"] == "550.54.15"
    assert none.gpus == {}


def test_nothing_is_left_on_a_host(cluster, tmp_path):
    """
    A JVM would leave a folder among the temporary files.
    """
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text('#!/bin/sh\necho "$@" > $0.asked\necho " java.runtime.version = 17.0.1" >&2\n')
    java.chmod(0o755)
    surveyed = cluster(here=list)
    surveyed.java_on = lambda host: str(java)
    (host_facts,) = survey(surveyed)

    assert (host_facts.error, host_facts.java) == ("", "17.0.1")
    assert (tmp_path / "bin" / "java.asked").read_text().startswith("-XX:-UsePerfData ")


def test_clock_offsets_are_measured(cluster):
    """
    By how much, as far as the way there lets it be known.
    """
    exact_facts, ahead_facts = survey(cluster(here=list, ahead=lambda argv: [*AHEAD, *argv[3:]]))

    assert ahead_facts.clock_s - exact_facts.clock_s == pytest.approx(3600, abs=1)


def test_a_host_without_java_reports_that(cluster):
    """
    The rest is known all the same.
    """
    surveyed = cluster(here=list)
    surveyed.java_on = lambda host: "/no/java"
    (host_facts,) = survey(surveyed)

    assert (host_facts.error, host_facts.java) == ("", "/no/java is not there")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 0", "no answer|Broken pipe"),
        ("while read x; do echo yes; done", "could not convert"),
        ("while read x; do echo nan; done", "reports no time"),
        ("while read x; do echo 1; done", "not an object"),
        (
            f"for n in 1 2 3 4 5; do read x; echo 1; done; read x; echo {'[' * 60_000}; cat",
            "nested",
        ),
        ("yes | tr -d '\\n'", "no answer"),
        ("printf '\\033[2J\\n'; cat", "could not convert"),
    ],
)
def test_a_host_that_answers_nonsense_is_named(cluster, monkeypatch, script, message):
    """
    The others are heard; nothing of it reaches a terminal; nothing is waited for without an end.
    """
    monkeypatch.setattr(module, "LIMIT_S", 10.0)
    good, bad = survey(cluster(good=list, bad=lambda argv: ["sh", "-c", script]))

    assert good.error == ""
    assert (bad.cores, bad.clock_s) == (0, None)
    assert "\x1b" not in bad.error
    assert any(word in bad.error for word in message.split("|"))


def test_a_host_that_does_not_answer_is_given_up(cluster, monkeypatch):
    """
    After its time.
    """
    monkeypatch.setattr(module, "LIMIT_S", 0.5)
    (mute_host,) = survey(cluster(mute_host=lambda argv: ["sleep", "600"]))

    assert "no answer within 0.5 s" in mute_host.error


def test_a_host_that_cannot_be_reached_is_named(cluster):
    """
    With the provider's own words.
    """

    def gone(argv):
        raise ClusterError("cluster 'c' is not up")

    (lost,) = survey(cluster(lost=gone))

    assert lost.error == "cluster 'c' is not up"


class TestSystems:
    """
    What nodes are, as they say themselves.
    """

    @staticmethod
    def says(text):
        """
        A command line that answers so.
        """
        return [sys.executable, "-c", f"print({text!r})"]

    def test_equal_answers_are_kept_once(self, cluster):
        """
        Another node with the same one has that one's name; the agent itself is asked.
        """
        hosts = cluster(master=list, worker1=list, worker2=list).hosts

        def agent(host, *words):
            is_other = host.name == "worker2"
            return self.says('{"os": "other"}') if is_other else node_agent(*words)

        systems = node_systems(hosts, agent)

        assert systems["master"]["kernel"]["release"] == os.uname().release
        assert (systems["worker1"], systems["worker2"]) == ("master", {"os": "other"})

    @pytest.mark.parametrize(
        ("says", "reason"),
        [
            ("[1]", "its answer is not an object"),
            ("{", "Expecting property name"),
            ('"' + "x" * 10**5 + '"', "Unterminated string"),
        ],
        ids=["no object", "no JSON", "long"],
    )
    def test_a_node_that_says_something_else(self, cluster, says, reason):
        """
        Has the reason in the place of an answer.
        """
        (answer,) = node_systems(cluster(here=list).hosts, lambda *_: self.says(says)).values()

        assert answer.startswith(f"not known: {reason}")

    def test_a_node_that_does_not_answer(self, cluster):
        """
        Stops nobody: that it fails, and how, is its answer.
        """
        fails = [sys.executable, "-c", "import sys; sys.exit('no \x1b[31mplace')"]
        answers = [
            node_systems(cluster(here=list).hosts, lambda *_, argv=argv: argv)["here"]
            for argv in (fails, ["/no/such/program"])
        ]

        assert answers[0] == "not known: it ended with status 1: no \\x1b[31mplace"
        assert answers[1].startswith("not known: ")

    def test_what_a_node_says_is_safe_to_print(self):
        """
        Texts are short, without what a terminal obeys; what is secret stands there as its digest.
        """
        digest = SECRETS.hide("a secret of this test")
        answer = printable_json({
            "long": "x" * 10**5, "n" * 1000: {"none": None}, "several": [1, True, "\x1b[31m"],
            "secret": "it is a secret of this test.",
        })  # fmt: skip

        assert answer == {
            "long": f"{'x' * 4093}...", f"{'n' * 77}...": {"none": None},
            "several": [1, True, "\\x1b[31m"], "secret": f"it is {digest}.",
        }  # fmt: skip
