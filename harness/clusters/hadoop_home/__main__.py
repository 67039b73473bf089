"""
Make the Hadoop home, and say where it is.

    python -m harness.clusters.hadoop_home      (what is there already is not made again)
"""

import sys

from harness.base.errors import HarnessError
from harness.clusters.hadoop_home.setup import ensure, report

try:
    hadoop_home = ensure()
except HarnessError as error:
    sys.stderr.write(f"{error}\n")
    raise SystemExit(error.exit_status) from None
report(f"ready: Hadoop {hadoop_home.versions().hadoop} in {hadoop_home.path}")
