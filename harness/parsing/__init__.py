"""Text to records; one module per source."""
