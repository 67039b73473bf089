"""Settings of all tests, and what keeps the fast ring fast."""

import atexit
import gc
import os
import signal
import sys

from pathlib import Path

import pytest

from _pytest.nodeid import NodeId
from hypothesis import settings

from tests.expected import pytest_runtest_makereport  # noqa: F401  (a hook)

# A shell's background job is started with these signals ignored, and whoever waits for one waits
# for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Other work on the machine, and the first import of a large library, are no fault of an example.
settings.register_profile("fast", deadline=None, max_examples=20)
settings.register_profile("thorough", deadline=None, max_examples=100)
settings.load_profile("fast")  # another one: pytest --hypothesis-profile thorough

gc.disable()  # until all is collected: millions of objects come, and none goes

SLOW_RINGS = ("process", "live", "long")
STARTS_A_PROCESS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
DRAWS = "matplotlib"

# Files of the live ring that take minutes.
LONGEST = (
    "live/test_docker", "live/test_ansible", "live/test_existing",
    "live/test_tracer", "live/test_experiment", "contracts/test_outside", "live/test_faults",
)  # fmt: skip

# What several files of the live ring have in common, and no two tests may use at once, by words of
# their names: the data of a private Docker engine, and ports of this machine that look free.
SHARED = {"docker": "the engine", "existing": "ports", "ports": "ports", "namespaces": "ports"}

# All tests of a session, those too that its marks deselect.
COLLECTED = pytest.StashKey[list[pytest.Item]]()

running_fast_tests = []
flush_to_disk = os.fsync


def refuse_slow_work(event, arguments):
    """
    An audit hook: fail the fast test that starts a process or draws. The failure is no `Exception`,
    so that no code under test takes it for an answer.
    """
    if not running_fast_tests:
        return
    if event in STARTS_A_PROCESS or (event == "import" and arguments[0] == DRAWS):
        pytest.fail(f"{event} {arguments[0]!r:.80} in a test of the fast ring: mark it `process`")


sys.addaudithook(refuse_slow_work)


@pytest.fixture(autouse=True, scope="session")
def _no_ledger():
    """
    What tests measure, copy and cut is in no ledger of this machine (tests/store/test_ledger.py).
    """
    from harness.core.store import ledger

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "ledger_file", lambda: Path("/nonexistent/runs.jsonl"))
        yield


@pytest.fixture(scope="session", autouse=True)
def ranked_all_the_same():
    """
    Models are ranked whatever they miss of what they learnt from: the recorded jobs of the tests
    have a frame that is longer than they are. Tests of what is missed put the function back.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.core.evaluate.predict.in_sample_miss", lambda *_: None)
        yield


def refuse_closed_file(handle):
    """
    All of `os.fsync` that a test in this process can see: it ends before any power cut, and need
    not wait for a disk.
    """
    os.fstat(handle)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """
    Watch each test of the fast ring, its fixtures included; only real clusters wait for a disk.
    """
    if not any(item.get_closest_marker(ring) for ring in SLOW_RINGS):
        running_fast_tests.append(item.nodeid)
    if not item.get_closest_marker("live"):
        os.fsync = refuse_closed_file
    try:
        return (yield)
    finally:
        running_fast_tests.clear()
        os.fsync = flush_to_disk


def pytest_collection_finish():
    """
    What was collected stays to the end: the collector of garbage need not look at it again.
    """
    gc.enable()
    gc.set_threshold(20_000, 20, 20)  # tests make much, and keep little of it
    gc.freeze()
    atexit.register(gc.unfreeze)


def companions(item):
    """
    Name of the tests that one worker runs with this one (``--dist loadgroup``): they use the same
    thing of this machine, or share a cluster or hosts of their module. Empty for a test that can
    run beside all others.
    """
    for word, group in SHARED.items():
        if word in item.nodeid:
            return group
    fixtures = item._fixtureinfo.name2fixturedefs.values()
    if all(fixture[-1].scope != "module" for fixture in fixtures):
        return ""
    case = item.callspec.params.get("maker", "") if hasattr(item, "callspec") else ""
    return f"{item.path.stem} {case}"


def gather(item, group):
    """
    Name the group of a test at the end of its id, by which ``--dist loadgroup`` keeps it together.

    xdist 3.8 does so for its marks, by an attribute that pytest has no longer from 9.2 on: then
    its groups fall apart without a word, and three engines start on the same data.
    """
    if item.config.getoption("loadgroup", default=False):
        item._id = NodeId.parse(f"{item.nodeid}@{group}")
        assert item.nodeid.endswith(f"@{group}"), "pytest keeps ids in another place"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session, items):
    """
    Put the longest files of the live ring first, so that its workers end at about one time; tell
    them which tests belong together.
    """
    for item in items:
        is_grouped = item.get_closest_marker("live") or item.get_closest_marker("long")
        if is_grouped and (group := companions(item)):
            gather(item, group)
    session.stash[COLLECTED] = list(items)
    places = {f"{stem}.py": place for place, stem in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get("/".join(item.path.parts[-2:]), len(places)))
