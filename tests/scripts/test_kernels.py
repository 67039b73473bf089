"""
Tests for ``scripts/kernels``: without g++ it says so in a line, and CUDA's library is built here
without a GPU and says that there is none.
"""

import os
import shutil
import subprocess
import sys

from pathlib import Path

import pytest

from harness.clusters.hadoop_home.home import find_java
from harness.clusters.workloads import WORKLOADS
from tests.workloads.local_runner import PROJECT, LocalRunner
from tests.workloads.test_gpu_jobs import put, spec_of

pytestmark = pytest.mark.process

LIBRARY = Path("workloads/gpu/target/native")


@pytest.fixture
def project(tmp_path):
    """
    The script with what it reads, in a folder of its own.
    """
    root = tmp_path / "project"
    shutil.copytree(PROJECT / "scripts", root / "scripts")
    shutil.copytree(PROJECT / "workloads/gpu/kernels", root / "workloads/gpu/kernels")
    shutil.copytree(PROJECT / "requirements", root / "requirements")
    (root / ".cache/setup").mkdir(parents=True)
    (root / ".cache/setup/python").write_text(sys.executable)
    return root


def kernels(project, **environment):
    """
    Run the script: status and what it said.
    """
    done = subprocess.run(
        [project / "scripts/kernels"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


def test_without_a_compiler(project):
    """
    One line with the package; what was built before is gone, and the set-up goes on.
    """
    (project / LIBRARY).mkdir(parents=True)
    status, output = kernels(project, CXX="no-such-compiler")

    assert (status, output.count("\n")) == (0, 1)
    assert "apt-get install -y g++" in output
    assert not (project / LIBRARY).exists()


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_builds_once(project):
    """
    The library for processors is built, and not again until a source changes.
    """
    first, second = kernels(project), kernels(project)
    source = project / "workloads/gpu/kernels/sbs.h"
    source.write_text(source.read_text() + "\n")

    assert first == kernels(project) == (0, "setup: building the kernels for cpu\n")
    assert second == (0, "")
    assert [p.name for p in (project / LIBRARY).iterdir()] == ["libharness-gpu-cpu.so"]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="this machine has a GPU")
def test_cuda_library_without_a_gpu(project, tmp_path):
    """
    Nvcc of the pinned wheels builds it; a job that must have a GPU says that there is no driver,
    and one that may use any runs on the processor and says so.
    """
    assert kernels(project, HARNESS_CUDA="1")[0] == 0
    jar = tmp_path / "both.jar"
    shutil.copy(PROJECT / "workloads/gpu/target/harness-gpu.jar", jar)
    shutil.copytree(project / LIBRARY, tmp_path / "jar" / "native")
    subprocess.run(
        [find_java().home / "bin" / "jar", "uf", str(jar), "-C", str(tmp_path / "jar"), "native"],
        check=True,
    )
    runner = LocalRunner(tmp_path, jar)
    put(runner, "a", bytes(4800 * 3))

    def status(device):
        spec = spec_of("gpu-sbs", device=device)
        (command,) = WORKLOADS["gpu-sbs"].submit(spec, str(tmp_path / "in"), str(tmp_path / device))
        return runner.run(command)

    assert status("gpu") != 0
    assert "there is no driver: libcuda.so.1 is not found (CUDA error 35); at: " in runner.output
    assert status("any") == 0, runner.output
    assert 'gpu: device=cpu name="' in runner.output
