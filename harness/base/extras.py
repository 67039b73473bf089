"""
Libraries that not every installation has: those of the extras of `pyproject.toml`.

They are imported where they are used, within `extra`; a command that lacks one then says which.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from harness.base.errors import MachineError
from harness.base.installed import extra_fix
from harness.base.text import first_line

CLUSTERS = "clusters"  # what starts, reaches and stops clusters, and proves their outputs


@contextmanager
def extra(extra_name: str) -> Iterator[None]:
    """Import libraries of an extra within; `MachineError` names the one that is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "a library").partition(".")[0]
        raise missing_error(library, extra_name) from error
    except ImportError as error:
        library = (error.name or "a library").partition(".")[0]
        raise missing_error(library, extra_name, first_line(str(error))) from error


def require(library: str, extra_name: str) -> None:
    """`MachineError` where *library*, which an extra brings, is not there; it is not imported."""
    if find_spec(library) is None:
        raise missing_error(library, extra_name)


def missing_error(library: str, extra_name: str, problem: str = "") -> MachineError:
    """The error for a *library* of an extra that is not installed, or has a *problem*."""
    state = f"cannot be loaded ({problem})" if problem else "is not installed"
    return MachineError(
        f"Python's package {library} {state}: it comes with the extra '{extra_name}'",
        where="Python packages",
        fix=extra_fix(extra_name),
    )
