"""The report for scripts: everything that was computed, and nothing formatted."""

from __future__ import annotations

import json
import math

from typing import Any

from harness.reports.document import Document

SCHEMA_VERSION = 1


def render_json(document: Document) -> str:
    """
    One JSON document: question, answer, and the values of every section.

    Numbers that are not finite become `null`, as JSON has no word for them.
    """
    values: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "question": document.question,
        "answer": {"headline": document.headline, "details": list(document.details)},
        **document.values(),
    }
    for section in document.sections:
        values |= section.values()
    return json.dumps(_finite(values), indent=1, sort_keys=True, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    return str(value)
