"""
A month of a cluster, as its users' engines leave it: what can be scored is, all else is counted.
"""

import json

from collections import Counter
from contextlib import redirect_stdout
from io import StringIO
from itertools import groupby

import pytest

from harness.catalog.catalog import Catalog
from harness.catalog.histories import family_names, find_jobs
from harness.catalog.planning import plan_histories
from harness.cli import main
from harness.core.store import Run
from tests.catalog.month import make_month

pytestmark = pytest.mark.process

BASELINES = ("ernest", "scaling")
# What is said of jobs that cannot be used, by what became of them.
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


def harness(*arguments):
    """
    Run a command; its status and its JSON.
    """
    with redirect_stdout(StringIO()) as printed:
        status = main([*map(str, arguments), "--json"])
    return status, json.loads(printed.getvalue())


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


@pytest.fixture(scope="module")
def imported(done, tmp_path_factory):
    """
    What `import` says of them, where the first job of each family is the profile; and the run.
    """
    run = tmp_path_factory.mktemp("results") / "month"
    status, answer = harness("import", done, "-o", run, "--profile-share", "0.001")
    assert status == 6
    return answer, Run(run)


def cause(reason):
    """
    What became of a job that was left out for that *reason*.
    """
    return next((name for name, text in REASONS.items() if text in reason), reason)


def expected_causes(month):
    """
    How many jobs are left out, and for what.
    """
    return Counter({name: count for name, count in month.counts().items() if name in REASONS})


def later_jobs(month):
    """
    Ids of usable jobs before which one of the same program was, but for launchers of Oozie: these
    handle no data, and no job of theirs is new in size or setting.
    """
    seen = set()
    later = set()
    for job in month.jobs:
        if job.outcome not in REASONS and not job.program.startswith("oozie"):
            if job.program in seen:
                later.add(job.job_id)
            seen.add(job.program)
    return later


def scored_jobs(run, model):
    """
    Ids of the jobs on whose cells a *model* is scored.
    """
    cells = {
        score.cell for score in run.read_scores().scores
        if (score.model, score.quantity, score.speed) == (model, "job_s", "raw")
    }  # fmt: skip
    return {
        record.job_ids[0]
        for record in run.trials().values()
        if record.trial.cell.id in cells and not record.trial.profiling
    }


def test_all_that_lies_there_is_counted(month, imported):
    """
    By family and use, or by its reason; and applications that are no jobs.
    """
    answer, run = imported
    families = answer["families"]
    records = run.trials().values()
    repeated = sum(
        int(note.split(": ")[1].split()[0]) for note in answer["notes"] if "repeat what" in note
    )

    assert Counter(map(cause, answer["left_out"].values())) == expected_causes(month)
    assert sum(row["jobs"] for row in families) + len(answer["left_out"]) == len(month.jobs)
    assert sum(row["profiled"] for row in families) == sum(r.trial.profiling for r in records)
    assert sum(row["profiled"] + row["scored"] for row in families) == len(records)
    assert sum(row["jobs"] for row in families) == len(records) + repeated
    assert {kind: each["count"] for kind, each in answer["applications"].items()} == {
        "Tez": 12,
        "Spark": 5,
    }
    assert SENTENCE in answer["notes"]
    assert any(  # by 8 s, of which each job shows a part
        note.startswith("the clock of worker3 is at least 7.7 s ahead") for note in answer["notes"]
    )
    never_scored = [row for row in families if not row["scored"]]
    assert len(never_scored) == 2
    assert all("oozie" in row["family"] for row in never_scored)
    assert sum("never vary in size or setting" in note for note in answer["notes"]) == 2


def test_jobs_with_an_earlier_one_of_their_family_are_scored(month, imported):
    """
    95 % of them by both baselines; what is not repeats what was profiled.
    """
    _, run = imported
    chosen = [argument for model in BASELINES for argument in ("--model", model)]
    assert harness("backtest", run.path, *chosen)[0] == 0

    by_model = [scored_jobs(run, model) for model in BASELINES]
    later = later_jobs(month)
    missed = {job.job_id: job.program for job in month.jobs if job.job_id in later}
    for job_id in set.intersection(*by_model):
        del missed[job_id]
    planned = {record.job_ids[0] for record in run.trials().values() if not record.trial.profiling}

    assert by_model == [planned, planned]
    assert len(missed) <= 0.05 * len(later), missed


def test_a_catalog_has_all_of_them_and_no_family_has_two_programs(month, done, tmp_path):
    """
    Failed jobs as well; each family is one program, and each program one family.
    """
    catalog = tmp_path / "catalog"
    status, added = harness("catalog", "add", done, "--catalog", catalog)
    _, listed = harness("catalog", "list", "--catalog", catalog)
    rows = Catalog(catalog).table().select(["job_id", "family", "state"]).to_pylist()
    programs = {job.job_id: job.program for job in month.jobs if job.outcome != "no configuration"}
    pairs = {(row["family"], programs[row["job_id"]]) for row in rows if row["job_id"] in programs}

    assert status == 6
    assert (added["added"], added["left_out_files"]) == (len(month.jobs) - 1, 1)
    assert Counter(row["state"] for row in rows if row["state"] != "SUCCEEDED") == {
        "FAILED": month.counts()["failed"],
        "KILLED": month.counts()["killed"],
    }
    assert len(pairs) == len({family for family, _ in pairs}) == len(set(programs.values()))
    assert sum(row["jobs"] for row in listed) == added["added"]
    assert added["applications"]["Tez"]["count"] == 12


def planned_families(month, folder):
    """
    Of the jobs in a *folder* the counts of each family, by what its jobs run; why others are left
    out; and which jobs feed the profile.
    """
    histories = find_jobs([folder])
    names = family_names(histories.jobs)
    plan = plan_histories(histories, names)
    programs = {job.job_id: job.program for job in month.jobs}
    ordered = sorted(histories.jobs, key=lambda job: job.family)
    by_family = {
        names[family]: tuple(sorted({programs[job.job_id] for job in jobs}))
        for family, jobs in groupby(ordered, key=lambda job: job.family)
    }
    rows = {
        by_family[row["family"]]: {name: row[name] for name in row if name != "family"}
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
