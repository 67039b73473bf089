"""What the guide shows is tried: its example is a workload that tells right from wrong."""

import re

from pathlib import Path

from harness.records.trial import WorkloadSpec

GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"


def example():
    """
    The workload of the guide's last section.
    """
    source = re.search(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)[1]
    names = {"__name__": "guide"}
    exec(source, names)
    return names["WordMean"]()


def test_workload_of_the_guide():
    """
    It accepts the numbers of its input, and no others.
    """
    workload, spec = example(), WorkloadSpec(name="wordmean", input_bytes=1000)
    sample = workload.sample(spec, [("text-00000", [b"to be or\nnot to be\n"])])

    def verdict(text):
        return workload.verdict(spec, [("part-r-00000", [text])], sample).right

    assert verdict(b"count\t6\nlength\t13\n")
    assert not verdict(b"count\t6\nlength\t12\n")
    assert not verdict(b"")
