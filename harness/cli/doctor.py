"""``harness doctor``: what this machine can do, and what cures its lacks."""

from __future__ import annotations

import sys

from typing import TYPE_CHECKING

import click

from harness.cli.console import clean, print_json
from harness.cli.experiment import results_option

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.providers.base import Finding

_MARKS = {"ok": "ok", "note": "note", "lacking": "LACKING"}


@click.command("doctor")
@results_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(results_dir: Path, as_json: bool) -> None:
    """
    Say what this machine can do, and for each lack the command that cures it.

    Changes nothing. Ends with status 3 where the local provider cannot work.

    \b
    Example:
        harness doctor
        harness doctor --json
    """
    from harness.doctor.checks import examine, missing_needs
    from harness.monitor.machine import machine_facts
    from harness.records.trial import ClusterSpec

    findings = examine(results_dir)
    lacking = missing_needs(findings)
    if as_json:
        print_json(
            {
                "machine": machine_facts(),
                "findings": [
                    {"name": f.name, "state": f.state, "what": f.what, "fix": f.fix}
                    for f in findings
                ],
                "ready": [
                    {"name": name, "ready": not missing, "lacks": missing}
                    for name, missing in lacking.items()
                ],
            }
        )
    else:
        _show(findings, lacking)
    if lacking[ClusterSpec().provider]:  # the one of experiments that name none
        sys.exit(3)


def _show(findings: Sequence[Finding], lacking: dict[str, list[str]]) -> None:
    width = max(len(f.name) for f in findings)
    for finding in findings:
        mark = _MARKS[finding.state]
        click.echo(f"{mark:<8} {finding.name:<{width}}  {clean(finding.what)}")
        if finding.fix and finding.state != "ok":
            click.echo(f"{'':<8} {'':<{width}}  fix: {clean(finding.fix)}")
    click.echo()
    for name, missing in lacking.items():
        click.echo(f"{name}: " + (f"lacks {', '.join(missing)}" if missing else "ready"))
