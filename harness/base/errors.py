"""
Every error the harness raises on purpose.

A message has three parts: what is wrong, with the offending value; where it was
found; and what the reader can do next.  Code that raises fills in the parts;
only this module lays them out.  Each class carries the exit status of the
command line; ``docs/reference.md`` lists them.
"""

from __future__ import annotations


class HarnessError(Exception):
    """Base class: catching it catches everything the harness foresees."""

    exit_status = 70

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        """Take the three parts; `where` and `fix` may be empty."""
        self.what = what
        self.where = where
        self.fix = fix
        parts = [what]
        if where:
            parts.append(f"  at:  {where}")
        if fix:
            parts.append(f"  fix: {fix}")
        super().__init__("\n".join(parts))


class SpecError(HarnessError):
    """The experiment file or the command asks for something that cannot be run."""

    exit_status = 2


class MachineError(HarnessError):
    """This machine lacks something that the command needs."""

    exit_status = 3


class ClusterError(HarnessError):
    """A cluster did not reach, or did not keep, the state it was asked for."""

    exit_status = 4


class JobError(HarnessError):
    """A Hadoop job failed, ran out of its time, or gave a wrong result."""

    exit_status = 5


class DataError(HarnessError):
    """The stored results lack what the command needs, or do not agree with their seal."""

    exit_status = 7


class UnmetError(HarnessError):
    """What was asked to hold does not: nothing is wrong with the files, nor with the command."""

    exit_status = 1


class EvidenceError(DataError):
    """Stored results are not as they were measured or sealed: changed, missing or added."""


class ParseError(HarnessError):
    """A text is not in the format that it should have."""

    exit_status = 7

    def __init__(
        self,
        what: str,
        *,
        source: str,
        line: int | None = None,
        byte: int | None = None,
        fix: str = "",
    ) -> None:
        """Name the text by *source* (a file name), and its 1-based *line* or *byte* from 0."""
        self.source = source
        self.line = line
        self.byte = byte
        where = source if line is None else f"{source}:{line}"
        super().__init__(what, where=where if byte is None else f"{where}, byte {byte}", fix=fix)


class ModelError(HarnessError, ValueError):
    """A model was asked for something that its equations do not cover."""

    exit_status = 2


class MissingStatistic(ModelError):  # noqa: N818 - the name that the models' contract gives it
    """A profile lacks statistics that a model requires."""

    exit_status = 7

    def __init__(self, *names: str, model: str, workload: str = "") -> None:
        """Name the missing statistics of *model*."""
        self.names = names
        self.model = model
        super().__init__(
            f"{model} needs {', '.join(names)}, and the profile does not have it",
            where=f"profile of {workload!r}" if workload else "profile",
            fix="profile more cells (predict.profile_on), or leave this model out (predict.models)",
        )
