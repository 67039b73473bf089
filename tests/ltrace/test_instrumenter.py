"""
Tests for the tracer's instrumenter and agent, workloads/ltrace, on the jars of the Hadoop home.
"""

import subprocess

import pytest

from harness.clusters.hadoop_home import home as homes
from harness.clusters.hadoop_home import setup
from harness.clusters.hadoop_home.home import HadoopHome
from tests.ltrace.spanfile import read_spans

pytestmark = pytest.mark.process

LIMIT_S = 120
SORT = 12


@pytest.fixture(scope="session")
def home():
    """
    The Hadoop home that `make setup` made.
    """
    return HadoopHome.find()


@pytest.fixture
def instrument(java):
    """
    A function that runs the instrumenter.
    """

    def run(*arguments, zone="UTC"):
        return subprocess.run(
            [java.launcher, f"-Duser.timezone={zone}", "-jar", homes.TRACER, *arguments],
            check=False,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )

    return run


@pytest.fixture
def spoiled(java, home, tmp_path):
    """
    A home's jars, of which one is another's: its sort has other arguments, its task no main.
    """
    classes, lib = tmp_path / "classes", tmp_path / "lib"
    sources = {
        "org.apache.hadoop.util.QuickSort": "public void sort(int left) {}",
        "org.apache.hadoop.mapred.YarnChild": "",
    }
    files = []
    for name, body in sources.items():
        package, _, simple = name.rpartition(".")
        files.append(tmp_path / f"{simple}.java")
        files[-1].write_text(f"package {package}; public class {simple} {{ {body} }}")
    subprocess.run([java.home / "bin" / "javac", "-d", classes, *files], check=True)
    lib.mkdir()
    for jar in (home.path / "lib").glob("*.jar"):
        (lib / jar.name).symlink_to(jar)
    jar_argv = [java.home / "bin" / "jar", "-c", "-f", lib / "a-first.jar", "-C", classes, "."]
    subprocess.run(jar_argv, check=True)
    return lib


@pytest.fixture(scope="session")
def sort_classes(compiled, home):
    """
    The program `Sort`.
    """
    return compiled("Sort", home.path_jar)


def sort(java, *options):
    """
    Output of the program, run with these options.
    """
    return subprocess.run(
        [java.launcher, *options, "Sort"],
        check=True,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    ).stdout


class TestInstrumenter:
    def test_same_each_time(self, instrument, home, tmp_path):
        """
        Equal jars give equal bytes, wherever and whenever: those of the home.
        """
        jar = tmp_path / "other.jar"

        assert instrument(home.path / "lib", jar, zone="Asia/Tokyo").returncode == 0
        assert jar.read_bytes() == (home.path / homes.INSTRUMENTED).read_bytes()

    def test_missing_hooks_are_named(self, instrument, spoiled, tmp_path):
        """
        All hooks without a place are named at once, and no jar is written.
        """
        finished = instrument(spoiled, tmp_path / "out.jar")

        assert (
            finished.returncode,
            finished.stderr.splitlines(),
            (tmp_path / "out.jar").exists(),
        ) == (
            1,
            [
                f"missing: org.apache.hadoop.{hook} arguments: no such method"
                for hook in (
                    "mapred.YarnChild.main with 1",
                    "mapred.YarnChild.configureTask with 4",
                    "mapred.YarnChild.configureLocalDirs with 2",
                    "mapred.YarnChild.writeLocalJobFile with 2",
                    "util.QuickSort.sort with 4",
                )
            ],
            False,
        )

    def test_check(self, home, spoiled, monkeypatch):
        """
        The jars of the home lack nothing; of others the check prints what they lack.
        """
        other = HadoopHome(spoiled.parent, home.java, home.sums)

        assert setup.missing_hooks(home) == []
        missing = setup.missing_hooks(other)
        assert [line.split(" ")[0].rpartition(".")[2] for line in missing] == [
            "main", "configureTask", "configureLocalDirs", "writeLocalJobFile", "sort",
        ]  # fmt: skip


class TestInstrumentedClasses:
    @pytest.mark.parametrize("agent", [False, True], ids=["before", "agent"])
    def test_hooks_record(self, java, home, sort_classes, tmp_path, agent):
        """
        The same hooks record the same, put in before or at the start.
        """
        jar = home.path_jar if agent else home.trace_path_jar
        options = [f"-javaagent:{homes.TRACER}"] if agent else []
        recording = ["-Dltrace=spans", f"-Dltrace.dir={tmp_path}"]
        out = sort(java, *options, *recording, "-cp", f"{jar}:{sort_classes}")
        recording = read_spans(tmp_path / "ltrace.spans")

        assert (out, [(s.kind, s.amount) for s in recording.spans]) == ("[1, 2, 3]\n", [(SORT, 3)])

    def test_agent_without_hadoop(self, java):
        """
        Where a class lacks a hook, nothing is traced, each hook is named, and the program runs.
        """
        argv = [java.launcher, f"-javaagent:{homes.TRACER}", "-jar", homes.TRACER]
        finished = subprocess.run(
            argv, check=False, capture_output=True, text=True, timeout=LIMIT_S
        )
        *named, usage = finished.stderr.splitlines()

        assert (finished.returncode, usage.partition(":")[0]) == (2, "usage")
        assert len(named) > 50
        assert all("not traced, this Hadoop lacks a hook: " in line for line in named)

    def test_archive_is_used(self, java, home, sort_classes):
        """
        Traced tasks get our classes and Hadoop's instrumented ones out of the archive.
        """
        if home.archive is None:
            pytest.skip("this JDK cannot make an archive")

        out = sort(
            java,
            "-Xshare:on",
            f"-XX:SharedArchiveFile={home.tasks_archive}",
            "-Xlog:class+load",
            "-Dltrace=spans",
            "-Dltrace.dir=/nowhere",
            "-cp",
            f"{home.trace_path_jar}:{sort_classes}",
        )
        wanted = ("org.apache.hadoop.util.QuickSort ", "mapreduce.harness.ltrace.record.Recorder ")
        sources = [line.partition(" source: ")[2] for line in out.splitlines()
                   if any(f" {name}" in line for name in wanted)]  # fmt: skip

        assert sources == ["shared objects file"] * 2
