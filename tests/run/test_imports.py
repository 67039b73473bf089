"""
Tests for `harness.past.imports`, and what it plans: a run made of jobs that ran before.
"""

import gzip
import json
import math
import re
import shutil

from dataclasses import replace
from pathlib import Path

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import DataError, MachineError, SpecError
from harness.base.hadoop.properties import job_config
from harness.base.records.trial import HISTORY, Cell, ClusterSpec, WorkloadSpec
from harness.catalog.catalog import Catalog
from harness.catalog.families import family_rows, stem
from harness.catalog.histories import PastJob, family_names, read_jobs, with_configuration
from harness.catalog.planning import cells_of, cluster_of, host_groups, plan_family
from harness.catalog.sources import Files
from harness.cli import main
from harness.cli.console.asked import asked_anew
from harness.core.evaluate.flow import Evaluation
from harness.core.evaluate.observations import logged_times
from harness.core.evaluate.provenance import blind_refusals
from harness.core.evaluate.resolved import resolve_cell
from harness.core.store import Store
from harness.observe.parsing.history import read_history
from harness.past import imports
from harness.past.container_logs import ContainerLogs
from harness.past.fill import fill
from harness.past.imports import (
    backtest,
    import_jobs,
)
from harness.pseudonyms.names import Pseudonyms
from harness.tuning.past_basis import basis_of_past_job
from tests.catalog.cases import unpacked
from tests.run.fakes import CONF, DATA, RECORDED
from tests.run.fakes import HISTORY as RECORDED_HISTORY

HOUR_MS = 3_600_000
BYTES = re.compile(rb'("name":"BYTES_READ","displayName":"[^"]*","value":)(\d+)')
OUTPUT = re.compile(
    rb'("name":"(?:HDFS_BYTES_READ|MAP_OUTPUT_BYTES|BYTES_WRITTEN)","displayName":"[^"]*","value":)\d+'
)
MOMENT = re.compile(rb"(?<![_\d])1795\d{9}(?!\d)")
FACTOR = b"<name>mapreduce.task.io.sort.factor</name><value>"
SORT_MB = b"<name>mapreduce.task.io.sort.mb</name><value>"
CASES = Path(__file__).parent / "data"
COMPRESSED = b"".join(
    b"<property><name>mapreduce.%s.compress</name><value>true</value></property>" % part
    for part in (b"map.output", b"output.fileoutputformat")
)
WORDCOUNT = (DATA / "wordcount.jhist").read_bytes()


def put(folder, number, *, size=1, factor=3, history=RECORDED_HISTORY, conf=CONF, change=None):
    """
    A recorded job as the *number*-th of a cluster, an hour after the one before; give its history.

    Its maps read *size* times as many bytes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    job = b"1795224441974_%04d" % number
    history = re.sub(rb"1795224441974_\d{4}", job, history)
    history = BYTES.sub(lambda m: m[1] + b"%d" % (int(m[2]) * size), history)
    history = MOMENT.sub(lambda m: b"%d" % (int(m[0]) + number * HOUR_MS), history)
    if change is not None:
        history = change(history)
    conf = conf.replace(RECORDED, job).replace(FACTOR + b"3<", FACTOR + b"%d<" % factor)
    name = f"job_{job.decode()}"
    (folder / f"{name}_conf.xml").write_bytes(conf)
    path = folder / f"{name}-1-root-TeraSort-2-3-2-SUCCEEDED-default-3.jhist"
    path.write_bytes(history)
    return path


@pytest.fixture
def done(tmp_path):
    """
    A done tree of eight jobs of one family: four settings, each of them twice.
    """
    for number, (size, factor) in enumerate([(1, 3), (2, 3), (1, 10), (2, 10)] * 2):
        put(tmp_path / "done/2026/11/26" / f"{number // 3:06d}", number, size=size, factor=factor)
    return tmp_path / "done"


@pytest.fixture
def target(tmp_path):
    """
    Where the run is to appear.
    """
    return tmp_path / "results" / "past"


def uses(run):
    """
    Whether each trial of a run feeds the profile, by the moments at which they started.
    """
    records = sorted(run.trials().values(), key=lambda record: record.started_s)
    return [record.trial.profiling for record in records]


@pytest.fixture
def node_logs(done, tmp_path):
    """
    Of each job of the done tree the logs of one map and of one reduce, as their nodes keep them.
    """
    for path in done.rglob("*.jhist"):
        trace = read_history([path.read_bytes()], path.name)
        job = trace.job_id.removeprefix("job_").encode()
        for kind in ("map", "reduce"):
            log = (DATA / f"terasort-{kind}.syslog").read_bytes().replace(RECORDED, job)
            (container,) = (a.container_id for a in trace.attempts if a.attempt_id.encode() in log)
            folder = tmp_path / "userlogs" / f"application_{job.decode()}" / container
            folder.mkdir(parents=True)
            (folder / "syslog.gz").write_bytes(gzip.compress(log))
    return tmp_path / "userlogs"


class TestImport:
    """Histories become trials of an ordinary run."""

    def test_run_is_as_any_other(self, done, target):
        """
        It has evidence and a chain, says what it lacks, and its jobs are as their histories say.
        """
        run, families, notes, left_out, _ = import_jobs([done], target)

        manifest, (first, *_) = run.read_manifest(), run.trials().values()
        assert (families, left_out) == (
            [{"family": "terasort", "jobs": 8, "cells": 4, "profiled": 3, "scored": 2}],
            {},
        )
        assert notes == ["terasort: 3 later jobs repeat what was profiled: not scored"]
        assert (run.check_evidence(), run.finished, manifest.seed) == (True, True, None)
        assert "nothing was started: no seed chose their order" in manifest.limitations[0]
        assert first.trial.cell.cluster.provider == HISTORY
        assert run.read_trace(first.trial.id)[0].job_id == first.job_ids[0]
        assert [path.name for path in target.parent.glob("[!.]*")] == ["past"]

    def test_models_are_given_what_the_job_had(self, done, target):
        """
        Its settings, its heap, its splits, and as many slots as it had tasks at once.
        """
        run = import_jobs([done], target).run

        cells = {t.cell.id: t.cell for t in run.read_plan() if t.cell.workload.input_bytes < 7e6}
        config, cluster, job_input = resolve_cell(next(iter(cells.values()))).model_inputs
        assert (config.num_reduces, config.sort_buffer_mb, config.merge_factor) == (2, 1, 3)
        assert config.reduce_heap_bytes < 400 * 2**20
        assert (cluster.num_nodes, cluster.map_slots, cluster.reduce_slots) == (2, 3, 2)
        assert (job_input.input_bytes, job_input.num_splits) == (6_000_000, 3)

    def test_repeats_are_of_one_cell(self, tmp_path, target):
        """
        Of the same setting, and of sizes that differ by 1 % at most.
        """
        for number, size in enumerate((1, 3, 2, 2)):
            grown = (lambda h: h.replace(b"4000000", b"4039000")) if number == 3 else None
            put(tmp_path / "done", number, size=size, change=grown)

        run = import_jobs([tmp_path / "done"], target).run

        repeats = [(t.cell.workload.input_bytes, t.repetition) for t in run.read_plan()]
        assert repeats == [(6_000_000, 0), (18_000_000, 0), (12_000_000, 0), (12_000_000, 1)]

    def test_moment_divides_in_the_place_of_a_share(self, done, target):
        """
        What was submitted before it is profiled, and its cells are not scored again.
        """
        run = import_jobs([done], target, until_s=1795224626.0 + 2.5 * 3600).run

        assert uses(run) == [True, True, True, False, False]

    def test_nothing_behind_that_moment_is_profiled(self, done, target):
        """
        Also where no later job is new: they are left out, and a note says so.
        """
        moment = 1795224626.0 + 4.5 * 3600  # each setting has run once, one twice

        run, _, notes, *_ = import_jobs([done], target, until_s=moment)

        started = [record.started_s for record in run.trials().values()]
        assert (len(started), max(started) < moment) == (5, True)
        assert any("no model can be scored" in note for note in notes)

    def test_of_a_run_the_histories_alone_are_taken(self, done, tmp_path, target):
        """
        Those of its trials: no warm-up, and nothing of what it was asked.
        """
        run = import_jobs([done], target).run
        (run.path / "warmup").mkdir()
        next((run.path / "trials").iterdir()).rename(run.path / "warmup/one")

        again = import_jobs([target], tmp_path / "again")

        assert (again.families[0]["jobs"], again.left_out) == (4, {})

    def test_nothing_is_left_of_one_that_ends_early(self, done, target, monkeypatch):
        """
        The next one starts anew, also where the first was killed.
        """
        remake_trace, calls = imports.remake_trace, []

        def fail_at_third(*given):
            calls.append(given)
            if len(calls) == 3:
                raise MachineError("the disk is full")
            remake_trace(*given)

        monkeypatch.setattr(imports, "remake_trace", fail_at_third)
        with pytest.raises(MachineError):
            import_jobs([done], target)
        assert [path.name for path in target.parent.iterdir()] == [".import.lock"]

        (target.parent / ".past.new/past/older").mkdir(parents=True)
        assert len(import_jobs([done], target).run.trials()) == 5

    @pytest.mark.process
    def test_logs_of_tasks_tell_what_histories_do_not(self, done, node_logs, target, capsys):
        """
        Profiles have more; of the logs only the lines that are read are stored.
        """
        words = ["import", str(done), "-o", str(target), "--logs", str(node_logs)]
        assert main(words) == 0
        run = Store(target.parent).find(str(target))
        without = import_jobs([done], target.with_name("without")).run
        known = [{*each.read_profiles()["terasort"].statistics} for each in (run, without)
                 if backtest(each, ["whatif-mr2"])]  # fmt: skip

        manifest, trial_id = run.read_manifest(), run.trial_ids()[0]
        raw = run.raw(trial_id)
        logs = [name for name in raw.names() if name.endswith("/syslog")]
        assert manifest.limitations[-2:] == (
            "5 of 25 tasks have a log without that of its shuffle (syslog.shuffle)",
            "15 of 25 tasks have no log",
        )
        assert len(logs) == 1
        with raw.open(logs[0]) as stream:
            stored = stream.read()
        assert b"Finished spill 0" in stored
        assert b"Executing with tokens" not in stored
        assert known[0] > known[1]
        next(node_logs.rglob("*.gz")).write_bytes(gzip.compress(b"Spilling\n") + b"rest")
        assert main([*words[:3], str(target) + "-1", *words[4:]]) == 6
        assert "it is damaged" in capsys.readouterr().err
        assert main([*words[:3], str(target) + "-2", "--logs", "nowhere"]) == 2
        assert "is neither logs nor the address of a history server" in capsys.readouterr().err
        assert main([*words, "--anonymise"]) == 2
        assert main([*words[:3], str(target) + "-3", "--logs", "http://127.0.0.1:9"]) == 7
        assert "none of 25 tasks has a log there" in capsys.readouterr().err
        assert not target.with_name("past-3").exists()

    def test_overwrites_nothing(self, done, target):
        """
        A folder that is there stays.
        """
        target.mkdir(parents=True)

        with pytest.raises(DataError, match="there is something already"):
            import_jobs([done], target)

    def test_names_of_people_are_in_no_file(self, done, tmp_path, target):
        """
        Nor those of hosts, queues and jobs; the numbers stay.
        """
        secret = {
            b"pzw1": b"hera7",
            b"pzw2": b"zeus9",
            b'"root"': b'"quirrel"',
            b'Name":"default"': b'Name":"payroll"',
            b"TeraSort": b"Salaries of May",
        }
        for path in done.rglob("*"):
            if path.is_file():
                data = path.read_bytes()
                for name, other in secret.items():
                    data = data.replace(name, other)
                path.write_bytes(data)

        def anonymiser(files, names):
            return Pseudonyms.of_files(files, names).data

        run = import_jobs([done], target, anonymiser=anonymiser).run

        texts = [path.read_bytes() for path in run.path.rglob("*") if path.is_file()]
        texts = [gzip.decompress(t) if t.startswith(b"\x1f\x8b") else t for t in texts]
        names = ("hera7", "zeus9", "quirrel", "payroll", "Salaries", str(tmp_path))
        assert [name for name in names if any(name.encode() in text for text in texts)] == []
        assert {trial.cell.workload.name for trial in run.read_plan()} == {"job-1"}
        assert (len(run.trials()), run.check_evidence()) == (5, True)


LOGS = CASES / "logs"
MAP_LOG = "container_1795351731993_0010_01_000002/syslog"
STAMP = re.compile(rb"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}", re.MULTILINE)
ONE_JOB = "terasort: it is one job, so no model can be scored on it; it has a profile"


@pytest.fixture
def plain(tmp_path):
    """
    A copy of the logs of a map and of a reduce, which are all tasks of their job.
    """
    return Path(shutil.copytree(LOGS / "plain", tmp_path / "plain"))


def logs_at(place, target):
    """
    The logs at *place*, unpacked beside *target* where they are in one file.
    """
    scratch = target.parent.parent / f"unpacked-{target.name}"
    scratch.mkdir(exist_ok=True)
    return ContainerLogs(str(place), scratch)


def imported(place, target):
    """
    The run of the job whose logs are at *place*, what is said of these, and how many are of a kind.
    """
    logs = logs_at(place, target)
    run, _, notes, left_out, _ = import_jobs([LOGS / "history"], target, logs=logs)
    assert notes[0] == ONE_JOB
    assert (*notes[1:],) == run.read_manifest().limitations[-len(notes) + 1 :]
    return run, notes[1:], dict(logs.counts), left_out


def times_in(run):
    """
    Times of tasks that the logs of a run tell.
    """
    (trace,) = run.read_trace(run.trial_ids()[0])
    return [*logged_times(run.raw(run.trial_ids()[0]), trace, is_compressed=False)]


class TestLogs:
    """A log counts by what was read of it."""

    @pytest.mark.parametrize("place", ["plain", "yarn-logs.txt", "tfile", "ifile"])
    def test_whole_logs(self, place, target):
        """
        As nodes keep them, as yarn logs prints them, and as YARN aggregates them: the same times.
        """
        run, notes, counts, left_out = imported(LOGS / place, target)

        whole = imported(LOGS / "plain", target.with_name("other"))[0]
        assert (notes, counts, left_out) == (["0 of 2 tasks have no log"], {"whole": 2}, {})
        assert len(times_in(run)) == 2
        assert times_in(run) == times_in(whole)

    def test_one_file_of_a_node(self, target):
        """
        It has the logs of the tasks that ran there.
        """
        _, notes, counts, _ = imported(LOGS / "tfile/worker1_45454", target)

        assert notes == ["1 of 2 tasks has no log"]
        assert counts == {"whole": 1, "none": 1}

    def test_head_is_lost(self, plain, target):
        """
        The last two lines, as mapreduce.task.userlog.limit.kb leaves them: nothing of it is used.
        """
        for path in plain.glob("*/syslog"):
            path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[-2:]))

        run, notes, counts, left_out = imported(plain, target)

        assert notes == [
            "2 of 2 tasks have a log that does not begin at the start",
            "0 of 2 tasks have no log",
        ]
        assert (counts, left_out, times_in(run)) == ({"begin": 2}, {}, [])
        assert not any("containers" in name for name in run.raw(run.trial_ids()[0]).names())

    @pytest.mark.parametrize("names", [["syslog.1", "syslog"], ["syslog.2", "syslog.1", "syslog"]])
    def test_rolled_over(self, names, plain, target):
        """
        Its parts are joined, the highest number first, an empty one as well.
        """
        lines = (plain / MAP_LOG).read_bytes().splitlines(keepends=True)
        for number, name in enumerate(names):
            part = lines[14 * number : 14 * number + 14]  # 28 lines are two parts
            (plain / MAP_LOG).with_name(name).write_bytes(b"".join(part))

        run, _, counts, _ = imported(plain, target)

        whole = imported(LOGS / "plain", target.with_name("other"))[0]
        assert counts == {"whole": 2}
        assert times_in(run) == times_in(whole)

    def test_rolled_with_a_gap(self, plain, target):
        """
        What is older than a number that is missing does not join what is newer.
        """
        (plain / MAP_LOG).rename((plain / MAP_LOG).with_name("syslog.2"))
        (plain / MAP_LOG).write_bytes(b"2026-11-22 12:51:47,245 INFO [main] a.B: the last line\n")

        _, notes, counts, _ = imported(plain, target)

        assert counts == {"begin": 1, "whole": 1}
        assert notes[0] == "1 of 2 tasks has a log that does not begin at the start"

    def test_end_is_lost(self, plain, target):
        """
        Of a task that has succeeded.
        """
        lines = (plain / MAP_LOG).read_bytes().splitlines(keepends=True)
        (plain / MAP_LOG).write_bytes(b"".join(lines[:-3]))

        _, notes, counts, _ = imported(plain, target)

        assert counts == {"end": 1, "whole": 1}
        assert notes[0] == "1 of 2 tasks has a log that does not reach the end"

    @pytest.mark.parametrize("stamp", [b"26/11/22 12:51:46", b"12:51:46.123"])
    def test_another_layout(self, stamp, plain, target):
        """
        Its moments cannot be read, and it is no log of Hadoop's that is damaged.
        """
        (plain / MAP_LOG).write_bytes(STAMP.sub(stamp, (plain / MAP_LOG).read_bytes()))

        _, notes, counts, left_out = imported(plain, target)

        assert notes[0] == "1 of 2 tasks has a log of another layout"
        assert (counts, left_out) == ({"layout": 1, "whole": 1}, {})

    def test_empty_and_damaged(self, plain, target):
        """
        The one is none; the other is named with its reason.
        """
        log = (plain / MAP_LOG).read_bytes()
        (plain / MAP_LOG).write_bytes(log.replace(b"Spilling map output\n", b"\n", 1))
        for path in plain.glob("*3/syslog*"):
            path.write_bytes(b"")

        with pytest.raises(DataError, match="none of 2 tasks has a log there that can be read"):
            imported(plain, target)

        logs = logs_at(plain, target)
        with pytest.raises(DataError):
            import_jobs([LOGS / "history"], target, logs=logs)
        assert logs.counts == {"damaged": 1, "none": 1}
        assert "out of order" in logs.left_out[str((plain / MAP_LOG).parent)]

    def test_file_that_is_none_of_these(self, target, capsys):
        """
        It is refused before anything is read; a damaged one is named.
        """
        history = next((LOGS / "history").glob("*.jhist"))
        words = ["import", str(LOGS / "history"), "-o", str(target), "--logs"]

        assert main([*words, str(history)]) == 2
        assert "is neither logs nor the address" in capsys.readouterr().err
        damaged = target.with_name("worker1_45454")
        target.parent.mkdir()
        damaged.write_bytes((LOGS / "tfile/worker1_45454").read_bytes()[:-30])
        logs = logs_at(damaged, target)
        assert "it has no end" in logs.left_out[str(damaged)]

    def test_counts_are_in_json(self, target, capsys):
        """
        By kind, beside the notes.
        """
        words = ["import", str(LOGS / "history"), "-o", str(target), "--json", "--logs"]

        assert main([*words, str(LOGS / "tfile/worker1_45454")]) == 0
        assert json.loads(capsys.readouterr().out)["logs"] == {"tasks": 2, "whole": 1, "none": 1}


class TestClocks:
    """A node whose clock is off costs the phases of its tasks, and no job."""

    def test_the_job_counts_and_it_is_said(self, target):
        """
        Its map ends 8 s behind itself, by the clock of its node: whose phases do not count.
        """
        run, families, notes, left_out, _ = import_jobs([CASES / "clock"], target)

        (trace,) = run.read_trace(run.trial_ids()[0])
        assert (families[0]["jobs"], left_out) == (1, {})
        assert round(trace.job_s, 3) == 10.797
        shown = {attempt.host: attempt.sort_finish_s for attempt in trace.succeeded("reduce")}
        assert shown == {"worker2": None, "worker3": 1425427210.228}
        assert notes[-1] == (
            "the clock of worker2 is at least 7.6 s ahead of that of its jobs' masters: the phases"
            " of 2 tasks there do not count"
        )
        assert notes[-1] in run.read_manifest().limitations

    def test_names_of_nodes_pass_the_anonymiser(self, tmp_path, target):
        """
        As all names of hosts do.
        """
        for path in (CASES / "clock").iterdir():
            history = path.read_bytes().replace(b"worker2", b"hera7")
            (tmp_path / path.name).write_bytes(history)

        def anonymiser(files, names):
            return Pseudonyms.of_files(files, names).data

        notes = import_jobs([tmp_path], target, anonymiser=anonymiser).notes

        assert "is at least 7.6 s ahead" in notes[-1]
        assert "hera" not in " ".join(notes)

    def test_catalog_has_the_job(self, tmp_path):
        """
        And says which numbers of it are missing.
        """
        catalog = Catalog(tmp_path)
        fill(catalog, [CASES / "clock"], 1, lambda _: None)

        job = catalog.read_job("job_1425400000110_0001")
        assert round(job["job_s"], 3) == 10.797
        assert [*job["missing"]] == ["phases of 2 tasks: the clock of their node is off"]


class TestWhatIsRead:
    """Bytes that Hadoop counts elsewhere, and models that need less than others."""

    @pytest.mark.process
    def test_of_hive(self, tmp_path, target, capsys):
        """
        Its format counts none: import, models, catalog and tuning read the file system's counter.
        """
        case = unpacked("zero-input-counter-hive", tmp_path)
        imported = import_jobs([case], target)

        backtest(imported.run)

        sizes = {trial.cell.workload.input_bytes for trial in imported.run.read_plan()}
        assert (imported.families[0]["scored"], min(sizes)) == (2, 16_777_335)
        predictions = imported.run.read_predictions()
        for model in ("whatif-mr2", "ernest", "scaling"):
            assert all(answer.job_s for answer in predictions[model])
        catalog = str(tmp_path / "catalog")
        assert main(["catalog", "add", str(case), "--catalog", catalog]) == 0
        assert main(["catalog", "list", "--catalog", catalog]) == 0
        assert " 64 MiB " in capsys.readouterr().out
        (row, *_) = family_rows(Catalog(tmp_path / "catalog").table())
        assert row["least_input_bytes"] == 16_777_335
        assert basis_of_past_job(Catalog(tmp_path / "catalog"), "job_1425400000103_0001").base

    @pytest.mark.process
    def test_models_of_whole_jobs_need_no_more(self, done, target):
        """
        Of a compression nobody knows the ratio: What-If lacks statistics, and the others answer.
        """
        for path in done.rglob("*_conf.xml"):
            data = path.read_bytes().replace(b"</configuration>", COMPRESSED + b"</configuration>")
            path.write_bytes(data)

        run = import_jobs([done], target).run
        backtest(run, ["whatif-mr2", "ernest", "scaling"])

        predictions = run.read_predictions()
        assert all(answer.not_applicable for answer in predictions["whatif-mr2"])
        answers = predictions["ernest"] + predictions["scaling"]
        assert {(answer.not_applicable, answer.body_s) for answer in answers} == {((), None)}
        assert all(answer.job_s == answer.published_s > 0 for answer in answers)
        assert "the whole job as the profiled jobs took it" in answers[0].warnings[-1]
        scored = [row for row in run.read_scores().scores if row.quantity == "job_s"]
        assert {row.model for row in scored} == {"ernest", "scaling"}

    def test_size_of_what_reads_no_files(self, tmp_path, target):
        """
        What its maps wrote; the run says so.
        """
        for number in range(3):
            put(tmp_path / "jobs", number, history=(DATA / "teragen.jhist").read_bytes())

        run = import_jobs([tmp_path / "jobs"], target).run

        assert run.read_plan()[0].cell.workload.input_bytes == 6_000_000
        assert "3 of 3 jobs read no files" in " ".join(run.read_manifest().limitations)


class TestValues:
    """Of jobs that have run they are what Hadoop made of them."""

    def test_of_other_clusters(self, tmp_path, target):
        """
        An f behind a number, hexadecimal digits, no limit, and a word that is no truth.
        """
        run, families, _, left_out, _ = import_jobs([unpacked("values", tmp_path)], target)

        cells = {t.cell.workload.name: t.cell.configuration for t in run.read_plan()}
        spilled, hexadecimal, unlimited, word = (cells[family["family"]] for family in families)
        assert left_out == {}
        assert spilled["mapreduce.map.sort.spill.percent"] == "0.8"
        assert hexadecimal["mapreduce.task.io.sort.mb"] == "100"
        limit = "mapreduce.job.running.map.limit"  # of the slots that the job was seen to have
        assert unlimited[limit] == spilled[limit] == "1"
        assert "mapreduce.map.output.compress" not in word
        assert job_config(word) == job_config(unlimited)

    def test_variables_and_heaps_of_java_8(self, tmp_path, target):
        """
        Options that name others of the file, and those that the administrator sets before them.
        """
        options = {
            b"mapreduce.reduce.java.opts": b"-Xmx${heap.mb}m -Dpassword=x",
            b"mapreduce.admin.reduce.child.java.opts": b"-XX:NewRatio=8 -XX:MaxPermSize=64m",
            b"heap.mb": b"819",
        }
        conf = re.sub(rb"<name>mapreduce.reduce.java.opts</name>.*?</property>",
                      b"<name>x</name></property>", CONF)  # fmt: skip
        rows = [
            b"<property><name>%s</name><value>%s</value></property>" % pair
            for pair in options.items()
        ]
        conf = conf.replace(b"</configuration>", b"".join(rows) + b"</configuration>")
        put(tmp_path / "jobs", 1, conf=conf)

        run = import_jobs([tmp_path / "jobs"], target).run

        (trial,) = run.read_plan()
        stated = trial.cell.configuration["mapreduce.reduce.java.opts"]
        assert stated == "-XX:NewRatio=8 -Xmx819m -XX:+UseParallelGC"
        assert job_config(trial.cell.configuration).reduce_heap_bytes == 790 * 2**20
        assert "heaps of 1 of 1 job " in " ".join(run.read_manifest().limitations)


class TestWhatCannotBeUsed:
    """Each is named with its reason, and the rest goes on."""

    def test_files(self, done, target):
        """
        A job that failed or has no counters, one in its master, a damaged file, no configuration.
        """
        folder = done / "bad"
        reasons = {
            put(folder, 11, history=(DATA / "failed.jhist").read_bytes()): "the job ended as FAIL",
            put(folder, 12, change=lambda h: re.sub(rb'"counts":\[[^]]*\]', b'"counts":[]', h)):
                "it has no counters",
            put(folder, 13, change=lambda h: h[:3000]): "not the schema",
            put(folder, 14, size=0, change=lambda h: OUTPUT.sub(rb"\g<1>0", h)):
                "its maps read no bytes and wrote none",
            put(folder, 15, conf=b"<configuration>"): "not XML",
            put(folder, 16, conf=CONF.replace(SORT_MB + b"1<", SORT_MB + b"x<")):
                "mapreduce.task.io.sort.mb = 'x' is not a whole number",
            put(folder, 17, change=lambda h: h.replace(b'"uberized":false', b'"uberized":true')):
                "its tasks ran within its application master",
        }  # fmt: skip
        alone = put(folder, 18)
        next(folder.glob("job_1795224441974_0018_conf.xml")).unlink()
        link = folder / "job_1_0001.jhist"
        link.symlink_to(alone)
        reasons |= {alone: "_conf.xml beside it", link: "is not a plain file"}

        left_out = import_jobs([done], target).left_out

        assert left_out.keys() == {str(path) for path in reasons}
        assert [r for path, r in reasons.items() if r not in left_out[str(path)]] == []

    def test_source_without_histories(self, tmp_path, target):
        """
        What, where, and what to name instead; nothing appears.
        """
        with pytest.raises(DataError, match=r"no job history.*\n.*\n.*done-dir") as raised:
            import_jobs([tmp_path], target)

        assert (raised.value.exit_status, target.exists()) == (7, False)

    def test_history_that_was_renamed(self, tmp_path, target):
        """
        Its configuration is found by the id within; where there is none, it is named.
        """
        renamed = put(tmp_path / "jobs", 21).rename(tmp_path / "jobs" / "terasort.jhist")

        run, _, _, left_out, _ = import_jobs([tmp_path / "jobs"], target)

        (record,) = run.trials().values()
        assert (record.job_ids, left_out) == (("job_1795224441974_0021",), {})
        assert "job-0-conf.xml" in run.raw(record.trial.id).names()
        next(renamed.parent.glob("*_conf.xml")).unlink()
        missing = r"terasort.jhist: there is no job_1795224441974_0021_conf.xml beside it"
        with pytest.raises(DataError, match=missing):
            import_jobs([tmp_path / "jobs"], tmp_path / "other")

    def test_id_within_that_leads_elsewhere(self, tmp_path):
        """
        It is an id, or nothing is opened by it.
        """
        source = Files("key", tmp_path, "a.jhist", "")

        with pytest.raises(DataError, match="beside it"):
            with_configuration(source, "../job_1_0001")

    def test_file_in_the_place_of_a_folder(self, tmp_path, target):
        """
        The folder around it is what to name.
        """
        history = put(tmp_path / "jobs", 21)

        with pytest.raises(DataError, match=f"a source is a folder: name {tmp_path / 'jobs'}"):
            import_jobs([history], target)

    def test_what_comes_next_can_be_done(self, done, tmp_path, capsys):
        """
        Where jobs are scored a backtest; where none is, the profile by which they are tuned.
        """
        put(tmp_path / "one", 1)
        one = str(tmp_path / "run")
        assert main(["import", str(tmp_path / "one"), "-o", one]) == 0
        said = capsys.readouterr().err
        assert main(["import", str(done), "-o", str(tmp_path / "many")]) == 0

        assert said.endswith(f"next: harness profile {one}\nthen: harness tune {one}\n")
        assert capsys.readouterr().err.endswith(f"next: harness backtest {tmp_path / 'many'}\n")
        assert main(["profile", one, "--json"]) == 0
        assert main(["tune", one, "--optimizer", "rules", "--json"]) == 0

    def test_family_of_one_and_family_that_never_varies(self, done, tmp_path, target, capsys):
        """
        They have a profile, by which they are tuned, and no model is scored on them.
        """
        put(done, 31, history=WORDCOUNT, size=1)
        for number in (32, 33):
            change = lambda h: h.replace(b'"jobName":"TeraSort"', b'"jobName":"again"')  # noqa: E731
            put(done, number, change=change)

        notes = import_jobs([done], target).notes

        assert any(re.search("count.*: it is one job, so no model", note) for note in notes)
        assert any("again: its 2 jobs never vary" in note for note in notes)
        put(tmp_path / "one", 1)
        run = import_jobs([tmp_path / "one"], tmp_path / "other").run
        with pytest.raises(DataError, match="no model can be scored") as error:
            backtest(run)
        assert "harness tune" in error.value.fix
        assert main(["tune", str(run.path), "--optimizer", "search", "--json"]) == 0
        (proposal,) = json.loads(capsys.readouterr().out)["proposals"]
        assert proposal["job_s"] > 0

    def test_exit_status_says_that_something_was_left_out(self, done, tmp_path, capsys):
        """
        6 with the reasons on stderr, and 0 where all was used.
        """
        folder = str(done)
        assert main(["import", folder, "-o", str(tmp_path / "a"), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["families"][0]["family"] == "terasort"
        (done / "job_1_0001.jhist").write_bytes(b"Meta VERSION=1")

        assert main(["import", folder, "-o", str(tmp_path / "b")]) == 6
        assert "a Hadoop 1 history" in capsys.readouterr().err


def past(number, size, *, at_once=2):
    """
    A job of a family, by its place and its size alone.
    """
    memory = {f"mapreduce.{kind}.memory.mb": "512" for kind in ("map", "reduce")}
    return PastJob(
        source=None, job_id=f"job_1_{number:04d}", name="n", family="n",
        submit_s=10.0 * number, finish_s=10.0 * number + 5, input_bytes=size, num_maps=1,
        configuration=memory, at_once={"map": at_once, "reduce": 1}, hosts=frozenset("a"),
        has_repeats=False,
    )  # fmt: skip


@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=20), share=st.floats(0.01, 0.99))
def test_earlier_jobs_are_profiled_and_later_ones_scored(sizes, share):
    """
    Never the other way round, and no cell is in both; where sizes vary, some of each are left.
    """
    jobs = [past(number, 1000 * size) for number, size in enumerate(sizes)]
    cells = cells_of("n", jobs, cluster_of(jobs))
    trials = plan_family(jobs, cells, share, None)
    if len(set(sizes)) == 1:
        assert [trial.profiling for trial, _ in trials] == [True] * len(jobs)
        return

    profiled = {job.submit_s: trial.cell.id for trial, job in trials if trial.profiling}
    scored = {job.submit_s: trial.cell.id for trial, job in trials if not trial.profiling}
    assert max(profiled) < min(scored)
    assert not {*profiled.values()} & {*scored.values()}
    assert len({trial.id for trial, _ in trials}) == len(trials)


def test_a_family_that_always_had_room_for_its_reduces_has_the_slots_of_all_jobs():
    """
    One that had not has those that it was seen to use.
    """
    name, limit = "mapreduce.job.reduces", "mapreduce.job.running.reduce.limit"
    free, short = (
        [replace(past(n, 1000 * n), configuration=past(n, 1).configuration | {name: reduces})
         for n in (1, 2)]
        for reduces in ("1", "7")
    )  # fmt: skip

    limits = [
        {cell.configuration.get(limit) for cell in cells_of("n", jobs, cluster_of(jobs))}
        for jobs in (free, short)
    ]

    assert limits == [{None}, {"1"}]


def test_hosts_that_no_job_joins_may_be_two_clusters():
    """
    A job that ran on hosts of both makes them one; jobs whose hosts are not known say nothing.
    """
    of_a, of_b, both, unknown = (
        replace(past(1, 1), hosts=frozenset(hosts)) for hosts in ("ab", "cd", "bc", "")
    )

    assert host_groups([of_a, unknown, of_b]) == 2
    assert host_groups([of_a, of_b, both]) == 1
    assert host_groups([unknown]) == 0


@pytest.mark.process
def test_past_job_is_the_base_and_its_family_the_profile(done, tmp_path):
    """
    By its id in a catalog; where its own history is gone, the job most like it is.
    """
    catalog = Catalog(tmp_path / "catalog")
    fill(catalog, [done], 1, lambda _: None)
    job_id = "job_1795224441974_0001"

    basis = basis_of_past_job(catalog, job_id)
    assert basis.base.workload.input_bytes == 12_000_000
    assert f"the cell of {job_id}; the profile is of 8 jobs" in basis.note
    of_run = Catalog(tmp_path / "of-run")
    fill(of_run, [import_jobs([done], tmp_path / "run").run.path], 1, lambda _: None)
    there = basis_of_past_job(of_run, job_id)
    assert there.base.workload == basis.base.workload
    for path in done.rglob(f"{job_id}*"):
        path.unlink()
    other = basis_of_past_job(catalog, job_id)
    assert other.base.workload == basis.base.workload
    assert f"the job most like {job_id}, whose own history is of no use" in other.note
    shutil.rmtree(done)
    with pytest.raises(DataError, match="no job history"):
        basis_of_past_job(catalog, job_id)


@pytest.mark.process
def test_profile_of_a_past_job_is_that_of_a_run_of_its_family(done, tmp_path):
    """
    No run is made for it; the numbers are those that one would have.
    """
    catalog = Catalog(tmp_path / "catalog")
    fill(catalog, [done], 1, lambda _: None)
    evaluation = Evaluation.of(import_jobs([done], tmp_path / "run", until_s=math.inf).run)
    profiles = evaluation.profile()

    basis = basis_of_past_job(catalog, "job_1795224441974_0002")

    (profile,) = profiles.values()
    assert basis.profile == profile
    assert {key: cell.cell for key, cell in basis.profiled.items()} == evaluation.cells
    assert basis.note.startswith(evaluation.labels[basis.base.id])


def test_families_have_short_names_that_are_safe():
    """
    The words of the job's name, its stage, or its rule's name; with a part of a hash where two
    families would share one.
    """
    names = (
        "Daily-Report 2026-11-26",
        "2026",
        "load 1",
        "load_2",
        "query 9 (Stage-2)",
        "of a rule",
    )
    families = [f"{stem(name)} [?]" for name in names[:-1]] + ["Nightly Load"]
    pairs = zip(families, names, strict=True)

    short = family_names(replace(past(1, 1), family=family, name=name) for family, name in pairs)

    report, number, *loads, stage, rule = (short[family] for family in families)
    assert (report, number, stage, rule) == ("daily-report", "job", "query-stage-2", "nightly-load")
    assert len(set(short.values())) == 6
    assert all(re.fullmatch("load-[0-9a-f]{4}", load) for load in loads)


class TestBacktest:
    """The models are tried on the later jobs."""

    @pytest.mark.process
    def test_models_are_scored_or_say_what_is_missing(self, done, target):
        """
        What histories give is enough for some, and the others are not applicable by name.
        """
        run = import_jobs([done], target).run

        document = backtest(run)

        predictions = run.read_predictions()
        assert "The cluster: its jobs had run before" in str(document.facts)
        assert {name: each[0].job_s is not None for name, each in predictions.items()} == {
            "whatif": True, "whatif-printed": True, "whatif-mr2": True, "prophet": False,
            "ptc-wave": False, "ptc-closed": False, "spn-gc": False, "spn-gc-mr2": False,
            "ernest": True, "scaling": True,
        }  # fmt: skip
        assert all(each[0].not_applicable for each in predictions.values() if not each[0].job_s)
        quantities = {score.quantity for score in run.read_scores().scores}
        assert quantities >= {"job_s", "published_s"}
        assert "body_s" not in quantities  # start and end of tasks are fitted: no measurement
        assert "terasort 11.4 MiB sort.factor=10" in Evaluation.of(run).labels.values()
        (refusal, *_) = blind_refusals(run, run.trials().values())
        assert "was measured before the predictions were sealed" in refusal
        assert (target / "report.html").is_file()
        assert run.check_evidence()

        backtest(run, ["ernest", "whatif"])  # others than those that are sealed
        (analysis,) = run.analyses()
        assert [*analysis.read_predictions()] == ["ernest", "whatif"]
        assert uses(run) == [t.profiling for t in analysis.read_plan()]

    @pytest.mark.process
    def test_own_models_are_asked(self, done, target, tmp_path):
        """
        By the path of their file, beside others.
        """
        code = (
            "class Mine:\n    name = 'mine'\n    required = frozenset({'jobs'})\n"
            "    def predict(self, profile, configuration, cluster, job_input):\n"
            "        return {'body_s': 12.0}\n"
        )
        (tmp_path / "mine.py").write_text(code)
        run = import_jobs([done], target).run
        backtest(run, ["ernest", f"{tmp_path}/mine.py:Mine"])

        (prediction, *_) = run.read_predictions()["mine"]
        assert prediction.body_s == 12.0
        asked = asked_anew(run, f"{tmp_path}/mine.py:Mine", [])
        assert (asked.predict.models, [*asked.predict.code]) == (("mine",), ["mine"])

    def test_again_it_says_the_same(self, done, target):
        """
        Profiles, predictions and scores are what they were.
        """
        evaluation = Evaluation.of(import_jobs([done], target).run)
        asked = asked_anew(evaluation.run, "ernest,scaling", [])
        evaluation = replace(evaluation, experiment=asked)
        evaluation.profile()
        evaluation.predict()

        assert evaluation.score() == evaluation.score()

    def test_unknown_model_and_run_that_was_measured(self, done, tmp_path, target):
        """
        Each is refused, with what to write instead.
        """
        run = import_jobs([done], target).run
        with pytest.raises(SpecError, match=r"no model 'whatf'.*\n.*\n.*did you mean whatif"):
            backtest(run, ["whatf"])
        with pytest.raises(SpecError, match="was fixed when the run was imported"):
            asked_anew(run, "whatif", ["input=1"])
        experiment = run.experiment()
        cluster = experiment.cluster.model_copy(update={"provider": "local"})
        measured = experiment.model_copy(update={"cluster": cluster})
        other = Store(tmp_path / "results").open_run(measured, "")
        other.write_plan([])
        with pytest.raises(SpecError, match="was measured, and not imported"):
            backtest(other)


def test_jobs_that_are_there_twice_count_once(done):
    """
    As in two copies of a done tree.
    """
    jobs, left_out = read_jobs([done, done])

    assert (len(jobs), left_out) == (8, {})


def test_combiner_is_the_jobs_own():
    """
    A job whose configuration names a combiner is asked about as one that combines.
    """
    spec = WorkloadSpec(name="terasort", input_bytes=100, parameters={"maps": 2})
    cluster = ClusterSpec(provider=HISTORY)
    classes = {"mapreduce.job.combine.class": "a.B"}

    cells = [Cell(cluster=cluster, workload=spec, configuration=each) for each in ({}, classes)]

    assert [resolve_cell(cell).model_inputs[0].use_combiner for cell in cells] == [False, True]
