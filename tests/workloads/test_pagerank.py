"""
Tests for `harness.clusters.workloads.pagerank`, what it knows of its graphs, and its oracle.
"""

import re

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import JobError, SpecError
from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads import WORKLOADS, workload_for
from harness.clusters.workloads import pagerank as law
from harness.clusters.workloads.pagerank import PegasusPageRank, power_iteration, read_graph
from tests.graphs import edge_file, graph, graph_file, line, read_links, slow_ranks
from tests.workloads.generators import draws, printed

MIB = 2**20
workload = WORKLOADS["pagerank"]
graphs = st.integers(1, 12).flatmap(
    lambda pages: st.lists(
        st.lists(st.integers(0, pages - 1), max_size=5), min_size=pages, max_size=pages
    )
)


def spec(size=10_000_000, seed=1, **parameters):
    """
    A PageRank of *size* bytes.
    """
    return WorkloadSpec(name="pagerank", input_bytes=size, seed=seed, parameters=parameters)


def named(*files, chunk=64_000):
    """
    Files with names, in chunks that cut lines.
    """
    for number, data in enumerate(files):
        yield f"part-{number}", [data[i : i + chunk] for i in range(0, len(data), chunk)]


def judged(links, *outputs, **parameters):
    """
    What is said of output files for a graph with these links.
    """
    requested = spec(**parameters)
    sample = workload.sample(requested, named(graph_file(links)))
    return workload.verdict(requested, named(*outputs), sample)


class TestGraphSize:
    """Pages, links and bytes, known beforehand."""

    @given(st.integers(0, 2**63), st.integers(0, 3000))
    def test_bytes_are_those_of_all_lines(self, seed, pages):
        """
        The obvious sum, page by page.
        """
        degrees = [law.cycle(seed, page // law.CYCLE)[page % law.CYCLE] for page in range(pages)]

        assert law.bytes_before(seed, pages) == sum(map(law.line_bytes, degrees))

    @given(st.integers(0, 2**63), st.integers(0, 10**6))
    def test_a_cycle_has_each_quantile_once(self, seed, number):
        """
        In whatever order the seed brings them.
        """
        assert sorted(law.cycle(seed, number)) == sorted(law.quantiles())

    @pytest.mark.parametrize("links", [0, 1, 2, 500])
    def test_line_is_as_long_as_it_is_written(self, links):
        """
        The generator's form has one length for each number of links.
        """
        assert law.line_bytes(links) == len(line(7, [8] * links))

    @given(st.integers(0, 100), st.integers(20_000, 10**9), st.integers(MIB, 2**28))
    def test_comes_near_in_few_files(self, seed, size, block):
        """
        At most 0.5 % and a line's end below the size asked, and a tenth more files than blocks.
        """
        files = -(-size // block)
        made = law.graph_size(seed, size, block, files)

        assert -(size // 200) - 45 <= sum(made.files) - size <= 0
        assert files <= len(made.files) <= files + 1 + files // 10
        assert max(made.files) <= block

    def test_degrees_fit_the_law(self):
        """
        Out-degrees of pages with links are bounded Pareto: no quantile is off by more than one link
        or half a step of a cycle.
        """
        degrees = np.array([d for d in law.quantiles() if d])
        share = (np.arange(len(degrees)) + 0.5) / len(degrees)
        due = 1 / (1 / law.LEAST - share * (1 / law.LEAST - 1 / law.MOST))

        assert np.all((due - 1 < degrees) & (degrees <= due))


@pytest.fixture(scope="module")
def made():
    """
    A generated graph of 2 MB: what it was asked to be, and its bytes.
    """
    requested = spec(2_000_000, seed=11)
    job = workload.generate(requested, MIB, "/in")
    content, records, _, seed, _ = job.arguments
    return requested, printed(content, seed=seed, count=int(records), properties=job.properties)


@pytest.mark.process
class TestGenerator:
    """The bytes that our generator makes."""

    def test_files_are_as_planned(self, made):
        """
        Cut where the plan says, each file ends with a line, and all of them are the graph.
        """
        requested, data = made
        sizes = [f.bytes for f in workload.plan_input(requested, MIB).files]
        ends = np.cumsum(sizes)

        assert ends[-1] == len(data)
        assert {data[end - 1] for end in ends} == {ord("\n")}

    def test_pages_are_the_obvious_ones(self, made):
        """
        Degrees by the cycle, links by one chance each, computed page by page.
        """
        _, data = made
        lines = data.splitlines(keepends=True)
        for page in (0, 1, 255, 256, 3000):
            chances = draws(11, page)
            degree = law.cycle(11, page // law.CYCLE)[page % law.CYCLE]
            drawn = [(next(chances) >> 11) / 2**53 for _ in range(degree)]
            links = [int(u * u * len(lines)) * (2**31 - 1) % len(lines) for u in drawn]
            assert lines[page] == line(page, links)

    def test_in_degrees_fit_the_law(self, made):
        """
        Links to the pages of each popularity, in 50 classes: chi-square finds nothing strange.
        """
        from scipy.stats import chisquare

        _, data = made
        read = read_graph(named(data))
        pages = len(read.pages)
        popularity = np.empty(pages, np.int64)
        popularity[np.arange(pages) * (2**31 - 1) % pages] = np.arange(pages)
        edges = np.linspace(0, pages, 51).astype(int)
        observed = np.histogram(popularity[read.links], edges)[0]

        due = len(read.links) * np.diff(np.sqrt(edges / pages))

        assert chisquare(observed, due).pvalue > 1e-4

    def test_out_degrees_fit_the_law(self, made):
        """
        One page in sixteen has no links; the others are bounded Pareto, as Kolmogorov and Smirnov
        see them: no closer than one step of a cycle, and a link in its whole numbers.
        """
        _, data = made
        degrees = np.sort(read_graph(named(data)).degrees)
        some = degrees[degrees > 0]
        empirical = np.arange(1, len(some) + 1) / len(some)
        due = (1 / law.LEAST - 1 / (some + 1)) / (1 / law.LEAST - 1 / law.MOST)

        assert (degrees == 0).mean() == pytest.approx(1 / 16, abs=0.002)
        assert np.abs(empirical - due)[np.diff(some, append=10**9) > 0].max() < 0.01


class TestPlanInput:
    """Files of the plan."""

    def test_parameters_are_part_of_the_key(self):
        """
        What is kept of an input are ranks, which depend on them.
        """
        requested = [spec(), spec(iterations=4), spec(damping=0.5), spec(skew=3), spec(seed=2)]

        assert len({workload.plan_input(each, MIB).key for each in requested}) == len(requested)

    @pytest.mark.parametrize(
        ("requested", "block", "complaint"),
        [
            (spec(20), MIB, "20 bytes is not within 1 % of whole lines"),
            (spec(), 8000, "a block of 8000 bytes does not hold a record of"),
            (spec(10**13), 2**30, "has more than 2147483646 pages"),
            (spec(iterations=0), MIB, "iterations of pagerank is '0'"),
            (spec(damping=1.0), MIB, "damping of pagerank is '1.0'"),
        ],
    )
    def test_refuses_what_it_cannot_make(self, requested, block, complaint):
        """
        Sizes, blocks and parameters that no graph has.
        """
        with pytest.raises(SpecError, match=complaint):
            workload.plan_input(requested, block)


def test_generator_is_told_the_graph():
    """
    Pages, the links of the last one and the skew; as many files as the plan has.
    """
    requested = spec(1_000_000, seed=5, skew=3)
    job = workload.generate(requested, 2**18, "/in")

    assert job.argv({}) == (
        "-Dgraph.pages=2239", "-Dgraph.last=244", "-Dgraph.skew=3",
        "mapreduce.harness.jobs.pagerank.Graph", "2239", "4", "5", "/in",
    )  # fmt: skip


def test_one_client_runs_all_iterations():
    """
    The verdict reads the last one.
    """
    requested = spec(iterations=5)
    (job,) = workload.submit(requested, "in", "out")

    assert job.argv({}) == ("-Dpagerank.iterations=5", "-Dpagerank.damping=0.85", "in", "out")
    assert (workload.jobs(requested), workload.outputs(requested, "out")) == (5, "out/iteration-5")


class TestOracle:
    """SciPy's power iteration."""

    @given(graphs, st.integers(1, 6), st.floats(0, 1))
    def test_is_the_slow_way(self, links, iterations, damping):
        """
        Loops over pages and links give the same ranks, whose mean is 1.
        """
        read = read_graph(named(graph_file(links)))
        ranks = power_iteration(read, iterations, damping)

        np.testing.assert_allclose(ranks, slow_ranks(links, iterations, damping), rtol=1e-12)
        assert ranks.mean() == pytest.approx(1)

    @given(graphs, st.randoms(use_true_random=False), st.integers(1, 100))
    def test_reads_any_order_files_and_chunks(self, links, random, chunk):
        """
        The checksum and the ranks are those of the graph, not of its files.
        """
        lines = graph_file(links).splitlines(keepends=True)
        random.shuffle(lines)
        half = len(lines) // 2
        mixed = read_graph(named(b"".join(lines[:half]), b"".join(lines[half:]), chunk=chunk))
        plain = read_graph(named(graph_file(links)))

        assert mixed.checksum() == plain.checksum()
        np.testing.assert_allclose(power_iteration(mixed, 2, 0.85), power_iteration(plain, 2, 0.85))

    def test_checksum_sees_every_link(self):
        """
        Links that change, change their places or their pages make another graph.
        """
        changed = [
            [[1, 2], [0], []], [[2, 1], [0], []], [[1, 0], [2], []], [[1], [2, 0], []],
            [[1, 2], [], [0]], [[1, 2, 0], [], []], [[], [1, 2], [0]],
        ]  # fmt: skip
        sums = {read_graph(named(graph_file(links))).checksum() for links in changed}

        assert len(sums) == len(changed)

    @pytest.mark.parametrize(
        ("spoil", "line_number"),
        [
            (lambda s: s.replace(b"0000000002\t0", b"000000002\t0"), 3),
            (lambda s: s.replace(b"0000000002\t0", b"000000000x\t0"), 3),
            (lambda s: s.replace(b"0000000002\t0", b"0000000002 0"), 3),
            (lambda s: s.replace(b"1.0000000000\t", b"1,0000000000\t", 1), 1),
            (lambda s: s.replace(b"1.0000000000\t", b"1.00000-0000\t", 1), 1),
            (lambda s: s.replace(b" ", b"\t", 1), 1),
            (lambda s: s + b"\n", 5),
            (lambda s: s.replace(b"0000000003 ", b"9999999999 "), 1),
        ],
        ids=["short", "letter", "blank", "comma", "sign", "tab", "empty line", "large"],
    )
    def test_refuses_other_lines(self, spoil, line_number):
        """
        The error names file and line.
        """
        data = graph_file([[3, 1, 1], [0], [], [2]])

        with pytest.raises(JobError, match=f"part-0:{line_number}: .* is not a page, rank"):
            read_graph(named(spoil(data)))

    def test_refuses_half_a_line(self):
        """
        A file that was cut short is no graph.
        """
        with pytest.raises(JobError, match="part-0:2: the file ends within"):
            read_graph(named(graph_file([[1], [0]])[:-1]))


class TestSample:
    """What is kept of the input."""

    def test_counts(self):
        """
        Pages are records; links are those of the files.
        """
        links = graph()
        kept = workload.sample(spec(), named(graph_file(links)))

        assert kept["records"] == len(links)
        assert kept["links"] == sum(map(len, links))

    @pytest.mark.parametrize(
        ("data", "complaint"),
        [
            (line(0, [1]) + line(0, [1]), "page 0 has 2 lines"),
            (line(0, []) + line(2, [0]), "page 1 has 0 lines"),
            (line(0, [5]), "a link leads to page 5 of 1"),
        ],
    )
    def test_refuses_half_a_graph(self, data, complaint):
        """
        Pages are numbered from 0, each has one line, and links lead to them.
        """
        with pytest.raises(JobError, match=complaint):
            workload.sample(spec(), named(data))


class TestVerdict:
    """The proof of the output."""

    @given(graphs, st.integers(1, 4), st.floats(0, 0.99))
    def test_accepts_right_ranks(self, links, iterations, damping):
        """
        Ranks of the slow way are right, in whatever files they are.
        """
        requested = {"iterations": iterations, "damping": damping}
        lines = graph_file(links, slow_ranks(links, **requested)).splitlines(keepends=True)
        answer = judged(links, b"".join(lines[::2]), b"".join(lines[1::2]), **requested)

        assert answer == ""

    @pytest.mark.parametrize(
        ("spoil", "reason"),
        [
            (lambda links, ranks: (links, [r * 1.0001 for r in ranks]), "the ranks have the mean"),
            (lambda links, ranks: (links, ranks[1:] + ranks[:1]), "page .* has the rank"),
            (lambda links, ranks: (links, slow_ranks(links, 2)), "page .* has the rank"),
            (lambda links, ranks: (links[:-1], ranks[:-1]), "lines: 299 in the output, 300"),
            (lambda links, ranks: ([[], *links[1:]], ranks), "links: .* in the output"),
            (
                lambda links, ranks: ([links[0][::-1], *links[1:]], ranks),
                "checksum: .* in the output",
            ),
            (lambda links, ranks: ([], []), "lines: 0 in the output"),
        ],
        ids=["scaled", "turned", "earlier", "lost", "unlinked", "reversed", "empty"],
    )
    def test_refuses_and_says_why(self, spoil, reason):
        """
        Ranks of other pages or iterations, and graphs that are another one.
        """
        links = graph()
        answer = judged(links, graph_file(*spoil(links, slow_ranks(links))))

        assert answer
        assert re.match(reason, answer)

    def test_says_which_rank_is_wrong(self):
        """
        The page that is farthest off, its rank and the one due.
        """
        links = [[1], [2], [0]]
        answer = judged(links, graph_file(links, [0.5, 1.5, 1.0]))

        assert answer == (
            "page 0 has the rank 0.5000000000, not 1.0000000000; 2 of 3 compared ranks differ"
        )

    def test_reads_its_own_lines(self):
        """
        The helper that reads graphs for other tests agrees with the one that writes them.
        """
        assert read_links(graph_file(graph())) == graph()


class Small(PegasusPageRank):
    """
    PageRank in HiBench's form over a graph of so many pages.
    """

    def __init__(self, pages):
        self.pages = pages

    def page_count(self, spec):
        return self.pages


class TestHibench:
    """Over a list of links, by two jobs for each iteration."""

    spec = spec(hibench="true")

    def judged(self, links, ranks, **parameters):
        """
        What is said of these ranks for a list of these links.
        """
        small, requested = Small(len(links)), spec(hibench="true", **parameters)
        sample = small.sample(requested, named(edge_file(links)))
        written = graph_file([[]] * len(ranks), ranks)
        return small.verdict(requested, named(written), sample)

    @given(graphs, st.integers(1, 30))
    def test_accepts_right_ranks(self, links, iterations):
        """
        Those of loops over pages and links: what pages without links have is lost, and it ends
        where no rank moves far.
        """
        ranks = slow_ranks(links, iterations, lossy=True)

        assert self.judged(links, ranks, iterations=iterations) == ""

    @pytest.mark.parametrize(
        ("ranks", "reason"),
        [
            (slow_ranks(graph()), "the ranks have the mean"),
            (slow_ranks(graph(), 1, lossy=True), "the ranks have the mean"),
            (slow_ranks(graph(), lossy=True)[::-1], "page .* has the rank"),
            (slow_ranks(graph(), lossy=True)[:-1], "lines: 299 in the output, 300"),
        ],
        ids=["nothing lost", "earlier", "turned", "a page less"],
    )
    def test_refuses_and_says_why(self, ranks, reason):
        """
        Ranks by our own rule, of another iteration, of other pages, of fewer.
        """
        assert re.match(reason, self.judged(graph(), ranks))

    def test_reads_links_and_ranks(self):
        """
        So many records has each job.
        """
        links = graph()
        sample = Small(300).sample(self.spec, named(edge_file(links), chunk=1000))

        assert sample["records"] == 300 + sum(map(len, links))

    @pytest.mark.parametrize(
        "data",
        [
            b"0000000001 0000000002\n", b"0000000001\t000000000x\n", b"0000000001\t0000000300\n",
            b"0000000001\t0000000002\t", b"00000000-1\t0000000002\n",
        ],
    )  # fmt: skip
    def test_refuses_other_lines(self, data):
        """
        A blank, a letter, a page too many, a line without its end, a sign.
        """
        with pytest.raises(JobError, match="is not a link between two of 300 pages"):
            Small(300).sample(self.spec, named(edge_file(graph()) + data))

    def test_is_one_client_for_jobs_of_two_kinds(self):
        """
        It gets the number of pages; how many jobs run, the ranks decide; no combiner runs.
        """
        form = workload_for(self.spec)
        (job,) = form.submit(self.spec, "in", "out")

        assert job.main_class == "mapreduce.harness.jobs.pagerank.Naive"
        assert job.argv({}) == (
            "-Dpagerank.iterations=3", "-Dpagerank.damping=0.85",
            f"-Dpagerank.pages={form.page_count(self.spec)}", "in", "out",
        )  # fmt: skip
        assert form.page_count(self.spec) == pytest.approx(10_000_000 / 440.6, rel=0.003)
        assert (form.jobs(self.spec), form.uses_combiner, form.jobs_alike) == (None, False, False)
        assert form.outputs(self.spec, "out") == "out/iteration-3"

    @pytest.mark.process
    @given(st.integers(0, 100), st.integers(30_000, 10**9), st.integers(MIB, 2**28))
    def test_files_fit_blocks(self, seed, size, block):
        """
        The graph is that of the other form, within a page of the last file.
        """
        requested = spec(size, seed, hibench="true")
        files = workload_for(requested).plan_input(requested, block).files

        assert all(0 < file.bytes <= block for file in files)
        assert sum(file.bytes for file in files) == pytest.approx(1.85 * size, rel=0.03, abs=9000)

    def test_other_damping_is_refused(self):
        """
        HiBench has one.
        """
        requested = spec(hibench="true", damping=0.5)
        with pytest.raises(SpecError, match=r"damping of pagerank is .*: that of HiBench is"):
            workload_for(requested).plan_input(requested, MIB)
