"""
Tests for `harness.core.experiment.file`: sizes by name, and values of arguments.
"""

import pytest

from harness.base.errors import SpecError
from harness.core.experiment.file import KnownNames, read_experiment
from harness.core.experiment.grid import expand, is_profiling

SCALES = {
    "sort": {"tiny": 1000, "small": 2_000_000},
    "rank": {"tiny": 3000, "least": 3000, "huge": 9_000_000_000},
    "bare": {},
}
TEXT = """\
schema: 1
name: scales
question: How large?
workloads:
  - name: {workload}
    input: {size}
    rounds: {rounds}
"""


def refuse(workload, name, value):
    """
    Rounds are whole.
    """
    whole = isinstance(value, int)
    return None if whole else (f"{name} of {workload} is {value!r}", "write rounds: 3")


KNOWN = KnownNames(
    workloads=tuple(SCALES),
    models=("whatif",),
    providers=("local",),
    parameters=dict.fromkeys(SCALES, ("rounds",)),
    scales=SCALES,
    refusal=refuse,
)


def read(*, workload="sort", size="tiny", rounds="3", more="", overrides=()):
    """
    An experiment with one workload.
    """
    text = TEXT.format(workload=workload, size=size, rounds=rounds) + more
    return read_experiment(text, "e.yaml", overrides, known=KNOWN)


def complaint(**wrong):
    """
    What is said of such an experiment: what, where, fix.
    """
    with pytest.raises(SpecError) as caught:
        read(**wrong)
    return caught.value.what, caught.value.where, caught.value.fix


class TestSizesByName:
    @pytest.mark.parametrize(
        ("size", "expected"),
        [
            ("tiny", (1000,)),
            ("[tiny, 5 kB, small]", (1000, 5000, 2_000_000)),
            ("32 MiB", (2**25,)),
        ],
    )
    def test_are_bytes(self, size, expected):
        """
        Alone or in a list, beside sizes.
        """
        assert read(size=size).workloads[0].input_bytes == expected

    def test_are_those_of_the_workload(self):
        """
        The same name is another size of another workload.
        """
        assert read(workload="rank").workloads[0].input_bytes == (3000,)

    def test_may_be_overrides(self):
        """
        What ``--set`` says is read like the file.
        """
        result = read(overrides=["workloads.sort.input=small"])

        assert result.workloads[0].input_bytes == (2_000_000,)

    @pytest.mark.parametrize(
        ("workload", "size", "where", "fix"),
        [
            ("sort", "tinny", "e.yaml:6:12", "did you mean tiny?"),
            ("sort", "[tiny, huge]", "e.yaml:6:19", "choose one of: tiny, small"),
            ("bare", "tiny", "e.yaml:6:12", "write a size such as 32 MiB"),
        ],
    )
    def test_that_a_workload_lacks_are_told_with_their_place(self, workload, size, where, fix):
        """
        The error says whose names are meant, and which there are.
        """
        what, at, reported = complaint(workload=workload, size=size)

        assert what.startswith(f"workloads.0.input: {workload} has no size called '")
        assert (at, reported.startswith(fix)) == (where, True)

    def test_each_unknown_one_is_told_once(self):
        """
        Two of them are two mistakes, and not a third.
        """
        what, *_ = complaint(size="[tinny, smal]")

        assert what.startswith("2 things are wrong")

    def test_of_an_unknown_workload_are_not_judged(self):
        """
        What is wrong is the workload.
        """
        what, *_ = complaint(workload="soort", size="1 MiB")

        assert "there is no workload 'soort'" in what

    def test_two_names_of_one_size_are_told(self):
        """
        The grid would have the same cell twice.
        """
        what, at, fix = complaint(workload="rank", size="[tiny, least, huge]")

        assert what == "workloads.0.input: 'least' is given twice, first as 'tiny'"
        assert (at, fix) == ("e.yaml:6:19", "leave one")

    def test_the_same_size_twice_is_told(self):
        """
        A name and the bytes that it stands for are one value.
        """
        what, at, _ = complaint(size="[tiny, 1000 B]")

        assert (what, at) == (
            "workloads.0.input: '1000 B' is given twice, first as 'tiny'",
            "e.yaml:6:19",
        )


class TestProfileOn:
    PREDICT = "predict: {{models: [whatif], profile_on: {{input: {0}}}}}\n"
    OTHER = "  - {name: rank, input: [tiny, huge], rounds: 1}\n"

    def chosen(self, sizes):
        """
        Workload and size of the cells that feed profiles.
        """
        more = self.OTHER + self.PREDICT.format(sizes)
        e = read(size="[tiny, small]", more=more)
        cells = [c.workload for c in expand(e) if is_profiling(c, e.predict)]
        return {(w.name, w.input_bytes) for w in cells}

    @pytest.mark.parametrize("sizes", ["tiny", "[tiny]"])
    def test_a_name_means_that_size_of_each_workload(self, sizes):
        """
        Both workloads' cells of that name are chosen.
        """
        assert self.chosen(sizes) == {("sort", 1000), ("rank", 3000)}

    def test_a_name_that_no_workload_has(self):
        """
        It is reported with its place.
        """
        more = self.PREDICT.format("tinny")
        what, at, fix = complaint(size="[tiny, small]", more=more)

        assert what == "predict.profile_on: no workload here has a size called 'tinny'"
        assert (at, fix.startswith("did you mean tiny?")) == ("e.yaml:8:49", True)


class TestArguments:
    @pytest.mark.parametrize(
        ("rounds", "where"), [("many", "e.yaml:7:13"), ("[3, 2.5]", "e.yaml:7:17")]
    )
    def test_are_refused_with_their_place(self, rounds, where):
        """
        What the workload has against a value stands at that value.
        """
        what, at, fix = complaint(rounds=rounds)

        assert (what.startswith("rounds of sort is "), at, fix) == (True, where, "write rounds: 3")

    def test_of_the_right_kind_are_axes(self):
        """
        Nothing is said of them.
        """
        assert read(rounds="[3, 4]").workloads[0].parameters == {"rounds": (3, 4)}
