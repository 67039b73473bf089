"""
A job history of 20 000 tasks: read by the harness and by Rumen, in turn, in both forms.

    python bench/bench_history.py            needs Maven and a JDK
    python bench/bench_history.py --no-java  the harness alone

The history is made of events that Hadoop recorded, with other ids, times and values, and a second
one has a hundred kinds of user counters besides.  Both readers are timed with their start: a
process starts, reads a file that is in memory, and ends.
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
sys.path.insert(0, str(ROOT))

from tests.parsing.histories import binary  # noqa: E402 - found from the root of the repository

JARS = ROOT / ".cache/bench-history/lib"
RECORDED = ROOT / "tests/parsing/data/terasort.jhist"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.11.0:copy-dependencies"
WRITER = "org.apache.hadoop.mapreduce.jobhistory.Copy"
RUMEN = "org.apache.hadoop.tools.rumen.TraceBuilder"

MAPS, REDUCES, HOSTS = 19_000, 1_000, 200
REPEATS = 5
COUNTERS = re.compile(rb'"counters":\{.*?\]\}\]\}')

KINDS = (0, 100)  # of user counters: none, and so many

# The process reports its own peak.
READER = """
import sys
from harness.observe.parsing.history import read_history
with open(sys.argv[1], "rb") as file:
    job = read_history(file, sys.argv[1])
status = open("/proc/self/status").read()
print(len(job.attempts), int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


def main() -> None:
    with_java = "--no-java" not in sys.argv[1:]
    done = JARS / ".done"
    if with_java and not done.exists():
        run("mvn", "-q", "-B", "-ntp", "-f", ROOT / "bench/history/pom.xml", PLUGIN,
            "-DincludeScope=runtime", f"-DoutputDirectory={JARS}")  # fmt: skip
        done.touch()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if with_java:
            run("javac", "-cp", f"{JARS}/*", "-d", folder, ROOT / "bench/history/Copy.java")
        for kinds in KINDS:
            for form, path in histories(folder, kinds, with_java=with_java).items():
                what = f"{form}, {kinds} kinds of user counters"
                compare(what, path, folder, with_java=with_java)


def histories(folder: Path, kinds: int, *, with_java: bool) -> dict[str, Path]:
    """
    One history in both forms, each in a folder of its own: Rumen takes the job from the name.

    Hadoop's own writer makes both; without Java fastavro writes the binary one, in a minute.
    """
    made = folder / "made.jhist"
    with made.open("wb") as file:
        file.writelines(lines(random.Random(7), kinds))
    paths = {}
    for form in ("json", "binary"):
        paths[form] = folder / f"{form}-{kinds}" / "job_1795224441974_0001.jhist"
        paths[form].parent.mkdir()
        if with_java:
            java(folder, WRITER, made, paths[form], form)
        elif form == "json":
            shutil.copyfile(made, paths[form])
        else:
            paths[form].write_bytes(binary(made.read_bytes()))
    return paths


def lines(rng: random.Random, kinds: int) -> Iterator[bytes]:
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
            counters = b""
            for recorded_line in tasks[kind]:
                line = varied(recorded_line, kind, at, rng)
                if line.startswith(b'{"type":"TASK_FINISHED"'):
                    line = COUNTERS.sub(lambda _, counters=counters: counters, line)
                elif COUNTERS.search(line):
                    if kinds:
                        group = b'"groups":[' + user_group(at % kinds)
                        line = line.replace(b'"groups":[', group, 1)
                    counters = COUNTERS.search(line)[0]
                yield line + b"\n"
    yield counted(end) + b"\n"


def user_group(kind: int) -> bytes:
    """Three counters whose names only tasks of one *kind* have."""
    counts = b",".join(
        b'{"name":"USER_%d_%d","displayName":"user","value":%d}' % (kind, n, n) for n in range(3)
    )
    return b'{"name":"org.example.User","displayName":"User","counts":[%s]},' % counts


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


def compare(what: str, path: Path, folder: Path, *, with_java: bool) -> None:
    print(f"{what}: {path.stat().st_size / 1e6:.0f} MB, {MAPS + REDUCES} tasks, {REPEATS} times")
    medians = {}
    runs: dict[str, list[tuple[float, int]]] = {"Rumen": [], "harness": []}
    for _ in range(REPEATS):
        if with_java:
            runs["Rumen"].append(rumen(path, folder))
        runs["harness"].append(harness(path))
    for name, measured in runs.items():
        if measured:
            times, peak = sorted(seconds for seconds, _ in measured), max(mb for _, mb in measured)
            medians[name] = statistics.median(times)
            spread = f"{times[0]:.2f} to {times[-1]:.2f}"
            print(f"  {name:8} median {medians[name]:.2f} s ({spread}), peak {peak} MiB")
    if with_java:
        print(f"  Rumen takes {medians['Rumen'] / medians['harness']:.1f} times as long")


def harness(path: Path) -> tuple[float, int]:
    start = time.monotonic()
    attempts, peak = run(sys.executable, "-c", READER, path).split()
    assert int(attempts) == MAPS + REDUCES
    return time.monotonic() - start, int(peak)


def rumen(path: Path, folder: Path) -> tuple[float, int]:
    trace = folder / "trace.json"
    trace.unlink(missing_ok=True)
    start = time.monotonic()
    output = java(folder, RUMEN, *(f.as_uri() for f in (trace, folder / "topology.json", path)))
    seconds = time.monotonic() - start
    assert trace.read_bytes().count(b'"attemptID"') == MAPS + REDUCES
    return seconds, int(output.splitlines()[-1])


def java(folder: Path, main_class: str, *arguments: str | Path) -> str:
    """Run a Java program; the last line is its peak in MiB."""
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
