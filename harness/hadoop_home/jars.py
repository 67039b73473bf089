"""Our own job jars: where Maven builds them, beside the Hadoop home."""

from __future__ import annotations

from pathlib import Path

from harness.errors import MachineError
from harness.workloads.base import GPU, JOBS

_MODULES = Path(__file__).resolve().parents[2] / "workloads"
JARS = {JOBS: _MODULES / "jobs" / "target" / JOBS, GPU: _MODULES / "gpu" / "target" / GPU}


def job_jar(name: str) -> Path:
    """Path of one of our jars, by its name in `JARS`; `MachineError` where it is not built."""
    if not JARS[name].is_file():
        raise MachineError(f"the jar {name} is missing", where=str(JARS[name]), fix="make setup")
    return JARS[name]


def built_jars() -> dict[str, Path]:
    """Jars that are there, by name."""
    return {name: path for name, path in JARS.items() if path.is_file()}
