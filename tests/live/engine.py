"""
A Docker engine for tests: the machine's own, or one that is started for them on a private socket.

A private one lives in a process namespace, so that whatever a test does to it, the kernel ends all
of it with its first process; it leaves the machine's packet filter and forwarding as they are.
What it has built stays in ``.cache/docker`` for the next time.

    python -m tests.live.engine     have the image of a node built, unless its content is there

``make live`` does so before the tests: building takes minutes, finding it takes none.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time

from pathlib import Path

import pytest

from harness.base.errors import HarnessError, MachineError
from harness.clusters.docker import image as docker_image
from harness.clusters.docker.engine import DEFAULT, LABEL, Engine, owner
from harness.clusters.hadoop_home.home import HadoopHome
from tests.live.packages import provide

PROJECT = Path(__file__).parents[2]
DATA = PROJECT / ".cache" / "docker"
LIMIT_S = 60.0
TOOLS = ("setpriv", "unshare", "ip")


def missing():
    """
    Why there can be no engine here; empty where there can.
    """
    if answers():
        return ""
    if os.geteuid() != 0:
        return "only root can start a Docker engine, and none answers that could be used"
    lacking = [tool for tool in TOOLS if shutil.which(tool) is None]
    if lacking:
        return f"no Docker engine: {', '.join(lacking)} is not installed"
    if reason := provide("dockerd"):
        return f"no Docker engine: {reason}"
    return ""


def answers(address=None):
    """
    Whether an engine answers at *address*, or at that of the environment.
    """
    try:
        Engine.connect({"DOCKER_HOST": address} if address else os.environ).client.close()
    except HarnessError:
        return False
    return True


class PrivateEngine:
    """
    A private engine; *address* is for ``DOCKER_HOST``.
    """

    def __init__(self, data=DATA):
        self.data = data
        self.folder = Path(
            tempfile.mkdtemp(prefix="hd-")
        )  # short: it becomes part of a socket's name
        self.address = f"unix://{self.folder}/docker.sock"
        self.cgroup = f"/{self.folder.name}"
        self.process = None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def start(self):
        """
        Start it, and wait until it answers.
        """
        self.data.mkdir(parents=True, exist_ok=True)
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen(
            [
                "setpriv", "--pdeathsig", "KILL",  # it does not outlive tests that are killed
                "unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child",
                # the first process of its namespace waits for the shims, as dockerd would not
                "--mount-proc", "sh", "-c", '"$@" & wait', "init", "dockerd",
                "--host", self.address, "--data-root", str(self.data),
                "--exec-root", f"{self.folder}/exec", "--pidfile", f"{self.folder}/pid",
                "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--bridge=none",
                "--cgroup-parent", self.cgroup,
            ],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        log.close()
        deadline = time.monotonic() + LIMIT_S
        while not answers(self.address):
            log_text = (self.folder / "log").read_text()[-2000:]
            assert self.process.poll() is None, log_text
            assert time.monotonic() < deadline, log_text
            time.sleep(0.1)

    def kill(self):
        """
        End it at once, with all its containers, as a machine that loses its power does.
        """
        self.process.kill()
        self.process.wait()
        # numbers of processes of a namespace that is gone: they may mean others in the next one
        (self.folder / "pid").unlink(missing_ok=True)
        shutil.rmtree(self.folder / "exec", ignore_errors=True)

    def close(self):
        """
        End it, and remove what the kernel does not: bridges, control groups, its folder.
        """
        names = []
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(HarnessError):
                engine = Engine.connect({"DOCKER_HOST": self.address})
                names = [n.id[:12] for n in engine.client.networks.list()]
                engine.client.close()
            self.kill()
        for name in names:
            subprocess.run(["ip", "link", "del", f"br-{name}"], check=False, capture_output=True)
        groups, name = Path("/sys/fs/cgroup"), self.folder.name
        for top in (*groups.glob(name), *groups.glob(f"*/{name}")):
            for folder in sorted(top.rglob("*/"), reverse=True):
                with contextlib.suppress(OSError):
                    folder.rmdir()
            with contextlib.suppress(OSError):
                top.rmdir()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def ready():
    """
    `running`; the test is skipped where there can be no engine, or no base image for it.
    """
    if reason := missing():
        pytest.skip(reason)
    with contextlib.ExitStack() as stack:
        try:
            engine = stack.enter_context(running())
        except MachineError as error:
            pytest.skip(f"no Docker engine: {str(error).splitlines()[0]}")
        yield engine


@contextlib.contextmanager
def running():
    """
    The address of an engine that has the image of a node, and the `PrivateEngine` that it is, or
    `None` where the machine has its own.
    """
    with contextlib.ExitStack() as stack:
        private = None if answers() else stack.enter_context(PrivateEngine())
        address = private.address if private else os.environ.get("DOCKER_HOST", DEFAULT)
        if private:
            remove_all(address)
            provide("debootstrap")  # for its base image, where no registry answers
        with_image(address)
        yield address, private


def remove_all(address):
    """
    Remove what tests that were cut off have left on a private engine.
    """
    engine = Engine.connect({"DOCKER_HOST": address})
    for container in engine.client.containers.list(all=True):
        container.remove(force=True, v=True)
    engine.client.networks.prune()
    for volume in engine.client.volumes.list():
        volume.remove(force=True)
    engine.client.close()


def with_image(address):
    """
    Have the image of a node on the engine at *address*.
    """
    engine = Engine.connect({"DOCKER_HOST": address})
    try:
        try:
            docker_image.ensure(engine, HadoopHome.find())
        except MachineError:  # no registry: a base is made, as the error says
            own = {"DOCKER_HOST": address, "HARNESS_PYTHON": sys.executable}
            subprocess.run([PROJECT / "docker" / "base"], env={**os.environ, **own}, check=False)
            docker_image.ensure(engine, HadoopHome.find())
    finally:
        engine.client.close()


def left(cluster, address=None):
    """
    Names of all that the engine has of a cluster, running or not.
    """
    engine = Engine.connect({"DOCKER_HOST": address} if address else os.environ)
    filters = {"label": [f"{LABEL}.owner={owner()}", f"{LABEL}.cluster={cluster}"]}
    kinds = engine.client.containers, engine.client.networks, engine.client.volumes
    how = {"all": True}, {}, {}
    names = [e.name for k, h in zip(kinds, how, strict=True) for e in k.list(filters=filters, **h)]
    engine.client.close()
    return names


def main():
    """
    Have the image built, or say on standard error why the Docker tests will be skipped.
    """
    reason = missing()
    try:
        with contextlib.nullcontext() if reason else running():
            pass
    except MachineError as error:
        reason = str(error).splitlines()[0]
    if reason:
        sys.stderr.write(f"the Docker tests will be skipped: {reason}\n")


if __name__ == "__main__":
    main()
