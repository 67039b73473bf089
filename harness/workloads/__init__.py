"""What to generate, submit and check, as commands; pure."""
