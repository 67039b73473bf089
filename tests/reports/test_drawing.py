"""
Drawings: what they hold, and that it can be seen.
"""

import dataclasses
import html
import re
import warnings

from importlib.resources import files

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.documents.document import Figure, table
from harness.base.documents.drawing import (
    SERIES,
    TEXTURES,
    VARIABLES,
    Canvas,
    draw_alone,
    drawing,
    drawn_file,
    render_figure,
)
from harness.base.records.trace import TaskAttempt
from harness.core.evaluate.observations import job_task_times
from harness.core.reports.sections import cells, task_times
from harness.core.reports.sections.machine import speed_over_time
from harness.core.reports.sections.phases import phase_means
from harness.core.reports.sections.timeline import assign_lanes, phases, timeline


def svg_of(figure):
    """A figure drawn."""
    with drawing():
        return render_figure(figure)


def figures_in(*sections):
    """Figures of some sections."""
    return [f for s in sections for b in s.shown() if b.kind == "figures" for f in b.figures]


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


@pytest.mark.process
class TestDrawings:
    def test_text_lies_inside_the_view_box(self, drawn):
        """
        No label is cut off.
        """
        assert {name: outside(svg) for name, svg in drawn.items() if outside(svg)} == {}

    def test_a_cut_label_would_be_noticed(self, drawn):
        """
        The check above finds the labels that a smaller view box cuts off.
        """
        svg = re.sub(r'viewBox="0 0 [\d.]+', 'viewBox="0 0 150', drawn["scatter0"])

        assert "predicted job time, s" in outside(svg)

    @pytest.mark.parametrize("name", ["x" * 300, "$\\alpha$", "\u4f60\u597d", "a b\n" * 40, "<&>"])
    def test_any_name_fits(self, name, whole):
        """
        Names of any length and script are cut, never the drawing.
        """
        data = hosts_named(whole, name)
        figures = [cells.errors_figure(data), timeline(data, 0, *data.timelines[0])]

        assert [outside(svg_of(figure)) for figure in figures] == [[]] * len(figures)

    def test_colours_are_the_page_s(self, drawn):
        """
        Drawings follow the theme: every colour is a variable, and black is the page's ink.
        """
        text = "".join(drawn.values())

        assert re.findall(r"#[0-9a-fA-F]{6}", text) == []
        assert "currentColor" in text

    def test_users_settings_change_nothing(self, whole):
        """
        A plot style of the user's own has no say in the report.
        """
        import matplotlib as mpl

        plain = svg_of(speed_over_time(whole))
        with mpl.rc_context({"font.size": 20, "axes.grid": True}):
            styled = svg_of(speed_over_time(whole))

        assert styled == plain

    def test_tips_are_text(self):
        """
        What the pointer shows is escaped.
        """

        def draw(canvas):
            (line,) = canvas.figure.add_subplot().plot([1], [1], "o")
            canvas.mark(line, "<script> & \x1b")

        svg = svg_of(Figure("t", "<b>", 2, 2, "", table("", (), "", []), draw))

        assert "<title>&lt;script&gt; &amp; \\x1b</title>" in svg
        assert '<title id="t-title">&lt;b&gt;</title>' in svg


@pytest.mark.process
class TestAlone:
    def test_all_of_it_lies_on_the_paper(self, document):
        """
        Of each figure at the width of a column or a page: titles, legends and labels.
        """
        offenders = []
        for name, figure in document.figures().items():
            drawn = draw_alone(figure)
            drawn.draw_without_rendering()
            for artist in (*drawn.texts, *drawn.legends, *drawn.axes):
                box = artist.get_tightbbox()
                left, right, top = box.x0 / drawn.dpi, box.x1 / drawn.dpi, box.y1 / drawn.dpi
                if left < -0.02 or right > drawn.get_figwidth() + 0.02:
                    offenders.append((name, "wide", left, right, drawn.get_figwidth()))
                if top > drawn.get_figheight() + 0.02:
                    offenders.append((name, "high", top, drawn.get_figheight()))

        assert offenders == []

    def test_says_what_it_is(self, document):
        """
        Its title stands above it, whatever the words around it in the report said.
        """
        untitled = []
        for name, figure in document.figures().items():
            drawn = draw_alone(figure)
            texts = [legend.get_title().get_text() for legend in drawn.legends]
            texts += [drawn.get_suptitle()]
            if figure.title not in [" ".join(text.split()) for text in texts]:
                untitled.append((name, texts))

        assert untitled == []

    def test_bars_are_told_apart_without_a_page(self, document):
        """
        By colours and hatches: no two parts that stand side by side share both.
        """
        drawn = draw_alone(document.figures()["timeline0"])
        bars = drawn.findobj(lambda each: str(each.get_gid()).startswith("marked"))

        from matplotlib.colors import to_hex

        looks = {(to_hex(bar.get_facecolor()), bar.get_hatch() or "") for bar in bars}
        parts = ("launch", "jvm", "init", "map_loop", "blocked", "spill_sort", "merge", "end")
        assert looks >= {TEXTURES[part] for part in parts}
        assert len({TEXTURES[part] for part in parts}) == len(parts)


def test_every_figure_has_its_data(document):
    """
    What is drawn can be read as a table.
    """
    figures = document.figures()

    assert len(figures) == 13
    assert next(iter(figures)) == "errors"
    assert [name for name, figure in figures.items() if not figure.data.rows] == []


class TestTimeline:
    @pytest.mark.process
    def test_shows_each_attempt_and_the_events(self, whole, drawn):
        """
        Failed attempts, submission, start of the application master and end are all visible.
        """
        _, job = whole.timelines[0]
        svg = drawn["timeline0"]

        assert all(f"<title>{a.attempt_id} on {a.host}" in svg for a in job.attempts)
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

    @pytest.mark.process
    def test_a_recorded_task_shows_its_threads(self, whole, drawn):
        """
        Spills lie below the record loop that they overlap, and where it was blocked is seen.
        """
        _, job = whole.timelines[0]
        svg = drawn["timeline0"]
        (attempt, *_) = job.succeeded("map")
        own = re.findall(rf"<title>{attempt.attempt_id} on \w+: ([^<]*?) [\d.]+ s<", svg)

        assert own == [
            "launch of the container", "start of the JVM", "initialisation",
            "record loop", "blocked: buffer full", "record loop", "blocked: buffer full",
            "record loop", "waiting for the spill thread", "spill: sort", "spill: write",
            "merge of the spills", "end",
            "spill: sort", "spill: write", "spill: sort", "spill: write",
        ]  # fmt: skip
        assert "record loop" not in drawn["timeline1"]

    @pytest.mark.process
    @pytest.mark.parametrize("state", ["failed", "killed"])
    def test_a_task_that_ended_badly_shows_its_parts_and_its_state(
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
        times = job_task_times(job, [], [recorded(early)])
        data = dataclasses.replace(
            whole, timelines=[(record, job)], task_times={record.trial.id: times}
        )
        lanes = svg_of(timeline(data, 0, record, job))

        own = re.findall(rf"<title>{gone.attempt_id} on \w+: ([^<]*?) [\d.]+ s<", lanes)
        assert own[0] == f"{state} attempt after"
        assert "record loop" in own
        assert times.parts == ()

    @pytest.mark.process
    def test_a_large_job_stays_small(self, whole, traced, known):
        """
        Two thousand tasks, all recorded: some slots are drawn.
        """
        record, _ = whole.timelines[0]
        job = traced(maps=2_100)
        data = dataclasses.replace(
            whole,
            timelines=[(record, job)],
            task_times={record.trial.id: known(job, from_logs=False)},
        )
        figures = [
            timeline(data, 0, record, job),
            *figures_in(task_times.section(data)),
        ]

        assert [len(svg_of(figure)) < 1_500_000 for figure in figures] == [True] * 2
        assert "attempts share a bar" in figures[0].caption
        assert "over 2100 map tasks (recorded)" in figures[1].caption

    def test_phase_without_an_end_runs_into_the_next(self):
        """
        What history does not say is not drawn.
        """
        a = TaskAttempt("a", "t", "reduce", "succeeded", 0.0, 9.0, "h", sort_finish_s=5.0)

        assert list(phases(a)) == [(0.0, 5.0, "sort"), (5.0, 9.0, "reduce")]


class TestNumbers:
    def test_phase_means_keep_to_common_cells(self, whole):
        """
        A cell that one model cannot answer is in no bar.
        """
        cell = next(s.cell for s in whole.score_book.scores if s.model == "whatif")
        kept = tuple(s for s in whole.score_book.scores if (s.model, s.cell) != ("whatif", cell))
        data = dataclasses.replace(
            whole, score_book=whole.score_book.model_copy(update={"scores": kept})
        )

        assert (phase_means(whole, "wordcount")[1], phase_means(data, "wordcount")[1]) == (5, 4)

    def test_rates_are_relative_to_the_profile(self, whole):
        """
        Speed is a share of the profile's reference speed.
        """
        trial = whole.trials[0]
        rate = whole.rates[trial.trial.id]

        assert whole.relative_rates[trial.trial.id] == pytest.approx(rate / 2.3e3)

    def test_rates_without_a_profile_are_relative_to_their_median(self, whole):
        """
        Where no reference speed is known, the usual one stands in.
        """
        data = dataclasses.replace(whole, profiles={})

        assert sorted(data.relative_rates.values())[26:28] == pytest.approx([1, 1], rel=0.01)

    @pytest.mark.process
    def test_many_cells_are_named_by_their_workload(self, whole):
        """
        There is no room for each; a large error does not hide the small ones.
        """
        spec, _ = next(iter(whole.cells.values()))
        some = next(s for s in whole.score_book.scores if (s.quantity, s.speed) == ("job_s", "raw"))
        rows = tuple(
            some.model_copy(update={"cell": f"c{n}", "signed_error": n / 20}) for n in range(60)
        )
        score_book = whole.score_book.model_copy(update={"scores": rows})
        known = {f"c{n}": (spec, f"cell {n}") for n in range(60)}
        data = dataclasses.replace(whole, score_book=score_book, cells=known)
        figure = cells.errors_figure(data)
        svg = svg_of(figure)

        assert ">cell 59<" not in svg
        assert ">wordcount<" in svg
        assert svg.count("<title>whatif, cell ") == len(figure.data.rows) == 60


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
    css = files("harness.base.documents").joinpath("templates/report.css").read_text("utf-8")
    blocks = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    light, dark = (dict(re.findall(r"--([\w-]+): (#\w+);", block)) for block in blocks[:2])
    return {"light": light, "dark": {**light, **dark}}


def test_colours_are_those_of_the_style_sheet():
    """
    A drawing has the colours of the light theme, and names each by its variable.
    """
    light = themes()["light"]
    named = {"currentColor": light["ink"], **{f"var(--{n})": c for n, c in light.items()}}

    assert {c: named[v] for c, v in VARIABLES.items()} == {c: c for c in VARIABLES}


@pytest.mark.parametrize("theme", ["light", "dark"])
class TestContrast:
    def test_marks(self, theme):
        """
        Marks stand out from the page by 3:1.
        """
        colours = themes()[theme]
        names = [f"series-{n}" for n in range(1, len(SERIES) + 1)]
        names += ["merging", "copying", "starting"]
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


@pytest.mark.process
@pytest.mark.parametrize("ending", ["pdf", "svg", "png"])
def test_a_figure_on_a_full_disk(tmp_path, ending):
    """
    It is told as what it is, in each format.
    """
    path = tmp_path / f"figure.{ending}"
    path.symlink_to("/dev/full")
    with drawing():
        canvas = Canvas(2, 2)
        with pytest.raises(OSError, match="No space left on device"):
            path.write_bytes(drawn_file(canvas.figure, path.suffix))
