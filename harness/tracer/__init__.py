"""The self-test of the tracer."""
