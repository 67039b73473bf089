"""What happened inside the tasks of a job, as the report shows it."""

from __future__ import annotations

from harness.reports.inside.choice import chosen, lost, typical
from harness.reports.inside.parts import Bar, TaskParts, bars, task_parts

__all__ = ["Bar", "TaskParts", "bars", "chosen", "lost", "task_parts", "typical"]
