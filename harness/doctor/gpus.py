"""GPUs, and what GPU workloads can compute on."""

from __future__ import annotations

import re
import shutil

from zipfile import BadZipFile, ZipFile

from harness.doctor.asking import first_line, output, run
from harness.doctor.finding import Finding
from harness.errors import MachineError
from harness.hadoop_home.home import job_jar
from harness.providers.gpus import LIBRARY, driver_file
from harness.workloads.base import GPU

_KERNELS = {"cpu": "processors", "cuda": "CUDA devices"}


def gpu() -> Finding:
    """GPUs by their driver, and the driver's library, without which no task can use them."""
    file = driver_file(run(["ldconfig", "-p"]).stdout)
    driver = f"driver file {file}" if file else f"no driver file {LIBRARY}"
    if shutil.which("nvidia-smi") is None:
        return Finding("gpu", "note", f"none: no nvidia-smi; {driver}")
    asked = "--query-gpu=name,memory.total,driver_version"
    done = run(["nvidia-smi", asked, "--format=csv,noheader"])
    if done.returncode != 0:
        said = first_line(done.stdout or done.stderr)
        return Finding("gpu", "note", f"nvidia-smi fails: {said}; {driver}", "nvidia-smi")
    devices = "; ".join(done.stdout.strip().splitlines())
    return Finding("gpu", "ok" if file else "note", f"{devices}; {driver}")


def cuda() -> Finding:
    """The CUDA compiler."""
    said = output(["nvcc", "--version"]) if shutil.which("nvcc") else ""
    release = re.search(r"release (\S+?),", said)
    if release is None:
        return Finding(
            "cuda", "note", "no nvcc on PATH; make cuda brings one of its own", "make cuda"
        )
    return Finding("cuda", "ok", f"nvcc {release[1]}")


def kernels() -> Finding:
    """What GPU workloads can compute on, by the libraries in their jar."""
    try:
        with ZipFile(job_jar(GPU)) as jar:
            packed = [name for name in jar.namelist() if name.endswith(".so")]
    except MachineError as error:
        return Finding("gpu workloads", "note", error.what, error.fix)
    except (OSError, BadZipFile) as error:
        return Finding("gpu workloads", "note", f"their jar cannot be read: {error}", "make setup")
    kinds = [what for kind, what in _KERNELS.items() if any(f"-{kind}.so" in n for n in packed)]
    if not kinds:
        what = "no library is built: GPU workloads run nowhere"
        return Finding("gpu workloads", "note", what, "apt-get install -y g++, then: make setup")
    return Finding("gpu workloads", "ok", f"built for {' and '.join(kinds)}")
