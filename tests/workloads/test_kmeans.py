"""
Tests for `harness.clusters.workloads.kmeans` and its oracle.
"""

import itertools
import math
import re

import numpy as np
import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.errors import JobError, SpecError
from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads import WORKLOADS, kmeans, workload_for
from harness.clusters.workloads.kmeans import lloyd
from tests.clouds import cloud, cloud_bytes, read_cloud, slow_steps, steps_file
from tests.workloads.generators import below, draws, printed

MIB = 2**20
workload = WORKLOADS["kmeans"]


def spec(size=10_000_000, seed=1, **parameters):
    """
    A K-means of *size* bytes.
    """
    return WorkloadSpec(name="kmeans", input_bytes=size, seed=seed, parameters=parameters)


def named(*files, chunk=6400):
    """
    Files with names, in chunks that cut points.
    """
    for number, data in enumerate(files):
        yield f"part-{number}", [data[i : i + chunk] for i in range(0, len(data), chunk)]


def judged(points, steps, **parameters):
    """
    What is said of an output with these steps.
    """
    requested = spec(len(cloud_bytes(points)), **parameters)
    sample = workload.sample(requested, named(cloud_bytes(points)))
    return workload.verdict(requested, named(steps_file(steps)), sample)


def moved(steps, iteration, way):
    """
    The same steps, but one coordinate of one centre.
    """
    copied = [([list(centre) for centre in centres], list(counts)) for centres, counts in steps]
    copied[iteration][0][3][7] += way
    return copied


class TestPlanInput:
    """Points and files."""

    @given(st.integers(20_000, 2**40), st.integers(MIB, 2**28), st.integers(1, 20))
    def test_fits_blocks_and_comes_near(self, size, block, dimensions):
        """
        Whole points, short of the size asked by less than one for each file, in files that fit a
        block.
        """
        size = min(size, 1000 * block)
        files = workload.plan_input(spec(size, dimensions=dimensions), block).files
        sizes = [f.bytes for f in files]

        assert -4 * dimensions <= size - sum(sizes) < 8 * dimensions * len(sizes)
        assert max(sizes) <= block
        assert {each % (8 * dimensions) for each in sizes} == {0}

    def test_parameters_are_part_of_the_key(self):
        """
        What is kept of an input are centres, which depend on them.
        """
        changes = [
            {}, {"centres": 3}, {"dimensions": 4}, {"clusters": 2}, {"spread": 1.0},
            {"epsilon": 0.1}, {"iterations": 9}, {"seed": 2},
        ]  # fmt: skip

        assert len({workload.plan_input(spec(**each), MIB).key for each in changes}) == len(changes)

    @pytest.mark.parametrize(
        ("requested", "block", "complaint"),
        [
            (spec(1500), MIB, "1500 bytes is not within 1 % of 10 or more whole records"),
            (spec(240, dimensions=3, centres=11), MIB, "not within 1 % of 11 or more"),
            (spec(), 100, "a block of 100 bytes does not hold a record of 160 bytes"),
            (spec(centers=3), MIB, "has no parameter 'centers'"),
            (spec(spread=-1.0), MIB, "spread of kmeans is '-1.0'"),
        ],
    )
    def test_refuses_what_it_cannot_make(self, requested, block, complaint):
        """
        Fewer points than centres, small blocks, and parameters that nobody knows.
        """
        with pytest.raises(SpecError, match=complaint):
            workload.plan_input(requested, block)


def test_commands():
    """
    The generator gets the mixture, the job the search; the verdict reads all iterations.
    """
    requested = spec(480_000, seed=3, dimensions=3, centres=4)
    made = workload.generate(requested, 2**18, "/in")
    (job,) = workload.submit(requested, "in", "out")

    assert made.argv({}) == (
        "-Dmixture.clusters=5", "-Dmixture.dimensions=3", "-Dmixture.spread=5.0",
        "mapreduce.harness.jobs.kmeans.Mixture", "20000", "2", "3", "/in",
    )  # fmt: skip
    assert job.argv({}) == (
        "-Dkmeans.centres=4", "-Dkmeans.dimensions=3", "-Dkmeans.epsilon=0.5",
        "-Dkmeans.iterations=5", "in", "out",
    )  # fmt: skip
    assert (workload.jobs(requested), workload.outputs(requested, "out")) == (None, "out/centres")


def uniform(chances):
    """
    A chance from 0 to 1.
    """
    return (next(chances) >> 11) / 2**53


def edges():
    """
    Where the layers of a ziggurat of 128 equal areas end, found again from the area of all.
    """
    tail, area = 3.442619855899, 9.91256303526217e-3
    observed = [area / math.exp(-tail * tail / 2), tail]
    while len(observed) < 128:
        height = math.exp(-(observed[-1] ** 2) / 2) + area / observed[-1]
        observed.append(math.sqrt(-2 * math.log(height)))
    return [*observed, 0.0]


def normals(chances, ends):
    """
    Points of a layer that lie below the curve of the normal law; beyond the lowest layer its tail.
    """
    while True:
        bits = next(chances)
        layer, place = bits & 127, 2 * (bits >> 11) / 2**53 - 1
        observed = place * ends[layer]
        if layer == 0 and abs(observed) >= ends[1]:
            yield math.copysign(tail_of(chances, ends[1]), place)
            continue
        if abs(observed) >= ends[layer + 1]:
            low, high = (math.exp(-(end**2) / 2) for end in (ends[layer], ends[layer + 1]))
            if high - uniform(chances) * (high - low) >= math.exp(-(observed**2) / 2):
                continue
        yield observed


def tail_of(chances, start):
    """
    A normal number beyond *start*, by Marsaglia.
    """
    while True:
        beyond = -math.log(1 - uniform(chances)) / start
        if -2 * math.log(1 - uniform(chances)) >= beyond**2:
            return start + beyond


def middles(seed, clusters, dimensions):
    """
    Where the clusters of a mixture lie.
    """
    return [
        [100 * uniform(chances) for _ in range(dimensions)]
        for chances in (draws(2**64 - 1 - seed, i) for i in range(clusters))
    ]


@pytest.fixture(scope="module")
def points():
    """
    Points of a mixture of 4 clusters in 3 dimensions.
    """
    job = workload.generate(spec(480_000, 9, dimensions=3, clusters=4), MIB, "/in")
    content, records, _, seed, _ = job.arguments
    data = printed(content, seed=seed, count=int(records), properties=job.properties)
    return np.array(read_cloud(data, 3))


@pytest.mark.process
class TestGenerator:
    """The bytes that our generator makes."""

    def test_points_are_the_obvious_ones(self, points):
        """
        The cluster by one chance, then a normal coordinate after the other.
        """
        places, ends = middles(9, 4, 3), edges()
        for number in range(0, 20_000, 7):
            chances = draws(9, number)
            middle = places[below(chances, 4)]
            offs = itertools.islice(normals(chances, ends), 3)
            due = [m + 5 * z for m, z in zip(middle, offs, strict=True)]
            np.testing.assert_allclose(points[number], due, rtol=1e-12)

    def test_clusters_and_spread_fit_the_law(self, points):
        """
        Equally many points of each cluster, by chi-square; around the middles of their clusters
        they are normal with the spread asked, by Kolmogorov and Smirnov, in each coordinate.
        """
        from scipy.stats import chisquare, kstest

        clusters = np.array([below(draws(9, number), 4) for number in range(len(points))])
        offs = (points - np.array(middles(9, 4, 3))[clusters]) / 5

        assert chisquare(np.bincount(clusters)).pvalue > 1e-4
        assert min(kstest(column, "norm").pvalue for column in offs.T) > 1e-4


@pytest.mark.process
class TestOracle:
    """scikit-learn, one iteration at a time."""

    @settings(max_examples=15)
    @given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 4), st.floats(0, 20))
    def test_is_the_slow_way(self, seed, centres, width, epsilon):
        """
        Loops over points give the same centres, points and number of iterations.
        """
        points = cloud(seed, count=40, width=width)
        observed = lloyd(points, points[:centres], epsilon, 4)
        due = slow_steps(points.tolist(), centres, epsilon, 4)

        assert [step.points.tolist() for step in observed] == [counts for _, counts in due]
        for step, (places, _) in zip(observed, due, strict=True):
            np.testing.assert_allclose(step.centres, places, rtol=1e-9)

    def test_empty_centre_stays(self):
        """
        Of two centres at one place the lower one gets the points, and the other keeps its place; in
        the next iteration that is the nearest.
        """
        points = np.array([[1.0, 1.0], [1.0, 1.0], [9.0, 9.0], [2.0, 2.0]])
        steps = lloyd(points, points[:3], 0.0, 5)

        assert [step.points.tolist() for step in steps[1:3]] == [[3, 0, 1], [1, 2, 1]]
        np.testing.assert_allclose(steps[1].centres, [[4 / 3, 4 / 3], [1, 1], [9, 9]])


class TestSample:
    """What is kept of the input."""

    @pytest.mark.process
    @given(st.integers(1, 500))
    @settings(max_examples=10)
    def test_ignores_files_and_chunks(self, chunk):
        """
        However points are spread over files in their order and cut into chunks.
        """
        data = cloud_bytes(cloud(count=60, width=20))
        split = workload.sample(spec(len(data)), named(data[:1600], data[1600:], chunk=chunk))

        assert split == workload.sample(spec(len(data)), named(data))
        assert split["records"] == 60

    @pytest.mark.parametrize("memory_bytes", [kmeans.IN_MEMORY_BYTES, 0])
    @pytest.mark.parametrize(
        ("spoil", "complaint"),
        [
            (
                lambda points: cloud_bytes(points)[:-8],
                "part-1 has 4792 bytes, not a whole",
            ),
            (lambda points: cloud_bytes(points)[:160], "6 points are fewer than 10"),
            (
                lambda points: cloud_bytes([*points[:7], [np.nan] * 20, *points[8:]]),
                "part-1: record 7 has a coordinate that is not finite",
            ),
        ],
        ids=["cut", "few", "nan"],
    )
    def test_refuses_what_are_no_points(self, monkeypatch, memory_bytes, spoil, complaint):
        """
        The error names file and record; also where the input is too large to be held.
        """
        monkeypatch.setattr(kmeans, "IN_MEMORY_BYTES", memory_bytes)
        points = cloud(count=30).tolist()

        with pytest.raises(JobError, match=complaint):
            workload.sample(spec(), named(cloud_bytes(points[:5]), spoil(points)))


@pytest.mark.process
class TestVerdict:
    """The proof of the output."""

    @pytest.mark.parametrize("memory_bytes", [kmeans.IN_MEMORY_BYTES, 0])
    @pytest.mark.parametrize("seed", range(3))
    def test_accepts_the_slow_way(self, monkeypatch, memory_bytes, seed):
        """
        Loops over points are right, also where a sample judges.
        """
        monkeypatch.setattr(kmeans, "IN_MEMORY_BYTES", memory_bytes)
        monkeypatch.setattr(kmeans, "SAMPLED", 400)
        points = cloud(seed).tolist()
        answer = judged(points, slow_steps(points))

        assert answer == ""

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (lambda steps: steps[:-1], "the output has . iterations, not ."),
            (lambda steps: [*steps, steps[-1]], "the output has . iterations, not ."),
            (lambda steps: moved(steps, 0, 1e-13), "iteration 0: centre 3 misses"),
            (lambda steps: moved(steps, 2, 1e-6), "iteration 2: centre 3 misses .* by 1e-06"),
            (
                lambda steps: [*steps[:-1], (steps[-1][0], steps[-1][1][::-1])],
                "iteration .: centre 0 has .* points, not",
            ),
            (lambda steps: [], "the output has 0 lines"),
        ],
        ids=["early", "late", "start", "moved", "counts", "empty"],
    )
    def test_refuses_and_says_why(self, change, reason):
        """
        Centres that are off, and iterations that are too few or too many.
        """
        points = cloud(count=300).tolist()
        answer = judged(points, change(slow_steps(points)))

        assert answer
        assert re.match(reason, answer)

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (lambda steps: moved(steps, 0, 1e-13), "iteration 0: the start"),
            (lambda steps: moved(steps, 2, 1e-3), "iteration 2: its means are not those of all"),
            (
                lambda steps: [*steps[:-1], (steps[-1][0], steps[-1][1][::-1])],
                "iteration .: its means",
            ),
            (
                lambda steps: [steps[0], (steps[1][0][::-1], steps[1][1][::-1]), *steps[2:]],
                "iteration 1: centre 0",
            ),
        ],
        ids=["start", "moved", "counts", "turned"],
    )
    def test_sample_refuses_and_says_why(self, monkeypatch, change, reason):
        """
        What is off in the sum over all points, or in the sample.
        """
        monkeypatch.setattr(kmeans, "IN_MEMORY_BYTES", 0)
        points = cloud(count=300).tolist()
        answer = judged(points, change(slow_steps(points)))

        assert answer
        assert re.match(reason, answer)

    @pytest.mark.parametrize(
        ("old", "new"),
        [("0\t0\t0\t", "0\t1\t0\t"), ("0\t0\t0\t", "0\t0\t-1\t"), (",", ",x"), (",", ";")],
    )
    def test_refuses_other_lines(self, old, new):
        """
        The reason names file and line.
        """
        points = cloud(count=300).tolist()
        sample = workload.sample(spec(48_000), named(cloud_bytes(points)))
        output = steps_file(slow_steps(points)).replace(old.encode(), new.encode(), 1)
        answer = workload.verdict(spec(48_000), named(output), sample)

        assert re.match("part-0:1: .*", answer)

    def test_reads_its_own_records(self):
        """
        The helper that reads points for other tests agrees with the one that writes them.
        """
        assert read_cloud(cloud_bytes(cloud())) == cloud().tolist()


@pytest.mark.process
class TestHibench:
    """From five centres, with a job more that assigns the points."""

    parameters = {"hibench": "true"}  # noqa: RUF012 - nobody writes it
    points = cloud(count=300).tolist()

    def assigned(self, *, change=lambda rows: rows):
        """
        Points with the numbers of their nearest centres, by loops over points.
        """
        steps = slow_steps(self.points, 5)
        rows = [
            [*point, float(min(range(5), key=lambda i: math.dist(point, steps[-1][0][i])))]
            for point in self.points
        ]
        return steps_file(steps), cloud_bytes(change(rows))

    def reason(self, *outputs):
        """
        What is said of these output files.
        """
        data = cloud_bytes(self.points)
        requested = spec(len(data), **self.parameters)
        form = workload_for(requested)
        return form.verdict(requested, named(*outputs), form.sample(requested, named(data)))

    def test_accepts_the_slow_way(self):
        """
        In whatever files the points are.
        """
        centres, rows = self.assigned()
        middle = 21 * 8 * 100

        assert self.reason(centres, rows[:middle], rows[middle:]) == ""

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (lambda rows: rows[:-1], "records: 299 in the output, 300"),
            (lambda rows: [], "records: 0 in the output"),
            (lambda rows: [*rows[:-1], rows[0]], "checksum: "),
            (
                lambda rows: [[*row[:-1], (row[-1] + 1) % 5] for row in rows],
                "point 0 of the output",
            ),
        ],
        ids=["lost", "none", "twice", "elsewhere"],
    )
    def test_refuses_and_says_why(self, change, reason):
        """
        Points that are lost, there twice, or with another centre.
        """
        assert self.reason(*self.assigned(change=change)).startswith(reason)

    def test_centres_are_proved_too(self):
        """
        As without that job.
        """
        centres, rows = self.assigned()

        assert "iterations, not" in self.reason(steps_file(slow_steps(self.points, 5)[:-1]), rows)
        assert centres

    def test_parameters_are_hibench_s(self):
        """
        Five centres and at most five iterations; its jobs are of two kinds.
        """
        requested = spec(**self.parameters)
        form = workload_for(requested)
        (job,) = form.submit(requested, "in", "out")

        assert job.argv({}) == (
            "-Dkmeans.centres=5", "-Dkmeans.dimensions=20", "-Dkmeans.epsilon=0.5",
            "-Dkmeans.iterations=5", "-Dkmeans.assign=true", "in", "out",
        )  # fmt: skip
        assert (form.jobs(requested), form.jobs_alike) == (None, False)
        with pytest.raises(SpecError, match="centres of kmeans is '10': that of HiBench is 5"):
            form.plan_input(spec(centres=10, **self.parameters), MIB)
