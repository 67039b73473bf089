"""
The catalog of past jobs: jobs added per second, peak memory, and the time of a query.

    python bench/bench_catalog.py [JOBS [PROCESSES]]      1000 jobs, one process, by default

The histories are made from a recorded job: 20 tasks (18 maps and 2 reduces) under other ids, names,
times and counters, in 50 families, each with a configuration of 1000 properties.  They are made
first, in a folder that is removed at the end (300 KB for each job); making them is not timed.
"""

import random
import re
import subprocess
import sys
import tempfile

from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.parsing.histories import JSON  # noqa: E402 - found from the root of the repository

MAPS, FAMILIES, PROPERTIES, QUERIES, LARGE = 18, 50, 1000, 20, 100_000
# The process that adds reports its own peak; that of the others is the largest of them.
ADD = """
import resource, sys, time
from pathlib import Path
from harness.catalog.catalog import Catalog
from harness.past.fill import fill
start, before_s = time.monotonic(), time.process_time()
filled = fill(Catalog(Path(sys.argv[2])), [Path(sys.argv[1])], int(sys.argv[3]), lambda _: None)
seconds = time.monotonic() - start
own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
cpu = time.process_time() - before_s + others.ru_utime + others.ru_stime
print(filled.added, seconds, cpu, own.ru_maxrss // 1024, others.ru_maxrss // 1024)
"""
QUERY = """
import sys, time
from pathlib import Path
from harness.catalog.catalog import Catalog
from harness.catalog.match import similar
catalog, times = Catalog(Path(sys.argv[1])), []
for job in sys.argv[2:]:
    start = time.monotonic()
    assert similar(catalog, job, 5) is not None
    times.append(time.monotonic() - start)
print(*times)
"""


# A catalog of many jobs, whose rows vary those of a small one.
GROW = """
import random, resource, sys, time
from pathlib import Path
from harness.catalog.catalog import Catalog
from harness.catalog.jobs import FEATURES
small, large = (Catalog(Path(folder)) for folder in sys.argv[1:3])
jobs, rng = int(sys.argv[3]), random.Random(7)
rows = [small.read_job(job_id) for job_id in small.table(["job_id"])["job_id"].to_pylist()[:200]]
with large.lock():
    for start in range(1, jobs + 1, 1000):
        batch = []
        for number in range(start, start + 1000):
            row = {**rows[number % len(rows)], "job_id": f"job_1795224441974_{number:06d}"}
            for name in FEATURES:
                row[name] = row[name] and row[name] * rng.uniform(0.8, 1.2)
            batch.append({**row, "source_key": str(number)})
        large.write(batch)
begin = time.monotonic()
large.table(["job_id"])
print(time.monotonic() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def main() -> None:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    processes = sys.argv[2] if len(sys.argv) > 2 else "1"
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(1, jobs + 1):
            write_job(folder / "done", number, rng)
        for what in ("first", "again"):
            reported = run(ADD, folder / "done", folder / "catalog", processes)
            added, seconds, cpu, peak, others = reported
            rate = f"{jobs / float(seconds):.0f} jobs/s, {jobs / float(cpu):.0f} per CPU second"
            print(f"{what}: {added} of {jobs} added in {float(seconds):.1f} s: {rate}")
            print(f"  peak {peak} MiB, of the largest other process {others} MiB")
        seconds, peak = run(GROW, folder / "catalog", folder / "large", LARGE)
        print(f"index of {LARGE} jobs made in {float(seconds):.1f} s, peak {peak} MiB")
        chosen = [job_id(rng.randrange(1, LARGE + 1)) for _ in range(QUERIES)]
        first, *later = (float(each) * 1e3 for each in run(QUERY, folder / "large", *chosen))
        middle = sorted(later)[len(later) // 2]
        print(f"similar job of {LARGE}: the first {first:.0f} ms, then {middle:.0f} ms"
              f" ({min(later):.0f} to {max(later):.0f})")  # fmt: skip


def job_id(number: int) -> str:
    return f"job_1795224441974_{number:06d}"


def write_job(done: Path, number: int, rng: random.Random) -> None:
    """A history of 20 tasks and its configuration, in the folders of a done tree."""
    folder = done / f"2026/11/26/{number // 1000:06d}"
    folder.mkdir(parents=True, exist_ok=True)
    family = number % FAMILIES
    (folder / f"{job_id(number)}-1.jhist").write_bytes(history(number, family, rng))
    (folder / f"{job_id(number)}_conf.xml").write_bytes(configuration(family))


def history(number: int, family: int, rng: random.Random) -> bytes:
    """The recorded word count with the tasks of one map repeated, and its numbers varied."""
    recorded = [line for line in JSON["wordcount"].splitlines(keepends=True) if line.strip()]
    lines = recorded[:2]
    for line in recorded[2:]:
        task = re.search(rb'"(?:task|attempt)_\d+_\d+_m_(\d+)', line)
        if task is None:
            lines.append(line + b"\n")
        elif int(task[1]) == 0:
            lines += [re.sub(rb"_m_\d{6}", b"_m_%06d" % at, line) + b"\n" for at in range(MAPS)]
    text = b"".join(lines)
    for kind in (b"totalMaps", b"finishedMaps"):
        text = re.sub(rb'("%s":)\d+' % kind, rb"\g<1>%d" % MAPS, text)
    text = text.replace(b"1795224441974_0001", b"1795224441974_%06d" % number)
    text = text.replace(
        b'"word count"', b'"load %d of family %s"' % (number, b"abcdefgh"[: family % 8 + 1])
    )
    later, factor = number * 60_000, (0.5 + rng.random()) * (1 + family)
    text = re.sub(rb'(Time":)(\d+)', lambda m: b"%s%d" % (m[1], int(m[2]) + later), text)
    return re.sub(rb'("value":)(\d+)', lambda m: b"%s%d" % (m[1], int(m[2]) * factor), text)


def configuration(family: int) -> bytes:
    """As many properties as Hadoop writes, the job's classes among them."""
    names = {
        "mapreduce.job.map.class": f"org.example.Map{family}",
        "mapreduce.job.reduce.class": "org.example.Reduce",
        "mapred.mapper.new-api": "true",
        "mapreduce.task.io.sort.mb": "100",
        **{f"yarn.some.property.of.hadoop.{at}": "a value" for at in range(PROPERTIES)},
    }
    rows = (
        f"<property><name>{name}</name><value>{value}</value><final>false</final>"
        f"<source>mapred-default.xml</source></property>\n"
        for name, value in names.items()
    )
    return f"<configuration>\n{''.join(rows)}</configuration>\n".encode()


def run(program: str, *arguments: object) -> list[str]:
    argv = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        sys.exit(f"error: {done.stderr[-2000:]}")
    return done.stdout.split()


if __name__ == "__main__":
    main()
