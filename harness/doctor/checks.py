"""
All checks, in order, and what each provider lacks of what it needs.

Each check looks at one thing and gives one `Finding`; none changes anything, and none waits longer
than a few seconds.  Providers declare what they need, and bring checks of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harness.doctor import machine, programs
from harness.providers import PROVIDERS, state
from harness.providers.base import Finding

_SET_UP = ("system", "disk", "python", "java", "maven")


def examine(results: Path) -> list[Finding]:
    """All findings, in the order in which a reader wants them; *results* is where trials go."""
    checks: Sequence[Callable[[], Finding]] = (
        machine.check_system,
        machine.check_cores,
        machine.check_load,
        machine.check_memory,
        lambda: machine.check_disk(results),
        programs.check_python,
        programs.check_java,
        programs.check_maven,
        programs.check_commands,
        machine.check_namespaces,
        machine.check_cgroups,
        machine.check_node_disks,
        machine.check_traffic_control,
        programs.check_hadoop_home,
        programs.check_tracer,
        programs.check_speed_probe,
        *provider_checks().values(),
        programs.check_gpus,
        programs.check_cuda,
        programs.check_compiler,
        programs.check_kernels,
        check_clusters,
    )
    return [check() for check in checks]


def check_clusters() -> Finding:
    """Clusters of this user that are up, or that left something behind."""
    names = state.known_names()
    if not names:
        return Finding("clusters", "ok", "none is up")
    return Finding("clusters", "note", f"there: {', '.join(names)}", "harness cluster down --all")


def needs() -> Mapping[str, tuple[str, ...]]:
    """Names of the findings that must not be lacking, by provider or purpose."""
    return {**{name: provider.needs for name, provider in PROVIDERS.items()}, "set-up": _SET_UP}


def missing_needs(findings: Sequence[Finding]) -> dict[str, list[str]]:
    """Names of the findings that each provider or purpose needs and that are lacking."""
    # Without what one provider alone works with there is only a note; it needs that all the same.
    own = provider_checks().keys()
    lacking = {
        finding.name
        for finding in findings
        if finding.state == "lacking" or (finding.state == "note" and finding.name in own)
    }
    return {name: [need for need in names if need in lacking] for name, names in needs().items()}


def provider_checks() -> dict[str, Callable[[], Finding]]:
    """Checks of what one provider alone works with, by the name of their finding."""
    checks: dict[str, Callable[[], Finding]] = {}
    for provider in PROVIDERS.values():
        checks |= provider.doctor_checks()
    return checks
