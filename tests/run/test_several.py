"""
Several runs of one experiment: which are there, and what they say together.
"""

import math

import click
import pytest

from harness.base.errors import SpecError
from harness.base.records.score import MetricValue, Ranking, ScoreBook, Summary
from harness.cli.commands import steps
from harness.cli.commands.steps import shown_over_runs
from harness.cli.console.present import Rows
from harness.core.run.session import Session
from harness.core.run.several import ended_runs, over_runs, says_over_runs, sessions_of
from harness.core.store import Run, Store
from tests.run.fakes import RecordingConsole

TEXT = """schema: 1
name: several
question: q
seed: 5
cluster: {workers: 1}
workloads: [{name: wordcount, input: [2 MiB, 4 MiB]}]
predict: {models: [whatif, ernest], profile_on: {input: 2 MiB}}
"""


@pytest.fixture
def session(tmp_path):
    """
    The session of an experiment file.
    """
    return Session(TEXT, "several.yaml", tmp_path / "results", (), RecordingConsole())


def make_run(session, *, ends=True):
    """
    A run of the session, as one that was measured to its end, or was interrupted.
    """
    run = Store(session.results_dir).open_run(session.experiment, TEXT, new=True)
    if ends:
        run.finish()
    return run


def scores(quantity="job_s", **errors):
    """
    Scores of a run in which the models have these mean errors.
    """
    summaries = [
        Summary(
            model=model, workload=workload, level="job", quantity=quantity, speed="raw", cells=6,
            metrics={"mape": MetricValue(value=error * (workload == "*" or 9))},
        )
        for model, error in errors.items()
        for workload in ("wordcount", "*")
    ]  # fmt: skip
    order = sorted(errors, key=errors.get)
    ranking = Ranking(
        quantity=quantity, speed="raw", cells=6, models=tuple(order), nearest=tuple(order[:1]),
        errors=tuple(errors[model] for model in order),
    )  # fmt: skip
    return ScoreBook(summaries=tuple(summaries), rankings=(ranking,))


class TestSessions:
    def test_each_has_the_next_seed(self, session):
        """
        From that of the file on: orders and runs of their own.
        """
        sessions = sessions_of(session, 3)

        assert [each.experiment.seed for each in sessions] == [5, 6, 7]
        assert {each.experiment.name for each in sessions} == {"several"}
        folders = {make_run(each).path for each in sessions}
        assert len(folders) == 3

    def test_profiles_of_another_run_are_refused(self, session, tmp_path):
        """
        All runs would rest on one profile.
        """
        text = TEXT.replace("profile_on: {input: 2 MiB}", "from: 20261121T0323")
        borrowed = Session(text, "several.yaml", tmp_path / "results", (), RecordingConsole())

        with pytest.raises(SpecError, match="several runs would share them"):
            sessions_of(borrowed, 3)


class TestEnded:
    def test_an_interrupted_call_goes_on(self, session):
        """
        What has ended is not measured again; what was interrupted is no end.
        """
        sessions = sessions_of(session, 3)
        first = make_run(sessions[0])
        make_run(sessions[1], ends=False)

        found = ended_runs(sessions)
        assert [run and run.path for run in found] == [first.path, None, None]

    def test_the_next_call_begins_anew(self, session):
        """
        Once all have ended; and goes on in that round.
        """
        sessions = sessions_of(session, 2)
        for one_session in sessions:
            make_run(one_session)

        assert ended_runs(sessions) == [None, None]
        again = make_run(sessions[0])
        (found, missing) = ended_runs(sessions)
        assert (found.path, missing) == (again.path, None)

    def test_what_was_asked_otherwise_is_another_series(self, session, tmp_path):
        """
        Its profiles are of other cells, or its models are others.
        """
        make_run(sessions_of(session, 2)[0])
        text = TEXT.replace("profile_on: {input: 2 MiB}", "profile_on: {input: 4 MiB}")
        other = Session(text, "several.yaml", tmp_path / "results", (), RecordingConsole())

        assert ended_runs(sessions_of(other, 2)) == [None, None]


class TestOverRuns:
    def test_the_interval_is_students_over_runs(self):
        """
        Of 10, 14 and 12 %: 12, and 4.303 standard errors of 1.155 to either side.
        """
        books = [scores(whatif=error, ernest=0.2) for error in (0.10, 0.14, 0.12)]
        quantity, (whatif, ernest) = over_runs(books)

        assert quantity == "job_s"
        assert (whatif.model, whatif.errors) == ("whatif", (0.10, 0.14, 0.12))
        half = 4.302653 * 0.02 / math.sqrt(3)
        assert whatif.mean == pytest.approx(0.12)
        assert whatif.interval == pytest.approx((0.12 - half, 0.12 + half), rel=1e-6)
        assert ernest.interval == pytest.approx((0.2, 0.2))

    def test_an_error_is_not_below_0(self):
        """
        However much it varies.
        """
        _, (row,) = over_runs([scores(whatif=error) for error in (0.01, 0.01, 0.4)])

        assert row.interval[0] == 0.0

    def test_two_runs_have_no_interval(self):
        """
        Nor has a model a mean that was not scored in all of them.
        """
        _, rows = over_runs([scores(whatif=0.1, ernest=0.2), scores(whatif=0.3)])

        assert rows == [("whatif", (0.1, 0.3), pytest.approx(0.2), None)]
        assert says_over_runs(rows, ["a", "b"]) == (
            "Over 2 runs whatif is off by 20.0 % on average; an interval over runs takes 3 of them."
            " It rests on 2 runs with profiles of their own: a and b."
        )

    def test_without_scores_it_says_so(self):
        """
        On how many runs it rests is said all the same.
        """
        assert over_runs([ScoreBook(), scores(whatif=0.1)]) == ("", [])
        says = says_over_runs([], ["a", "b"])
        assert says.startswith("No model is scored in all runs. It rests on 2 runs ")


def test_a_call_makes_what_is_missing_and_scores_what_is_not(session, monkeypatch):
    """
    One run is there and scored, one was measured and not scored, one is missing.
    """
    sessions = sessions_of(session, 3)
    there = [make_run(one_session) for one_session in sessions[:2]]
    measured = []

    def measure(one_session, **_options):
        measured.append(one_session.experiment.seed)
        return make_run(one_session), 1

    books = {}
    monkeypatch.setattr(steps, "measure", measure)
    monkeypatch.setattr(Run, "is_scored", property(lambda run: run.path == there[0].path))
    monkeypatch.setattr(
        steps,
        "_concluded",
        lambda _session, run: (books.setdefault(run.id, run.path / "report.html"), None),
    )
    monkeypatch.setattr(Run, "read_scores", lambda _run: scores(whatif=0.25))
    answers = []
    monkeypatch.setattr(
        steps, "present", lambda answer, parts, **_: answers.append((answer, [*parts]))
    )

    failed = steps._run_several(session, 3, {"new": False, "reuse": False}, as_json=False)

    ((answer, parts),) = answers
    assert (failed, measured) == (1, [7])
    assert [*books] == [there[1].id, answer["runs"][2].name]
    assert (answer["rests_on"], answer["runs"][:2]) == (3, [run.path for run in there])
    (table,) = (part for part in parts if isinstance(part, Rows))
    assert [*table.rows] == [("whatif", *["25 %"] * 4, "25 % to 25 %")]
    assert answer["says"] in parts


@pytest.mark.parametrize("name", ["new", "reuse"])
def test_what_would_mix_runs_is_refused(session, name):
    """
    Trials that one run took over from another would count twice.
    """
    options = {"new": False, "reuse": False, name: True}
    with pytest.raises(click.UsageError, match=f"--{name}"):
        steps._run_several(session, 3, options, as_json=False)


def test_two_runs_are_shown_without_an_interval():
    """
    An empty column, not a made-up one.
    """
    _, rows = over_runs([scores(whatif=0.1), scores(whatif=0.3)])
    runs = [Run.__new__(Run), Run.__new__(Run)]
    for number, run in enumerate(runs):
        object.__setattr__(run, "path", f"results/{number}")

    (table, *_) = shown_over_runs(rows, runs, "says")
    assert [*table.rows] == [("whatif", "10 %", "30 %", "20 %", "")]
