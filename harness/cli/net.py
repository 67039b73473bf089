"""``harness net``: the Petri net of SPN-GC, for viewers of Markdown and for other tools."""

from __future__ import annotations

import click


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
    "format_name",
    type=click.Choice(["mermaid", "pnml", "pipe"]),
    default="mermaid",
    show_default=True,
    help="A flowchart for Markdown, standard PNML, or PIPE2's variant of it.",
)
@click.option(
    "--mean",
    "means",
    type=(str, click.FloatRange(0)),
    metavar="PHASE SECONDS",
    multiple=True,
    help="Mean of a phase, such as t3_to_gpu_s 6.5 (default: 1 s); repeatable.",
)
def net(
    maps: int, reduces: int, variant: str, format_name: str, means: tuple[tuple[str, float], ...]
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
    from harness.sim.petri import to_mermaid, to_pipe, to_pnml

    phase_means = dict(means)
    for name in phase_means:
        if name not in PHASES:
            raise click.UsageError(f"There is no phase {name!r}. Choose from {', '.join(PHASES)}")
    timed = timed_net(dict.fromkeys(PHASES, 1.0) | phase_means, maps, reduces, variant)
    title = f"SPN-GC, {variant}: {maps} maps, {reduces} reduces"
    if format_name == "mermaid":
        text = to_mermaid(timed)
    else:
        text = to_pnml(timed, title) if format_name == "pnml" else to_pipe(timed, title)
    click.echo(text, nl=False)
