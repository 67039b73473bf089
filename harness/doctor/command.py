"""``harness doctor``: what this machine can do, and how to fix what it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.console.command import command
from harness.cli.console.options import json_option, results_option
from harness.cli.console.present import present

if TYPE_CHECKING:
    from harness.clusters.survey import Finding


@command("doctor")
@results_option
@json_option
def doctor(results_dir: Path, as_json: bool) -> int:
    """
    Show what this machine can do, and the command that fixes each problem.

    Changes nothing. Ends with status 3 where the local provider cannot work.

    \b
    Example:
        harness doctor
        harness doctor --json
    """
    from harness.base.records.trial import ClusterSpec
    from harness.clusters.monitor.machine import machine_facts
    from harness.doctor.checks import examine, missing_needs

    findings = examine(results_dir)
    lacking = missing_needs(findings)
    ready = [{"name": name, "ready": not lacks, "lacks": lacks} for name, lacks in lacking.items()]
    answer = {"machine": machine_facts(), "findings": findings, "ready": ready}
    present(answer, finding_lines(findings, lacking), as_json=as_json)
    # The provider of experiments that name none.
    return 3 if lacking[ClusterSpec().provider] else 0


def finding_lines(
    findings: Sequence[Finding], lacking: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Each finding, with its fix unless it is well; then what each provider lacks."""
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark = "LACKING" if finding.state == "lacking" else finding.state
        yield f"{mark:<8} {finding.name:<{width}}  {finding.what}"
        if finding.fix and finding.state != "ok":
            yield f"{'':<8} {'':<{width}}  fix: {finding.fix}"
    yield ""
    for name, missing in lacking.items():
        yield f"{name}: " + (f"lacks {', '.join(missing)}" if missing else "ready")
