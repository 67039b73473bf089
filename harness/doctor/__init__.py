"""What this machine can do, and the command that fixes each problem."""
