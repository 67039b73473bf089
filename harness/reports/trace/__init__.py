"""What happened inside tasks, shown: a waterfall in the terminal, a file for Perfetto."""

from __future__ import annotations

from harness.reports.trace.chrome import chrome_events
from harness.reports.trace.rows import Row, rows
from harness.reports.trace.waterfall import render_task, render_tasks

__all__ = ["Row", "chrome_events", "render_task", "render_tasks", "rows"]
