"""
Mutations of real files give records or the one documented error, in bounded time and memory.

A failure prints the command that runs its mutation again; the shrunk input is in the message.
"""

import os

import pytest

from harness.base.errors import ParseError
from tests.hostile.hunt import SEED, Target, hunt, in_processes, made
from tests.hostile.targets import GENERATED, NAMES, STORED, targets

MADE = 20
# All long hunts share these seconds; HARNESS_HUNT_S=3600 hunts for an hour.
BUDGET_S = float(os.environ.get("HARNESS_HUNT_S", "600"))
HUNTED = [*NAMES, *STORED, *GENERATED]
# In the process ring: what a target can do in some seconds.
SHORT = dict.fromkeys([*NAMES, *STORED], 2_000) | {"experiment": 400, "override": 100}


def reported(hunts):
    """
    Findings of the *hunts* with the command that repeats each.
    """
    return [
        f"{f.times}x {f.what} at {f.where}: python -m tests.hostile.hunt {h.target} {h.seed}"
        f" {f.number} 1 (of {f.size} bytes) {f.shrunk}"
        for h in hunts
        for f in h.findings
    ]


@pytest.mark.process
@pytest.mark.parametrize(("name", "count"), SHORT.items(), ids=SHORT)
def test_some_mutations_are_read_or_refused(name, count):
    """
    Whatever is done to a file, the answer is a record that can be used, or the documented error.
    """
    with targets([name]) as (target,):
        done = hunt(target, SEED, range(count))

    assert reported([done]) == []
    assert 0 < done.read < done.count == count


@pytest.mark.process
def test_some_made_inputs_are_read_or_refused():
    """
    What a grammar makes, and no file was changed for, gets a record or the documented error, too.
    """
    with targets(GENERATED) as several:
        hunts = [hunt(target, SEED, range(MADE)) for target in several]

    assert reported(hunts) == []
    assert {done.count for done in hunts} == {MADE}


@pytest.mark.long
@pytest.mark.alone  # it has a process on each core, all the time
@pytest.mark.parametrize("name", HUNTED)
def test_many_mutations_are_read_or_refused(name, tmp_path):
    """
    The same, for the target's share of the budget, in processes with bounded memory.
    """
    share_s = BUDGET_S / len(HUNTED)
    hunts = in_processes(name, SEED, share_s, jobs=os.cpu_count() or 1, folder=tmp_path)

    assert reported(hunts) == []
    assert all(hunted.count > 0 for hunted in hunts)


def careless(data):
    """
    A reader with three faults: one value, one size, one that takes for ever.
    """
    if b"<" in data:
        raise KeyError("sharp")
    if b"for ever" in data:
        while True:
            pass
    if not data:
        raise ParseError("no text", source="x")
    return data


def of(change):
    """
    A target that reads carelessly what *change* makes.
    """
    corpus = (b"a line\n" * 50,)
    return Target("careless", corpus, careless, (ParseError,), change=change, limit_s=0.05)


class TestHunt:
    def test_finds_and_shrinks(self):
        """
        A fault is told once, with how often it was met and no more bytes than it takes.
        """
        done = hunt(of(lambda data, *_: data[:9] + b"<" + data[9:]), SEED, range(5))

        (finding,) = done.findings
        assert (finding.what, finding.times, finding.shrunk) == ("KeyError: 'sharp'", 5, "b'<'")

    def test_ends_what_takes_for_ever(self):
        """
        Time is bounded, and going beyond it is a finding.
        """
        done = hunt(of(lambda *_: b"for ever"), SEED, range(1))

        assert [f.what[:12] for f in done.findings] == ["TooSlowError"]

    def test_documented_errors_are_no_findings(self):
        """
        Refusing is an answer.
        """
        done = hunt(of(lambda *_: b""), SEED, range(3))

        assert (done.count, done.read, done.findings) == (3, 0, [])

    def test_a_number_is_always_the_same_mutation(self):
        """
        What was found can be found again.
        """
        with targets(["speed_probe"]) as (target,):
            once = [made(target, SEED, n) for n in range(50)]
            again = [made(target, SEED, n) for n in range(50)]

        assert once == again
        assert len(set(once)) > 40
