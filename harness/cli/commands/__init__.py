"""The commands of the core; each feature has its own in its room."""
