"""
Sizes and times of bundles of a run: made, checked, made again at each level of evidence.

    bench_publish.py [RUN]     a stored run (default: the newest of results/quick); needs no Hadoop

Each is a process of its own, timed as a whole; memory is the largest of its processes.
"""

import resource
import subprocess
import sys
import time

from pathlib import Path
from tempfile import TemporaryDirectory

HARNESS = str(Path(sys.executable).with_name("harness"))


def timed(*argv):
    """
    Seconds by the clock and of the processors, and MiB, of a command that must end with 0 or 1.
    """
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    clock_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(argv)} ended with {done.returncode}:\n{done.stderr}")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return clock_s, cpu_s, after.ru_maxrss / 1024, done.returncode


def main(run):
    """
    Print a row per level and command.
    """
    trials = len([*Path(run, "trials").glob("*")]) or "?"
    print(f"{run}: {trials} trials")
    print(
        "| level | command | size, KiB | clock, s | processors, s | largest so far, MiB | status |"
    )
    print("|---|---|---|---|---|---|---|")
    with TemporaryDirectory() as folder:
        for level in ("scores", "traces", "raw"):
            bundle = f"{folder}/{level}"
            made = timed(HARNESS, "publish", run, "-o", bundle, "--evidence", level)
            size = sum(path.stat().st_size for path in Path(bundle).rglob("*") if path.is_file())
            rows = {
                "publish": made,
                "verify.py": timed(sys.executable, "-I", "-S", f"{bundle}/verify.py"),
                "publish --check": timed(HARNESS, "publish", "--check", bundle),
                "reproduce": timed(HARNESS, "reproduce", bundle),
            }
            for name, (clock_s, cpu_s, mib, status) in rows.items():
                shown = f"{clock_s:.1f} | {cpu_s:.1f} | {mib:.0f} | {status}"
                print(f"| {level} | {name} | {size / 1024:.0f} | {shown} |", flush=True)


if __name__ == "__main__":
    newest = sorted(str(path) for path in Path("results/quick").glob("*T*Z-*"))
    main(*(sys.argv[1:] or newest[-1:] or ["results/quick"]))
