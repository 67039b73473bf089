"""
Tests for `harness.base.extras`, and for what asks for libraries before anything starts.
"""

import sys
import tomllib

from pathlib import Path

import pytest

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from harness.base.errors import MachineError
from harness.base.extras import CLUSTERS, extra, require
from harness.clusters import PROVIDERS
from harness.clusters.workloads import WORKLOADS

PROJECT = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text())
# What is imported under another name than it is installed by.
DISTRIBUTIONS = {"ansible": "ansible-core", "sklearn": "scikit-learn"}


def names_of(requirements):
    """
    Names of the distributions of a list of requirements.
    """
    return {canonicalize_name(Requirement(text).name) for text in requirements}


OF_EXTRAS = {
    name: names_of(requirements)
    for name, requirements in PROJECT["project"]["optional-dependencies"].items()
}


class TestExtra:
    def test_a_library_that_is_not_there(self):
        """
        The error names the library, the extra and the command; a part of it names the whole.
        """
        with pytest.raises(MachineError) as caught, extra(CLUSTERS):
            import no_such_library.client  # noqa: F401

        assert str(caught.value).splitlines() == [
            "Python's package no_such_library is not installed: it comes with the extra 'clusters'",
            "  at:  Python packages",
            "  fix: pip install '.[clusters]' in a checkout of the harness, or make setup there",
        ]

    def test_a_library_that_cannot_be_loaded(self, monkeypatch, tmp_path):
        """
        It is there: its own words say what is wrong.
        """
        (tmp_path / "broken_library.py").write_text("raise ImportError('no libgomp.so.1')")
        monkeypatch.syspath_prepend(tmp_path)

        with pytest.raises(MachineError, match=r"cannot be loaded \(no libgomp.so.1\)"), extra("x"):
            import broken_library  # noqa: F401

    def test_what_is_there_is_imported(self):
        """
        And errors of other kinds are left alone.
        """
        with extra(CLUSTERS):
            import json

        with pytest.raises(ZeroDivisionError), extra(CLUSTERS):
            json.dumps(1 / 0)

    def test_requiring_imports_nothing(self, monkeypatch):
        """
        A library that takes long to import is only looked for.
        """
        monkeypatch.delitem(sys.modules, "this", raising=False)
        require("this", CLUSTERS)

        assert "this" not in sys.modules
        with pytest.raises(MachineError, match="no_such_library is not installed"):
            require("no_such_library", CLUSTERS)


@pytest.mark.parametrize("name", [*PROVIDERS, *WORKLOADS])
def test_what_is_asked_for_comes_with_the_extra(name):
    """
    Libraries that providers and workloads name are those of the extra `clusters`.
    """
    libraries = {**PROVIDERS, **WORKLOADS}[name].libraries
    names = {DISTRIBUTIONS.get(library, canonicalize_name(library)) for library in libraries}

    assert names <= OF_EXTRAS[CLUSTERS]


def test_a_library_is_of_the_light_form_or_of_an_extra():
    """
    Not of both; and the extra `all` is all of them.
    """
    light = names_of(PROJECT["project"]["dependencies"])
    (everything,) = PROJECT["project"]["optional-dependencies"]["all"]

    assert not light & (OF_EXTRAS[CLUSTERS] | OF_EXTRAS["pdf"])
    assert Requirement(everything).extras == OF_EXTRAS.keys() - {"all"}
