"""Experiments, runs, scoring and reports."""
