"""Plan, execute, collect, evaluate."""
