"""
The command line: one module per command, imported when it is called.

What commands may rely on:

- data goes to stdout, talk to stderr (`harness.cli.console.talk`);
- a `HarnessError` ends the command with its message and its class's exit status;
- a command that returns a whole number ends with it as exit status;
- SIGTERM arrives as `Terminated`, a kind of ``KeyboardInterrupt``: clean up for both in one place.
"""

try:
    from harness.cli.commands_table import COMMANDS
    from harness.cli.entry import Terminated, main
except KeyboardInterrupt:  # nothing is begun in the first tenth of a second
    raise SystemExit(130) from None

__all__ = ["COMMANDS", "Terminated", "main"]
