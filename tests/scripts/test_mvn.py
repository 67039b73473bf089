"""Maven that uses no jar but those whose checksums are committed."""

import os
import re
import subprocess

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESOLVE = "org.apache.maven.plugins:maven-resources-plugin:3.3.1:resources"
TIMEOUT_S = 120

pytestmark = pytest.mark.process


@pytest.fixture
def maven(tmp_path):
    """
    Runs a plugin of Maven with the jars of the local repository in a folder of its own.
    """
    repository = tmp_path / "repository"
    subprocess.run(["cp", "-rs", Path.home() / ".m2/repository", repository], check=True)

    def run(sums=ROOT / "workloads/SHA256SUMS"):
        return subprocess.run(
            [
                ROOT / "scripts/mvn", "-o", "-q", "-B", f"-Dmaven.repo.local={repository}",
                "-f", ROOT / "workloads/probe/pom.xml", RESOLVE,
            ],
            check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=TIMEOUT_S, env={**os.environ, "VERIFIED_JARS": str(sums)},
        )  # fmt: skip

    run.repository = repository
    return run


def plugin_jar(repository):
    """
    The jar of the plugin that is run.
    """
    (jar,) = repository.glob("org/apache/maven/plugins/maven-resources-plugin/3.3.1/*.jar")
    return jar


def test_what_is_listed(maven):
    """
    A plugin whose jars are all listed runs.
    """
    done = maven()

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_changed_byte(maven):
    """
    A plugin in whose jar one byte was changed is not run: the jar is named, with what to do.
    """
    jar = plugin_jar(maven.repository)
    content = bytearray(jar.read_bytes())
    jar.unlink()
    content[-1] ^= 1
    jar.write_bytes(content)

    done = maven()

    assert (done.returncode, re.findall(r"(\S+) has another checksum", done.stderr)) == (
        3,
        [str(jar)],
    )
    assert "fix: delete that file and repeat" in done.stderr


def test_a_jar_that_nobody_listed(maven, tmp_path):
    """
    A jar that the list does not have is refused, whatever it holds.
    """
    lines = (ROOT / "workloads/SHA256SUMS").read_text().splitlines(keepends=True)
    sums = tmp_path / "SHA256SUMS"
    sums.write_text("".join(line for line in lines if "maven-resources-plugin" not in line))

    done = maven(sums)

    assert done.returncode == 3
    assert f"and {sums} does not list it" in done.stderr
    assert "scripts/export-sums" in done.stderr
