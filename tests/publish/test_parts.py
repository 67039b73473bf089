"""
Parts of a bundle one by one: the formulas of verify.py by hand, tables, the report as a PDF, texts.
"""

import math

from types import SimpleNamespace

import pytest

from harness.base.documents.document import Document, Figure, Figures, Section, Text, table
from harness.base.errors import DataError
from harness.base.records.trial import Cell, ClusterSpec, Code, NodeSpec, WorkloadSpec
from harness.base.units import MIB
from harness.observe.storage.opener import Opener
from harness.publish import verify
from harness.publish.compare import relative_change
from harness.publish.data import hardware, read_table, table_field
from harness.publish.paper import cleaned, pdf_blocks
from harness.publish.system import input_licences

FIX = "get the bundle again, or make it again: harness publish RUN -o DIR"


class TestRanking:
    def families(self, jobs, bodies):
        """
        Families of so many cells by the time of jobs and of bodies.
        """

        def family(count, *models):
            errors = {model: 0.1 * (1 + place) for place, model in enumerate(models)}
            return errors, [f"c{number}" for number in range(count)]

        return {
            ("job_s", "raw"): family(jobs, "a", "b"),
            ("body_s", "raw"): family(bodies, "c", "d"),
        }

    def test_is_by_jobs_unless_bodies_have_more_than_twice_the_cells(self):
        """
        Exactly twice is not more.
        """
        assert verify.ranking(self.families(3, 6), {}).quantity == "job_s"
        by_body = verify.ranking(self.families(3, 7), {})
        assert by_body.quantity == "body_s"
        assert [*by_body.errors] == by_body.nearest == ["c", "d"]
        assert len(by_body.cells) == 7
        assert verify.ranking({}, {}) == verify.Ranking("job_s", {}, [], [])

    def test_leaves_out_who_is_farther(self):
        """
        By a raw comparison of the same quantity that is decided.
        """
        families = self.families(3, 3)

        def nearest(*key, verdict="nearer"):
            return verify.ranking(families, {key: {"verdict": verdict}}).nearest

        assert nearest("job_s", "raw", "a", "b") == ["a"]
        for key in (("job_s", "reference", "a", "b"), ("body_s", "raw", "a", "b")):
            assert nearest(*key) == ["a", "b"]
        assert nearest("job_s", "raw", "a", "b", verdict="equal") == ["a", "b"]

    def test_is_a_sentence(self):
        """
        Of nobody, of one, of several.
        """

        def sentence(*nearest, cells=("c0",) * 6):
            errors = {"a": 0.05, "b": 0.061, "c": 0.2}
            return verify.nearest_sentence(verify.Ranking("job_s", errors, cells, [*nearest]))

        assert sentence() == "no model can be ranked."
        assert sentence("a") == "a is nearest by job_s, 5.0 % off on average over 6 cells."
        assert sentence("a", cells=["c0"]).endswith(" over 1 cell.")
        assert sentence("a", "b", "c") == (
            "no model is nearest by job_s: a, b and c, 5.0 % to 20.0 % off on average over 6"
            " cells, cannot be told apart."
        )


class TestOneCell:
    @pytest.mark.parametrize(
        ("lower", "upper"), [(0.9, 1.3), (0.99, 1.05), (0.999, 1.001), (1.2, 3.0)]
    )
    def test_distances_are_those_to_where_a_verdict_changes(self, lower, upper):
        """
        Both by looking for them: where the errors are equal, and where they differ by the margin.
        """

        def gap(measured):
            return abs(lower - measured) / measured - abs(upper - measured) / measured

        steps = [0.2 + number / 20_000 for number in range(80_000)]
        equal = min(steps, key=lambda measured: abs(gap(measured)))
        within = [measured for measured in steps if abs(gap(measured)) <= verify.MARGIN]
        around = [measured for measured in within if abs(measured - equal) < 1]
        for z in (1.0, 2.0):
            distance, inner = verify.distances_in_a_cell([[lower], [upper]], z)
            assert distance == pytest.approx(abs(1 - equal) / z, abs=2e-4)
            nearest = min(1 - min(around), max(around) - 1) / z
            if max(around) < 4 and min(around) > 0.2001:
                assert inner == pytest.approx(nearest, abs=2e-4)
            assert verify.distances_in_a_cell([[upper], [lower]], z) == (distance, inner)

    def test_errors_that_are_alike_far_away_never_differ_by_the_margin(self):
        """
        Above the middle; below it they do.
        """
        distance, inner = verify.distances_in_a_cell([[1.0], [1.001]], 1.0)

        assert distance == pytest.approx(0.0005)
        assert inner == pytest.approx(1 - 0.001 / verify.MARGIN)


class TestChances:
    @pytest.mark.parametrize(
        ("freedom", "t", "chance"),
        [
            (1, 1.0, 0.25),
            (1, -1.0, 0.75),
            (2, 0.0, 0.5),
            (10, 2.228139, 0.025),
            (5, 4.032143, 0.005),
        ],
    )
    def test_are_students(self, freedom, t, chance):
        """
        As tables print them.
        """
        assert verify.tail(freedom, t) == pytest.approx(chance, rel=1e-5)

    @pytest.mark.parametrize(("freedom", "t"), [(1, 12.7062), (5, 2.57058), (30, 2.04227)])
    def test_have_quantiles(self, freedom, t):
        """
        For an interval at 95 %; only below 16.
        """
        assert verify.t_quantile(freedom) == pytest.approx(t, rel=1e-5)

    def test_of_many_tests_are_corrected_by_holm(self):
        """
        From the smallest on: as many times as there are left, never smaller than the one before.
        """
        tests = [[0.04, 1.0], [0.01, 1.0], [0.03, 1.0], [0.9, 1.0]]
        verify.correct_by_holm(tests, 0)

        assert [chance for chance, _ in tests] == pytest.approx([0.09, 0.04, 0.09, 0.9])
        assert {other for _, other in tests} == {1.0}

    def test_by_units_left_out_are_a_variance(self):
        """
        Of a mean it is that of the mean.
        """
        values = [1.0, 2.0, 4.0, 9.0]
        without = [(16.0 - value) / 3 for value in values]

        variance = sum((value - 4) ** 2 for value in values) / 3 / 4
        assert verify.jackknife_variance(without) == pytest.approx(variance)

    def test_of_noise_grow_with_the_gap_where_one_model_is_exact(self):
        """
        By the floor; far from the measured time only the gap counts.
        """
        exact = verify.noise_variance([(1.0, 1.0), (1.2, 1.2)], [0.1, 0.1])
        assert exact == pytest.approx(2 * (0.2 / 2) ** 2)
        far = verify.noise_variance([(2.0, 2.0), (2.4, 2.4)], [0.1, 0.1])
        assert far == pytest.approx(2 * (0.4 * 0.1 / 2) ** 2)

    def test_have_the_freedom_of_both_variances(self):
        """
        At most that of the units.
        """
        assert verify.joint_freedom(1.0, 7, 0.0, 0) == 6.0
        assert verify.joint_freedom(0.0, 7, 0.0, 0) == pytest.approx(1.0)
        assert verify.joint_freedom(1.0, 7, 1.0, 5) == pytest.approx(
            min(6.0, 1 / (0.25 / 6 + 0.25 / 4))
        )

    def test_without_any_noise_are_not_known(self):
        """
        A floor that is not known is the largest of the others.
        """
        assert verify.noise_floors([None, 0.0]) == ([1.0, 1.0], False)
        assert verify.noise_floors([0.1, None, 0.2]) == ([0.1, 0.2, 0.2], True)


class TestComparing:
    def complaint(self, found, value, column="difference"):
        """
        What is said where *found* is stored in the place of *value*.
        """
        try:
            verify.compare("data/x.csv", {("k",): {column: found}}, {("k",): {column: value}})
        except (TypeError, ValueError) as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def test_numbers_agree_to_a_billionth(self):
        """
        Where shares may cancel, near 0 as well.
        """
        assert self.complaint(1.0, 1.0 + 5e-10) == ""
        assert self.complaint(1.0, 1) == ""
        assert self.complaint(1.0, 1.0 + 5e-9) != ""
        assert self.complaint(1e-13, 2e-13) == ""
        assert self.complaint(1e-13, 2e-13, "predicted") != ""

    def test_all_else_is_equal_or_not(self):
        """
        A text, a number that is not there, and one in the place of a text.
        """
        assert self.complaint("equal", "equal") == ""
        said = "ValueError: data/x.csv ('k',) difference: stored {}, computed {}"
        for found, value in (("equal", "nearer"), (None, 1.0), (1.0, None), (1.0, "x"), ("x", 1.0)):
            assert self.complaint(found, value) == said.format(found, value)

    def test_rows_are_in_both(self):
        """
        One that lacks and one too many are named.
        """
        for stored, computed, text in (
            ({}, {("k",): {"a": 1.0}}, "stored no such row, computed 1.0"),
            ({("k",): {"a": 1.0}}, {}, "computed no such row"),
            ({("k",): {}}, {("k",): {"a": 1.0}}, "stored this row, computed 1.0"),
        ):
            with pytest.raises(ValueError, match=text):
                verify.compare("f", stored, computed)

    @pytest.mark.parametrize(
        ("old", "new", "change"),
        [
            ("2.0", "3", 0.5),
            ("-2", "-3", -0.5),
            ("0", "1", None),
            ("", "1", None),
            ("1", "x", None),
            (None, "1", None),
            ("1", None, None),
            ("1", "nan", None),
            ("1", "1e999", None),
            ("nan", "1", None),
        ],
    )
    def test_a_change_is_a_share_of_the_old_number(self, old, new, change):
        """
        None where there is no number.
        """
        assert relative_change(old, new) == change


class TestTables:
    def test_are_read_as_a_whole_or_not_at_all(self, tmp_path):
        """
        A quote that does not end, a field too many, no line, no text.
        """
        (tmp_path / "data").mkdir()
        path = tmp_path / "data/x.csv"
        path.write_text('a,b\n1,"x,y"\n,\n')
        opener = Opener(tmp_path)
        assert read_table(opener, "x") == [{"a": "1", "b": "x,y"}, {"a": "", "b": ""}]
        for content in (b'a,b\n1,"x\n', b"a,b\n1,2,3\n", b"a,b\n1\n", b"", b"\xff", b'a\n"x"y\n'):
            path.write_bytes(content)
            with pytest.raises(DataError) as caught:
                read_table(opener, "x")
            assert caught.value.what.startswith("it cannot be read: ")
            assert (caught.value.where, caught.value.fix) == (str(path), FIX)

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (None, ""),
            (math.nan, ""),
            (math.inf, ""),
            (True, "true"),
            (False, "false"),
            (1, "1"),
            (0.1, "0.1"),
            ("a", "A"),
            ("=a", "'=A"),
            ("-1", "'-1"),
        ],
    )
    def test_have_texts_that_are_no_formula(self, value, text):
        """
        Cleaned; numbers keep every digit.
        """
        assert table_field(value, str.upper) == text

    def test_say_on_what_a_cell_ran(self):
        """
        With what limits all nodes, and what limits one.
        """

        def said(**fields):
            spec = WorkloadSpec(name="sort", input_bytes=MIB)
            return hardware(Cell(cluster=ClusterSpec(**fields), workload=spec))

        assert said(provider="docker", workers=3) == "docker, 3 workers"
        limited = said(
            workers=2, node=NodeSpec(cores=0.5), nodes={"worker1": NodeSpec(disk_bytes_per_s=MIB)}
        )
        assert limited.startswith("local, 2 workers, ")
        assert "0.5" in limited
        assert limited.endswith(" of worker1")


class TestPdf:
    def test_has_all_blocks_in_their_order(self):
        """
        Question, title, verdict, facts, the figure of all models, their table, the sections.
        """
        figure = Figure("f", "title", "caption", 3.0, 2.0, lambda _: None, {})
        overview = table("models", ("a",), "l", [("x",)])
        document = Document(
            "name",
            "question?",
            "headline",
            [Section("id", "A section", [Text("shown")])],
            overview=overview,
            figure=figure,
            mark="a draft",
        )
        blocks = pdf_blocks(document)

        assert blocks[:3] == [
            Text("question?", "title"),
            Text("Experiment name, a draft."),
            Text("headline", "heading"),
        ]
        assert blocks[3:] == [
            Figures([figure]),
            overview,
            Text("A section", "section"),
            Text("shown"),
        ]
        bare = Document("name", "q", "h", [])
        assert pdf_blocks(bare)[1] == Text("Experiment name.")
        assert len(pdf_blocks(bare)) == 3

    def test_is_cleaned_in_every_text(self):
        """
        In whatever holds it, keys as well; numbers stay as they are.
        """
        spec = WorkloadSpec(name="sort", input_bytes=3, parameters={"a": "b"})

        made = cleaned({"k": ["x", ("y", 1), {"z"}, None, spec]}, str.upper)
        assert made["K"][:4] == ["X", ("Y", 1), {"Z"}, None]
        assert (made["K"][4].name, made["K"][4].input_bytes) == ("SORT", 3)
        assert cleaned(Text("a", "b"), str.upper) == Text("A", "B")


class TestLicences:
    def test_of_inputs_are_said(self):
        """
        Of ours, of a user's own, and of past jobs.
        """
        code = Code(file="a.py", class_name="Mine", sha256="0" * 64)

        def sentences(*codes, was_imported=False):
            workloads = [SimpleNamespace(name="w", code=code) for code in codes]
            return input_licences(SimpleNamespace(was_imported=was_imported, workloads=workloads))

        ours = [
            "Inputs are generated, by programs under Apache-2.0; nobody's data are in them.",
            "Those of terasort are made by TeraGen of Hadoop, others by ours, from a seed.",
        ]
        assert sentences(None) == ours
        assert sentences(None, code) == [
            *ours,
            "w: the user's own Mine; its licence is not known.",
        ]
        assert sentences(code, was_imported=True) == [
            "Inputs are those of jobs that had run before: nobody knows what is in them."
        ]
