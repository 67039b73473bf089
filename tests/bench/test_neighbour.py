"""The load of others that changes a job's time: found as it was put into made-up jobs."""

import random
import subprocess
import sys

import pytest

from bench_neighbour import BURNER, SHARES, Beside, summary


def test_finds_where_times_are_off_by_two_percent():
    """
    Times that grow by 0.8 of what others use, on machines where others use 1 % anyway.
    """
    chance, jobs = random.Random(1), []
    for number in range(6):
        alone_s = chance.uniform(15, 25)
        for share in SHARES:
            job_s = alone_s * (1 + 0.8 * share / 2)
            jobs.append(Beside(number, share, job_s, 0.01 + share / 2, 0.0, ""))

    *_, slope, threshold = summary(jobs)
    assert slope == "bias per share of all cores: 0.80 (0.80 to 0.80, by rounds)"
    assert threshold.startswith("a bias of 2%: where others use 2.5%")


@pytest.mark.process
def test_a_neighbour_ends_with_its_input():
    """
    Nothing is left of it, whatever ends the benchmark.
    """
    argv = [sys.executable, "-I", "-S", "-c", BURNER, "0.05", "60"]

    assert subprocess.run(argv, stdin=subprocess.DEVNULL, timeout=30, check=False).returncode == 0
