"""Makes ``node.pyz``, the node agent as one file; this module itself is not part of it."""

from __future__ import annotations

import io
import zipfile

from functools import cache
from pathlib import Path

NAME = "node.pyz"
_ENTRY = "from node.__main__ import main\n\nmain()\n"


@cache
def agent_bytes() -> bytes:
    """
    The agent as a zipapp: the same bytes for the same modules.

    Nothing is compressed, which would cost each start the import of zlib.
    """
    modules = {"__main__.py": _ENTRY.encode()}
    for module in sorted(Path(__file__).parent.glob("*.py")):
        if module.name != Path(__file__).name:
            modules[f"node/{module.name}"] = module.read_bytes()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as pyz:
        for name, source in modules.items():
            pyz.writestr(zipfile.ZipInfo(name), source)  # dated 1980
    return archive.getvalue()
