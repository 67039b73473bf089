"""Names of the nodes, on machines with and without a file of names of their own."""

import os
import subprocess
import sys

import pytest

from tests.node_agent import node_agent_path

pytestmark = pytest.mark.process

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from node import supervise
supervise.cover_etc(sys.argv[2])
print(open("/etc/hosts").read(), end="")
"""


@pytest.mark.parametrize("own", ["touch /etc/hosts", "true"])
def test_names_cover_the_machines_own(tmp_path, own):
    """
    The cluster's names are read from /etc/hosts, also where a bare machine has no such file.
    """
    (tmp_path / "hosts").write_text("198.18.0.1 master\n")
    spaces = "-m" if os.geteuid() == 0 else "-Urm"
    script = f'mount -t tmpfs tmpfs /etc && {own} && exec "$@"'
    argv = ["unshare", spaces, "sh", "-c", script, "sh", sys.executable, "-I", "-S", "-c"]

    argv += [PROGRAM, str(node_agent_path()), str(tmp_path)]
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == "198.18.0.1 master\n", done.stderr
