"""
Commands of a test's own.
"""

import os

import pytest


@pytest.fixture
def shim(tmp_path, monkeypatch):
    """
    Put a command of the test's own before all others.
    """
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def make(name, script):
        file = folder / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    return make
