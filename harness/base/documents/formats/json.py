"""JSON: everything that was computed, for scripts; `report.schema.json` is its schema."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json

from harness.base.documents.document import Document

SCHEMA_VERSION = 2


def render_json(document: Document) -> str:
    """
    One JSON document: question, answer, and the values of every section, none of them formatted.

    Numbers that are not finite become `null`, as JSON has no word for them.
    """
    values: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "question": document.question,
        "answer": {
            "headline": document.headline,
            "mark": document.mark,
            **document.facts._asdict(),
        },
        **document.values(),
    }
    for section in document.sections:
        values |= section.values()
    text = to_json(values, indent=1, inf_nan_mode="null", ensure_ascii=True, fallback=str)
    return text.decode().replace("\x7f", "\\u007f") + "\n"  # it cannot control a terminal
