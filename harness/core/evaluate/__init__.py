"""From stored trials to predictions, scores and the data of a report."""
