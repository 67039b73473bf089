"""Profile and cell to prediction; one module or package per model."""
