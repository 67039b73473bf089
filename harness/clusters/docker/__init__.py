"""Provider `docker`: the nodes are containers of an engine."""
