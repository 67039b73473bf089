"""
From a profile to the settings with the shortest job: what can be set, and who chooses it.

`settings` says what can be set and why, `objective` how long a model thinks a job takes for many
settings at once, `optimizers` who searches: rules of thumb, MRTuner's four factors, a recursive
random search over any model.
"""
