"""
PageRank, its lists of links, and K-means on people's own data, good and bad; without a cluster, by
Hadoop's local runner.
"""

import itertools
import struct
import subprocess

import numpy as np
import pytest

from harness.clusters.hadoop_home.home import SOURCE, job_jar
from harness.clusters.workloads.base import JOBS
from tests.clouds import cloud, cloud_bytes, slow_steps, steps_file
from tests.graphs import slow_ranks

LOG4J = """
log4j.rootLogger=WARN,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%m%n
"""

pytestmark = [pytest.mark.live, pytest.mark.long]

PACKAGE = "mapreduce.harness.jobs"
# A page without links, two links to one page, one to itself, pages nobody links to, names of words.
PAGES = ["a", "bee", "c", "dangling", "e-5"]
LINKS = [[1, 1, 2], [1, 0], [3], [], [0, 3]]


@pytest.fixture
def run(tmp_path):
    """
    Runs a job over input files given by their bytes; answers its status, output files and talk.
    """
    numbers = itertools.count()
    (tmp_path / "log4j.properties").write_text(LOG4J)

    def ran(job, *inputs, **options):
        folder = tmp_path / f"{job}-{next(numbers)}" / "in"
        folder.mkdir(parents=True)
        for number, data in enumerate(inputs):
            (folder / f"part-{number}").write_bytes(data)
        out = folder.parent / "out"
        given = {
            "mapreduce.framework.name": "local",
            "fs.defaultFS": "file:///",
            "hadoop.tmp.dir": str(tmp_path / "tmp"),
            "mapreduce.job.reduces": "2",
            **{name.replace("_", "."): str(value) for name, value in options.items()},
        }
        path = f"{job_jar(JOBS)}:{SOURCE / 'home' / 'path.jar'}"
        argv = [
            "java",
            f"-Dhadoop.log.dir={tmp_path}",
            f"-Dlog4j.configuration=file:{tmp_path}/log4j.properties",
        ]
        argv += ["-cp", path, f"{PACKAGE}.{job}"]
        argv += [f"-D{name}={value}" for name, value in given.items()]
        done = subprocess.run(
            [*argv, str(folder), str(out)],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=tmp_path,
            check=False,
        )
        written = {
            str(p.relative_to(out)): p.read_bytes()
            for p in sorted(out.rglob("part-*"))
            if p.is_file()
        }
        return done.returncode, written, done.stderr + done.stdout

    return ran


def own_graph(rank=""):
    """
    A graph as somebody would write it.
    """
    rows = zip(PAGES, LINKS, strict=True)
    lines = (f"{page}\t{rank}\t{' '.join(PAGES[to] for to in links)}\n" for page, links in rows)
    return "".join(lines).encode()


def ranks_of(written):
    """
    Rank of each page in the files of the last iteration.
    """
    rows = (line.split(b"\t") for data in written.values() for line in data.splitlines())
    observed = {page.decode(): float(rank) for page, rank, _ in rows}
    return [observed[page] for page in PAGES]


class TestPageRank:
    """Graphs of one's own."""

    @pytest.mark.parametrize("rank", ["", "1", "1e0"])
    def test_own_graph(self, run, rank):
        """
        Names are any words; without ranks, or with some, all pages come out with theirs.
        """
        status, written, console = run("pagerank.PageRank", own_graph(rank), pagerank_iterations=4)

        assert status == 0, console
        assert {name.partition("/")[0] for name in written} == {"iteration-4"}
        np.testing.assert_allclose(ranks_of(written), slow_ranks(LINKS, 4), rtol=1e-9)

    def test_goes_on_where_it_ended(self, run):
        """
        What one run writes another reads: two iterations and two more are four.
        """
        _, half, _ = run("pagerank.PageRank", own_graph(), pagerank_iterations=2)
        status, written, console = run("pagerank.PageRank", *half.values(), pagerank_iterations=2)

        assert status == 0, console
        np.testing.assert_allclose(ranks_of(written), slow_ranks(LINKS, 4), rtol=1e-8)

    @pytest.mark.parametrize(
        ("data", "says"),
        [
            (b"a\t\tb\nb\t\n", "part-0, line at byte 5: it is not a page, a tab, a rank"),
            (b"a\t\tb\nb\tmuch\ta\n", "part-0, line at byte 5: its rank is no number: much"),
            (b"a\tNaN\ta\n", "line at byte 0: its rank is not a finite number"),
            (b"a\t1\tb  c\n", "its links are not separated by single spaces: a 1 b"),
            (b"a\t1\tnowhere\n", "page nowhere is linked to and has no line of its own"),
            (b"a\t1\ta\na\t1\ta\n", "page a has two lines"),
            (b"", "is empty"),
        ],
        ids=["cut", "word", "nan", "spaces", "nowhere", "twice", "empty"],
    )
    def test_refuses_what_is_no_graph(self, run, data, says):
        """
        The job fails, and says where in which file.
        """
        status, _, console = run("pagerank.PageRank", data)

        assert status != 0
        assert says in console

    def test_list_of_links_becomes_a_graph(self, run):
        """
        Pages that are only linked to get lines, too, and PageRank reads the result.
        """
        edges = "".join(
            f"{PAGES[page]} {PAGES[to]}\n" for page, links in enumerate(LINKS) for to in links
        )
        status, made, console = run("pagerank.Adjacency", b"# from\tto\n\n" + edges.encode())
        assert status == 0, console
        status, written, console = run("pagerank.PageRank", *made.values())

        assert status == 0, console
        np.testing.assert_allclose(ranks_of(written), slow_ranks(LINKS), rtol=1e-9)

    def test_list_with_weights_is_refused(self, run):
        """
        A third word is no link.
        """
        status, _, console = run("pagerank.Adjacency", b"a b\na b 0.5\n")

        assert status != 0
        assert "part-0, line at byte 4: it is not two pages: a b 0.5" in console


class TestKMeans:
    """Points of one's own."""

    def csv(self, points):
        """
        Points as lines.
        """
        return "".join(",".join(map(repr, point)) + "\n" for point in points).encode()

    @pytest.mark.parametrize("kind", ["binary", "csv"])
    def test_own_points(self, run, kind):
        """
        Records or lines, the centres are those of loops over points.
        """
        points = cloud(count=200, width=3).tolist()
        data = self.csv(points) if kind == "csv" else cloud_bytes(points)
        cut = len(self.csv(points[:90])) if kind == "csv" else 90 * 24
        status, written, console = run(
            "kmeans.KMeans", data[:cut], data[cut:],
            kmeans_format=kind, kmeans_dimensions=3, kmeans_centres=4,
        )  # fmt: skip

        assert status == 0, console
        observed = [line.split(b"\t") for line in written["centres/part-00000"].splitlines()]
        due = [line.split(b"\t") for line in steps_file(slow_steps(points, 4)).splitlines()]
        assert [line[:3] for line in observed] == [line[:3] for line in due]
        for own, other in zip(observed, due, strict=True):
            np.testing.assert_allclose(
                [float(x) for x in own[3].split(b",")],
                [float(x) for x in other[3].split(b",")],
                rtol=1e-9,
            )

    def test_empty_centre_keeps_its_place(self, run):
        """
        Of two centres at one place the lower one gets all points.
        """
        data = struct.pack(">4d", 1, 1, 5, 2)
        status, written, console = run(
            "kmeans.KMeans", data, kmeans_dimensions=1, kmeans_centres=3, kmeans_iterations=1
        )

        assert status == 0, console
        assert written["centres/part-00000"].splitlines()[3:] == [
            b"1\t0\t3\t1.3333333333333333", b"1\t1\t0\t1.0", b"1\t2\t1\t5.0",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("data", "options", "says"),
        [
            (
                struct.pack(">4d", 1, 2, 3, 4),
                {},
                "has 2 points in 1 files, fewer than the 3 centres",
            ),
            (b"", {}, "has 0 points in 1 files, fewer than the 3 centres"),
            (
                bytes(40),
                {},
                "part-0 has 40 bytes: its record 2, counted from 0, is cut short of 16",
            ),
            (
                struct.pack(">10d", 1, 2, 3, 4, 5, 6, 7, 8, 9, float("nan")),
                {},
                "part-0, record 4: coordinate 2 is not finite: NaN",
            ),
            (
                struct.pack(">2d", float("inf"), 2) + bytes(32),
                {},
                "part-0, record 0: coordinate 1 is not finite: Infinity",
            ),
            (
                b"1,2\n3,4\n5,6\n7,x\n",
                {"kmeans_format": "csv"},
                "line at byte 12: coordinate 2 is no",
            ),
            (b"1,2\n3\n", {"kmeans_format": "csv"}, "part-0, line 2: 1 coordinates, not 2"),
            (bytes(64), {"kmeans_format": "xml"}, "kmeans.format is binary or csv"),
        ],
        ids=["few", "empty", "cut", "nan", "infinite", "word", "short", "format"],
    )
    def test_refuses_what_are_no_points(self, run, data, options, says):
        """
        The client or the job fails, and names the file and the record.
        """
        status, _, console = run(
            "kmeans.KMeans", data, kmeans_dimensions=2, kmeans_centres=3, **options
        )

        assert status != 0
        assert says in console
