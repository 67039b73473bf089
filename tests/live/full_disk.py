"""
A run whose results lie on a small disk that is filled within a trial; told as one JSON object.

    python full_disk.py FOLDER      (as root, in a mount namespace of its own)
"""

import json
import os
import subprocess
import sys

from pathlib import Path

from tests.live.runs import CLIENT, clusters, command, start, wait_for

SIZE = "64m"


def main():
    """
    Fill the disk within a trial, let the harness end; make room, and start it again.
    """
    folder = Path(sys.argv[1])
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder], check=True)
    results, log, facts = folder / "results", folder.with_name("log"), {}
    run = command("run", results)
    process = start(log, os.environ, *run)
    wait_for(lambda: list(results.glob(CLIENT)), process, log)

    fill(folder / "ballast")
    facts["status"] = process.wait(timeout=300)
    facts["talk"] = log.read_text()
    facts["states"] = states(results)
    facts["incoming"] = [str(p) for p in results.glob("smoke/*/incoming")]
    facts["clusters"] = clusters(os.environ)

    (folder / "ballast").unlink()
    facts["status then"] = subprocess.run(run, check=False, stdout=sys.stderr).returncode
    facts["states then"] = states(results)
    json.dump(facts, sys.stdout)


def fill(path):
    """
    Take all the room that there is.
    """
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return


def states(results):
    """
    How the trials on disk ended.
    """
    observed = sorted(results.glob("smoke/*/trials/*/trial.json"))
    return [json.loads(p.read_text())["state"] for p in observed]


if __name__ == "__main__":
    main()
