"""
Tests for `harness.clusters.docker.image`: what an image is built from, and when.
"""

import io
import tarfile

from contextlib import nullcontext

import pytest

from harness.base.errors import ClusterError, SpecError
from harness.clusters.docker import image as images
from harness.clusters.docker.engine import EngineError
from harness.clusters.docker.image import DEBIAN
from harness.clusters.hadoop_home.home import JAR_TIME, HadoopHome, Java


class FakeEngine:
    """
    An engine that has the images *there*.
    """

    address = "unix:///fake"

    def __init__(self, there=(), events=({"stream": "Step 1/1 : FROM x\n"},)):
        self.there = set(there)
        self.events = events
        self.client = self.images = self.api = self
        self.builds = []
        self.contexts = []

    def translate_errors(self, subject=""):
        return nullcontext()

    def get(self, name):
        if name not in self.there:
            raise EngineError(f"no such image: {name}", status=404)

    def build(self, *, fileobj, tag, **how):
        self.builds.append((tag, how))
        self.contexts.append(fileobj.read())
        if not any("error" in e for e in self.events):
            self.there.add(tag)
        return iter(self.events)


@pytest.fixture(autouse=True)
def _quiet(tmp_path, monkeypatch):
    """
    No setting of this machine counts; the lock lies in a folder of the test's own.
    """
    for name in ("HARNESS_DOCKER_BASE", "HARNESS_EXTRA_CA", *images._PROXIES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def home(folder, jars=("a.jar", "b.jar")):
    """
    A home with these jars.
    """
    (folder / "lib").mkdir(parents=True)
    (folder / "etc" / "webapps").mkdir(parents=True)
    (folder / "path.jar").write_bytes(b"names")
    (folder / "fence.jar").write_bytes(b"fence")
    for jar in jars:
        (folder / "lib" / jar).write_bytes(jar.encode())
    sums = {f"lib/{jar}": f"{number:064x}" for number, jar in enumerate(jars)}
    return HadoopHome(folder, Java(folder, "17"), sums)


class TestEnsure:
    def test_builds_once(self, tmp_path):
        """
        What is there is not built again.
        """
        engine = FakeEngine(there=[DEBIAN])
        hadoop_home = home(tmp_path / "home")

        names = [images.ensure(engine, hadoop_home) for _ in range(2)]

        assert len(engine.builds) == 1
        assert names == [engine.builds[0][0]] * 2

    def test_other_jars_make_another_image(self, tmp_path):
        """
        The name depends on what is inside, and not on where it was made.
        """
        engine = FakeEngine(there=[DEBIAN])

        image_name, same_name, changed_name = (
            images.ensure(engine, home(tmp_path / f"home{n}", jars))
            for n, jars in enumerate([("a.jar",), ("a.jar",), ("a.jar", "b.jar")])
        )

        assert image_name == same_name != changed_name

    def test_context_holds_the_home_and_no_more_of_this_machine(self, tmp_path):
        """
        Jars, the Dockerfile and lists, with equal owners and times: equal inputs, equal bytes.
        """
        engine = FakeEngine(there=[DEBIAN])
        images.ensure(engine, home(tmp_path / "home"))

        with tarfile.open(fileobj=io.BytesIO(engine.contexts[0])) as tar:
            members = {m.name: (m.uid, m.mtime) for m in tar}

        assert {
            "Dockerfile",
            "home/lib/a.jar",
            "home/path.jar",
            "home/fence.jar",
            "lists/classes.lst",
        } <= set(members)
        assert set(members.values()) == {(0, JAR_TIME)}

    def test_the_base_is_reported(self, tmp_path, capsys):
        """
        Which one, and where it is from.
        """
        engine = FakeEngine(there=[DEBIAN])
        images.ensure(engine, home(tmp_path / "home"))

        assert engine.builds[0][1]["buildargs"]["BASE"] == DEBIAN
        assert engine.builds[0][1]["labels"]["mapreduce-harness.base"] == DEBIAN
        assert f"its base is {DEBIAN}, which the engine has\n" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("message", "fix"),
        [("E: Unable to locate package", "HARNESS_EXTRA_CA"), ("no space left", "docker system")],
    )
    def test_a_failed_build_shows_its_last_lines(self, tmp_path, message, fix):
        """
        They show which command failed; nothing in them moves a cursor.
        """
        lines = [{"stream": f"line {n}\n"} for n in range(100)]
        engine = FakeEngine(
            there=[DEBIAN], events=[*lines, {"stream": f"\x1b[2J{message}\n"}, {"error": "1"}]
        )

        with pytest.raises(ClusterError) as caught:
            images.ensure(engine, home(tmp_path / "home"))

        assert rf"\x1b[2J{message}" in caught.value.what
        assert "line 98" in caught.value.what
        assert "line 1\n" not in caught.value.what
        assert fix in caught.value.fix


class TestCertificates:
    def test_certificates_go_into_the_image(self, tmp_path):
        """
        Certificates of the folder, and nothing else in it; they are part of the image's name.
        """
        (tmp_path / "one.crt").write_text("certificate")
        (tmp_path / "key.pem").write_text("secret")
        hadoop_home = home(tmp_path / "home")

        entries = images.context(hadoop_home, {"HARNESS_EXTRA_CA": str(tmp_path)})

        assert [n for n in entries if n.startswith("ca/")] == ["ca/one.crt"]
        assert images.digest_of(entries, hadoop_home) != images.digest_of(
            images.context(hadoop_home, {}), hadoop_home
        )

    def test_a_folder_without_certificates_is_refused(self, tmp_path):
        """
        A folder without certificates is a typing error, and refused.
        """
        with pytest.raises(SpecError, match="no certificate"):
            images.context(home(tmp_path / "home"), {"HARNESS_EXTRA_CA": str(tmp_path)})


def test_steps_are_reported_as_they_come(capsys):
    """
    People who wait see which step a build is at.
    """
    events = [{"stream": "Step 1/2 : FROM x\n"}, {"stream": " ---> 0123\n"}, {"aux": {}}]

    images.follow_build(iter(events), "image")

    assert capsys.readouterr().err == "docker: Step 1/2 : FROM x\n"
