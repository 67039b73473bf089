"""
A job history of 20 000 tasks: read by the harness and by Rumen, in turn, in both forms.

The history is made of events that Hadoop recorded, with other ids, times and values, and written
by Hadoop's own writer.  Both are timed with their start: a process begins, reads a file that is in
memory, and ends.
"""

import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
JARS = ROOT / ".cache/bench-history/lib"
RECORDED = ROOT / "tests/parsing/data/terasort.jhist"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.11.0:copy-dependencies"
WRITER = "org.apache.hadoop.mapreduce.jobhistory.Copy"
RUMEN = "org.apache.hadoop.tools.rumen.TraceBuilder"

MAPS, REDUCES, HOSTS = 19_000, 1_000, 200
REPEATS = 5
COUNTERS = re.compile(rb'"counters":\{.*?\]\}\]\}')

# The process says its own peak.
OURS = """
import resource, sys
from harness.parsing.history import read_history
with open(sys.argv[1], "rb", buffering=1 << 18) as lines:
    job = read_history(lines, sys.argv[1])
for attempt in job.attempts if sys.argv[2] == "counters" else ():
    dict(attempt.counters.items())
print(len(job.attempts), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def main() -> None:
    done = JARS / ".done"
    if not done.exists():
        run("mvn", "-q", "-B", "-ntp", "-f", ROOT / "bench/history/pom.xml", PLUGIN,
            "-DincludeScope=runtime", f"-DoutputDirectory={JARS}")  # fmt: skip
        done.touch()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for form, path in histories(folder).items():
            compare(form, path, folder)


def histories(folder: Path) -> dict[str, Path]:
    """One history in both forms, each in a folder of its own: Rumen takes the job from the name."""
    made = folder / "made.jhist"
    with made.open("wb") as file:
        file.writelines(lines(random.Random(7)))
    run("javac", "-cp", f"{JARS}/*", "-d", folder, ROOT / "bench/history/Copy.java")
    found = {}
    for form in ("json", "binary"):
        found[form] = folder / form / "job_1795224441974_0001.jhist"
        found[form].parent.mkdir()
        java(folder, WRITER, made, found[form], form)
    return found


def lines(rng: random.Random) -> Iterator[bytes]:
    """
    Lines of the recorded job, its tasks replaced by many.

    A task repeats the counters of its attempt, as in every history that was recorded.
    """
    recorded = [line for line in RECORDED.read_bytes().splitlines(keepends=True) if line.strip()]
    job, tasks = [], {b"m": [], b"r": []}
    for line in recorded[2:]:
        task = re.search(rb'"(?:task|attempt)_\d+_\d+_([mr])_(\d+)', line)
        if task is None:
            job.append(line)
        elif int(task[2]) == 0:
            tasks[task[1]].append(line)
    end = job.pop()
    yield from recorded[:2]
    for line in job:
        yield counted(line) + b"\n"
    for kind, number in ((b"m", MAPS), (b"r", REDUCES)):
        for at in range(number):
            told = b""
            for recorded_line in tasks[kind]:
                line = varied(recorded_line, kind, at, rng)
                if line.startswith(b'{"type":"TASK_FINISHED"'):
                    line = COUNTERS.sub(lambda _, told=told: told, line)
                elif found := COUNTERS.search(line):
                    told = found[0]
                yield line + b"\n"
    yield counted(end) + b"\n"


def counted(line: bytes) -> bytes:
    for kind, number in ((b"Maps", MAPS), (b"Reduces", REDUCES)):
        line = re.sub(rb'("(?:total|finished)%s":)\d+' % kind, rb"\g<1>%d" % number, line)
    return line


def varied(line: bytes, kind: bytes, at: int, rng: random.Random) -> bytes:
    """Event of the recorded task as one of the task *at*."""
    host = b"node%03d.example.org" % (at % HOSTS)
    line = re.sub(rb"(_%s_)\d{6}" % kind, rb"\g<1>%06d" % at, line)
    line = re.sub(rb'("(?:hostname|trackerName)":)"[^"]*"', rb'\g<1>"%s"' % host, line)
    line = re.sub(rb"(container_\d+_\d+_\d+_)\d+", rb"\g<1>%06d" % (at + 2), line)
    later = rng.randrange(1000) + at * 10
    line = re.sub(rb'(Time":)(\d+)', lambda m: b"%s%d" % (m[1], int(m[2]) + later), line)
    values = rng.random
    return re.sub(
        rb'("value":)(\d+)', lambda m: b"%s%d" % (m[1], int(m[2]) * (0.8 + 0.4 * values())), line
    )


def compare(form: str, path: Path, folder: Path) -> None:
    theirs, ours, deep = [], [], []
    for _ in range(REPEATS):
        theirs.append(rumen(path, folder))
        ours.append(harness(path))
        deep.append(harness(path, "counters"))
    ratio = statistics.median(t for t, _ in theirs) / statistics.median(t for t, _ in ours)
    print(f"{form}: {path.stat().st_size / 1e6:.0f} MB, {MAPS + REDUCES} tasks, {REPEATS} times")
    for name, runs in (
        ("Rumen", theirs),
        ("harness", ours),
        ("and the numbers of all counters", deep),
    ):
        times, peak = sorted(t for t, _ in runs), max(mb for _, mb in runs)
        shown = f"{times[0]:.2f} to {times[-1]:.2f}"
        print(f"  {name:8} median {statistics.median(times):.2f} s ({shown}), peak {peak} MiB")
    print(f"  Rumen takes {ratio:.1f} times as long")


def harness(path: Path, what: str = "job") -> tuple[float, int]:
    began = time.monotonic()
    attempts, peak = run(sys.executable, "-c", OURS, path, what).split()
    assert int(attempts) == MAPS + REDUCES
    return time.monotonic() - began, int(peak)


def rumen(path: Path, folder: Path) -> tuple[float, int]:
    trace = folder / "trace.json"
    trace.unlink(missing_ok=True)
    began = time.monotonic()
    told = java(folder, RUMEN, *(f.as_uri() for f in (trace, folder / "topology.json", path)))
    took = time.monotonic() - began
    assert trace.read_bytes().count(b'"attemptID"') == MAPS + REDUCES
    return took, int(told.splitlines()[-1])


def java(folder: Path, main_class: str, *arguments: str | Path) -> str:
    """Run a Java program; the last line tells its peak in MiB."""
    code = (
        "import resource, subprocess, sys; status = subprocess.run(sys.argv[1:]).returncode;"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024); sys.exit(status)"
    )
    path = f"{folder}:{JARS}/*"
    return run(sys.executable, "-S", "-c", code, "java", "-cp", path, main_class, *arguments)


def run(*argv: str | Path) -> str:
    program = shutil.which(str(argv[0])) or sys.exit(f"error: no {argv[0]} on this machine")
    done = subprocess.run([program, *argv[1:]], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"error: {argv[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
