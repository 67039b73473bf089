"""Formats of a report: each renders any document."""
