"""
All checks, in order, and what each provider needs of them.

Each check looks at one thing and answers one `Finding`; none changes anything, and none waits
longer than a few seconds.  What a provider needs stands in `NEEDED_BY`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harness.doctor import gpus, kernel, machine, partners, programs
from harness.doctor.finding import Finding

# Provider (or purpose) -> the findings that must not be lacking.
NEEDED_BY: Mapping[str, tuple[str, ...]] = {
    "local": (
        "system", "memory", "disk", "commands", "namespaces", "java", "hadoop home", "speed probe",
    ),
    "docker": ("system", "disk", "java", "hadoop home", "speed probe", "docker"),
    "ansible": ("system", "disk", "java", "hadoop home", "speed probe", "ssh"),
    "existing": ("system", "java", "hadoop home", "speed probe", "existing cluster"),
    "set-up": ("system", "disk", "python", "java", "maven"),
}  # fmt: skip
# Nobody must have them, so without them there is only a note; a provider cannot do without its own.
_PARTNERS = frozenset({"docker", "ssh", "existing cluster"})


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
        partners.docker,
        partners.ssh,
        partners.existing_cluster,
        gpus.gpu,
        gpus.cuda,
        programs.compiler,
        gpus.kernels,
        partners.clusters,
    )
    return [check() for check in checks]


def lacks(findings: Sequence[Finding]) -> dict[str, list[str]]:
    """Provider or purpose -> names of the findings that it needs and that are lacking."""
    lacking = {
        f.name
        for f in findings
        if f.state == "lacking" or (f.name in _PARTNERS and f.state == "note")
    }
    return {name: [n for n in needed if n in lacking] for name, needed in NEEDED_BY.items()}
