"""The tracer's jar, and small programs that drive it."""

import subprocess

from pathlib import Path

import pytest

from harness.clusters.hadoop_home import home as homes
from harness.clusters.hadoop_home.home import Java, find_java

HERE = Path(__file__).parent
LIMIT_S = 120  # for what takes a second on an idle machine


@pytest.fixture(scope="session")
def java() -> Java:
    """
    The JDK.
    """
    return find_java()


@pytest.fixture(scope="session")
def compiled(java, tmp_path_factory):
    """
    A function that compiles one of the programs here and returns the folder of its classes.
    """

    def compile_program(name: str, *jars: Path) -> Path:
        folder = tmp_path_factory.mktemp(name)
        path = ":".join(map(str, [homes.TRACER, *jars]))
        source = HERE / f"{name}.java"
        subprocess.run(
            [java.home / "bin" / "javac", "-cp", path, "-d", folder, source],
            check=True,
            timeout=LIMIT_S,
        )
        return folder

    return compile_program
