"""Traces to profile: dataflow statistics, and the regression that gives the costs."""
