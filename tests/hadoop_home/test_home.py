"""
Tests for `harness.clusters.hadoop_home.home`.
"""

import hashlib
import io
import os
import subprocess
import sys
import threading
import zipfile

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import MachineError
from harness.clusters.hadoop_home import home as homes
from harness.clusters.hadoop_home import setup
from harness.clusters.hadoop_home.home import HadoopHome, Java, path_jar_bytes, verify

pytestmark = pytest.mark.process

PROJECT = Path(__file__).parents[2]
LISTS = SourceFileLoader("class_lists", str(PROJECT / "scripts/export-class-lists"))
class_lists = module_from_spec(spec_from_loader("class_lists", LISTS))
LISTS.exec_module(class_lists)
JARS = {
    "hadoop-common-3.5.0.jar": b"common",
    "hadoop-mapreduce-examples-3.4.2.jar": b"examples",
    "snappy.jar": b"other",
}
jar_names = st.lists(st.from_regex(r"[a-z0-9.-]{1,90}\.jar", fullmatch=True), unique=True)


@pytest.fixture
def source(tmp_path, monkeypatch):
    """
    A checkout whose checksums are those of `JARS`, and whose home is empty.
    """
    folder = tmp_path / "hadoop-home"
    folder.mkdir()
    sums = {n: hashlib.sha256(content).hexdigest() for n, content in JARS.items()}
    (folder / "SHA256SUMS").write_text("".join(f"{s}  lib/{n}\n" for n, s in sums.items()))
    monkeypatch.setattr(homes, "SOURCE", folder)
    monkeypatch.delenv("HARNESS_HADOOP_HOME", raising=False)
    for step in ("ensure_formatted", "ensure_archive", "ensure_instrumented"):
        monkeypatch.setattr(setup, step, lambda *_: None)
    monkeypatch.setattr(homes, "JARS", {})
    return folder


@pytest.fixture
def maven(tmp_path, monkeypatch):
    """
    A Maven that copies `JARS`, or what is in the folder `repository`; it counts its calls.
    """
    repository = tmp_path / "repository"
    commands = tmp_path / "commands"
    for folder in (repository, commands):
        folder.mkdir()
    for name, content in JARS.items():
        (repository / name).write_bytes(content)
    (commands / "mvn").write_text(
        f"#!{sys.executable}\n"
        "import shutil, sys, pathlib\n"
        f"calls = pathlib.Path({str(tmp_path / 'calls')!r})\n"
        "calls.open('a').write(' '.join(sys.argv[1:]) + chr(10))\n"
        f"if '-o' in sys.argv and pathlib.Path({str(tmp_path / 'online')!r}).exists():\n"
        "    sys.exit(1)\n"
        "out = next(a for a in sys.argv if a.startswith('-DoutputDirectory='))\n"
        f"shutil.copytree({str(repository)!r}, out.partition('=')[2])\n"
    )
    (commands / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    monkeypatch.setattr(homes, "MAVEN", commands / "mvn")
    return repository


def calls(tmp_path):
    """
    How often Maven was called.
    """
    file = tmp_path / "calls"
    return len(file.read_text().splitlines()) if file.exists() else 0


class TestFind:
    def test_nothing_there(self, source):
        """
        Without a home the fix is the command that makes it.
        """
        with pytest.raises(MachineError, match="no Hadoop home") as raised:
            HadoopHome.find()
        assert (raised.value.fix, raised.value.exit_status) == ("make setup", 3)

    def test_nothing_where_the_variable_points(self, source, tmp_path, monkeypatch):
        """
        The variable is named, for the mistake may be there.
        """
        monkeypatch.setenv("HARNESS_HADOOP_HOME", str(tmp_path / "typo"))

        with pytest.raises(MachineError, match=r"typo \(HARNESS_HADOOP_HOME; unset"):
            HadoopHome.find()

    def test_what_ensure_made(self, source, maven):
        """
        A home that was made is found, with its versions.
        """
        setup.ensure()
        versions = HadoopHome.find().versions()

        assert (versions.hadoop, sorted(versions.jars)) == (
            "3.5.0",
            ["hadoop-home", "hadoop-mapreduce-examples-3.4.2.jar"],
        )

    def test_our_own_jobs_are_versions(self, source, maven, tmp_path, monkeypatch):
        """
        A job that was built again is another version, so its trials are others.
        """
        jar = tmp_path / "ours.jar"
        monkeypatch.setattr(homes, "JARS", {"ours.jar": jar})
        hadoop_home = setup.ensure()

        digests = []
        for content in (b"one", b"two"):
            jar.write_bytes(content)
            digests.append(hadoop_home.versions().jars["ours.jar"])

        assert digests == [hashlib.sha256(content).hexdigest() for content in (b"one", b"two")]

    @pytest.mark.parametrize(
        ("spoil", "reported"),
        [
            (lambda lib: (lib / "snappy.jar").unlink(), "lib/snappy.jar is missing"),
            (
                lambda lib: (lib / "snappy.jar").write_bytes(b"OTHER"),
                "lib/snappy.jar has another checksum",
            ),
            (lambda lib: (lib / "evil.jar").touch(), "lib/evil.jar does not belong here"),
        ],
        ids=["missing", "changed", "foreign"],
    )
    def test_a_spoilt_jar_is_named(self, source, maven, spoil, reported):
        """
        Any change after the first verification is seen, and `ensure` cures it.
        """
        spoil(setup.ensure().path / "lib")

        with pytest.raises(MachineError, match=reported):
            HadoopHome.find()
        setup.ensure()
        assert HadoopHome.find().path == source / "home"

    def test_verifies_once(self, source, maven, monkeypatch):
        """
        Unchanged sizes and times are believed; no jar is read again.
        """
        setup.ensure()
        monkeypatch.setattr(homes, "file_digest", lambda file: pytest.fail("read again"))

        HadoopHome.find()

    def test_a_home_of_somebody_else_is_verified_each_time(self, source, maven, monkeypatch):
        """
        Where the stamp cannot be written the jars are still compared, and no error comes of it.
        """
        hadoop_home = setup.ensure()
        (hadoop_home.path / "verified.json").unlink()

        def refuse(file, content):
            raise PermissionError(file)

        monkeypatch.setattr(homes, "write_whole", refuse)
        HadoopHome.find()
        assert not (hadoop_home.path / "verified.json").exists()

    def test_a_path_with_blanks_is_refused(self, source, monkeypatch):
        """
        The class path of a container passes through a shell of Hadoop's.
        """
        monkeypatch.setenv("HARNESS_HADOOP_HOME", "/a path/home")

        with pytest.raises(MachineError, match="'/a path/home'"):
            HadoopHome.find()

    def test_broken_checksum_file(self, source):
        """
        A list that is not one is an error, not an empty list.
        """
        (source / "SHA256SUMS").write_text("nonsense\n")

        with pytest.raises(MachineError, match="not a list of checksums"):
            HadoopHome.find()


class TestEnsure:
    def test_second_time_asks_nobody(self, source, maven, tmp_path):
        """
        A complete home needs no Maven.
        """
        setup.ensure()
        setup.ensure()

        assert calls(tmp_path) == 1

    def test_first_offline_then_online(self, source, maven, tmp_path):
        """
        Maven's local repository is asked first; only without it the network.
        """
        (tmp_path / "online").touch()
        setup.ensure()

        assert calls(tmp_path) == 2

    def test_wrong_artifacts_never_get_in(self, source, maven):
        """
        A jar that differs from its checksum stays outside, whoever delivered it.
        """
        (maven / "snappy.jar").write_bytes(b"tampered")

        with pytest.raises(MachineError, match=r"lib/snappy\.jar has another checksum"):
            setup.ensure()
        assert not (source / "home" / "lib").exists()

    def test_an_interrupted_setup_is_repeated(self, source, maven):
        """
        Half-copied jars of a killed setup do not disturb the next.
        """
        (source / "home" / "fresh" / "lib").mkdir(parents=True)
        (source / "home" / "fresh" / "lib" / "half.jar").touch()
        (source / "home" / "lib").mkdir()

        setup.ensure()
        assert sorted(p.name for p in (source / "home" / "lib").iterdir()) == sorted(JARS)

    def test_two_at_once(self, source, maven, tmp_path):
        """
        The second waits for the first, and finds all made.
        """
        threads = [threading.Thread(target=setup.ensure) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert calls(tmp_path) == 1

    def test_home_elsewhere_works_without_the_checkout(self, source, maven, tmp_path, monkeypatch):
        """
        The list of checksums travels with the home.
        """
        monkeypatch.setenv("HARNESS_HADOOP_HOME", str(tmp_path / "elsewhere"))
        setup.ensure()
        (source / "SHA256SUMS").unlink()

        assert HadoopHome.find().path == tmp_path / "elsewhere"

    def test_no_maven(self, source, monkeypatch):
        """
        The fix is a command.
        """
        monkeypatch.setenv("PATH", "/nowhere")
        monkeypatch.setattr(setup, "find_java", lambda: None)

        with pytest.raises(MachineError, match=r"(?s)no Maven.*apt-get install -y maven"):
            setup.ensure()


class TestPathJar:
    @given(jar_names)
    def test_manifest_names_every_jar(self, names):
        """
        Unfolded, the class path holds all names in order; no line is longer than 72 bytes.
        """
        jar = zipfile.ZipFile(io.BytesIO(path_jar_bytes(names)))
        manifest = jar.read("META-INF/MANIFEST.MF").decode()
        path = manifest.replace("\r\n ", "").splitlines()[1]

        assert path.removeprefix("Class-Path: ").split() == sorted(names)
        assert max(map(len, manifest.split("\r\n"))) <= 72

    @given(jar_names, st.randoms())
    def test_equal_names_give_equal_bytes(self, names, random):
        """
        Neither order nor time matters.
        """
        shuffled = random.sample(names, len(names))

        assert path_jar_bytes(shuffled) == path_jar_bytes(names)


class TestArchive:
    def test_belongs_to_one_java(self, source, maven):
        """
        Another build of the JDK has another archive, and none until it is made.
        """
        hadoop_home = setup.ensure()
        hadoop_home.archive_file("classes").touch()
        newer_java_home = HadoopHome(
            hadoop_home.path, type(hadoop_home.java)(hadoop_home.java.home, "99"), hadoop_home.sums
        )

        assert (hadoop_home.archive is not None, newer_java_home.archive) == (True, None)

    def test_class_names_are_those_that_can_be_loaded(self):
        """
        Comments, lambda forms, and classes made at run time are left out.
        """
        lines = [
            "# comment", "java/lang/Object id: 0", "a/B$C", "a/B$$Lambda$12", "@lambda-proxy x",
            "com/sun/proxy/$Proxy9", "java/lang/invoke/LambdaForm$MH", "a/B id: 9",
            "x/Y id: 3 super: 0 source: /a.jar", "g/T$$FastClassByGuice$$1",
        ]  # fmt: skip

        assert class_lists.class_names(lines) == ["a/B", "a/B$C", "java/lang/Object"]

    def test_lambdas_are_kept_apart(self):
        """
        Their lines are of one version of the JVM, and no class names.
        """
        lines = [
            "a/B",
            "@lambda-proxy a/B run ()V",
            "@lambda-form-invoker x",
            "@lambda-proxy a/B run ()V",
        ]

        assert class_lists.lambda_lines(lines) == [
            "@lambda-form-invoker x",
            "@lambda-proxy a/B run ()V",
        ]

    @pytest.mark.parametrize(
        ("refuses", "made"),
        [("never", ["a/B\n@lambda-proxy a/B x\n"]), ("lambda", ["a/B\n"]), ("a/B", [])],
        ids=["all", "no lambdas", "nothing"],
    )
    def test_dump_does_without_what_the_jvm_refuses(self, tmp_path, monkeypatch, refuses, made):
        """
        First with the lambdas of listed classes, then without; a JVM that makes none is no error.
        """
        launcher = tmp_path / "bin" / "java"
        launcher.parent.mkdir()
        launcher.write_text(
            f"#!{sys.executable}\n"
            "import pathlib, sys\n"
            "values = dict(a.split('=', 1) for a in sys.argv if '=' in a)\n"
            "text = pathlib.Path(values['-XX:SharedClassListFile']).read_text()\n"
            f"if {refuses!r} in text: sys.exit(1)\n"
            "pathlib.Path(values['-XX:SharedArchiveFile']).write_text(text)\n"
        )
        launcher.chmod(0o755)
        (tmp_path / "classes.lst").write_text("a/B\n")
        lambdas = "@lambda-proxy a/B x\n@lambda-proxy not/Listed x\n"
        (tmp_path / "lambdas-17.lst").write_text(lambdas)
        (tmp_path / "home").mkdir()
        monkeypatch.setattr(homes, "SOURCE", tmp_path)
        home = HadoopHome(tmp_path / "home", Java(tmp_path, "17.0.15+6"), {})
        setup.ensure_archive(home, "classes", home.path_jar)

        assert [p.read_text() for p in home.path.iterdir()] == made
        assert (home.archive is not None) == bool(made)

    def test_committed_list_is_sorted_and_loadable(self):
        """
        The list in the checkout is what `class_names` would write.
        """
        lines = homes.CLASS_LIST.read_text().splitlines()

        assert class_lists.class_names(lines) == lines


def test_committed_checksums_are_sorted():
    """
    The committed list reads, and holds one Hadoop.
    """
    lines = (PROJECT / "workloads" / "hadoop-home" / "SHA256SUMS").read_text().splitlines()
    names = [line.split("  ")[1] for line in lines]

    assert names == sorted(names)
    assert sum(n.startswith("lib/hadoop-common-") for n in names) == 1


def test_setup_command_tells_what_is_missing(tmp_path):
    """
    The command that `make setup` calls ends with status 3 and a fix.
    """
    environment = {"PATH": str(tmp_path), "PYTHONPATH": str(PROJECT), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "harness.clusters.hadoop_home"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 3
    assert "no java on this machine" in done.stderr
    assert "fix: apt-get install" in done.stderr
    assert "Warning" not in done.stderr  # of Python, about how the module was started


def test_verify_needs_the_path_jar(source, maven):
    """
    A home whose last step was never reached is no home.
    """
    hadoop_home = setup.ensure()
    hadoop_home.path_jar.unlink()

    with pytest.raises(MachineError, match="no Hadoop home"):
        verify(hadoop_home.path, hadoop_home.sums)
