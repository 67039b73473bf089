"""
Harness commands on the smoke experiment, as processes: started, waited for, killed, looked after.
"""

import contextlib
import os
import subprocess
import sys
import time

from pathlib import Path

PROJECT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-c", "import sys; from harness.cli import main; sys.exit(main())")
SMOKE = PROJECT / "experiments" / "smoke.yaml"
# Two small trials on one worker: enough where what is tested happens to the first of them.
TWO_TRIALS = (
    "--set",
    "cluster.workers=1",
    "--set",
    "workloads.0.input=[1 MiB, 2 MiB]",
    "--set",
    "predict.profile_on.input=1 MiB",
)
# Where the one trial that would feed a profile fails, or each cluster is to be started once.
MIXED = ("--set", "predict.order=mixed")
LIMIT_S = 600
CLIENT = "smoke/*/incoming/*/raw/client-0.log"


def settings(folder):
    """
    An environment in which a harness keeps its clusters apart from all others.
    """
    return {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(PROJECT)}


def command(name, results, *more, experiment=SMOKE):
    """
    One harness command on an experiment, as an argument vector.

    Tests run beside each other: none waits until the machine is quiet.
    """
    argv = [*PROGRAM, name, str(experiment), "--results-dir", str(results), *more]
    return [*argv, "--wait-quiet", "0s"] if name in ("run", "all") else argv


def start(log, environment, *arguments, **more):
    """
    A harness in the background, its talk in *log*.
    """
    with log.open("wb") as out:
        return subprocess.Popen(arguments, stdout=out, stderr=out, env=environment, **more)


def wait_for(what, process, log):
    """
    Wait until *what* is true, while *process* must run; answers what it was.
    """
    deadline = time.monotonic() + LIMIT_S
    while not (observed := what()):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    return observed


def mapping(results):
    """
    Whether the job of a trial is in its maps.
    """
    return any(b"map 0%" in p.read_bytes() for p in results.glob(CLIENT))


def clusters(environment):
    """
    Names of the clusters of which anything is left.
    """
    folder = Path(environment["XDG_STATE_HOME"]) / "mapreduce-harness" / "clusters"
    return [p.name for p in folder.iterdir() if p.is_dir()] if folder.exists() else []


def processes(environment):
    """
    Command lines of the processes that name the folder of these clusters, or were told of it.
    """
    folder, observed = environment["XDG_STATE_HOME"].encode(), []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                argv, variables = ((entry / name).read_bytes() for name in ("cmdline", "environ"))
                if folder in argv or b"XDG_STATE_HOME=" + folder in variables.split(b"\0"):
                    observed.append(argv.replace(b"\0", b" ")[:200])
    return observed


def output(environment, *arguments, limit_s=LIMIT_S):
    """
    What a harness command prints, once it has ended well.
    """
    done = subprocess.run(
        arguments, capture_output=True, text=True, env=environment, timeout=limit_s, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
