"""Traces to profile: dataflow statistics, and the regression that gives the costs."""

from __future__ import annotations

from harness.profiling.fit import fit_profile
from harness.profiling.speed import fit_speed

__all__ = ["fit_profile", "fit_speed"]
