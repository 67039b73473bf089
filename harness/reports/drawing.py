"""
Figures as inline SVG: accessible, the same bytes every time, in the page's own colours.

Figures are drawn in the colours of the light theme; `render_figure` names them by the custom
properties of the page's style sheet instead, so that one drawing serves the light and the dark
theme.  Bars of tasks differ in texture as well as in colour; the page defines each texture once.
"""

from __future__ import annotations

import io
import logging
import re
import warnings

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree as ET

from harness.reports.document import Figure
from harness.reports.wording import number, one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE = 9.4  # inches: the width of a page
INK, MUTED, GRID, SURFACE = "#1b1f24", "#56606c", "#dde2e8", "#ffffff"
BAND, BAD = "#ccd5e0", "#b3261e"
SERIES = (
    "#1f5fa8", "#b4500a", "#0b7a69", "#7a479f", "#b02f62", "#67660a", "#46525f", "#8a3a2a",
)  # fmt: skip
VARIABLES = {
    INK: "currentColor",
    MUTED: "var(--muted)",
    GRID: "var(--rule)",
    SURFACE: "var(--surface)",
    BAND: "var(--band)",
    BAD: "var(--bad)",
    **{colour: f"var(--series-{number})" for number, colour in enumerate(SERIES, start=1)},
}
# A texture's tile: its side, and the lines drawn on it.
_PLAIN, _RISING = (8, ""), (5, "M-1 1L1 -1M0 5L5 0M4 6L6 4")
_FALLING = (6, "M-1 5L1 7M0 0L6 6M5 -1L7 1")
_UPRIGHT, _LEVEL, _CROSSED = (5, "M2.5 0V5"), (5, "M0 2.5H5"), (8, "M0 0L8 8M8 0L0 8")
# Phases of tasks; then parts of a task: grey before and after the work, the hue of its phase within
# it, one hue for all waiting; what only logs show, a sum, is crossed.
TEXTURES: dict[str, tuple[str, tuple[int, str]]] = {
    "map": ("map", _PLAIN),
    "map_tail": ("map-tail", _RISING),
    "shuffle": ("shuffle", _UPRIGHT),
    "sort": ("sort", (5, "M0 0L5 5M0 5L5 0")),
    "reduce": ("reduce", (8, "M-1 7L1 9M0 0L8 8M7 -1L9 1")),
    "failed": ("surface", (6, "M0 0L6 6M0 6L6 0")),
    "killed": ("surface", (6, "M-1 1L1 -1M0 6L6 0M5 7L7 5")),
    "launch": ("start", _RISING),
    "jvm": ("start", _PLAIN),
    "init": ("start", _UPRIGHT),
    "start": ("start", _CROSSED),
    "read": ("map", _RISING),
    "map_function": ("map", _PLAIN),
    "collect": ("map", _UPRIGHT),
    "map_loop": ("map", _PLAIN),
    "map_loop_blocked": ("map", _CROSSED),
    "blocked": ("wait", _PLAIN),
    "wait_spill": ("wait", _RISING),
    "spill_sort": ("sort", _PLAIN),
    "spill_combine": ("sort", _RISING),
    "spill_write": ("sort", _UPRIGHT),
    "spill": ("sort", _CROSSED),
    "merge": ("map-tail", _LEVEL),
    "wait": ("wait", _UPRIGHT),
    "stall": ("wait", _CROSSED),
    "connect": ("shuffle", _UPRIGHT),
    "copy": ("shuffle", _PLAIN),
    "memory_merge": ("sort", _LEVEL),
    "disk_merge": ("sort", _FALLING),
    "last_merges": ("sort", _LEVEL),
    "read_merge": ("reduce", _RISING),
    "reduce_function": ("reduce", _PLAIN),
    "output": ("reduce", _UPRIGHT),
    "reduce_loop": ("reduce", _PLAIN),
    "commit": ("start", _LEVEL),
    "end": ("start", _FALLING),
    "other": ("band", _PLAIN),
}
_EDGES = {"failed": BAD, "killed": BAD, "other": MUTED}
_SHAPES = ("o", "s", "^", "D", "v", "P", "X", "p")
_FILLS = ("full", "none", "left", "top", "right", "bottom")
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "mapreduce-harness",
    "text.parse_math": False,
    "font.size": 9.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.linewidth": 0.8,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "figure.facecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.handletextpad": 0.5,
    "legend.handleheight": 1.0,
    "figure.constrained_layout.h_pad": 0.06,
    "figure.constrained_layout.w_pad": 0.06,
}
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
        mpl.rcParams.update(_SETTINGS)
        yield


class Stack(NamedTuple):
    """A stacked bar: its group and name; a piece is a texture, its seconds and a tooltip."""

    group: str
    name: str
    pieces: Sequence[tuple[str, float, str]]


class Canvas:
    """A matplotlib figure; artists with a texture or a tooltip are known by their group id."""

    def __init__(self, width: float, height: float) -> None:
        from matplotlib.figure import Figure as Drawing

        self.figure = Drawing(figsize=(width, height), layout="constrained")
        self.marked: dict[str, tuple[str, str]] = {}

    def mark(self, artist: Any, *, texture: str = "", tooltip: str = "") -> None:
        """Fill *artist* with *texture*, and show *tooltip* while the pointer rests on it."""
        group = f"marked{len(self.marked)}"
        artist.set_gid(group)
        self.marked[group] = texture, one_line(tooltip)

    def bar(
        self,
        axes: Axes,
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
        bar = Rectangle(
            (start, row - height / 2), end - start, height, linewidth=edge, facecolor=SURFACE,
            edgecolor=_EDGES.get(texture, SURFACE),
        )  # fmt: skip
        axes.add_patch(bar)
        self.mark(bar, texture=texture, tooltip=tooltip)

    def texture_legend(self, names: Mapping[str, str], columns: int = 8) -> None:
        """Name the textures that were drawn, above the figure."""
        from matplotlib.patches import Patch

        drawn = {texture for texture, _ in self.marked.values()}
        handles = {
            texture: Patch(facecolor=SURFACE, edgecolor=_EDGES.get(texture, SURFACE), label=name)
            for texture, name in names.items()
            if texture in drawn
        }
        if handles:
            legend = self.figure.legend(
                handles=[*handles.values()],
                loc="outside upper left",
                ncols=min(columns, len(handles)),
            )
            for patch, texture in zip(legend.get_patches(), handles, strict=True):
                self.mark(patch, texture=texture)


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
    values = [value for element in elements for value in element.attrib.values()]
    referenced = {name for value in values for name in _REFERENCE.findall(value)}
    for element in elements:
        element.tag = element.tag.rpartition("}")[2]
        texture, tooltip = canvas.marked.get(element.get("id", ""), ("", ""))
        for path in element.iter() if texture else ():
            if "style" in path.attrib:
                path.set("style", f"{path.get('style')}; fill: url(#texture-{texture})")
        attributes, element.attrib = element.attrib, {}
        for name, value in attributes.items():
            if name == "style":
                declared = dict(part.split(": ", 1) for part in value.split("; "))
                declared.pop("font-family", None)
                kept = (f"{key}: {VARIABLES.get(what, what)}" for key, what in declared.items())
                element.set(name, "; ".join(kept))
            elif name != "id":
                plain = _REFERENCE.sub(rf"{figure.name}-\g<0>", " ".join(value.split()))
                plain = _DECIMALS.sub(lambda digits: f"{float(digits[0]):.2f}", plain)
                element.set(name.rpartition("}")[2], plain)
            elif value in referenced:
                element.set(name, f"{figure.name}-{value}")
        if tooltip:
            title = ET.Element("title")
            title.text = tooltip
            element.insert(0, title)
    title = ET.Element("title", {"id": f"{figure.name}-title"})
    title.text = one_line(figure.title)
    root.insert(0, title)
    root.attrib = {
        "class": "plot",
        "role": "img",
        "aria-labelledby": f"{figure.name}-title",
        "viewBox": root.attrib["viewBox"],
        "width": f"{figure.width * 96:.0f}",
    }
    return ET.tostring(root, encoding="unicode")


def texture_definitions() -> str:
    """Every texture as an SVG element of no size, to which the figures of a page refer."""
    patterns = []
    for name, (hue, (side, lines)) in TEXTURES.items():
        stroke = "var(--bad)" if hue == "surface" else "var(--surface)"
        drawn = f'<path d="{lines}" stroke="{stroke}" stroke-width="0.9"/>' if lines else ""
        patterns.append(
            f'<pattern id="texture-{name}" width="{side}" height="{side}"'
            ' patternUnits="userSpaceOnUse">'
            f'<rect width="{side}" height="{side}" fill="var(--{hue})"/>{drawn}</pattern>'
        )
    return f'<svg class="textures" aria-hidden="true"><defs>{"".join(patterns)}</defs></svg>'


def marker(workload: int, model: int) -> dict[str, Any]:
    """How a point is drawn: its shape shows the workload; its filling and colour the model."""
    colour, fill = SERIES[model % len(SERIES)], _FILLS[model % len(_FILLS)]
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


def grid(axes: Axes, which: str) -> None:
    """Thin lines at the major ticks of one axis or both."""
    axes.grid(visible=True, axis=which)  # type: ignore[arg-type]  # a literal in the stubs
    axes.tick_params(length=0)


def row_axes(axes: Axes, names: Sequence[tuple[float, str]], longest: float, label: str) -> None:
    """Horizontal bars in named rows, the first on top, over an axis from 0 to *longest*."""
    axes.set_yticks([row for row, _ in names], [name for _, name in names])
    axes.set(ylim=(names[-1][0] + 0.6, -0.6), xlim=(0, longest), xlabel=label)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.spines["left"].set_color(INK)
    axes.tick_params(colors=MUTED, labelcolor=INK)
    grid(axes, "x")


def draw_stacks(canvas: Canvas, stacks: Sequence[Stack], label: str) -> None:
    """Draw stacked horizontal bars, the first on top, with their totals; groups stand apart."""
    axes = canvas.figure.add_subplot()
    names, row, group, longest_s = [], -1.0, stacks[0].group, 0.0
    for stack in stacks:
        row += 1.5 if stack.group != group else 1.0
        group, start_s = stack.group, 0.0
        for texture, length_s, tooltip in stack.pieces:
            times_s = (start_s, start_s + length_s)
            canvas.bar(axes, row, times_s, texture, tooltip=tooltip, edge=0.5)
            start_s += length_s
        axes.annotate(number(start_s), (start_s, row), (4, 0), textcoords="offset points",
                      va="center", fontsize=8.5)  # fmt: skip
        names.append((row, stack.name))
        longest_s = max(longest_s, start_s)
    row_axes(axes, names, longest_s * 1.09, label)


def time_axis(axes: Axes, longest_s: float) -> None:
    """Seconds from 0 below rows of bars."""
    from matplotlib.ticker import MaxNLocator

    axes.set_xlim(0, longest_s * 1.01)
    axes.xaxis.set_major_locator(MaxNLocator(10))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.spines["left"].set_visible(False)
    grid(axes, "x")
