"""
What is left of a run: its time, its trials, its disks' bytes, and the stages of a lean copy.
"""

import shutil

from itertools import count

import pytest

from harness.base.errors import SpecError
from harness.clusters.state import state_folder
from harness.core.evaluate.flow import Evaluation
from harness.core.run.estimate import PRIOR_TRIALS, Remaining
from harness.core.run.plan import refuse_cells
from harness.core.run.reproduce import reproduce
from harness.core.run.secrets import digest_key
from harness.core.store import Run
from tests.evaluate.test_flow import scored
from tests.run.fakes import FakeCluster, RecordingConsole, terasort
from tests.run.test_execute import disturb, plan
from tests.run.test_plan import grid
from tests.run.test_session import Interrupted, session  # noqa: F401 - a fixture
from tests.run.test_trial import bench  # noqa: F401 - a fixture


def test_the_time_left_takes_the_mean_for_what_has_no_estimate(execution):
    """
    Of trials that are done: 20 and 40 s where twice 10 s were expected; the pace is not all theirs.
    """
    first, second, _ = (trial.id for trial in plan())
    e = execution(remaining=Remaining({first: 10.0}, measured_s={first: 20.0, second: 40.0}))
    e.execute(plan(), {first, second})

    pace = (10 * PRIOR_TRIALS + 60) / (10 * PRIOR_TRIALS + 20)
    assert e.console.steps[0][:3] == (2, 3, pytest.approx(10 * pace))


def test_a_refused_grid_says_where_and_what_to_change():
    """
    One place and one fix, of many cells as well.
    """
    for reasons in (["no node has a core"], ["no node has a core", "no node has memory"]):
        with pytest.raises(SpecError) as caught:
            refuse_cells(grid(), lambda cluster, job, reasons=reasons: reasons, "f.yaml")
        assert caught.value.where == "f.yaml"
        assert caught.value.fix == "change cluster.node or the configuration; nothing was started"


def test_a_plan_says_how_much_a_run_holds(session):  # noqa: F811
    """
    Of an unfinished run what goes on; of a finished one what is measured anew.
    """
    assert "run" not in session().plan()
    with pytest.raises(KeyboardInterrupt):
        session(console=Interrupted(3)).measure()
    heard = RecordingConsole()
    run = session(console=heard).plan()["run"]
    assert heard.lines[-1] == (
        f"run {run} holds 3 of 4 trials, and is not finished: 'harness run' goes on with it"
    )
    session().measure()
    session(console=heard).plan()
    assert heard.lines[-1] == (
        f"run {run} holds 4 of 4 trials, and is finished: 'harness run' measures all anew, in"
        " another run"
    )


@pytest.mark.parametrize(("asked", "repeated"), [("repeat", 1), ("keep", 0)])
def test_a_disturbed_trial_of_a_session_is_repeated_where_asked(
    session,  # noqa: F811
    clusters,
    monkeypatch,
    asked,
    repeated,
):
    """
    Once; else it counts as it is.
    """
    disturb(monkeypatch, 1)
    run, failed = session().measure(on_disturbed=asked)

    assert failed == 0
    assert clusters.jobs.count("terasort") == 4 + repeated
    assert sum(bool(record.disturbed) for record in run.trials().values()) == 1 - repeated


def test_a_trial_has_the_bytes_of_its_disks_alone(bench, monkeypatch):  # noqa: F811
    """
    What was moved before it does not count; a node that is new began at 0.
    """
    moved = count()

    def disk_bytes(_):
        at = next(moved)
        return {"a": {"read": 100 + 7 * at}} | ({"b": {"written": 5}} if at else {})

    monkeypatch.setattr(FakeCluster, "disk_bytes", disk_bytes)

    assert bench().run(terasort()).disk_bytes == {"a": {"read": 7}, "b": {"written": 5}}


def test_the_key_of_digests_has_its_name(tmp_path, monkeypatch):
    """
    It is what a user takes to another machine.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    assert digest_key() == (state_folder() / "digest-key").read_bytes()


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """
    A scored run.
    """
    return scored(tmp_path_factory.mktemp("results"))


class TestLean:
    @pytest.fixture
    def lean(self, stored, tmp_path):
        """
        Makes a copy without these files, and without the evidence that would show it.
        """

        def copy(*patterns):
            run = Run(shutil.copytree(stored.path, tmp_path / "lean" / stored.path.name))
            evidence = ("trials.jsonl", "trials/*/evidence.json")
            for path in [path for one in (*evidence, *patterns) for path in run.path.glob(one)]:
                path.unlink()
            return run

        return copy

    @pytest.mark.parametrize(
        ("without", "stages"),
        [
            ([], ["trace", "profiles", "predictions", "scores"]),
            (["trials/*/raw/*history*"], ["profiles", "predictions", "scores"]),
            (["trials/*/raw/*history*", "trials/*/trace/*"], ["predictions", "scores"]),
        ],
        ids=["all", "no-histories", "no-traces"],
    )
    def test_begins_where_its_files_do(self, lean, tmp_path, without, stages):
        """
        Profiles are made of traces, and traces of histories; all comes out equal.
        """
        made = dict(reproduce(lean(*without), tmp_path / "again", "raw", is_lean=True))

        assert made == {stage: [] for stage in stages}

    @pytest.mark.process
    def test_is_scored_by_its_own_measurements(self, lean, tmp_path, monkeypatch):
        """
        Where no trace shows them; else by the traces.
        """
        given = []
        score = Evaluation.score

        def listening(evaluation, stored=None):
            given.append(0 if stored is None else len(stored.measurements))
            return score(evaluation, stored)

        monkeypatch.setattr(Evaluation, "score", listening)
        run = lean("trials/*/raw/*history*", "trials/*/trace/*")
        list(reproduce(run, tmp_path / "again", "raw", is_lean=True))
        measured = len(run.read_scores().measurements)
        shutil.rmtree(run.path)
        list(reproduce(lean(), tmp_path / "more", "raw", is_lean=True))

        assert given == [measured, 0]
        assert measured > 0
