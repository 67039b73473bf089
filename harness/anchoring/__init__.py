"""Anchors in time: stamps of an authority, asked for and verified, and what else a run was told."""
