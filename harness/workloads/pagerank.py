"""
PageRank over a generated web graph, one job for each iteration; as HiBench's, in a form of our own.

The proof of its output: SciPy's power iteration over the same files gives the same ranks.  Compared
are the largest ones and some drawn by the seed, the sum of all, and a checksum of the graph itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from harness.errors import JobError, SpecError
from harness.records.trial import WorkloadSpec, digest
from harness.workloads.base import JOBS, File, InputFile, InputPlan, JobCommand, Parameter, Verdict
from harness.workloads.generate import generated
from harness.workloads.pagerank_graph import (
    CYCLE_BYTES,
    MOST,
    MOST_PAGES,
    GraphSize,
    graph_size,
    line_bytes,
)
from harness.workloads.pagerank_oracle import Graph, power_iteration, read_graph
from harness.workloads.shape import arguments, blocks, shown

JOB = "mapreduce.harness.jobs.pagerank.PageRank"
CONTENT = "mapreduce.harness.jobs.pagerank.Graph"
VERSION = 1  # of the generator's bytes

# Ranks are written with ten decimals and are 1 - damping at least, so 0.01: each iteration rounds by
# 5e-9 of a rank at most, and over links errors are only averaged.
TOLERANCE = 1e-7
COMPARED = 5000  # of the largest ranks, and as many by chance

# HiBench's profiles have 50, 5000, ... pages; a page takes 441 bytes here.  HiBench's `tiny` has
# one iteration, here it has three, as all others.
SCALES = {
    "tiny": 22_030,
    "small": 2_203_046,
    "large": 220_304_687,
    "huge": 2_203_046_875,
    "gigantic": 22_030_468_750,
    "bigdata": 13_218_281_250,
}

PARAMETERS = {
    "iterations": Parameter(3, "jobs, each of which is one iteration", least=1, most=100),
    "damping": Parameter(
        0.85, "share of its rank that a page hands on over links", least=0, most=0.99
    ),
    "skew": Parameter(
        2, "links lead to page N u^skew, u uniform: more is steeper", least=1, most=20
    ),
}


class PageRank:
    """
    Ranks pages of a graph whose degrees follow power laws; its jobs have a combiner.

    All of its parameters are part of an input's key: what is kept of the input are the ranks that
    are to come out.
    """

    name = "pagerank"
    uses_combiner = True
    description = "PageRank over a power-law web graph, a job an iteration; proved by SciPy"
    parameters: Mapping[str, Parameter] = PARAMETERS
    scales: Mapping[str, int] = SCALES

    def properties(self, spec: WorkloadSpec) -> Mapping[str, str]:  # noqa: ARG002 - it sets none
        """Nothing: the configuration is the experiment's."""
        return {}

    def jobs(self, spec: WorkloadSpec) -> int | None:
        """One for each iteration."""
        return int(arguments(spec, PARAMETERS)["iterations"])

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """As many pages as the size asked holds, spread evenly over the fewest files that fit."""
        given = arguments(spec, PARAMETERS)
        size = _size(spec, block_bytes)
        key = digest({"graph": VERSION, "seed": spec.seed, "sizes": size.files, **given})
        names = (f"part-m-{number:05d}" for number in range(len(size.files)))
        return InputPlan(f"graph-{key}", tuple(map(InputFile, names, size.files)))

    def generate(self, spec: WorkloadSpec, block_bytes: int, uri: str) -> JobCommand:
        """Our generator's job, with one map for each file of the plan."""
        size = _size(spec, block_bytes)
        properties = {
            "graph.pages": str(size.pages),
            "graph.last": str(size.last),
            "graph.skew": str(arguments(spec, PARAMETERS)["skew"]),
        }
        return generated(
            CONTENT,
            records=size.pages,
            files=len(size.files),
            seed=spec.seed,
            uri=uri,
            properties=properties,
        )

    def sample(self, spec: WorkloadSpec, files: Iterable[File]) -> dict[str, Any]:
        """
        Return `records` (pages), `bytes`, `links`, `checksum`, and the `ranks` due of some `pages`.

        Takes about 13 bytes of memory for each link.  Raises `JobError` where a file is no graph.
        """
        graph = read_graph(files)
        if wrong := graph.strange():
            raise JobError(
                wrong,
                where="input of pagerank, as its generator left it",
                fix="remove this input, so that it is generated again",
            )
        given = arguments(spec, PARAMETERS)
        ranks = power_iteration(graph, int(given["iterations"]), float(given["damping"]))
        largest = np.argsort(ranks)[::-1][:COMPARED]
        others = np.random.default_rng(spec.seed).integers(len(ranks), size=COMPARED)
        pages = np.unique(np.concatenate((largest, others)))
        return {
            "records": len(ranks),
            "bytes": graph.bytes,
            "links": len(graph.links),
            "checksum": graph.checksum(),
            "pages": pages.tolist(),
            "ranks": ranks[pages].tolist(),
        }

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One client, which submits a job for each iteration."""
        given = arguments(spec, PARAMETERS)
        properties = {f"pagerank.{name}": str(given[name]) for name in ("iterations", "damping")}
        return (JobCommand(JOB, (input_uri, output_uri), properties=properties, jar=JOBS),)

    def outputs(self, spec: WorkloadSpec, output_uri: str) -> str:
        """Folder of the last iteration."""
        return f"{output_uri}/iteration-{self.jobs(spec)}"

    def verdict(
        self,
        spec: WorkloadSpec,  # noqa: ARG002 - the sample says it all
        outputs: Iterable[File],
        sample: Mapping[str, Any],
    ) -> Verdict:
        """Every page once, with its links, ranks that add up, and those of the sample as due."""
        try:
            graph = read_graph(outputs)
        except JobError as error:
            return Verdict(right=False, reason=error.what)
        reason = _difference(graph, sample)
        facts: dict[str, int | str] = {"pages": len(graph.pages), "links": len(graph.links)}
        return Verdict(right=not reason, reason=reason, facts=facts)


@lru_cache(maxsize=256)
def _graph_size(seed: int, size: int, block: int, files: int) -> GraphSize:
    return graph_size(seed, size, block, files)


def _size(spec: WorkloadSpec, block_bytes: int) -> GraphSize:
    """Pages and files of the graph; `SpecError` where it cannot be made of the size asked."""
    longest = line_bytes(MOST)
    if block_bytes < 2 * longest:
        raise SpecError(
            f"a block of {block_bytes} bytes is too small for lines of up to {longest} bytes",
            where="pagerank, dfs.blocksize",
            fix="use blocks of 1 MiB or more",
        )
    if spec.input_bytes > MOST_PAGES // 256 * CYCLE_BYTES:
        raise SpecError(
            f"a graph of {spec.input_bytes} bytes has more than {MOST_PAGES} pages",
            where="pagerank, input",
            fix="ask for less",
        )
    size = _graph_size(spec.seed, spec.input_bytes, block_bytes, blocks(spec, block_bytes))
    made = sum(size.files)
    if abs(made - spec.input_bytes) * 100 > spec.input_bytes:
        raise SpecError(
            f"an input of {spec.input_bytes} bytes is too far from whole lines of a graph",
            where="pagerank, input",
            fix="ask for 5000 bytes or more",
        )
    return size


def _difference(graph: Graph, sample: Mapping[str, Any]) -> str:
    """What is wrong with the ranked *graph*, or nothing."""
    count, links = sample["records"], sample["links"]
    if (len(graph.pages), len(graph.links)) != (count, links):
        found = f"the output has {len(graph.pages)} pages and {len(graph.links)} links"
        return f"{found}, the input {count} and {links}"
    if wrong := graph.strange():
        return wrong
    if graph.checksum() != sample["checksum"]:
        due = shown(str(sample["checksum"]))
        return f"pages and links of the output have the checksum {graph.checksum()}, not {due}"
    if abs(graph.ranks.mean() - 1) > TOLERANCE:
        return f"the ranks have the mean {graph.ranks.mean():.12g}, not 1"
    ranks = np.empty(count)
    ranks[graph.pages] = graph.ranks
    pages, due_ranks = np.array(sample["pages"]), np.array(sample["ranks"])
    off = np.abs(ranks[pages] / due_ranks - 1)
    worst = int(off.argmax())
    if off[worst] <= TOLERANCE:
        return ""
    return (
        f"page {pages[worst]} has the rank {ranks[pages[worst]]:.10f}, not {due_ranks[worst]:.10f};"
        f" {int((off > TOLERANCE).sum())} of {len(pages)} compared ranks differ"
    )
