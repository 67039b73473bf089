"""Hosts that are reached by SSH: connections, commands, keys, and the collection of files."""
