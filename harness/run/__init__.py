"""Plan, check and run the trials of an experiment."""
