"""An experiment file: read, checked, and expanded to its cells and trials."""
