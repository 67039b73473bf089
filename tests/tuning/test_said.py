"""
What tuning and asking say: the tables and lines that people read, and the rows of documents.
"""

import json
import re

import pytest

from harness.base.records.prediction import Prediction
from harness.base.records.profile import ProfiledJob
from harness.base.units import MIB, format_bytes
from harness.cli import main
from harness.core.evaluate.judge import Judge
from harness.core.evaluate.resolved import resolve_cell
from harness.core.run.preflight import known_names
from harness.models import MODELS
from harness.tuning import proposals as proposals_module
from harness.tuning.ask import MANY, answers, never_profiled, phases_of, questions
from harness.tuning.optimizers import Choice
from harness.tuning.proposals import Proposal, cluster_plans, job_of, proposals
from tests.evaluate.test_flow import stored  # noqa: F401 - a fixture
from tests.run.test_tune import loop  # noqa: F401 - a fixture
from tests.tuning.test_steps import SORT_MB, session  # noqa: F401 - a fixture

GIB = 1024 * MIB
REDUCES = "mapreduce.job.reduces"


@pytest.fixture
def basis(loop):  # noqa: F811
    """
    What the stored run knows of TeraSort.
    """
    return loop.basis


@pytest.fixture
def said(stored, capsys):  # noqa: F811
    """
    What a command says of the stored run: its status, its lines, and those beside them.
    """

    def run(command, *words):
        status = main([*command.split(), str(stored.path), *map(str, words)])
        printed = capsys.readouterr()
        lines = [line for line in printed.out.splitlines() if line.strip(" \u2500")]
        return status, lines, printed.err

    return run


def cells_of(line):
    """
    The columns of a line of a table.
    """
    return re.split(r" {2,}", line.strip())


class TestProposals:
    def test_are_a_table_and_the_best_ones_properties(self, said):
        """
        Each property with its value and the reason; at the end all as arguments of a job.
        """
        status, lines, err = said("tune", "--optimizer", "rules", "--optimizer", "hadoop")

        assert status == 0
        assert "judged by whatif" in err
        assert lines[0] == (
            "with what rules chose the job takes 34.6 s by whatif-mr2, 14 % less than with its"
            " own settings; whatif-mr2 was"
            " 67 % off on job times here (2 cells, 6 jobs, 3 repeats of each): +14 % may be none;"
            " 2 of its 12 settings were never profiled"
        )
        assert cells_of(lines[1]) == [
            "optimizer",
            "model",
            "by it, s",
            "job, s",
            "80 % interval, s",
            "saved",
            "by refits",
            "evaluations",
            "ms",
        ]
        text = "\n".join(lines)
        heads = r"^  rules by whatif\S* +value +profiled +why +$"
        assert re.search(heads, text, re.MULTILINE)
        spilled = r"a map writes [\d.]+ MiB and 20000 records: one spill, full to 0.8"
        assert re.search(rf"^  {SORT_MB} +3 +never: 1 +{spilled} ", text, re.MULTILINE)
        assert f"never profiled: {SORT_MB} 3 (profiled: 1)" in lines
        assert lines[-1].startswith(f"-D {SORT_MB}=3 -D mapreduce.map.sort.spill.percent=0.8 -D ")
        assert cells_of(lines[2])[:2] == ["rules", "whatif-mr2"]
        assert cells_of(lines[2])[4] == "+14 %, may be none"

    def test_of_nobody_who_can_choose_are_said(self, said):
        """
        With what the profile lacks.
        """
        _, lines, _ = said("tune", "--optimizer", "mrtuner", "--optimizer", "rules")

        (refused,) = [line for line in lines if line.startswith("no choice: ")]
        assert refused.startswith("no choice: mrtuner by ptc-wave: ")

    def test_are_a_document(self, said):
        """
        All that was looked at, and who did not choose.
        """
        _, lines, _ = said("tune", "--optimizer", "rules", "--optimizer", "mrtuner", "--json")
        document = json.loads("\n".join(lines))

        assert document.keys() == {
            "schema_version",
            "says",
            "judge",
            "judge_error",
            "rests_on",
            "base",
            "limits",
            "proposals",
            "refused",
        }
        (proposal,) = document["proposals"]
        assert proposal.keys() == {
            "optimizer",
            "model",
            "values",
            "reasons",
            "job_s",
            "evaluations",
            "seconds",
            "curve",
            "bounds",
            "properties",
            "within_error",
            "profiled",
            "own_job_s",
            "intervals",
            "saved",
            "saved_ends",
            "not_applicable",
            "never_profiled",
        }
        assert proposal["own_job_s"] > 0
        assert proposal["values"].keys() == proposal["reasons"].keys()
        assert len(proposal["properties"]) == len(proposal["values"])

    def test_say_what_they_save_by_each_refit(self, basis, monkeypatch):
        """
        The least and the most of them; without a time, or a refit, nothing.
        """

        def answer(job_s, *refits):
            return Prediction(
                model="m",
                body_s=job_s,
                frame_s=None if job_s is None else 0.0,
                job_s=job_s,
                refits={"body_s": refits, "job_s": refits},
            )

        predicted = {}
        base_id = basis.base.id

        def predict(_model, cells, *_):
            return [predicted["base" if cell.id == base_id else "tuned"] for cell in cells]

        monkeypatch.setattr(proposals_module, "predict_cells", predict)

        def saved(base, tuned):
            predicted.update(base=base, tuned=tuned)
            ((made,), _) = proposals(basis, ["hadoop"], ["whatif"], "whatif")
            return made.saved, made.saved_ends

        base = answer(10.0, 10.0, 20.0, None, 8.0)
        assert saved(base, answer(8.0, 8.0, 12.0, 3.0, None)) == (
            pytest.approx(0.2),
            (pytest.approx(0.2), pytest.approx(0.4)),
        )
        assert saved(base, answer(12.0, None, None, 1.0, None)) == (pytest.approx(-0.2), None)
        assert saved(base, answer(None)) == (None, None)

    def test_the_job_is_that_of_the_base(self, basis):
        """
        With the files of its input, and a codec only where jobs with both were profiled.
        """
        of = job_of(basis)
        assert (of.configuration, of.cluster, of.job_input) == basis.resolved.model_inputs
        assert sum(of.files) == of.job_input.input_bytes
        assert of.properties[SORT_MB] == basis.base.configuration[SORT_MB]
        assert not of.can_compress

        job = basis.profile.jobs[0]
        switched = job.configuration.model_copy(
            update={"map_output_compressed": not job.configuration.map_output_compressed}
        )
        other = job.model_copy(update={"configuration": switched})
        both = basis.profile.model_copy(update={"jobs": (*basis.profile.jobs, other)})
        assert job_of(basis._replace(profile=both)).can_compress

    def test_say_what_no_job_had(self, basis):
        """
        In their document, as in an answer to a question.
        """
        (made,), _ = proposals(basis, ["rules"], ["whatif"], "whatif")
        document = made.document(basis.profile, Judge("whatif"))

        assert document["never_profiled"] == never_profiled(basis.profile, made.resolved)
        assert document["never_profiled"]
        bare = Proposal(Choice("o", "m", {}), made.resolved, made.prediction, None, None)
        assert bare.document(basis.profile, Judge("whatif"))["own_job_s"] is None


class TestClusters:
    def test_are_all_slots_with_all_blocks(self, basis):
        """
        Up to so many cores, with equal memory of each task; the best comes first.
        """
        seen = []

        def report(done, count):
            seen.append((done, count))

        plans = cluster_plans(
            {"terasort": basis},
            {"terasort": 2.0},
            "whatif",
            cores=2,
            memory=4 * GIB + 5,
            report=report,
        )

        blocks = {2 * MIB, 32 * MIB, 64 * MIB, 128 * MIB, 256 * MIB}
        nodes = {
            (
                plan.cluster.node.map_slots,
                plan.cluster.node.reduce_slots,
                int(plan.cluster.site["dfs.blocksize"]),
            )
            for plan in plans
        }
        assert nodes == {(maps, reduces, block) for maps in (1, 2) for reduces in (1, 2)
                         for block in blocks}  # fmt: skip
        assert seen == [(done, 20) for done in range(20)]
        for plan in plans:
            slots = plan.cluster.node.map_slots + plan.cluster.node.reduce_slots
            assert plan.cluster.node.task_memory_bytes == 4 * GIB // slots // MIB * MIB
            assert plan.total_s == 2 * plan.job_s["terasort"]
        assert [plan.total_s for plan in plans] == sorted(plan.total_s for plan in plans)

    def test_without_room_are_left_out(self, basis):
        """
        A job that no node can run makes no mix.
        """
        wide = basis.resolved.configured(basis.base.configuration | {SORT_MB: "800"})
        bases = {"small": basis, "wide": basis._replace(resolved=wide)}

        plans = cluster_plans(bases, {}, "whatif", cores=2, memory=4 * GIB)
        slots = {(plan.cluster.node.map_slots, plan.cluster.node.reduce_slots) for plan in plans}
        assert slots == {(1, 1)}
        assert cluster_plans(bases, {}, "whatif", cores=1, memory=GIB) == []

    def test_are_written_as_in_an_experiment(self, basis):
        """
        Sizes with their unit.
        """
        (plan, *_) = cluster_plans({"terasort": basis}, {}, "whatif", cores=1, memory=3 * GIB)

        document = plan.document()
        assert document == {
            "map_slots": "1",
            "reduce_slots": "1",
            "task_memory": "1536 MiB",
            "dfs.blocksize": document["dfs.blocksize"],
            "job_s": plan.job_s,
            "total_s": plan.total_s,
        }
        assert document["dfs.blocksize"] in {f"{mib} MiB" for mib in (2, 32, 64, 128, 256)}

    def test_are_ten_lines_and_a_block(self, said):
        """
        The columns have the name of each job.
        """
        status, lines, _ = said("tune cluster", "--cores", 2)

        assert status == 0
        assert re.match(
            r"with \d map slots? and \d reduce slots? a node and blocks of \d+ MiB the mix takes"
            r" [\d.]+ s by whatif-mr2, [\d.]+ % less than on its present cluster, with jobs tuned"
            r" for both; whatif-mr2 was ",
            lines[0],
        )
        assert "whatif-mr2 was 67 % off on job times here" in lines[0]
        assert cells_of(lines[1]) == [
            "map_slots",
            "reduce_slots",
            "task_memory",
            "dfs.blocksize",
            "terasort, s",
            "mix, s",
        ]
        block = lines.index("cluster:")
        assert block == 12 or lines[block - 1].startswith("more slots than that are idle")
        first = cells_of(next(line for line in lines[2:] if line.strip()[0].isdigit()))
        assert lines[block + 1] == (
            f"  node: {{map_slots: {first[0]}, reduce_slots: {first[1]}, task_memory: {first[2]}}}"
        )
        assert lines[block + 2] == f"  site: {{dfs.blocksize: {first[3]}}}"

    def test_count_each_job_as_often_as_is_said(self, said):
        """
        Once, unless there is a weight; what is none is refused.
        """
        _, lines, _ = said("tune cluster", "--cores", 1, "--json")
        once = json.loads("\n".join(lines))["plans"]
        _, lines, _ = said("tune cluster", "--cores", 1, "--weight", "terasort=2.5", "--json")
        often = json.loads("\n".join(lines))["plans"]

        assert [plan["total_s"] for plan in often] == pytest.approx(
            [2.5 * plan["total_s"] for plan in once]
        )
        for text in (
            "terasort",
            "terasort=",
            "terasort=x",
            "terasort=1.2.3",
            "sort=1",
            "terasort=-1",
        ):
            status, _, err = said("tune cluster", "--weight", text)
            assert status == 2
            assert f"'{text}' is no weight\n  at:  --weight\n  fix: write WORKLOAD=N, of " in err


class TestRegret:
    def test_is_a_table_of_all_models(self, said):
        """
        And at the end the means, the smallest first.
        """
        _, lines, _ = said("tune regret")
        assert re.match(r"what whatif\S* chooses takes \S+ % longer than the best", lines[0])
        assert cells_of(lines[1]) == [
            "input",
            "model",
            "cells",
            "chosen",
            "regret",
            "noise",
            "saved",
            "curse",
            "ranks",
            "measured",
        ]
        (unknowing,) = [cells_of(line) for line in lines[2:-1] if "at random" in line]
        assert "any" in unknowing
        _, text, _ = said("tune regret", "--json")
        answer = json.loads("\n".join(text))
        means = answer["mean"]
        workload, size = answer["regrets"][0]["input"].split()
        assert unknowing[0] == f"{workload} {format_bytes(int(size))}"
        assert lines[-1].startswith("mean regret: ")
        assert [pair.rsplit(" ", 2)[0] for pair in lines[-1][13:].split(", ")] == [*means]
        assert list(means.values()) == sorted(means.values())


class TestTry:
    def test_each_step_is_a_line(self, said, session, tmp_path, monkeypatch):  # noqa: F811
        """
        With its run; below it what the best cell is worth.
        """
        monkeypatch.chdir(tmp_path)
        status, lines, _ = said("tune", "--try", 1, "--results-dir", tmp_path / "results")

        assert status == 0
        assert "times as fast (" in lines[0]
        assert "; whatif-mr2 was 67 % off on job times here" in lines[0]
        assert cells_of(lines[1]) == [
            "step",
            "optimizer",
            "predicted, s",
            "measured, s",
            "own, s",
            "best, s",
            "run",
        ]
        (made,) = session.made
        (run,) = made.store.all_runs()
        step = next(cells_of(line) for line in lines[2:] if line.lstrip().startswith("1 "))
        assert step[0] == "1"
        assert step[-1] == str(run.path)
        assert [line for line in lines if re.match(r"\d+\.\d\d times as fast", line)]

    def test_nothing_is_a_document_too(self, said, session, tmp_path, monkeypatch):  # noqa: F811
        """
        Where nothing is worth a step.
        """
        slower = proposals_module.proposals

        def none(*given, **more):
            made, refused = slower(*given, **more)
            others = [each for each in made if each.choice.optimizer != "hadoop"]
            return [proposal._replace(saved=-0.1) for proposal in others], refused

        monkeypatch.setattr("harness.tuning.closed_loop.proposals", none)
        words = ("--try", 1, "--results-dir", tmp_path / "results")
        status, lines, _ = said("tune", *words, "--json")
        document = json.loads("\n".join(lines))
        assert (status, document["steps"]) == (0, [])
        assert document["says"].startswith("nothing was measured; whatif-mr2 was 67 % off")
        assert session.made == ()


class TestAskedTable:
    def test_says_how_long_and_what_takes_most(self, said):
        """
        Each model in a line; phases of the job and of a task below.
        """
        status, lines, err = said("ask", "--model", "whatif", "--model", "scaling")

        assert status == 0
        assert "base: terasort sort.factor=" in err
        assert lines[0] == (
            "as it ran the job takes 40.3 s by whatif; whatif was 67 % off on job times here"
            " (2 cells, 6 jobs, 3 repeats of each)"
        )
        assert cells_of(lines[1]) == [
            "model",
            "cell",
            "job, s",
            "80 % interval, s",
            "change",
            "from base",
            "its error here",
            "range",
            "takes most",
        ]
        whatif = cells_of(lines[2])
        assert whatif[:2] == ["whatif", "base"]
        assert float(whatif[2]) > 0
        assert re.fullmatch(r"[a-z_]+_s, \d+ %", whatif[-1])
        heads = next(line for line in lines if "seconds of the job (of a task)" in line)
        assert cells_of(heads) == ["base: seconds of the job (of a task)", "whatif", "scaling"]
        frame = next(cells_of(line) for line in lines if line.strip().startswith("frame_s"))
        assert re.fullmatch(r"[\d.]+", frame[1])
        spill = next(cells_of(line) for line in lines if line.strip().startswith("spill_s"))
        assert re.fullmatch(r"[\d.]+ \([\d.]+\)", spill[1])


class TestAnswers:
    def test_the_longest_phase_limits(self, basis):
        """
        By the time of the whole job.
        """
        (row,) = answers("whatif", questions(basis.resolved, (), (), known_names()), basis)

        longest = max(row["phases"].items(), key=lambda phase: phase[1]["job_s"])[0]
        assert row["limits"] == longest
        assert row["cell"] == "base"

    def test_rows_say_what_they_are_compared_with(self, basis):
        """
        Each setting with the one before, a grid with what the settings come to.
        """
        requests = questions(
            basis.resolved, (f"{REDUCES}=1", f"{SORT_MB}=2"), (f"{REDUCES}=3,4",), known_names()
        )

        assert [(request.name, request.against) for request in requests] == [
            ("base", "base"),
            (f"+ {REDUCES}=1", "base"),
            (f"+ {SORT_MB}=2", f"+ {REDUCES}=1"),
            ("terasort reduces=3", f"+ {SORT_MB}=2"),
            ("terasort reduces=4", f"+ {SORT_MB}=2"),
        ]

    def test_many_are_asked_at_once(self, basis, monkeypatch):
        """
        Of a model that can, and only from so many on.
        """
        asked = []
        real = type(MODELS["whatif"]).predict_many

        def predict_many(model, profile, inputs):
            asked.append(len(inputs))
            return real(model, profile, inputs)

        monkeypatch.setattr(type(MODELS["whatif"]), "predict_many", predict_many)
        for count in (MANY - 2, MANY - 1):
            grid = (f"{REDUCES}=" + ",".join(map(str, range(1, count + 1))),)
            list(answers("whatif", questions(basis.resolved, (), grid, known_names()), basis))
        assert asked == [MANY]

    def test_what_was_never_profiled_is_named_with_its_ends(self, basis):
        """
        A little beyond is not: inputs are whole records.
        """
        (job, *_) = basis.profile.jobs
        numbers = {"input_bytes": 100 * MIB, "num_splits": 10}
        small = job.model_copy(update=numbers)
        large = job.model_copy(update={"input_bytes": 200 * MIB, "num_splits": 10})
        profile = basis.profile.model_copy(update={"jobs": (small, large)})
        spec = basis.base.workload

        def beyond(input_bytes):
            workload = spec.model_copy(update={"input_bytes": input_bytes})
            cell = resolve_cell(basis.base.model_copy(update={"workload": workload}))
            return [text for text in never_profiled(profile, cell) if text.startswith("input")]

        assert beyond(150 * MIB) == []
        assert beyond(201 * MIB) == []
        assert beyond(300 * MIB) == ["input bytes 300 MiB (profiled: 100 MiB to 200 MiB)"]
        assert beyond(50 * MIB) == ["input bytes 50 MiB (profiled: 100 MiB to 200 MiB)"]
        slots = job.model_copy(update={"reduce_slots": job.reduce_slots + 5})
        only = basis.profile.model_copy(update={"jobs": (slots,)})
        own = basis.resolved.model_inputs[1].reduce_slots
        assert f"reduce_slots {own} (profiled: {job.reduce_slots + 5})" in never_profiled(
            only, basis.resolved
        )
        assert isinstance(job, ProfiledJob)

    def test_phases_of_a_model_without_tasks_are_those_of_a_history(self):
        """
        Each with the waves of its kind.
        """
        answer = Prediction(
            model="m",
            phases={"fixed_s": 1.0},
            measurable={"map_task_s": 2.0, "sort_s": 3.0},
            map_waves=2.0,
            reduce_waves=4.0,
        )

        assert phases_of(answer) == {
            "map_task_s": {"task_s": 2.0, "job_s": 4.0},
            "sort_s": {"task_s": 3.0, "job_s": 12.0},
        }
