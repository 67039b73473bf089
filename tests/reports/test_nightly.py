"""
The page of a history of nights, and what other programs read of it.
"""

import csv
import math

from random import Random
from statistics import fmean
from xml.etree import ElementTree as ET

import pytest

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from harness.base.documents.formats import render_html, render_markdown
from harness.base.documents.junit import junit_xml
from harness.base.text import printable
from harness.nightly.alarms import tables
from harness.nightly.page import (
    headline,
    is_about,
    junit_suites,
    nightly_document,
    open_metrics,
    otava_csv,
)
from harness.nightly.records import Alarm, Night, Point, Series
from tests.reports.test_html import HOSTILE, Page
from tests.strategies import SEEDS

HERE = Series(machine="m1", experiment="e1", hadoop="3.5.0", workers="1")
CONTROLS = {"sleep": "framework", "dfsio": "disk", "shuffle": "network"}


def points_of(random, cells, word=""):
    """
    The numbers of a night: cells of two workloads with two models, three controls and a cost.
    """
    noise = [math.exp(random.gauss(0, 0.02)) for _ in range(3)]
    for place in range(cells):
        name = {"workload": ("wordcount", "terasort")[place % 2], "cell": f"cell {place}{word}"}
        yield Point(kind="measured", quantity="job_s", raw=[9 * each for each in noise], **name)
        yield Point(kind="measured", quantity="map_main_s", raw=noise, **name)
        for model in ("whatif", "vet"):
            yield Point(kind="residual", quantity="body_s", raw=noise, model=model, **name)
    for control in CONTROLS:
        yield Point(kind="control", workload=control, quantity="job_s", raw=noise, cell=control)
    yield Point(kind="control", quantity="processor", raw=[2300 * noise[0]])
    yield Point(kind="cost", workload="wordcount", quantity="map_s_per_byte", raw=[1e-8 * noise[1]])


def history(count, cells=4, seed=1, word="", **changes):
    """
    So many nights; *changes* are those of the last one.
    """
    random = Random(seed)
    nights = [
        Night(
            time_s=1767225600.0 + 86400 * place,
            run=f"{place:08x}{word}",
            series=HERE,
            facts={"kernel": f"6.{place // 5}{word}", "commit": f"c0ffee{place}"},
            points=tuple(points_of(random, cells, word)),
        )
        for place in range(count)
    ]
    return [*nights[:-1], *(night.model_copy(update=changes) for night in nights[-1:])]


def alarm(cause="cluster: disk", series="all cells", **changes):
    """
    An alarm of the fourth night, raised in the fifth.
    """
    fields = {"id": "ab12cd34", "since": 4, "raised": 5, "change": 0.2, "low": 0.17, "high": 0.23}
    return Alarm(cause=cause, series=series, **{**fields, **changes})


class TestHeadline:
    def test_names_the_alarm_that_is_open(self):
        """
        What, by how much, since when, why, and what is suspect.
        """
        suspect = alarm(suspects=("kernel: 6.1 before, 6.2 since",))

        assert headline(history(6), [suspect]) == (
            "An alarm is open: all cells moved by 20 % (95 %: 17 to 23 %) since night 4"
            " (2026-01-04), cause cluster: disk, open; first suspect: kernel: 6.1 before, 6.2"
            " since."
        )

    @pytest.mark.parametrize(
        ("nights", "alarms", "expected"),
        [
            ([], [], "Too few nights to see a shift: 0 of 8."),
            (history(7), [], "Too few nights to see a shift: 7 of 8."),
            (history(9), [], "Nothing moved in 9 nights."),
            (history(9), [alarm(state="gone")], "Nothing is open after 9 nights."),
            (
                history(9, whole=False),
                [],
                "Nothing moved in 8 nights; the last one is not whole, and not compared.",
            ),
            (
                history(9, series=HERE.model_copy(update={"machine": "m2"})),
                [],
                "Too few nights to see a shift: 1 of 8.",
            ),
        ],
    )
    def test_never_says_more_than_was_compared(self, nights, alarms, expected):
        """
        Nights that are not whole, or of another machine, do not count.
        """
        assert headline(nights, alarms) == expected


class TestIsAbout:
    def test_is_what_the_detector_has_in_its_factors(self):
        """
        An alarm that names a factor is about the numbers of that factor, and no others.
        """
        nights = history(8)
        (numbers,) = tables(nights)

        for factor in numbers.factors():
            cells = {numbers.points[member].cell for member in factor.members}
            is_of_cells = factor.kind in {"all", "workload", "cell"}
            moved = alarm("unknown", factor.name, cells=[*cells] if is_of_cells else [])
            about = {each.name for each in nights[-1].points if is_about(moved, each, nights)}
            assert about == {numbers.points[member].name for member in factor.members}

    def test_of_code_is_what_it_changed(self):
        """
        The night itself says which of its numbers another code gives: of a model its own.
        """
        name = "residual | wordcount | cell 0 | body_s | vet"
        nights = history(4, offsets={name: 0.1, "cost | wordcount | map_s_per_byte": 0.1})
        moved = alarm("code: vet", "vet")

        about = [each.name for each in nights[-1].points if is_about(moved, each, nights)]
        assert about == [name]


class TestPage:
    @pytest.mark.process
    def test_is_one_small_file(self):
        """
        As much as it shows, of forty cells, and of none: balanced tags, no link, below 2 MB.
        """
        for nights in ([], history(1), history(121, cells=40, whole=False)):
            text = render_html(nightly_document("n", nights, [alarm(since=100, raised=105)]))
            page = Page(text)

            assert len(text) < 2_000_000
            assert all(link.startswith("#") for link in page.links)
            assert len(page.ids) == len(set(page.ids))
            assert sum(tag == "svg" for tag in page.tags) <= 24

    @pytest.mark.process
    def test_foreign_text_stays_text(self):
        """
        Names of cells, facts, suspects and runs are shown, and never become part of the page.
        """
        nights = history(5, word=HOSTILE, lacks=(HOSTILE,))
        moved = alarm(HOSTILE, HOSTILE, id=HOSTILE, cells=(HOSTILE,), suspects=(HOSTILE,))
        text = render_html(nightly_document(HOSTILE, nights, [moved], [HOSTILE]))

        assert "<script" not in text
        assert not set(Page(text).tags) & {"script", "img", "a"}
        assert "\x1b" not in text
        assert "\u202e" not in text

    @pytest.mark.process
    def test_odd_numbers_are_drawn(self):
        """
        No repeat, nothing but 0, less than 0, a time that no calendar has, an alarm of no night.
        """
        odd = [((), (0.0,), (-2.0, 1.0), (1e300,))[place % 4] for place in range(40)]
        points = [
            point.model_copy(update={"raw": raw})
            for point, raw in zip(history(1)[0].points, odd, strict=False)
        ]
        nights = [*history(3, time_s=1e300, points=tuple(points)), *history(1)]
        alarms = [alarm(since=number, raised=99, change=-1.0) for number in (1, 2, 99)]
        document = nightly_document("n", nights, alarms)

        assert Page(render_html(document)).tags.count("svg") == len(document.figures())
        assert open_metrics("n", nights[:3], alarms).endswith("# EOF\n")
        assert len(otava_csv(nights).splitlines()) == 5
        assert junit_suites(nights, alarms)

    def test_says_what_is_left_out(self):
        """
        Figures and nights that are not drawn are counted.
        """
        document = nightly_document("n", history(130, cells=30), [])

        (panels,) = document.sections[0].blocks
        assert len(panels.figures) == 23
        assert "the last 120 of 130 nights and 24 of 36 figures" in panels.lead

    def test_draws_first_what_an_alarm_is_about(self):
        """
        Behind all cells stand the numbers of open alarms, whatever their kind.
        """
        document = nightly_document("n", history(9), [alarm("cluster: disk", "disk")])

        assert [figure.title for figure in document.figures().values()][:2] == [
            "all cells: mean job time",
            "control: dfsio",
        ]

    def test_nights_of_another_machine_have_a_median_of_their_own(self):
        """
        What one machine takes says nothing of another: both are drawn around 0, and not joined.
        """
        nights = history(12)
        half = {"series": HERE.model_copy(update={"machine": "m2"})}
        slow = [
            point.model_copy(update={"raw": tuple(9 * each for each in point.raw)})
            for point in nights[0].points
        ]
        nights[0] = nights[0].model_copy(update={**half, "points": tuple(slow)})
        figure = nightly_document("n", nights, []).figure

        assert figure.data.rows[0][1].text == "0.0 %"
        assert "another machine" in render_markdown(nightly_document("n", nights, []))

    def test_summary_is_short(self):
        """
        The Markdown of many nights is a summary of a build: no data of figures.
        """
        text = render_markdown(nightly_document("n", history(121, cells=20), [alarm()]))

        assert len(text) < 60_000
        assert "ab12cd34" in text


class TestFeeds:
    @given(SEEDS, st.text(), st.text())
    def test_metrics_are_read_by_the_client_of_prometheus(self, seed, word, cause):
        """
        Whatever labels hold, the text is OpenMetrics, and each cell's job has its mean.
        """
        nights, alarms = history(2, seed=seed, word=word), [alarm(cause, word), alarm()]
        families = {
            family.name.removeprefix("harness_nightly_"): family.samples
            for family in text_string_to_metric_families(open_metrics(word, nights, alarms))
        }

        jobs = {sample.labels["cell"]: sample.value for sample in families["job_seconds"]}
        assert jobs == {
            printable(each.cell): pytest.approx(fmean(each.raw))
            for each in nights[-1].points
            if each.quantity == "job_s"
        }
        assert families["nights"][0].value == 2
        assert {sample.labels["state"] for sample in families["alarm"]} == {"open"}

    def test_a_ratio_of_job_times_is_no_time(self):
        """
        Where no trial shows its body, models are compared by jobs: seconds of jobs stay seconds.
        """
        night = history(1)[0]
        point = next(each for each in night.points if each.kind == "residual")
        ratio = point.model_copy(update={"quantity": "job_s"})
        plain, mixed = (
            open_metrics("n", [night.model_copy(update={"points": points})], [])
            for points in (night.points, (*night.points, ratio))
        )

        assert [line for line in mixed.splitlines() if "job_seconds{" in line] == [
            line for line in plain.splitlines() if "job_seconds{" in line
        ]

    @given(SEEDS, st.integers(0, 6), st.booleans())
    def test_csv_holds_the_mean_of_every_number(self, seed, count, whole):
        """
        A row for each whole night, a column for each number.
        """
        nights = history(count, seed=seed, whole=whole)
        rows = list(csv.DictReader(otava_csv(nights).splitlines()))

        kept = [night for night in nights if night.whole]
        assert [row["commit"] for row in rows] == [night.facts["commit"] for night in kept]
        for row, night in zip(rows, kept, strict=True):
            means = {point.name: fmean(point.raw) for point in night.points}
            assert {name: float(row[name]) for name in means} == means

    def test_cases_are_the_numbers_of_the_last_night(self):
        """
        One fails where an open alarm is about it, and is skipped where the night lacks it.
        """
        nights = history(6)
        last = nights[-1].model_copy(update={"points": nights[-1].points[4:]})
        alarms = [alarm("cluster: disk", "disk"), alarm("unknown", "network", state="accepted")]
        root = ET.fromstring(junit_xml(junit_suites([*nights[:-1], last], alarms)))

        cases = {case.get("name"): [each.tag for each in case] for case in root.iter("testcase")}
        expected = {point.name: [] for point in nights[-1].points}
        expected |= {point.name: ["skipped"] for point in nights[-1].points[:4]}
        expected["control | dfsio | dfsio | job_s"] = ["failure"]
        assert cases == expected

    def test_nothing_passes_in_a_night_that_is_not_whole(self):
        """
        It was compared with none, so that it says nothing.
        """
        suites = junit_suites(history(5, whole=False, lacks=("a node short",)), [])

        cases = [case for cases in suites.values() for case in cases]
        assert {outcome for _, outcome, _ in cases} == {"skipped"}
        assert "a node short" in cases[0][2]
