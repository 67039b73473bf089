"""
The contract of models and workloads: what `harness check` finds, and what it lets pass.
"""

import pytest

from harness.base.errors import ModelError
from harness.base.records.prediction import Prediction
from harness.base.records.statistics import rows_of
from harness.base.records.trial import WorkloadSpec
from harness.base.units import MIB
from harness.clusters.workloads.base import InputPlan, JobCommand
from harness.clusters.workloads.wordcount import WordCount
from harness.core.evaluate.contract import (
    command_complaints,
    example_profile,
    made_up_rows,
    model_complaints,
    workload_complaints,
    wrong_outputs,
)
from harness.models import MODELS

SPEC = WorkloadSpec(name="wordcount", input_bytes=8 * MIB)


class Answers:
    """
    A model that says what a function makes of the number of splits, and keeps what it was asked.
    """

    def __init__(self, body_of):
        self.body_of = body_of
        self.asked = []

    def predict(self, profile, configuration, cluster, job_input):
        """
        The answer.
        """
        self.asked.append((profile, configuration, cluster, job_input))
        return Prediction(model="m", body_s=self.body_of(len(self.asked), job_input.num_splits))


class TestModels:
    def complaints(self, body_of):
        """
        What is said of such a model.
        """
        return [*model_complaints(Answers(body_of))]

    def test_that_answer_alike_and_grow_keep_it(self):
        """
        So do those that take equally long.
        """
        assert self.complaints(lambda _, splits: 2.0 * splits) == []
        assert self.complaints(lambda *_: 1.0) == []
        assert self.complaints(lambda _, splits: 1.0 - 1e-12 * splits) == []
        assert [*model_complaints(MODELS["whatif"])] == []

    def test_that_take_no_time_do_not(self):
        """
        Once is enough; no answer is none.
        """
        slip = ["a job takes 0 s", "twice the input takes less time"]
        assert self.complaints(lambda _, splits: 0.0 if splits == 80 else 1.0) == slip
        assert self.complaints(lambda *_: None) == ["a job takes 0 s"]

    @pytest.mark.parametrize(
        ("body_s", "job_s", "slips"),
        [
            (None, 9.0, []),
            (4.0, 9.0, []),
            (None, 0.0, ["a job takes 0 s"]),
            (4.0, 0.0, ["a job takes 0 s", "a whole job, job_s, takes less time than its body, b"]),
            (4.0, 3.0, ["a whole job, job_s, takes less time than its body, b"]),
        ],
    )
    def test_may_give_whole_jobs(self, body_s, job_s, slips):
        """
        Alone or beside their bodies, which are no longer than the jobs.
        """

        class Whole:
            def predict(self, *_):
                return Prediction(model="m", body_s=body_s, job_s=job_s)

        complaints = [*model_complaints(Whole())]

        assert len(complaints) == len(slips)
        assert all(map(str.startswith, complaints, slips))

    def test_whose_whole_jobs_shrink_do_not_keep_it(self):
        """
        Whatever their bodies do.
        """

        class Shrinks:
            def predict(self, _profile, _configuration, _cluster, job_input):
                return Prediction(model="m", body_s=1.0, job_s=2.0 + 1.0 / job_input.num_splits)

        assert [*model_complaints(Shrinks())] == ["twice the input takes less time"]

    def test_that_say_another_thing_each_time_do_not(self):
        """
        Whatever it keeps.
        """
        assert self.complaints(lambda count, _: float(count)) == [
            "the same question gets two answers: predict keeps something, or draws numbers"
        ]

    def test_that_shrink_do_not(self):
        """
        Twice the input is compared with the same settings.
        """
        assert self.complaints(lambda _, splits: 1.0 if splits != 2 else 2.0) == []
        assert self.complaints(lambda _, splits: 1.0 if splits != 8 else 0.5) == [
            "twice the input takes less time"
        ]

    def test_that_refuse_have_their_own_words(self):
        """
        And nothing else is said.
        """

        def refuse(*_):
            raise ModelError("sort_buffer_mb is 16")

        assert self.complaints(refuse) == ["sort_buffer_mb is 16"]

    def test_are_asked_of_many_cells_twice(self):
        """
        The second time backwards; splits are of 32 MiB.
        """
        model = Answers(lambda *_: 1.0)
        assert [*model_complaints(model)] == []

        questions = [asked[1:] for asked in model.asked]
        assert len(questions) == 48
        assert questions[24:] == questions[23::-1]
        assert {config.num_reduces for config, _, _ in questions} == {1, 6}
        assert {config.sort_buffer_mb for config, _, _ in questions} == {16, 256}
        assert {job_input.num_splits for _, _, job_input in questions} == {1, 2, 4, 8, 40, 80}
        for _, cluster, job_input in questions:
            assert job_input.num_files == job_input.num_splits
            assert job_input.input_bytes == job_input.num_splits * 32 * MIB
            assert job_input.split_bytes == 32 * MIB
            assert (cluster.num_nodes, cluster.map_slots, cluster.reduce_slots) == (2, 4, 4)
            assert (cluster.map_slots_per_node, cluster.reduce_slots_per_node) == (2, 2)
        assert {id(asked[0]) for asked in model.asked} == {id(model.asked[0][0])}


class TestExample:
    def test_has_each_row_of_the_table(self):
        """
        Times are 10 ns, all else is 1, unless its file says otherwise.
        """
        profile = example_profile()
        times = made_up_rows("task time")

        assert profile.statistics.keys() >= made_up_rows("dataflow").keys() | times.keys()
        assert profile.costs.keys() >= made_up_rows("job cost").keys()
        for statistic in times.values():
            assert (statistic.count, statistic.spread, statistic.source) == (1, 0.0, "made up")
        for kind in ("dataflow", "task time"):
            for row in rows_of(kind):
                value = 1e-8 if row.unit.startswith("s") else 1.0
                assert {made_up_rows(kind)[name].value for name in row.names} == {value}

    def test_has_a_cost_of_one_side_once(self):
        """
        Under its first name.
        """
        made = made_up_rows("job cost")

        for row in rows_of("job cost"):
            given = [name for name in row.names if name in made]
            assert given[:1] == list(row.names[:1])
            if row.side == "both":
                assert given == list(row.names)


class Renamed(WordCount):
    """
    WordCount whose plan and jobs a test changes.
    """

    plan = None
    commands = None

    def plan_input(self, spec, block_bytes):
        """
        As the test says, or as it is.
        """
        if self.plan is None:
            return super().plan_input(spec, block_bytes)
        return type(self).plan(spec, block_bytes)

    def submit(self, spec, input_uri, output_uri):
        """
        As the test says, or as it is.
        """
        if self.commands is None:
            return super().submit(spec, input_uri, output_uri)
        return type(self).commands(input_uri, output_uri)


def complaints(plan=None, jobs=None):
    """
    What is wrong with the commands of such a workload.
    """
    kind = type("Kind", (Renamed,), {"plan": plan, "commands": jobs})
    return [*command_complaints(kind(), SPEC)]


def planned(sizes, key=None):
    """
    A plan of files of these sizes.
    """
    return lambda spec, _: InputPlan(
        key or f"k-{spec.input_bytes}", tuple(sizes), JobCommand("M", ())
    )


NOT_PLANNED = f"plan_input does not plan {8 * MIB} bytes in files of 1 to {2 * MIB}"
NOT_HANDED_ON = "submit does not hand on the input and the output that it is given"


class TestCommands:
    def test_of_ours_keep_it(self):
        """
        Nothing is said.
        """
        assert complaints() == []

    @pytest.mark.parametrize(
        ("sizes", "is_right"),
        [
            ([2 * MIB] * 4, True),
            ([2 * MIB] * 3 + [2 * MIB - 9], True),
            ([2 * MIB] * 5, False),
            ([2 * MIB] * 3, False),
            ([4 * MIB] * 2, False),
            ([2 * MIB + 1, 2 * MIB, 2 * MIB, 2 * MIB - 1], False),
            ([2 * MIB] * 4 + [0], False),
        ],
    )
    def test_plan_as_many_bytes_in_blocks(self, sizes, is_right):
        """
        No file is empty, nor larger than one.
        """
        assert complaints(planned(sizes)) == ([] if is_right else [NOT_PLANNED])

    def test_have_a_key_for_each_input(self):
        """
        Of letters, digits and hyphens.
        """
        for key in ("alike", "a b", "a_b"):
            assert complaints(planned([2 * MIB] * 4, key)) == [
                f"the key {key!r} is that of another input, too, or not of letters, digits, -"
            ]

        def spaced(spec, _):
            return InputPlan(f"a b {spec.input_bytes}", (2 * MIB,) * 4, JobCommand("M", ()))

        (complaint,) = complaints(spaced)
        assert complaint.startswith(f"the key 'a b {8 * MIB}' is that of another")

    def test_plan_the_same_each_time(self):
        """
        Jobs as well.
        """
        sizes = iter([[2 * MIB] * 4, [MIB] * 8, [2 * MIB] * 4])

        def changing(spec, block):
            return planned(next(sizes))(spec, block)

        text = "plan_input and submit give something else each time"
        assert complaints(changing) == [text]
        names = iter("ab")
        jobs = lambda given, out: (JobCommand(next(names), (given, out)),)  # noqa: E731
        assert complaints(None, jobs) == [text]

    def test_hand_on_where_to_read_and_write(self):
        """
        The first job reads the input, the last one writes below the output.
        """

        def job(*arguments):
            return JobCommand("M", arguments)

        assert complaints(None, lambda given, out: (job(given, "x"), job("x", f"{out}/y"))) == []
        assert complaints(None, lambda given, out: (job(given, out), job("x"))) == [NOT_HANDED_ON]
        assert complaints(None, lambda given, out: (job("x"), job(given, out))) == [NOT_HANDED_ON]
        assert complaints(None, lambda given, out: (job(given[:-1], out),)) == [NOT_HANDED_ON]


class TestOutputs:
    def test_that_are_wrong_are_seven(self):
        """
        Nothing, half of it, more of it, zeros, and one bit.
        """
        output = bytes(range(1, 201))
        wrong = {name: b"".join(parts) for name, parts in wrong_outputs(output).items()}

        assert wrong == {
            "no output": b"",
            "an empty output": b"",
            "half of the output": output[:100],
            "an output whose end is repeated": output + output[100:],
            "an output that begins in its middle": output[100:] + output[:50],
            "zeros": bytes(200),
            "an output with one bit changed": output[:100] + b"\x64" + output[101:],
        }
        assert wrong_outputs(output)["no output"] == []

    def test_of_wordcount_are_all_found(self):
        """
        And the right one passes.
        """
        files = {"f": b"a b a\n" * 50}
        spec = WorkloadSpec(name="wordcount", input_bytes=len(files["f"]))
        output = b"a\t100\nb\t50\n"

        made = [*workload_complaints(WordCount(), spec, files, output)]
        assert [text for text in made if "passes" in text or "refuses" in text] == []
        wrong = [*workload_complaints(WordCount(), spec, files, output.replace(b"50", b"51"))]
        assert [text for text in wrong if text.startswith("complaint refuses the right output: ")]
