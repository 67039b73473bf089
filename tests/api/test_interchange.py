"""Tests for what other programs of the field read of a run, and for Rumen's traces read."""

import csv
import gzip
import json
import shutil
import subprocess

from dataclasses import replace
from io import BytesIO
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace

import pandas as pd
import pytest

from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.base.errors import ParseError
from harness.base.records.trace import TASK_COUNTER, JobTrace, TaskAttempt
from harness.base.version import __version__
from harness.cli import main
from harness.core.store import Run
from harness.export import interchange
from harness.export.interchange import pkb_samples, read_rumen, rumen_topology, rumen_trace
from harness.export.tables import export
from harness.nightly.nights import night
from harness.nightly.page import otava_csv
from harness.observe.parsing.history import read_history
from tests.parsing.histories import JSON, RECORDED

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parent / "data"
OTAVA = ROOT / ".cache/otava/bin/python"  # scripts/peer otava
RUMEN = ROOT / ".cache/bench-history/lib"  # bench/bench_history.py
NAMES = (
    "wordcount", "teragen", "terasort", "failed", "killed", "failed-binary", "maponly-binary",
    "speculative-binary", "speculative-json", "uber-binary", "uber-json", "wordcount-binary",
)  # fmt: skip
START_S = 1767225600.0
CELL = {"workload": "terasort", "input": 83886080, "mapreduce.task.io.sort.mb": 1.5}


def histories():
    """
    The recorded jobs, as their histories have them, in the order of their ids.
    """
    jobs = [read_history([{**JSON, **RECORDED}[name]], name) for name in NAMES]
    return sorted(jobs, key=lambda job: job.job_id)


def kept(job):
    """
    What Rumen holds of *job*: no counter of another name, and no 0 where it writes 0 for nothing.
    """
    resources = {*interchange._RESOURCES.values()}
    counters = {*interchange._COUNTERS.values()} | resources
    attempts = [
        replace(
            each, map_finish_s=None, container_id="", locality="", error="",
            counters={
                name: count for name, count in each.counters.items()
                if name in counters and (count or name not in resources)
            },
        )
        for each in job.attempts
    ]  # fmt: skip
    return replace(
        job, attempts=tuple(attempts), counters={}, map_counters={}, reduce_counters={},
        diagnostics="", uberized=False,
    )  # fmt: skip


def written(*jobs):
    """
    A trace of *jobs*.
    """
    return b"".join(rumen_trace(jobs))


def read(trace):
    """
    The jobs of *trace*, read as an open file.
    """
    return [*read_rumen(BytesIO(trace), "trace.json")]


def jobs_and_line(trace):
    """
    The jobs of *trace* up to what cannot be read, and the line of that (`None`: there is nothing).
    """
    jobs_read = []
    try:
        jobs_read.extend(read_rumen(BytesIO(trace), "trace.json"))
    except ParseError as error:
        return jobs_read, error.line
    return jobs_read, None


def recorded_trace():
    """
    The trace that Rumen made of the recorded jobs.
    """
    return gzip.decompress((DATA / "rumen-trace.json.gz").read_bytes())


@st.composite
def jobs(draw):
    """
    Any job that Rumen can hold, with one or two attempts at each task.
    """
    number = draw(st.integers(1, 10**10 - 1))
    moments = st.integers(0, 2**43).map(lambda ms: ms / 1000)
    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    counters = st.dictionaries(
        st.sampled_from([*interchange._COUNTERS.values(), *interchange._RESOURCES.values()]),
        st.integers(1, 2**63 - 1),
        max_size=3,
    )
    submit_s, launch_s, finish_s = sorted(draw(st.lists(moments, min_size=3, max_size=3)))
    attempts = []
    for place, (kind, state) in enumerate(draw(st.lists(st.tuples(
        st.sampled_from(["map", "reduce"]), st.sampled_from(["succeeded", "failed", "killed"])
    ), max_size=5))):  # fmt: skip
        task = f"_{number}_0001_{kind[0]}_{place // 2:06}"
        start_s, end_s = sorted(draw(st.lists(moments, min_size=2, max_size=2)))
        attempts.append(
            TaskAttempt(
                attempt_id=f"attempt{task}_{place % 2}", task_id=f"task{task}", kind=kind,
                state=state, start_s=start_s, finish_s=end_s,
                host=draw(texts).replace("/", ""),
                shuffle_finish_s=draw(st.none() | moments), sort_finish_s=draw(st.none() | moments),
                counters=draw(counters),
            )
        )  # fmt: skip
    attempts.sort(key=lambda each: (each.start_s, each.attempt_id))
    return JobTrace(
        job_id=f"job_{number}_0001", name=draw(texts), user=draw(texts),
        state=draw(st.sampled_from(["SUCCEEDED", "FAILED", "KILLED"])), submit_s=submit_s,
        launch_s=launch_s, finish_s=finish_s, num_maps=draw(st.integers(0, 2**31 - 1)),
        num_reduces=3, attempts=tuple(attempts),
    )  # fmt: skip


class TestPerfKitBenchmarker:
    def labels(self, line):
        """
        As its own programs take labels apart.
        """
        fields = json.loads(line)["labels"][1:-1].split("|,|")
        return dict(field.split(":", 1) for field in fields)

    def a_run(self, **facts):
        """
        A run of one trial and one score; *facts* are columns of the measurement.
        """
        cell = {**CELL, "cell": "0c979f6485deb84b"}
        return SimpleNamespace(
            trials=pd.DataFrame([{"trial": "870dcd2f894acff9", "finished_s": 1795640663.75}]),
            measurements=pd.DataFrame([{
                **cell, "trial": "870dcd2f894acff9", "job_s": 16.5, "reference_job_s": 15.25,
                "body_s": float("nan"), "range": "inside", "disturbed": "node1: swapped",
                "start": "1795640446090", **facts,
            }]),
            scores=pd.DataFrame([{
                **cell, "model": "whatif", "level": "job", "quantity": quantity, "speed": "raw",
                "predicted_s": 15.5, "measured_s": 16.5, "trials": 3, "floor": 0.0125,
                "signed_error": -0.0625, "relative_error": 0.0625, "covered_80": None,
            } for quantity in ("job_s", "sort_s")]),
            evaluation=SimpleNamespace(experiment=SimpleNamespace(name="quick")),
            run=SimpleNamespace(id="20261125T210035Z-7a8f"),
        )  # fmt: skip

    def test_samples_are_what_its_publisher_writes(self):
        """
        The same fields in the same order, and the same labels; the id of a sample is random there.
        """
        samples = [json.loads(line) for line in pkb_samples(self.a_run())]
        recorded = (DATA / "pkb-samples.json").read_text().replace("VERSION", __version__)

        for sample, line in zip(samples, recorded.splitlines(), strict=True):
            expected = json.loads(line)
            assert list(sample) == list(expected)
            assert {**sample, "sample_uri": ""} == {**expected, "sample_uri": ""}

    @given(st.text("|,:ab_s\n", max_size=9), st.text("|,:ab\n", max_size=9))
    @example("", "c|,|d")
    @example("|,|b:c", "")
    def test_no_text_is_taken_for_another_label(self, name, text):
        """
        Whatever a setting is called, and whatever its value.
        """
        name = f"a{name}x"
        text = f"b{text}"
        (line, *_) = pkb_samples(self.a_run(**{name: text}))
        (other, *_) = pkb_samples(self.a_run())
        added = {name.replace("|", "/").replace(":", "="): text.replace("|", "/")}

        assert self.labels(line) == {**self.labels(other), **added}
        assert line.count(b"\n") == 1

    def test_a_run_has_a_sample_for_each_time_and_error(self, run):
        """
        Each with an id of its own, the same each time.
        """
        lines = [*pkb_samples(run)]
        samples = [json.loads(line) for line in lines]
        times = run.measurements.filter(regex="_s$")

        assert lines == [*pkb_samples(run)]
        assert len({sample["sample_uri"] for sample in samples}) == len(lines)
        assert sum(s["unit"] == "seconds" for s in samples) == times.notna().to_numpy().sum()
        assert [s["value"] for s in samples if s["unit"] == "ratio"] == [
            error
            for quantity, error in zip(
                run.scores["quantity"], run.scores["signed_error"], strict=True
            )
            if quantity in ("job_s", "body_s")
        ]
        assert {self.labels(line)["trial"] for line in lines if b"|trial:" in line} == {
            *run.measurements["trial"]
        }


class TestOtava:
    @pytest.mark.process
    def test_runs_are_rows_in_the_order_of_time(self, run, tmp_path, capsys):
        """
        Those of the same machine as the last one; the command names the others.
        """
        path = run.run.path
        copies = [tmp_path / f"results/recorded/{n}" for n in (1, 2)]
        for copy in copies:
            shutil.copytree(path, copy)
        created_s = Run(copies[0]).read_manifest().created_s
        Run(copies[0]).update_manifest(created_s=created_s - 86400)
        Run(copies[1]).update_manifest(machine={"id": "another"}, created_s=created_s - 3600)

        assert main(["export", *map(str, (path, *copies)), "-o", str(tmp_path / "out")]) == 0
        rows = [*csv.DictReader((tmp_path / "out/otava.csv").read_text().splitlines())]
        assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)
        assert len(rows) == 2
        assert "otava.csv leaves out 2: it is of another machine" in capsys.readouterr().err
        job_s = {each.name: fmean(each.raw) for each in night(run.evaluation).points}
        assert {name: float(rows[-1][name]) for name in job_s} == job_s

    @pytest.mark.process
    @pytest.mark.skipif(not OTAVA.exists(), reason="Apache Otava is not here: scripts/peer otava")
    def test_otava_finds_in_it_where_runs_became_slower(self, run, tmp_path):
        """
        Its own importer reads every number, and its analysis names the run of the change.
        """
        base = night(run.evaluation)

        def points(day):
            factor = (1.3 if day >= 12 else 1) * (1 + 0.01 * (day * 7 % 5))
            for each in base.points:
                raw = tuple(factor * number for number in each.raw)
                yield each.model_copy(update={"raw": raw})

        nights = [
            base.model_copy(update={"time_s": START_S + 86400 * day, "points": (*points(day),)})
            for day in range(24)
        ]
        (tmp_path / "otava.csv").write_text(otava_csv(nights))
        columns = [each.name for each in base.points if each.quantity == "job_s"]
        program = """
import json, sys
from datetime import datetime, timezone
from otava.importer import CsvImporter, DataSelector
from otava.series import AnalysisOptions
from otava.test_config import CsvMetric, CsvTestConfig
file, *columns = sys.argv[1:]
metrics = [CsvMetric(column, -1, 1.0, column) for column in columns]
selector = DataSelector()
selector.since_time = datetime(2020, 1, 1, tzinfo=timezone.utc)
selector.until_time = datetime(2100, 1, 1, tzinfo=timezone.utc)
config = CsvTestConfig("runs", file, metrics=metrics, attributes=["commit"])
series = CsvImporter().fetch_data(config, selector)
changes = series.analyze(AnalysisOptions()).change_points
indexes = {name: [int(point.index) for point in points] for name, points in changes.items()}
print(json.dumps([series.time, series.data, indexes]))
"""
        command = [OTAVA, "-c", program, tmp_path / "otava.csv", *columns]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        times, read_back, changes = json.loads(done.stdout)

        assert times == [each.time_s for each in nights]
        assert read_back == {
            name: [fmean(p.raw) for each in nights for p in each.points if p.name == name]
            for name in columns
        }
        assert len(columns) > 1
        assert changes == {column: [12] for column in columns}


class TestRumen:
    def test_what_it_makes_of_histories_is_read(self):
        """
        The same jobs as in the histories themselves, as far as it holds them.
        """
        assert sorted(read(recorded_trace()), key=lambda job: job.job_id) == [
            *map(kept, histories())
        ]

    def test_what_is_written_is_read_again(self):
        """
        Of real jobs all that it holds.
        """
        assert read(written(*histories())) == [*map(kept, histories())]

    @given(st.lists(jobs(), max_size=3))
    def test_any_job_is_read_again(self, several):
        """
        Whatever its names hold: quotation marks, braces, lines.
        """
        assert read(written(*several)) == [*map(kept, several)]

    def test_what_is_written_is_what_it_makes_itself(self):
        """
        Every field that both have, of jobs, tasks and attempts.  Not in ours are the queue,
        when a task was ready, when one that did not succeed was given up, and distributions of
        times; tasks that never ran are in none.
        """
        documents = []
        decoder = json.JSONDecoder()
        text = recorded_trace().decode().strip()
        while text:
            document, end = decoder.raw_decode(text)
            documents.append(document)
            text = text[end:].lstrip()
        by_id = {document["jobID"]: document for document in documents}
        unlike = []
        for job in histories():
            document = json.loads(written(job))
            expected_job = by_id[job.job_id]
            names = {name for name in document if not name.endswith(("queue", "Tasks", "CDF"))}
            unlike += [(job.job_id, name) for name in names if document[name] != expected_job[name]]
            for kind in ("mapTasks", "reduceTasks"):
                logged = {task["taskID"]: task for task in expected_job[kind]}
                for task in document[kind]:
                    expected = logged[task["taskID"]]
                    left_out = {"startTime", "attempts"}
                    left_out |= {"finishTime"} if task["taskStatus"] != "SUCCESS" else set()
                    names = task.keys() - left_out
                    unlike += [(task["taskID"], n) for n in names if task[n] != expected[n]]
                    attempts = {each["attemptID"]: each for each in expected["attempts"]}
                    for each in task["attempts"]:
                        logged_attempt = attempts[each["attemptID"]]
                        unlike += [
                            (each["attemptID"], n) for n in each if each[n] != logged_attempt[n]
                        ]

        assert unlike == []

    def test_an_error_of_the_master_is_a_failure(self):
        """
        It has no other word for a job that ended so.
        """
        assert read(written(replace(histories()[0], state="ERROR")))[0].state == "FAILED"

    def test_topology_has_every_host_once(self):
        """
        As its own, in the rack of hosts that nobody has placed.
        """
        hosts = [each.host for job in histories() for each in job.attempts]
        recorded = json.loads((DATA / "rumen-topology.json").read_text())
        recorded["children"] = [r for r in recorded["children"] if r["name"] != "UNKNOWN"]

        assert json.loads(rumen_topology([*hosts, ""])) == recorded

    @pytest.mark.process
    @pytest.mark.skipif(
        not (RUMEN / ".done").exists(), reason="Rumen is not here: python bench/bench_history.py"
    )
    def test_its_own_readers_find_the_same(self, tmp_path):
        """
        In the trace that we write and in its own: jobs, attempts, machines, and what it
        would replay of attempts that ended by themselves (it makes up the others).
        """
        trace = tmp_path / "trace.json"
        topology = tmp_path / "topology.json"
        trace.write_bytes(written(*histories()))
        topology.write_bytes(rumen_topology(a.host for job in histories() for a in job.attempts))
        (tmp_path / "theirs.json").write_bytes(recorded_trace())
        replayed = {
            (job.job_id, each.kind.upper(), *(str(int(n)) for n in each.attempt_id.split("_")[4:]))
            for job in histories()
            for each in job.attempts
            if each.state != "killed"
        }
        source = ROOT / "tests/api/java/ReadTrace.java"
        path = f"{tmp_path}:{RUMEN}/*"
        subprocess.run(["javac", "-cp", path, "-d", tmp_path, source], check=True)

        def printed(file, tree):
            command = ["java", "-cp", path, "ReadTrace", file, tree]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            lines = [line.split("\t") for line in done.stdout.splitlines()]
            # Of what never ran, and where: a trace of ours does not have it.
            lines = [line for line in lines if "UNKNOWN" not in str(line)]
            return sorted(x for x in lines if x[0] != "story" or tuple(x[1:5]) in replayed)

        printed_of_ours = printed(trace, topology)
        assert printed_of_ours == printed(tmp_path / "theirs.json", DATA / "rumen-topology.json")
        kinds = [line[0] for line in printed_of_ours]
        assert kinds.count("story") == len(replayed)
        assert kinds.count("job") == len(NAMES)
        assert kinds.count("attempt") == sum(len(job.attempts) for job in histories())
        assert kinds.count("machine") == 3

    @settings(max_examples=50)
    @given(st.integers(0, len(recorded_trace())), st.integers(0, 255))
    def test_a_trace_that_is_cut_or_changed_is_an_error_or_a_job(self, place, byte):
        """
        Never another exception; of one that is cut the jobs before are read.
        """
        whole = recorded_trace()
        for trace in (whole[:place], whole[:place] + bytes([byte]) + whole[place + 1 :]):
            jobs_read, line = jobs_and_line(trace)
            assert len(jobs_read) + (line is not None) > 0 or not trace
            assert line is None or 1 <= line <= trace.count(b"\n") + 1

    @given(st.binary(max_size=60))
    def test_anything_else_is_an_error(self, trace):
        """
        But for nothing at all.
        """
        jobs_read, line = jobs_and_line(trace)
        assert (jobs_read, line is None) == ([], not trace.strip())

    @pytest.mark.parametrize(
        ("path", "value", "message"),
        [
            (["jobID"], None, "job_id"),
            (["outcome"], None, "KeyError: None"),
            (["outcome"], "RUNNING", "KeyError: 'RUNNING'"),
            (["submitTime"], -1, "submit_s Input should be greater than or equal to 0"),
            (["finishTime"], 0, "an end before its start"),
            (["totalMaps"], "3", "'int' and 'str'"),
            (["jobName"], ["\x1b"], "name Input should be a valid string"),
            (["mapTasks"], 3, "'int' object is not iterable"),
            (["mapTasks", 0], [], "list indices"),
            (["mapTasks", 0, "attempts", 0, "attemptID"], None, "attempt_id"),
            (["mapTasks", 0, "attempts"], [[]] * 9, "list indices"),
            (["mapTasks", 0, "attempts", 0, "startTime"], "1", "'int' and 'str'"),
            (["mapTasks", 0, "attempts", 0, "finishTime"], 0, "an end before its start"),
            (["mapTasks", 0, "attempts", 0, "spilledRecords"], 1.5, "SPILLED_RECORDS"),
            (["mapTasks", 0, "attempts", 0, "result"], "DONE", "KeyError: 'DONE'"),
            (["mapTasks", 0, "attempts", 0, "hostName"], 5, "'int' object has no attribute"),
            (["mapTasks", 0, "attempts", 0, "resourceUsageMetrics"], {}, "cumulativeCpuUsage"),
        ],
    )
    def test_what_is_not_right_is_named(self, path, value, message):
        """
        With the line at which its job starts, and no character that a terminal obeys.
        """
        job = histories()[0]
        document = place = json.loads(written(job))
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        trace = written(job) + b"\n" + json.dumps(document, indent=1).encode()

        with pytest.raises(ParseError) as caught:
            read(trace)
        assert caught.value.line == written(job).count(b"\n") + 2
        assert message in caught.value.what
        assert "\x1b" not in str(caught.value)

    def test_attempts_without_start_or_end_are_left_out(self):
        """
        As from a history.
        """
        document = json.loads(written(histories()[0]))
        first, second, third = (task["attempts"][0] for task in document["mapTasks"])
        first["startTime"] = second["finishTime"] = -1
        third["result"] = None

        (job,) = read(json.dumps(document).encode())
        assert {each.kind for each in job.attempts} == {"reduce"}

    def test_a_job_without_an_end_is_bounded(self, monkeypatch):
        """
        However many lines it has, or however long one is.
        """
        monkeypatch.setattr(interchange, "_MOST_BYTES", 30_000)
        for trace in (b'{"jobName": "' + b"a" * 60_000, b"{\n" * 60_000, b" \n{" + b'"",' * 20_000):
            with pytest.raises(ParseError, match="a job of 30000 bytes or more"):
                read(trace)
        assert len(read(written(*histories()[:3]))) == 3

    def test_a_run_has_a_trace_of_its_jobs(self, run, tmp_path):
        """
        In the order of their trials, with the hosts of all.
        """
        [*export(run, tmp_path)]
        trials = run.trials.sort_values("started_s")["trial"]
        stored = [job for each in trials for job in run.run.read_trace(each)]

        assert read((tmp_path / "rumen-trace.json").read_bytes()) == [*map(kept, stored)]
        assert (tmp_path / "rumen-topology.json").read_bytes() == rumen_topology(
            run.attempts["host"]
        )
        assert f"{TASK_COUNTER}.SPILLED_RECORDS" in stored[0].attempts[0].counters
