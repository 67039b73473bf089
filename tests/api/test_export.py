"""Tests for `harness export` and `harness plot`: what other programs read of a run."""

import re

from xml.etree import ElementTree as ET

import duckdb
import pandas as pd
import pytest

from harness.base.documents.document import table
from harness.base.documents.formats.latex import latex_table
from harness.cli import main
from harness.export.tables import FRAMES, export, junit

HOSTILE = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\uff1dcmd", 'a,b;"c"\nd', "\x1b[31m", "'"]


@pytest.fixture(scope="module")
def exported(run, tmp_path_factory):
    """
    The folder of the files.
    """
    folder = tmp_path_factory.mktemp("exported")
    paths = [*export(run, folder)]
    assert sorted(paths) == sorted(folder.iterdir())
    return folder


class TestTables:
    @pytest.mark.parametrize("name", FRAMES)
    def test_are_read_by_pandas_and_duckdb(self, run, exported, name):
        """
        Columns, rows and sums are those of the frame, whatever reads and whichever format.
        """
        frame = getattr(run, name)
        parquet = exported / f"{name}.parquet"
        text = exported / f"{name}.csv"
        numeric = [
            column for column in frame.select_dtypes("number") if frame[column].notna().any()
        ]

        for read in (pd.read_parquet(parquet), pd.read_csv(text)):
            assert (list(read), len(read)) == (list(frame), len(frame))
            assert read[numeric].sum().tolist() == pytest.approx(frame[numeric].sum().tolist())
        for file in (parquet, text):
            sums = ", ".join(f'sum("{column}")' for column in numeric) or "0"
            opened = duckdb.sql(f"SELECT count(*), {sums} FROM '{file}'").fetchall()[0]
            assert opened[0] == len(frame)
            assert list(opened[1:])[: len(numeric)] == (
                pytest.approx(frame[numeric].sum().tolist())
                if len(frame)
                else [None] * len(numeric)
            )

    def test_answer_a_question_in_sql(self, run, exported):
        """
        The mean error of each model, as the summaries have it.
        """
        opened = duckdb.sql(
            f"""SELECT model, avg(relative_error) FROM '{exported / "scores.parquet"}'
            WHERE quantity = 'job_s' AND speed = 'raw' GROUP BY model"""
        ).fetchall()
        summaries = {
            each.model: each.metrics["mape"].value
            for each in run.run.read_scores().summaries
            if (each.workload, each.quantity, each.speed) == ("*", "job_s", "raw") and each.cells
        }

        assert dict(opened) == pytest.approx(summaries)

    def test_no_cell_is_a_formula(self, run, tmp_path):
        """
        Neither a value nor a heading that came from outside; numbers below 0 stay numbers.
        """
        frame = pd.DataFrame({"=cmd": HOSTILE, "number": range(-4, 5)})
        run.__dict__["predictions"] = frame  # as if it had been read
        try:
            [*export(run, tmp_path)]
        finally:
            del run.__dict__["predictions"]
        read = pd.read_csv(tmp_path / "predictions.csv", dtype=str, keep_default_na=False)

        texts = [*read.iloc[:, 0], *read.columns]
        assert [text for text in texts if text.startswith(tuple("=+-@\t\r\uff1d"))] == []
        assert read["'=cmd"].tolist()[:4] == ["'=1+1", "'+1", "'-1", "'@SUM(A1)"]
        assert read["number"].tolist() == [str(number) for number in range(-4, 5)]
        assert "\x1b" not in (tmp_path / "predictions.csv").read_text()
        assert pd.read_parquet(tmp_path / "predictions.parquet")["=cmd"].tolist() == HOSTILE


class TestLatex:
    def test_tables_are_those_of_the_report(self, exported):
        """
        With the rules of booktabs, one row of texts per line, as many columns as the head says.
        """
        for name in ("scores", "comparisons"):
            text = (exported / f"{name}.tex").read_text()
            rows = text.partition("\\midrule")[2].partition("\\bottomrule")[0].strip().splitlines()

            assert text.count("\\toprule") == 1
            assert {row.replace("\\&", "").count(" & ") for row in rows} == {
                text.partition("\\midrule")[0].strip().splitlines()[-1].count(" & ")
            }
            assert all(row.endswith("\\\\") for row in rows)

    def test_texts_are_text(self):
        """
        Whatever LaTeX would act upon is escaped.
        """
        hostile = {
            "50 % & #1 $x$ {y}": r"50~\% \& \#1 \$x\$ \{y\}",
            "\\input{z} --x ^": r"\textbackslash{}input\{z\} -{}-x \textasciicircum{}",
            "[1mm] * \x1b \u03b2 <": r"{[}1mm{]} {*} \textbackslash{}x1b U+03B2 {<}",
        }
        shown = table(
            "\\input{a_b}, %", ("A_b", "C"), "lr", [(each, "\u22121") for each in hostile]
        )
        rows = latex_table(shown).partition("\\midrule\n")[2].splitlines()[:3]

        assert rows == [rf"{text} & $-$1 \\" for text in hostile.values()]
        assert r"A\_b & C" in latex_table(shown)
        assert r"\caption{\textbackslash{}input\{a\_b\}, \%}" in latex_table(shown)


class TestJunit:
    def test_has_a_case_per_model_and_cell(self, run):
        """
        Those without an answer are skipped, with what they lack; the counts are those of the cases.
        """
        suites = ET.fromstring(junit(run))
        cases = [case for suite in suites for case in suite]

        assert {suite.get("name") for suite in suites} == {"whatif", "whatif-mr2"}
        assert len(cases) == len(run.predictions)
        for suite in suites:
            counted = [len(suite.findall(f"testcase/{kind}")) for kind in ("failure", "skipped")]
            assert [int(suite.get("failures")), int(suite.get("skipped"))] == counted
        skipped = {
            case.find("skipped").get("message") for case in cases if len(case.findall("skipped"))
        }
        assert skipped == {"not applicable: profile of wordcount"}

    def test_fails_what_is_surely_wrong(self, run):
        """
        More than two noise floors off: what a perfect prediction is in one of twenty cases.
        """
        cases = [case for suite in ET.fromstring(junit(run)) for case in suite]
        score_book = run.run.read_scores()
        quantity = score_book.ranking("raw").quantity
        scores = [s for s in score_book.scores if (s.quantity, s.speed) == (quantity, "raw")]
        wrong = sum(each.relative_error > 2 * each.floor for each in scores)

        assert sum(case.find("failure") is not None for case in cases) == wrong
        assert wrong > 0


class TestCommands:
    def test_export_names_its_files(self, run, tmp_path, capsys):
        """
        A line each.
        """
        folder = tmp_path / "new" / "folder"

        assert main(["export", str(run.run.path), "-o", str(folder)]) == 0
        files = capsys.readouterr().out.split()
        assert sorted(files) == sorted(str(path) for path in folder.iterdir())

    def test_export_into_a_file_says_so(self, run, tmp_path, capsys):
        """
        What, where and what to do.
        """
        (tmp_path / "file").write_text("")

        assert main(["export", str(run.run.path), "-o", str(tmp_path / "file")]) != 0
        assert "at:  " in capsys.readouterr().err

    @pytest.mark.process
    @pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
    def test_plot_writes_a_file(self, run, tmp_path, ending):
        """
        The same bytes each time.
        """
        files = [tmp_path / f"{n}.{ending}" for n in (1, 2)]
        for file in files:
            assert main(["plot", str(run.run.path), "errors", "-o", str(file)]) == 0

        first, second = (file.read_bytes() for file in files)
        assert first == second
        assert {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}[ending] in first[:9]

    def test_plot_lists_the_figures(self, run, capsys):
        """
        With their titles.
        """
        assert main(["plot", str(run.run.path)]) == 0
        assert re.search(r"speed +Speed of the machine", capsys.readouterr().out)

    def test_plot_wants_a_name_before_a_file(self, run, capsys, tmp_path):
        """
        Nothing is written, and the figures that there are stand in the fix.
        """
        file = tmp_path / "a.svg"

        assert main(["plot", str(run.run.path), "-o", str(file)]) == 2
        assert re.search(
            "fix: write one of these before -o: errors, .*speed", capsys.readouterr().err
        )
        assert not file.exists()

    @pytest.mark.parametrize("output", [[], ["-o", "errors.jpg"], ["-o", "errors"]])
    def test_plot_refuses_what_it_cannot_write(self, run, capsys, output):
        """
        It says which kinds there are.
        """
        assert main(["plot", str(run.run.path), "errors", *output]) == 2
        assert ".svg" in capsys.readouterr().err
