"""
Runs whose harness, cluster and tasks are in different time zones: their times are right.
"""

import re
import subprocess

import pytest

from harness.core.store import Store
from tests.live.foreign import client_environment, foreign_cluster
from tests.live.runs import PROJECT, TWO_TRIALS, command, settings

pytestmark = [pytest.mark.live, pytest.mark.long]
LIMIT_S = 900
ZONES = ("UTC", "Asia/Tokyo", "America/St_Johns")
NAMED = re.compile(rb"^user[.]timezone: (.*)$", re.MULTILINE)
KINDS = {b"MapTask: ": "maps", b"ReduceTask: ": "reduces", b"MRAppMaster: ": "masters"}


def zones_of(run):
    """
    The zones that tasks and masters of a run name in their logs, by their kind.
    """
    zones = {}
    for trial in run.trials():
        raw = run.raw(trial)
        for name in raw.names():
            if name.endswith("/syslog"):
                with raw.open(name) as log:
                    text = log.read()
                kind = next(kind for mark, kind in KINDS.items() if mark in text)
                zones.setdefault(kind, set()).update(zone.decode() for zone in NAMED.findall(text))
    return zones


def ends_of_tasks(run):
    """
    Where the profile has start and end of tasks from, and whether they are seconds, and not hours.
    """
    (profile,) = run.read_profiles().values()
    parts = [
        profile.frame[f"{kind}_{end}_s"] for kind in ("map", "reduce") for end in ("start", "end")
    ]
    return {(part.source, 0 <= part.value < LIMIT_S) for part in parts}


@pytest.mark.parametrize(
    ("provider", "options", "maps"),
    [
        ("local", "-Xmx300m -Duser.timezone=America/St_Johns", "America/St_Johns"),
        ("existing", "-Xmx300m", "Asia/Tokyo"),
    ],
)
def test_every_zone_of_its_own(tmp_path, monkeypatch, provider, options, maps):
    """
    The harness is in Newfoundland; somebody else's cluster is in Japan, and so are maps whose
    options are the user's; all else of ours is in UTC.  Start-ups are seconds, from the logs, and
    the same in whatever zone they are computed again from what is stored.
    """
    results, environment = tmp_path / "results", settings(tmp_path)
    more = ["--set", f"cluster.provider={provider}", "--set", "trial_limit=10 min", *TWO_TRIALS]
    more += ["--set", "trace=logs", "--set", f"configuration.mapreduce.map.java.opts={options}"]

    def harness(step, zone):
        done = subprocess.run(
            command(step, results, *more), env={**environment, "TZ": zone}, cwd=PROJECT,
            timeout=LIMIT_S, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    if provider == "existing":
        with foreign_cluster(monkeypatch, 1, zone="Asia/Tokyo") as foreign:
            environment |= client_environment(foreign)
            harness("all", "America/St_Johns")
    else:
        harness("all", "America/St_Johns")
    run = Store(results).latest("smoke")
    assert zones_of(run) == {"maps": {maps}, "reduces": {"UTC"}, "masters": {"UTC"}}
    assert ends_of_tasks(run) == {("logs: median", True)}

    profiles = set()
    for zone in ZONES:
        harness("profile", zone)
        profiles.add((run.path / "profiles" / "wordcount.json").read_bytes())
    assert len(profiles) == 1
