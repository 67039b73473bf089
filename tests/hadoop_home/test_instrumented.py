"""
Tests for `harness.clusters.hadoop_home.setup.ensure_instrumented`, and for what a home shows of it.
"""

import dataclasses
import io
import sys
import zipfile

import pytest

from harness.base.errors import MachineError
from harness.clusters.hadoop_home import home as homes
from harness.clusters.hadoop_home import setup
from harness.clusters.hadoop_home.home import HadoopHome, Java

pytestmark = pytest.mark.process

SUMS = {
    "lib/hadoop-common-3.5.0.jar": "0" * 64,
    "lib/hadoop-mapreduce-examples-3.4.2.jar": "1" * 64,
}


@pytest.fixture
def tracer(tmp_path, monkeypatch):
    """
    The tracer's jar: what weaves, and what its name stands for in these tests.
    """
    jar = tmp_path / "harness-ltrace.jar"
    jar.write_text("tracer")
    monkeypatch.setattr(homes, "TRACER", jar)
    return jar


@pytest.fixture
def home(tmp_path, tracer, monkeypatch):
    """
    A home whose Java weaves by copying the tracer, dumps by copying the list, and counts its calls.
    """
    launcher = tmp_path / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, sys\n"
        f"calls = pathlib.Path({str(tmp_path / 'calls')!r})\n"
        "values = dict(a.split('=', 1) for a in sys.argv if '=' in a)\n"
        "dump = '-XX:SharedClassListFile' in values\n"
        "calls.open('a').write('dump ' if dump else 'instrument ')\n"
        "if dump:\n"
        "    text = pathlib.Path(values['-XX:SharedClassListFile']).read_text()\n"
        "    pathlib.Path(values['-XX:SharedArchiveFile']).write_text(text)\n"
        f"elif 'bad' in pathlib.Path({str(tracer)!r}).read_text():\n"
        "    sys.exit('missing: a.B.c with 1 arguments: no such method')\n"
        "else:\n"
        f"    text = pathlib.Path({str(tracer)!r}).read_text()\n"
        "    pathlib.Path(sys.argv[-1]).write_text('instrumented by ' + text)\n"
    )
    launcher.chmod(0o755)
    (tmp_path / "tasks.lst").write_text("a/B\n")
    monkeypatch.setattr(homes, "SOURCE", tmp_path)
    (tmp_path / "home").mkdir()
    return HadoopHome(tmp_path / "home", Java(tmp_path, "17.0.15+6"), SUMS)


def calls(home):
    """
    What Java was called for, since the last time.
    """
    file = home.path.parent / "calls"
    text = file.read_text() if file.exists() else ""
    file.unlink(missing_ok=True)
    return text.split()


def class_path(jar):
    """
    Entries of a jar's manifest.
    """
    with zipfile.ZipFile(io.BytesIO(jar.read_bytes())) as contents:
        manifest = contents.read("META-INF/MANIFEST.MF").decode().replace("\r\n ", "")
    return manifest.partition("Class-Path: ")[2].split()


class TestEnsureInstrumented:
    def test_made_once(self, home):
        """
        Classes are instrumented and their archive dumped; then nothing is left to do.
        """
        setup.ensure_instrumented(home)
        first = calls(home)
        setup.ensure_instrumented(home)

        assert (first, calls(home)) == (["instrument", "dump"], [])

    def test_hooks_come_first(self, home):
        """
        The instrumented classes stand before all jars, each of which is named.
        """
        setup.ensure_instrumented(home)

        assert class_path(home.trace_path_jar) == [homes.INSTRUMENTED, *sorted(SUMS)]

    def test_another_tracer(self, home, tracer):
        """
        What another tracer has instrumented is not used, but instrumented again, with an archive.
        """
        setup.ensure_instrumented(home)
        old = home.tasks_archive
        tracer.write_text("new tracer")
        between = (home.trace_path_jar, home.tasks_archive)
        setup.ensure_instrumented(home)

        assert between == (None, None)
        assert (home.tasks_archive != old, old.exists()) == (True, False)

    def test_other_jars(self, home):
        """
        Nor is what was instrumented of other jars.
        """
        setup.ensure_instrumented(home)
        changed_home = dataclasses.replace(home, sums={**SUMS, "lib/snappy.jar": "2" * 64})

        assert (changed_home.trace_path_jar, changed_home.tasks_archive) == (None, None)

    def test_spoiled(self, home):
        """
        A instrumented jar that has changed since is made again.
        """
        setup.ensure_instrumented(home)
        jar_bytes = (home.path / homes.INSTRUMENTED).read_bytes()
        (home.path / homes.INSTRUMENTED).write_bytes(jar_bytes[:-1])
        outdated_jar = home.trace_path_jar
        setup.ensure_instrumented(home)

        assert (outdated_jar, (home.path / homes.INSTRUMENTED).read_bytes()) == (None, jar_bytes)

    def test_missing_hooks(self, home, tracer):
        """
        Jars without a place for a hook are refused by its name, and nothing is left behind.
        """
        tracer.write_text("bad")

        with pytest.raises(MachineError, match=r"missing: a\.B\.c with 1 arguments") as raised:
            setup.ensure_instrumented(home)
        assert (raised.value.exit_status, home.trace_path_jar) == (3, None)

    def test_no_tracer(self, home, tracer, capsys):
        """
        Without the tracer a home is still made, and says what it cannot do.
        """
        tracer.unlink()
        setup.ensure_instrumented(home)

        assert "tasks cannot be traced" in capsys.readouterr().err
        assert (home.trace_path_jar, home.tasks_archive) == (None, None)

    def test_home_that_left_its_checkout(self, home, tracer):
        """
        A home beside which no tracer lies is used with what was instrumented into it.
        """
        setup.ensure_instrumented(home)
        tracer.unlink()

        assert (home.trace_path_jar, home.tasks_archive) != (None, None)

    def test_versions(self, home):
        """
        Outcomes depend on the instrumented jar, where there is one.
        """
        before = home.versions().jars
        setup.ensure_instrumented(home)

        assert home.versions().jars.keys() - before.keys() == {"ltrace-instrumented.jar"}
