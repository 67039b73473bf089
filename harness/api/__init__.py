"""Finished runs in Python: what `harness.open` gives (docs/api.md is made from these modules)."""
