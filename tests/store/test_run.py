"""
Tests for what a run holds beside its trials: plan, profiles, sealed predictions, scores, reports.
"""

import json

import pytest

from harness.base.errors import DataError
from harness.base.records.manifest import NodeGpus
from harness.base.records.score import (
    Comparison,
    Decomposition,
    MetricValue,
    Ranking,
    Score,
    ScoreBook,
    Summary,
)
from harness.base.records.trial import Limit, LimitedCluster


@pytest.fixture
def predicted(run, make):
    """
    A run with plan, profile and two models' predictions, sealed.
    """
    run.write_plan(make.trials())
    run.write_profile(make.profile())
    for model in ("whatif", "whatif-mr2"):
        run.write_predictions(model, [make.prediction(model, c) for c in ("c", "d")])
    run.seal.add()
    return run


def scores_():
    """
    A score book in which every kind of row occurs, with and without what is optional.
    """
    score = Score(
        model="m", cell="c", level="job", quantity="job_s", speed="raw", predicted_s=1.5,
        measured_s=2.0, trials=2, floor=None, signed_error=-0.25, relative_error=0.25,
    )  # fmt: skip
    summary = Summary(
        model="m", workload="*", level="phase", quantity="sort_s", speed="reference", cells=3,
        metrics={
            "mape": MetricValue(value=0.1, low=0.05, high=0.2),
            "worst_error": MetricValue(value=0.3),
        },
    )  # fmt: skip
    compared = Comparison(
        better="a", worse="b", quantity="job_s", speed="raw", cells=3, difference=0.1,
        low=-0.1, high=0.2, verdict="undecided", reason="2 more repeats would tell", chance=0.2,
    )  # fmt: skip
    return ScoreBook(
        scores=(score, score.model_copy(update={"floor": 0.5, "range": "outside"})),
        summaries=(summary, summary.model_copy(update={"metrics": {}})),
        comparisons=(compared, compared.model_copy(update={"chance": None})),
        rankings=(
            Ranking(
                quantity="job_s",
                speed="raw",
                cells=3,
                models=("a", "b"),
                errors=(0.1, 0.2),
                nearest=("a",),
                left_out={"c": "it has no answer"},
            ),
        ),
    )


class TestRecords:
    def test_are_read_as_they_were_written(self, predicted, make):
        """
        Plan, profiles and predictions survive, in order.
        """
        assert predicted.read_plan() == make.trials()
        assert predicted.read_profiles() == {"wordcount": make.profile()}
        assert list(predicted.read_predictions()) == ["whatif", "whatif-mr2"]
        assert predicted.read_predictions()["whatif"] == (
            make.prediction(cell="c"), make.prediction(cell="d"),
        )  # fmt: skip

    def test_numbers_keep_every_digit(self, run):
        """
        A time is the same after the tables.
        """
        one = scores_().scores[0]
        times = (0.1, 1 / 3, 5e-324, 9.9e99, -0.0, 2**53 + 1)
        scores = tuple(one.model_copy(update={"predicted_s": float(t)}) for t in times)

        run.write_scores(ScoreBook(scores=scores))

        assert run.read_scores().scores == scores

    @pytest.mark.parametrize("rows", [scores_(), ScoreBook()], ids=["full", "empty"])
    def test_scores_are_read_as_they_were_written(self, run, rows):
        """
        Every row and every missing value survives; later scores take the place of earlier ones.
        """
        run.write_scores(ScoreBook(comparisons=scores_().comparisons * 2))

        run.write_scores(rows)

        assert run.read_scores() == rows

    def test_lists_within_a_record_come_back(self, run):
        """
        However many parts an error has.
        """
        parts = dict.fromkeys("abc", 0.5)
        reported = Decomposition(
            model="whatif", cell="c", speed="raw", measured_s=1.0, predicted_s=2.5, parts=parts,
            cancelled=0.0,
        )  # fmt: skip

        run.write_scores(ScoreBook(decompositions=(reported, reported)))

        assert run.read_scores().decompositions == (reported, reported)

    def test_missing_results_say_which_command_makes_them(self, run):
        """
        What was not made yet is no data, with the command in the fix.
        """
        with pytest.raises(DataError, match="missing") as caught:
            run.read_scores()

        assert "harness score" in caught.value.fix

    def test_a_bad_line_is_named_with_its_number(self, predicted):
        """
        The error in a file of lines says which.
        """
        path = predicted.path / "predictions/whatif.jsonl"
        path.write_text(path.read_text().splitlines()[0] + "\n{}\n")

        with pytest.raises(DataError) as caught:
            predicted.read_predictions()

        assert caught.value.where == f"{path}:2"

    def test_reports_lie_beside_the_manifest(self, run):
        """
        As they are.
        """
        path = run.write_report("report.html", "<p>é")

        assert (path, path.read_text()) == (run.path / "report.html", "<p>é")

    @pytest.mark.parametrize("name", ["../x", "a/b", ".", ""])
    def test_names_of_workloads_and_models_stay_inside(self, run, make, name):
        """
        A name that is no plain part of a path is refused.
        """
        with pytest.raises(DataError, match="cannot name a workload"):
            run.write_profile(make.profile(name))
        with pytest.raises(DataError, match="cannot name a model"):
            run.write_predictions(name, [])

    def test_entries_of_the_manifest_are_replaced_alone(self, run):
        """
        Each entry that is not named stays; one that does not read like ours is refused.
        """
        opened = run.read_manifest()
        run.update_manifest(seed=7, commit="a")

        changed = run.update_manifest(commit="b")

        assert (
            changed == run.read_manifest() == opened.model_copy(update={"seed": 7, "commit": "b"})
        )
        with pytest.raises(ValueError, match="seed"):
            run.update_manifest(seed="many")

    def test_the_manifest_keeps_records(self, run):
        """
        What nodes are comes back as the records that were given; nothing empty is written.
        """
        limit = Limit(requested=1.0, setting=1.1, measured=0.9)
        limits = LimitedCluster(cluster="c", measured_s=1.5, nodes={"worker1": {"cores": limit}})
        gpus = NodeGpus(devices=({"name": "A", "memory_bytes": 1},), library="")

        run.update_manifest(limits=(limits,), gpus_found={"worker1": gpus}, limitations=())

        assert run.read_manifest().limits == (limits,)
        assert run.read_manifest().gpus_found == {"worker1": gpus}
        written = json.loads((run.path / "manifest.json").read_text())
        assert "limitations" not in written
        assert written["gpus_found"]["worker1"] == {
            "devices": [{"name": "A", "memory_bytes": 1}],
            "library": "",
        }


class TestSeal:
    def test_holds_for_untouched_files(self, predicted):
        """
        Sealed and unchanged, nothing is said; sealed again, the seal stays as it is.
        """
        seal = (predicted.path / "predictions/sealed.json").read_bytes()

        predicted.seal.check()
        predicted.seal.add()

        assert (predicted.path / "predictions/sealed.json").read_bytes() == seal

    @pytest.mark.parametrize(
        "name",
        ["predictions/whatif.jsonl", "profiles/wordcount.json", "plan.jsonl"],
    )
    def test_finds_what_changed(self, predicted, name):
        """
        One changed digit is found, and the error names the file.
        """
        path = predicted.path / name
        path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))

        with pytest.raises(DataError, match=f"the seal does not hold: {name} was changed"):
            predicted.seal.check()

    def test_finds_what_was_removed(self, predicted):
        """
        A sealed prediction cannot be dropped.
        """
        (predicted.path / "predictions/whatif.jsonl").unlink()

        with pytest.raises(DataError, match=r"predictions/whatif\.jsonl is missing"):
            predicted.seal.check()

    def test_finds_what_was_added(self, predicted, make):
        """
        A prediction that was made after the seal is not under it.
        """
        predicted.write_predictions("late", [make.prediction("late")])

        with pytest.raises(DataError, match=r"predictions/late\.jsonl was added"):
            predicted.seal.check()

    def test_is_needed(self, predicted):
        """
        Without a seal nothing can be scored.
        """
        (predicted.path / "predictions" / "sealed.json").unlink()

        with pytest.raises(DataError, match=r"sealed\.json is missing"):
            predicted.seal.check()

    def test_of_nothing_says_that_nothing_was_predicted(self, run, make):
        """
        Whoever asks for a score too early has broken nothing.
        """
        run.write_plan(make.trials())

        with pytest.raises(DataError, match=r"there are no predictions(?s:.*)harness predict RUN"):
            run.seal.check()

    def test_names_in_it_stay_inside(self, predicted):
        """
        A seal from elsewhere cannot make the harness look at files outside the run.
        """
        path = predicted.path / "predictions/sealed.json"
        seal = json.loads(path.read_text())
        seal["sha256"]["../../outside"] = "00"
        path.write_text(json.dumps(seal))

        with pytest.raises(DataError, match="outside"):
            predicted.seal.check()


def test_a_damaged_plan_is_not_cured_by_planning(predicted):
    """
    `harness plan` writes nothing, so the message must not send anybody there.
    """
    (predicted.path / "plan.jsonl").write_text('{"schema_version": 1}\n')

    with pytest.raises(DataError, match="move this run's folder away"):
        predicted.read_plan()
