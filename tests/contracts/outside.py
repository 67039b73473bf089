"""
An attack on every listening port of a cluster: submissions, reads, writes and kills.

A *vantage* runs a command somewhere and answers its output: as another user of this machine, on a
third host, in a container.  `Knowledge` is what the attacker is given: all that an insider could
have said, but the secret.  Hadoop asks nobody who he is: the attacker says that he is the user who
owns the cluster.
"""

import base64
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import threading

from collections.abc import Callable, Container, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harness.clusters.hadoop_home.home import HadoopHome
from tests.live.packages import provide

HERE = Path(__file__).parent
LIVE = HERE.parent / "live"
LIMIT_S = 540
STRANGER = "daemon"  # Java's login needs one who has an entry, and runs nothing of ours
LISTENS = "0A"
# Root as in a container without any right (`--cap-drop ALL`), and with those that Docker gives.
POWERLESS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
GIVEN = (
    "chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap",
    "net_bind_service", "net_raw", "sys_chroot", "mknod", "audit_write", "setfcap",
)  # fmt: skip
AS_DOCKER = ["setpriv", f"--bounding-set=-all,+{',+'.join(GIVEN)}", "--inh-caps=-all"]
CONTAINER_NET = "198.18.200"
CONTAINER_GATEWAY = f"{CONTAINER_NET}.1"
# What Docker sets for containers that reach others through their host.
MASQUERADE = f"""
table ip docker {{
    chain leaving {{
        type nat hook postrouting priority 100;
        ip saddr {CONTAINER_NET}.0/24 oifname != "docker0" masquerade
    }}
}}
"""

Vantage = Callable[[Sequence[str]], str]
Places = Sequence[tuple[str, int]]


@dataclass(frozen=True)
class Knowledge:
    """
    What the attacker knows of a cluster: a running application, a file of HDFS and a block of it
    (pool, id and generation), the NameNode's RPC address; of an insider also the secret, the header
    that shows it on a *node* of his own, and the file with the job's tokens.
    """

    application: str
    file: str
    block: dict
    namenode: str
    user: str = "hadoop"
    header: dict = field(default_factory=dict)
    node: str = ""
    secret: str = ""
    tokens: str = ""


@dataclass(frozen=True)
class Tools:
    """
    What the attack takes at a vantage: Python, Java, Hadoop's jars.
    """

    python: str
    java: str
    jars: str


@dataclass(frozen=True)
class Outsider:
    """
    One who attacks: his vantage, what he tries, and by what address he reaches this machine.
    """

    vantage: Vantage
    places: Places
    tools: Tools
    machine: str = "127.0.0.1"


@dataclass(frozen=True)
class Outcome:
    """
    How many tries there were; the ports that answered with any byte, as "HOST:PORT"; what succeeded
    at each.
    """

    tries: int
    answered: list[str]
    succeeded: dict[str, list[str]]

    @property
    def kinds(self) -> set[str]:
        """
        What succeeded anywhere.
        """
        return {what for names in self.succeeded.values() for what in names}


def attack(places: Places, vantage: Vantage, known: Knowledge, tools: Tools) -> Outcome:
    """
    Try all that there is to try at each of *places*.
    """
    facts = {
        "ports": places, "known": asdict(known), "classes": classes(), "jars": tools.jars,
        "java": [tools.java, "-XX:TieredStopAtLevel=1"],
    }  # fmt: skip
    return Outcome(**told("attacker.py", facts, vantage, tools.python))


@cache
def classes() -> str:
    """
    `Attack.java` as a jar, in base64: where it runs there may be no compiler.
    """
    home = HadoopHome.find()
    with tempfile.TemporaryDirectory() as folder:
        javac = [f"{home.java.home}/bin/javac", "-cp", str(home.path_jar), "-d", f"{folder}/made"]
        run([*javac, str(HERE / "Attack.java")])
        jar = shutil.make_archive(f"{folder}/attack", "zip", f"{folder}/made")
        return base64.b64encode(Path(jar).read_bytes()).decode()


def statuses(requests: Sequence[tuple], vantage: Vantage, python: str) -> list[int]:
    """
    How web services answer requests (address, port, path, headers, a secret to prove or nothing):
    HTTP's status, or 0.
    """
    return told("attacker.py", {"requests": requests}, vantage, python)


def told(program: str, what: dict, vantage: Vantage, python: str):
    """
    What a program of this folder answers there that is told *what*.
    """
    text = (HERE / program).read_text()
    return json.loads(vantage([python, "-I", "-S", "-c", text, json.dumps(what)]).splitlines()[-1])


@contextmanager
def open_service(taken: Container[int]):
    """
    A web service of this machine that answers everybody, and its port: none that nodes of a cluster
    have *taken* in networks of their own, as the tries at theirs would be answered by it.
    """

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ExitStack() as stack:
        server = stack.enter_context(ThreadingHTTPServer(("", 0), Answer))
        while server.server_port in taken:
            server = stack.enter_context(ThreadingHTTPServer(("", 0), Answer))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:  # or a test that fails never ends
            server.shutdown()
            thread.join()


def run(argv: Sequence[str]) -> str:
    """
    Standard output of a command that succeeds; also a vantage, that of this process.
    """
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, (done.args[:6], done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def on(host) -> Vantage:
    """
    A node of a cluster, under the account of its commands.
    """

    def run_there(argv: Sequence[str]) -> str:
        done = host.run(argv, LIMIT_S)
        assert done.status == 0, (argv[:6], done.out[-2000:], done.err[-2000:])
        return done.out

    return run_there


def tools_here(home: HadoopHome) -> Tools:
    """
    Those of this machine.
    """
    return Tools(os.path.realpath(sys.executable), home.java.launcher, str(home.path_jar))


def stranger(home: HadoopHome, before: Sequence[str] = ()) -> Vantage:
    """
    Another user of this machine, to whom tools are shown wherever they lie (as root); after
    *before*, which may lead into another network.
    """
    needed = map(str, (home.path, home.java.home, sys.base_prefix))
    reached = ["unshare", "-m", "--propagation", "private", sys.executable]
    user = f"AS_USER={pwd.getpwnam(STRANGER).pw_uid}"
    as_user = ["env", user, *reached, str(LIVE / "as_nobody.py"), *needed, "--"]
    return lambda argv: run([*before, *as_user, *argv])


def after(before: Sequence[str]) -> Vantage:
    """
    A vantage to which *before* leads.
    """
    return lambda argv: run([*before, *argv])


@contextmanager
def container_behind(enter: Sequence[str]):
    """
    A container of a host, to whose network *enter* leads, as Docker makes one: root with the rights
    that it gives, in a network of its own behind the host; a vantage.
    """
    if why := provide("nft"):
        pytest.skip(why)
    alone = ["setpriv", "--pdeathsig", "KILL", "unshare", "-n", "sh", "-c"]
    with subprocess.Popen(
        [*enter, *alone, "echo ready; exec sleep infinity"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            inside = ["nsenter", "-n", "-t", str(process.pid)]
            for command in (
                "ip link add docker0 type bridge",
                f"ip addr add {CONTAINER_GATEWAY}/24 dev docker0",
                "ip link set docker0 up",
                f"ip link add box0 type veth peer name eth0 netns {process.pid}",
                "ip link set box0 master docker0 up",
            ):
                run([*enter, *command.split()])
            run([*enter, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])
            run([*enter, "sh", "-c", 'printf "%s" "$0" | nft -f -', MASQUERADE])
            for command in (
                f"ip addr add {CONTAINER_NET}.2/24 dev eth0",
                "ip link set lo up",
                "ip link set eth0 up",
                f"ip route add default via {CONTAINER_GATEWAY}",
            ):
                run([*inside, *command.split()])
            yield after([*inside, *AS_DOCKER])
        finally:
            process.kill()


@contextmanager
def third_host():
    """
    A host beside this machine, which it reaches by one address: a vantage, and that address.
    """
    number = os.getpid() % 63 * 4
    name, here, there = (f"third{number}", *(f"198.19.255.{number + end}" for end in (1, 2)))
    commands = (
        f"ip netns add {name}",
        f"ip link add {name} type veth peer name eth0 netns {name}",
        f"ip addr add {here}/30 dev {name}",
        f"ip link set {name} up",
        f"ip -n {name} addr add {there}/30 dev eth0",
        f"ip -n {name} link set eth0 up",
        f"ip -n {name} link set lo up",
        f"ip -n {name} route add default via {here}",
        # to addresses of clusters there is no way, unless this machine has a better one: not that
        # of its gateway, which may accept connections to whatever address
        f"ip route add 198.18.0.0/15 dev {name} metric {100_000 + number}",
    )
    try:
        for command in commands:
            run(command.split())
        yield (lambda argv: run(["ip", "netns", "exec", name, *argv])), here
    finally:
        for command in (f"ip link del {name}", f"ip netns del {name}"):
            subprocess.run(command.split(), capture_output=True, check=False)


def listening(vantage: Vantage) -> list[int]:
    """
    Ports that anything listens to in the network of a vantage.
    """
    return sorted({port for port, _ in listed(vantage(["sh", "-c", "cat /proc/net/tcp*"]))})


def listening_by(process_ids: Sequence[int]) -> list[int]:
    """
    Ports that one of these processes of this machine listens to.
    """
    ports = set()
    for process_id in process_ids:
        entry = Path(f"/proc/{process_id}")
        try:
            links = {str(link.readlink()) for link in (entry / "fd").iterdir()}
            tables = [(entry / "net" / table).read_text() for table in ("tcp", "tcp6")]
        except OSError:  # it has ended
            continue
        sockets = listed("".join(tables))
        ports |= {port for port, inode in sockets if f"socket:[{inode}]" in links}
    return sorted(ports)


def listed(tables: str) -> set[tuple[int, str]]:
    """
    Port and inode of each listening socket in the kernel's tables.
    """
    rows = [line.split() for line in tables.splitlines()]
    rows = [row for row in rows if len(row) > 9 and row[3] == LISTENS]
    return {(int(row[1].rpartition(":")[2], 16), row[9]) for row in rows}


def block_on(vantage: Vantage, data: str) -> dict:
    """
    A block of the DataNode whose data lie in the folder *data*: what stands in its path.
    """
    path = first_file(vantage, data, "*/finalized/*/blk_*.meta")
    pool = next(part for part in path.split("/") if part.startswith("BP-"))
    identity, generation = re.search(r"/blk_(\d+)_(\d+)\.meta$", path).groups()
    return {"pool": pool, "id": int(identity), "generation": int(generation)}


def as_insider(known: Knowledge, vantage: Vantage, node: str, secret: str, data: str) -> Knowledge:
    """
    What one knows on a worker with the address *node* who may read its file *secret*, and the data
    of its nodes.
    """
    header, value = secret_line(vantage, secret)
    tokens = first_file(vantage, data, f"*/{known.application}/*/container_tokens")
    return replace(known, header={header: value}, node=node, secret=value, tokens=tokens)


def secret_line(vantage: Vantage, file: str) -> tuple[str, str]:
    """
    Name of the header, and the secret.
    """
    header, _, value = vantage(["cat", file]).strip().partition(": ")
    return header, value


def first_file(vantage: Vantage, folder: str, pattern: str) -> str:
    """
    Path of a file below a folder.
    """
    # from a folder that its account may enter, or it cannot go back there
    return vantage(["env", "-C", folder, "find", folder, "-path", pattern]).split()[0]
