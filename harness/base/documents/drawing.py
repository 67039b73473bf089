"""
Figures as inline SVG: accessible, the same bytes every time, in the page's own colours.

`render_figure` replaces the colours of the light theme, in which figures are drawn, by custom
properties of the page's style sheet, so that one drawing serves both themes.
"""

from __future__ import annotations

import io
import logging
import re
import textwrap
import warnings

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree as ET

from harness.base.documents.document import Figure
from harness.base.documents.wording import number, one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

WIDE = 9.4  # inches: the width of a page of HTML
COLUMN = 3.5
PAGE = 7.16  # of a paper in two columns
INK = "#1b1f24"
MUTED = "#56606c"
GRID = "#dde2e8"
SURFACE = "#ffffff"
_LEGEND_ENTRY = 2.3  # inches: the longest one
BAND = "#ccd5e0"
BAD = "#b3261e"
MERGING = "#5288c7"
COPYING = "#bd5d0c"
STARTING = "#6b7683"  # of parts of tasks
SERIES = (
    "#1f5fa8",
    "#b4500a",
    "#0b7a69",
    "#7a479f",
    "#b02f62",
    "#67660a",
    "#46525f",
    "#8a3a2a",
)
VARIABLES = {
    INK: "currentColor",
    MUTED: "var(--muted)",
    GRID: "var(--rule)",
    SURFACE: "var(--surface)",
    BAND: "var(--band)",
    BAD: "var(--bad)",
    MERGING: "var(--merging)",
    COPYING: "var(--copying)",
    STARTING: "var(--starting)",
    **{colour: f"var(--series-{number})" for number, colour in enumerate(SERIES, start=1)},
}
_RISING = "////"
_FALLING = r"\\\\"
_UPRIGHT = "|||"
_LEVEL = "---"
_CROSSED = "xx"
# Colour of phases and parts of tasks, with the hatch of each: grey before and after the work, the
# colour of its phase within it, one for all waiting; what only logs show, a sum, is crossed.
_HATCHES: dict[str, dict[str, str]] = {
    SERIES[0]: {"map": "", "read": _RISING, "map_function": "", "collect": _UPRIGHT,
                "map_loop": "", "map_loop_blocked": _CROSSED},
    MERGING: {"map_tail": _RISING, "merge": _LEVEL},
    COPYING: {"shuffle": _UPRIGHT, "copy": ""},
    SERIES[3]: {"sort": "xxxx", "spill_sort": "", "spill_combine": _RISING,
                "spill_write": _UPRIGHT, "spill": _CROSSED, "memory_merge": _LEVEL,
                "disk_merge": _FALLING, "last_merges": _LEVEL},
    SERIES[2]: {"reduce": _FALLING, "read_merge": _RISING, "reduce_function": "",
                "output": _UPRIGHT, "reduce_loop": ""},
    SERIES[4]: {"blocked": "", "wait_spill": _RISING, "wait": _UPRIGHT, "stall": _CROSSED},
    STARTING: {"launch": _RISING, "jvm": "", "init": _UPRIGHT, "start": _CROSSED,
               "commit": _LEVEL, "end": _FALLING},
    SURFACE: {"failed": "xxxx", "killed": _RISING},
    BAND: {"other": ""},
}  # fmt: skip
TEXTURES = dict[str, tuple[str, str]]()
for _colour, _hatches in _HATCHES.items():
    TEXTURES |= {texture: (_colour, hatch) for texture, hatch in _hatches.items()}
_EDGES = {"failed": BAD, "killed": BAD, "other": MUTED}
_SHAPES = ("o", "s", "^", "D", "v", "P", "X", "p")
_FILLS = ("full", "none", "left", "top", "right", "bottom")
_SETTINGS: Any = {
    "svg": {"fonttype": "none", "hashsalt": "mapreduce-harness"},
    "font": {"size": 9.0},
    "text": {"color": INK, "parse_math": False},
    "axes": {"labelcolor": INK, "edgecolor": MUTED, "facecolor": "none", "linewidth": 0.8,
             "titlesize": 9.5, "titleweight": "bold", "titlelocation": "left", "axisbelow": True},
    "axes.spines": {"top": False, "right": False},
    "axes.formatter": {"useoffset": False},
    "xtick": {"color": MUTED, "labelcolor": INK},
    "ytick": {"color": MUTED, "labelcolor": INK},
    "grid": {"color": GRID, "linewidth": 0.7},
    "figure": {"facecolor": "none"},
    "figure.constrained_layout": {"h_pad": 0.06, "w_pad": 0.06},
    "legend": {"frameon": False, "fontsize": 8.5, "handletextpad": 0.5, "handleheight": 1.0},
}  # fmt: skip
_REFERENCE = re.compile(r"(?<=url\(#)[^)]+|(?<=^#).+")
_DECIMALS = re.compile(r"\d+\.\d{3,}")


@contextmanager
def drawing() -> Iterator[None]:
    """Our own plot settings, whatever the user's are; glyphs are the browser's business."""
    # Where the user's home cannot be written it logs so; nothing that we draw depends on that.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        mpl.rcdefaults()
        for group, settings in _SETTINGS.items():
            mpl.rc(group, **settings)
        yield


class Stack(NamedTuple):
    """A stacked bar: its group and name; a piece is a texture, its seconds and a tooltip."""

    group: str
    name: str
    pieces: Sequence[tuple[str, float, str]]


class Canvas:
    """A matplotlib figure; artists with a tooltip are known by their group id."""

    def __init__(self, width: float, height: float) -> None:
        from matplotlib.figure import Figure as Drawing

        self.figure = Drawing(figsize=(width, height), layout="constrained")
        self.tooltips: dict[str, Sequence[str]] = {}
        self.textures = set[str]()  # that were drawn

    def file(self, ending: str) -> bytes:
        """A file of the figure alone, for a page on white, in the format of an *ending*."""
        return drawn_file(self.figure, ending, dpi=200, facecolor=SURFACE)

    def mark(self, artist: Any, *tooltips: str) -> None:
        """Show its tooltip while the pointer rests on *artist*; points drawn at once have each."""
        group = f"marked{len(self.tooltips)}"
        artist.set_gid(group)
        self.tooltips[group] = [one_line(tooltip) for tooltip in tooltips if tooltip]

    def points(
        self, plot_axes: Axes, points: Sequence[tuple[float, float, str]], **style: Any
    ) -> None:
        """Draw points in one style, each with its tooltip; they may be none."""
        if points:
            *places, tooltips = zip(*points, strict=True)
            (artist,) = plot_axes.plot(*places, **style)
            self.mark(artist, *tooltips)

    def bar(
        self,
        plot_axes: Axes,
        row: float,
        times: tuple[float, float],
        texture: str,
        *,
        tooltip: str = "",
        height: float = 0.78,
        edge: float = 0.8,
    ) -> None:
        """Draw a horizontal bar of the named texture; *row* is its middle, *edge* its outline."""
        from matplotlib.patches import Rectangle

        start, end = times
        look = _look(texture)
        bar = Rectangle((start, row - height / 2), end - start, height, linewidth=edge, **look)
        plot_axes.add_patch(bar)
        self.textures.add(texture)
        self.mark(bar, tooltip)

    def texture_legend(self, names: Mapping[str, str], columns: int = 8) -> None:
        """Name the textures that were drawn, above the figure."""
        from matplotlib.patches import Patch

        handles = [
            Patch(label=name, **_look(texture))
            for texture, name in names.items()
            if texture in self.textures
        ]
        if handles:
            self.figure.legend(
                handles=handles,
                loc="outside upper left",
                ncols=min(columns, len(handles), int(self.figure.get_figwidth() / _LEGEND_ENTRY)),
            )


def _look(texture: str) -> dict[str, Any]:
    colour, hatch = TEXTURES[texture]
    return {"facecolor": colour, "hatch": hatch, "edgecolor": _EDGES.get(texture, SURFACE)}


def drawn_file(figure: Drawing, ending: str, **options: Any) -> bytes:
    """
    A file of *figure* of matplotlib, in the format of an *ending*: ``.pdf``.

    It is drawn in memory, as of a full disk some formats make an error of their own.
    """
    data = io.BytesIO()
    figure.savefig(data, format=ending.removeprefix("."), **options)
    return data.getvalue()


def render_figure(figure: Figure) -> str:
    """Draw it as an SVG element that can stand in an HTML page beside others."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    canvas = Canvas(figure.width, figure.height)
    figure.draw(canvas)
    raw = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    # Not `savefig`, which draws everything twice.
    FigureCanvasSVG(canvas.figure).print_svg(raw, metadata=nothing)  # type: ignore[no-untyped-call]
    root = ET.fromstring(raw.getvalue())  # noqa: S314 - our own drawing
    root.remove(root[0])  # a style sheet, which would be the whole page's
    elements = list(root.iter())
    referenced = referenced_ids(elements)
    titles = list[tuple[ET.Element, str]]()
    for element in elements:
        tooltips = canvas.tooltips.get(element.get("id", ""), ())
        make_inline(element, figure.name, referenced)
        titles += titled_elements(element, tooltips)
    titles.append((root, one_line(figure.title)))
    for element, text in titles:
        title = ET.Element("title")
        title.text = text
        element.insert(0, title)
    root[0].set("id", f"{figure.name}-title")
    root.attrib = {
        "class": "plot",
        "role": "img",
        "aria-labelledby": f"{figure.name}-title",
        "viewBox": root.attrib["viewBox"],
        "width": f"{figure.width * 96:.0f}",
    }
    return ET.tostring(root, encoding="unicode")


def referenced_ids(elements: Sequence[ET.Element]) -> set[str]:
    """Ids that other elements refer to: all others are left out."""
    names = set[str]()
    for element in elements:
        for attribute in element.attrib.values():
            if "#" in attribute:
                names.update(_REFERENCE.findall(attribute))
    return names


def make_inline(element: ET.Element, prefix: str, referenced: set[str]) -> None:
    """Take its namespace, its white space and the page's own fonts off *element* and its ids."""
    element.tag = element.tag.rpartition("}")[2]
    element.tail = None
    element.text = (element.text or "").strip() or None
    attributes = element.attrib
    element.attrib = {}
    for name, attribute in attributes.items():
        if name == "style":
            element.set(name, inline_style(attribute, prefix, is_used=element.tag == "use"))
        elif name != "id":
            element.set(name.rpartition("}")[2], inline_attribute(attribute, prefix))
        elif attribute in referenced:
            element.set(name, f"{prefix}-{attribute}")


def inline_style(style: str, prefix: str, *, is_used: bool) -> str:
    """A style in the page's colours; of what *is used* elsewhere the filling alone."""
    declared = dict(part.split(": ", 1) for part in style.split("; "))
    declared.pop("font-family", None)
    if is_used:  # what is drawn there has its line from its definition
        declared = {key: value for key, value in declared.items() if key == "fill"}
    kept = (f"{key}: {VARIABLES.get(value, value)}" for key, value in declared.items())
    return _REFERENCE.sub(rf"{prefix}-\g<0>", "; ".join(kept))


def inline_attribute(attribute: str, prefix: str) -> str:
    """An attribute in one line, with the page's colours, ids of its own and two decimals."""
    plain = " ".join(attribute.split())
    plain = VARIABLES.get(plain, plain)
    if "#" in plain:
        plain = _REFERENCE.sub(rf"{prefix}-\g<0>", plain)
    return _DECIMALS.sub(lambda digits: f"{float(digits[0]):.2f}", plain)


def titled_elements(
    element: ET.Element, tooltips: Sequence[str]
) -> Iterator[tuple[ET.Element, str]]:
    """*element* with its tooltip; of points that were drawn at once each with its own."""
    if len(tooltips) > 1:
        # Half-filled points are drawn twice, one half of all after the other.
        points = (inner for inner in element.iter() if inner.tag.endswith("use"))
        yield from zip(points, cycle(tooltips), strict=False)
    else:
        yield from ((element, tooltip) for tooltip in tooltips)


def draw_alone(figure: Figure, width: float | None = None) -> Drawing:
    """
    Draw it as a matplotlib figure that needs no page, with its title.

    *width* is in inches; without one a small figure fits one column of two, a wide one both.
    """
    from matplotlib.font_manager import FontProperties

    is_small = figure.width < PAGE
    width = width or (COLUMN if is_small else PAGE)
    height = figure.height * width / figure.width if is_small else figure.height
    with drawing():
        canvas = Canvas(width, height + 0.4)
        figure.draw(canvas)
        title = textwrap.fill(one_line(figure.title), int(13 * width))
        font = FontProperties(weight="bold", size=9.5)
        if is_small or not canvas.figure.legends:
            canvas.figure.suptitle(title, x=0.02, ha="left", fontproperties=font)
        for legend in [] if is_small else canvas.figure.legends[:1]:  # which is above the figure
            legend.set_title(title, font)
            legend.set_alignment("left")
    return canvas.figure


def marker(workload: int, model: int) -> dict[str, Any]:
    """How a point is drawn: its shape shows the workload; its filling and colour the model."""
    colour = SERIES[model % len(SERIES)]
    fill = _FILLS[model % len(_FILLS)]
    return {
        "marker": _SHAPES[workload % len(_SHAPES)],
        "fillstyle": "full" if fill == "none" else fill,
        "color": colour,
        "markerfacecolor": SURFACE if fill == "none" else colour,
        "markerfacecoloralt": SURFACE,
        "markeredgecolor": colour,
        "markeredgewidth": 1.3,
        "markersize": 6.5,
        "linestyle": "none",
    }


def grid(plot_axes: Axes, which: str) -> None:
    """Thin lines at the major ticks of one axis or both."""
    plot_axes.grid(visible=True, axis=which)  # type: ignore[arg-type]  # a literal in the stubs
    plot_axes.tick_params(length=0)


def row_axes(
    plot_axes: Axes, names: Sequence[tuple[float, str]], ends: tuple[float, float], label: str
) -> None:
    """Horizontal bars in named rows, the first on top, over an axis between *ends*."""
    plot_axes.set_yticks([row for row, _ in names], [name for _, name in names])
    plot_axes.set(ylim=(names[-1][0] + 0.6, -0.6), xlim=ends, xlabel=label)
    plot_axes.xaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
    plot_axes.spines["left"].set_color(INK)
    grid(plot_axes, "x")


def stacked(
    stacks: Sequence[Stack], label: str, legend: Mapping[str, str]
) -> tuple[float, Callable[[Canvas], None]]:
    """
    Height and drawing of stacked horizontal bars, with their sums; groups stand apart.

    Pieces below 0 are stacked to the left.  *label* is that of the axis, *legend* names textures.
    """

    def draw(canvas: Canvas) -> None:
        plot_axes = canvas.figure.add_subplot()
        names = []
        row = -1.0
        group = stacks[0].group
        left_s = 0.0
        right_s = 0.0
        for stack in stacks:
            row += 1.5 if stack.group != group else 1.0
            group = stack.group
            ends_s = [0.0, 0.0]
            for texture, length_s, tooltip in stack.pieces:
                side = int(length_s > 0)
                times_s = (ends_s[side], ends_s[side] + length_s)
                canvas.bar(plot_axes, row, times_s, texture, tooltip=tooltip, edge=0.5)
                ends_s[side] += length_s
            plot_axes.annotate(
                number(sum(ends_s)),
                (ends_s[1], row),
                (4, 0),
                va="center",
                textcoords="offset points",
                fontsize=8.5,
            )
            names.append((row, stack.name))
            left_s = min(left_s, ends_s[0])
            right_s = max(right_s, ends_s[1])
        room_s = 0.09 * (right_s - left_s) or 1.0
        row_axes(plot_axes, names, (1.03 * left_s, right_s + room_s), label)
        if left_s:
            plot_axes.axvline(0, color=INK, linewidth=0.9)
        canvas.texture_legend(legend, columns=4)

    return 1.35 + 0.32 * len(stacks) + 0.2 * len({stack.group for stack in stacks}), draw
