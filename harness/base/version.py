"""The version of the harness, in one place: the build reads it, and `harness --version`."""

__version__ = "0.1.0"
