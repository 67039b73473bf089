"""The room of nights: measured, kept as a history, and judged for what moved since when."""
