"""
What a paper takes from a bundle: tables, figures, the skeleton around them, and the PDF.
"""

import dataclasses
import re
import shutil
import subprocess
import sys

import pytest

from harness.base.documents.document import Document, Section, Text, table
from harness.base.records.score import MetricValue
from harness.core.reports.sections import make_document
from harness.core.reports.sections.predicted import calibration_figure, models_panel
from harness.publish.data import make_claim
from harness.publish.paper import (
    cleaned,
    paper_figures,
    paper_tables,
    public_data,
    write_paper,
    write_pdf,
)
from tests.evaluate.test_flow import evaluation, scored
from tests.reports.conftest import build

HOSTILE = '"#\\input{|ls}%_&^~[1]=cmd $x$ \u03b2\u4e2d\x1b<b>'
TEX = [name for name in ("pdflatex", "tectonic") if shutil.which(name)]
KINDS = ("pdf", "svg")
SCORES = ("Workload", "Model", "Cells", "Mean relative error", "Signed", "Noise floor", "I_accu")


def hostile(text):
    """
    The same text, but that a model has a name of which each program would make something else.
    """
    return text.replace("whatif-mr2", HOSTILE)


@pytest.fixture(scope="module")
def made_up():
    """
    All that a report shows of a run of 54 trials, two workloads and two models.
    """
    return build()


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """
    The evaluation of a scored run, whose jobs are recorded.
    """
    return evaluation(scored(tmp_path_factory.mktemp("results")))


@pytest.fixture(scope="module")
def shown(stored):
    """
    All that a report shows of the stored run, with a hostile name, and the report itself.
    """
    results = cleaned(public_data(stored), hostile)
    return results, make_document(results)


@pytest.fixture(scope="module")
def claim(stored):
    """
    The claim of the stored run, with a hostile name.
    """
    made = make_claim([stored], 0.0)
    return made._replace(title=HOSTILE, lines=tuple(map(hostile, made.lines)))


@pytest.fixture(scope="module")
def paper(shown, claim, tmp_path_factory):
    """
    The folder of what is written of the stored run with a hostile name.
    """
    folder = tmp_path_factory.mktemp("paper")
    write_paper({"": shown}, claim, folder)
    return folder


def texts_of(folder):
    """
    Content of each file of a folder, by its path.
    """
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


class TestCleaned:
    def test_changes_nothing_but_texts(self, made_up):
        """
        Records, tuples and numbers stay what they are; so does every text that is kept.
        """
        assert cleaned(made_up, str) == made_up

    def test_reaches_every_text_of_a_report(self, made_up):
        """
        Keys and names in any depth: a report of what is cleaned has the name nowhere.
        """
        document = make_document(cleaned(made_up, lambda text: text.replace("wordcount", "job")))
        shown = [block for section in document.sections for block in section.shown()]
        figures = document.figures().values()

        assert "wordcount" not in f"{document.facts}{document.headline}{document.overview}{shown}"
        assert {"wordcount" in f"{each}" for each in figures} == {False}
        assert "job: mean seconds" in f"{shown}"


class TestTables:
    def test_have_the_numbers_of_the_report(self, made_up):
        """
        A row for each scored cell, model and pair, of the time that the verdict is on, as measured.
        """
        tables, scores = paper_tables(made_up), made_up.scores("job_s", made_up.speed)

        assert set(tables) == {"cells", "scores", "comparisons", "costs0", "costs1"}
        assert len(tables["cells"].rows) == len({score.cell for score in scores})
        assert tables["cells"].columns == ("Cell", "Range", "Repeats", "Measured, s", "Noise")
        assert tables["scores"].columns == SCORES
        assert {row[1] for row in tables["scores"].texts()} == {"whatif", "whatif-mr2"}
        assert [row[:2] for row in tables["comparisons"].texts()] == [["whatif-mr2", "whatif"]]
        assert tables["costs1"].caption.startswith("terasort: costs at reference speed")

    def test_are_left_out_where_there_is_nothing(self):
        """
        Of a run without scores and profiles no table and no figure is made.
        """
        nothing = dataclasses.replace(build(), score_book=type(build().score_book)(), profiles={})

        assert paper_tables(nothing) == paper_figures(nothing, make_document(nothing)) == {}


@pytest.mark.process
class TestWritePaper:
    def test_writes_all_that_the_paper_includes(self, paper):
        """
        Each table and figure, as PDF and SVG, is there and included once.
        """
        source = (paper / "paper.tex").read_text()
        tables = re.findall(r"\\input\{(tables/[\w-]+)\}", source)
        figures = re.findall(r"\\includegraphics\[.*\]\{(figures/[\w-]+)\.pdf\}", source)

        wanted = {f"{name}.tex" for name in tables} | {
            f"{f}.{kind}" for f in figures for kind in KINDS
        }
        assert set(texts_of(paper)) == wanted | {"paper.tex"}
        assert {"tables/scores", "tables/cells", "tables/costs0"} <= set(tables)
        assert source.count("\\input{") == len(tables)
        assert {"figures/predicted", "figures/errors"} <= {*figures}
        assert len(tables + figures) == len({*tables, *figures})

    def test_gives_the_same_bytes(self, shown, claim, paper, tmp_path):
        """
        No file has a moment or a random name in it; of several runs, names end with that of each.
        """
        write_paper({"-one": shown, "-two": shown}, claim, tmp_path)
        every = texts_of(tmp_path)
        assert every.pop("paper.tex") != b""

        for suffix in ("-one", "-two"):
            again = {
                name.replace(suffix, ""): content
                for name, content in every.items()
                if suffix in name
            }
            assert again == {name: c for name, c in texts_of(paper).items() if name != "paper.tex"}

    def test_draws_figures_for_a_column(self, paper):
        """
        3.5 or 7.16 inches wide; PDF with fonts of outlines, SVG with text that can be searched.
        """
        for path in paper.glob("figures/*"):
            content = path.read_bytes()
            if path.suffix == ".pdf":
                width = float(re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", content)[1])
                assert (b"/FontFile2" in content, b"/Type3" in content) == (True, False)
                assert b"CreationDate" not in content
            else:
                width = float(re.search(rb'width="([\d.]+)pt"', content)[1])
                assert (b"<text" in content, b"<dc:date>" in content) == (True, False)
            assert round(width / 72, 2) in (3.5, 7.16)

    @pytest.mark.skipif(not TEX, reason="neither pdflatex nor tectonic is installed")
    @pytest.mark.parametrize("program", TEX)
    def test_compiles(self, paper, tmp_path, program):
        """
        As it is, with a hostile name in every place.
        """
        folder = shutil.copytree(paper, tmp_path / "paper")
        options = ["-interaction=nonstopmode", "-halt-on-error"] if program == "pdflatex" else []
        done = subprocess.run(
            [program, *options, "paper.tex"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )

        assert done.returncode == 0, done.stdout[-2000:]
        assert (folder / "paper.pdf").stat().st_size > 20_000


@pytest.mark.process
class TestFigures:
    def test_all_models_are_in_one_panel(self, made_up):
        """
        With each cell of each model in the data, and a point for each of both.
        """
        figure = models_panel(made_up)
        drawn = drawn_alone(figure)
        points = sum(len(line.get_xdata()) for line in drawn.axes[0].lines if line.get_gid())

        assert len(figure.data.rows) == len(made_up.scores("job_s", made_up.speed)) == points
        names = [text.get_text() for text in drawn.legends[0].get_texts()]
        assert names == ["whatif", "whatif-mr2", "wordcount", "terasort"]

    def test_coverage_is_beside_its_level(self, made_up):
        """
        Where predictions have intervals, a second panel shows how often they hold.
        """
        score_book, share = made_up.score_book, {"coverage_80": MetricValue(value=0.75)}
        summaries = [
            each.model_copy(update={"metrics": each.metrics | share})
            for each in score_book.summaries
        ]
        covered = dataclasses.replace(
            made_up, score_book=score_book.model_copy(update={"summaries": tuple(summaries)})
        )
        without, beside = (drawn_alone(calibration_figure(each)) for each in (made_up, covered))

        assert [len(each.axes) for each in (without, beside)] == [1, 2]
        places = [list(line.get_xdata()) for line in beside.axes[1].lines]
        assert places == [[0.8, 0.8], [0.75], [0.75]]


def drawn_alone(figure):
    """
    A figure as it is drawn for a paper.
    """
    from harness.base.documents.drawing import draw_alone

    return draw_alone(figure)


class TestPdf:
    def test_is_said_to_be_missing_without_typst(self, made_up, monkeypatch, tmp_path):
        """
        Nothing is written, and the reason names the extra.
        """
        monkeypatch.setitem(sys.modules, "typst", None)
        reason = write_pdf(make_document(made_up), tmp_path / "report.pdf")

        assert reason.startswith("there is no report.pdf: ")
        assert "(pip install '.[pdf]' in a checkout of the harness, or make setup there)" in reason
        assert [*tmp_path.iterdir()] == []

    @pytest.mark.process
    def test_texts_are_no_markup(self, tmp_path):
        """
        Whatever a report says, in text, table or list, it is shown.
        """
        pytest.importorskip("typst", reason="the extra pdf is not installed")

        assert write_pdf(document_of(HOSTILE), tmp_path / "report.pdf") == ""

    @pytest.mark.process
    def test_has_the_same_bytes(self, made_up, tmp_path):
        """
        Each time, with a hostile name; texts, tables and figures of every kind are in it.
        """
        pytest.importorskip("typst", reason="the extra pdf is not installed")
        whole = make_document(cleaned(made_up, hostile))
        document = dataclasses.replace(whole, sections=whole.sections[:5])
        paths = [tmp_path / name for name in ("one.pdf", "two.pdf")]

        assert [write_pdf(document, path) for path in paths] == ["", ""]
        one, two = (path.read_bytes() for path in paths)
        assert one == two
        assert (one[:5], b"CreationDate" in one) == (b"%PDF-", False)


def document_of(text):
    """
    A report in which every text is *text*.
    """
    shown = table(text, (text, text), "lr", [(text, text)], note=text)
    section = Section(text, text, [Text(text), Text(text, "heading"), shown])
    return Document(text, text, text, [section], overview=shown, mark=text)


def test_public_data_has_no_name_that_is_replaced(stored):
    """
    In each text of a record, and of records in it.
    """
    data = cleaned(public_data(stored), lambda text: text.replace("terasort", "job"))

    assert "terasort" not in f"{data}"
    assert data.workloads[0] == "job"
