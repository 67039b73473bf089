"""The room of machines: what they cost, and how a profile is taken to another one."""
