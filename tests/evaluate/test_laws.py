"""
Tests for `harness.core.evaluate.laws`, on a real run of three trials: whole, and forged.
"""

import gzip
import hashlib
import json
import re
import shutil

from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import EvidenceError
from harness.base.records.trial import Cell, ClusterSpec, WorkloadSpec
from harness.cli import main
from harness.core.evaluate import steps
from harness.core.evaluate.laws import LAWS, broken_laws, jobs, most_at_once, unseen_by_laws
from harness.core.evaluate.laws.logs import configured_as_cell
from harness.core.evaluate.laws.measured import Measured
from harness.core.evaluate.laws.plan import file_of_experiment, require_same_file
from harness.core.evaluate.provenance import blind_refusals
from harness.core.store.run import Run
from harness.core.store.seal import RunSeal
from harness.pseudonyms.names import Pseudonyms
from harness.publish.evidence import copy_run
from tests.run.test_older import OLDER

NEWEST = max(OLDER.glob("shape-*.tar.gz"), key=lambda path: int(path.name[6:-7]))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """
    The run as it was measured.
    """
    results = tmp_path_factory.mktemp("results")
    assert main(["unpack", str(NEWEST), "--results-dir", str(results)]) == 0
    (manifest,) = results.glob("*/*/manifest.json")
    return manifest.parent


@pytest.fixture
def forged(whole, tmp_path):
    """
    A copy of it, whose files are changed.
    """
    copy = tmp_path / whole.name
    shutil.copytree(whole, copy)
    return Run(copy)


def trial_files(run):
    """
    Records of its trials by their start.
    """
    paths = run.path.glob("trials/*/trial.json")
    return sorted(paths, key=lambda path: json.loads(path.read_text())["started_s"])


def change(path, **fields):
    """
    Replace *fields* of a JSON file.
    """
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def change_column(run, table, column, new_value):
    """
    Replace a column of a table of the first trial; *new_value* is given the old one.
    """
    (path,) = trial_files(run)[0].parent.glob(f"trace/{table}.parquet")
    rows = pq.read_table(path)
    place = rows.schema.get_field_index(column)
    pq.write_table(rows.set_column(place, rows.schema.field(place), new_value(rows[column])), path)


def places(run):
    """
    Which laws are broken.
    """
    return {breach.law for breach in broken_laws(run)}


def cut_plan(run):
    """
    A cell at which a model is bad is taken out, with its trial.
    """
    lines = (run.path / "plan.jsonl").read_text().splitlines(keepends=True)
    scored = [line for line in lines if '"profiling":false' in line.replace(" ", "")]
    (run.path / "plan.jsonl").write_text("".join(line for line in lines if line != scored[-1]))
    shutil.rmtree(run.path / "trials" / json.loads(scored[-1])["id"])


def copy_repeat(run):
    """
    A trial gets the jobs and the logs of another one.
    """
    first, second = trial_files(run)[:2]
    record = json.loads(first.read_text())
    change(second, job_ids=record["job_ids"])
    for file_name in ("raw", "trace", "evidence.json"):
        source, target = first.parent / file_name, second.parent / file_name
        if source.is_dir():
            shutil.rmtree(target)
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)


def overlap(run):
    """
    A trial starts before the one before it has ended.
    """
    first, second = trial_files(run)[:2]
    change(second, started_s=json.loads(first.read_text())["started_s"] + 2.0)


def end_later(run):
    """
    A trial ends after it was stored.
    """
    last = trial_files(run)[-1]
    change(last, finished_s=json.loads(last.read_text())["finished_s"] + 60.0)


def exchange_jobs(run):
    """
    The first trial has a job of the last one's number.
    """
    first, *_, last = trial_files(run)
    first_ids, last_ids = (json.loads(path.read_text())["job_ids"] for path in (first, last))
    change(first, job_ids=last_ids)
    change(last, job_ids=first_ids)


def start_before_seal(run):
    """
    A scored trial started when nothing was sealed.
    """
    change(trial_files(run)[-1], started_s=1.0)


def crowd(run):
    """
    All tasks of a job run at once, and there are some more of them.
    """
    for path in run.path.glob("trials/*/trace/attempts.parquet"):
        table = pq.read_table(path)
        pq.write_table(pa.concat_tables([table] * 3), path)
    change_column(run, "attempts", "start_s", lambda column: pa.repeat(pc.min(column), len(column)))


def count_more(run):
    """
    A job has more records than its tasks.
    """
    (path,) = trial_files(run)[0].parent.glob("trace/counters.parquet")
    table = pq.read_table(path)
    rows = table.to_pylist()
    of_maps = [row for row in rows if row["scope"] == "map_counters"]
    (records,) = [row for row in of_maps if row["name"].endswith(".MAP_INPUT_RECORDS")]
    records["value"] += 1
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)


def read_less(run):
    """
    The input of a trial is larger than what its job has read.
    """
    path = trial_files(run)[0]
    change(path, input_bytes=2 * json.loads(path.read_text())["input_bytes"])


def record_elsewhere(run):
    """
    What was recorded inside a task lies an hour before it.
    """
    change_column(run, "spans", "start_s", lambda column: pc.subtract(column, 3600.0))


def change_job(run, **fields):
    """
    Replace *fields* of the job of the first trial; each is given the old value.
    """
    path = trial_files(run)[0].parent / "trace/job.json"
    document = json.loads(path.read_text())
    (job,) = document["jobs"]
    job |= {name: new_value(job[name]) for name, new_value in fields.items()}
    path.write_text(json.dumps(document))


def change_log(run, log_name, change_text):
    """
    Rewrite a log of the first trial by *change_text*.
    """
    path = trial_files(run)[0].parent / "raw" / f"{log_name}.gz"
    before = gzip.decompress(path.read_bytes()).decode()
    after = change_text(before)
    assert after != before
    path.write_bytes(gzip.compress(after.encode()))


def remove_logs(run, pattern):
    """
    Take logs of all trials away, as whoever forges what was made of them would.
    """
    for path in run.path.glob(f"trials/*/raw/{pattern}"):
        path.unlink()


def change_chain(run, change_lines):
    """
    Write the chain anew, with other lines and right hashes.
    """
    path = run.path / "trials.jsonl"
    previous = ""
    texts = []
    for line in change_lines([json.loads(text) for text in path.read_text().splitlines()]):
        texts.append(json.dumps(line | {"previous": previous}) + "\n")
        previous = hashlib.sha256(texts[-1].encode()).hexdigest()
    path.write_text("".join(texts))


def put_manifest_first(run):
    """
    As runs of today have it, whose chain names warm-ups, too.
    """
    stored_s = run.read_manifest().created_s
    first = {"schema_version": 1, "name": "manifest.json", "sha256": "0", "stored_s": stored_s}
    change_chain(run, lambda lines: [first, *lines])


def shorten_job(run):
    """
    A job ends sooner in its table; its tasks have ended by then.
    """
    change_job(run, finish_s=lambda finish_s: finish_s - 0.3)


def shorten_task(run):
    """
    A task ends sooner in its table.
    """
    change_column(run, "attempts", "finish_s", lambda column: pc.subtract(column, 0.01))


def count_more_everywhere(run):
    """
    Job and tasks have more records in the tables, so that they add up.
    """
    (path,) = trial_files(run)[0].parent.glob("trace/counters.parquet")
    table = pq.read_table(path)
    rows = table.to_pylist()
    for row in rows:
        if row["name"].endswith(".SPILLED_RECORDS"):
            row["value"] *= 2
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)


def exchange_history(run):
    """
    A history is that of another job, and no history at all.
    """
    change_log(run, "job-0-history.jhist", lambda text: text.replace("job_1", "job_2"))


def cut_history(run):
    """
    A history ends where nothing says how its job ended.
    """
    change_log(
        run, "job-0-history.jhist", lambda text: text[: text.index('"JOB_FINISHED"', 20_000)]
    )


def fail_job(run):
    """
    A job of a trial that is done has failed.
    """
    change_job(run, state=lambda _: "FAILED")
    remove_logs(run, "*-history.jhist.gz")


def move_job(run):
    """
    A job ran an hour before its trial.
    """
    moments = ("submit_s", "launch_s", "finish_s")
    change_job(run, **dict.fromkeys(moments, lambda moment: moment - 3600.0))
    remove_logs(run, "*-history.jhist.gz")


def hurry_client(run):
    """
    The client was sooner than its job.
    """
    path = trial_files(run)[0]
    harness_s = json.loads(path.read_text())["harness_s"]
    change(path, harness_s=harness_s | {"client_s": 0.5})


def linger(run):
    """
    A step of a trial took longer than the trial.
    """
    path = trial_files(run)[0]
    harness_s = json.loads(path.read_text())["harness_s"]
    change(path, harness_s=harness_s | {"verify_s": 3600.0})


def change_scored_time(run):
    """
    A bundle without traces says that a job took longer than its client.
    """
    for path in run.path.glob("trials/*/trace"):
        shutil.rmtree(path)
    (path,) = run.path.glob("scores/*")
    scores = json.loads(path.read_text())
    scores["measurements"][0]["jobs_s"] = [3600.0]
    path.write_text(json.dumps(scores))


def configure_otherwise(run):
    """
    A job had another buffer than its cell says.
    """
    name = "<name>mapreduce.task.io.sort.mb</name><value>"
    change_log(run, "job-0-conf.xml", lambda text: text.replace(f"{name}4<", f"{name}100<"))


def block_otherwise(run):
    """
    A cluster had another size of blocks than its cell says.
    """
    name = "<name>dfs.blocksize</name><value>"
    change_log(run, "job-0-conf.xml", lambda text: text.replace(f"{name}4194304<", f"{name}1<"))


def clear_mark(run):
    """
    A trial that others disturbed is not marked.
    """
    change(trial_files(run)[0], disturbed="")


def add_mark(run):
    """
    A trial is marked that nobody disturbed.
    """
    for path in trial_files(run):
        loads = json.loads(path.read_text())["loads"]
        quiet = {name: load | {"others": 0.0, "steal": 0.0} for name, load in loads.items()}
        change(path, loads=quiet, disturbed="this machine: steal 90.0% of the time, above 5%")
    remove_logs(run, "machine.jsonl.gz")


def quieten(run):
    """
    Loads of a trial are such that nobody disturbed it.
    """
    path = trial_files(run)[0]
    loads = json.loads(path.read_text())["loads"]
    change(path, loads={name: load | {"others": 0.0} for name, load in loads.items()}, disturbed="")


def open_later(run):
    """
    The run was opened when its trials had ended.
    """
    change(run.path / "manifest.json", created_s=run.read_manifest().created_s + 86_400)


def run_by_another_java(run):
    """
    A trial ran by another Java than the manifest says.
    """
    path = trial_files(run)[0]
    versions = json.loads(path.read_text())["versions"]
    change(path, versions=versions | {"java": "9"})


def reorder_plan(run):
    """
    A cell that went well was planned first.
    """
    lines = (run.path / "plan.jsonl").read_text().splitlines(keepends=True)
    (run.path / "plan.jsonl").write_text("".join([lines[1], lines[0], *lines[2:]]))


def drop_warmup(run):
    """
    What warmed the cluster is gone, with its line.
    """
    put_manifest_first(run)
    shutil.rmtree(run.path / "warmup")
    change_chain(run, lambda lines: [line for line in lines if "warmup" not in line["name"]])


def ask_otherwise(run):
    """
    The experiment's file would measure less again.
    """
    path = run.path / "experiment.yaml"
    text = path.read_text()
    path.write_text(text.replace("mapreduce.job.reduces: 1", "mapreduce.job.reduces: 2"))
    assert path.read_text() != text


def rewrite_experiment(run, change_text):
    """
    Put another text into the experiment's file.
    """
    path = run.path / "experiment.yaml"
    path.write_text(change_text(path.read_text()))


def add_unknown_key(run):
    """
    A key that no experiment has keeps the file from being read.
    """
    rewrite_experiment(run, lambda text: f"{text}\nwishes: 3\n")


def empty_experiment(run):
    """
    Nothing is left of the file.
    """
    rewrite_experiment(run, lambda _: "")


def break_yaml(run):
    """
    The file is no YAML.
    """
    rewrite_experiment(run, lambda text: f"{text}\n]: [\n")


def repeat_key(run):
    """
    The file has a key twice.
    """
    rewrite_experiment(run, lambda text: f"{text}\nseed: 1\nseed: 2\n")


def ask_without_end(run):
    """
    The file asks for infinitely many repeats.
    """
    rewrite_experiment(run, lambda text: re.sub(r"(?m)^repeat:.*", "repeat: .inf", text))
    assert ".inf" in (run.path / "experiment.yaml").read_text()


def ask_in_later_format(run):
    """
    The file says that it is of a format that nothing had when it was read.
    """
    rewrite_experiment(run, lambda text: text.replace("schema: 1", "schema: 9"))


def remove_experiment(run):
    """
    The file is not there.
    """
    (run.path / "experiment.yaml").unlink()


def override_unreadably(run):
    """
    What was set beside the file is no value of anything.
    """
    change(run.path / "manifest.json", overrides=["cluster.wishes=3"])


def forget_loads(run):
    """
    A disturbed trial has no loads, so that nothing marks it; its samples are there.
    """
    change(trial_files(run)[0], loads={}, disturbed="")


def forget_samples(run):
    """
    Neither are its samples.
    """
    change(trial_files(run)[0], loads={}, disturbed="")
    remove_logs(run, "machine.jsonl.gz")


def forget_client(run):
    """
    A trial does not say how long its client took.
    """
    path = trial_files(run)[0]
    harness_s = json.loads(path.read_text())["harness_s"]
    del harness_s["client_s"]
    change(path, harness_s=harness_s)


def forget_input(run):
    """
    The input of a trial has no bytes.
    """
    change(trial_files(run)[0], input_bytes=0)


def shrink_input(run):
    """
    A trial had half the input of its cell, and its job read that.
    """
    path = trial_files(run)[0]
    change(path, input_bytes=json.loads(path.read_text())["input_bytes"] // 2)
    shutil.rmtree(path.parent / "trace")


def compute_elsewhere(run):
    """
    A trial computed on a device that no task counts.
    """
    change(trial_files(run)[0], device="cuda")


def change_table(run, table, change_row):
    """
    Give each row of a table of all trials to *change_row*.
    """
    for path in run.path.glob(f"trials/*/trace/{table}.parquet"):
        rows = pq.read_table(path)
        changed = rows.to_pylist()
        for row in changed:
            change_row(row)
        pq.write_table(pa.Table.from_pylist(changed, rows.schema), path)


def scale(row, names, factor=0.8):
    """
    Multiply numbers of a *row* by their names.
    """
    row |= {name: row[name] * factor for name in names if row[name] is not None}


LOOP_S = ("read_s", "function_s", "spilling_s", "spilling_read_s", "output_s", "blocked_s")
PROCESS_S = ("cpu_at_main_s", "cpu_at_end_s")


def hurry_recordings(run):
    """
    All times that were recorded inside tasks are a fifth shorter, from their begin on.
    """
    begins = {}

    def hurry_span(row):
        begin_s = begins.setdefault(row["attempt_id"], row["start_s"])
        row["start_s"] = begin_s + 0.8 * (row["start_s"] - begin_s)
        scale(row, ("wall_s", "cpu_s"))

    change_table(run, "spans", hurry_span)
    change_table(run, "tasks", lambda row: scale(row, (*LOOP_S, *PROCESS_S)))


def hurry_spans(run):
    """
    Spans are shorter, each where it began.
    """
    change_table(run, "spans", lambda row: scale(row, ("wall_s", "cpu_s")))


def hurry_loops(run):
    """
    Sums over the records of a task are shorter than the loop over them.
    """
    change_table(run, "tasks", lambda row: scale(row, LOOP_S, 0.5))


def idle_processes(run):
    """
    Processes used less of the processor than their threads.
    """
    change_table(run, "tasks", lambda row: scale(row, PROCESS_S[1:], 0.2))


def overwork_threads(run):
    """
    Threads ran for longer than their spans took.
    """
    change_table(run, "spans", lambda row: scale(row, ("cpu_s",), 1e3))


def leave_parent(run):
    """
    Spans last longer than those around them.
    """
    change_table(run, "spans", lambda row: scale(row, ("wall_s",), 1.0 + (row["parent"] >= 0)))


def change_probe(run, change_line, number=-1):
    """
    Give the numbers of each line of the speed probe of one trial, and its place, to *change_line*.
    """
    path = trial_files(run)[number].parent / "raw/speed.txt.gz"
    lines = []
    for text in gzip.decompress(path.read_bytes()).decode().splitlines():
        numbers = [int(word) for word in text.split()]
        lines.append(" ".join(map(str, change_line(numbers, len(lines)))))
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def rescale(run, factor, number=-1):
    """
    The machine was so much slower in a trial, by the probe.
    """

    def slow(numbers, _):
        return [*numbers[:3], round(factor * numbers[3])]

    change_probe(run, slow, number)


def rescale_probe(run):
    """
    The scored trial ran on a machine that was five times as fast.
    """
    rescale(run, 0.2)


def rescale_scored(run):
    """
    It was 1.8 times as slow; the JVMs did not notice.
    """
    rescale(run, 1.8)


def forget_rescaled_scores(run):
    """
    The correction was fitted, and the scores are those of other lines.
    """
    (path,) = run.path.glob("profiles/*.json")
    profile = json.loads(path.read_text())
    change(path, speed=profile["speed"] | {"coefficient": 1.0})
    (run.path / "predictions/sealed.json").unlink()


def correct_by_several_factors(run):
    """
    One of a trial's times at reference speed is another one.
    """
    (path,) = run.path.glob("scores/*")
    scores = json.loads(path.read_text())
    scores["measurements"][0]["reference_s"]["job_s"] *= 0.9
    path.write_text(json.dumps(scores))


def correct_unprobed(run):
    """
    Where nothing of the probe was published, all times were corrected tenfold.
    """
    forget_rescaled_scores(run)
    remove_logs(run, "speed.txt.gz")
    (path,) = run.path.glob("scores/*")
    scores = json.loads(path.read_text())
    measurement = scores["measurements"][0]
    scale(measurement["reference_s"], [*measurement["reference_s"]], 0.1)
    path.write_text(json.dumps(scores))


def refer_elsewhere(run):
    """
    A profile's reference speed is that of no trial.
    """
    (path,) = run.path.glob("profiles/*.json")
    profile = json.loads(path.read_text())
    speed = {"reference_rate": 3 * profile["speed"]["reference_rate"], "count": 2}
    change(path, speed=profile["speed"] | speed)
    (run.path / "predictions/sealed.json").unlink()


def age_profile(run):
    """
    A profile looks older than its trials, so that nobody asks whether models reproduce their jobs.
    """
    (path,) = run.path.glob("profiles/*.json")
    change(path, schema_version=11)
    (run.path / "predictions/sealed.json").unlink()


def draw_profile(run):
    """
    A profile looks moved from another machine, to the same end.
    """
    (path,) = run.path.glob("profiles/*.json")
    change(path, draws=[{"map_main_s": 1.1}])
    (run.path / "predictions/sealed.json").unlink()


def go_back(run):
    """
    The probe's moments do not ascend.
    """
    change_probe(run, lambda numbers, place: [numbers[0] - 3000 * (place == 8), *numbers[1:]])


def probe_elsewhere(run):
    """
    The probe was read an hour before.
    """
    change_probe(run, lambda numbers, _: [numbers[0] - 3_600_000, *numbers[1:]])


def work_more(run):
    """
    Lines have twice the work, so that the machine was twice as fast.
    """
    change_probe(run, lambda numbers, _: [*numbers[:2], 2 * numbers[2], numbers[3]])


def take_no_time(run):
    """
    A line's work took no time.
    """
    change_probe(run, lambda numbers, place: [*numbers[:3], numbers[3] * (place != 3)])


def take_more_than_there_is(run):
    """
    The work of a second took two.
    """
    change_probe(run, lambda numbers, _: [*numbers[:3], 2 * 10**9])


def thin_out(run):
    """
    Lines that are not wanted are left out.
    """
    path = trial_files(run)[0].parent / "raw/speed.txt.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join([*lines[:4], *lines[-4:]])))


def damage_probe(run):
    """
    A log of the probe has words.
    """
    path = trial_files(run)[0].parent / "raw/speed.txt.gz"
    path.write_bytes(gzip.compress(b"fast\n"))


FORGERIES = {
    cut_plan: "plan.jsonl",
    copy_repeat: "trial.json: job_ids",
    overlap: "trial.json: moments",
    end_later: "trials.jsonl",
    exchange_jobs: "job ids",
    start_before_seal: "predictions/sealed.json",
    crowd: "slots",
    count_more: "counters",
    read_less: "input",
    record_elsewhere: "spans.parquet",
    shorten_job: "history.jhist",
    shorten_task: "history.jhist",
    count_more_everywhere: "history.jhist",
    exchange_history: "history.jhist",
    cut_history: "history.jhist",
    fail_job: "job.json: state",
    move_job: "job.json: moments",
    hurry_client: "trial.json: harness_s",
    linger: "trial.json: harness_s",
    change_scored_time: "trial.json: harness_s",
    configure_otherwise: "conf.xml",
    block_otherwise: "conf.xml",
    clear_mark: "trial.json: disturbed",
    add_mark: "trial.json: disturbed",
    quieten: "trial.json: loads",
    open_later: "manifest.json: created_s",
    run_by_another_java: "trial.json: versions",
    reorder_plan: "plan.jsonl: order",
    drop_warmup: "job ids: gaps",
    ask_otherwise: "experiment.yaml",
    add_unknown_key: "experiment.yaml",
    empty_experiment: "experiment.yaml",
    break_yaml: "experiment.yaml",
    repeat_key: "experiment.yaml",
    ask_without_end: "experiment.yaml",
    ask_in_later_format: "experiment.yaml",
    remove_experiment: "experiment.yaml",
    override_unreadably: "experiment.yaml",
    hurry_recordings: "spans.parquet",
    hurry_spans: "spans.parquet",
    hurry_loops: "spans.parquet",
    idle_processes: "spans.parquet",
    overwork_threads: "spans.parquet",
    leave_parent: "spans.parquet",
    rescale_probe: "raw/speed.txt: rates",
    rescale_scored: "raw/speed.txt: starts",
    forget_rescaled_scores: "scores/: reference_s",
    correct_by_several_factors: "scores/: reference_s",
    correct_unprobed: "scores/: reference_s",
    refer_elsewhere: "scores/: reference_s",
    age_profile: "profiles/",
    draw_profile: "profiles/",
    go_back: "raw/speed.txt",
    probe_elsewhere: "raw/speed.txt",
    work_more: "raw/speed.txt",
    take_no_time: "raw/speed.txt",
    take_more_than_there_is: "raw/speed.txt",
    thin_out: "raw/speed.txt",
    damage_probe: "raw/speed.txt",
    forget_loads: "trial.json: loads",
    forget_samples: "trial.json: loads",
    forget_client: "trial.json: harness_s",
    forget_input: "input",
    shrink_input: "input",
    compute_elsewhere: "trial.json: device",
}


@pytest.mark.process
def test_a_run_that_was_measured_keeps_all(whole):
    """
    None is broken, so a breach says something.
    """
    assert broken_laws(Run(whole)) == []


@pytest.mark.process
@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_a_forgery_breaks_the_law_of_its_place(forged, forge):
    """
    Although every hash could be made anew.
    """
    forge(forged)
    assert FORGERIES[forge] in places(forged)


def move_seal(run):
    """
    The predictions were sealed when all had been measured.
    """
    name = "predictions/sealed.json"
    change_chain(
        run,
        lambda lines: [
            *[line for line in lines if line["name"] != name],
            *[line for line in lines if line["name"] == name],
        ],
    )


@pytest.mark.process
def test_a_seal_behind_what_is_scored_is_no_seal(forged):
    """
    Although the chain and its end were made anew: each scored trial is named.
    """
    done = [record for record in forged.trials().values() if record.state == "done"]
    scored = [record.trial.id for record in done if record.trial.is_scored]
    assert scored
    assert blind_refusals(forged, done) == []
    move_seal(forged)
    assert blind_refusals(Run(forged.path), done) == [
        f"trial {trial_id} was measured before the predictions were sealed" for trial_id in scored
    ]


@pytest.mark.process
@pytest.mark.parametrize(
    "forge", [cut_plan, copy_repeat, overlap], ids=lambda forge: forge.__name__
)
def test_strict_scores_refuse_what_breaks_a_law(forged, forge, monkeypatch, capsys):
    """
    By its place, where all hashes agree; without --strict it is said.
    """
    forge(forged)
    monkeypatch.setattr(RunSeal, "check", lambda *_: None)
    monkeypatch.setattr(Run, "check_evidence", lambda *_, **__: True)
    monkeypatch.setattr(steps, "blind_refusals", lambda *_: [])

    assert main(["score", str(forged.path), "--strict"]) == EvidenceError.exit_status
    said = capsys.readouterr().err
    assert "the run contradicts itself:" in said
    assert FORGERIES[forge] in said


def keep_all_attempts(run):
    """
    Every start of a cluster is whole.
    """
    put_manifest_first(run)


def round_moments(run):
    """
    A table has its moments to half a millisecond.
    """
    change_job(run, finish_s=lambda finish_s: finish_s + 0.0005)


def move_a_trial_away(run):
    """
    Its owner moved a damaged trial out of the run, which was then measured again.
    """
    put_manifest_first(run)
    shutil.rmtree(run.path / "warmup")
    name = f"trials/{trial_files(run)[0].parent.name}"
    change_chain(
        run,
        lambda lines: [*lines[:1], *[line for line in lines if line["name"] == name], *lines[1:]],
    )


def take_over(run):
    """
    Another run measured all of it by another Java, with other trials, before this one was opened.
    """
    put_manifest_first(run)
    shutil.rmtree(run.path / "warmup")
    reused = {path.parent.name: "20260101T000000Z-0000" for path in trial_files(run)}
    change(run.path / "manifest.json", reused=reused)
    for path in trial_files(run):
        versions = json.loads(path.read_text())["versions"]
        change(path, versions=versions | {"java": "9"})


def load_by_older_rule(run):
    """
    Samples counted alike, when they did not know what the kernel takes.
    """
    path = trial_files(run)[0]
    samples = []

    def forget_kernel(text):
        samples.extend(json.loads(line) for line in text.splitlines())
        for sample in samples:
            del sample["kernel"]
        return "".join(json.dumps(sample) + "\n" for sample in samples)

    change_log(run, "machine.jsonl", forget_kernel)
    busy, steal, own = (
        sum(sample[name] for sample in samples) / len(samples) for name in ("busy", "steal", "own")
    )
    ((machine, load),) = json.loads(path.read_text())["loads"].items()
    figures = {"busy": busy, "steal": steal, "others": busy - own}
    change(path, loads={machine: load | figures})


def use_own_model(run):
    """
    The experiment asks a model that nobody has here.
    """
    path = run.path / "experiment.yaml"
    path.write_text(path.read_text().replace("models: [", "models: [./mine.py:Mine, "))


def rewrite_predictions(run):
    """
    The experiment's file asks other models: they measure nothing.
    """
    path = run.path / "experiment.yaml"
    path.write_text(path.read_text().replace("whatif-mr2", "ernest"))


def override_for_others(run):
    """
    What was set for models alone was cut off when names in it were changed.
    """
    overrides = [*run.read_manifest().overrides, "predict.hardware=/path-3, /path-6]"]
    change(run.path / "manifest.json", overrides=overrides)


def lose_samples(run):
    """
    What was published is without samples, and has the loads that were made of them.
    """
    remove_logs(run, "machine.jsonl.gz")


def round_input(run):
    """
    A generator made whole records.
    """
    for path in trial_files(run):
        change(path, input_bytes=json.loads(path.read_text())["input_bytes"] - 90)


def kill_tasks(run):
    """
    Sums of a task's records are not whole where its JVM was killed.
    """
    change_table(run, "tasks", lambda row: row.update(state="open"))
    change_table(run, "tasks", lambda row: scale(row, LOOP_S, 0.5))


def read_no_processors(run):
    """
    An older tracer did not read what a process used.
    """
    change_table(run, "tasks", lambda row: row.update(cpu_at_main_s=None, cpu_at_end_s=None))


def slow_down_evenly(run):
    """
    Another machine is three times as slow in all trials, which changes no time at reference speed.
    """
    for number in range(3):
        rescale(run, 3.0, number)
    (path,) = run.path.glob("profiles/*.json")
    profile = json.loads(path.read_text())
    rate = profile["speed"]["reference_rate"] / 3
    change(path, speed=profile["speed"] | {"reference_rate": rate})


def slow_down_in_part(run):
    """
    A machine was a quarter slower in a trial: it was warm.
    """
    rescale(run, 1.25)


def end_probe_early(run):
    """
    The probe was killed in a trial, within a second's work.
    """
    path = trial_files(run)[-1].parent / "raw/speed.txt.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)[:-8]
    path.write_bytes(gzip.compress(b"".join(lines)))


HONEST = (
    keep_all_attempts, round_moments, move_a_trial_away, take_over, load_by_older_rule,
    use_own_model, rewrite_predictions, override_for_others, lose_samples, round_input,
    kill_tasks, read_no_processors, slow_down_evenly, slow_down_in_part, end_probe_early,
)  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize("change_run", HONEST, ids=lambda change_run: change_run.__name__)
def test_what_may_be_breaks_no_law(forged, change_run):
    """
    However it came about.
    """
    change_run(forged)
    assert broken_laws(forged) == []


@pytest.mark.parametrize(("provider", "broken"), [("existing", 0), ("local", 1)])
def test_tasks_get_the_tracing_that_their_provider_has(forged, provider, broken):
    """
    On a cluster where nothing of ours is put on the nodes the file asks for more than there is.
    """
    path = forged.path / "manifest.json"
    manifest = json.loads(path.read_text())
    experiment = manifest["experiment"]
    experiment["cluster"]["provider"] = provider
    experiment["tracing"]["mode"] = "logs"
    overrides = [*manifest["overrides"], f"cluster.provider={provider}"]
    change(path, experiment=experiment, overrides=overrides)
    found = [what for what in file_of_experiment(Measured(forged)) if what.startswith("tracing")]
    assert len(found) == broken


@pytest.mark.process
@pytest.mark.parametrize(("provider", "broken"), [("existing", 0), ("local", 1)])
def test_what_a_clusters_owner_has_made_final_is_no_jobs(forged, provider, broken):
    """
    On somebody else's cluster a job does not get what its cell says of such a property.
    """
    configure_otherwise(forged)
    name = "<name>mapreduce.task.io.sort.mb</name><value>100</value><final>"
    change_log(forged, "job-0-conf.xml", lambda text: text.replace(f"{name}false", f"{name}true"))
    measured = Measured(forged)
    records = []
    for record in measured.done:
        cluster = record.trial.cell.cluster.model_copy(update={"provider": provider})
        cell = record.trial.cell.model_copy(update={"cluster": cluster})
        trial = record.trial.model_copy(update={"cell": cell})
        records.append(record.model_copy(update={"trial": trial}))
    there = SimpleNamespace(was_imported=False, done=records, run=forged, raw=measured.raw)
    assert len([*configured_as_cell(there)]) == broken


OF_OTHERS = "schema: 1\nworkloads: [{name: ./mine.py:Words, input: 2 MiB}]\n"


@pytest.mark.process
@pytest.mark.parametrize(
    ("text", "code", "broken"),
    [
        (OF_OTHERS, "mine.py", 0), (OF_OTHERS, None, 1), ("schema: 1\n]: [", "mine.py", 1),
        ("", "mine.py", 1), (OF_OTHERS.replace("1", "9", 1), "mine.py", 1),
    ],
)  # fmt: skip
def test_a_class_of_the_owners_excuses_a_file_that_yaml_has(forged, text, code, broken):
    """
    Nobody else has that class; but each such file is a mapping, and of a format that there is.
    """
    rewrite_experiment(forged, lambda _: text)
    measured = Measured(forged)
    there = SimpleNamespace(
        run=forged, manifest=measured.manifest, was_imported=False, is_chosen_meanwhile=False,
        experiment=SimpleNamespace(workloads=[SimpleNamespace(code=code)]),
    )  # fmt: skip
    assert len([*file_of_experiment(there)]) == broken


@pytest.mark.process
def test_a_bundle_is_not_measured_again_by_another_file(forged):
    """
    What `harness reproduce --measure` reads is what was measured.
    """
    require_same_file(forged)
    ask_otherwise(forged)
    with pytest.raises(EvidenceError, match=r"mapreduce.job.reduces|in experiment.yaml"):
        require_same_file(forged)


@pytest.mark.process
def test_an_imported_run_has_no_plan_and_no_turn(whole, tmp_path):
    """
    Its jobs ran beside each other, on a cluster that was there.
    """
    target = tmp_path / "past"
    assert main(["import", str(whole), "-o", str(target)]) == 0
    past = Run(target)
    assert broken_laws(past) == []
    first, second, *_ = trial_files(past)
    change(second, started_s=json.loads(first.read_text())["started_s"])
    assert broken_laws(past) == []
    assert unseen_by_laws(past) == [
        "plan, loads and configurations: its jobs ran before, and were imported"
    ]


@pytest.fixture(scope="module")
def published(whole, tmp_path_factory):
    """
    The run as each level of a bundle has it.
    """
    folder = tmp_path_factory.mktemp("published")
    for level in ("scores", "traces", "raw"):
        copy_run(Run(whole), folder / level, level, Pseudonyms.of([Run(whole)], level=level))
    return {path.name: Run(path) for path in folder.iterdir()}


@pytest.mark.process
def test_a_published_run_keeps_all(published):
    """
    Although names in it are others.
    """
    assert {level: broken_laws(run) for level, run in published.items()} == {
        "scores": [], "traces": [], "raw": [],
    }  # fmt: skip


@pytest.mark.process
def test_what_no_law_compares_is_told(whole, forged, published):
    """
    Where a record has nothing beside it.
    """
    gaps = "gaps in the ids of jobs: not all that ran is known to be there"
    no_times = "times of jobs: neither histories nor traces are there"
    no_samples = "loads of machines: the samples that they are means of are not there"
    no_history = (
        "times in traces of 1 of 3 trials: the histories that they were made of are not there"
    )
    no_copies = "configurations of jobs: Hadoop's own copies are not there"

    assert unseen_by_laws(Run(whole)) == [gaps]
    assert unseen_by_laws(published["traces"]) == [gaps]
    no_probe = "times at reference speed: the speed probe's lines are not there"
    assert unseen_by_laws(published["scores"]) == [no_times, no_samples, no_probe, gaps]

    put_manifest_first(forged)
    assert unseen_by_laws(forged) == []
    (trial_files(forged)[0].parent / "raw/job-0-history.jhist.gz").unlink()
    remove_logs(forged, "*-conf.xml.gz")
    (forged.path / "experiment.yaml").write_text("no experiment")
    assert unseen_by_laws(forged) == [
        no_history, no_copies, "experiment.yaml: it cannot be read here",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "input_bytes", "is_made_by_job"),
    [("wordcount", 2**21, False), ("wordcount", 2**30, True), ("unknown", 2**21, True)],
)
def test_small_inputs_take_no_job(name, input_bytes, is_made_by_job):
    """
    Of what is not known a job may have made it.
    """
    cell = Cell(cluster=ClusterSpec(), workload=WorkloadSpec(name=name, input_bytes=input_bytes))
    assert jobs.is_made_by_job(cell) == is_made_by_job


def test_each_law_has_a_place_of_its_own():
    """
    And a sentence.
    """
    assert len({law.place for law in LAWS}) == len(LAWS)
    assert all(law.sentence and law.breaches.__doc__ for law in LAWS)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), max_size=12))
def test_most_at_once_is_the_most_of_any_moment(pairs):
    """
    Counted at each half moment, the slow way.
    """
    windows = [(start, start + length) for start, length in pairs]
    slow = max(
        (sum(start < at < end for start, end in windows) for at in [0.5 + i for i in range(30)]),
        default=0,
    )
    assert most_at_once(windows) == slow
