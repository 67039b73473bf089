"""Provider `local`: the nodes are namespaces, or ports, of this machine."""
