"""
The node agent as a command of this machine.
"""

import atexit
import shutil
import sys
import tempfile

from functools import cache
from pathlib import Path

from harness.clusters.node import agent_bytes


@cache
def node_agent_path():
    """
    The agent as a file that lives as long as the tests.
    """
    folder = Path(tempfile.mkdtemp(prefix="harness-agent-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "node.pyz").write_bytes(agent_bytes())
    return folder / "node.pyz"


def node_agent(*arguments):
    """
    The command line of one verb.
    """
    return [sys.executable, "-I", "-S", str(node_agent_path()), *map(str, arguments)]
