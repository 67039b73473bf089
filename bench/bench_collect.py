"""
Logs of three hosts, brought here by the harness and by scp with the same cipher, in turn.

Real sshd in namespaces of this machine (root only): sender, network and receiver share its cores,
so only the ratio within one run says something.  `HARNESS_BENCH_MB` is the size in all (1000).
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.providers.ssh.collect import Source, collect
from harness.providers.ssh.connection import Access, Connection
from harness.providers.ssh.host import SshHost
from harness.providers.ssh.pins import pins_file
from harness.providers.ssh.trust import trust
from tests.live.bare_hosts import BareHosts, lacking

CIPHER = "aes128-gcm@openssh.com"
HOSTS, FILES, ROUNDS = 3, 8, 3
LINE = (
    "2026-01-15 10:00:%02d,%03d INFO [fetcher#%d] org.apache.hadoop.mapreduce.task.reduce.Shuffle:"
    " about to shuffle output of map attempt_1700000000000_%04d_m_%06d_0 decomp: %d len: %d\n"
)
PACKER = Path(__file__).parents[1] / "harness" / "node" / "packer.py"


REPEAT = """
import sys
block, size = sys.stdin.buffer.read(), int(sys.argv[1])
for name in sys.argv[2:]:
    with open(name, "wb") as file:
        for begin in range(0, size, len(block)):
            file.write(block[: size - begin])
"""


def text(seed):
    """Four MiB of log lines, as compressible as real ones."""
    import random

    draw, lines, length = random.Random(seed), [], 0
    while length < 2**22:
        a, b = draw.randrange(10**6), draw.randrange(10**8)
        lines.append(LINE % (a % 60, a % 1000, a % 5, a % 7, a, b, b + 4))
        length += len(lines[-1])
    return "".join(lines).encode()


def seconds(work):
    """Wall time of *work*."""
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def by_harness(hosts, into):
    """All files through the harness."""
    sources = [Source(host, "/root/logs", into / host.name) for host in hosts]
    collect(sources, lambda _: ["python3", "-I", "-S", "/root/packer.py"])


def by_scp(hosts, key, into):
    """All files through scp, one process per host."""
    options = [
        "-q", "-r", "-F", "/dev/null", "-i", key, "-c", CIPHER, "-o", "StrictHostKeyChecking=yes",
        "-o", f"UserKnownHostsFile={pins_file()}",
    ]  # fmt: skip
    copies = [
        subprocess.Popen(["scp", *options, f"root@{h.address}:/root/logs", into / h.name])
        for h in hosts
    ]
    assert [copy.wait() for copy in copies] == [0] * len(copies)


def main():
    """Print the rates and their ratio."""
    if lacking():
        print(f"skipped: {lacking()}")
        return
    total = int(os.environ.get("HARNESS_BENCH_MB", "1000")) * 10**6
    folder = Path(tempfile.mkdtemp(prefix="harness-bench-"))
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    try:
        with BareHosts() as made:
            hosts = [prepared(made, total, number) for number in range(HOSTS)]
            compare(hosts, made.key, folder, total)
    finally:
        shutil.rmtree(folder)


def prepared(made, total, number):
    """A host with its share of the logs."""
    bare = made.add()
    trust(bare.address, bare.fingerprint)
    host = SshHost(
        bare.name, bare.address, "/root", Connection(bare.address, Access("root", 22, made.key))
    )
    host.put(PACKER, "packer.py")
    host.run(["mkdir", "-p", "/root/logs/c1"])
    files = [f"/root/logs/c1/syslog{file}" for file in range(FILES)]
    host.run(["python3", "-c", REPEAT, str(total // HOSTS // FILES), *files], 120, text(number))
    return host


def compare(hosts, key, folder, total):
    """Each way in turn, a few times."""
    ratios = []
    for number in range(ROUNDS):
        ours, theirs = folder / f"ours{number}", folder / f"scp{number}"
        theirs.mkdir()
        for host in hosts:
            host.connection.close()
        a = seconds(lambda: by_harness(hosts, ours))  # noqa: B023 - called at once
        b = seconds(lambda: by_scp(hosts, key, theirs))  # noqa: B023 - called at once
        ratios.append(b / a)
        print(f"harness {total / a / 1e6:6.0f} MB/s   scp {total / b / 1e6:6.0f} MB/s", flush=True)
        shutil.rmtree(ours)
        shutil.rmtree(theirs)
    print(f"ratio harness / scp: median {statistics.median(ratios):.2f} of {ROUNDS}, aim 0.80")


if __name__ == "__main__":
    main()
