"""
Tests for a drawn design: on clusters in memory, from the draw to its weights in the scores.
"""

import sys

from types import SimpleNamespace

import pytest

from harness.base.errors import DataError, EvidenceError, SpecError
from harness.cli.commands.steps import shown_plan
from harness.cli.console.asked import asked_anew
from harness.clusters.hadoop_home.home import HadoopHome
from harness.core.evaluate import drawn as module
from harness.core.evaluate.flow import Evaluation
from harness.core.reports import REPORTS
from harness.core.run import manifest
from harness.core.run import session as sessions
from harness.core.run.asking import analyse
from harness.core.run.reproduce import reproduce
from harness.core.run.session import Session, added_text
from harness.core.store.seal import DRAWN, RunSeal
from harness.core.store.sums import write_sums
from harness.nightly.measure import measure_night
from harness.publish import paper, verify
from harness.publish.bundle import publish
from harness.publish.compare import reproduce_bundle
from tests.run.fakes import VERSIONS, RecordingConsole

FACTORS = "mapreduce.task.io.sort.factor"
EXPERIMENT = """
schema: 1
name: small
question: {title: Who is nearer?, nearer: [whatif, ernest], anyway: true}
cluster: {workers: 2, site: {dfs.blocksize: 2m}}
workloads:
  - {name: terasort, input: 6000000}
configuration:
  mapreduce.job.reduces: 2
  mapreduce.task.io.sort.factor: [3, 10, 20, 30, 40, 50, 60, 70, 80, 90]
design: {drawn: 8}
repeat: 2
warmup: 0
predict: {models: [whatif, ernest], profile_on: {mapreduce.task.io.sort.factor: [3]}}
"""


class Interrupted(RecordingConsole):
    """
    A user who interrupts once so many trials are done.
    """

    def __init__(self, after):
        super().__init__()
        self.after = after

    def step(self, done, total, left_s, text):
        super().step(done, total, left_s, text)
        if done == self.after:
            raise KeyboardInterrupt


def predicted(_experiment, cells, _profiles):
    """
    Models that agree at factor 10, and differ by as much more as it is larger.
    """
    return {
        cell_id: {"whatif": 1.0, "ernest": float(cell.cell.configuration[FACTORS]) / 10}
        for cell_id, cell in cells.items()
    }


@pytest.fixture
def session(tmp_path, clusters, monkeypatch):
    """
    Makes a session as a new process would, always with the same results folder.
    """
    home = SimpleNamespace(versions=lambda: VERSIONS, path=tmp_path, trace_path_jar=tmp_path)
    monkeypatch.setattr(HadoopHome, "find", staticmethod(lambda: home))
    monkeypatch.setattr(sessions, "probe_jar", lambda: None)
    monkeypatch.setattr(manifest, "source_commit", lambda: "0123456789ab")
    monkeypatch.setattr(module, "predicted_times_s", predicted)
    assert clusters.running == 0

    def build(console=None, overrides=(), text=EXPERIMENT):
        return Session(
            text, "small.yaml", tmp_path / "results", overrides, console or RecordingConsole()
        )

    return build


def factors_of(trials):
    """
    Cells of trials, by what varies over the grid.
    """
    return [trial.cell.configuration[FACTORS] for trial in trials]


@pytest.mark.process
def test_draws_cells_after_profiling_and_seals_them(session):
    """
    Profiling comes first; then as many cells as were drawn, each with all its repeats, and the plan
    says why.
    """
    s = session()
    assert {*factors_of(s.trials)} == {"3"}
    run, failed = s.measure()

    draw = run.read_draw()
    plan = run.read_plan()
    by_time = sorted(run.trials().values(), key=lambda record: record.started_s)
    assert (failed, run.finished) == (0, True)
    assert [record.trial for record in by_time] == [*plan]
    assert plan[:2] == s.trials
    scored = plan[2:]
    assert {trial.cell.id for trial in scored} == draw.weights.keys()
    assert len(scored) == 2 * len(draw.weights)
    assert all(trial.reason == draw.reasons[trial.cell.id] for trial in scored)
    assert "draws: models differ there by a factor of" in scored[0].reason
    assert len(draw.candidates) == 9
    assert sum(candidate.count for candidate in draw.candidates) == 8
    assert {candidate.chance for candidate in draw.candidates if not candidate.disagreement} == {
        1 / 18
    }
    assert DRAWN in run.seal.read()


@pytest.mark.process
def test_scores_have_the_weights_of_the_draw(session):
    """
    So have they when the run is made again, and when other models are asked.
    """
    run, _ = session().measure()
    draw = run.read_draw()
    evaluation = Evaluation.of(run)
    book = evaluation.score()

    by_cell = {row.cell: row for row in book.scores if (row.model, row.quantity, row.speed) == (
        "whatif", "job_s", "raw")}  # fmt: skip
    weights = {cell: row.weight for cell, row in by_cell.items()}
    assert weights == draw.weights
    error = sum(weights[cell] * row.relative_error for cell, row in by_cell.items())
    ranking = book.ranking("raw")
    errors = dict(zip(ranking.models, ranking.errors, strict=True))
    assert errors["whatif"] == pytest.approx(error, rel=1e-12)

    with analyse(run, evaluation.experiment) as (analysis, _):
        rows = analysis.run.read_scores().scores
        assert {row.weight for row in rows} == {*draw.weights.values()}


@pytest.mark.process
def test_is_made_again(session, tmp_path):
    """
    Each stage gives what is stored.
    """
    run, _ = session().measure()
    Evaluation.of(run).score()

    differences = [found for _, found in reproduce(run, tmp_path / "again", "trace")]
    assert differences == [[], [], []]


@pytest.mark.process
@pytest.mark.parametrize("after", [1, 2, 3, 5])
def test_goes_on_with_the_same_draw(session, after):
    """
    Wherever it was interrupted: within profiling, at the seal, or behind it.
    """
    with pytest.raises(KeyboardInterrupt):
        session(console=Interrupted(after)).measure()
    run, _ = session().measure()
    draw = run.read_draw()
    plan = run.read_plan()
    other, _ = session().measure(new=True)

    assert other.id != run.id
    assert other.read_draw() == draw
    assert other.read_plan() == plan
    assert {*run.trials()} == {trial.id for trial in plan}
    run.seal.check()


@pytest.mark.process
def test_a_draw_that_was_not_sealed_is_made_again(session, monkeypatch):
    """
    As the plan that has its cells.
    """
    kept = RunSeal.add

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(RunSeal, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        session().measure()
    monkeypatch.setattr(RunSeal, "add", kept)
    run, failed = session().measure()

    assert failed == 0
    assert {*run.trials()} == {trial.id for trial in run.read_plan()}


@pytest.mark.process
def test_a_draw_that_was_changed_is_refused(session):
    """
    It is under the seal.
    """
    run, _ = session().measure()
    path = run.path / DRAWN
    path.write_bytes(path.read_bytes().replace(b'"seed": 7', b'"seed": 8'))

    with pytest.raises(EvidenceError, match="the seal does not hold"):
        run.read_draw()


@pytest.mark.process
def test_sentinels_lie_among_the_drawn(session):
    """
    As among all others that are scored.
    """
    run, _ = session(overrides=["sentinels=4"]).measure()

    uses = [trial.use for trial in run.read_plan()]
    assert uses[:2] == ["profile", "profile"]
    assert "sentinel" in uses[3:-1]


def test_cells_where_models_agree_are_not_drawn(session, monkeypatch):
    """
    Nothing is measured of them: it would tell nothing.
    """
    monkeypatch.setattr(
        module, "predicted_times_s", lambda _, cells, __: {cell: {"whatif": 1.0} for cell in cells}
    )
    s = session()
    with pytest.raises(DataError, match="whatif and ernest do not in any of 9 cells"):
        s.measure()
    assert {record.trial.use for record in s.newest().trials().values()} == {"profile"}


@pytest.mark.parametrize(
    ("override", "what"),
    [
        ("design={drawn: 10}", "draws 10 cells, and the question is about 9"),
        ("question={how_far: whatif}", "whatif alone is asked"),
        ("question={choice: 1}", "a choice needs all settings"),
        ("question={moved_since: x}", "needs the cells of the earlier run"),
        ("predict.order=mixed", "before they are measured"),
        ("fastest=2", "chooses its cells before"),
        ("repeat=until decided", "chooses its cells before"),
        ("nightly={controls: [sleep]}", "nights repeat the same cells"),
    ],
)
def test_what_a_draw_cannot_tell_is_refused(session, override, what):
    """
    Before anything starts, with the place and what to do.
    """
    s = session(overrides=[override])
    with pytest.raises(SpecError, match=what) as caught:
        s.plan()
    assert caught.value.where
    assert caught.value.fix


def test_the_plan_says_how_many_will_be_drawn(session):
    """
    Their time is that of the mean candidate; some are drawn twice.
    """
    document = session().plan()

    assert len(document["trials"]) == 2
    drawn = document["to_draw"]
    assert (drawn["draws"], drawn["candidates"]) == (8, 9)
    assert drawn["models"] == ["whatif", "ernest"]
    profiling_s = sum(trial["estimate_s"] + trial["before_s"] for trial in document["trials"])
    assert document["estimate_s"] > profiling_s + drawn["estimate_s"] > drawn["estimate_s"] > 0
    assert document["profiling"]["share"] < 0.5
    assert document["decides"]["units"] == drawn["different"] == 5
    said = "8 of 9 candidates will be drawn after profiling, where whatif and ernest disagree"
    assert any(said in part for part in shown_plan(document) if isinstance(part, str))


@pytest.mark.process
def test_a_sealed_run_plans_what_was_drawn(session):
    """
    Its trials are those that are left.
    """
    with pytest.raises(KeyboardInterrupt):
        session(console=Interrupted(4)).measure()
    document = session().plan()

    assert "to_draw" not in document
    assert [trial["state"] for trial in document["trials"]].count("done") == 4


@pytest.mark.process
def test_profiles_of_another_run_need_no_trial_before_the_draw(session):
    """
    All trials are then of cells that were drawn.
    """
    lender, _ = session().measure()
    run, failed = session(overrides=[f"predict.from={lender.id}", "seed=9"]).measure(new=True)

    assert failed == 0
    assert {trial.use for trial in run.read_plan()} == {"score"}
    assert {trial.cell.id for trial in run.read_plan()} == run.read_draw().weights.keys()


@pytest.mark.process
@pytest.mark.parametrize("level", ["scores", "traces"])
def test_a_bundle_bears_its_weights_out(session, tmp_path, monkeypatch, level):
    """
    They are those of the sealed draw, and all numbers follow from them.
    """
    monkeypatch.setitem(REPORTS, "html", REPORTS["markdown"])
    monkeypatch.setattr(paper, "_drawn", lambda _figure, kind: kind.encode())
    monkeypatch.setitem(sys.modules, "typst", None)
    run, _ = session().measure()
    Evaluation.of(run).score()
    Evaluation.of(run).report()
    folder = tmp_path / "bundle"
    publish([run], folder, level=level, licence="CC-BY-4.0")

    assert verify.check(folder)
    made_again = reproduce_bundle(folder, tmp_path / "again", "raw")
    assert [stage for stage, found in made_again if found] == []
    weight = repr(max(run.read_draw().weights.values()))
    cells = folder / "data/cells.csv"
    cells.write_text(cells.read_text().replace(weight, "0.9"))
    write_sums(folder)
    with pytest.raises(ValueError, match=r"weight 0\.9, drawn"):
        verify.check(folder)


def test_nights_repeat_the_same_cells(session, tmp_path):
    """
    Those of a draw would be others each night.
    """
    s = session()
    with pytest.raises(SpecError, match="nights repeat the same cells"):
        measure_night(s.text, s.source, tmp_path / "results", (), s.console)


@pytest.mark.process
def test_a_cell_that_was_not_drawn_has_no_part_in_a_mean(session):
    """
    Asked with another `profile_on`, cells of the old one would be scored: they stand for no other.
    """
    run, _ = session().measure()
    experiment = asked_anew(run, "", ["mapreduce.task.io.sort.factor=90,80,70,60,50,40"], [])

    with (
        pytest.raises(DataError, match="was not drawn, and stands for no other"),
        analyse(run, experiment),
    ):
        pass


def test_predictions_of_an_unfinished_run_wait_for_the_draw(session):
    """
    Nobody but the run itself draws its cells.
    """
    with pytest.raises(KeyboardInterrupt):
        session(console=Interrupted(1)).measure()
    evaluation = session().evaluation()
    evaluation.profile()

    with pytest.raises(DataError, match="drawn when it goes on"):
        evaluation.predict()


def test_trials_that_are_added_for_several_reasons_say_the_first():
    """
    That of one is not that of all.
    """
    one, other = SimpleNamespace(reason="drawn once"), SimpleNamespace(reason="drawn twice")

    assert added_text([one]) == "1 trial is added: drawn once"
    assert added_text([one, one]) == "2 trials are added: drawn once"
    assert added_text([one, other]) == "2 trials are added, the first one drawn once"
    assert added_text([SimpleNamespace(reason="")]) == "1 trial is added"
