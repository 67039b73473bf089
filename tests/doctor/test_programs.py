"""
Programs that the harness calls, and the jars that it brings.
"""

import pytest

from harness.doctor import programs
from harness.monitor.probe import probe_jar


class TestTools:
    """Java, Maven, the compiler."""

    def test_no_java(self, tmp_path, monkeypatch):
        """
        A wrong JAVA_HOME is named, and what to set it to.
        """
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))

        found = programs.java()

        assert found.state == "lacking"
        assert str(tmp_path) in found.what
        assert "JAVA_HOME" in found.fix

    @pytest.mark.parametrize(
        ("script", "state"), [("echo Apache Maven 3.8.7", "ok"), ("echo broken; exit 1", "lacking")]
    )
    def test_maven(self, shim, script, state):
        """
        Only a Maven that tells its version counts.
        """
        shim("mvn", script)

        assert programs.maven().state == state

    def test_maven_that_is_misled(self, shim, monkeypatch):
        """
        What misleads it is named; typing its own command again would cure nothing.
        """
        shim(
            "mvn", "echo 'The JAVA_HOME environment variable is not defined correctly' >&2; exit 1"
        )
        monkeypatch.setenv("JAVA_HOME", "/no/such/jdk")

        assert programs.maven().fix.startswith("unset JAVA_HOME")

    @pytest.mark.parametrize(
        ("said", "state", "what"),
        [
            ("echo 'g++ (Debian 12.2.0-14) 12.2.0'", "ok", "g++ 12.2.0"),
            ("exit 1", "note", "no g++: GPU workloads have no stand-in on the CPU"),
        ],
    )
    def test_compiler_of_the_stand_in(self, shim, said, state, what):
        """
        Its version, or what is lost without it.
        """
        shim("g++", said)

        assert (programs.compiler().state, programs.compiler().what) == (state, what)


class TestHadoopHome:
    """Hadoop's jars, and the tracer in them."""

    def test_no_hadoop_home(self, tmp_path, monkeypatch):
        """
        A home that is not there is cured by the set-up.
        """
        monkeypatch.setenv("HARNESS_HADOOP_HOME", str(tmp_path / "none"))

        found = programs.hadoop_home()

        assert found.state == "lacking"
        assert "make setup" in found.fix

    def test_a_hadoop_without_a_hook(self, monkeypatch):
        """
        What the tracer needs and these jars lack is named; experiments run without.
        """
        monkeypatch.setattr(programs.HadoopHome, "find", lambda: None)
        monkeypatch.setattr(
            programs.instrumented, "missing_hooks", lambda home: ["a.B.run with 1 argument"]
        )

        found = programs.tracer()

        assert found.state == "note"
        assert "no hook for a.B.run with 1 argument" in found.what
        assert "trace: logs" in found.fix


class TestSpeedProbe:
    """The jar of the speed probe."""

    def test_no_probe(self, tmp_path, monkeypatch):
        """
        One that is not there is a lack: nothing can be measured without it.
        """
        monkeypatch.setenv("HARNESS_PROBE_JAR", str(tmp_path / "none.jar"))

        assert programs.speed_probe().state == "lacking"

    def test_a_probe_in_a_place_of_ones_own(self, monkeypatch):
        """
        `make setup` would put it elsewhere.
        """
        monkeypatch.setattr(
            programs, "probe_jar", lambda: probe_jar({"HARNESS_PROBE_JAR": "/no/such.jar"})
        )

        found = programs.speed_probe()

        assert (found.state, found.fix) == ("lacking", "unset HARNESS_PROBE_JAR; make setup")
