"""Predictions and traces to scores."""
