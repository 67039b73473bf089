"""
Tests for `harness.core.evaluate.stored.trial_rate`.
"""

import io

from statistics import harmonic_mean

import pytest

from harness.core.evaluate.stored import trial_rate


class Files(dict):
    """
    Raw files of a trial, in memory.
    """

    def names(self):
        return list(self)

    def open(self, name):
        return io.BytesIO(self[name].encode())


def speed(*units, at_s=10):
    """
    A sample of each thread: so many units in a CPU second.
    """
    return "".join(f"{1000 * at_s} {n} {u} 1000000000\n" for n, u in enumerate(units))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"speed.txt": speed(100, 300)}, 200, id="this machine"),
        pytest.param(
            {"speed-worker1.txt": speed(100), "speed-worker2.txt": speed(300, 300)},
            harmonic_mean([100, 300]),
            id="each machine counts once, however many cores it has",
        ),
        pytest.param(
            {"speed-a.txt": speed(100), "speed-b.txt": speed(300, at_s=99)}, None,
            id="one of them was silent while the job ran",
        ),
        pytest.param({}, None, id="nothing was sampled"),
        pytest.param(
            {"speed.txt": speed(100), "containers/w/c/speed-x.txt": speed(1)}, 100,
            id="what a task has written is no sample",
        ),
    ],
)  # fmt: skip
def test_rate_of_a_trial(files, expected):
    """
    Units per CPU second, while its jobs ran, over all machines.
    """
    assert trial_rate(Files(files), 5, 15) == (expected and pytest.approx(expected))
