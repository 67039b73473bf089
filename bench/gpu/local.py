"""
The GPU workloads in Hadoop's local runner: for a machine with a device and without a cluster.

Each workload is generated, run and checked as on a cluster, but in one process: YARN, HDFS, the
shuffle over a network and the start of tasks are not in these times.  So the results are labelled
runner=local, stand apart from every cluster's, and no model of a job's time is scored on them.
They are for the device's part, as the jobs themselves count it (copies, kernels, memory).

    .venv/bin/python bench/gpu/local.py --out results/gpu-local [--device any] [--repeat 3]

OUT gets manifest.json (machine, device, versions, what was run) and trials.jsonl (a line for each
run: counters, rates, verdict).  --java, --lib and --jar name a Java, a folder of Hadoop's jars and
our jar, as on a machine to which they were carried (bench/gpu/carry).
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time

from pathlib import Path

from harness.base.records.trial import WorkloadSpec
from harness.clusters.hadoop_home.home import home_path
from harness.clusters.workloads import WORKLOADS

ROOT = Path(__file__).parents[2]
JAR = ROOT / "workloads" / "gpu" / "target" / "harness-gpu.jar"
SPLIT = 32 << 20
COUNTER = re.compile(r"^\s*([A-Z0-9_]+)=(\d+)$", re.MULTILINE)
JOB = re.compile(r"INFO Job: Counters: \d+\n(.*?)(?=^INFO|\Z)", re.DOTALL | re.MULTILINE)
DEVICE = re.compile(r'gpu: device=(\w+) name="([^"]*)"')
LOGGING = """log4j.rootLogger=INFO,a
log4j.appender.a=org.apache.log4j.ConsoleAppender
log4j.appender.a.layout=org.apache.log4j.PatternLayout
log4j.appender.a.layout.ConversionPattern=%p %c{1}: %m%n
"""
# Workload -> bytes that the device gets at once.
BLOCKS = {
    "gpu-kmeans": (320_000, 4 << 20, 16 << 20),
    "gpu-sbs": (4 << 20, 16 << 20),
    "gpu-matmul": (4 << 20, 16 << 20),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", choices=("gpu", "cpu", "any"), default="any")
    parser.add_argument("--scale", default="small", help="size by HiBench's name")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--workload", choices=tuple(BLOCKS), action="append")
    parser.add_argument("--java", type=Path, default=Path(shutil.which("java") or "java"))
    parser.add_argument("--jar", type=Path, default=JAR)
    parser.add_argument("--lib", type=Path, default=home_path() / "lib")
    requested = parser.parse_args()
    requested.out.mkdir(parents=True)
    seen = set()
    with (
        tempfile.TemporaryDirectory() as folder,
        (requested.out / "trials.jsonl").open("w") as trials,
    ):
        (Path(folder) / "log4j.properties").write_text(LOGGING)
        for name in requested.workload or BLOCKS:
            for row in measured(requested, Path(folder), name):
                seen.add((row["device"], row["device_name"]))
                trials.write(json.dumps(row) + "\n")
                trials.flush()
                print(reported(row))
    (requested.out / "manifest.json").write_text(
        json.dumps(manifest(requested, seen), indent=1) + "\n"
    )


def measured(requested, folder, name):
    """Generate one input, and run its jobs once for each block and repetition, interleaved."""
    workload, home = WORKLOADS[name], folder / name
    size = workload.scales[requested.scale]
    spec = WorkloadSpec(name=name, input_bytes=size, parameters={"device": requested.device})
    run(requested, folder, workload.generate(spec, SPLIT, str(home / "in")))
    files = [(p.name, [p.read_bytes()]) for p in sorted((home / "in").glob("part-*"))]
    sample = workload.sample(spec, files)
    del files
    for repetition in range(requested.repeat):
        for block in BLOCKS[name]:
            given = spec.model_copy(
                update={"parameters": {"device": requested.device, "block": block, "pinned": "yes"}}
            )
            out = home / f"out-{block}-{repetition}"
            (command,) = workload.submit(given, str(home / "in"), str(out))
            started = time.time()
            message = run(requested, folder, command)
            parts = Path(workload.outputs(given, str(out))).glob("part-*")
            verdict = workload.verdict(
                given, [(p.name, [p.read_bytes()]) for p in sorted(parts)], sample
            )
            shutil.rmtree(out)
            yield row(given, block, message, verdict) | {
                "repetition": repetition,
                "client_s": time.time() - started,
            }
    shutil.rmtree(home)


def run(requested, folder, command):
    """Run a client in the local runner: what it said."""
    argv = [
        str(requested.java.absolute()), f"-Dlog4j.configuration=file:{folder}/log4j.properties",
        "-cp", f"{requested.jar.resolve()}:{requested.lib.resolve()}/*", command.main_class,
        *command.argv({"hadoop.tmp.dir": f"{folder}/tmp", "mapreduce.job.reduces": "1"}),
    ]  # fmt: skip
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    message = done.stdout + done.stderr
    if done.returncode != 0:
        raise SystemExit(f"{message[-4000:]}\n{command.main_class} ended with {done.returncode}")
    return message


def row(spec, block, message, verdict):
    """One run: sums of the tasks' counters over its jobs, and the rates they make."""
    observed = DEVICE.search(message)
    total = {}
    for job in re.findall(
        r"INFO Job: Counters: \d+\n(.*?)(?=^INFO|\Z)", message, re.DOTALL | re.MULTILINE
    ):
        for name, value in COUNTER.findall(job):
            total[name] = total.get(name, 0) + int(value)
    tasks = total.get("DEVICE_CUDA", 0) + total.get("DEVICE_CPU", 0)
    return {
        "runner": "local",
        "workload": spec.name,
        "input_bytes": spec.input_bytes,
        "block_bytes": block,
        "device": observed[1],
        "device_name": observed[2],
        "right": verdict == "",
        "reason": verdict,
        "tasks": tasks,
        "h2d_bps": total["BYTES_IN"] / (total["H2D_NS"] * 1e-9),
        "d2h_bps": total["BYTES_OUT"] / (total["D2H_NS"] * 1e-9),
        "kernel_bps": total["BYTES_IN"] / (total["KERNEL_NS"] * 1e-9),
        "memory_read_bps": total["MEM_READ_BPS"] / tasks,
        "open_s": total["OPEN_NS"] * 1e-9 / tasks,
        "alloc_s": total["ALLOC_NS"] * 1e-9 / tasks,
        "counters": total,
    }


def reported(row):
    """One line for people."""
    return (
        f"{row['workload']} block {row['block_bytes']}: device={row['device']}"
        f" to the device {row['h2d_bps'] / 1e9:.2f} GB/s, kernel {row['kernel_bps'] / 1e9:.3f},"
        f" back {row['d2h_bps'] / 1e9:.2f}, memory {row['memory_read_bps'] / 1e9:.2f};"
        f" {'right' if row['right'] else 'WRONG: ' + row['reason']}"
    )


def manifest(requested, seen):
    """What was run, where and on what."""
    java = subprocess.run([requested.java, "-version"], capture_output=True, text=True, check=True)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return {
        "schema_version": 1,
        "runner": "local",
        "note": "one process, no cluster: not comparable with a cluster's times",
        "devices": sorted(f"{kind}: {name}" for kind, name in seen),
        "machine": {"system": platform.platform(), "cores": os.cpu_count()},
        "java": java.stderr.splitlines()[0],
        "hadoop": sorted(p.name for p in requested.lib.glob("hadoop-*.jar")),
        "commit": commit.stdout.strip(),
        "asked": {
            "device": requested.device,
            "scale": requested.scale,
            "repeat": requested.repeat,
            "workloads": list(requested.workload or BLOCKS),
        },
    }


if __name__ == "__main__":
    main()
