"""What this machine can do, and for each lack the command that repairs it."""
