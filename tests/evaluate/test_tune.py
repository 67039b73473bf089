"""
Proposals for a job that a run knows, and what choosing by a model is worth.
"""

import pytest

from harness.base.records.score import ScoreBook
from harness.core.evaluate.basis import basis_of_run
from harness.core.evaluate.judge import Judge
from harness.tuning.proposals import nearest_model, proposals
from harness.tuning.regret import AT_RANDOM, answer_of, mean_regret, regrets
from tests.evaluate.test_flow import evaluation, stored  # noqa: F401 - a fixture


@pytest.fixture
def basis(stored):  # noqa: F811
    """
    What the stored run knows of its workload.
    """
    return basis_of_run(evaluation(stored), "")


def test_the_best_proposal_comes_first_and_says_what_it_saves(basis):
    """
    By the judge; what it saves is against the base's own prediction.
    """
    made, refused = proposals(basis, ["hadoop", "rules", "search"], ["whatif-mr2"], "whatif-mr2")
    times_s = [each.prediction.job_s for each in made]

    assert times_s == sorted(times_s)
    assert refused == []
    assert {each.choice.optimizer for each in made} == {"hadoop", "rules", "search"}
    assert made[0].saved >= 0
    searched = next(each for each in made if each.choice.optimizer == "search")
    assert "mapreduce.task.io.sort.mb" in searched.cell.configuration


def test_an_optimizer_that_lacks_something_names_it_and_the_others_choose(basis):
    """
    The profile knows nothing of copying, which PTC needs.
    """
    made, refused = proposals(basis, ["mrtuner", "rules"], ["whatif"], "whatif")

    assert [each.choice.optimizer for each in made] == ["rules"]
    assert "copy_s_per_byte" in refused[0]


def test_the_judge_is_the_model_that_errs_least(basis):
    """
    Of those that read settings; where nothing was scored, What-If with the rules of Hadoop 3.
    """
    errors = {"whatif": 0.3, "prophet": 0.1, "mine": 0.01, "ernest": 0.02, "scaling": 0.03}
    judges = {model: Judge(model, error) for model, error in errors.items()}

    assert nearest_model(basis._replace(judges=judges)) == "prophet"
    assert nearest_model(basis._replace(judges={})) == "whatif-mr2"


def test_a_model_that_answers_less_is_compared_with_the_best_of_all(stored, monkeypatch):  # noqa: F811
    """
    Not with the best of what it answers.
    """
    scores = stored.read_scores()
    as_one = [each.model_copy(update={"input": "one"}) for each in scores.scores]
    of_jobs = [each for each in as_one if (each.quantity, each.speed) == ("job_s", scores.speed)]
    best = min(of_jobs, key=lambda each: each.measured_s)
    kept = [each for each in as_one if (each.model, each.cell) != ("whatif", best.cell)]
    fewer = scores.model_copy(update={"scores": tuple(kept)})
    monkeypatch.setattr(type(stored), "read_scores", lambda _: fewer)

    rows = {row["model"]: row for row in regrets(evaluation(stored))}

    assert rows["whatif"]["cells"] == rows["whatif"]["of"] - 1
    assert rows["whatif"]["best"] == rows["whatif-mr2"]["best"]
    assert rows["whatif"]["regret"] > 0


def test_noise_is_not_known_where_nothing_was_repeated(stored, monkeypatch):  # noqa: F811
    """
    It is not 0, and the sentence says so; of a part of the cells, which input it is.
    """
    scores = stored.read_scores()
    once = [each.model_copy(update={"floor": None, "input": "one 1"}) for each in scores.scores]
    repeated = [each.model_copy(update={"input": "two 2"}) for each in scores.scores]

    def answered(*rows):
        given = scores.model_copy(update={"scores": rows})
        monkeypatch.setattr(type(stored), "read_scores", lambda _: given)
        return answer_of([*regrets(evaluation(stored))], given)

    alone = answered(*once)
    both = answered(*once, *repeated)

    assert {row["noise"] for row in alone["regrets"]} == {None}
    assert "the noise of that is not known: nothing was repeated" in alone["says"]
    assert {row["input"] for row in both["regrets"] if row["noise"] is None} == {"one 1"}
    assert "the noise of one 1 is not known: it was not repeated" in both["says"]
    assert both["judge"] in both["says"]


@pytest.mark.parametrize(("regret", "may_be_none"), [(0.04, True), (0.06, False)])
def test_a_regret_within_the_noise_may_be_none(regret, may_be_none):
    """
    The sentence has the noise then, and not where the choice cost more than that.
    """
    chosen = {"model": "m", "input": "one 1", "regret": regret, "noise": 0.05}
    answer = answer_of([chosen, {**chosen, "model": AT_RANDOM, "regret": 0.5}], ScoreBook())

    assert "measured, a choice at random 50 %, on 1 input; " in answer["says"]
    assert ("; the noise of that is 5.0 %: it may be none; " in answer["says"]) == may_be_none


def test_regret_is_paid_by_the_clock(stored):  # noqa: F811
    """
    The chosen cell is the one predicted to be fastest, or any of those alike; its regret is against
    the fastest measured.  Who knows nothing chooses any, and is best after a few.
    """
    scores = stored.read_scores()
    rows = {(row["input"], row["model"]): row for row in regrets(evaluation(stored))}

    by_input = {}
    for score in scores.scores:
        if (score.quantity, score.speed) == ("job_s", scores.speed):
            by_input.setdefault((score.input, score.model), []).append(score)
    for key, several in by_input.items():
        shortest_s = min(each.predicted_s for each in several)
        chosen_s = [each.measured_s for each in several if each.predicted_s == shortest_s]
        best_s = min(each.measured_s for each in several)
        assert rows[key]["regret"] == pytest.approx(sum(chosen_s) / len(chosen_s) / best_s - 1)
        measured_s = [each.measured_s for each in several]
        near = sum(time_s <= 1.05 * best_s for time_s in measured_s)
        unknowing = rows[key[0], AT_RANDOM]
        mean_s = sum(measured_s) / len(measured_s)
        assert unknowing["regret"] == pytest.approx(mean_s / best_s - 1)
        assert unknowing["measured"] == pytest.approx((len(several) + 1) / (near + 1))
    assert all(value >= 0 for value in mean_regret([*rows.values()]).values())


def test_the_default_is_the_cell_whose_settings_are_nearest_to_hadoops(stored, monkeypatch):  # noqa: F811
    """
    The fewest that differ, by the least; of several alike their mean.
    """
    run = evaluation(stored)
    cells = [*run.cells.values()]
    buffers = dict(zip((cell.id for cell in cells), ("96", "16", "96", "300"), strict=False))
    cells = {
        cell.id: cell.model_copy(update={"configuration": cell.configuration
                                         | {"mapreduce.task.io.sort.mb": buffers[cell.id]}})
        for cell in cells if cell.id in buffers
    }  # fmt: skip
    scores = stored.read_scores()
    row = next(
        each for each in scores.scores if (each.quantity, each.speed) == ("job_s", scores.speed)
    )
    times_s = dict(zip(cells, (9.0, 6.0, 7.0, 5.0), strict=True))
    made = [row.model_copy(update={"cell": key, "predicted_s": time_s, "measured_s": time_s})
            for key, time_s in times_s.items()]  # fmt: skip
    given = scores.model_copy(update={"scores": tuple(made)})
    monkeypatch.setattr(type(stored), "read_scores", lambda _: given)
    same = next(iter(cells.values()))
    run.__dict__["cells"] = {
        key: same.model_copy(update={"configuration": cell.configuration})
        for key, cell in cells.items()
    }

    rows = {each["model"]: each for each in regrets(run)}

    assert rows[row.model]["from_default"] == pytest.approx(1 - 5 / ((9 + 7) / 2))


@pytest.mark.parametrize(
    ("predicted_s", "measured"),
    [
        ((1.0, 2.0, 3.0, 4.0), 4.0),
        ((4.0, 3.0, 2.0, 1.0), 1.0),
        ((1.0, 2.0, 3.0, 3.0), 3.5),
        ((1.0, 1.0, 1.0, 1.0), 2.5),
        ((1.0, 2.0, 3.0, None), 4.0),
        ((1.0, 2.0, None, None), 3.5),
    ],
)
def test_how_many_are_measured_until_one_is_near_the_best(
    stored,  # noqa: F811
    monkeypatch,
    predicted_s,
    measured,
):
    """
    In the order of what was predicted; those alike in any order, those without an answer behind.
    """
    scores = stored.read_scores()
    row = next(
        each for each in scores.scores if (each.quantity, each.speed) == ("job_s", scores.speed)
    )
    names = sorted(evaluation(stored).cells)[:4]
    times_s = dict(zip(names, (9.0, 8.0, 7.0, 5.0), strict=True))
    made = [
        row.model_copy(update={"model": model, "cell": cell, "predicted_s": seconds,
                               "measured_s": times_s[cell]})
        for model, several in (("one", predicted_s), ("all", (9.0, 8.0, 7.0, 5.0)))
        for cell, seconds in zip(names, several, strict=True) if seconds is not None
    ]  # fmt: skip
    given = scores.model_copy(update={"scores": tuple(made)})
    monkeypatch.setattr(type(stored), "read_scores", lambda _: given)

    rows = {each["model"]: each for each in regrets(evaluation(stored))}

    assert rows["one"]["measured"] == measured
    assert rows["all"]["measured"] == 1
