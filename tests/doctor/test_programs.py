"""
Programs that the harness calls, and the jars that it brings.
"""

from zipfile import ZipFile

import pytest

from harness.base.errors import MachineError
from harness.clusters import survey
from harness.clusters.monitor import probe
from harness.doctor import checks

pytestmark = pytest.mark.process


class TestTools:
    """Java, Maven, the compiler."""

    def test_no_java(self, tmp_path, monkeypatch):
        """
        A wrong JAVA_HOME is named, and what to set it to.
        """
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))

        with pytest.raises(MachineError, match=str(tmp_path)) as caught:
            checks.check_java()

        assert "JAVA_HOME" in caught.value.fix

    @pytest.mark.parametrize(
        ("script", "state"), [("echo Apache Maven 3.8.7", "ok"), ("echo broken; exit 1", "lacking")]
    )
    def test_maven(self, shim, script, state):
        """
        Only a Maven that tells its version counts.
        """
        shim("mvn", script)

        assert checks.check_maven().state == state

    def test_maven_that_is_misled(self, shim, monkeypatch):
        """
        What misleads it is named; typing its own command again would cure nothing.
        """
        shim(
            "mvn", "echo 'The JAVA_HOME environment variable is not defined correctly' >&2; exit 1"
        )
        monkeypatch.setenv("JAVA_HOME", "/no/such/jdk")

        assert checks.check_maven().fix.startswith("unset JAVA_HOME")

    @pytest.mark.parametrize(
        ("script", "state", "what"),
        [
            ("echo 'g++ (Debian 12.2.0-14) 12.2.0'", "ok", "g++ 12.2.0"),
            ("exit 1", "note", "no g++: GPU workloads cannot be emulated on processors"),
        ],
    )
    def test_compiler_of_the_emulation(self, shim, script, state, what):
        """
        Its version, or what is lost without it.
        """
        shim("g++", script)

        assert (checks.check_compiler().state, checks.check_compiler().what) == (state, what)


class TestHadoopHome:
    """Hadoop's jars, and the tracer in them."""

    def test_no_hadoop_home(self, tmp_path, monkeypatch):
        """
        A home that is not there is cured by the set-up.
        """
        monkeypatch.setenv("HARNESS_HADOOP_HOME", str(tmp_path / "none"))

        with pytest.raises(MachineError) as caught:
            checks.check_hadoop_home()

        assert "make setup" in caught.value.fix

    def test_a_hadoop_without_a_hook(self, monkeypatch):
        """
        What the tracer needs and these jars lack is named; experiments run without.
        """
        monkeypatch.setattr(checks.HadoopHome, "find", lambda: None)
        monkeypatch.setattr(checks.setup, "missing_hooks", lambda home: ["a.B.run with 1 argument"])

        finding = checks.check_tracer()

        assert finding.state == "note"
        assert "no hook for a.B.run with 1 argument" in finding.what
        assert "trace: logs" in finding.fix


class TestSpeedProbe:
    """The jar of the speed probe."""

    def test_no_probe(self, tmp_path, monkeypatch):
        """
        One that is not there is a lack: nothing can be measured without it.
        """
        monkeypatch.setattr(probe, "PROBE", tmp_path / "none.jar")

        with pytest.raises(MachineError):
            checks.check_speed_probe()


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
        shim("nvidia-smi", "printf '0, H100, 81920, 550.1\\n1, H100, 81920, 550.1\\n'")
        shim("ldconfig", f"printf '{libraries}\\n'")

        finding = checks.check_gpus()

        assert finding.state == state
        assert finding.what.startswith("H100, 80 GiB, 550.1; H100, 80 GiB, 550.1; ")
        assert driver in finding.what

    def test_command_that_hangs(self, shim, monkeypatch):
        """
        A command that does not end has failed, and the doctor goes on.
        """
        shim("nvidia-smi", "exec sleep 60")
        monkeypatch.setattr(survey, "_GPU_LIMIT_S", 0.2)

        finding = checks.check_gpus()

        assert finding.state == "note"
        assert "has not ended after 0.2 s" in finding.what

    def test_compiler(self, shim):
        """
        The release of the CUDA compiler.
        """
        shim("nvcc", "echo 'Cuda compilation tools, release 12.4, V12.4.131'")

        assert checks.check_cuda().what == "nvcc 12.4"


class TestKernels:
    """Libraries in the jar of the GPU workloads."""

    @pytest.mark.parametrize(
        ("packed", "state", "what"),
        [
            (["cpu"], "ok", "built for processors"),
            (["cuda", "cpu"], "ok", "built for processors and CUDA devices"),
            ([], "note", "no library is built: GPU workloads cannot run"),
        ],
    )
    def test_libraries_of_gpu_workloads(self, tmp_path, monkeypatch, packed, state, what):
        """
        By what lies in their jar.
        """
        jar = tmp_path / "gpu.jar"
        with ZipFile(jar, "w") as jar_file:
            for kind in packed:
                jar_file.writestr(f"native/libharness-gpu-{kind}.so", b"")
        monkeypatch.setattr(checks, "job_jar", lambda _: jar)

        assert (checks.check_kernels().state, checks.check_kernels().what) == (state, what)

    def test_a_jar_of_gpu_workloads_that_cannot_be_read(self, tmp_path, monkeypatch):
        """
        One that is cut short, or not there, is a note with its cure.
        """
        (tmp_path / "gpu.jar").write_bytes(b"PK")
        monkeypatch.setattr(checks, "job_jar", lambda _: tmp_path / "gpu.jar")
        cut = checks.check_kernels()
        monkeypatch.setattr(checks, "job_jar", lambda _: tmp_path / "none.jar")
        missing = checks.check_kernels()

        assert (cut.state, cut.fix) == (missing.state, missing.fix) == ("note", "make setup")
