"""
All checks, in order, and what each provider lacks of what it needs.

Each check looks at one thing and answers one `Finding`; none changes anything, and none waits
longer than a few seconds.  Providers declare what they need, and bring checks of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harness.doctor import gpus, kernel, machine, programs
from harness.doctor.finding import Finding
from harness.providers import PROVIDERS
from harness.providers import state as states

_SET_UP = ("system", "disk", "python", "java", "maven")


def examine(results: Path) -> list[Finding]:
    """All findings, in the order in which a reader wants them; *results* is where trials go."""
    checks: Sequence[Callable[[], Finding]] = (
        machine.system,
        machine.cores,
        machine.load,
        machine.memory,
        lambda: machine.disk(results),
        programs.python,
        programs.java,
        programs.maven,
        programs.commands,
        kernel.namespaces,
        kernel.cgroups,
        kernel.node_disks,
        kernel.traffic_control,
        programs.hadoop_home,
        programs.tracer,
        programs.speed_probe,
        *_provider_checks().values(),
        gpus.gpu,
        gpus.cuda,
        programs.compiler,
        gpus.kernels,
        clusters,
    )
    return [check() for check in checks]


def clusters() -> Finding:
    """Clusters of this user that are up, or that left something behind."""
    names = states.known_names()
    if not names:
        return Finding("clusters", "ok", "none is up")
    return Finding("clusters", "note", f"there: {', '.join(names)}", "harness cluster down --all")


def needs() -> Mapping[str, tuple[str, ...]]:
    """Names of the findings that must not be lacking, by provider or purpose."""
    return {**{name: provider.needs for name, provider in PROVIDERS.items()}, "set-up": _SET_UP}


def lacks(findings: Sequence[Finding]) -> dict[str, list[str]]:
    """Names of the findings that each provider or purpose needs and that are lacking."""
    # Without what one provider alone works with there is only a note; it needs that all the same.
    own = _provider_checks().keys()
    lacking = {
        finding.name
        for finding in findings
        if finding.state == "lacking" or (finding.state == "note" and finding.name in own)
    }
    return {
        name: [needed for needed in names if needed in lacking] for name, names in needs().items()
    }


def _provider_checks() -> dict[str, Callable[[], Finding]]:
    return {
        name: check
        for provider in PROVIDERS.values()
        for name, check in provider.doctor_checks().items()
    }
