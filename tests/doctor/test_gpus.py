"""
GPUs, and what GPU workloads can compute on.
"""

from zipfile import ZipFile

import pytest

from harness.doctor import asking, gpus


class TestDevices:
    """GPUs, their driver and the CUDA compiler."""

    @pytest.mark.parametrize(
        ("libraries", "state", "driver"),
        [
            ("\tlibcuda.so.1 (libc6,x86-64) => /lib/libcuda.so.1", "ok", "/lib/libcuda.so.1"),
            ("\tlibc.so.6 (libc6,x86-64) => /lib/libc.so.6", "note", "no driver file libcuda.so.1"),
        ],
        ids=["library", "no library"],
    )
    def test_devices(self, shim, libraries, state, driver):
        """
        Each device of the driver's list; without the driver's library no task can use them.
        """
        shim("nvidia-smi", "printf 'H100, 81559 MiB, 550.1\\nH100, 81559 MiB, 550.1\\n'")
        shim("ldconfig", f"printf '{libraries}\\n'")

        found = gpus.gpu()

        assert found.state == state
        assert found.what.startswith("H100, 81559 MiB, 550.1; H100, 81559 MiB, 550.1; ")
        assert driver in found.what

    def test_command_that_hangs(self, shim, monkeypatch):
        """
        A command that does not end has failed, and the doctor goes on.
        """
        shim("nvidia-smi", "exec sleep 60")
        monkeypatch.setattr(asking, "_LIMIT_S", 0.2)

        found = gpus.gpu()

        assert found.state == "note"
        assert "timed out" in found.what

    def test_compiler(self, shim):
        """
        The release of the CUDA compiler.
        """
        shim("nvcc", "echo 'Cuda compilation tools, release 12.4, V12.4.131'")

        assert gpus.cuda().what == "nvcc 12.4"


class TestKernels:
    """Libraries in the jar of the GPU workloads."""

    @pytest.mark.parametrize(
        ("packed", "state", "what"),
        [
            (["cpu"], "ok", "built for processors"),
            (["cuda", "cpu"], "ok", "built for processors and CUDA devices"),
            ([], "note", "no library is built: GPU workloads run nowhere"),
        ],
    )
    def test_libraries_of_gpu_workloads(self, tmp_path, monkeypatch, packed, state, what):
        """
        By what lies in their jar.
        """
        jar = tmp_path / "gpu.jar"
        with ZipFile(jar, "w") as made:
            for kind in packed:
                made.writestr(f"native/libharness-gpu-{kind}.so", b"")
        monkeypatch.setattr(gpus, "job_jar", lambda _: jar)

        assert (gpus.kernels().state, gpus.kernels().what) == (state, what)

    def test_a_jar_of_gpu_workloads_that_cannot_be_read(self, tmp_path, monkeypatch):
        """
        One that is cut short, or not there, is a note with its cure.
        """
        (tmp_path / "gpu.jar").write_bytes(b"PK")
        monkeypatch.setattr(gpus, "job_jar", lambda _: tmp_path / "gpu.jar")
        cut = gpus.kernels()
        monkeypatch.setattr(gpus, "job_jar", lambda _: tmp_path / "none.jar")
        missing = gpus.kernels()

        assert (cut.state, cut.fix) == (missing.state, missing.fix) == ("note", "make setup")
