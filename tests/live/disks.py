"""
Every command that writes, on a disk that is full or read-only: prints one JSON object.

    python -m tests.live.disks [STAGE...]      (as root; mounts lie in a namespace of their own)

The disk holds results, what commands are told to write, caches and the state folder.  Each command
is given on a good disk, on one without a free byte, on one that is read-only, and on the good one
again.  It exits with 1 where a fault gives another status than 3 (or 0, where nothing has to be
written), no word of what to do, a changed file of what was there, or a command that does not end
as on a good disk once there is room.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from pathlib import Path

from tests.live.full_disk import fill
from tests.live.runs import PROGRAM, PROJECT, SMOKE, TWO_TRIALS

SIZE = "400m"
LIMIT_S = 600
MACHINE = 3  # the status of what this machine lacks
BUNDLE = PROJECT / "results" / "published" / "half-cores"
OTHER = PROJECT / "results" / "published" / "slow-disks"
HISTORIES = PROJECT / "tests" / "parsing" / "data"
NIGHT = PROJECT / "experiments" / "night.yaml"
ASKED = ["--workload", "terasort", "--model", "whatif", "--grid", "mapreduce.job.reduces=1,2"]
# Commands by what they are about; RESULTS, RUN and OUT are places on the disk.
STAGES = {
    "init": ["init", "-o", "OUT.yaml"],
    "plan": ["plan", str(SMOKE), "--results-dir", "RESULTS"],
    "run": ["run", str(SMOKE), "--results-dir", "RESULTS", "--wait-quiet", "0s", *TWO_TRIALS],
    "profile": ["profile", "RUN"],
    "predict": ["predict", "RUN"],
    "score": ["score", "RUN"],
    "show": ["show", "RUN"],
    "report": ["report", "RUN"],
    "report elsewhere": ["report", "RUN", "-o", "OUT"],
    "plot": ["plot", "RUN", "errors", "-o", "OUT.pdf"],
    "export": ["export", "RUN", "-o", "OUT"],
    "publish again": ["publish", "--again", str(BUNDLE), "-o", "OUT", "--licence", "CC-BY-4.0"],
    "verify": ["verify", str(BUNDLE)],
    "reproduce": ["reproduce", "RUN"],
    "unpack": ["unpack", "ARCHIVE", "--results-dir", "RESULTS/more"],
    "import": ["import", "JOBS", "-o", "OUT"],
    "profile of histories": ["profile", "IMPORTED"],
    "compare": ["compare", "RUN", "OTHER", "-o", "OUT.csv"],
    "ask": ["ask", "RUN", *ASKED, "-o", "OUT.csv"],
    "catalog": ["catalog", "add", "JOBS"],
    "calibrate": ["calibrate", "--workers", "1", "--budget", "2m", "-o", "OUT.json"],
    "nightly": ["nightly", str(NIGHT), "--results-dir", "RESULTS"],
    "gc": ["gc", "--results-dir", "RESULTS"],
}
SLOW = ("run", "calibrate", "nightly")  # they measure: not given without a fault


class Disk:
    """
    A small disk with what the commands find: a run with its traces, an archive, an imported run.
    """

    def __init__(self, folder):
        self.folder = folder
        self.results = folder / "results"
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(PROJECT),
            "PYTHONDONTWRITEBYTECODE": "1",
            **{f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("STATE", "CACHE")},
        }

    def prepare(self, bundle, other):
        """
        Put a run of *bundle* and one of an *other*, an archive, and an imported run on the disk.
        """
        (run,) = (bundle / "runs").iterdir()
        (other_run,) = (other / "runs").iterdir()
        self.results.mkdir()
        shutil.copytree(other_run, self.results / "other")
        shutil.copytree(run, self.results / run.name)
        shutil.make_archive(self.folder / "archive", "tar", bundle / "runs", run.name)
        jobs = self.folder / "jobs"
        jobs.mkdir()
        history = HISTORIES / "terasort.jhist"
        job_id = re.search(r"job_\d+_\d+", history.read_text())[0]
        shutil.copyfile(history, jobs / f"{job_id}-1-u-n-2-1-1-SUCCEEDED-q-1.jhist")
        shutil.copyfile(HISTORIES / "terasort_conf.xml", jobs / f"{job_id}_conf.xml")
        self.give(["import", "JOBS", "-o", "RESULTS/imported"])

    def give(self, words):
        """
        Give a command; its status and what it says on standard error.
        """
        (run,) = [path for path in self.results.glob("*-*") if path.is_dir()]
        places = {
            "RESULTS": self.results,
            "RUN": run,
            "OUT": self.folder / "out",
            "OTHER": self.results / "other",
            "JOBS": self.folder / "jobs",
            "ARCHIVE": self.folder / "archive.tar",
            "IMPORTED": self.results / "imported",
        }
        argv = [self._placed(word, places) for word in words]
        done = subprocess.run(
            [*PROGRAM, *argv], capture_output=True, text=True, env=self.environment,
            timeout=LIMIT_S, check=False, cwd=self.folder,
        )  # fmt: skip
        return done.returncode, done.stderr

    @staticmethod
    def _placed(word, places):
        for name, place in places.items():
            if word == name or word.startswith((f"{name}/", f"{name}.")):
                return word.replace(name, str(place), 1)
        return word

    def files(self):
        """
        What each file on the disk holds, but what fills it, caches, and locks.
        """
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() and path.name not in ("ballast", "lock") and "cache" not in path.parts
        }


def unpacked(bundle, scratch):
    """
    The folder of a packed *bundle*, below *scratch*.
    """
    place = scratch / "bundles" / bundle.name
    place.mkdir(parents=True)
    subprocess.run(["tar", "xzf", bundle / "bundle.tar.gz", "-C", place], check=True)
    (folder,) = place.iterdir()
    return folder


def mount(*words):
    """
    One mount of this namespace.
    """
    subprocess.run(["mount", *map(str, words)], check=True)


def full(disk):
    """
    Take the last byte.
    """
    fill(disk.folder / "ballast")


def read_only(disk):
    """
    Let nothing be written.
    """
    mount("-o", "remount,ro", disk.folder)


def good(disk):
    """
    Make room.
    """
    mount("-o", "remount,rw", disk.folder)
    (disk.folder / "ballast").unlink(missing_ok=True)


def stage(name, prepared, scratch):
    """
    What one command does with each fault, and after it.
    """
    rows = []
    for fault in (full, read_only):
        folder = scratch / f"{name.replace(' ', '-')}-{fault.__name__}"
        folder.mkdir()
        mount("-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder)
        shutil.copytree(prepared, folder, dirs_exist_ok=True)
        disk = Disk(folder)
        before = disk.files()
        fault(disk)
        status, said = disk.give(STAGES[name])
        good(disk)
        after = disk.files()
        row = {
            "stage": name,
            "fault": fault.__name__,
            "status": status,
            "said": said.splitlines()[-3:],
            "changed": sorted(
                path for path, data in before.items() if not is_kept(path, data, after.get(path))
            ),
            "left": sorted(after.keys() - before.keys()),
        }
        if name not in SLOW:
            row["status then"] = disk.give(STAGES[name])[0]
        subprocess.run(["umount", folder], check=True)
        rows.append(row)
        sys.stderr.write(f"{json.dumps(row)}\n")
    return rows


def is_kept(path, before, after):
    """
    Whether a file is as it was; lists of lines may have grown.
    """
    return after == before or bool(after and path.endswith(".jsonl") and after.startswith(before))


def is_bad(row, expected):
    """
    Whether a fault was told otherwise than it should be, or something was lost by it.
    """
    is_told = row["status"] == MACHINE and any("fix: " in line for line in row["said"])
    is_harmless = row["status"] == expected and expected in (0, 1)
    return (
        not (is_told or is_harmless)
        or bool(row["changed"])
        or row.get("status then", expected) != expected
    )


def main(names):
    """
    Do it, print what was seen.
    """
    rows = []
    with tempfile.TemporaryDirectory(prefix="harness-disks-") as top:
        scratch = Path(top)
        prepared = scratch / "prepared"
        prepared.mkdir()
        bundles = [unpacked(bundle, scratch) for bundle in (BUNDLE, OTHER)]
        Disk(prepared).prepare(*bundles)
        for name in names or STAGES:
            expected = 0
            if name not in SLOW:
                clean = scratch / f"{name.replace(' ', '-')}-good"
                shutil.copytree(prepared, clean)
                expected, _ = Disk(clean).give(STAGES[name])
            told = stage(name, prepared, scratch)
            rows += [{**row, "status on a good disk": expected} for row in told]
    bad = [row for row in rows if is_bad(row, row["status on a good disk"])]
    sys.stdout.write(json.dumps({"stages": len(rows), "bad": bad, "rows": rows}, indent=1) + "\n")
    sys.exit(bool(bad))


if __name__ == "__main__":
    if "--inside" in sys.argv:
        main([word for word in sys.argv[1:] if word != "--inside"])
    within = ["unshare", "-m", "--propagation", "private"]
    again = [sys.executable, "-m", "tests.live.disks", "--inside", *sys.argv[1:]]
    os.execvp(within[0], [*within, *again])
