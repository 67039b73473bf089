"""
The entry of the node agent.

    python -I -S node.pyz VERB ARGUMENT...

Each verb is explained at the head of its module.  Only that module is imported: a start of the
agent is paid for by every command that runs on a node.
"""

import sys

from typing import Callable, List


def main() -> None:
    """Do what the command line says."""
    if len(sys.argv) < 2:
        sys.exit("node agent: no verb")
    run(sys.argv[1], sys.argv[2:])


def run(verb: str, arguments: List[str]) -> None:
    """Run one verb; some end by `SystemExit`, or become another program."""
    act: Callable[[List[str]], None]
    if verb == "supervise":
        from .supervise import main as act
    elif verb == "supervise-cluster":
        from .local import main as act
    elif verb == "start":
        from .daemons import start as act
    elif verb == "stop":
        from .daemons import stop as act
    elif verb == "await":
        from .daemons import await_answer as act
    elif verb == "health":
        from .health import main as act
    elif verb == "deaths":
        from .health import report_deaths as act
    elif verb == "hdfs":
        from .hdfs import main as act
    elif verb == "facts":
        from .facts import main as act
    elif verb == "sample":
        from .sample import main as act
    elif verb == "pack":
        from .evidence import pack as act
    elif verb == "load":
        from .load import main as act
    elif verb == "drop-cache":
        from .load import drop_cache as act
    elif verb == "exec":
        from .wrapper import main as act
    elif verb == "join":
        from .wrapper import join_groups as act
    elif verb == "dump":
        from .evidence import dump as act
    elif verb == "archive":
        from .archive import main as act
    else:
        sys.exit(f"node agent: there is no verb {verb}")
    act(arguments)


if __name__ == "__main__":
    main()
