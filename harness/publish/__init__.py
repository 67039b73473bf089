"""A comparison that can be published: a folder that a stranger can check, recompute, and repeat."""
