"""
A net as a picture: SVG, from left to right.

Layers: a node stands behind all nodes that lead to it; its place within the layer is that in the
net's lists.  For nets without cycles that are small enough to be looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from harness.errors import ModelError
from harness.sim.petri import WHERE, Net

MOST_NODES = 400

_COLUMN, _ROW, _MARGIN = 74, 62, 44
_RADIUS, _BAR = 11, (8, 26)  # of a place; width and height of a transition

# Colours for a light page and a dark one; a page that embeds the picture as an image follows the
# reader's setting as well.
_STYLE = """\
text{font:10px system-ui,sans-serif;fill:#1f2937;text-anchor:middle}
.page{fill:#fff}.arc{stroke:#6b7280;fill:none;stroke-width:1.1}.head{fill:#6b7280}
.place{fill:#fff;stroke:#1d4ed8;stroke-width:1.6}.timed{fill:#fff;stroke:#b45309;stroke-width:1.6}
.immediate{fill:#1f2937}.token{fill:#1f2937}.weight{fill:#b91c1c;font-weight:600}
@media(prefers-color-scheme:dark){text{fill:#e5e7eb}.page{fill:#111827}
.arc{stroke:#9ca3af}.head{fill:#9ca3af}.place{fill:#111827;stroke:#93c5fd}
.timed{fill:#111827;stroke:#fbbf24}.immediate,.token{fill:#e5e7eb}.weight{fill:#fca5a5}}
"""


_ARROW = """\
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"\
 orient="auto"><path class="head" d="M0 1L8 4L0 7z"/></marker></defs>"""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the middle of each node lies, by name; the size of the whole."""

    at: Mapping[str, tuple[float, float]]
    width: float
    height: float


def layout(net: Net) -> Layout:
    """
    Positions in the unit of SVG.

    ``ModelError`` for a net with a cycle, or of more than `MOST_NODES` nodes.
    """
    columns: dict[int, list[str]] = {}
    for name, layer in _layers(net).items():
        columns.setdefault(layer, []).append(name)
    tallest = max(map(len, columns.values()), default=1)
    at = {
        name: (_MARGIN + layer * _COLUMN, _MARGIN + tallest * _ROW * (i + 0.5) / len(names))
        for layer, names in columns.items()
        for i, name in enumerate(names)
    }
    width = 2 * _MARGIN + max(columns, default=0) * _COLUMN
    return Layout(at, width, 2 * _MARGIN + tallest * _ROW)


def draw_svg(net: Net, title: str = "") -> str:
    """
    The picture: circles are places, open bars exponential transitions, filled ones immediate.

    Arcs of a weight above 1 are labelled; dots, or a number, are the tokens at the start.
    ``ModelError`` as from `layout`.
    """
    plan = layout(net)
    size = f'width="{plan.width:g}" height="{plan.height:g}"'
    named = f' role="img" aria-label={quoteattr(title)}' if title else ""
    box = f'viewBox="0 0 {plan.width:g} {plan.height:g}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} {size}{named}>',
        f"<title>{escape(title)}</title>" if title else "",
        f"<style>{_STYLE}</style>",
        _ARROW,
        f'<rect class="page" {size}/>',
        *_arcs(net, plan),
        *_places(net, plan),
        *_transitions(net, plan),
        "</svg>",
    ]
    return "\n".join(line for line in lines if line) + "\n"


def _layers(net: Net) -> dict[str, int]:
    """Longest way to each node, in arcs; in the order of the net's lists."""
    names = [*net.places, *(t.name for t in net.transitions)]
    if len(names) > MOST_NODES:
        raise ModelError(
            f"{len(names)} nodes are too many for a picture", where=WHERE, fix="write it as PNML"
        )
    arcs = [(a, b) for a, b, _ in (*net.input_arcs, *net.output_arcs)]
    layers = dict.fromkeys(names, 0)
    for _ in names:
        late = [(a, b) for a, b in arcs if layers[b] <= layers[a]]
        if not late:
            return layers
        for a, b in late:
            layers[b] = max(layers[b], layers[a] + 1)
    raise ModelError("a net with a cycle has no left and right", where=WHERE)


def _arcs(net: Net, plan: Layout) -> Iterator[str]:
    for source, target, weight in (*net.input_arcs, *net.output_arcs):
        (x1, y1), (x2, y2) = plan.at[source], plan.at[target]
        begin = x1 + (_RADIUS if source in net.place_index else _BAR[0] / 2)
        end = x2 - (_RADIUS if target in net.place_index else _BAR[0] / 2)
        bend = (end - begin) / 2
        yield (
            f'<path class="arc" marker-end="url(#head)" d="M{begin:g} {y1:g}'
            f'C{begin + bend:g} {y1:g} {end - bend:g} {y2:g} {end:g} {y2:g}"/>'
        )
        if weight > 1:
            x, y = (begin + end) / 2, (y1 + y2) / 2 - 5
            yield f'<text class="weight" x="{x:g}" y="{y:g}">{weight}</text>'


def _places(net: Net, plan: Layout) -> Iterator[str]:
    for name, tokens in zip(net.places, net.marking(), strict=True):
        x, y = plan.at[name]
        yield f'<circle class="place" cx="{x:g}" cy="{y:g}" r="{_RADIUS}"/>'
        if tokens == 1:
            yield f'<circle class="token" cx="{x:g}" cy="{y:g}" r="4"/>'
        elif tokens:
            yield f'<text x="{x:g}" y="{y + 4:g}">{tokens}</text>'
        yield f'<text x="{x:g}" y="{y + _RADIUS + 12:g}">{escape(name)}</text>'


def _transitions(net: Net, plan: Layout) -> Iterator[str]:
    width, height = _BAR
    for node in net.transitions:
        x, y = plan.at[node.name]
        kind = "immediate" if node.immediate else "timed"
        yield (
            f'<rect class="{kind}" x="{x - width / 2:g}" y="{y - height / 2:g}"'
            f' width="{width}" height="{height}"/>'
        )
        yield f'<text x="{x:g}" y="{y - height / 2 - 5:g}">{escape(node.name)}</text>'
