"""Vet in reports: how much of the finished tasks' time was overhead."""

from harness.reports.vet.document import vet_document
from harness.reports.vet.figures import vet_figures
from harness.reports.vet.tables import repeats_table, vet_table
from harness.reports.vet.texts import drawn_text, vet_texts

__all__ = ["drawn_text", "repeats_table", "vet_document", "vet_figures", "vet_table", "vet_texts"]
