"""
Tests for `harness.reports.plots`: what the drawings hold, and that it can be seen.
"""

import dataclasses
import html
import re
import warnings

from importlib.resources import files

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.evaluate.job_inside import job_inside
from harness.records.trace import TaskAttempt
from harness.reports.data import insides
from harness.reports.plots.canvas import PHASES, SERIES, Canvas, drawing
from harness.reports.plots.errors import errors_per_cell
from harness.reports.plots.inside import task_tracks, time_bars
from harness.reports.plots.machine import relative_rates, speed_over_time
from harness.reports.plots.phases import phase_means
from harness.reports.plots.timeline import assign_lanes, phases, timeline


@pytest.fixture(scope="module")
def figures(rendered):
    """Every figure of the whole run."""
    return rendered[1]


def of_tasks(data):
    """Figures of the inside of tasks."""
    for n, ((_, job), (name, inside)) in enumerate(zip(data.timelines, insides(data), strict=True)):
        found = task_tracks(n, job, name, inside), time_bars(n, name, inside)
        yield from (f for f in found if f is not None)


def text_boxes(svg):
    """(text, left, top, right, bottom) of every text of a drawing, by matplotlib's own font."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    measure = TextToPath()
    for attributes, text in re.findall(r"<text ([^>]*)>(.*?)</text>", svg, re.DOTALL):
        size = float(re.search(r"([\d.]+)px", attributes)[1])
        weight = "bold" if re.search(r"bold|\b700\b", attributes) else "normal"
        font = FontProperties(size=size, weight=weight)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            width, _, _ = measure.get_text_width_height_descent(
                html.unescape(text), font, ismath=False
            )
        anchor = re.search(r"text-anchor: (\w+)", attributes)
        x, y, turned = place(attributes)
        shift = {"middle": 0.5, "end": 1.0}.get(anchor[1] if anchor else "", 0.0) * width
        if turned:
            yield text, x - size, y - width + shift, x, y + shift
        else:
            yield text, x - shift, y - size, x - shift + width, y


def place(attributes):
    """Position of a text, and whether it stands upright on its side."""
    turned = re.search(r"rotate\((-?[\d.]+)", attributes)
    moved = re.search(r"translate\(([\d.]+) ([\d.]+)\)", attributes)
    x = moved[1] if moved else re.search(r'\bx="([\d.]+)"', attributes)[1]
    y = moved[2] if moved else re.search(r'\by="([\d.]+)"', attributes)[1]
    return float(x), float(y), bool(turned) and float(turned[1]) == -90


def outside(svg):
    """Texts of a drawing that leave its view box."""
    _, _, width, height = map(float, re.search(r'viewBox="([^"]*)"', svg)[1].split())
    return [
        text
        for text, left, top, right, bottom in text_boxes(svg)
        if left < -1 or top < -1 or right > width + 1 or bottom > height + 1
    ]


def hosts_named(data, name):
    """The run with one timeline whose hosts are called *name*."""
    record, job = data.timelines[0]
    attempts = tuple(dataclasses.replace(a, host=name + a.host) for a in job.attempts)
    cells = {c: (spec, name + text) for c, (spec, text) in data.cells.items()}
    job = dataclasses.replace(job, attempts=attempts)
    return dataclasses.replace(data, timelines=[(record, job)], cells=cells)


class TestDrawings:
    def test_text_lies_inside_the_view_box(self, figures):
        """
        No label is cut off.
        """
        assert [outside(f.svg) for f in figures] == [[]] * len(figures)

    def test_a_cut_label_would_be_noticed(self, figures):
        """
        The check above finds the labels that a smaller view box cuts off.
        """
        svg = re.sub(r'viewBox="0 0 [\d.]+', 'viewBox="0 0 150', figures[0].svg)

        assert "predicted job time, s" in outside(svg)

    @pytest.mark.parametrize("name", ["x" * 300, "$\\alpha$", "\u4f60\u597d", "a b\n" * 40, "<&>"])
    def test_any_name_fits(self, name, whole):
        """
        Names of any length and script are cut, never the drawing.
        """
        data = hosts_named(whole, name)
        with drawing():
            drawn = [*errors_per_cell(data), timeline(data, 0, *data.timelines[0])]

        assert [outside(f.svg) for f in drawn] == [[]] * len(drawn)

    def test_stand_in_colours_are_all_replaced(self, figures):
        """
        Drawings follow the page: no stand-in colour is left, and black is the page's ink.
        """
        text = "".join(f.svg for f in figures)

        assert re.findall(r"#0102[0-9a-f]{2}", text) == []
        assert "currentColor" in text

    def test_every_figure_has_its_data(self, figures):
        """
        What is drawn can be read as a table.
        """
        assert all(f.data.rows for f in figures)

    def test_users_settings_change_nothing(self, whole):
        """
        A plot style of the user's own has no say in the report.
        """
        import matplotlib as mpl

        with drawing():
            plain = speed_over_time(whole).svg
        with mpl.rc_context({"font.size": 20, "axes.grid": True}), drawing():
            styled = speed_over_time(whole).svg

        assert styled == plain

    def test_tips_are_text(self):
        """
        What the pointer shows is escaped.
        """
        with drawing():
            canvas = Canvas("t", "<b>", 2, 2)
            (line,) = canvas.figure.add_subplot().plot([1], [1], "o")
            canvas.tip(line, "<script> & \x1b")
            svg = canvas.svg()

        assert "<title>&lt;script&gt; &amp; \\x1b</title>" in svg
        assert '<title id="t-title">&lt;b&gt;</title>' in svg


class TestTimeline:
    def test_shows_each_attempt_and_the_events(self, whole, figures):
        """
        Failed attempts, submission, start of the application master and end are all visible.
        """
        _, job = whole.timelines[0]
        svg = next(f.svg for f in figures if "timeline0-title" in f.svg)

        assert all(f"<title>{a.attempt_id} on {a.host}" in svg for a in job.attempts)
        assert "url(#timeline0-failed)" in svg
        assert all(
            word in svg for word in (">submitted<", ">application master started", ">finished, ")
        )

    @given(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 50), st.integers(1, 20)), max_size=30)
    )
    def test_attempts_in_one_lane_never_overlap(self, drawn):
        """
        One slot runs one attempt at a time.
        """
        attempts = [
            TaskAttempt(f"a{n}", "t", "map", "succeeded", start, start + length, f"h{host}")
            for n, (host, start, length) in enumerate(drawn)
        ]
        lanes = assign_lanes(attempts)

        for a in attempts:
            for b in attempts:
                if a is not b and lanes[a.attempt_id] == lanes[b.attempt_id]:
                    assert a.finish_s <= b.start_s or b.finish_s <= a.start_s

    def test_lanes_are_no_more_than_ran_at_once(self):
        """
        Attempts one after another share a lane.
        """
        attempts = [TaskAttempt(f"a{n}", "t", "map", "succeeded", n, n + 1, "h") for n in range(5)]

        assert set(assign_lanes(attempts).values()) == {("h", "map", 1)}

    def test_a_recorded_task_shows_its_threads(self, whole, figures):
        """
        Spills lie below the record loop that they overlap, and where it was blocked is seen.
        """
        _, job = whole.timelines[0]
        svg = next(f.svg for f in figures if "timeline0-title" in f.svg)
        (attempt, *_) = job.succeeded("map")
        own = re.findall(rf"<title>{attempt.attempt_id} on \w+: ([^<]*?) [\d.]+ s<", svg)

        assert own == [
            "launch of the container", "start of the JVM", "initialisation",
            "record loop", "blocked: buffer full", "record loop", "blocked: buffer full",
            "record loop", "waiting for the spill thread", "spill: sort", "spill: write",
            "merge of the spills", "end",
            "spill: sort", "spill: write", "spill: sort", "spill: write",
        ]  # fmt: skip
        assert "record loop" not in next(f.svg for f in figures if "timeline1-title" in f.svg)

    @pytest.mark.parametrize("state", ["failed", "killed"])
    def test_a_task_that_was_lost_shows_its_inside_and_its_state(
        self, whole, traced, recorded, state
    ):
        """
        Its parts as far as they were recorded, then what became of it; no mean counts it.
        """
        record, job = whole.timelines[0]
        (gone,) = [a for a in job.attempts if a.state == "failed"]
        gone = dataclasses.replace(gone, state=state)
        others = tuple(a for a in job.attempts if a.attempt_id != gone.attempt_id)
        job = dataclasses.replace(job, attempts=(*others, gone))
        early = dataclasses.replace(gone, finish_s=gone.start_s + 0.6 * gone.duration_s)
        inside = job_inside(job, [], [recorded(early)])
        data = dataclasses.replace(
            whole, timelines=[(record, job)], inside={record.trial.id: inside}
        )
        with drawing():
            lanes = timeline(data, 0, record, job)
            threads = task_tracks(0, job, "wordcount", inside)

        own = re.findall(rf"<title>{gone.attempt_id} on \w+: ([^<]*?) [\d.]+ s<", lanes.svg)
        assert own[0] == f"{state} attempt after"
        assert "record loop" in own
        assert f"url(#timeline0-{state})" in lanes.svg
        assert f"a map that {'was ' if state == 'killed' else ''}{state}: " in threads.svg
        assert inside.parts == ()

    def test_a_large_job_stays_small(self, whole, traced, known):
        """
        Two thousand tasks, all recorded: some slots are drawn, two tasks of a kind in detail.
        """
        record, _ = whole.timelines[0]
        job = traced(maps=2_100)
        data = dataclasses.replace(
            whole, timelines=[(record, job)], inside={record.trial.id: known(job, told=False)}
        )
        with drawing():
            figures = [timeline(data, 0, record, job), *of_tasks(data)]

        assert [len(f.svg) < 1_500_000 for f in figures] == [True] * 3
        assert "attempts share a bar" in figures[0].caption
        assert "over 2100 map tasks (recorded)" in figures[2].caption

    def test_phase_without_an_end_runs_into_the_next(self):
        """
        What history does not say is not drawn.
        """
        a = TaskAttempt("a", "t", "reduce", "succeeded", 0.0, 9.0, "h", sort_finish_s=5.0)

        assert list(phases(a)) == [("sort", 0.0, 5.0), ("reduce", 5.0, 9.0)]


class TestNumbers:
    def test_phase_means_keep_to_common_cells(self, whole):
        """
        A cell that one model cannot answer is in no bar.
        """
        lost = next(s.cell for s in whole.book.scores if s.model == "whatif")
        kept = tuple(s for s in whole.book.scores if (s.model, s.cell) != ("whatif", lost))
        data = dataclasses.replace(whole, book=whole.book.model_copy(update={"scores": kept}))

        assert (phase_means(whole, "wordcount")[1], phase_means(data, "wordcount")[1]) == (5, 4)

    def test_rates_are_relative_to_the_profile(self, whole):
        """
        Speed is a share of the profile's reference speed.
        """
        trial = whole.trials[0]
        rate = whole.machine[trial.trial.id]["rate"]

        assert relative_rates(whole)[trial.trial.id] == pytest.approx(rate / 2.3e3)

    def test_rates_without_a_profile_are_relative_to_their_median(self, whole):
        """
        Where no reference speed is known, the usual one stands in.
        """
        data = dataclasses.replace(whole, profiles={})

        assert sorted(relative_rates(data).values())[26:28] == pytest.approx([1, 1], rel=0.01)

    def test_many_cells_show_the_worst(self, whole):
        """
        A drawing holds at most forty cells, and says so; its table holds all.
        """
        spec, _ = next(iter(whole.cells.values()))
        some = next(s for s in whole.book.scores if (s.quantity, s.speed) == ("job_s", "raw"))
        rows = tuple(
            some.model_copy(update={"cell": f"c{n}", "relative_error": n / 100}) for n in range(60)
        )
        book = whole.book.model_copy(update={"scores": rows})
        cells = {f"c{n}": (spec, f"cell {n}") for n in range(60)}
        with drawing():
            (figure,) = errors_per_cell(dataclasses.replace(whole, book=book, cells=cells))

        assert "The 40 cells with the largest errors" in figure.caption
        assert ">cell 59  (" in figure.svg
        assert ">cell 19  (" not in figure.svg
        assert len(figure.data.rows) == 60


def luminance(colour):
    """Relative luminance of a colour, as WCAG 2 defines it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    """Contrast of two colours, from 1 to 21."""
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def themes():
    """Custom properties of the light and of the dark theme."""
    css = files("harness.reports").joinpath("templates/report.css").read_text("utf-8")
    blocks = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    light, dark = (dict(re.findall(r"--([\w-]+): (#\w+);", block)) for block in blocks[:2])
    return {"light": light, "dark": {**light, **dark}}


@pytest.mark.parametrize("theme", ["light", "dark"])
class TestContrast:
    def test_marks(self, theme):
        """
        Marks stand out from the page by 3:1.
        """
        colours = themes()[theme]
        names = [f"series-{n}" for n in range(1, len(SERIES) + 1)]
        names += [n.replace("_", "-") for n in PHASES if n not in {"failed", "killed"}]
        names += ["start", "wait"]
        faint = [n for n in [*names, "bad"] if contrast(colours[n], colours["surface"]) < 3]

        assert faint == []

    def test_text(self, theme):
        """
        Text stands out by 4.5:1 from whatever lies behind it.
        """
        colours = themes()[theme]
        shades = ["surface", "soft", "mark", "band"]
        shades += [f"{side}{n}" for side in ("low", "high") for n in (1, 2, 3)]
        faint = [s for s in shades if contrast(colours["ink"], colours[s]) < 4.5]
        faint += [n for n in ("muted", "link") if contrast(colours[n], colours["surface"]) < 4.5]

        assert faint == []
