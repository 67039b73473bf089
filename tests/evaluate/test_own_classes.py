"""
Classes of a user's own: how they are named, found, kept, and what is said of their slips.
"""

import os
import resource
import threading

from multiprocessing.connection import Connection
from os import close, dup

import pytest

from harness.base.errors import DataError, ModelError, SpecError
from harness.base.records.prediction import Cluster, JobConfig, JobInput
from harness.base.records.profile import Profile, Statistic
from harness.base.records.trial import Code, WorkloadSpec
from harness.clusters.workloads.base import Workload
from harness.core.evaluate import own_code, own_model
from harness.core.evaluate.own_code import (
    OwnCode,
    is_own_model,
    kept_own,
    own_workload,
    read_own,
)
from harness.core.evaluate.own_model import OwnModel

MINE = """
import sys

class Other:
    pass

class Mine:
    name = "mine-so-far"
    other = 3

    def predict(self, profile, configuration, cluster, job_input):
        return self.answer(job_input.num_splits)

    def answer(self, splits):
        return {"body_s": 2.0 * splits}
"""


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """
    A state folder where no code was ever named.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def own(tmp_path):
    """
    Writes a file of this content, and reads its class.
    """

    def read(text, class_name="Mine"):
        (tmp_path / "mine.py").write_text(text)
        return read_own(f"mine.py:{class_name}", tmp_path)

    return read


def parts_of(caught):
    """
    The three parts of the error that was caught.
    """
    return (caught.value.what, caught.value.where, caught.value.fix)


class TestFinding:
    def test_a_class_is_named_by_itself_or_by_its_name(self, own):
        """
        A constant text alone is a name; without one it is that of the class in small letters.
        """
        assert own(MINE).name == "mine-so-far"
        assert own(MINE, "Other").name == "other"
        assert own("class Mine:\n    name = 3\n    name2 = 'x'\n").name == "mine"

    def test_its_functions_have_their_lines(self, own):
        """
        The class itself has one as well; those of other classes are not its own.
        """
        assert own(MINE).lines == {"": 7, "predict": 11, "answer": 14}
        assert own(MINE, "Other").lines == {"": 4}

    def test_nothing_of_it_is_run(self, own):
        """
        Whatever the file would do.
        """
        read = own("raise SystemExit\nclass Mine:\n    pass\n")

        assert (read.code.file, read.code.class_name) == ("mine.py", "Mine")

    def test_what_was_named_is_kept_as_it_was(self, own, tmp_path):
        """
        By its hash; a later file of the name is another one.
        """
        first = own(MINE)
        second = own(MINE.replace("2.0", "3.0"))

        assert kept_own(first.code) == first
        assert kept_own(second.code) == second
        assert first.code.sha256 != second.code.sha256

    def test_a_home_is_that_of_the_user(self, tmp_path, monkeypatch):
        """
        A path from there needs no folder.
        """
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / "mine.py").write_text(MINE)

        assert read_own("~/mine.py:Mine").code.file == "mine.py"

    @pytest.mark.parametrize("text", ["none.py:Mine", "none.py", ":Mine", "a\0b:C"])
    def test_a_path_that_is_none_is_refused(self, tmp_path, text):
        """
        With how to write one.
        """
        if "\0" in text:
            with pytest.raises((SpecError, ValueError)):
                read_own(text, tmp_path)
            return
        with pytest.raises(SpecError) as caught:
            read_own(text, tmp_path)
        what, where, fix = parts_of(caught)
        assert what.startswith(f"'{text}' is no class in a file: ")
        assert where == str(tmp_path / (text.rpartition(":")[0] or text))
        assert (
            fix == "write ./mine.py:Mine, relative to the experiment file (to here, in an option)"
        )

    def test_a_file_that_is_no_text_is_refused(self, tmp_path):
        """
        With the reason of its decoding.
        """
        (tmp_path / "mine.py").write_bytes(b"\xff\xff")

        with pytest.raises(SpecError, match=r"'mine\.py:A' is no class in a file: 'utf-8' codec"):
            read_own("mine.py:A", tmp_path)

    def test_a_file_that_is_not_python_is_refused_at_its_line(self, own):
        """
        As Python says it.
        """
        with pytest.raises(SpecError) as caught:
            own("class Mine:\n    pass\n  x = (\n")
        assert caught.value.what.startswith("mine.py:3: not Python: unindent")
        with pytest.raises(SpecError, match="not Python: source code string cannot contain null"):
            own("class Mine: pass\0")

    def test_a_class_that_is_not_there_may_be_meant_otherwise(self, own):
        """
        The nearest name is asked for.
        """
        with pytest.raises(SpecError) as caught:
            own(MINE, "Mien")
        assert parts_of(caught) == ("mine.py has no class 'Mien'", "mine.py", "did you mean Mine?")

    def test_a_file_without_a_class_offers_none(self, own):
        """
        It says so, and where one is shown.
        """
        with pytest.raises(SpecError) as caught:
            own("x = 1\n")
        fix = "write one into it: the file defines no class; docs/own-model.md shows one"
        assert parts_of(caught) == ("mine.py has no class 'Mine'", "mine.py", fix)

    def test_a_path_alone_is_told_its_class(self, tmp_path):
        """
        Nobody has named one, and the path is none.
        """
        (tmp_path / "mine.py").write_text("class Mine:\n    pass\n")
        with pytest.raises(SpecError) as caught:
            read_own("mine.py", tmp_path)

        assert parts_of(caught) == ("no class of mine.py is named", "mine.py", "write mine.py:Mine")

    def test_what_a_stored_run_names_is_not_read(self, tmp_path):
        """
        It may come from anybody.
        """
        (tmp_path / "mine.py").write_text(MINE)
        (tmp_path / "manifest.json").write_text("{}")

        with pytest.raises(SpecError) as caught:
            read_own("mine.py:Mine", tmp_path)
        assert parts_of(caught) == (
            "'mine.py:Mine' is named by the experiment of a stored run, and is not run",
            str(tmp_path),
            "name the run's folder, or a file of your own",
        )

    def test_code_that_was_never_named_here_is_refused(self):
        """
        With what would trust it.
        """
        with pytest.raises(DataError) as caught:
            kept_own(Code(file="a.py", class_name="A", sha256="0" * 64))
        assert parts_of(caught) == (
            f"the run names code that never ran here: a.py:A, SHA-256 {'0' * 64}",
            "the run's plan and manifest",
            (
                "read that file, and if you trust it: harness check PATH/a.py:A;"
                f" a bundle may have it beside the run, as code/{'0' * 64}.py"
            ),
        )


class TestKinds:
    def test_of_a_class_are_read_from_its_file(self, own):
        """
        What it inherits there is its own; nothing of it is run.
        """
        inherited = own("class Base:\n    def predict(self): ...\nclass Mine(Base):\n    pass\n")
        assigned = own("class Mine:\n    predict = lambda *_: 1\n")

        assert (inherited.lines, inherited.is_derived) == ({"": 3, "predict": 2}, False)
        assert is_own_model(inherited)
        assert is_own_model(assigned)
        assert not is_own_model(own("class Mine:\n    pass\n"))

    def test_of_one_with_another_base_are_seen_when_it_is_loaded(self, own):
        """
        A model of ours may be its base, as a workload may.
        """
        model = "from harness.models.scaling import Scaling\nclass Mine(Scaling):\n    pass\n"

        assert is_own_model(own(model))
        assert not is_own_model(own(WORKLOAD))

    def test_are_asked_for_predict(self, own):
        """
        With the function that was meant for it, and what to write.
        """
        with pytest.raises(SpecError) as caught:
            own("class Mine:\n    def predcit(self): ...\n").require_predict()
        assert parts_of(caught) == (
            "mine.py:1: Mine has no method predict: line 2 has predcit",
            "mine.py",
            f"write {own_code.PREDICT}; docs/own-model.md builds one from an empty file",
        )
        own("from x import Base\nclass Mine(Base): ...\n").require_predict()


class TestSlips:
    def raised(self, read):
        """
        What the class raises where it is loaded.
        """
        with pytest.raises(BaseException) as caught:
            read.load()
        return caught.value

    def test_have_the_line_where_they_were_raised(self, own):
        """
        The innermost of the user's own.
        """
        read = own("def f():\n    return 1 / 0\n\nclass Mine:\n    x = f()\n")

        assert read.slip(self.raised(read)) == "mine.py:2: ZeroDivisionError: division by zero"

    def test_have_that_of_their_function_where_they_are_told(self, own):
        """
        Of one that the class lacks it is that of the class.
        """
        read = own(MINE)

        assert read.slip("it is wrong") == "mine.py:11: it is wrong"
        assert read.slip("it is wrong", "answer") == "mine.py:14: it is wrong"
        assert read.slip("it is wrong", "none") == "mine.py:7: it is wrong"
        assert read.slip(ValueError("x"), "answer") == "mine.py:14: ValueError: x"

    def test_of_a_misspelt_statistic_name_the_one_that_was_meant(self, own):
        """
        Where it is used; one that a profile may lack belongs into `required`.
        """
        read = own(MINE)
        at = "mine.py:14: KeyError"

        assert read.slip(KeyError("map_s_per_recrod"), "answer") == (
            f"{at}: 'map_s_per_recrod': there is no such statistic: did you mean map_s_per_record?"
        )
        assert read.slip(KeyError("map_s_per_record"), "answer").startswith(
            f"{at}: 'map_s_per_record': a profile has what its jobs show, and may lack this: "
        )
        assert read.slip(KeyError("mine"), "answer") == f"{at}: 'mine'"
        assert read.slip(KeyError(3), "answer") == f"{at}: 3"

    def test_of_ours_have_their_words_alone(self, own):
        """
        And are cut where they are long.
        """
        read = own(MINE)

        assert read.slip(DataError("no", fix="f")) == "mine.py:11: no"
        assert len(read.slip("x" * 1000)) == 500

    def test_become_errors_of_the_experiment(self, own):
        """
        But those that the harness raised itself.
        """
        read = own(MINE)
        for error in (ValueError("x"), SystemExit(3)):
            with (
                pytest.raises(SpecError, match=r"^mine\.py:14: (ValueError|SystemExit): [x3]"),
                read.named_slips("answer"),
            ):
                raise error
        with pytest.raises(DataError, match=r"^no$"), read.named_slips():
            raise DataError("no")


WORKLOAD = """
from harness.clusters.workloads.wordcount import WordCount

class Mine(WordCount):
    name = "counts-of-mine"

    def plan_input(self, spec, block_bytes):
        raise ValueError("no plan")

class Not:
    pass
"""


class TestWorkloads:
    def test_have_the_name_that_they_give_themselves(self, own):
        """
        And what they inherit; a slip in a function has its line.
        """
        read = own(WORKLOAD)
        workload = own_workload(read.code)
        spec = WorkloadSpec(name="counts-of-mine", input_bytes=100)

        assert isinstance(workload, Workload)
        assert workload.name == "counts-of-mine"
        assert workload.submit(spec, "in", "out")
        with pytest.raises(SpecError, match=r"^mine\.py:8: ValueError: no plan$"):
            workload.plan_input(spec, 1)
        assert own_workload(read.code) is workload

    def test_are_of_their_kind(self, own):
        """
        Another class is refused at its line.
        """
        with pytest.raises(SpecError) as caught:
            own_workload(own(WORKLOAD, "Not").code)
        assert caught.value.what == (
            "mine.py:10: Not has no method predict,"
            " and is no subclass of harness.clusters.workloads.base.Workload"
        )


RETURNS = """
from harness.clusters.workloads.base import EXAMPLES, InputPlan, JobCommand
from harness.clusters.workloads.wordcount import WordCount

class Mine(WordCount):
    def {function}(self, spec, *given):
        return {answer}
"""
JOBS = 'jobs are expected, as (JobCommand(EXAMPLES, (input_uri, output_uri), "wordmean"),)'


class TestReturns:
    @pytest.mark.parametrize(
        ("function", "answer", "complaint"),
        [
            ("submit", "['hadoop', 'jar']", "['hadoop', 'jar'], a list: that is a command's words"),
            ("submit", "'hadoop jar'", f"'hadoop jar': {JOBS}"),
            ("submit", "None", f"None, no return is reached: {JOBS}"),
            ("submit", "()", f"(), a tuple: that is no job, and {JOBS}"),
            ("plan_input", "[1, 2]", "[1, 2], a list: an InputPlan is expected"),
            ("properties", "{'a': 1}", "{'a': 1}, a dict: a property is a text, as \"1\""),
            ("properties", "['a=1']", "['a=1'], a list: properties are expected as"),
            ("jobs", "'two'", "'two': a number of jobs is expected, or None"),
            ("jobs", "0", "0: a number of jobs is expected, or None"),
            ("sample", "{'a': {1}}", "{'a': {1}}, a dict: a dictionary is expected, of texts and"),
            ("sample", "[]", "[], a list: a dictionary is expected, of texts and numbers,"),
            ("complaint", "True", "True: a text is expected, of what is wrong with"),
        ],
    )  # fmt: skip
    def test_of_another_kind_are_slips_of_their_function(self, own, function, answer, complaint):
        """
        Wherever they are asked for: what would be done with them fails far from there.
        """
        workload = own_workload(own(RETURNS.format(function=function, answer=answer)).code)
        given = {"properties": 0, "jobs": 0, "plan_input": 1, "sample": 1}.get(function, 2)
        spec = WorkloadSpec(name="mine", input_bytes=100)

        with pytest.raises(SpecError) as caught:
            getattr(workload, function)(spec, *["in"] * given)
        assert caught.value.what.startswith(f"mine.py:6: {function} returns {complaint}")

    @pytest.mark.parametrize(
        ("answer", "complaint"),
        [
            ("JobCommand(EXAMPLES, ())", "that is one job, and jobs are expected"),
            ("(JobCommand(EXAMPLES, 'in'),)", "the arguments of a job are texts in a tuple"),
            ("(JobCommand(EXAMPLES, (3,)),)", "the arguments of a job are texts in a tuple"),
        ],
    )
    def test_of_one_job_say_what_of_it_is_wrong(self, own, answer, complaint):
        """
        A text's letters are no arguments.
        """
        workload = own_workload(own(RETURNS.format(function="submit", answer=answer)).code)

        with pytest.raises(SpecError, match=complaint):
            workload.submit(WorkloadSpec(name="mine", input_bytes=100), "in", "out")

    def test_that_are_right_are_given_on(self, own):
        """
        A list of jobs is as good as a tuple.
        """
        text = RETURNS.format(function="submit", answer="[JobCommand(EXAMPLES, given)]")
        workload = own_workload(own(text).code)

        (job,) = workload.submit(WorkloadSpec(name="mine", input_bytes=100), "in", "out")
        assert job.arguments == ("in", "out")

    @pytest.mark.parametrize(
        ("line", "complaint"),
        [
            ("uses_combiner = 'yes'", "uses_combiner is 'yes': True or False is expected"),
            ("parameters = {'a': 1}", "parameters is {'a': 1}, a dict: a dictionary is expected"),
            ("sizes = (1, 2)", "ValueError: zip"),
        ],
    )
    def test_attributes_are_slips_of_the_class(self, own, line, complaint):
        """
        They are looked at when it is made.
        """
        text = RETURNS.format(function="jobs", answer="1").replace(
            "    def", f"    {line}\n    def"
        )

        with pytest.raises(SpecError, match=rf"^mine\.py:\d+: {complaint}"):
            own_workload(own(text).code)


class Thread:
    """
    Stands for the process of a model: answers its questions in a thread.
    """

    def __init__(self, argv, *, pass_fds, **_):
        assert argv[-1] == str(pass_fds[0])
        self.pipe = Connection(dup(pass_fds[0]))
        self.thread = threading.Thread(target=self.answer)
        self.thread.start()

    def answer(self):
        """
        Until there are no more questions.
        """
        try:
            own_model._answer_questions(self.pipe)
        except (EOFError, OSError):
            pass
        finally:
            self.pipe.close()

    def kill(self):
        """
        It ends with its pipe.
        """

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


CLUSTER = Cluster(
    num_nodes=2, map_slots_per_node=1, reduce_slots_per_node=1, map_slots=2, reduce_slots=2
)
STATISTIC = Statistic(value=1.5, count=1, spread=0.0, source="")
PROFILE = Profile(workload="sort", costs={"map_cpu_s_per_record": STATISTIC})


@pytest.fixture
def model(own, monkeypatch):
    """
    Makes the model of a file's class, beside this test.
    """
    models = []
    for name in ("resource.setrlimit", "signal.signal", "sys.addaudithook"):
        monkeypatch.setattr(f"harness.core.evaluate.own_model.{name}", lambda *_: None)
    monkeypatch.setattr(own_model.sys, "stdout", own_model.sys.stdout)
    monkeypatch.setattr(own_model.sys, "stderr", own_model.sys.stderr)
    monkeypatch.setattr(own_model.subprocess, "Popen", Thread)

    def make(text):
        models.append(OwnModel(own(text)))
        return models[-1]

    yield make
    for each in models:
        each._finish()


def asked(model, splits=3, profile=PROFILE):
    """
    The model's answer about so many maps, or why there is none.
    """
    job_input = JobInput(
        input_bytes=300, num_files=1, num_splits=splits, split_bytes=300 / splits, replication=2
    )
    try:
        return model.predict(profile, JobConfig(num_reduces=4), CLUSTER, job_input)
    except ModelError as error:
        return error.what


class TestAnswers:
    def test_are_predictions_of_its_name(self, model):
        """
        With all that is a model's to give.
        """
        mine = model(MINE)
        answer = asked(mine)

        assert (mine.name, mine.required, mine.description) == (
            "mine-so-far",
            frozenset(),
            "your own",
        )
        assert (answer.model, answer.body_s, answer.job_s) == ("mine-so-far", 6.0, None)
        assert asked(mine, 5).body_s == 10.0

    def test_know_what_was_asked(self, model):
        """
        Profile, configuration, cluster and input, as records of ours; no refits.
        """
        text = MINE.replace(
            "return self.answer(job_input.num_splits)",
            'return {"body_s": profile.costs["map_cpu_s_per_record"].value,'
            ' "map_waves": configuration.num_reduces, "reduce_waves": cluster.map_slots,'
            ' "map_task_s": job_input.replication, "warnings": [profile.workload],'
            ' "phases": {"a": len(profile.refits)}, "dataflow": {"b": True, "c": [1, 2]}}',
        )
        answer = asked(model(text), profile=PROFILE.model_copy(update={"refits": (PROFILE,)}))

        assert (answer.body_s, answer.map_waves, answer.reduce_waves) == (1.5, 4.0, 2.0)
        assert (answer.map_task_s, answer.warnings) == (2.0, ("sort",))
        assert (answer.phases, answer.dataflow) == ({"a": 0.0}, {"b": True, "c": [1, 2]})

    def test_may_be_a_prediction_with_numbers_of_numpy(self, model):
        """
        What JSON cannot hold becomes a number.
        """
        text = MINE.replace("return self.answer", "return self.made").replace(
            "def answer(self, splits):",
            "def made(self, splits):\n        import numpy\n        from "
            "harness.base.records.prediction import Prediction\n        if splits > 3:\n"
            '            return Prediction(model="x", body_s=7.5, jobs=3.0)\n'
            '        return {"body_s": numpy.float64(2.5)}\n\n    def answer(self, splits):',
        )
        mine = model(text)

        assert asked(mine).body_s == 2.5
        assert asked(mine, 4).startswith(
            "mine.py:11: predict gives jobs = 3.0: there is no such field"
        )

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            ("{}", "predict gives neither body_s nor job_s: a dictionary is"),
            ("{'job_s': -1}", "predict gives job_s = -1: it should be greater than or equal"),
            ("{'body_s': -1}", "predict gives body_s = -1: it should be greater than or equal"),
            (
                "{'body_s': 2e18}",
                "predict gives body_s = 2e+18: it should be less than or equal",
            ),
            ("{'body_s': 1, 'phases': {'m': -2}}", "predict gives phases.m = -2: it should be"),
            (
                "{'body_s': 1, 'frame_s': 1}",
                "predict gives frame_s = 1: there is no such field",
            ),
            ("[1]", "predict returns [1], a list: a dictionary is expected"),
        ],
    )
    def test_that_are_none_are_slips_of_its_function(self, model, answer, reason):
        """
        And the next question is answered.
        """
        text = MINE.replace(
            "        return self.answer",
            f"        if job_input.num_splits == 1:\n            return {answer}\n"
            "        return self.answer",
        )
        mine = model(text)

        assert asked(mine, 1).startswith(f"mine.py:11: {reason}")
        assert asked(mine).body_s == 6.0

    def test_that_raise_are_slips_of_their_line(self, model):
        """
        And what was printed is kept, its end alone.
        """
        text = MINE.replace("return {", "print('x' * 3000 + 'end'); return 1 / 0 or {")
        mine = model(text)

        assert asked(mine) == "mine.py:15: ZeroDivisionError: division by zero"
        assert len(mine.printed) == 2000
        assert mine.printed.endswith("xend\n")

    def test_need_what_the_model_requires(self, model):
        """
        Jobs count as a statistic.
        """
        text = MINE.replace(
            "other = 3", "required = {'jobs', 'map_cpu_s_per_record', 'network_bps'}"
        )

        assert asked(model(text)) == (
            "mine.py:9: mine-so-far needs jobs, network_bps, and the profile does not have it"
        )

    def test_of_a_model_that_cannot_be_made_are_asked_for_no_more(self, model):
        """
        The reason stays.
        """
        mine = model("class Mine:\n    def __init__(self):\n        raise ValueError('no')\n")

        assert asked(mine) == asked(mine) == "mine.py:3: ValueError: no"
        assert not mine._finish.alive

    def test_that_do_not_come_are_waited_for_no_longer(self, model, monkeypatch):
        """
        Nor is the next one asked for.
        """
        monkeypatch.setattr(own_model, "LIMIT_S", 0.05)
        mine = model(MINE.replace("return {", "import time; time.sleep(0.4); return {"))
        refusal = asked(mine)

        assert refusal == ("mine.py:11: no answer within 0.05 s: it is asked no more")
        assert asked(mine) == refusal
        assert not mine._finish.alive

    def test_that_are_too_long_are_refused(self, model):
        """
        Whatever they say.
        """
        mine = model(MINE.replace("return {", "return {'warnings': ['x' * 2**21], "))

        assert asked(mine).endswith("its answer has more than 1048576 bytes: it is asked no more")

    def test_are_given_by_its_own_interpreter(self, own, monkeypatch):
        """
        Isolated, with nothing to read and nowhere to write.
        """
        given = {}

        class Process:
            def __init__(self, argv, **options):
                given.update(options, argv=argv, pipe=dup(options["pass_fds"][0]))

            def __enter__(self):
                return self

            def __exit__(self, *_):
                given["left"] = True

            def kill(self):
                given["killed"] = True

        monkeypatch.setattr(own_model.subprocess, "Popen", Process)
        mine = OwnModel(own(MINE))
        mine._finish()

        assert given["argv"][1:5] == ["-I", "-B", "-m", "harness.core.evaluate.own_model"]
        assert given["stdin"] == given["stdout"] == own_model.subprocess.DEVNULL
        assert given["stderr"] > 2
        assert (given["cwd"], given["pass_fds"]) == ("/", [int(given["argv"][5])])
        assert given["killed"]
        assert given["left"]
        close(given["pipe"])


def test_what_a_model_must_not_do_is_refused_before_it_is_done():
    """
    Files may be read, and nothing else.
    """
    for event, arguments in (
        ("open", ("/tmp/x", "r", os.O_RDONLY)),
        ("import", ("a", None, None)),
        ("os.listdir", ("/",)),
    ):
        own_model._refuse(event, arguments)
    for event, arguments in (
        ("open", ("x", "w", os.O_WRONLY)),
        ("open", ("x", "w", os.O_RDWR)),
        ("open", ("x", "w", os.O_CREAT)),
        ("os.remove", ("x",)),
        ("socket.connect", ("x",)),
        ("subprocess.Popen", ("x",)),
        ("os.system", ("x",)),
    ):
        with pytest.raises(PermissionError) as caught:
            own_model._refuse(event, arguments)
        assert str(caught.value) == (
            f"a model writes no file, starts no process and asks no network ({event} 'x')"
        )


def test_own_code_is_a_record():
    """
    It goes to the process of a model as JSON.
    """
    code = Code(file="a.py", class_name="A", sha256="0" * 64)
    kept = OwnCode(code=code, name="a", source="x", lines={"": 1})

    assert OwnCode.model_validate_json(kept.model_dump_json()) == kept


@pytest.mark.parametrize(
    ("hard", "most"),
    [
        (resource.RLIM_INFINITY, own_model.MOST_MEMORY_BYTES),
        (2**50, own_model.MOST_MEMORY_BYTES),
        (6_144_000_000, 6_144_000_000),
    ],
)
def test_memory_is_what_the_user_leaves(monkeypatch, hard, most):
    """
    A limit of one's own (``ulimit -v``) is not raised, which nobody but root may.
    """
    given = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (hard, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda *limits: given.append(limits))
    own_model._bound_memory()
    assert given == [(resource.RLIMIT_AS, (most, most))]
