"""``harness doctor``: what this machine can do, and how to fix what it lacks."""

from __future__ import annotations

import sys

from pathlib import Path

import click

from harness.cli.console import print_json
from harness.cli.steps import json_option, results_option
from harness.text import printable


@click.command("doctor")
@results_option
@json_option
def doctor(results_dir: Path, as_json: bool) -> None:
    """
    Show what this machine can do, and the command that fixes each problem.

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
        ready = [
            {"name": name, "ready": not lacks, "lacks": lacks} for name, lacks in lacking.items()
        ]
        print_json({"machine": machine_facts(), "findings": findings, "ready": ready})
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            mark = "LACKING" if finding.state == "lacking" else finding.state
            click.echo(f"{mark:<8} {finding.name:<{width}}  {printable(finding.what)}")
            if finding.fix and finding.state != "ok":
                click.echo(f"{'':<8} {'':<{width}}  fix: {printable(finding.fix)}")
        click.echo()
        for name, missing in lacking.items():
            click.echo(f"{name}: " + (f"lacks {', '.join(missing)}" if missing else "ready"))
    if lacking[ClusterSpec().provider]:  # the one of experiments that name none
        sys.exit(3)
