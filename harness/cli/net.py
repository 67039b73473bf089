"""``harness net``: the Petri net of SPN-GC, as a picture or for other tools."""

from __future__ import annotations

import click

_FORMATS = ("svg", "pnml", "pipe")


@click.command("net")
@click.option("--maps", type=click.IntRange(1), default=3, show_default=True, help="Map tasks.")
@click.option("--reduces", type=click.IntRange(0), default=2, show_default=True, help="Reduces.")
@click.option(
    "--variant",
    type=click.Choice(["shared_read", "shared_shuffle"]),
    default="shared_read",
    show_default=True,
    help="Which phase all maps share.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    default="svg",
    show_default=True,
    help="A picture, the standard's PNML, or PIPE2's form of it.",
)
@click.option(
    "--mean",
    "means",
    type=(str, click.FloatRange(0)),
    metavar="PHASE SECONDS",
    multiple=True,
    help="Mean of a phase, such as t3_to_gpu_s 6.5 (default: 1 s); repeatable.",
)
def command(
    maps: int, reduces: int, variant: str, form: str, means: tuple[tuple[str, float], ...]
) -> None:
    """
    Print the Petri net of the model SPN-GC, which docs/models/spn-gc-net.md shows and explains.

    \b
    Example:
        harness net --maps 3 --reduces 2
        harness net --maps 16 --reduces 4 --format pipe --mean t3_to_gpu_s 6.5
    """
    from harness.models.spn_gc.net import timed_net
    from harness.models.spn_gc.phases import PHASES
    from harness.sim.draw import draw_svg
    from harness.sim.pnml import write_pipe, write_pnml

    given = dict(means)
    for name in given:
        if name not in PHASES:
            raise click.UsageError(f"There is no phase {name!r}. Choose from {', '.join(PHASES)}")
    net = timed_net(dict.fromkeys(PHASES, 1.0) | given, maps, reduces, variant)
    title = f"SPN-GC, {variant}: {maps} maps, {reduces} reduces"
    texts = {
        "svg": lambda: draw_svg(net, title),
        "pnml": lambda: write_pnml(net, title),
        "pipe": lambda: write_pipe(net, title),
    }
    click.echo(texts[form](), nl=False)
