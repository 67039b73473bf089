"""
Bare hosts for tests: namespaces of this machine with a real sshd in each.

Every host has its own processes, its own network and its own copy-on-write view of this machine's
files, kept in memory: what is installed, filled up or destroyed there never reaches this machine.
All hosts hang on one process; they end with it, and it ends with us.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time

from dataclasses import dataclass, field
from pathlib import Path

from tests.live.packages import PACKAGES, provide, unpacked
from tests.live.runs import PROGRAM, output

PROJECT = Path(__file__).resolve().parents[2]
SYSTEMD = "/usr/lib/systemd/systemd"
TOOLS = {
    "/usr/bin/ssh-keygen": "openssh-client", "ip": "iproute2",
    "nsenter": "util-linux", "unshare": "util-linux",
}  # fmt: skip
LIMIT_S = 20

BOOT = r"""
set -e
hostname "$NAME"
mount -t tmpfs -o "size=$SIZE" tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root /mnt/given
cp -r "$FOLDER/." /mnt/given
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
mount --rbind /dev /mnt/root/dev
mount -t proc proc /mnt/root/proc
mount -t sysfs -o ro sysfs /mnt/root/sys
for place in root run home; do mount -t tmpfs -o "size=$SIZE" tmpfs "/mnt/root/$place"; done
mount -t tmpfs tmpfs /mnt/root/tmp
mkdir -p "/mnt/root$PROJECT"
mount -t tmpfs tmpfs "/mnt/root$PROJECT"
chmod 700 /mnt/root/root
chmod 1777 /mnt/root/tmp
mkdir -p /mnt/root/run/sshd /mnt/root/home/worker
cp -r /mnt/given /mnt/root/run/given
chmod 755 /mnt/root/run/sshd /mnt/root/run/given
chmod 600 /mnt/root/run/given/host_key
printf 'worker:x:1234:1234::/home/worker:/bin/bash\n' >> /mnt/root/etc/passwd
printf 'worker:x:1234:\n' >> /mnt/root/etc/group
printf 'worker:*:19000:0:99999:7:::\n' >> /mnt/root/etc/shadow
chown 1234:1234 /mnt/root/home/worker
grep -q '^sshd:' /mnt/root/etc/passwd || printf 'sshd:x:1235:65534::/run/sshd:/bin/false\n' \
    >> /mnt/root/etc/passwd
printf '127.0.0.1 localhost\n' > /mnt/root/etc/hosts
rm -rf /mnt/root/etc/environment
cd /mnt/root
eval "$PREPARE"
[ -z "$SYSTEMD" ] || eval "$BOOT_SYSTEMD"
echo ready
read -r go
ip link set lo up
ip addr add "$ADDRESS/24" dev eth0
ip link set eth0 up
[ -z "$SYSTEMD" ] || exec env -i container=bare PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    chroot /mnt/root "$SYSTEMD" --unit=bare.target --log-target=console --show-status=0
chroot /mnt/root /bin/sh -c '/usr/sbin/sshd -D -e -f /run/given/sshd_config & wait'
"""

# Only sshd of all that a machine starts: the rest would look for devices that are not its own.
BOOT_SYSTEMD = r"""
mount -t cgroup2 cgroup2 sys/fs/cgroup
for place in usr/lib etc; do
    for wants in sysinit basic multi-user sockets timers; do
        folder=$place/systemd/system/$wants.target.wants
        [ ! -d $folder ] || mount -t tmpfs tmpfs $folder
    done
done
printf '[Unit]\nWants=bare-sshd.service\n' > etc/systemd/system/bare.target
printf '[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/usr/sbin/sshd -D -e -f %s\n' \
    /run/given/sshd_config > etc/systemd/system/bare-sshd.service
"""

SSHD_CONFIG = """\
HostKey /run/given/host_key
AuthorizedKeysFile /run/given/authorized_keys
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
UseDNS no
MaxStartups 100
Subsystem sftp internal-sftp
"""


def lacking():
    """
    Why no hosts can be made here, or nothing.
    """
    if os.geteuid() != 0:
        return "only root can join its own network to that of the hosts"
    missing = sorted({package for tool, package in TOOLS.items() if shutil.which(tool) is None})
    if missing:
        return f"apt-get install -y {' '.join(missing)}"
    return provide("sshd")


@dataclass
class BareHost:
    """
    One host: its name, its address, its key, and the process that it hangs on.
    """

    name: str
    address: str
    host_key: str
    fingerprint: str
    process: subprocess.Popen = None
    log: Path = None

    @property
    def pid(self):
        """
        Number of its first process, here.
        """
        return child(child(self.process.pid))

    def execute(self, *argv):
        """
        Output of a command on the host, run past its sshd.
        """
        pid = str(self.pid)
        exec_prefix = ["nsenter", "-t", pid, "-m", "-n", "-p", "-u", "chroot", "/mnt/root"]
        return subprocess.run(
            [*exec_prefix, *argv], check=True, capture_output=True, text=True, timeout=LIMIT_S
        ).stdout

    def written(self):
        """
        All that lies on the host and is not this machine's, its files of names and users, and its
        packet filter.  Copies that `useradd` keeps of files of users are not counted.
        """
        script = """
            cd /mnt && find upper root/root root/home root/tmp \\
                -not -path upper/var -not -path upper/var/lib -not -path 'upper/var/log*' \\
                -not -path 'upper/run*' -not -path 'upper/etc/*-' -not -path upper/etc/.pwd.lock \\
                -not -path upper/etc/gshadow -not -path 'upper/etc/sub?id' | sort
            cat root/etc/hosts; sort root/etc/passwd root/etc/group
        """
        exec_prefix = ["nsenter", "-t", str(self.pid), "-m", "sh", "-c", script]
        return run(*exec_prefix) + self.execute("nft", "list", "tables")

    def stop(self):
        """
        End the host as a power cut does.
        """
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait()

    def cut(self):
        """
        Take the host's network away.
        """
        self.execute("ip", "link", "set", "eth0", "down")


@dataclass
class BareHosts:
    """
    Hosts beside each other; a context manager.
    """

    folder: Path = None
    link: str = ""
    hosts: list = field(default_factory=list)

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="harness-hosts-"))
        self.key = self.folder / "key"
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc_info):
        self.close()

    def close(self):
        """
        End all hosts: every process and link of theirs goes with the first process.
        """
        for process in [*(h.process for h in self.hosts), getattr(self, "outer", None)]:
            if process is not None:
                process.kill()
                process.wait()
        if self.link:
            subprocess.run(["ip", "link", "del", self.link], check=False, capture_output=True)
        shutil.rmtree(self.folder)

    def _start(self):
        keygen(self.key)
        script = "ip link set lo up; ip link add switch0 type bridge; ip link set switch0 up; "
        self.outer = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *unshared("-nm"), "sh", "-c",
             script + "echo ready; exec sleep infinity"],
            stdout=subprocess.PIPE, text=True, process_group=0,
        )  # fmt: skip
        with self.outer.stdout:
            assert self.outer.stdout.readline() == "ready\n"
        self.first = child(self.outer.pid)
        self._join()

    def _join(self):
        """
        Join this machine to the hosts' network, with an address that nothing here has.
        """
        for _ in range(50):
            self.net = f"198.19.{random.randrange(1, 255)}"
            link = f"hosts{self.net.rpartition('.')[2]}"
            there = f"/proc/{self.first}/ns/net"
            made = [
                "ip",
                "link",
                "add",
                link,
                "type",
                "veth",
                "peer",
                "name",
                "uplink0",
                "netns",
                there,
            ]
            if subprocess.run(made, check=False, capture_output=True).returncode == 0:
                self.link = link
                break
        run("ip", "addr", "add", f"{self.net}.254/24", "dev", link)
        run("ip", "link", "set", link, "up")
        self._here("ip", "link", "set", "uplink0", "master", "switch0", "up")

    def _here(self, *argv):
        run("nsenter", "-t", str(self.first), "-n", *argv)

    def add(self, *, size="4g", sshd="", prepare="", authorized=True, wait=True, systemd=False):
        """
        A further host: *sshd* are lines of its sshd's settings, read before the usual ones;
        *prepare* a shell script run in its root folder before it starts.  With *systemd* that is
        its first process.
        """
        for tool in ("sshd", "nft"):  # the hosts see this machine's files
            if not Path("/usr/sbin", tool).exists():
                prepare = "\n".join([*map(unpacked, PACKAGES[tool]), prepare])
        number = len(self.hosts) + 1
        name, given = f"host{number}", self.folder / f"host{number}"
        given.mkdir()
        keygen(given / "host_key")
        public = (given / "host_key.pub").read_text()
        (given / "sshd_config").write_text(sshd + "\n" + SSHD_CONFIG)
        keys = self.key.with_suffix(".pub").read_text() if authorized else ""
        (given / "authorized_keys").write_text(keys)
        host = BareHost(
            name, f"{self.net}.{number}", " ".join(public.split()[:2]),
            run("ssh-keygen", "-lf", given / "host_key.pub").split()[1],
        )  # fmt: skip
        host.log = self.folder / f"{name}.log"
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "NAME": name, "SIZE": size, "PREPARE": prepare,
            "FOLDER": str(given), "ADDRESS": host.address, "PROJECT": str(PROJECT),
            "SYSTEMD": SYSTEMD if systemd else "", "BOOT_SYSTEMD": BOOT_SYSTEMD,
        }  # fmt: skip
        exec_prefix = ["nsenter", "-t", str(self.first), "-n", "-m", "-p", "--"]
        with host.log.open("wb") as log:
            host.process = subprocess.Popen(
                [*exec_prefix, *unshared("-nmuC"), "sh", "-c", BOOT], env=environment, cwd="/",
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, process_group=0,
            )  # fmt: skip
        self.hosts.append(host)
        self._connect(host, number)
        if wait:
            await_listening(host)
        return host

    def _connect(self, host, number):
        with host.process.stdin as stdin, host.process.stdout as stdout:
            assert stdout.readline() == b"ready\n", host.log.read_text()
            there = f"/proc/{child(child(host.process.pid))}/ns/net"
            link = f"n{number}"
            self._here(
                "ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", there
            )
            self._here("ip", "link", "set", link, "master", "switch0", "up")
            stdin.write(b"go\n")


def await_listening(host, port=22):
    """
    Return when the host's sshd greets at that port.
    """
    import socket

    deadline = time.monotonic() + LIMIT_S
    while True:
        with (
            contextlib.suppress(OSError),
            socket.create_connection((host.address, port), 1) as connection,
        ):
            if connection.recv(4) == b"SSH-":
                return
        assert time.monotonic() < deadline, host.log.read_text()
        time.sleep(0.05)


@contextlib.contextmanager
def trusted_hosts(count, environment, **options):
    """
    A place with so many hosts whose keys a harness of that environment has pinned.
    """
    with BareHosts() as place:
        for _ in range(count):
            place.add(wait=False, **options)
        for host in place.hosts:
            await_listening(host)
            pin = "trust", host.address, "--fingerprint", host.fingerprint
            output(environment, *PROGRAM, *pin)
        yield place


def unshared(spaces):
    """
    What gives a command namespaces of its own, all of whose processes end with it.
    """
    rest = ["--propagation", "private", "--fork", "--pid", "--kill-child", "--mount-proc"]
    return ["unshare", spaces, *rest, "--"]


def child(pid):
    """
    The only child of a process, waited for.
    """
    deadline = time.monotonic() + LIMIT_S
    while True:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if children:
            return int(children[0])
        assert time.monotonic() < deadline
        time.sleep(0.01)


def keygen(file):
    """
    A key pair, without a passphrase.
    """
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", file)


def run(*argv):
    """
    Output of a command that must succeed.
    """
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return done.stdout
