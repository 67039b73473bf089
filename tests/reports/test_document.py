"""
Tests for `harness.base.documents.document`, and for tables of single sections.
"""

import dataclasses

import pytest

from harness.base.documents.document import Figures, Section, Table, Text, signed_tone, table
from harness.base.records.question import BEST, Answer, Question
from harness.base.records.score import ScoreBook
from harness.core.reports.sections import SECTIONS, make_document, scores
from harness.core.reports.sections.cells import error_table
from harness.core.reports.sections.machine import correction_text
from harness.core.reports.sections.method import flatten, section
from harness.core.reports.sections.phases import equation_table
from harness.core.reports.sections.profile import scaled, statistics_table
from harness.core.reports.sections.scores import (
    extrapolated_tables,
    frame_share,
    overview_table,
    score_table,
)


class TestTable:
    def test_rows_must_fit_their_head(self):
        """
        A row that is too short is an error of ours, found where it is made.
        """
        with pytest.raises(ValueError, match="do not fit its 2 columns"):
            table("t", ("a", "b"), "lr", [("only",)])

    def test_rows_beyond_the_most_are_counted(self):
        """
        Nothing is left out in silence.
        """
        cut = table("t", ("a",), "l", [("x",)] * 2002, note="Note.")

        assert len(cut.rows) == 2000
        assert cut.note == "Note. 2 more rows not shown; report.json has all."

    def test_a_column_of_nothing_is_left_out(self):
        """
        But never the one that names the rows, nor one of a table without any.
        """
        shown = table("t", ("a", "b", "c"), "lrl", [("", "\u2013", "x"), ("", "", "y")])

        assert (shown.columns, shown.align) == (("a", "c"), "ll")
        assert shown.texts() == [["", "x"], ["", "y"]]
        assert table("t", ("a", "b"), "lr", []).columns == ("a", "b")

    @pytest.mark.parametrize(
        ("error", "floor", "tone"),
        [(-0.05, None, "low1"), (0.15, 0.02, "high2"), (0.3, 0.02, "high3"), (0.3, 0.4, "")],
    )
    def test_shade_follows_the_error_beyond_its_noise(self, error, floor, tone):
        """
        Errors inside their noise floor are not shaded.
        """
        assert signed_tone(error, floor) == tone


class TestSection:
    def test_says_what_is_missing(self):
        """
        Without a table or a figure that holds something, texts alone say nothing.
        """
        empty = table("t", ("a",), "l", [])
        nothing = Section("s", "S", [Text("lead"), Text(""), empty, Figures([])], missing="nothing")
        some = Section("s", "S", [Text("lead"), table("t", ("a",), "l", [("x",)])], missing="-")

        assert (nothing.shown(), nothing.is_missing()) == ([Text("nothing")], True)
        assert (len(some.shown()), some.is_missing()) == (2, False)

    def test_ids_are_unique(self, document):
        """
        Links of the contents lead to one place each.
        """
        ids = [section.id for section in document.sections]

        assert len(set(ids)) == len(ids) <= len(SECTIONS)

    def test_no_section_overwrites_the_values_of_another(self, document):
        """
        All of them stand side by side at the top of the JSON report.
        """
        keys = ["schema_version", "question", "answer", *document.values()]
        keys += [key for section in document.sections for key in section.values()]

        assert sorted(set(keys)) == sorted(keys)

    def test_equal_data_gives_equal_values(self, whole, document):
        """
        A section is a function of the data alone.
        """
        again = make_document(whole)

        assert [s.values() for s in again.sections] == [s.values() for s in document.sections]


class TestScores:
    def test_columns_follow_from_the_metrics(self, whole):
        """
        A metric that is added has its column, its note and its value.
        """
        added = dataclasses.replace(whole.metrics["mape"], title="new metric", columns=("raw",))
        metrics = {"mape": whole.metrics["mape"], "new": added}
        summaries = tuple(
            s.model_copy(update={"metrics": s.metrics | {"new": s.metrics["mape"]}})
            for s in whole.score_book.summaries
        )
        score_book = whole.score_book.model_copy(update={"summaries": summaries})
        shown = score_table(dataclasses.replace(whole, metrics=metrics, score_book=score_book))

        assert shown.columns == (
            "Workload", "Model", "Time", "Cells", "Frame", "Mean relative error", "New metric",
            "Mean relative error at reference speed", "No answer",
        )  # fmt: skip
        assert "New metric: |predicted" in shown.note
        assert shown.rows[0][5] == shown.rows[0][6]

    @pytest.mark.parametrize(
        ("extrapolate", "said"),
        [(False, "They count like the others."), (True, "The question is about them alone."),
         ("out", "These cells are in no verdict, and in no mean error but this one.")],
    )  # fmt: skip
    def test_extrapolated_cells_have_rows_of_their_own(self, whole, extrapolate, said):
        """
        Beside those of the others, with their number; the note says whether they count.
        """
        first = whole.scores(whole.answered, "raw")[0].cell
        moved = [
            score.model_copy(update={"range": "outside" if score.cell == first else "inside"})
            for score in whole.score_book.scores
        ]
        question = Question(how_far=BEST, extrapolate=extrapolate)
        found = Answer(question=question, asked="sealed", outcome="yes", sentence="")
        update = {"scores": tuple(moved), "answer": found}
        book = whole.score_book.model_copy(update=update)
        (shown,) = extrapolated_tables(dataclasses.replace(whole, score_book=book))
        numbers = {tuple(row[:2]): int(row[2]) for row in shown.texts()}

        assert numbers["whatif", "extrapolated"] == 1
        assert numbers["whatif", "within the profile"] > 1
        assert said in shown.note

    def test_without_an_extrapolated_cell_there_is_no_such_table(self, whole):
        """
        Nothing is said of none.
        """
        inside = [score.model_copy(update={"range": "edge"}) for score in whole.score_book.scores]
        book = whole.score_book.model_copy(update={"scores": tuple(inside)})

        assert [*extrapolated_tables(dataclasses.replace(whole, score_book=book))] == []

    def test_each_model_has_body_job_and_as_published(self, whole):
        """
        Three rows, so that nobody is granted start-up time that another lacks.
        """
        rows = [tuple(row[:3]) for row in score_table(whole).texts() if row[0] == "all"]

        assert rows == [
            ("all", model, time)
            for model in whole.models
            for time in ("body", "job", "as published")
        ]

    def test_one_workload_is_all_there_is(self, whole, monkeypatch):
        """
        Then no rows repeat its own for all workloads.
        """
        monkeypatch.setattr(type(whole), "workloads", property(lambda _: ("terasort",)))

        assert {row[0] for row in score_table(whole).texts()} == {"terasort"}

    def test_frame_has_its_share_of_the_job(self, whole):
        """
        In every row, and in the JSON.
        """
        of_workload = [m.raw_s for m in whole.measurements if m.workload == "terasort"]
        share = sum(m["frame_s"] for m in of_workload) / sum(m["job_s"] for m in of_workload)

        shown = {row[4] for row in score_table(whole).texts() if row[0] == "terasort"}
        shares = scores.section(whole).values()["frame_shares"]

        assert shown == {f"{100 * share:.0f} %"}
        assert shares["terasort"] == pytest.approx(share)
        assert shares.keys() == {"wordcount", "terasort", "*"}

    def test_equations_stand_beside_what_recordings_show(self, whole):
        """
        By model, with the equation that gives each part; Prophet has its own of a spill.
        """
        (one, *_) = (s for s in whole.score_book.scores if s.quantity == "map_main_s")
        parts = [
            one.model_copy(
                update={"model": m, "quantity": "spill_sort_s", "level": "equation",
                        "predicted_s": 2.0, "measured_s": 1.6, "signed_error": 0.25}
            )
            for m in ("whatif", "prophet")
        ]  # fmt: skip
        results = dataclasses.replace(whole, score_book=ScoreBook(scores=parts))

        shown = [table for w in results.workloads for table in [equation_table(results, w)]]
        rows = [row for table in shown for row in table.texts()]

        assert [row[:4] for row in rows] == [
            ["whatif", "spill sort", "(20)", "1"], ["prophet", "spill sort", "(2), (3)", "1"],
        ]  # fmt: skip
        assert {tuple(row[4:6]) for row in rows} == {("2.000", "1.600")}

    def test_a_frame_that_nobody_knows_has_no_share(self, whole):
        """
        A run without one shows none.
        """
        bare = [
            m.model_copy(update={"raw_s": {n: s for n, s in m.raw_s.items() if n != "frame_s"}})
            for m in whole.measurements
        ]
        results = dataclasses.replace(whole, measurements=bare)

        assert frame_share(results, "*") is None
        assert "Frame" not in score_table(results).columns

    def test_one_repeat_has_no_floor(self, make):
        """
        Without repeats the scores stand with an unknown noise floor.
        """
        shown = error_table(make(repeat=1), "job_s")

        assert "Noise" not in shown.columns
        assert "x)" not in shown.texts()[0][-1]

    def test_the_first_screen_has_a_row_for_each_model(self, whole):
        """
        In the order of the ranking, those that are not ranked last, each with its verdict.
        """
        (raw, reference) = whole.score_book.rankings
        alone = {"models": raw.models[:1], "errors": raw.errors[:1], "left_out": {"whatif": "why"}}
        score_book = whole.score_book.model_copy(
            update={"rankings": (raw.model_copy(update=alone), reference)}
        )
        tables = [
            overview_table(data)
            for data in (whole, dataclasses.replace(whole, score_book=score_book))
        ]

        assert [[(row[0], row[-1]) for row in each.texts()] for each in tables] == [
            [("whatif-mr2", "nearest"), ("whatif", "farther")],
            [("whatif-mr2", "alone"), ("whatif", "not ranked")],
        ]
        assert overview_table(dataclasses.replace(whole, score_book=ScoreBook())) is None

    def test_times_that_are_the_same_at_reference_speed_stand_once(self, whole):
        """
        Of a run without a correction there is one row for each cell, and no further column.
        """
        equal = [m.model_copy(update={"reference_s": m.raw_s}) for m in whole.measurements]
        plain = dataclasses.replace(whole, measurements=equal)

        assert len(error_table(whole, "job_s").rows) == 2 * len(error_table(plain, "job_s").rows)
        assert not any("reference" in each for each in score_table(plain).columns)


class TestProfile:
    def test_costs_are_shown_in_units_that_read_well(self, whole):
        """
        Seconds per byte become nanoseconds, with no digit that the spread denies.
        """
        shown = statistics_table("costs", whole.profiles["wordcount"].costs)

        assert [row[:4] for row in shown.texts()[:2]] == [
            ["hdfs_read_s_per_byte", "1.9", "0.3", "ns/B"],
            ["map_cpu_s_per_record", "7.41", "0.18", "\u00b5s/record"],
        ]

    @pytest.mark.parametrize(
        ("name", "unit"),
        [("network_bps", "MiB/s"), ("setup_cpu_s", "s"), ("local_write_s_per_byte_map", "ns/B"),
         ("spill_s_per_record_compressed", "µs/record"), ("map_bytes_selectivity", "")],
    )  # fmt: skip
    def test_every_statistic_has_its_unit(self, name, unit):
        """
        Rates are distinguished from times; compression and sides change no unit.
        """
        assert scaled(name)[1] == unit

    def test_correction_without_gain_is_said_to_do_nothing(self, whole):
        """
        A coefficient of zero corrects nothing, and the report says why.
        """
        speed = whole.profiles["terasort"].speed

        assert "do not bear one" in correction_text("terasort", speed)
        assert "no speed was measured" in correction_text("terasort", None)


class TestMethod:
    def test_manifest_is_shown_in_units_for_people(self, whole):
        """
        Times are dates, bytes have a unit, a command line is one line.
        """
        tables = [block for block in section(whole).shown() if isinstance(block, Table)]
        shown = dict(row[:2] for row in tables[-1].texts())

        assert shown["started_s"] == "2026-01-01 00:00:00 UTC"
        assert shown["hardware.memory_bytes"] == "24 GiB"
        assert shown["command_line"] == "harness all experiments/quick.yaml"

    def test_empty_mapping_is_a_leaf(self):
        """
        Nothing of a manifest is lost, not even an empty entry.
        """
        assert list(flatten({"a": {}, "b": {"c": None}})) == [("a", {}), ("b.c", None)]
