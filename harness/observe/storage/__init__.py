"""Files of a run: opened, written and read in one way."""
