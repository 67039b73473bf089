"""
HiBench's names of sizes mean here what they mean there.

The numbers are those of `conf/workloads` of https://github.com/Intel-bigdata/HiBench, at the commit
that the table names; `scripts/hibench-sizes CHECKOUT` compares it with a clone.
"""

import importlib.machinery
import importlib.util
import json
import re
import subprocess

from pathlib import Path

import pytest

from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads import WORKLOADS
from harness.clusters.workloads.sleep import RECORD

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = json.loads((ROOT / "tests/workloads/hibench_sizes.json").read_text())
HIBENCH = DOCUMENT["files"]
NAMES = ("tiny", "small", "large", "huge", "gigantic", "bigdata")
MIB = 2**20
ROW = 100  # bytes of a row of TeraGen, which writes the input of repartition, too
# workload -> file of HiBench, the numbers whose product counts its units, and bytes of a unit here
TABLE = {
    "wordcount": ("micro/wordcount.conf", ("datasize",), 1),
    "sort": ("micro/sort.conf", ("datasize",), 1),
    "terasort": ("micro/terasort.conf", ("datasize",), ROW),
    "shuffle": ("micro/repartition.conf", ("datasize",), ROW),
    "dfsio": ("micro/dfsioe.conf", ("read.number_of_files", "read.file_size"), MIB),
    "kmeans": ("ml/kmeans.conf", ("num_of_samples", "dimensions"), 8),
}


def numbers(file, counted):
    """
    What a file of HiBench says of each size, in the order of their names.
    """
    by_size = HIBENCH[file][counted]
    return [by_size[size] for size in NAMES]


@pytest.mark.parametrize("name", TABLE)
def test_bytes_of_each_size(name):
    """
    What HiBench counts (bytes, rows, files, points), in bytes of our formats.
    """
    file, factors, unit_bytes = TABLE[name]
    expected = dict.fromkeys(NAMES, unit_bytes)
    for counted in factors:
        for size, number in zip(NAMES, numbers(file, counted), strict=True):
            expected[size] *= number

    assert WORKLOADS[name].scales == expected


@pytest.mark.parametrize("size", NAMES)
def test_pages_of_each_size(size):
    """
    The generated graph has HiBench's number of pages, to one in a hundred or half of the smallest.
    """
    workload = WORKLOADS["pagerank"]
    spec = WorkloadSpec(name="pagerank", input_bytes=workload.scales[size])
    generator = workload.plan_input(spec, 2**28).generator
    pages = HIBENCH["websearch/pagerank.conf"]["pages"][size]

    assert int(generator.properties["graph.pages"]) == pytest.approx(pages, rel=0.006, abs=25)


def test_seconds_of_each_size():
    """
    One map over the input sleeps as long as HiBench's, a time for each record.
    """
    workload = WORKLOADS["sleep"]
    record_s = workload.parameters["map_ms"].default / 1000
    seconds = [size / RECORD * record_s for size in workload.scales.values()]

    assert seconds == numbers("micro/sleep.conf", "mapper.seconds")


def test_files_are_read_and_written_alike():
    """
    So that one size of `dfsio` stands for both of its modes.
    """
    for counted in ("number_of_files", "file_size"):
        assert numbers("micro/dfsioe.conf", f"read.{counted}") == numbers(
            "micro/dfsioe.conf", f"write.{counted}"
        )


def test_the_page_says_what_is_in_the_table():
    """
    Files of `dfsio`, and the sizes of `kmeans` and `pagerank` whose other numbers are their own.
    """
    page = (ROOT / "docs/hibench.md").read_text()
    files = ", ".join(map(str, numbers("micro/dfsioe.conf", "read.number_of_files")))

    assert f"write `files:` ({files} for `tiny` to `bigdata`)" in page
    assert DOCUMENT["commit"] in page
    assert numbers("ml/kmeans.conf", "dimensions") == [3, 20, 20, 20, 20, 20]
    assert numbers("ml/kmeans.conf", "max_iteration") == [5, 5, 5, 5, 5, 10]
    assert "For `tiny` write `dimensions: 3`, for `bigdata` `iterations: 10`." in page
    assert numbers("websearch/pagerank.conf", "num_iterations") == [1, 3, 3, 3, 3, 3]
    assert "For `tiny` write `iterations: 1`." in page


def script():
    """
    `scripts/hibench-sizes` as a module.
    """
    loader = importlib.machinery.SourceFileLoader("sizes", str(ROOT / "scripts/hibench-sizes"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("sizes", loader))
    loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path):
    """
    A clone of a HiBench with the sizes of the table, in the form of its files.
    """
    for file, counts in HIBENCH.items():
        name = re.sub(r"\W.*", "", file.split("/")[1])
        lines = ["# sizes", f"hibench.workload.input\t\t${{hibench.hdfs.data.dir}}/{name}"]
        for counted, by_size in counts.items():
            lines += [f"hibench.{name}.{size}.{counted}\t {by_size[size]} " for size in by_size]
        path = tmp_path / "conf/workloads" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines))
    commit_all(tmp_path, "init", "-q")
    return tmp_path


def commit_all(folder, *first):
    """
    A commit of all files of *folder*.
    """
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    words = [first] if first else []
    for arguments in (*words, ("add", "-A"), (*author, "commit", "-qm", "sizes")):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True)


@pytest.mark.process
class TestScript:
    def test_equal_sizes_are_status_0(self, checkout, capsys):
        """
        And the commit is named.
        """
        assert script().main([str(checkout)]) == 0
        assert capsys.readouterr().out.endswith(": 0 differences\n")

    def test_a_changed_size_is_named(self, checkout, capsys):
        """
        With both numbers; so is one that is gone.
        """
        path = checkout / "conf/workloads/micro/repartition.conf"
        path.write_text(path.read_text().replace(".tiny.datasize\t 3200 ", ".tiny.datasize\t 7 "))
        kmeans = checkout / "conf/workloads/ml/kmeans.conf"
        kmeans.write_text(kmeans.read_text().replace("kmeans.tiny.k", "kmeans.tiny.gone"))
        commit_all(checkout)

        assert script().main([str(checkout)]) == 1
        out = capsys.readouterr().out.splitlines()
        assert "micro/repartition.conf: tiny datasize: 3200 here, 7 there" in out
        assert "ml/kmeans.conf: tiny k: 10 here, None there" in out

    def test_write_makes_the_table_of_the_checkout(self, checkout, monkeypatch, tmp_path):
        """
        The same numbers, and its commit.
        """
        module = script()
        monkeypatch.setattr(module, "TABLE", tmp_path / "table.json")

        assert module.main([str(checkout), "--write"]) == 0
        written = json.loads((tmp_path / "table.json").read_text())
        assert written["files"] == HIBENCH
        assert re.fullmatch("[0-9a-f]{40}", written["commit"])

    def test_what_is_no_checkout_is_refused(self, tmp_path):
        """
        In words.
        """
        with pytest.raises(SystemExit, match="is no checkout of HiBench"):
            script().main([str(tmp_path)])
