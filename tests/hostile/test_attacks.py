"""
Attacks written by hand: what somebody would try who knows what the harness does with a file.
"""

import dataclasses
import gzip
import json
import re
import shutil
import tracemalloc

from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest

from click.testing import CliRunner

from harness.base.documents.wording import decimals
from harness.base.errors import DataError, HarnessError, ModelError, ParseError, SpecError
from harness.base.records.score import ScoreBook
from harness.base.text import printable
from harness.cli.commands.models import vectors as command
from harness.cli.console.talk import show_table
from harness.clusters.local.cluster import LocalCluster
from harness.core.experiment.file import read_experiment
from harness.core.reports import REPORTS
from harness.core.reports.sections import make_document
from harness.core.store import Run, Store
from harness.models import EVALUATORS, vectors
from harness.observe.parsing.history import read_history
from harness.observe.parsing.lines import read_machine, read_speed
from harness.observe.parsing.task_log import read_task_log
from harness.scoring import relative_error
from tests.hostile.hunt import time_limit
from tests.hostile.mutate import BIDI, SCRIPT
from tests.hostile.targets import EXPERIMENT, KNOWN, evaluation, made_run, spoken
from tests.reports.test_html import Page

SAMPLE = {
    "at_s": 1, "busy": 0, "steal": 0, "iowait": 0, "runnable": 1, "available_bytes": 1,
    "memory_pressure": None,
}  # fmt: skip
EVIL = f"{SCRIPT}\x1b]0;x\x07\x1b[31m{BIDI}\u200fx{{{{ 7*7 }}}}"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """
    A finished run.
    """
    return made_run(tmp_path_factory.mktemp("results"))


@pytest.fixture
def run(whole, tmp_path):
    """
    The same, to be changed.
    """
    return Run(shutil.copytree(whole.path, tmp_path / "results" / "recorded" / whole.path.name))


def peak(work):
    """
    Bytes that *work* takes at its worst; its refusal is as good as its answer.
    """
    tracemalloc.start()
    try:
        with time_limit(20.0):
            work()
    except HarnessError:
        pass
    finally:
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return size


def spec_error(text, *overrides):
    """
    What is said against an experiment, in bounded time.
    """
    with time_limit(), pytest.raises(SpecError) as caught:
        read_experiment(text, "e.yaml", overrides, known=KNOWN)
    assert len(str(caught.value)) < 20_000
    return str(caught.value)


class TestExperiment:
    @pytest.mark.parametrize(
        ("value", "what"),
        [
            ("!!python/object/apply:os.system ['id']", "the tag"),
            ("!!python/name:os.system", "the tag"),
            ("&a [*a]", "anchors and aliases"),
            ("!!binary aGk=", "the tag"),
            ("'" + "x" * 10_000_000 + "'", "more than 50000"),
            ("'../../x'", "cannot name the experiment"),
            ("/etc/x", "cannot name the experiment"),
            (r'"a\0b"', "cannot name the experiment"),
            (r'"\e[2J"', "cannot name the experiment"),
            ("\u202ex", "cannot name the experiment"),
        ],
        ids=[
            "object",
            "name",
            "loop",
            "binary",
            "10 MB",
            "up",
            "absolute",
            "NUL",
            "escape",
            "bidi",
        ],
    )
    def test_a_name_is_a_name(self, value, what):
        """
        No tag is obeyed, no anchor followed, no path taken for a name.
        """
        message = spec_error(EXPERIMENT.replace("name: recorded", f"name: {value}"))

        assert what in message
        spoken(message)

    def test_a_billion_laughs(self):
        """
        Aliases that grow tenfold nine times are refused at the first.
        """
        lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
        lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]

        assert "anchors and aliases (a0) are not allowed" in spec_error("\n".join(lines))

    @pytest.mark.parametrize("text", ["[" * 15_000, "{a: " * 10_000, "- " * 20_000, "#" * 49_000,
                                      "'" * 49_999, "\t" * 40_000, "%" * 40_000])  # fmt: skip
    def test_forty_thousand_of_anything(self, text):
        """
        The largest file that is looked at is refused in the time of one breath.
        """
        spec_error(text)

    @pytest.mark.long
    @pytest.mark.parametrize(
        "text",
        [
            "? " * 20_000, "a: b\n" * 9_000, "a: |\n" + "  b\n" * 10_000,
            "".join(f"k{n}: 1\n" for n in range(6_000)), "x: [" + "1, " * 15_000 + "1]",
            EXPERIMENT + "configuration2: {" + ", ".join(f"p{n}: 1" for n in range(4_000)) + "}",
            EXPERIMENT.replace("[3, 10, 5]", f"[{', '.join(map(str, range(7_000)))}]"),
            EXPERIMENT.replace("6000000", f"[{', '.join(map(str, range(1, 7_000)))}]"),
        ],
        ids=range(8),
    )  # fmt: skip
    def test_fifty_thousand_characters_of_anything(self, text):
        """
        The largest file that is looked at is read or refused in the time of one breath.
        """
        with time_limit(), suppress(SpecError):
            read_experiment(text, "e.yaml", known=KNOWN)

    @pytest.mark.parametrize(
        "override",
        ["workloads.terasort.input=8000000 TiB", "workloads.terasort.input=9000000 TiB",
         "cluster.workers=1000000", "cluster.node.task_memory=8000000 TiB",
         "configuration.mapreduce.job.reduces=999999999999999999"],
    )  # fmt: skip
    def test_sizes_that_nobody_has(self, override):
        """
        An input, a cluster or a job beyond all machines is refused, or planned without being made.
        """
        from tests.hostile.targets import _planned

        with time_limit():
            try:
                _planned(read_experiment(EXPERIMENT, "e.yaml", [override], known=KNOWN))
            except SpecError as error:
                spoken(str(error))


class TestNames:
    def test_links_among_the_logs_of_a_container(self, tmp_path):
        """
        A task that leaves links for logs, or a link for its folder, brings nothing else along.
        """
        logs = tmp_path / "userlogs/application_1_0001"
        secret = tmp_path / "secret"
        secret.mkdir()
        (secret / "syslog").write_text("secret")
        container = logs / "container_1_0001_01_000001"
        container.mkdir(parents=True)
        (container / "stdout").write_text("good")
        (container / "syslog").symlink_to("/etc/passwd")
        (container / "prelaunch.out").symlink_to(secret / "syslog")
        (container / "deep").symlink_to(secret)
        (container / "\x1b[2J").write_text("steers")
        (logs / "container_1_0001_01_000002").symlink_to(secret)
        (logs / "container_..").mkdir()

        layout = SimpleNamespace(
            workers=[SimpleNamespace(name="worker1")], data=lambda _: str(tmp_path)
        )
        cluster = SimpleNamespace(layout=layout)
        copied = LocalCluster.container_logs(cluster, "application_1_0001", tmp_path / "raw")

        assert [p.name for p in copied] == ["stdout"]
        assert [p.read_text() for p in (tmp_path / "raw").rglob("*") if p.is_file()] == ["good"]


class TestText:
    @pytest.mark.process
    def test_a_job_and_its_hosts(self, run):
        """
        What a job is called is shown in every report, and obeyed in none.
        """
        e = evaluation(run)
        run.seal.add()
        data = e.report_data()
        (record, job), *_ = data.timelines
        attempts = tuple(dataclasses.replace(a, host=EVIL, error=EVIL) for a in job.attempts)
        job = dataclasses.replace(job, name=EVIL, user=EVIL, diagnostics=EVIL, attempts=attempts)
        trials = [r.model_copy(update={"reason": EVIL, "state": "failed"}) for r in data.trials]
        only = {"score_book": ScoreBook(), "measurements": (), "profiles": {}, "rates": {}}
        hostile = dataclasses.replace(data, timelines=[(record, job)], trials=trials, **only)

        document = make_document(hostile)
        for name, form in REPORTS.items():
            text = form.render(document)
            spoken(text)
            if name == "html":
                page = Page(text)
                assert "script" not in page.tags
                assert "\\u202eevil" in "".join(page.text)
            if name == "markdown":
                assert not re.search(r"(?<!\\)<", text)

    def test_a_table_on_a_terminal(self, capsys):
        """
        A cell is text: no markup of rich, no escape, no mark that turns the text around.
        """
        show_table(["name"], [[f"[bold red]{EVIL}[/]"]], title=EVIL)

        out = capsys.readouterr().out
        spoken(out)
        assert "[bold red]" in out

    def test_talk_turns_nothing_around(self):
        """
        Direction marks are taken out like escapes.
        """
        spoken(printable(EVIL))

    def test_vectors_of_anything(self, tmp_path):
        """
        Names and answers of a vector file are printed as text.
        """
        case = {
            "name": EVIL,
            "input": {"num_segments": 3, "merge_factor": 2},
            "expected": {EVIL: EVIL},
        }
        path = tmp_path / "v.json"
        path.write_text(json.dumps({"model": "whatif", "cases": [case]}))

        done = CliRunner().invoke(command, ["check", str(path)])

        assert done.exit_code == 1
        spoken(done.output)


def packed(run, name, chunk, times):
    """
    The id of a trial whose log *name* unpacks to *times* pieces of the same bytes.
    """
    trial = next(r.trial.id for r in run.trials().values() if r.state == "done")
    path = run.trial_dir(trial) / "raw" / f"{name}.gz"
    piece = gzip.compress(chunk)
    path.write_bytes(piece * times)  # members of a gzip file follow each other
    return trial


class TestBombs:
    def test_a_line_of_gigabytes(self, run):
        """
        A log of a few megabytes that is one line of gigabytes never stands in memory.
        """
        trial = packed(run, "job-0-history.jhist", b"[" * 2**24, 256)

        def work():
            with run.raw(trial).open("job-0-history.jhist") as lines:
                read_history(lines, "x")

        assert peak(work) < 100 * 2**20

    def test_lines_without_end(self, run):
        """
        Lines that pass by are not kept, however many there are.
        """
        trial = packed(run, "syslog", b"a line\n" * 2**13, 3)

        def work():
            with run.raw(trial).open("syslog") as lines:
                read_task_log(lines, "x")

        assert peak(work) < 2**19

    @pytest.mark.parametrize(
        ("read", "line"),
        [
            (read_speed, b"1 1 1 1\n"),
            (read_machine, json.dumps(SAMPLE).encode() + b"\n"),
        ],
        ids=["speed", "machine"],
    )
    def test_samples_without_end(self, read, line, monkeypatch):
        """
        No trial has as many samples as a bomb: it is refused where they become too many.
        """
        monkeypatch.setattr("harness.observe.parsing.lines.MOST_SAMPLES", 1000)

        with pytest.raises(ParseError, match="more than 1000 samples"):
            list(read((line for _ in range(10**6)), "x"))


def test_results_outside_a_store(tmp_path):
    """
    A folder among the runs that has not the name of one is none, whatever lies in it.
    """
    (tmp_path / "recorded" / "../evil").resolve().mkdir(parents=True)
    (tmp_path / "recorded" / "20260101T000000Z-0000x").mkdir(parents=True)

    assert Store(tmp_path).runs("recorded") == ()


class TestForeignRuns:
    def test_a_model_and_a_workload_of_another_harness(self, run):
        """
        What this harness does not have is not applicable, with the reason.
        """
        plan = run.path / "plan.jsonl"
        plan.write_text(plan.read_text().replace('"name": "terasort"', '"name": "sorter"'))
        e = evaluation(run)
        profile = run.read_profiles()["terasort"].model_copy(update={"workload": "sorter"})
        run.seal.path.unlink()  # nobody has predicted yet
        run.write_profile(profile)
        models = e.experiment.predict.model_copy(update={"models": ("whatif", "oracle")})
        e = replace(e, experiment=e.experiment.model_copy(update={"predict": models}))

        reasons = {p.model: p.not_applicable for p in e.predict()}

        assert reasons == {
            "whatif": ("this harness has no workload 'sorter'",),
            "oracle": ("this harness has no model 'oracle'",),
        }

    def test_a_done_trial_without_a_job(self, run):
        """
        An empty trace is told of, with what makes it anew.
        """
        trial = next(t for t in run.read_plan() if not t.profiling)
        path = run.trial_dir(trial.id) / "trace" / "job.json"
        path.write_text('{"schema_version": 1, "jobs": []}')

        with pytest.raises(DataError, match="its trace has no job"):
            evaluation(run).report_data()

    @pytest.mark.parametrize(
        "change", [{"coefficient": 1e50}, {"reference_rate": 0}, {"reference_rate": -1e-90}]
    )
    def test_a_speed_that_overflows(self, run, change):
        """
        A correction that no fit gives is refused where it is read, not where it is applied.
        """
        path = run.path / "profiles" / "terasort.json"
        profile = json.loads(path.read_text())
        path.write_text(json.dumps({**profile, "speed": {**profile["speed"], **change}}))

        with pytest.raises(DataError, match="speed"):
            run.read_profiles()


class TestNumbers:
    @pytest.mark.parametrize("noise", [5e-324, 1e-310, 1e-5])
    def test_noise_that_is_next_to_none(self, noise):
        """
        A spread that no power of ten divides supports as many decimals as are shown.
        """
        assert decimals(noise) == 3

    @pytest.mark.parametrize("time", [10**400, -(10**400), 10**310, 1e200])
    def test_times_beyond_any_real_number(self, time):
        """
        A time that a float cannot hold is refused like one that is not finite, in few words.
        """
        for times in [(time, 1.0), (1.0, time), (time, time)]:
            with pytest.raises(ModelError) as caught:
                relative_error(*times)

            assert len(str(caught.value)) < 300


class TestCounts:
    def test_reduces_without_end(self, run):
        """
        A job of more tasks than any has is not predicted, with the reason; nothing loops over them.
        """
        plan = run.path / "plan.jsonl"
        reduces = '"mapreduce.job.reduces": "'
        plan.write_text(plan.read_text().replace(f'{reduces}2"', f'{reduces}{10**17}"'))

        with time_limit():
            answers = evaluation(run).predict()

        assert {a.job_s for a in answers} == {None}
        assert "is not a whole number from 0 to 100000" in answers[0].not_applicable[0]

    @pytest.mark.parametrize("name", ["num_maps", "num_reduces"])
    @pytest.mark.parametrize("count", [10**6, 2**53, 10**18, 1e300, 10**400])
    def test_tasks_of_a_vector(self, name, count):
        """
        A vector of more tasks than are looked at is refused by its field.
        """
        field = {"statistics": {}, "cluster": {}, "config": {name: count}}
        requested = vectors.CaseInput("x", field)

        with time_limit():
            answer = vectors.compute("whatif", requested, EVALUATORS)

        assert answer["message"] == f"{name} is above 100000"
