"""
What decides how many tasks run at once, and the job without a limit of its own.
"""

import pytest

from harness.core.evaluate.basis import basis_of_run
from harness.core.evaluate.resolved import resolve_cell
from harness.core.run.preflight import known_names
from harness.tuning.ask import answer_of, answers, asked_cells, questions
from harness.tuning.limits import Decision, decisions, lifted
from harness.tuning.proposals import limits_of
from tests.evaluate.test_flow import evaluation, stored  # noqa: F401 - a fixture
from tests.run.fakes import terasort

MAP_LIMIT = "mapreduce.job.running.map.limit"
REDUCE_LIMIT = "mapreduce.job.running.reduce.limit"


@pytest.mark.parametrize(
    ("decision", "decider", "at_once"),
    [
        (Decision("map", limit=2, tasks=8, room=10, slots=10), "limit", 2),
        (Decision("map", limit=2, tasks=2, room=10, slots=10), "tasks", 2),
        (Decision("map", limit=0, tasks=8, room=3, slots=3), "slots", 3),
        (Decision("reduce", limit=0, tasks=8, room=3, slots=6), "memory", 3),
        (Decision("reduce", limit=4, tasks=8, room=3, slots=6), "memory", 3),
    ],
)
def test_the_least_decides(decision, decider, at_once):
    """
    A limit that allows as many as there are tasks or slots holds nothing.
    """
    assert (decision.decider, decision.at_once) == (decider, at_once)
    assert decision.document()["decides"] == decider
    assert (decision.document()["property"] is not None) == (decider == "limit")


def test_each_decision_is_a_sentence():
    """
    With the numbers that it follows from.
    """
    texts = [
        Decision("map", 0, 8, 3, 3).text,
        Decision("map", 0, 1, 3, 3).text,
        Decision("reduce", 0, 8, 3, 6).text,
    ]
    assert texts == [
        "the slots decide: 8 maps on 3 slots, 3 waves",
        "the number of maps decides: 1 map on 3 slots",
        "the nodes' memory decides: it has room for 3 of 6 slots, for 8 reduces",
    ]


def test_a_job_keeps_its_limit_whatever_the_cluster_has():
    """
    Ten workers, and two maps at once; without it as many as there are slots.
    """
    properties = {MAP_LIMIT: "2", "mapreduce.job.reduces": "1"}
    base = resolve_cell(terasort(**properties).cell)
    (cell,) = asked_cells(base, ["input=4 GiB", "workers=10"], known_names())
    maps, reduces = decisions(cell)

    assert (maps.decider, maps.limit, maps.at_once) == ("limit", 2, 2)
    assert maps.room == lifted(cell).model_inputs[1].map_slots > 2
    assert reduces.decider == "tasks"
    assert [decision.decider for decision in decisions(lifted(cell))] == ["slots", "tasks"]
    (map_only,) = asked_cells(base, ["mapreduce.job.reduces=0"], known_names())
    assert [decision.kind for decision in decisions(map_only)] == ["map"]


def asked(run, *settings, limit="1"):
    """
    Rows of What-If about TeraSort with a limit of running tasks, and what they come to.
    """
    basis = basis_of_run(evaluation(run), "terasort")
    limits = {MAP_LIMIT: limit, REDUCE_LIMIT: limit}
    limited = basis.resolved.configured(basis.base.configuration | limits)
    basis = basis._replace(resolved=limited)
    rows = [*answers("whatif", questions(basis.resolved, settings, (), known_names()), basis)]
    return rows, answer_of(rows, settings, basis), basis


def test_an_answer_names_the_limit_and_gives_the_number_without(stored):  # noqa: F811
    """
    More workers change nothing under it; beside that stands what they would.
    """
    rows, answer, basis = asked(stored, "input=600 MB", "workers=10")
    _, larger, row = rows

    assert row["change"] == pytest.approx(0.0)
    assert f"{MAP_LIMIT} = 1 decides: 1 map at once" in row["job_limit"]
    assert row["without_limits_s"] < larger["without_limits_s"] < larger["job_s"]
    assert row["without_limits"] == pytest.approx(row["without_limits_s"] / larger["job_s"] - 1)
    assert f"{MAP_LIMIT} = 1 decides" in answer.says
    assert "without them " in answer.says
    _, is_what, its_judge = answer.says.partition("without them ")
    assert is_what
    assert "; whatif was" in its_judge
    assert f"whatif was {100 * basis.judge('whatif').error:.0f} % off on job times" in answer.says


def test_where_no_limit_decides_none_is_named(stored):  # noqa: F811
    """
    What decides is said all the same.
    """
    rows, answer, basis = asked(stored, "input=600 MB", limit="0")

    assert {row["job_limit"] for row in rows} == {""}
    assert {row["without_limits_s"] for row in rows} == {None}
    assert rows[-1]["decides"].startswith("the slots decide: ")
    assert MAP_LIMIT not in answer.says
    assert limits_of(basis, "whatif")["without_limits_s"] is None


def test_a_tuned_job_says_what_its_limit_costs(stored):  # noqa: F811
    """
    By the judge, beside the base.
    """
    _, _, basis = asked(stored, limit="1")
    limits = limits_of(basis, "whatif")

    assert limits["decides"][0]["property"] == MAP_LIMIT
    assert limits["without_limits"] < 0
