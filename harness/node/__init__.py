"""Programs that run inside a cluster's namespaces: standard library only, each a file by itself."""
