"""
An agent of OpenSSH for tests: keys are used through it alone.
"""

import contextlib
import subprocess
import time

LIMIT_S = 20


@contextlib.contextmanager
def agent(key, monkeypatch):
    """
    One that holds a key, known to the environment for as long as it runs.
    """
    agent_socket = key.parent / "agent"
    process = subprocess.Popen(
        ["ssh-agent", "-D", "-a", agent_socket],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + LIMIT_S
        while not agent_socket.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(agent_socket))
        subprocess.run(["ssh-add", "-q", key], check=True, capture_output=True)
        yield
    finally:
        process.kill()
        process.wait()
        agent_socket.unlink(missing_ok=True)
        monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
