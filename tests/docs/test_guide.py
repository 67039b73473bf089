"""What the guide shows is tried: its example is a workload that tells right from wrong."""

import re
import subprocess
import sys

from pathlib import Path

import pytest

from harness.records.trial import WorkloadSpec

GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"


def source():
    """
    The module of the guide's last section.
    """
    return re.search(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)[1]


def example():
    """
    Its workload.
    """
    names = {"__name__": "guide"}
    exec(source(), names)
    return names["WordMean"]()


@pytest.mark.process
@pytest.mark.parametrize("how", ["check", "format --check"])
def test_module_of_the_guide_has_the_form_of_the_others(how):
    """
    Who puts it where the guide says can go on with ``make check``.
    """
    name = GUIDE.parents[1] / "harness" / "workloads" / "wordmean.py"
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *how.split(), "--stdin-filename", name, "-"],
        input=source(), capture_output=True, text=True, check=False, cwd=GUIDE.parents[1],
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "")


def test_workload_of_the_guide():
    """
    It accepts the numbers of its input, and no others.
    """
    workload, spec = example(), WorkloadSpec(name="wordmean", input_bytes=1000)
    sample = workload.sample(spec, [("text-00000", [b"to be or\nnot to be\n"])])

    def verdict(text):
        return workload.verdict(spec, [("part-r-00000", [text])], sample) == ""

    assert verdict(b"count\t6\nlength\t13\n")
    assert not verdict(b"count\t6\nlength\t12\n")
    assert not verdict(b"")
