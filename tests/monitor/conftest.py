"""
What these tests share with those of runs: a results folder with a run in it.
"""

from tests.run.conftest import run  # noqa: F401
