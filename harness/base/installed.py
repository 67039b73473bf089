"""
What messages may name where the program is installed: a clone has more than a wheel.

A wheel has the package alone: no Makefile, no scripts, no pages and no experiments.  Whatever names
one of these passes through `by_form`, which has a text for both.
"""

from __future__ import annotations

from importlib.resources import files

PROJECT = "mapreduce-harness"  # as pip knows it
_CLONE = files("harness").joinpath("..")


def is_clone() -> bool:
    """Whether the package lies in a clone of its repository, with all that is beside it there."""
    return _CLONE.joinpath("Makefile").is_file() and _CLONE.joinpath("experiments").is_dir()


def by_form(in_clone: str, installed: str) -> str:
    """Give the text for where the program is: *in_clone*, or *installed* by pip."""
    return in_clone if is_clone() else installed


def setup_fix(target: str = "setup") -> str:
    """What to do where that is missing which set-up makes: Hadoop's jars, our own, kernels."""
    wheel = "no wheel has it: clone the repository of the harness, set it up, and run it from there"
    return by_form(f"make {target}", wheel)


def extra_fix(extra_name: str) -> str:
    """What to do where the libraries of an extra are missing."""
    return by_form(
        f"pip install '.[{extra_name}]' in a checkout of the harness, or make setup there",
        f"pip install '{PROJECT}[{extra_name}]'",
    )


def example() -> str:
    """An experiment file that is there, or what makes one."""
    return by_form("experiments/demo.yaml", "what harness init writes")


def see(page: str, text: str) -> str:
    """Give what is to be put behind a fix, that a *page* of the documentation says *text*."""
    return by_form(f"; docs/{page} {text}", "")
