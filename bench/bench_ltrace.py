"""
What the tracer's hooks cost: nanoseconds of each, under JMH, in a JVM as tasks have it.

Beside each mode of the recorder stand the two clocks that it looks at.  ``--gc`` adds the bytes
that each hook allocates.
"""

import json
import os
import subprocess
import sys
import tempfile

from pathlib import Path

ROOT = Path(__file__).parent.parent
TRACER = ROOT / "workloads/ltrace/target/harness-ltrace.jar"
JARS = ROOT / ".cache/bench-ltrace/lib"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.11.0:copy-dependencies"
HOOKS = ("nanoTime", "cpuTime", "span", "record", "collect")
MAP, REDUCE = "attempt_1_0001_m_000000_0", "attempt_1_0001_r_000000_0"
MODES = {
    "off": ["-Dltrace=off"],
    "spans, map": ["-Dltrace=spans", f"-Dltrace.task={MAP}"],
    "units, map": ["-Dltrace=units", f"-Dltrace.task={MAP}"],
    "spans, reduce": ["-Dltrace=spans", f"-Dltrace.task={REDUCE}"],
    "spans, reduce, exact writes": [
        "-Dltrace=spans", f"-Dltrace.task={REDUCE}", "-Dltrace.writes=exact",
    ],
}  # fmt: skip
AS_TASKS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
ROUNDS = ["-f", "1", "-wi", "3", "-w", "500ms", "-i", "5", "-r", "500ms", "-foe", "true"]


def main() -> None:
    """Build what is missing, measure, print a table."""
    prepare()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compile_hooks(folder)
        print(f"{'ns per hook, mean and error':28}" + "".join(f"{hook:>16}" for hook in HOOKS))
        for mode, options in MODES.items():
            costs = measure(folder, options)
            print(f"{mode:28}" + "".join(f"{cell(costs[hook]):>16}" for hook in HOOKS), flush=True)


def prepare() -> None:
    """Fetch JMH, once."""
    done = JARS.parent / "done"
    if not done.exists():
        run("mvn", "-q", "-B", "-ntp", "-f", ROOT / "bench/ltrace/pom.xml", PLUGIN,
            "-DincludeScope=runtime", f"-DoutputDirectory={JARS}")  # fmt: skip
        done.touch()


def compile_hooks(folder: Path) -> None:
    """Compile the benchmark into *folder*."""
    path = f"{TRACER}:{JARS}/*"
    run("javac", "-cp", path, "-d", folder, ROOT / "bench/ltrace/Hooks.java")


def measure(folder: Path, options: list[str]) -> dict[str, dict]:
    """Results of JMH by hook."""
    out = folder / "out.json"
    more = ["-prof", "gc"] if "--gc" in sys.argv else []
    traced = [*AS_TASKS, *options, f"-Dltrace.dir={folder}"]
    run("java", "-cp", f"{folder}:{TRACER}:{JARS}/*", "org.openjdk.jmh.Main", *ROUNDS, *more,
        "-jvmArgs", " ".join(traced), "-rf", "json", "-rff", out)  # fmt: skip
    return {r["benchmark"].rpartition(".")[2]: r for r in json.loads(out.read_text())}


def cell(result: dict) -> str:
    """Mean, error, and bytes where they were measured."""
    metric = result["primaryMetric"]
    text = f"{metric['score']:.1f} ±{metric['scoreError']:.1f}"
    more = result.get("secondaryMetrics", {}).get("gc.alloc.rate.norm")
    return text if more is None else f"{text} {more['score']:.0f}B"


def run(*command: str | Path) -> str:
    """Output of a command; its errors end the bench."""
    program, *arguments = map(str, command)
    home = os.environ.get("JAVA_HOME")
    if home and program in ("java", "javac"):
        program = f"{home}/bin/{program}"
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"error: {program} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
