"""
The entry of the node agent.

    python -I -S node.pyz VERB ARGUMENT...

Each verb is explained at the head of its module.  Only that module is imported: a start of the
agent is paid for by every command that runs on a node.
"""

import sys

from importlib import import_module

# verb -> module and function, which is given the arguments; some become another program
VERBS = {
    "supervise": ("supervise", "main"),
    "supervise-cluster": ("supervise", "main_cluster"),
    "start": ("daemons", "start"),
    "clear": ("clear", "main"),
    "health": ("health", "main"),
    "hdfs": ("hdfs", "main"),
    "facts": ("facts", "main"),
    "sample": ("sample", "main"),
    "pack": ("evidence", "pack"),
    "dump": ("evidence", "dump"),
    "load": ("load", "main"),
    "drop-cache": ("load", "drop_cache"),
    "exec": ("wrapper", "main"),
    "join": ("wrapper", "join_groups"),
    "become": ("wrapper", "become"),
    "watch": ("watch", "main"),
    "archive": ("archive", "main"),
}


def main() -> None:
    """Do what the command line says."""
    module, function = VERBS[sys.argv[1]]
    getattr(import_module(f"{__package__}.{module}"), function)(sys.argv[2:])


if __name__ == "__main__":
    main()
