"""
Tests for `harness.core.evaluate.own_model`: whatever a user's model does wrong is its own affair.
"""

import signal
import time

import pytest

from harness.base.errors import DataError, ModelError
from harness.base.records.prediction import Cluster, JobConfig, JobInput
from harness.base.records.trial import Code
from harness.core.evaluate import own_model
from harness.core.evaluate.contract import example_profile, model_complaints
from harness.core.evaluate.own_code import kept_own, read_own
from harness.core.evaluate.own_model import OwnModel, scale_warning
from harness.models import MODELS
from tests.contracts.profiles import FILE, NAMES, profile_of

pytestmark = pytest.mark.process
CLUSTER = Cluster(
    num_nodes=2, map_slots_per_node=1, reduce_slots_per_node=1, map_slots=2, reduce_slots=2
)
SMALL = JobInput(input_bytes=100, num_files=1, num_splits=1, split_bytes=100.0)
# Line 5 is what predict does; all of them answer about two maps and more.
FILE_OF_MODELS = """
class Mine:
    def predict(self, profile, configuration, cluster, job_input):
        if job_input.num_splits == 1:
            {}
        return {{"body_s": 2.0 * job_input.num_splits}}
"""


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """
    A state folder where no code was ever named.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def made(tmp_path):
    """
    Makes the model of a file with this content, and ends it.
    """
    models = []

    def make(text):
        (tmp_path / "mine.py").write_text(text)
        models.append(OwnModel(read_own("mine.py:Mine", tmp_path)))
        return models[-1]

    yield make
    for model in models:
        model._finish()


def body_s(model, splits=2, profile=None):
    """
    What the model says of so many maps, or why it says nothing.
    """
    size = SMALL.model_copy(update={"num_splits": splits})
    try:
        return model.predict(profile or example_profile(), JobConfig(), CLUSTER, size).body_s
    except ModelError as error:
        return error.what


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("1 / 0", "mine.py:5: ZeroDivisionError: division by zero"),
        ("profile.costs['none']", "mine.py:5: KeyError: 'none'"),
        ("import sys; sys.exit(3)", "mine.py:5: SystemExit: 3: it ends Python"),
        ("return {'body_s': float('nan')}", "mine.py:3: predict gives body_s = nan: it should"),
        ("return {'body_s': -1}", "mine.py:3: predict gives body_s = -1: it should be greater"),
        ("return {'body_s': '12'}", "mine.py:3: predict gives body_s = '12': it should be a"),
        ("return {'job_s': float('nan')}", "mine.py:3: predict gives job_s = nan: it should"),
        ("return {'job_s': -2}", "mine.py:3: predict gives job_s = -2: it should be greater"),
        ("return {'body_s': 1, 'job_s': '2'}", "mine.py:3: predict gives job_s = '2': it should"),
        ("return {'body_s': 1, 'phases': {'m': -2}}", "mine.py:3: predict gives phases.m = -2"),
        ("return {}", "mine.py:3: predict gives neither body_s nor job_s: a dictionary is expe"),
        ("return 12.5", "mine.py:3: predict returns 12.5 alone: a dictionary is expected, as {"),
        ("return {'body_s': {1, 2}}", "mine.py:3: predict gives body_s = {1, 2}, a set: a"),
        ("return", "mine.py:3: predict returns None, as no return is reached: a dictionary is"),
        ("return (x for x in ())", "mine.py:3: predict returns a generator, as it yields: a"),
        ("return 1j", "mine.py:3: predict returns 1j alone: a dictionary is expected"),
        ("return {'body_s': 1j}", "mine.py:3: predict gives body_s = 1j, a complex: a number is"),
        ("return {'body_s': None}", "mine.py:3: predict gives neither body_s nor job_s: a dict"),
        ("return {'body_s': {'a': 1}}", "mine.py:3: predict gives body_s = {'a': 1}: it should be"),
        ("return {3: 1}", "mine.py:3: predict's answer has the key 3: a dictionary is expected"),
        ("return {'body': 1}", "mine.py:3: predict gives body = 1: there is no such field"),
        (
            "return {'body_s': 1, 'measurable': {'map_main': 1}}",
            "mine.py:3: predict gives measurable.map_main: no history shows that",
        ),
        ("open('/tmp/x', 'w')", "mine.py:5: PermissionError: a model writes no file"),
        ("import os; os.remove('/tmp/x')", "mine.py:5: PermissionError: a model writes no file"),
        ("import os; os.system('id')", "mine.py:5: PermissionError: a model writes no file"),
        ("return [0] * 10**12", "mine.py:5: MemoryError"),
    ],
)  # fmt: skip
def test_a_slip_costs_one_answer(made, does, reason):
    """
    It is named with file and line, and the next question is answered.
    """
    model = made(FILE_OF_MODELS.format(does))

    assert body_s(model, 1).startswith(reason)
    assert body_s(model) == 4.0


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("import time; time.sleep(60)", "3: no answer within 1 s: it is asked no more"),
        (
            "import os; os._exit(7)",
            "3: its process ended before it answered, with status 7: a model returns its",
        ),
        (
            "import os, sys; print('a\\nb\\nc\\nd', file=sys.stderr); os._exit(0)",
            "answer, and does not end Python; the last that it wrote: b / c / d",
        ),
        (
            "import os; os.write(2, b'of a library'); os.kill(os.getpid(), 9)",
            "killed (SIGKILL): by the system, where memory ran out; the last that it wrote",
        ),
        (
            "import ctypes; ctypes.string_at(0)",
            "mine.py:5: its process ended before it answered, by SIGSEGV, a crash in a library",
        ),
        (
            "return {'warnings': ['x' * 2**21], 'body_s': 1}",
            "3: its answer has more than 1048576 bytes: it is asked no more",
        ),
        (
            "import os, sys; os.write(int(sys.argv[1]), bytes(99))",
            "3: what came from its process is no answer",
        ),
    ],
)
def test_a_model_without_an_answer_is_asked_no_more(made, monkeypatch, does, reason):
    """
    Neither hours of time-outs nor an answer to another question.
    """
    model = made(FILE_OF_MODELS.format(does))
    assert body_s(model) == 4.0
    monkeypatch.setattr(own_model, "LIMIT_S", 1.0)

    refusal = body_s(model, 1)
    before_s = time.monotonic()

    assert refusal.startswith("mine.py:")
    assert reason in refusal
    assert body_s(model) == refusal
    assert time.monotonic() - before_s < 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "import none\nclass Mine:\n    pass",
            "mine.py:1: ModuleNotFoundError: No module named 'none': a class of your own is one",
        ),
        ("from . import none\nclass Mine:\n    pass", "mine.py:1: ImportError: attempted relative"),
        (
            "__file__\nclass Mine:\n    pass",
            "mine.py:1: NameError: name '__file__' is not defined: a",
        ),
        ("class Mine:\n    def __init__(self, x):\n        pass", "mine.py:1: TypeError: Mine."),
        ("class Mine:\n    pass", "mine.py:1: Mine has no method predict"),
    ],
)
def test_a_model_that_cannot_be_loaded(made, text, reason):
    """
    The reason is that of its file.
    """
    model = made(text)

    assert body_s(model).startswith(reason)
    assert body_s(model).startswith(reason)


def test_what_it_prints_is_no_answer(made, capfd):
    """
    Its end is kept; what it would read is nothing.
    """
    model = made(FILE_OF_MODELS.format("print('x' * 5000, open(0).read()); import os; os.system"))

    assert body_s(model, 1) == 2.0
    assert model.printed == "x" * 1998 + " \n"
    assert capfd.readouterr() == ("", "")


def test_what_it_requires(made):
    """
    A missing statistic has its name, as for a model of ours.
    """
    required = "    required = frozenset({'map_cpu_s_per_record', 'jobs', 'network_bps'})\n"
    model = made(FILE_OF_MODELS.format("pass") + required)

    assert body_s(model) == 4.0
    assert body_s(model, 2, profile_of(without={"jobs", "network_bps"})) == (
        "mine.py:7: mine needs jobs, network_bps, and the profile does not have it"
    )


@pytest.mark.parametrize(
    ("required", "reason"),
    [
        (
            "'map_s_per_record'",
            'required is one text, "map_s_per_record": a set of names is expected',
        ),
        ("3", "required is 3: a set of names is expected, as"),
        ("None", "required is None: a set of names is expected, as"),
        ("{3}", "required has 3, which is no name: a set of names is expected, as"),
        (
            "{'map_s_per_recrod'}",
            "required has map_s_per_recrod, and there is no such statistic: did",
        ),
        ("['x']", "required has x, and there is no such statistic: harness profile RUN lists all"),
    ],
)
def test_required_that_are_no_statistics(made, required, reason):
    """
    A text is no set of its letters, and a misspelt name has the one that was meant.
    """
    model = made(FILE_OF_MODELS.format("pass") + f"    required = {required}\n")

    assert body_s(model).startswith(f"mine.py:7: {reason}")


def test_required_may_be_of_the_frame_and_a_list(made):
    """
    All that a profile has can be asked for.
    """
    model = made(FILE_OF_MODELS.format("pass") + "    required = ['job_start_s', 'jobs']\n")

    assert body_s(model) == 4.0


def test_milliseconds_are_warned_of(made):
    """
    A body of so many times all profiled jobs, or so short, keeps its number and has a warning.
    """
    profile = example_profile()
    longest_s = max(job.body_s for job in profile.jobs)
    largest = max(job.input_bytes for job in profile.jobs)
    model = made(FILE_OF_MODELS.format("pass").replace("2.0 * job_input.num_splits", "1000.0"))
    size = SMALL.model_copy(update={"input_bytes": largest})

    answer = model.predict(profile, JobConfig(), CLUSTER, size)

    assert answer.body_s == 1000.0
    (warning,) = answer.warnings
    assert warning.startswith(f"body_s = 1000 is {1000 / longest_s:.0f} times as long as the")
    assert warning.endswith("are these milliseconds? body_s is in seconds")
    assert not scale_warning("body_s", 99 * longest_s, profile, size)
    assert "less than a hundredth" in scale_warning("body_s", 1e-6, profile, size)
    far_larger = size.model_copy(update={"input_bytes": 10**6 * largest})
    assert not scale_warning("body_s", 1000.0, profile, far_larger)


def test_a_model_may_give_the_whole_job(made):
    """
    Alone or beside its body; its milliseconds are warned of by the times of the profiled jobs.
    """
    profile = example_profile()
    longest_s = max(job.job_s for job in profile.jobs)
    largest = max(job.input_bytes for job in profile.jobs)
    size = SMALL.model_copy(update={"input_bytes": largest, "num_splits": 2})
    alone = made(FILE_OF_MODELS.format("pass").replace('"body_s": 2.0', '"job_s": 2000.0'))
    both = made(FILE_OF_MODELS.format("pass").replace('{"body_s"', '{"job_s": 9, "body_s"'))

    answer = alone.predict(profile, JobConfig(), CLUSTER, size)
    other = both.predict(profile, JobConfig(), CLUSTER, size)

    assert (answer.body_s, answer.job_s) == (None, 4000.0)
    (warning,) = answer.warnings
    assert warning.startswith(f"job_s = 4000 is {4000 / longest_s:.0f} times as long as the")
    assert "jobs of example which took" in warning
    assert (other.body_s, other.job_s, other.warnings) == (4.0, 9.0, ())


def test_is_given_records_and_may_correct_a_model_of_ours(made):
    """
    What a model of ours gives is a prediction of its own, but for the timeline.
    """
    model = made("""
from harness.models import MODELS
import numpy as np

class Mine:
    def predict(self, profile, configuration, cluster, job_input):
        if job_input.num_splits == 1:
            return {"body_s": np.float64(1.5), "map_waves": np.int64(2)}
        answer = MODELS["whatif"].predict(profile, configuration, cluster, job_input)
        return answer.model_copy(update={"body_s": 2 * answer.body_s})
""")
    size = SMALL.model_copy(update={"num_splits": 2})

    answer = model.predict(example_profile(), JobConfig(), CLUSTER, size)

    answer_there = MODELS["whatif"].predict(example_profile(), JobConfig(), CLUSTER, size)
    assert body_s(model, 1) == 1.5
    assert (answer.model, answer.body_s) == ("mine", 2 * answer_there.body_s)
    assert (answer.phases, answer.dataflow) == (answer_there.phases, answer_there.dataflow)


def test_contract_of_a_model(made):
    """
    What a user is told of a model that answers, and yet is none.
    """
    counting = made("""
class Mine:
    count = 0
    def predict(self, profile, configuration, cluster, job_input):
        self.count += 1
        return {"body_s": self.count}
""")
    falling = made(FILE_OF_MODELS.format("pass").replace("2.0 *", "2.0 /"))
    nothing = made(FILE_OF_MODELS.format("pass").replace("2.0 *", "0 *"))
    none = made(FILE_OF_MODELS.format("1 / 0"))

    assert [*model_complaints(counting)] == [
        "the same question gets two answers: predict keeps something, or draws numbers"
    ]
    assert [*model_complaints(falling)] == ["twice the input takes less time"]
    assert [*model_complaints(nothing)] == ["a job takes 0 s"]
    assert [*model_complaints(none)] == ["mine.py:5: ZeroDivisionError: division by zero"]


def test_example_profile_has_all_there_is():
    """
    After a new frame or test job: ``.venv/bin/python -m tests.contracts.profiles``.
    """
    profile = example_profile()
    names = {*profile.statistics, *profile.costs, *profile.frame, "jobs"}

    assert profile == profile_of()
    assert names == NAMES
    assert FILE.stat().st_size < 20_000


def test_no_process_is_left(tmp_path):
    """
    Its process ends with the model.
    """
    (tmp_path / "mine.py").write_text(FILE_OF_MODELS.format("pass"))
    model = OwnModel(read_own("mine.py:Mine", tmp_path))
    body_s(model)
    process = model._finish.peek()[2][0]

    del model

    assert process.returncode == -signal.SIGKILL


def test_code_that_only_a_run_names_is_not_run(tmp_path):
    """
    Neither by its path nor by its hash, until the user names it.
    """
    (tmp_path / "mine.py").write_text(FILE_OF_MODELS.format("pass"))
    named = Code(file="mine.py", class_name="Mine", sha256="0" * 64)

    with pytest.raises(DataError, match=r"never ran here: mine\.py:Mine, SHA-256 000"):
        kept_own(named)
    own = read_own("mine.py:Mine", tmp_path)
    (tmp_path / "mine.py").write_text("another")

    assert kept_own(own.code) == own
