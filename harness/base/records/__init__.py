"""The nouns of the harness, frozen: what an experiment, a trial, a trace, a profile, a score is."""
