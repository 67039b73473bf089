"""
The closed loop of tuning: what one step measures, learns and says, with recorded jobs.
"""

import json
import math

from types import SimpleNamespace

import pytest

from harness.base.errors import DataError, SpecError
from harness.core.evaluate.flow import Evaluation
from harness.core.experiment.file import read_experiment
from harness.core.experiment.grid import expand
from harness.core.store import Store
from harness.tuning import closed_loop
from harness.tuning.closed_loop import Outcome, Step, Tuning
from tests.evaluate.test_flow import RATES, commit, stored  # noqa: F401 - a fixture
from tests.run.fakes import VERSIONS
from tests.run.test_tune import loop  # noqa: F401 - a fixture

SORT_MB = "mapreduce.task.io.sort.mb"


class RecordedSession:
    """
    Measures the cells of a step by recorded jobs: the job fails where *failing* names its buffer.
    """

    made = ()
    failing = ""

    def __init__(self, text, source, results_dir, *given, profiles):
        overrides, _ = given
        self.text = text
        self.source = source
        self.given = (*given, profiles)
        self.store = Store(results_dir)
        self.experiment = read_experiment(text, source, overrides)
        self.versions = VERSIONS
        self.asked = []
        type(self).made = (*self.made, self)

    def measure(self, *, new, trials):
        """
        A run of these *trials*, finished.
        """
        self.asked.append((new, [trial.id for trial in trials]))
        run = self.store.open_run(self.experiment, self.text, new=new)
        run.write_plan(trials)
        for trial, rate in zip(trials, RATES * 9, strict=False):
            is_failing = trial.cell.configuration.get(SORT_MB) == self.failing
            commit(run, trial, "failed" if is_failing else "done", rate)
        for profile in self.given[2].values():
            run.write_profile(profile)
        Evaluation.of(run).predict()
        run.finish()
        return run, 0


@pytest.fixture
def session(monkeypatch):
    """
    The class of sessions that a loop opens, which keeps those that it made.
    """
    kind = type("Session", (RecordedSession,), {"made": ()})
    monkeypatch.setattr(closed_loop, "Session", kind)
    kind.reported = []  # a report is drawn, which takes a ring of its own
    monkeypatch.setattr(Evaluation, "report", lambda made: kind.reported.append(made.run.path))
    return kind


@pytest.fixture
def tuning(loop):  # noqa: F811
    """
    The loop as it is, two repeats of each cell.
    """
    loop.repeats = 2
    loop.__class__ = Tuning
    return loop


def cells_of(tuning, *buffers):
    """
    The base of a loop, and the same with other sort buffers.
    """
    base = tuning.basis.resolved
    properties = base.cell.configuration
    others = [base.configured(properties | {SORT_MB: buffer}).cell for buffer in buffers]
    return {cell.id: cell for cell in (base.cell, *others)}


class TestStep:
    def test_measures_its_cells_in_turn(self, tuning, session, tmp_path):
        """
        All of them in each repeat, so that what the machine does meets all alike.
        """
        cells = cells_of(tuning, "2")

        path = tuning.measure(0, cells)

        (made,) = session.made
        run = Store(tmp_path).latest("tune-terasort")
        assert path == str(run.path)
        assert [trial.cell.id for trial in run.read_plan()] == [*cells, *cells]
        assert [trial.repetition for trial in run.read_plan()] == [0, 0, 1, 1]
        assert made.asked == [(True, [trial.id for trial in run.read_plan()])]
        assert made.source == "tune-terasort"

    def test_is_given_the_profile_that_is_known(self, tuning, session):
        """
        Nothing is profiled anew in a step, and the next one has the profile of this.
        """
        before = tuning.basis.profile
        tuning.measure(0, cells_of(tuning))

        assert session.made[0].given == ((), tuning.console, {"terasort": before})
        after = tuning.basis.profile
        assert after.workload == "terasort"
        assert len(after.trials) == len(before.trials) + 2

    def test_has_an_experiment_on_the_cluster_of_the_base(self, tuning):
        """
        With its properties, its tracing, and the run that it learned from.
        """
        base = tuning.basis.base
        file = tuning.step_experiment("a-name")
        experiment = read_experiment(json.dumps(file), "a", ())

        assert (experiment.name, experiment.repeat) == ("a-name", 2)
        assert experiment.title == "Is a job faster with the settings that a model chose?"
        assert file["predict"] == {
            "models": ["whatif-mr2"],
            "from": str(tuning.source.path.absolute()),
        }
        assert file["configuration"] == base.configuration
        assert file["trace"] == base.tracing.mode
        assert file["cluster"]["provider"] == base.cluster.provider
        assert file["cluster"]["site"] == base.cluster.site
        assert "hosts" not in file["cluster"]
        assert "ssh" not in file["cluster"]

    def test_has_the_hosts_of_the_base(self, tuning):
        """
        And how they are reached.
        """
        text = """
        schema: 1
        name: a
        question: b
        cluster: {provider: ansible, hosts: [m, w1, w2], ssh: {user: someone}}
        workloads: [{name: terasort, input: 1 MiB}]
        """
        cluster = expand(read_experiment(text, "a", ()))[0].cluster
        base = tuning.basis.resolved
        moved = base.cell.model_copy(update={"cluster": cluster})
        tuning.basis = SimpleNamespace(base=moved)

        file = tuning.step_experiment("a")
        assert file["cluster"]["hosts"] == ["m", "w1", "w2"]
        assert file["cluster"]["ssh"]["user"] == "someone"

    def test_keeps_the_times_of_each_cell(self, tuning, session):
        """
        By step and repetition, as seconds of the job.
        """
        cells = cells_of(tuning, "2")
        tuning.measure(3, cells)

        assert tuning.times_s.keys() == cells.keys() == tuning.cells.keys()
        for times_s in tuning.times_s.values():
            assert times_s.keys() == {(3, 0), (3, 1)}
        (base, other) = (tuning.times_s[cell] for cell in cells)
        # Jobs were stretched in the proportion of their rates.
        assert base[3, 0] / other[3, 0] == pytest.approx(RATES[1] / RATES[0], rel=0.01)
        assert base[3, 0] / base[3, 1] == pytest.approx(RATES[2] / RATES[0], rel=0.01)

    def test_is_scored_and_reported(self, tuning, session, tmp_path):
        """
        Like every other run.
        """
        tuning.measure(0, cells_of(tuning))

        run = Store(tmp_path).latest("tune-terasort")
        assert run.is_scored
        assert session.reported == [run.path]

    @pytest.mark.process
    def test_that_is_there_already_is_taken(self, tuning, session):
        """
        Unless all is to be measured anew; another plan is another step.
        """
        cells = cells_of(tuning, "2")
        first = tuning.measure(0, cells)
        second = tuning.measure(0, cells)

        assert first == second
        assert tuning.console.lines[-1] == f"step 1 is measured already: {first}"
        assert session.made[1].asked == []
        tuning.anew = True
        assert tuning.measure(0, cells) != first
        assert [is_new for is_new, _ in session.made[2].asked] == [True]
        tuning.anew = False
        assert tuning.measure(0, cells_of(tuning, "3")) != first
        assert [is_new for is_new, _ in session.made[3].asked] == [True]

    def test_that_was_interrupted_goes_on(self, tuning, session, tmp_path):
        """
        Its run is there, and not finished.
        """
        cells = cells_of(tuning)
        first = tuning.measure(0, cells)
        (Store(tmp_path).find(first).path / "finished").unlink()

        tuning.take_in = lambda *_: None
        session.measure = lambda self, *, new, trials: (
            self.asked.append(new)
            or (
                Store(tmp_path).find(first),
                0,
            )
        )
        assert tuning.measure(0, cells) == first
        assert session.made[1].asked == [False]


class TestFailures:
    def test_are_kept_and_said(self, tuning, session):
        """
        The cell has no time, and is not measured again.
        """
        session.failing = "2"
        cells = cells_of(tuning, "2", "3")
        path = tuning.measure(1, cells)

        base, failed, other = cells
        assert tuning.failed == {failed: cells[failed]}
        assert tuning.cells.keys() == tuning.times_s.keys() == {base, other}
        assert tuning.console.lines[-1] == (
            "step 2: the job fails with 1 of 3 settings, and nothing near them is proposed:"
            f" harness show {path}"
        )

    def test_of_the_jobs_own_settings_end_the_loop(self, tuning, session, tmp_path):
        """
        There is nothing to compare with.
        """
        session.failing = tuning.basis.base.configuration[SORT_MB]
        with pytest.raises(DataError) as caught:
            tuning.measure(0, cells_of(tuning, "3"))

        path = Store(tmp_path).latest("tune-terasort").path
        assert caught.value.what == "step 1: the job failed with its own settings"
        assert caught.value.where == str(path)
        assert caught.value.fix == (
            f"read the reasons, then start it again with --new: harness show {path}"
        )

    def test_count_as_twice_as_long_as_the_others(self, tuning, session):
        """
        By the mean of what the model misses at these.
        """
        cells = cells_of(tuning, "2", "3")
        base, other, failed = cells
        tuning.cells = {key: cells[key] for key in (base, other)}
        tuning.times_s[base].update({(0, 0): 30.0})
        tuning.times_s[other].update({(0, 0): 90.0})
        measured = [ratio for _, ratio in tuning.measured_ratios(tuning.judge)]
        tuning.failed = {failed: cells[failed]}

        *again, (_, ratio) = tuning.measured_ratios(tuning.judge)
        assert [known for _, known in again] == measured
        assert ratio == pytest.approx(sum(measured) / 2 + math.log(2))


class TestRefusals:
    def refusal(self, tuning, change):
        """
        The error of a loop whose base has *change*.
        """
        base = tuning.basis.base.model_copy(update=change(tuning.basis.base))
        basis = tuning.basis._replace(resolved=SimpleNamespace(cell=base))
        with pytest.raises((SpecError, DataError)) as caught:
            Tuning(
                tuning.evaluation,
                basis,
                "whatif",
                2,
                tuning.results_dir,
                tuning.console,
            )
        return (caught.value.what, caught.value.where, caught.value.fix)

    def test_past_jobs_cannot_be_started(self, tuning):
        """
        Their cluster is not ours.
        """

        def past(base):
            return {"cluster": base.cluster.model_copy(update={"provider": "history"})}

        assert self.refusal(tuning, past) == (
            "its jobs had run before, on a cluster that nobody can start from here",
            "--try",
            "try its properties there, or name a run that was measured",
        )

    def test_workloads_of_ones_own_cannot_be_started(self, tuning):
        """
        The run has not their code.
        """

        def owned(base):
            return {"workload": base.workload.model_copy(update={"code": "a.py:A"})}

        assert self.refusal(tuning, owned) == (
            "steps are run from the run alone, which has no workload of your own",
            "--try",
            "write the properties that harness tune proposes into its experiment",
        )

    def test_without_a_profiling_trial_there_is_nothing_to_learn_from(self, tuning):
        """
        Of the workload that is tuned.
        """

        def unprofiled(base):
            return {"workload": base.workload.model_copy(update={"name": "wordcount"})}

        assert self.refusal(tuning, unprofiled) == (
            "the run has no profiling trial of wordcount to learn from",
            str(tuning.source.path),
            "name the run that measured it",
        )

    def test_what_profiling_trials_show_is_known_from_the_start(self, tuning):
        """
        Of each of them one job.
        """
        assert len(tuning.learned) == len(tuning.basis.profile.trials)


class TestEnd:
    def test_says_what_was_not_worth_a_step(self, tuning, session):
        """
        Where all that is proposed was measured.
        """
        tuning.expected_times = lambda *_: []

        assert list(tuning.steps(3)) == []
        assert tuning.console.lines == ["nothing is proposed that was not measured"]

    def test_the_gain_and_the_noise_are_told(self, tuning):
        """
        Once something was measured; a gain as large as the noise is none.
        """
        base = tuning.basis.base
        tuning.times_s[base.id] = {(0, 0): 9.0, (0, 1): 11.0}
        noise = tuning.noise(base.id)
        proposal = SimpleNamespace(saved=0.5)

        assert tuning.reason_to_stop(proposal, 10 * (1 - noise) - 0.01, base) == ""
        reason = tuning.reason_to_stop(proposal, 10 * (1 - noise / 2), base)
        assert reason == (
            f"the next one is expected to save {noise / 2:.1%}, and the noise is {noise:.1%}"
        )

    def test_what_lies_within_the_last_miss_is_not_tried(self, tuning):
        """
        However small the noise: what was expected of the last one was further off.
        """
        base = tuning.basis.base
        tuning.times_s[base.id] = {(0, 0): 10.0, (0, 1): 10.1}
        tuning.miss = 0.2
        proposal = SimpleNamespace(saved=0.5)

        assert tuning.reason_to_stop(proposal, 8.5, base) == (
            "the next one is expected to save 15.4%, and what was expected of the last one was"
            " 20.0% off"
        )
        assert tuning.reason_to_stop(proposal, 7.5, base) == ""

    @pytest.mark.parametrize(("saved", "is_end"), [(0.1, False), (0.0, True), (None, True)])
    def test_before_the_first_step_a_gain_is_enough(self, tuning, saved, is_end):
        """
        However small.
        """
        reason = tuning.reason_to_stop(SimpleNamespace(saved=saved), 1.0, tuning.basis.base)

        text = "nothing is expected to be faster than the job's own settings"
        assert reason == (text if is_end else "")


class TestOutcome:
    @pytest.fixture
    def measured(self, tuning):
        """
        A loop that measured three cells: the base, Hadoop's defaults, and a better one.
        """
        tuning.cells = cells_of(tuning, "100", "7")
        base, default, best = tuning.cells
        tuning.times_s[base].update({(0, 0): 10.0, (0, 1): 12.0})
        tuning.times_s[default].update({(0, 0): 20.0, (0, 1): 20.0})
        tuning.times_s[best].update({(0, 0): 5.0, (0, 1): 4.0})
        tuning.defaults = {default}
        return tuning

    def test_names_what_the_best_cell_changes(self, measured):
        """
        Beside what it is worth, over the base and over the defaults.
        """
        outcome = measured.outcome(["steps"])

        assert outcome.steps == ["steps"]
        assert outcome.properties == {SORT_MB: "7"}
        assert outcome.speed_up[0] == pytest.approx((2 * 3) ** 0.5)
        assert outcome.over_defaults[0] == pytest.approx((4 * 5) ** 0.5)
        assert outcome.speed_up[1] < outcome.speed_up[0] < outcome.speed_up[2]

    def test_says_it_in_one_sentence(self, measured):
        """
        What it is worth, what that rests on, and how far off its judge was.
        """
        says = measured.outcome(["one", "two"]).says

        assert says.startswith("with what was found the job is 2.45 times as fast (")
        assert "as with its own settings and 4.47 times as fast (" in says
        assert "as with Hadoop's defaults (2 steps, 2 repeats of each); whatif-mr2 was" in says

    def test_is_never_slower_than_the_defaults(self, measured):
        """
        Faster than the job's own settings beside these is not enough; nor is the reverse.
        """
        base, default, found = measured.cells
        measured.times_s[base] = {(0, 0): 10.0, (1, 0): 12.0}
        measured.times_s[default] = {(0, 0): 8.0, (1, 0): 8.0}
        measured.times_s[found] = {(1, 0): 8.2}

        assert measured.speed_up(base)[0] > 1
        assert measured.best() == default
        assert "Hadoop's defaults are the best that was measured" in measured.outcome([]).says
        measured.times_s[found] = {(1, 0): 7.9}
        assert measured.best() == found
        assert measured.speed_up(default)[0] > 1

    def test_has_no_defaults_where_these_are_the_best_or_failed(self, measured):
        """
        There is nothing to be compared with.
        """
        _, default, best = measured.cells
        measured.defaults = {best}
        assert measured.outcome([]).over_defaults is None
        measured.defaults = {default}
        del measured.cells[default]
        assert measured.outcome([]).over_defaults is None

    def test_vets_are_means_of_both_cells(self, measured):
        """
        Of each kind of task that has some in both.
        """
        base, _, best = measured.cells
        measured.vets[base, "map"] = [1.0, 3.0]
        measured.vets[best, "map"] = [1.5]
        measured.vets[base, "reduce"] = [2.0]

        assert measured.outcome([]).vet == {"map": (2.0, 1.5)}

    def test_is_a_document(self):
        """
        Steps by the names of their fields, intervals by their ends.
        """
        step = Step("results/run", "search", 4.0, 5.0, 10.0, 5.0)
        vet = {"map": (2.0, 1.5)}
        full = Outcome([step], (2.0, 1.5, 2.5), (3.0, None, None), vet, {"a": "b"})

        assert full.document() == {
            "says": "",
            "steps": [
                {
                    "run": "results/run",
                    "optimizer": "search",
                    "predicted_s": 4.0,
                    "measured_s": 5.0,
                    "own_s": 10.0,
                    "best_s": 5.0,
                }
            ],
            "speed_up": {
                "value": 2.0,
                "low": 1.5,
                "high": 2.5,
                "over_defaults": {"value": 3.0, "low": None, "high": None},
            },
            "vet": {"map": {"own": 2.0, "best": 1.5}},
            "properties": {"a": "b"},
        }
        bare = Outcome([], (1.0, None, None), None, {}, {})
        assert bare.document()["speed_up"] == {"value": 1.0, "low": None, "high": None}


@pytest.mark.process
def test_a_whole_loop_takes_steps_until_it_ends(tuning, session):
    """
    Each step names its run and who proposed it, with what was predicted and measured.
    """
    steps = list(tuning.steps(2))

    assert steps
    for number, step in enumerate(steps):
        assert step.run in {str(run.path) for run in session.made[number].store.all_runs()}
        assert step.optimizer in ("mrtuner", "search", "hadoop")
        assert step.own_s == tuning.mean_s(tuning.basis.base.id) or number == 0
        assert step.best_s <= step.own_s * 1.1
    first = session.made[0].asked[0][1]
    assert len(set(first)) == len(first) >= 4
