"""
Tests for `harness.tuning.ask`: cells that nobody measured.
"""

import pytest

from harness.base.errors import SpecError
from harness.base.records.prediction import Prediction
from harness.base.records.profile import Profile
from harness.base.records.trial import Cell, ClusterSpec, WorkloadSpec
from harness.base.units import MIB
from harness.clusters.workloads import WORKLOADS
from harness.core.evaluate.basis import Basis, basis_of_run
from harness.core.evaluate.resolved import resolve_cell
from harness.core.experiment.grid import axis_values
from harness.core.run.preflight import known_names
from harness.models import MODELS
from harness.tuning.ask import (
    MANY,
    Question,
    answers,
    asked_cells,
    basis_of_profile,
    phases_of,
    questions,
)
from tests.evaluate.test_flow import evaluation, stored  # noqa: F401 - a fixture
from tests.evaluate.test_predict import BODIES, MeanBody, Says, profile_of
from tests.run.fakes import Rounds, terasort

GIB = 1024 * MIB
SORT_MB, REDUCES = "mapreduce.task.io.sort.mb", "mapreduce.job.reduces"
BASE = resolve_cell(terasort(**{SORT_MB: "1", REDUCES: "2"}).cell)


def changed(*settings):
    """
    By how much the asked cells differ from the base.
    """
    before, cells = axis_values(BASE.cell), asked_cells(BASE, settings, known_names())
    return [
        {axis: value for axis, value in axis_values(cell.cell).items() if before.get(axis) != value}
        for cell in cells
    ]


class TestAskedCells:
    def test_of_a_job_that_had_run_before_more_input_has_more_maps(self):
        """
        Unless their number is a setting, too; all else stays as it was.
        """
        spec = WorkloadSpec(name="sort-of-mine", input_bytes=GIB, parameters={"maps": 8})
        base = resolve_cell(Cell(cluster=ClusterSpec(provider="history"), workload=spec))
        settings = (["input=4 GiB"], ["input=4 GiB", "maps=16"], [f"{REDUCES}=4"])
        cells = [asked_cells(base, each, known_names())[0] for each in settings]

        assert [cell.spec.parameters["maps"] for cell in cells] == [32, 16, 8]
        assert {cell.cell.cluster.provider for cell in cells} == {"history"}

    @pytest.mark.parametrize(
        ("setting", "change"),
        [
            ("input=10 GiB", {"input": 10 * GIB}),
            ("input=tiny", {"input": 3_200_000}),
            (f"{SORT_MB}=256", {SORT_MB: "256"}),
            (f"configuration.{SORT_MB}=256", {SORT_MB: "256"}),
            ("dfs.blocksize=64 MiB", {"dfs.blocksize": str(64 * MIB)}),
            ("workers=4", {"workers": 4}),
            ("map_slots=3", {"map_slots": 3}),
            ("cluster.node.disk=20 MiB/s", {"disk": 20 * MIB}),
            ("workloads.terasort.input=1 GiB", {"input": GIB}),
        ],
    )
    def test_a_key_is_an_axis_or_that_of_a_file(self, setting, change):
        """
        Nothing else of the base changes.
        """
        assert changed(setting) == [change]

    def test_lists_make_a_grid(self):
        """
        Every value with every other.
        """
        assert len(changed(f"{SORT_MB}=[16, 32]", "workers=[3, 4, 5]")) == 6

    @pytest.mark.parametrize(
        ("setting", "complaint"),
        [
            ("inptu=1 GiB", "did you mean input"),
            ("input=10 GB/s", "is not a size"),
            (f"{SORT_MB}=256 MiB", "write 256"),
            ("mapreduce.task.io.sort.bm=16", f"did you mean {SORT_MB}"),
            ("mapred.reduce.tasks=3", REDUCES),
            ("cluster.provider=docker", "there is no setting"),
            ("repeat=3", "there is no setting"),
            ("disk=20", "is not a rate"),
        ],
    )
    def test_a_slip_is_refused_as_in_a_file(self, setting, complaint):
        """
        Nothing is ignored silently.
        """
        with pytest.raises(SpecError, match=complaint):
            changed(setting)


def rows_of(run, *settings, grid=(), model="whatif"):
    """
    Rows of a model's answers about TeraSort.
    """
    basis = basis_of_run(evaluation(run), "terasort")
    wanted = questions(basis.resolved, settings, grid, known_names())
    return list(answers(model, wanted, basis))


class TestAnswers:
    def test_each_setting_is_compared_with_the_one_before(self, stored):  # noqa: F811
        """
        The base is as the run predicted it, and its error is the run's.
        """
        base, larger, merged = rows_of(stored, "input=12 MB", "mapreduce.task.io.sort.factor=100")
        sealed = {each.cell: each.job_s for each in stored.read_predictions()["whatif"]}

        assert base["job_s"] in sealed.values()
        assert base["change"] is None
        assert larger["job_s"] == pytest.approx(base["job_s"] * (1 + larger["change"]))
        assert merged["job_s"] == pytest.approx(base["job_s"] * (1 + merged["from_base"]))
        assert 0 < base["error"] == merged["error"]
        assert (base["range"], larger["range"]) == ("outside", "outside")
        assert "input bytes 11.4 MiB (profiled: 5.72 MiB)" in larger["outside"]

    def test_what_was_profiled_is_inside(self, stored):  # noqa: F811
        """
        Of the run's own cells those between two profiled ones; not one with other slots.
        """
        _, between, slots = rows_of(stored, "mapreduce.task.io.sort.factor=5", "map_slots=2")

        assert (between["range"], between["outside"]) == ("inside", "")
        assert (slots["range"], slots["outside"]) == ("outside", "map_slots 4 (profiled: 2)")

    def test_what_no_model_reads_is_said(self, stored):  # noqa: F811
        """
        A faster disk changes nothing in an answer, and that is no finding.
        """
        _, limited = rows_of(stored, "disk=20 MiB/s")

        assert (limited["is_read"], limited["change"]) == (False, 0.0)

    def test_very_many_are_answered_as_one_by_one(self, stored):  # noqa: F811
        """
        The grid's form gives the same times and phases.
        """
        reduces = ",".join(map(str, range(1, MANY + 1)))
        many = rows_of(stored, grid=[f"{REDUCES}={reduces}"])
        few = rows_of(stored, grid=[f"{REDUCES}=1,7,{MANY}"])
        by_name = {row["cell"]: row for row in many}

        assert len(many) == MANY + 1
        for row in few:
            for phase, times in row["phases"].items():
                assert by_name[row["cell"]]["phases"][phase] == pytest.approx(times)
            assert by_name[row["cell"]]["job_s"] == pytest.approx(row["job_s"], rel=1e-12)

    def test_what_hadoop_would_not_run_has_no_answer(self, stored):  # noqa: F811
        """
        As a setting it is refused; as a point of a grid it is not applicable.
        """
        with pytest.raises(SpecError, match="does not fit"):
            rows_of(stored, f"{SORT_MB}=2000")
        rows = rows_of(stored, grid=[f"{SORT_MB}=2,2000"])

        assert [row["job_s"] is None for row in rows] == [False, False, True]
        assert "does not fit" in rows[-1]["not_applicable"]

    @pytest.mark.parametrize("workload", ["", "sort"])
    def test_a_workload_is_named_where_there_are_several(self, stored, workload):  # noqa: F811
        """
        Wordcount has no profile here, so one is left; another name is refused.
        """
        run = evaluation(stored)
        if not workload:
            assert basis_of_run(run, workload).profile.workload == "terasort"
            return
        with pytest.raises(SpecError, match="no profile is of workload 'sort'"):
            basis_of_run(run, workload)

    def test_a_setting_has_one_value(self, stored):  # noqa: F811
        """
        Several are a grid.
        """
        with pytest.raises(SpecError, match="a setting has one value"):
            rows_of(stored, f"{SORT_MB}=[2, 4]")


class TestProfile:
    def test_has_the_defaults_and_an_input(self, monkeypatch):
        """
        A profile knows no cell: the input is asked for, the rest is said.
        """
        monkeypatch.setitem(MODELS, "whatif", Says())
        settings, profile = [f"{REDUCES}=3", "input=1 GiB"], Profile(workload="terasort")
        basis = basis_of_profile(profile, settings, known_names())
        requests = questions(basis.resolved, settings, (), known_names())
        rows = list(answers("whatif", requests, basis))

        assert settings == [f"{REDUCES}=3"]
        assert "workers 3, map_slots 1" in basis.note
        assert [row["settings"]["input"] for row in rows] == [GIB, GIB]
        with pytest.raises(SpecError, match="no base cell"):
            basis_of_profile(profile, [], known_names())

    def test_phases_are_of_all_waves(self):
        """
        Three waves of maps, one of reduces, two jobs; a model without waves has the frame alone.
        """
        phases = {"spill_s": 2.0, "shuffle_s": 5.0}
        answer = Prediction(
            model="m", phases=phases, map_waves=3, reduce_waves=1, jobs=2, frame_s=4.0
        )

        assert {name: times["job_s"] for name, times in phases_of(answer).items()} == {
            "spill_s": 12.0,
            "shuffle_s": 10.0,
            "frame_s": 8.0,
        }
        assert phases_of(Prediction(model="m", phases={"fixed_s": 1.0})) == {}


def test_a_basis_without_scores_has_no_error():
    """
    Nothing is said of an error that nobody measured.
    """
    judge = Basis(BASE, "", Profile(workload="terasort")).judge("whatif")

    assert judge.error is None
    assert judge.clause == "how far off whatif is here is not known: it was not scored here"
    assert not judge.is_within(0.0)


def test_refits_give_an_interval(monkeypatch):
    """
    As a run's predictions have it; none where nothing is known of the profiling cells.
    """
    monkeypatch.setitem(WORKLOADS, "rounds", Rounds(1))
    monkeypatch.setitem(MODELS, "whatif", MeanBody())
    cell = resolve_cell(terasort(name="rounds").cell)
    profile = profile_of(BODIES, without=BODIES)
    request = [Question("base", cell, "base")]
    (known,) = answers("whatif", request, Basis(cell, "", profile, dict.fromkeys(BODIES, cell)))
    (alone,) = answers("whatif", request, Basis(cell, "", profile))

    assert known["low_80_s"] < known["job_s"] == 19.0 < known["high_80_s"]
    assert (alone["job_s"], alone["low_80_s"]) == (19.0, None)
