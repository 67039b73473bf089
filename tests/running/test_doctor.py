"""What the doctor finds, and what it says cures a lack."""

import http.server
import os
import socketserver
import threading

from zipfile import ZipFile

import pytest

from harness.running import doctor
from harness.running.doctor import NEEDED_BY, Finding, examine, lacks
from harness.running.probe import probe_jar


@pytest.fixture
def shim(tmp_path, monkeypatch):
    """
    Put a command of the test's own before all others.
    """
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def make(name, script):
        file = folder / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    return make


class Engine(http.server.BaseHTTPRequestHandler):
    """
    Answers a ping as a Docker engine does.
    """

    status = 200
    server_version = "Docker/29.1.2"

    def do_GET(self):
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(b"OK")

    def address_string(self):
        return "a socket"

    def log_message(self, *args):
        pass


@pytest.fixture
def engine(tmp_path):
    """
    A socket behind which an engine answers.
    """
    path = tmp_path / "docker.sock"
    with socketserver.UnixStreamServer(str(path), Engine) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"unix://{path}"
        server.shutdown()
        thread.join()


class TestExamine:
    """All findings of a machine."""

    def test_every_check_answers(self, tmp_path):
        """
        Each finding has a name of its own and says what was seen; what a provider needs is among
        them.
        """
        findings = examine(tmp_path / "not" / "made" / "yet")
        names = [f.name for f in findings]

        assert len(set(names)) == len(names)
        assert all(f.what and f.state in ("ok", "note", "lacking") for f in findings)
        assert {name for needed in NEEDED_BY.values() for name in needed} <= set(names)
        assert not (tmp_path / "not").exists()

    def test_what_lacks_is_told_by_who_needs_it(self):
        """
        A note keeps nobody from working; a lack keeps those who need it.
        """
        findings = [
            Finding("java", "lacking", "none"),
            Finding("maven", "note", "old"),
            Finding("disk", "ok", "enough"),
        ]

        assert lacks(findings) == {who: ["java"] for who in NEEDED_BY}

    @pytest.mark.parametrize(
        ("name", "who"),
        [("docker", "docker"), ("ssh", "ansible"), ("existing cluster", "existing")],
    )
    def test_a_provider_is_not_ready_without_its_own(self, name, who):
        """
        An engine that nobody asks for is no lack of the machine; its provider waits for it.
        """
        found = lacks([Finding(name, "note", "none")])

        assert {each for each, missing in found.items() if missing} == {who}


class TestMachine:
    """What the machine itself has."""

    def test_no_room(self, tmp_path, monkeypatch):
        """
        Too little disk is a lack, with what to set.
        """
        monkeypatch.setattr(doctor, "LEAST_DISK", 1 << 70)

        found = doctor.disk(tmp_path)

        assert found.state == "lacking"
        assert "--results-dir" in found.fix

    def test_no_right_to_write(self, tmp_path, monkeypatch):
        """
        A folder of somebody else is a lack; nobody's bug.
        """
        monkeypatch.setattr(doctor.os, "access", lambda *_: False)

        found = doctor.disk(tmp_path / "results")

        assert (found.state, found.fix) == ("lacking", "choose another: --results-dir DIR")
        assert found.what.startswith(f"{tmp_path}/results, the place for results, is not")

    def test_no_memory(self, monkeypatch):
        """
        A control group's limit counts where it is below the machine's memory.
        """
        monkeypatch.setattr(doctor, "_memory_limit", lambda: 1 << 30)

        found = doctor.memory()

        assert found.state == "lacking"
        assert found.what.startswith("1 GiB")

    @pytest.mark.parametrize(("quota", "state"), [(None, "ok"), (0.5, "note")])
    def test_quota_of_a_control_group(self, monkeypatch, quota, state):
        """
        Half a core allowed is half a core, whatever the machine has.
        """
        monkeypatch.setattr(doctor, "_cpu_quota", lambda: quota)
        monkeypatch.setattr(
            doctor, "machine_facts", lambda: {"cores": 8, "cores_usable": 8, "cpu": "some"}
        )

        assert doctor.cores().state == state

    @pytest.mark.parametrize(
        ("text", "cores"), [("max 100000\n", None), ("150000 100000\n", 1.5), ("", None)]
    )
    def test_reads_the_quota(self, monkeypatch, text, cores):
        """
        The kernel's own form of a quota, and its absence.
        """
        monkeypatch.setattr(doctor, "_text", lambda _file: text)

        assert doctor._cpu_quota() == cores

    def test_busy(self, monkeypatch):
        """
        What others run is a note: it disturbs, and stops nothing.
        """
        monkeypatch.setattr(os, "getloadavg", lambda: (1000.0, 0.0, 0.0))

        assert doctor.load().state == "note"


class TestPrograms:
    """Programs that the harness calls."""

    def test_no_java(self, tmp_path, monkeypatch):
        """
        A wrong JAVA_HOME is named, and what to set it to.
        """
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))

        found = doctor.java()

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

        assert doctor.maven().state == state

    def test_no_hadoop_home(self, tmp_path, monkeypatch):
        """
        A home that is not there is cured by the set-up.
        """
        monkeypatch.setenv("HARNESS_HADOOP_HOME", str(tmp_path / "none"))

        found = doctor.hadoop_home()

        assert found.state == "lacking"
        assert "make setup" in found.fix

    def test_a_hadoop_without_a_hook(self, monkeypatch):
        """
        What the tracer needs and these jars lack is named; experiments run without.
        """
        monkeypatch.setattr(doctor.HadoopHome, "find", lambda: None)
        monkeypatch.setattr(doctor.woven, "missing_hooks", lambda home: ["a.B.run with 1 argument"])

        found = doctor.tracer()

        assert found.state == "note"
        assert "no hook for a.B.run with 1 argument" in found.what
        assert "trace: logs" in found.fix

    def test_no_probe(self, tmp_path, monkeypatch):
        """
        The same for the jar of the speed probe.
        """
        monkeypatch.setenv("HARNESS_PROBE_JAR", str(tmp_path / "none.jar"))

        assert doctor.speed_probe().state == "lacking"


class TestKernel:
    """What the kernel lets this user do."""

    def test_refused_namespaces(self, shim):
        """
        Clusters get by without, and lose by it; a cure is told.
        """
        shim("unshare", "echo 'unshare: unshare failed: Operation not permitted' >&2; exit 1")

        found = doctor.namespaces()

        assert found.state == "note"
        assert "ports of the loopback address" in found.what
        assert found.fix

    def test_command_that_hangs(self, shim, monkeypatch):
        """
        A command that does not end has failed, and the doctor goes on.
        """
        shim("nvidia-smi", "exec sleep 60")
        monkeypatch.setattr(doctor, "_LIMIT_S", 0.2)

        found = doctor.gpu()

        assert found.state == "note"
        assert "timed out" in found.what

    def test_no_shaping(self, shim):
        """
        A kernel without the queue is a note: only limits of links need it.
        """
        shim("unshare", "echo 'Error: Specified qdisc kind is unknown.' >&2; exit 2")

        found = doctor.traffic_control()

        assert (found.state, found.fix) == ("note", "modprobe sch_tbf")

    def test_disks_of_nodes(self, monkeypatch):
        """
        What they take is named: commands by their packages, else the reason.
        """
        monkeypatch.setattr(doctor.namespace, "find_tool", lambda tool: None)
        without = doctor.node_disks()
        monkeypatch.setattr(doctor.namespace, "find_tool", lambda tool: f"/sbin/{tool}")
        monkeypatch.setattr(doctor.disks, "refusal", lambda: "only root makes disks")
        refused = doctor.node_disks()
        monkeypatch.setattr(doctor.disks, "refusal", lambda: "")

        assert (without.state, without.fix) == ("note", "apt-get install -y e2fsprogs mount")
        assert refused.what == "only root makes disks: disks of nodes cannot be limited"
        assert doctor.node_disks().state == "ok"


class TestBesides:
    """Engines and devices that some providers can use."""

    def test_engine_answers(self, engine, monkeypatch):
        """
        The engine's version and where it is.
        """
        monkeypatch.setenv("DOCKER_HOST", engine)

        found = doctor.docker()

        assert found.state == "ok"
        assert found.what.startswith("Docker 29.1.2 at unix://")

    def test_engine_that_refuses(self, engine, monkeypatch):
        """
        Something else behind that socket is no engine.
        """
        monkeypatch.setenv("DOCKER_HOST", engine)
        monkeypatch.setattr(Engine, "status", 503)

        assert "status 503" in doctor.docker().what

    @pytest.mark.parametrize(
        ("address", "reason"),
        [("unix:///no/such/socket", "No such file"), ("ssh://host", "ssh scheme")],
    )
    def test_no_engine(self, monkeypatch, address, reason):
        """
        Why none answers, and what would bring one.
        """
        monkeypatch.setenv("DOCKER_HOST", address)

        found = doctor.docker()

        assert found.state == "note"
        assert address in found.what
        assert reason in found.what
        assert found.fix.startswith("unset DOCKER_HOST")

    def test_engine_of_others(self, monkeypatch):
        """
        Wherever it listens: the cure is its group.
        """

        def closed(address):
            raise PermissionError(13, "Permission denied", address)

        monkeypatch.setattr(doctor, "docker_version", closed)
        monkeypatch.setenv("DOCKER_HOST", "unix:///run/other.sock")

        assert doctor.docker().fix == "add this user to the group docker, and log in again"

    def test_no_ssh(self, monkeypatch):
        """
        What Ansible works through, and the package that has it.
        """
        monkeypatch.setenv("PATH", "/nonexistent")

        found = doctor.ssh()

        assert (found.state, found.fix) == ("note", "apt-get install -y openssh-client")

    def test_no_engine_where_none_was_named(self, monkeypatch):
        """
        Then it is an engine that is lacking, or its start.
        """
        monkeypatch.delenv("DOCKER_HOST", raising=False)
        monkeypatch.setattr(doctor, "_DOCKER_SOCKET", "unix:///no/such/socket")

        assert "docker" in doctor.docker().fix
        assert "DOCKER_HOST" not in doctor.docker().fix

    def test_maven_that_is_misled(self, shim, monkeypatch):
        """
        What misleads it is named; typing its own command again would cure nothing.
        """
        shim(
            "mvn", "echo 'The JAVA_HOME environment variable is not defined correctly' >&2; exit 1"
        )
        monkeypatch.setenv("JAVA_HOME", "/no/such/jdk")

        assert doctor.maven().fix.startswith("unset JAVA_HOME")

    def test_a_probe_in_a_place_of_ones_own(self, monkeypatch):
        """
        `make setup` would put it elsewhere.
        """
        monkeypatch.setattr(
            doctor, "probe_jar", lambda: probe_jar({"HARNESS_PROBE_JAR": "/no/such.jar"})
        )

        found = doctor.speed_probe()

        assert (found.state, found.fix) == ("lacking", "unset HARNESS_PROBE_JAR; make setup")

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

        found = doctor.gpu()

        assert found.state == state
        assert found.what.startswith("H100, 81559 MiB, 550.1; H100, 81559 MiB, 550.1; ")
        assert driver in found.what

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
        monkeypatch.setattr(doctor, "job_jar", lambda _: jar)

        assert (doctor.kernels().state, doctor.kernels().what) == (state, what)

    def test_a_jar_of_gpu_workloads_that_cannot_be_read(self, tmp_path, monkeypatch):
        """
        One that is cut short, or not there, is a note with its cure.
        """
        (tmp_path / "gpu.jar").write_bytes(b"PK")
        monkeypatch.setattr(doctor, "job_jar", lambda _: tmp_path / "gpu.jar")
        cut = doctor.kernels()
        monkeypatch.setattr(doctor, "job_jar", lambda _: tmp_path / "none.jar")
        missing = doctor.kernels()

        assert (cut.state, cut.fix) == (missing.state, missing.fix) == ("note", "make setup")

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

        assert (doctor.compiler().state, doctor.compiler().what) == (state, what)

    def test_compiler(self, shim):
        """
        The release of the CUDA compiler.
        """
        shim("nvcc", "echo 'Cuda compilation tools, release 12.4, V12.4.131'")

        assert doctor.cuda().what == "nvcc 12.4"
