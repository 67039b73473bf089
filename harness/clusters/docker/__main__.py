"""
Images on the engine of ``DOCKER_HOST``.

    python -m harness.clusters.docker                build that of a node unless it is there
    python -m harness.clusters.docker import TAG     one of a whole root, a tar on stdin
"""

import sys

from harness.base.errors import HarnessError
from harness.clusters.docker.engine import Engine
from harness.clusters.docker.image import ensure, report
from harness.clusters.hadoop_home.home import HadoopHome

try:
    engine = Engine.connect()
    if sys.argv[1:2] == ["import"]:
        tag = sys.argv[2]
        pieces = iter(lambda: sys.stdin.buffer.read(2**20), b"")
        with engine.translate_errors(f"importing {tag}"):
            engine.client.api.import_image_from_stream(
                pieces, *tag.rsplit(":", 1), changes=["ENV LANG=C.UTF-8"]
            )
        report(f"{tag} is on the engine at {engine.address}")
    else:
        report(f"ready: {ensure(engine, HadoopHome.find())}")
except HarnessError as error:
    sys.stderr.write(f"{error}\n")
    raise SystemExit(error.exit_status) from None
