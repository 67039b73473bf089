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

from harness.base.records.trial import SshAccess
from harness.clusters.collect import Source, collect
from harness.clusters.ssh.connection import Connection, pins_file, trust
from harness.clusters.ssh.host import SshHost
from harness.clusters.state import agent_file
from tests.live.bare_hosts import BareHosts, lacking

CIPHER = "aes128-ctr"
HOSTS, FILES, ROUNDS = 3, 8, 3
LINE = (
    "2026-01-15 10:00:%02d,%03d INFO [fetcher#%d] org.apache.hadoop.mapreduce.task.reduce.Shuffle:"
    " about to shuffle output of map attempt_1700000000000_%04d_m_%06d_0 decomp: %d len: %d\n"
)

REPEAT = """
import sys
block, size = sys.stdin.buffer.read(), int(sys.argv[1])
for name in sys.argv[2:]:
    with open(name, "wb") as file:
        for start in range(0, size, len(block)):
            file.write(block[: size - start])
"""


def text(seed):
    """Four MiB of log lines, as compressible as real ones."""
    import random

    draw, lines, length = random.Random(seed), [], 0
    while length < 2**22:
        second, size = draw.randrange(10**6), draw.randrange(10**8)
        lines.append(
            LINE % (second % 60, second % 1000, second % 5, second % 7, second, size, size + 4)
        )
        length += len(lines[-1])
    return "".join(lines).encode()


def seconds(work):
    """Wall time of *work*."""
    start = time.monotonic()
    work()
    return time.monotonic() - start


def by_harness(hosts, into):
    """All files through the harness."""
    sources = [Source(host, "/root/logs", into / host.name) for host in hosts]
    collect(sources, lambda _: ["python3", "-I", "-S", "/root/node.pyz", "pack"], ".*")


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
        bare.name, bare.address, "/root", Connection(bare.address, SshAccess(key=str(made.key)))
    )
    host.put(agent_file(), "node.pyz")
    host.run(["mkdir", "-p", "/root/logs/c1"])
    files = [f"/root/logs/c1/syslog{file}" for file in range(FILES)]
    host.run(["python3", "-c", REPEAT, str(total // HOSTS // FILES), *files], 120, text(number))
    return host


def compare(hosts, key, folder, total):
    """Each way in turn, a few times."""
    ratios = []
    for number in range(ROUNDS):
        by_tar, by_copy = folder / f"tar{number}", folder / f"scp{number}"
        by_copy.mkdir()
        for host in hosts:
            host.connection.close()
        harness_s = seconds(lambda: by_harness(hosts, by_tar))  # noqa: B023 - called at once
        scp_s = seconds(lambda: by_scp(hosts, key, by_copy))  # noqa: B023 - called at once
        ratios.append(scp_s / harness_s)
        rates = [total / each / 1e6 for each in (harness_s, scp_s)]
        print("harness {:6.0f} MB/s   scp {:6.0f} MB/s".format(*rates), flush=True)
        shutil.rmtree(by_tar)
        shutil.rmtree(by_copy)
    print(f"ratio harness / scp: median {statistics.median(ratios):.2f} of {ROUNDS}")


if __name__ == "__main__":
    main()
