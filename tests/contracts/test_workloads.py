"""
What every workload of `WORKLOADS` keeps to: the same commands for the same asking, and no wrong
output that passes.
"""

import json
import zlib

from collections import Counter

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads import WORKLOADS
from harness.core.evaluate.contract import workload_complaints
from tests.clouds import read_cloud, slow_steps, steps_file
from tests.graphs import graph, graph_file, read_links, slow_ranks
from tests.workloads.gpu_solutions import clustered, deep, floats, multiplied

BLOCK = 64 * 1024
SIZE = 150_000
SLOW = (
    "kmeans",
    "gpu-kmeans",
    "gpu-sbs",
)  # their oracles import large libraries, one of which asks lscpu
pytestmark = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.process) if n in SLOW else n for n in WORKLOADS]
)


def counted(files):
    """
    Every word with its count, the obvious way.
    """
    counts = Counter(w for data in files for w in data.split())
    return b"".join(b"%s\t%d\n" % each for each in sorted(counts.items()))


def ordered(files):
    """
    All rows in the order of their keys, the obvious way.
    """
    data = b"".join(files)
    return b"".join(sorted((data[i : i + 100] for i in range(0, len(data), 100)), key=_key))


def _key(row):
    return row[:10]


def ranked(files):
    """
    A graph with its ranks, by loops over pages and links.
    """
    links = read_links(b"".join(files))
    return graph_file(links, slow_ranks(links))


def by_key(files):
    """
    All records in the order of their keys, the obvious way.
    """
    lines = b"".join(files).splitlines(keepends=True)
    return b"".join(sorted(lines, key=lambda line: line.split(b"\t")[0]))


def finalised(record):
    """
    64 bits of a record, word by word.
    """
    bits = len(record)
    for at in range(0, len(record), 8):
        bits = bits + int.from_bytes(record[at : at + 8], "little") & 2**64 - 1
        bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & 2**64 - 1
        bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & 2**64 - 1
        bits ^= bits >> 31
    return bits


def records(data, size):
    """
    The records of a file.
    """
    return [data[i : i + size] for i in range(0, len(data), size)]


def moved(files):
    """
    What one reduce tells that got everything.
    """
    every = [record for data in files for record in records(data, 200)]
    total = sum(map(finalised, every)) % 2**64
    return b"%d\t%d\t%016x\n" % (len(every), 200 * len(every), total)


def read(files):
    """
    What the maps tell that read each file at 1 GB/s.
    """
    lines = (f"{zlib.crc32(data):08x}\t{len(data)}\t{len(data)}" for data in files)
    return "".join(f"part-m-{n:05d}\t{line}\n" for n, line in enumerate(lines)).encode()


def slept(files):
    """
    Ten keys in turn from each map, and pauses of the length asked.
    """
    under = {key: [] for key in range(10)}
    for data in files:
        for number, record in enumerate(records(data, 96)):
            under[number % 10].append(finalised(record + record[:4]))
    lines = [f"{k}\t{len(v)}\t{sum(v) % 2**64:016x}" for k, v in under.items()]
    count = sum(map(len, under.values()))
    phases = [f"read\t{count}\t0", f"map\t{count}\t{count * 10**6}", f"reduce\t10\t{10**9}"]
    return "".join(f"{line}\n" for line in [*lines, *phases]).encode()


def settled(files):
    """
    The centres of all iterations, by loops over points.
    """
    return steps_file(slow_steps(read_cloud(b"".join(files))))


# A right output of each workload, computed without its code.
SOLUTIONS = {
    "wordcount": counted,
    "terasort": ordered,
    "sort": by_key,
    "shuffle": moved,
    "dfsio": read,
    "sleep": slept,
    "pagerank": ranked,
    "kmeans": settled,
    "gpu-kmeans": clustered,
    "gpu-sbs": deep,
    "gpu-matmul": multiplied,
}
# Arguments with which an input of some kilobytes is whole records.
PARAMETERS = {
    "gpu-kmeans": {"iterations": 1},
    "gpu-sbs": {"width": 16, "height": 2},
    "gpu-matmul": {"tile": 4, "inner": 2},
}


def spec_of(name, seed=1, size=SIZE):
    """
    A small input.
    """
    return WorkloadSpec(name=name, input_bytes=size, seed=seed, parameters=PARAMETERS.get(name, {}))


def words(rng, size):
    """
    Lines of three words of seven letters, cut at *size*.
    """
    letters = rng.integers(ord("a"), ord("d"), size=size, dtype=np.uint8)
    letters[7::8] = ord(" ")
    letters[23::24] = ord("\n")
    letters[-1] = ord("\n")
    return letters.tobytes()


def doubles(rng, size):
    """
    Coordinates around 50.
    """
    return rng.normal(50, 20, size // 8).astype(">f8").tobytes()


# What an input looks like, where not every byte is one; made without the workload's generator.
INPUTS = {
    "wordcount": words,
    "sort": lambda rng, size: words(rng, size).replace(b" ", b"\t"),
    "kmeans": doubles,
    "gpu-kmeans": floats,
    "gpu-matmul": floats,
}


def content(name, seed=1):
    """
    The input's files, as large as planned.
    """
    if name == "pagerank":  # its links lead from file to file
        return {"part-m-00000": graph_file(graph(seed))}
    workload, spec, rng = WORKLOADS[name], spec_of(name, seed), np.random.default_rng(seed)
    made = INPUTS.get(name, np.random.Generator.bytes)
    return {f.name: made(rng, f.bytes) for f in workload.plan_input(spec, BLOCK).files}


def judge(name, *outputs, files=None):
    """
    What is said of output files with these bytes, for the input *files*.
    """
    workload, spec = WORKLOADS[name], spec_of(name)
    files = files or content(name)
    sample = workload.sample(spec, ((n, [data]) for n, data in files.items()))
    # It is kept as JSON between the making of an input and the end of a trial.
    sample = json.loads(json.dumps(sample))
    parts = ((f"part-r-{i:05d}", [data]) for i, data in enumerate(outputs))
    return workload.verdict(spec, parts, sample)


def test_commands_are_stable(name):
    """
    Planned, generated and submitted twice: the same, and the workload kept nothing in between.
    """

    def planned(workload, spec):
        made = workload.generate(spec, BLOCK, "/in")
        return workload.plan_input(spec, BLOCK), made, workload.submit(spec, "/in", "/out")

    workload = WORKLOADS[name]
    first = planned(workload, spec_of(name))
    planned(workload, spec_of(name, seed=2, size=2 * SIZE))

    assert planned(workload, spec_of(name)) == first


@given(size=st.integers(20_000, 10**9), block=st.integers(2**20, 2**28))
def test_every_file_is_one_split(name, size, block):
    """
    No file is larger than a block, none is empty, and all are the size asked for within 1 %.
    """
    plan = WORKLOADS[name].plan_input(spec_of(name, size=size), block)

    assert all(0 < f.bytes <= block for f in plan.files)
    assert abs(plan.bytes - size) <= size / 100
    assert len({f.name for f in plan.files}) == len(plan.files)


def test_configuration_reaches_every_job(name):
    """
    What the experiment sets is on each command line, before the arguments.
    """
    for job in WORKLOADS[name].submit(spec_of(name), "/in", "/out"):
        argv = job.argv({"mapreduce.task.timeout": "3"})
        assert argv.index("-Dmapreduce.task.timeout=3") < argv.index(job.arguments[0])


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda _: b"", id="empty"),
        pytest.param(lambda out: out[: len(out) // 2], id="half"),
        pytest.param(lambda out: out + out[-100:], id="repeated end"),
        pytest.param(lambda out: out[len(out) // 100 * 50 :] + out[:50], id="turned"),
        pytest.param(lambda out: bytes(len(out)), id="zeros"),
        pytest.param(lambda out: out[:20] + bytes([out[20] ^ 1]) + out[21:], id="one bit"),
    ],
)
def test_wrong_output_fails(name, spoil):
    """
    However it is wrong, the verdict says so and why, in plain characters.
    """
    files = content(name)
    verdict = judge(name, spoil(SOLUTIONS[name](files.values())), files=files)

    assert verdict
    assert verdict.isascii()
    assert verdict.isprintable()


def test_output_of_another_input_fails(name):
    """
    A job that read something else was right about something else.
    """
    verdict = judge(name, SOLUTIONS[name](content(name, seed=2).values()))

    assert verdict


def test_check_finds_nothing(name):
    """
    What `harness check` asks of a user's workload, ours keeps.
    """
    files = content(name)
    output = SOLUTIONS[name](files.values())

    assert [*workload_complaints(WORKLOADS[name], spec_of(name), files, output)] == []
