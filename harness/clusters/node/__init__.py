"""
The node agent: our one program on a node, copied there as ``node.pyz``.

Its modules import the standard library and each other, nothing else of the harness, and run on
Python 3.6 and newer.  This one, which makes the file, is empty there.
"""

from __future__ import annotations

import io
import zipfile

from functools import cache
from pathlib import Path

NAME = "node.pyz"


@cache
def agent_bytes() -> bytes:
    """The agent as a zipapp, of the same bytes for the same modules; zlib would slow each start."""
    modules = {
        "__main__.py": b"from node.__main__ import main\n\nmain()\n",
        "node/__init__.py": b"",
    }
    for module in sorted(Path(__file__).parent.glob("*.py")):
        modules.setdefault(f"node/{module.name}", module.read_bytes())
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as pyz:
        for name, source in modules.items():
            pyz.writestr(zipfile.ZipInfo(name), source)  # dated 1980
    return archive.getvalue()
