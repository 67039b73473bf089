"""Figures of the report: records to SVG that follows the page's colours."""
