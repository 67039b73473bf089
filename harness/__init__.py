"""Measures real Hadoop clusters and scores what performance models predicted of them."""

__version__ = "0.1.0"  # the one place: the build reads it (pyproject.toml), and `harness --version`
