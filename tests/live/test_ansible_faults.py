"""
What is lost on bare hosts in the midst of a trial: a daemon, a host, its network.
"""

import re
import time

import pytest

from harness.core.store import Store
from tests.live.bare_hosts import trusted_hosts
from tests.live.runs import clusters, command, mapping, settings, start, wait_for

pytestmark = [pytest.mark.live, pytest.mark.long, pytest.mark.usefixtures("can_make_hosts")]

LIMIT_S = 1200


@pytest.fixture
def place(tmp_path):
    """
    A place with three hosts that a harness of its own trusts.
    """
    with trusted_hosts(3, settings(tmp_path)) as made:
        yield made


def lose(place, what):
    """
    End a daemon or have it stand still, end a host as a power cut does, or take its network away.
    """
    kind, _, name = what.partition(" on ")
    host = place.hosts[["master", "worker1", "worker2"].index(name)]
    if kind == "power":
        host.stop()
    elif kind == "network":
        host.cut()
    else:
        number = "-STOP" if kind.startswith("still ") else "-9"
        host.execute("pkill", number, "-f", f"proc_{kind.removeprefix('still ')}")


WHOLE = "datanode on worker1, nodemanager on worker1 died"
# what is said of it, within how many seconds, and the status of the command
LOST = {
    "datanode on worker2": ("datanode on worker2 died", 20.0, 5),
    "nodemanager on worker1": ("nodemanager on worker1 died", 20.0, 5),
    "resourcemanager on master": ("resourcemanager on master died", 20.0, 5),
    "still namenode on master": ("namenode on master has not answered for 15 s", 40.0, 5),
    "power on worker1": (WHOLE, 150.0, 4),
    "network on worker1": (WHOLE, 150.0, 4),
}


@pytest.mark.parametrize("fault", LOST)
def test_what_is_lost_in_a_trial(place, tmp_path, fault):
    """
    The trial fails in bounded time, by the name of what was lost.  Hosts that are there are left as
    they were; one that has gone is named, and kept in mind for the next command.
    """
    message, within_s, status = LOST[fault]
    environment, results, log = settings(tmp_path), tmp_path / "results", tmp_path / "log"
    before = [host.written() for host in place.hosts]
    addresses = ", ".join(host.address for host in place.hosts)
    changes = [
        "cluster.provider=ansible", f"cluster.hosts=[{addresses}]", f"cluster.ssh.key={place.key}",
        "trial_limit=10 min",
    ]  # fmt: skip
    words = [word for change in changes for word in ("--set", change)]
    argv = command("run", results, *words, "--on-error", "stop")
    process = start(log, environment, *argv)
    wait_for(lambda: mapping(results), process, log)
    lose(place, fault)
    lost_s = time.time()

    assert process.wait(timeout=LIMIT_S) == status, log.read_text()
    (failed,) = [r for r in Store(results).latest("smoke").trials().values() if r.state != "done"]
    assert re.match(message, failed.reason), failed.reason
    assert failed.finished_s - lost_s < within_s
    there = [(h, w) for h, w in zip(place.hosts, before, strict=True) if h.process.poll() is None]
    if status == 5:
        assert [host.written() for host, _ in there] == [written for _, written in there]
        assert clusters(environment) == []
    else:
        assert "worker1" in log.read_text().partition("is not completely removed")[2]
        assert len(clusters(environment)) == 1
