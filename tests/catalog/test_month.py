"""
A month of a cluster, as its users' engines leave it: what can be scored is, all else is counted.
"""

import json

from collections import Counter
from itertools import groupby

import pytest

from harness.catalog.catalog import Catalog
from harness.catalog.families import family_rows
from harness.catalog.histories import family_names, find_jobs
from harness.catalog.planning import plan_histories
from harness.cli import main
from harness.core.store import Run
from tests.catalog.month import make_month

pytestmark = pytest.mark.process

BASELINES = ("ernest", "nearest")
# What is said of jobs that cannot be scored, by what became of them.
REASONS = {
    "failed": "the job ended as FAILED",
    "killed": "the job ended as KILLED",
    "uber": "its tasks ran within its application master",
    "no configuration": "_conf.xml beside it",
    "cut": "not JSON",
}
SENTENCE = (
    "12 Tez and 5 Spark applications were left out: they are no MapReduce jobs, and their times"
    " follow other rules"
)


@pytest.fixture(scope="module")
def month():
    """
    The month of seed 1.
    """
    return make_month(1)


@pytest.fixture(scope="module")
def done(month, tmp_path_factory):
    """
    Its files in a done tree.
    """
    folder = tmp_path_factory.mktemp("cluster") / "done"
    month.write(folder)
    return folder


@pytest.fixture
def harness(capsys):
    """
    Run a command; its status and its JSON.
    """

    def run(*arguments):
        status = main([*map(str, arguments), "--json"])
        return status, json.loads(capsys.readouterr().out)

    return run


def cause(reason):
    """
    What became of a job that was left out for that *reason*.
    """
    return next((name for name, text in REASONS.items() if text in reason), reason)


def expected_causes(month):
    """
    How many jobs are left out, and for what.
    """
    outcomes = Counter(job.outcome for job in month.jobs)
    return Counter({name: count for name, count in outcomes.items() if name in REASONS})


def scored_jobs(run):
    """
    Of each baseline the ids of the jobs on whose cells it is scored, and all that were to be.
    """
    records = [record for record in run.trials().values() if not record.trial.profiling]
    scores = run.read_scores().scores
    by_model = {}
    for model in BASELINES:
        cells = {
            score.cell for score in scores
            if score.model == model and score.quantity == "job_s" and score.speed == "raw"
        }  # fmt: skip
        by_model[model] = {record.job_ids[0] for record in records if record.trial.cell.id in cells}
    return by_model, {record.job_ids[0] for record in records}


def test_jobs_with_an_earlier_one_of_their_family_are_scored(month, done, tmp_path, harness):
    """
    95 % of them by both baselines, where the first job of each family is the profile.
    """
    run = tmp_path / "run"
    assert harness("import", done, "-o", run, "--profile-share", "0.001")[0] == 6
    assert harness("backtest", run, "--model", "ernest", "--model", "nearest")[0] == 0

    by_model, planned = scored_jobs(Run(run))
    programs = {job.job_id: job.program for job in month.jobs}
    # All that a launcher of Oozie reads is the description of its split: each repeats the first.
    usable = [
        job for job in month.jobs
        if job.outcome not in REASONS and not job.program.startswith("oozie")
    ]  # fmt: skip
    seen = set()
    later = set()
    for job in usable:
        if job.program in seen:
            later.add(job.job_id)
        seen.add(job.program)
    missed = Counter(
        programs[job_id] for job_id in later - (by_model["ernest"] & by_model["nearest"])
    )
    assert missed.total() <= 0.05 * len(later), missed
    # All successful jobs, with those that ran in their master, or left no whole record of them.
    successes = [
        job for job in month.jobs if job.is_success and not job.program.startswith("oozie")
    ]
    assert len(by_model["ernest"] & by_model["nearest"]) >= 0.9 * (len(successes) - len(seen))
    assert by_model["ernest"] == by_model["nearest"] == planned


def test_all_that_lies_there_is_counted(month, done, tmp_path, harness):
    """
    By family and use, or by its reason; and applications that are no jobs.
    """
    status, imported = harness("import", done, "-o", tmp_path / "run")
    families = imported["families"]
    records = Run(tmp_path / "run").trials().values()
    repeated = sum(
        int(note.split(": ")[1].split()[0]) for note in imported["notes"] if "repeat what" in note
    )

    assert status == 6
    assert Counter(map(cause, imported["left_out"].values())) == expected_causes(month)
    assert sum(row["jobs"] for row in families) + len(imported["left_out"]) == len(month.jobs)
    assert sum(row["profiled"] for row in families) == sum(r.trial.profiling for r in records)
    assert sum(row["profiled"] + row["scored"] for row in families) == len(records)
    assert sum(row["jobs"] for row in families) == len(records) + repeated
    assert {kind: each["count"] for kind, each in imported["applications"].items()} == {
        "Tez": 12,
        "Spark": 5,
    }
    assert SENTENCE in imported["notes"]


def test_a_catalog_has_all_of_them_and_no_family_has_two_programs(month, done, tmp_path, harness):
    """
    Failed jobs as well; each family is one program, and each program one family.
    """
    catalog = tmp_path / "catalog"
    status, added = harness("catalog", "add", done, "--catalog", catalog)
    _, listed = harness("catalog", "list", "--catalog", catalog)
    table = Catalog(catalog).table()
    rows = table.select(["job_id", "family", "state"]).to_pylist()
    programs = {job.job_id: job.program for job in month.jobs}
    known = {job.job_id for job in month.jobs if job.outcome != "no configuration"}
    pairs = {(row["family"], programs[row["job_id"]]) for row in rows if row["job_id"] in known}

    assert status == 6
    assert (added["added"], added["left_out_files"]) == (len(month.jobs) - 1, 1)
    assert Counter(row["state"] for row in rows if row["state"] != "SUCCEEDED") == {
        "FAILED": month.counts()["failed"],
        "KILLED": month.counts()["killed"],
    }
    assert len(pairs) == len({family for family, _ in pairs}) == len(set(programs.values()))
    assert len(listed) == len(family_rows(table))
    assert sum(row["jobs"] for row in listed) == added["added"]
    assert added["applications"]["Tez"]["count"] == 12


def planned_families(month, folder):
    """
    The families of the jobs in a *folder* by the program that each is, with their counts; why
    others are left out; and ids of jobs by use.
    """
    histories = find_jobs([folder])
    names = family_names(histories.jobs)
    plan = plan_histories(histories, names)
    programs = {job.job_id: job.program for job in month.jobs}
    ordered = sorted(histories.jobs, key=lambda job: job.family)
    by_family = {
        names[family]: {programs[job.job_id] for job in jobs}
        for family, jobs in groupby(ordered, key=lambda job: job.family)
    }
    rows = {
        tuple(by_family[row["family"]]): {name: row[name] for name in row if name != "family"}
        for row in plan.families
    }
    uses = sorted((job.job_id, trial.profiling) for trial, job in plan.trials)
    return rows, Counter(map(cause, histories.left_out.values())), uses


def test_neither_order_nor_folders_count(month, done, tmp_path):
    """
    The same files in other folders, written in another order, give the same plan.
    """
    month.write(tmp_path / "shuffled", shuffle=7)

    assert planned_families(month, tmp_path / "shuffled") == planned_families(month, done)


def test_another_month_of_the_cluster_gives_the_same_counts(month, done, tmp_path):
    """
    Sizes and times differ, and so may repeats; families and reasons do not.
    """
    other = make_month(2)
    other.write(tmp_path / "done")
    rows, causes, _ = planned_families(other, tmp_path / "done")
    expected_rows, expected, _ = planned_families(month, done)

    assert causes == expected == expected_causes(other)
    assert {key: row["jobs"] for key, row in rows.items()} == {
        key: row["jobs"] for key, row in expected_rows.items()
    }
    assert all(len(programs) == 1 for programs in rows)
