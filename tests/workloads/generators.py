"""
Bytes of our generators without a cluster, and their chances, computed the slow, obvious way.
"""

import subprocess

from functools import cache

from harness.clusters.hadoop_home.home import SOURCE, job_jar
from harness.clusters.workloads.base import JOBS

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
SHOW = "mapreduce.harness.jobs.generate.Show"


def printed(content, *, seed=1, first=0, count=1, jar=JOBS, properties=None):
    """
    Bytes of *count* records of the class *content*, from number *first* on.
    """
    options = (f"-D{name}={value}" for name, value in (properties or {}).items())
    return _shown(jar, *options, content, str(seed), str(first), str(count))


@cache
def _shown(jar, *arguments):
    path = f"{job_jar(jar)}:{SOURCE / 'home' / 'path.jar'}"
    argv = ["java", "-XX:TieredStopAtLevel=1", "-cp", path, SHOW, *arguments]
    return subprocess.run(argv, capture_output=True, check=True, timeout=60).stdout


def _mix(z):
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


def draws(seed, number):
    """
    SplitMix64 from the point that (seed, number) names: 64 bits at a time.
    """
    state = _mix((_mix((seed + GOLDEN) & MASK) + number * GOLDEN) & MASK)
    while True:
        state = (state + GOLDEN) & MASK
        yield _mix(state)


def below(chances, bound):
    """
    A whole number from 0 to *bound* - 1.
    """
    return (next(chances) >> 32) * bound >> 32


@cache
def zipf_words():
    """
    Words of the Zipf text from the most to the least frequent.
    """
    vocabulary, chances = {}, draws(20_000, 0)
    while len(vocabulary) < 20_000:
        number = next(chances)
        form = ("cvc", "cvcv", "cvcvc", "cvcvcv")[number & 3]
        letters = ("bdfghjklmnprstvz" if kind == "c" else "aeiou" for kind in form)
        word = "".join(a[(number >> 8 * i & 255) % len(a)] for i, a in enumerate(letters, 1))
        vocabulary[word] = None
    return list(vocabulary)
