"""A finished run of recorded histories, opened as a user opens it."""

import pytest

import harness

from tests.evaluate.test_flow import scored


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """
    Results with one scored run of the experiment `recorded`; not to be changed.
    """
    results = tmp_path_factory.mktemp("results")
    scored(results)
    return results


@pytest.fixture(scope="session")
def run(folder):
    """
    That run.
    """
    return harness.open(folder / "recorded")
