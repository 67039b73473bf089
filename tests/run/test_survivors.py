"""
A later job that is shorter than all that passes around tasks stays in the score of its model.

The history of `survivors.tar.gz` is real, cut to the counters that are read, with other names and
times: six jobs feed the profile, four are scored, and three of these are three times as fast.
"""

import re
import tarfile

from pathlib import Path

import pytest

from harness.cli import main
from harness.core.evaluate.flow import Evaluation
from harness.core.store import Run
from harness.past.imports import import_jobs

pytestmark = pytest.mark.process  # models are fitted and asked many times

CASES = Path(__file__).parents[1] / "cases"
MOMENT = re.compile(rb"(?<![_\d])1425\d{9}(?!\d)")
JOB = b"job_1425400000101_%04d"
SCORED = (7, 8, 9, 10, 11, 12)  # the later half; two of them repeat what was profiled
UNTIL_S = 1425450600.0  # between the sixth and the seventh


@pytest.fixture
def survivors(tmp_path):
    """
    The twelve jobs of the case.
    """
    with tarfile.open(CASES / "survivors.tar.gz") as archive:
        archive.extractall(tmp_path / "done", filter="data")
    return tmp_path / "done" / "survivors"


def history_of(folder, number):
    """
    The history of the job with this number.
    """
    (path,) = folder.glob(f"{JOB.decode() % number}-*.jhist")
    return path


def scale(path, factor):
    """
    Make a job take *factor* times as long: all moments behind its submission.
    """
    text = path.read_bytes()
    submitted = min(int(moment) for moment in MOMENT.findall(text))
    path.write_bytes(
        MOMENT.sub(
            lambda moment: b"%d" % round(submitted + factor * (int(moment[0]) - submitted)), text
        )
    )


def double(folder, number):
    """
    Have a job run once more, a minute later, under another id.
    """
    other = number + 100
    for path in [*folder.glob(f"{JOB.decode() % number}*")]:
        text = path.read_bytes().replace(JOB[4:] % number, JOB[4:] % other)
        text = MOMENT.sub(lambda moment: b"%d" % (int(moment[0]) + 60_000), text)
        path.with_name(path.name.replace(f"_{number:04d}", f"_{other:04d}")).write_bytes(text)


def scored(folder, target):
    """
    The scores of a backtest: import, profiles, predictions, and what was stated of each model.
    """
    evaluation = Evaluation.of(import_jobs([folder], target, until_s=UNTIL_S).run)
    evaluation.profile()
    evaluation.predict()
    return evaluation.score()


def stated(book):
    """
    Mean relative error and mean signed error of job times of each model, with its cells.
    """
    return {
        row.model: (row.value("mape"), row.value("signed_error"), row.cells)
        for row in book.summaries
        if (row.workload, row.quantity, row.speed) == ("*", "job_s", "raw")
    }


def test_all_later_jobs_are_scored_by_their_times(survivors, tmp_path, capsys):
    """
    Three of four are far shorter than what was fitted around tasks: all four count, no body does.
    """
    target = tmp_path / "run"

    assert main(["import", str(survivors), "-o", str(target)]) == 0
    assert main(["backtest", str(target)]) == 0
    assert "Scored: 4 of 4 planned trials." in capsys.readouterr().out

    book = Run(target).read_scores()
    assert len(book.measurements) == 4
    assert {row.quantity for row in book.scores} <= {"job_s", "published_s", "makespan_s", "sort_s"}
    for model in ("whatif", "whatif-mr2", "ernest", "scaling"):
        tally = book.tally("cell", model=model)
        assert (tally.planned, tally.scored) == (2, 2), model
        assert stated(book)[model][0] > 0.4, model


@pytest.mark.parametrize("shortened", [(9,), (10, 11, 12), (7, 8, 9, 10, 11, 12)])
def test_no_error_falls_because_jobs_became_shorter(survivors, tmp_path, shortened):
    """
    Of models that were too long on every cell; the others may well come nearer.
    """
    before = stated(scored(survivors, tmp_path / "before"))
    for number in shortened:
        scale(history_of(survivors, number), 1 / 3)

    after = stated(scored(survivors, tmp_path / "after"))

    assert {model: cells for model, (_, _, cells) in before.items()} == {
        model: cells for model, (_, _, cells) in after.items()
    }
    too_long = [m for m, (error, signed, _) in before.items() if error == pytest.approx(signed)]
    assert too_long
    for model in too_long:
        assert after[model][0] >= before[model][0], model


def test_longer_jobs_leave_all_of_them_scored(survivors, tmp_path):
    """
    Three times as long each: as many trials, cells and models as before.
    """
    before = scored(survivors, tmp_path / "before")
    for number in SCORED:
        scale(history_of(survivors, number), 3)

    after = scored(survivors, tmp_path / "after")

    def counts(book):
        return {(tally.unit, tally.quantity, tally.model, tally.scored) for tally in book.tallies}

    assert counts(after) == counts(before)


def test_jobs_that_ran_twice_change_no_error(survivors, tmp_path):
    """
    Each scored cell has repeats of the same times: its mean is what it was, and its errors are.
    """
    before = scored(survivors, tmp_path / "before")
    for number in SCORED:
        double(survivors, number)

    after = scored(survivors, tmp_path / "after")

    assert after.tally("trial").scored == 2 * before.tally("trial").scored
    errors = {model: pytest.approx(error) for model, (error, _, _) in stated(before).items()}
    assert {model: error for model, (error, _, _) in stated(after).items()} == errors
