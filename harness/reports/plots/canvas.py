"""
One figure as inline SVG: accessible, the same bytes every time, in the page's own colours.

Figures are drawn in stand-in colours that no palette has; `Canvas.svg` replaces them by the custom
properties of the page's style sheet, so that one drawing serves the light and the dark theme.
"""

from __future__ import annotations

import html
import io
import logging
import re
import warnings

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.reports.tables import Table
from harness.reports.wording import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, MUTED, GRID, SURFACE = "#010203", "#010204", "#010205", "#010206"
BAND, FAILED = "#010207", "#010208"
SERIES = tuple(f"#0102{n:02x}" for n in range(0x10, 0x18))
PHASES = {
    "map": "#010220",
    "map_tail": "#010221",
    "shuffle": "#010222",
    "sort": "#010223",
    "reduce": "#010224",
    "failed": "#010225",
    "killed": "#010226",
}
PHASE_NAMES = {
    "map": "map",
    "map_tail": "last spill, merge",
    "shuffle": "shuffle",
    "sort": "sort (merge)",
    "reduce": "reduce",
    "failed": "failed attempt",
    "killed": "killed attempt",
}
# Phases differ in texture as well as in colour: side of the tile, then the lines drawn on it.
_TILES = {
    "map": (8, ""),
    "map_tail": (5, "M-1 1L1 -1M0 5L5 0M4 6L6 4"),
    "shuffle": (5, "M2.5 0V5"),
    "sort": (5, "M0 0L5 5M0 5L5 0"),
    "reduce": (8, "M-1 7L1 9M0 0L8 8M7 -1L9 1"),
    "failed": (6, "M0 0L6 6M0 6L6 0"),
    "killed": (6, "M-1 1L1 -1M0 6L6 0M5 7L7 5"),
}
_PLAIN, _RISING, _FALLING = (
    (8, ""),
    (5, "M-1 1L1 -1M0 5L5 0M4 6L6 4"),
    (6, "M-1 5L1 7M0 0L6 6M5 -1L7 1"),
)
_UPRIGHT, _LEVEL, _CROSSED = (5, "M2.5 0V5"), (5, "M0 2.5H5"), (8, "M0 0L8 8M8 0L0 8")
# Parts of a task: grey before and after the work, the hue of its phase within it, one hue for all
# waiting; what only logs tell, a sum, is crossed.
_PARTS: dict[str, tuple[str, tuple[int, str]]] = {
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
PARTS_DRAWN = {name: f"#0102{n:02x}" for n, name in enumerate(_PARTS, start=0x40)}
_PATTERNS = {**PHASES, **PARTS_DRAWN}
_PAGE = {
    INK: "currentColor",
    MUTED: "var(--muted)",
    GRID: "var(--rule)",
    SURFACE: "var(--surface)",
    BAND: "var(--band)",
    FAILED: "var(--bad)",
    **{colour: f"var(--series-{n})" for n, colour in enumerate(SERIES, start=1)},
}
SHAPES = ("o", "s", "^", "D", "v", "P", "X", "p")
FILLS = ("full", "none", "left", "top", "right", "bottom")
_RC: Any = {
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


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing with the text around it, and the same data as a table."""

    svg: str
    caption: str
    data: Table


@contextmanager
def drawing() -> Iterator[None]:
    """Our own plot settings, whatever the user's are; glyphs are the browser's business."""
    # Where the user's home cannot be written it tells so; nothing that we draw depends on that.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        yield


class Canvas:
    """A figure of *width* x *height* inches; *name* keeps its ids apart from other figures'."""

    def __init__(self, name: str, title: str, width: float, height: float) -> None:
        from matplotlib.figure import Figure as Drawing

        self.name, self.title, self.width = name, one_line(title), width
        self.figure = Drawing(figsize=(width, height), layout="constrained")
        self._tips: list[str] = []

    def tip(self, artist: Any, text: str) -> None:
        """Show *text* while the pointer rests on *artist*."""
        artist.set_gid(f"tip{len(self._tips)}")
        self._tips.append(one_line(text))

    def svg(self) -> str:
        """Draw it as an SVG element that can stand in an HTML page beside others."""
        from matplotlib.backends.backend_svg import FigureCanvasSVG

        raw = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        # Not `savefig`, which draws everything twice.
        FigureCanvasSVG(self.figure).print_svg(raw, metadata=nothing)  # type: ignore[no-untyped-call]
        body = raw.getvalue()
        body = body[body.index("<svg") :]
        box = re.search(r'viewBox="([^"]*)"', body)
        assert box is not None
        body = body[body.index(">") + 1 : body.rindex("</svg>")]
        body = re.sub(r"<metadata>.*?</metadata>|<style .*?</style>", "", body, flags=re.DOTALL)
        body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
        body = self._with_ids(body.replace("xlink:href", "href"))
        body = re.sub(r"\n\s*(?=\n)", "", re.sub(r"<[^>]*>", self._tag, body))
        return (
            f'<svg class="plot" role="img" aria-labelledby="{self.name}-title"'
            f' viewBox="{box[1]}" width="{self.width * 96:.0f}">\n'
            f'<title id="{self.name}-title">{html.escape(self.title)}</title>'
            f"{self._patterns(body)}{body}</svg>"
        )

    def _patterns(self, body: str) -> str:
        """Definitions of the textures that *body* uses."""
        used = (name for name in _PATTERNS if f"url(#{self.name}-{name})" in body)
        tiles = "".join(_tile(f"{self.name}-{name}", name) for name in used)
        return f"\n<defs>{tiles}</defs>" if tiles else ""

    def _tag(self, match: re.Match[str]) -> str:
        tag = re.sub(r"#0102[0-9a-f]{2}\b", self._colour, match[0])
        tag = re.sub(r"'DejaVu Sans'[^;\"]*", "var(--sans)", tag)
        tag = re.sub(r' transform="rotate\(-?0 [^"]*"', "", tag)
        return re.sub(r"\d+\.\d{3,}(?=[^\d.])", lambda m: f"{float(m[0]):.2f}", tag)

    def _colour(self, match: re.Match[str]) -> str:
        for name, colour in _PATTERNS.items():
            if colour == match[0]:
                return f"url(#{self.name}-{name})"
        return _PAGE.get(match[0], match[0])

    def _with_ids(self, body: str) -> str:
        """Drop ids that nothing refers to, mark the others as this figure's, put in the tips."""
        used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', body))

        def rename(match: re.Match[str]) -> str:
            if match[1] in used:
                return f' id="{self.name}-{match[1]}"'
            return ""

        body = re.sub(
            r'<g id="tip(\d+)">',
            lambda m: f"<g><title>{html.escape(self._tips[int(m[1])])}</title>",
            body,
        )
        body = re.sub(r' id="([^"]+)"', rename, body)
        return re.sub(r'(href="#|url\(#)(?=[^")])', rf"\1{self.name}-", body)


def _tile(identity: str, name: str) -> str:
    hue, (side, lines) = _PARTS.get(name) or (name.replace("_", "-"), _TILES[name])
    lost = name in {"failed", "killed"}
    ground = "var(--surface)" if lost else f"var(--{hue})"
    stroke = "var(--bad)" if lost else "var(--surface)"
    drawn = f'<path d="{lines}" stroke="{stroke}" stroke-width="0.9"/>' if lines else ""
    return (
        f'<pattern id="{identity}" width="{side}" height="{side}" patternUnits="userSpaceOnUse">'
        f'<rect width="{side}" height="{side}" fill="{ground}"/>{drawn}</pattern>'
    )


def phase_bar(axes: Axes, at: float, start: float, end: float, name: str) -> Any:
    """One bar of a phase, in its colour and texture."""
    edge = FAILED if name in {"failed", "killed"} else SURFACE
    (bar,) = axes.barh(
        [at], [end - start], left=start, height=0.78, facecolor=PHASES[name], edgecolor=edge,
        linewidth=0.8,
    )  # fmt: skip
    return bar


def part_bar(axes: Axes, at: float, span: tuple[float, float], name: str, height: float) -> Any:
    """One bar of a part of a task, from the first to the second of *span*; *at* is its middle."""
    from matplotlib.patches import Rectangle

    start, end = span
    bar = Rectangle(
        (start, at - height / 2), end - start, height, facecolor=PARTS_DRAWN[name],
        edgecolor=MUTED if name == "other" else SURFACE, linewidth=0.3,
    )  # fmt: skip
    return axes.add_patch(bar)


def legend_of_parts(
    canvas: Canvas, seen: Collection[str], names: Mapping[str, str], phases: Collection[str] = ()
) -> None:
    """Name the parts that a figure shows, and the phases of tasks that stand beside them."""
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=PARTS_DRAWN[name], edgecolor=MUTED if name == "other" else SURFACE,
              label=names[name])
        for name in names
        if name in seen
    ]  # fmt: skip
    handles += _of_phases(phases)
    if handles:
        canvas.figure.legend(handles=handles, loc="outside upper left", ncols=min(4, len(handles)))


def phase_legend(canvas: Canvas, seen: Collection[str]) -> None:
    """Name the phases that a figure shows, above it."""
    handles = _of_phases(seen)
    if handles:
        canvas.figure.legend(handles=handles, loc="outside upper left", ncols=len(handles))


def _of_phases(seen: Collection[str]) -> list[Any]:
    from matplotlib.patches import Patch

    return [
        Patch(facecolor=colour, edgecolor=FAILED if name in {"failed", "killed"} else SURFACE,
              label=PHASE_NAMES[name])
        for name, colour in PHASES.items()
        if name in seen
    ]  # fmt: skip


def marker(workload: int, model: int) -> dict[str, Any]:
    """How a point is drawn: its shape tells the workload; its filling and colour the model."""
    colour, fill = SERIES[model % len(SERIES)], FILLS[model % len(FILLS)]
    return {
        "marker": SHAPES[workload % len(SHAPES)],
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
