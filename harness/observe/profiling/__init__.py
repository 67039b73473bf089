"""Traces to profile: dataflow statistics, and the regression that gives the costs."""

from harness.observe.profiling.fit import fit_profile, fit_speed

__all__ = ["fit_profile", "fit_speed"]
