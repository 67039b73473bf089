"""Measures real Hadoop clusters and scores what performance models predicted of them."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("mapreduce-harness")
except PackageNotFoundError:  # Run from a source tree that was never installed.
    __version__ = "0+unknown"
