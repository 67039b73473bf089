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
    fetched = JARS.parent / "done"
    if not fetched.exists():
        run("mvn", "-q", "-B", "-ntp", "-f", ROOT / "bench/ltrace/pom.xml", PLUGIN,
            "-DincludeScope=runtime", f"-DoutputDirectory={JARS}")  # fmt: skip
        fetched.touch()


def compile_hooks(folder: Path) -> None:
    """Compile the benchmark into *folder*."""
    class_path = f"{TRACER}:{JARS}/*"
    run("javac", "-cp", class_path, "-d", folder, ROOT / "bench/ltrace/Hooks.java")


def measure(folder: Path, options: list[str]) -> dict[str, dict]:
    """Results of JMH by hook."""
    results_file = folder / "results.json"
    profiler = ["-prof", "gc"] if "--gc" in sys.argv else []
    traced = [*AS_TASKS, *options, f"-Dltrace.dir={folder}"]
    run("java", "-cp", f"{folder}:{TRACER}:{JARS}/*", "org.openjdk.jmh.Main", *ROUNDS, *profiler,
        "-jvmArgs", " ".join(traced), "-rf", "json", "-rff", results_file)  # fmt: skip
    results = json.loads(results_file.read_text())
    return {result["benchmark"].rpartition(".")[2]: result for result in results}


def cell(result: dict) -> str:
    """Mean, error, and bytes where they were measured."""
    metric = result["primaryMetric"]
    text = f"{metric['score']:.1f} ±{metric['scoreError']:.1f}"
    allocated = result.get("secondaryMetrics", {}).get("gc.alloc.rate.norm")
    return text if allocated is None else f"{text} {allocated['score']:.0f}B"


def run(*command: str | Path) -> str:
    """Output of a command; its errors end the bench."""
    program, *arguments = map(str, command)
    java_home = os.environ.get("JAVA_HOME")
    if java_home and program in ("java", "javac"):
        program = f"{java_home}/bin/{program}"
    finished = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if finished.returncode:
        sys.exit(f"error: {program} ended with {finished.returncode}: {finished.stderr[-2000:]}")
    return finished.stdout


if __name__ == "__main__":
    main()
