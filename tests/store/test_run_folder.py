"""
Tests for `harness.core.store.run.Run`: what one run takes from another, and what it says is wrong.
"""

import gzip
import hashlib
import io
import json

import pytest

from harness.base.errors import DataError, EvidenceError, MachineError
from harness.base.records.prediction import Prediction
from harness.base.records.trace import JobTrace, TaskAttempt
from harness.base.records.trial import OLDEST_READ, SCHEMA_VERSION
from harness.core.experiment.model import WorkloadAxes
from harness.core.store import Store, new_analysis
from harness.core.store import run as run_module
from harness.core.store import trials as trials_module

RERUN = (
    "restore it from a copy, or move the trial's folder out of the run:"
    " harness run FILE measures it again"
)
RESTORE = "restore it from a copy, or measure again: harness all FILE --new"


def parts_of(error):
    """
    The three parts of an error.
    """
    return (error.what, error.where, error.fix)


@pytest.fixture
def trial(make):
    """
    The first trial of the small experiment.
    """
    return make.trials()[0]


class TestTakeIn:
    @pytest.fixture
    def other(self, tmp_path, make, trial):
        """
        A new run that has taken in the trial of another, to be used for something else.
        """
        source = Store(tmp_path / "first").open_run(make.experiment(), "")
        make.commit(source, trial)
        run = Store(tmp_path / "second").open_run(make.experiment(), "")
        run.take_in(source, source.trials()[trial.id], trial.model_copy(update={"use": "profile"}))
        return run

    def test_the_trial_has_its_new_use(self, other, trial, make):
        """
        All else of its record is as it was measured.
        """
        used = trial.model_copy(update={"use": "profile"})

        assert other.trials() == {trial.id: make.record(used)}
        assert list((other.path / "incoming").iterdir()) == []

    def test_its_logs_are_copies(self, other, trial):
        """
        Byte for byte, in the same folders.
        """
        assert other.raw(trial.id).names() == ("containers/c_1/syslog",)
        assert other.raw(trial.id).open("containers/c_1/syslog").read() == b"a line\n" * 100

    def test_it_has_evidence_of_its_own(self, other, trial):
        """
        A changed log is found as in a trial that was measured here.
        """
        assert other.check_evidence()
        (other.trial_dir(trial.id) / "raw/containers/c_1/syslog.gz").write_bytes(b"")
        with pytest.raises(EvidenceError, match=r"syslog\.gz was changed"):
            other.check_evidence()

    def test_several_lie_side_by_side(self, other, make, tmp_path):
        """
        The folder of trials may be there or not.
        """
        second = make.trials()[1]
        source = Store(tmp_path / "third").open_run(make.experiment(), "")
        make.commit(source, second)

        other.take_in(source, source.trials()[second.id], second)

        assert sorted(other.trials()) == sorted([make.trials()[0].id, second.id])


class TestPlan:
    def test_trials_that_were_added_follow_by_look_and_start(self, run, make):
        """
        Of two looks at the results the first comes first, and what began earlier in each.
        """
        planned, late, first, second = make.trials()[:4]
        run.write_plan([planned])
        for trial, look, started_s in ((late, 2, 1.0), (second, 1, 9.0), (first, 1, 5.0)):
            added = trial.model_copy(update={"look": look})
            folder = run.start_trial(added)
            folder.commit(make.record(added).model_copy(update={"started_s": started_s}))

        assert [trial.id for trial in run.read_plan()] == [
            planned.id,
            first.id,
            second.id,
            late.id,
        ]

    def test_what_no_plan_has_and_no_look_added_is_left_out(self, run, make):
        """
        A trial of an earlier plan is not one of this plan.
        """
        planned, measured = make.trials()[:2]
        run.write_plan([planned])
        make.commit(run, measured)

        assert run.read_plan() == (planned,)

    def test_a_trial_is_used_as_it_is_planned(self, run, make, trial):
        """
        The plan may have changed since; without a plan the record says it.
        """
        make.commit(run, trial)
        assert run.trials()[trial.id].trial == trial

        planned = trial.model_copy(update={"use": "profile"})
        run.write_plan([planned])
        assert run.trials()[trial.id].trial == planned


class TestFits:
    @pytest.mark.parametrize(
        "change",
        [
            {"name": "other"},
            {"question": "another"},
            {"predict": {"models": ("ptc",)}},
        ],
    )
    def test_what_is_asked_may_change(self, run, make, change):
        """
        Name, question and models are no part of what is measured.
        """
        document = make.experiment().model_dump(mode="json")
        predict = document["predict"] | change.pop("predict", {})
        experiment = type(make.experiment()).model_validate(
            document | {"predict": predict} | change
        )

        assert experiment != make.experiment()
        assert run.fits(experiment)

    def test_what_is_measured_may_not(self, run, make):
        """
        Neither repeats nor workloads, nor the order of trials and predictions.
        """
        small = (WorkloadAxes(name="wordcount", input_bytes=(2**20,)),)

        document = make.experiment().model_dump(mode="json")
        mixed = document | {"predict": document["predict"] | {"order": "mixed"}}

        assert document["predict"]["order"] == "blind"
        assert not run.fits(type(make.experiment()).model_validate(mixed))
        assert not run.fits(make.experiment(repeat=9))
        assert not run.fits(make.experiment(workloads=small))

    def test_a_run_that_cannot_be_read_fits_nothing(self, run, make):
        """
        And hinders no other.
        """
        (run.path / "manifest.json").write_text("{")

        assert not run.fits(make.experiment())


class TestManifest:
    def test_a_change_is_written_in_the_version_of_today(self, run):
        """
        Whatever wrote the manifest before.
        """
        path = run.path / "manifest.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "schema_version": OLDEST_READ}))

        run.update_manifest(seed=1)

        assert json.loads(path.read_text())["schema_version"] == SCHEMA_VERSION

    def test_a_damaged_one_says_how_to_go_on(self, run):
        """
        With a new run.
        """
        path = run.path / "manifest.json"
        path.unlink()

        with pytest.raises(DataError) as caught:
            run.experiment()
        assert parts_of(caught.value) == (
            "manifest.json is missing",
            str(path),
            "move this run's folder away: 'harness all FILE' then starts a new run",
        )


class TestSpace:
    @pytest.mark.parametrize(("free", "is_enough"), [(2**24, True), (2**24 - 1, False)])
    def test_sixteen_mebibytes_are_enough(self, run, monkeypatch, free, is_enough):
        """
        And no byte less; the error has both numbers.
        """
        monkeypatch.setattr(run_module, "free_bytes", lambda path: free * (path == run.path))

        if is_enough:
            run.require_space()
            return
        with pytest.raises(MachineError) as caught:
            run.require_space()
        assert caught.value.what.endswith("are free for results, and a trial needs 16 MiB")
        assert caught.value.where == str(run.path)
        assert caught.value.fix.startswith("free some space there")


class TestTrialFolder:
    def test_an_unknown_trial_says_how_to_measure_it(self, run):
        """
        A name that cannot be of a trial is refused as such.
        """
        with pytest.raises(DataError) as caught:
            run.trial_dir("none")
        assert parts_of(caught.value) == (
            "no trial none in this run",
            str(run.path / "trials"),
            "measure it: harness run FILE",
        )
        with pytest.raises(DataError, match=r"^'\.\.' cannot name a trial in the results"):
            run.trial_dir("..")

    def test_a_record_of_another_trial_is_refused(self, run, make):
        """
        Whoever copied a folder has not measured a trial.
        """
        first, second = make.trials()[:2]
        path = make.commit(run, first)
        path.rename(path.with_name(second.id))

        with pytest.raises(DataError) as caught:
            run.trials()
        assert parts_of(caught.value) == (
            f"trial.json is the record of trial '{first.id}'",
            str(path.with_name(second.id) / "trial.json"),
            RERUN,
        )

    def test_a_done_trial_is_not_replaced(self, run, make, trial):
        """
        The error names its folder; a new run is the way.
        """
        path = make.commit(run, trial)

        with pytest.raises(DataError) as caught:
            make.commit(run, trial)
        assert parts_of(caught.value) == (
            f"trial {trial.id} is done already",
            str(path),
            "a done trial is never measured again in the same run: open a new run",
        )

    def test_attempts_are_counted_from_one(self, run, make, trial):
        """
        Failed ones that gave way, and each kind of those that are discarded.
        """
        for _ in range(3):
            make.commit(run, trial, state="failed", reason="r")
        for kind in ("warmup", "warmup", "disturbed"):
            run.start_trial(trial).discard(kind, make.record(trial))

        found = {path.relative_to(run.path).as_posix() for path in run.path.glob("*/*/trial.json")}
        assert found == {
            f"{place}/trial.json"
            for place in (
                f"trials/{trial.id}",
                f"retried/{trial.id}-1",
                f"retried/{trial.id}-2",
                f"warmup/{trial.id}-1",
                f"warmup/{trial.id}-2",
                f"disturbed/{trial.id}-1",
            )
        }
        assert len(run.attempts()) == 6


class TestLogs:
    @pytest.fixture
    def logs(self, run, make, trial):
        """
        The logs of a trial with two of them.
        """
        folder = run.start_trial(trial)
        (folder.raw / "b.log").write_text("one\ntwo\nthree")
        (folder.raw / "a.log").write_text("x" * 50 + "\ny\n")
        folder.commit(make.record(trial))
        return run.raw(trial.id)

    def test_names_are_sorted_and_files_that_are_no_logs_left_out(self, run, logs, trial):
        """
        A log is what is packed.
        """
        (run.trial_dir(trial.id) / "raw/note").write_text("")

        assert logs.names() == ("a.log", "b.log")
        assert run.raw(trial.id).names() == ("a.log", "b.log")

    def test_are_packed_without_name_and_time(self, run, logs, trial):
        """
        Equal logs give equal bytes.
        """
        data = (run.trial_dir(trial.id) / "raw/b.log.gz").read_bytes()

        assert len(logs.names()) == 2
        assert data[3] == 0  # flags: no name, no comment
        assert data[4:8] == bytes(4)  # the time

    def test_are_read_as_far_as_is_asked(self, logs):
        """
        Line by line, or a number of bytes of one.
        """
        with logs.open("b.log") as log:
            pieces = [log.readline(2), log.readline(), log.readline(-1), log.readline(None)]
        assert pieces == [b"on", b"e\n", b"two\n", b"three"]

    def test_a_line_without_end_is_refused(self, logs, run, trial, monkeypatch):
        """
        A limit of the reader's own is as good as that of a log.
        """
        monkeypatch.setattr(trials_module, "_LONGEST_LINE", 50)
        with logs.open("a.log") as log, pytest.raises(DataError) as caught:
            log.readline()

        path = run.trial_dir(trial.id) / "raw/a.log.gz"
        what = "a line of more than 50 bytes is not a line of a log"
        assert parts_of(caught.value) == (what, str(path), RERUN)
        with logs.open("a.log") as log:
            assert log.readline(50) == b"x" * 50
        monkeypatch.setattr(trials_module, "_LONGEST_LINE", 51)
        with logs.open("a.log") as log:
            assert log.readline() == b"x" * 50 + b"\n"

    def test_a_log_of_the_most_bytes_is_read(self, logs, run, trial, monkeypatch):
        """
        One byte more is refused, with the path.
        """
        monkeypatch.setattr(trials_module, "_MOST_LOG_BYTES", 13)
        assert logs.open("b.log").read() == b"one\ntwo\nthree"

        monkeypatch.setattr(trials_module, "_MOST_LOG_BYTES", 12)
        with logs.open("b.log") as log, pytest.raises(DataError) as caught:
            log.read()
        path = run.trial_dir(trial.id) / "raw/b.log.gz"
        what = "the log unpacks to more than 12 bytes"
        assert parts_of(caught.value) == (what, str(path), RERUN)

    def test_a_damaged_log_is_named(self, logs, run, trial):
        """
        With what is wrong in it.
        """
        path = run.trial_dir(trial.id) / "raw/b.log.gz"
        path.write_bytes(path.read_bytes()[:-6])

        with logs.open("b.log") as log, pytest.raises(DataError) as caught:
            log.read()
        assert caught.value.what.startswith("the compressed log is damaged: ")
        assert (caught.value.where, caught.value.fix) == (str(path), RERUN)

    def test_another_name_is_refused(self, logs, run, trial):
        """
        With where the names are.
        """
        with pytest.raises(DataError) as caught:
            logs.open("c.log")
        assert parts_of(caught.value) == (
            "no log 'c.log' in this trial",
            str(run.trial_dir(trial.id) / "raw"),
            "list the folder; names are relative to it, without .gz",
        )

    def test_can_be_read_like_any_file(self, logs):
        """
        By a reader of text that knows nothing of packing.
        """
        with io.TextIOWrapper(logs.open("b.log")) as text:
            assert text.read().split() == ["one", "two", "three"]


def traced_job():
    """
    A trace of a job of two maps.
    """
    attempts = tuple(
        TaskAttempt(f"a_{number}", f"t_{number}", "map", "succeeded", 1.0, 2.0, "worker1")
        for number in range(2)
    )
    return JobTrace("j", "n", "u", "SUCCEEDED", 0.0, 0.5, 3.0, 2, 0, attempts)


class TestTables:
    def test_attempts_are_read_part_by_part(self, run, make, trial):
        """
        By the names of their columns; where there is no table there is no part.
        """
        make.commit(run, trial)
        assert list(run.read_parts(trial.id, "attempts")) == []

        trace = traced_job()
        run.write_trace(trial.id, [trace])

        ((part),) = run.read_parts(trial.id, "attempts")
        assert list(part["attempt_id"]) == [attempt.attempt_id for attempt in trace.attempts]
        assert list(run.read_parts(trial.id, "spans")) == []


class TestChain:
    @pytest.fixture
    def lines(self, measured):
        """
        Lines of the chain of a finished run, as they are stored.
        """
        return (measured.path / "trials.jsonl").read_bytes().splitlines(keepends=True)

    def test_names_what_was_stored_in_its_order(self, measured, lines):
        """
        What the run is, trials, their tables, the profile, the seal, the scores, what was planned.
        """
        first, second = (f"trials/{trial.id}" for trial in self.trials(measured))

        assert [json.loads(line)["name"] for line in lines] == [
            "manifest.json",
            first,
            f"{first}/trace",
            second,
            f"{second}/trace",
            "profiles/wordcount.json",
            "predictions/sealed.json",
            "scores",
            "experiment.yaml",
            "plan.jsonl",
        ]

    def trials(self, measured):
        """
        Trials of the run that have ended, in the order of the plan.
        """
        return [trial for trial in measured.read_plan() if trial.id in measured.trials()]

    def test_each_line_has_the_hash_of_the_one_before(self, lines):
        """
        The first has none.
        """
        previous = [json.loads(line)["previous"] for line in lines]
        hashes = [hashlib.sha256(line).hexdigest() for line in lines]

        assert previous == ["", *hashes[:-1]]

    def test_the_mark_of_the_end_is_the_hash_of_the_last_line(self, measured, lines):
        """
        So that none can be cut off.
        """
        last_hash = hashlib.sha256(lines[-1]).hexdigest()

        assert (measured.path / "finished").read_text() == last_hash

    def test_a_line_that_does_not_follow_is_named(self, measured, lines):
        """
        With its number, and with what can be done.
        """
        path = measured.path / "trials.jsonl"
        path.write_bytes(b"".join(lines[1:]))

        with pytest.raises(EvidenceError) as caught:
            measured.check_evidence()
        assert parts_of(caught.value) == (
            "trials.jsonl was changed: line 1 does not follow from the line before",
            f"{path}:1",
            RESTORE,
        )

    def test_all_that_is_wrong_is_listed_by_name(self, measured):
        """
        A change beside one that is missing.
        """
        (measured.path / "profiles/wordcount.json").unlink()
        (measured.path / "experiment.yaml").write_text("other")

        with pytest.raises(EvidenceError) as caught:
            measured.check_evidence()
        assert caught.value.what.splitlines() == [
            "the results are not as they were stored:",
            "  experiment.yaml was changed",
            "  profiles/wordcount.json is missing",
        ]
        assert (caught.value.where, caught.value.fix) == (str(measured.path), RESTORE)

    def test_scores_may_be_left_out_of_it(self, measured):
        """
        Whoever scores again need not believe the scores of before.
        """
        (measured.path / "scores/scores.json").write_text("{}")

        assert measured.check_evidence(with_scores=False)

    def test_a_packed_score_is_the_same_score(self, measured):
        """
        Of a published run, whose records may be packed.
        """
        path = measured.path / "scores/scores.json"
        path.with_name("scores.json.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()

        assert measured.check_evidence()


class TestSealed:
    def test_what_is_sealed_stands_in_it(self, measured):
        """
        Plan, profiles and predictions, by their hashes.
        """
        names = ["plan.jsonl", "predictions/whatif.jsonl", "profiles/wordcount.json"]
        hashes = {
            name: hashlib.sha256((measured.path / name).read_bytes()).hexdigest() for name in names
        }

        assert measured.seal.read() == hashes
        assert sorted(measured.seal.names()) == names
        assert measured.profile_hashes() == {"wordcount": hashes["profiles/wordcount.json"]}
        sealed = (measured.path / "predictions/sealed.json").read_bytes()
        assert measured.seal.sha256() == hashlib.sha256(sealed).hexdigest()

    def test_without_predictions_the_command_is_named(self, run, make):
        """
        A profile alone is no prediction.
        """
        run.write_plan(make.trials())
        run.write_profile(make.profile())

        with pytest.raises(DataError) as caught:
            run.seal.check()
        assert parts_of(caught.value) == (
            "there are no predictions",
            str(run.path),
            "make them: harness predict RUN",
        )

    def test_a_seal_that_does_not_hold_says_where_it_is(self, measured):
        """
        And that an analysis can be sealed anew.
        """
        (measured.path / "plan.jsonl").write_text("")

        with pytest.raises(EvidenceError) as caught:
            measured.seal.check()
        assert parts_of(caught.value) == (
            "the seal does not hold: plan.jsonl was changed",
            str(measured.path / "predictions/sealed.json"),
            "predict again, which makes an analysis with a seal of its own: harness predict RUN",
        )


def interrupt(analysis, run):
    """
    What happens to an *analysis* of *run* that is being made, and does not count yet.
    """
    assert analysis.path.is_dir()
    assert run.analyses() == ()
    raise KeyboardInterrupt


class TestAnalyses:
    @pytest.fixture
    def analysis(self, measured, make):
        """
        An analysis of a finished run.
        """
        with new_analysis(measured, make.experiment("asked"), make.trials()[:1], "9.9") as made:
            made.write_profile(make.profile())
            made.write_predictions("ptc", [make.prediction("ptc")])
            made.seal.add()
        return measured.analyses()[0]

    def test_asks_something_of_trials_of_its_run(self, analysis, measured, make):
        """
        Its plan and its question are its own; trials, and what they wrote, are those of the run.
        """
        manifest = analysis.read_manifest()
        assert (manifest.run, manifest.analysis_of, manifest.harness) == (
            analysis.id,
            measured.id,
            "9.9",
        )
        assert analysis.experiment() == make.experiment("asked")
        assert analysis.read_plan() == make.trials()[:1]
        assert analysis.trial_ids() == measured.trial_ids()
        assert analysis.measured.path == measured.path
        assert measured.measured is measured

    def test_has_a_chain_and_an_end_of_its_own(self, analysis):
        """
        A changed profile is found in it; so is what changed in the run.
        """
        assert analysis.finished
        assert analysis.check_evidence()
        (analysis.path / "profiles/wordcount.json").write_text("{}")
        with pytest.raises(EvidenceError, match=r"wordcount\.json was changed"):
            analysis.check_evidence()

    def test_what_changed_in_its_run_is_found_but_for_scores(self, analysis, measured):
        """
        The scores of the run say nothing of an analysis.
        """
        (measured.path / "scores/scores.json").write_text("{}")
        assert analysis.check_evidence()

        (measured.path / "plan.jsonl").write_text("")
        with pytest.raises(EvidenceError, match=r"plan\.jsonl was changed"):
            analysis.check_evidence()

    def test_of_one_that_broke_off_nothing_is_left(self, measured, make):
        """
        Whatever ended it; one that is being made does not count yet.
        """
        with (
            pytest.raises(KeyboardInterrupt),
            new_analysis(measured, make.experiment(), [], "1") as made,
        ):
            interrupt(made, measured)

        assert list((measured.path / "analyses").iterdir()) == []

    def test_come_by_their_age(self, measured, make, monkeypatch):
        """
        Each has a name of its own, even within one tick of the clock.
        """
        monkeypatch.setattr("harness.core.store.time.time", lambda: 3600.25)
        for _ in range(2):
            with new_analysis(measured, make.experiment(), [], "1"):
                pass

        assert [analysis.id for analysis in measured.analyses()] == [
            "19700101T010000Z-4000",
            "19700101T010000Z-4001",
        ]
        assert [analysis.read_manifest().created_s for analysis in measured.analyses()] == [
            3600.25,
            3600.25,
        ]

    def test_of_an_analysis_is_one_of_the_run(self, analysis, measured, make):
        """
        They lie side by side.
        """
        with new_analysis(analysis, make.experiment(), [], "1"):
            pass

        assert len(measured.analyses()) == 2
        assert analysis.analyses() == ()


class TestLinks:
    def test_a_run_of_links_has_what_was_given(self, measured, tmp_path):
        """
        Plan, records and logs always; the rest only where it is named.
        """
        linked = measured.link_to(tmp_path / "a", ["profiles"])

        assert linked.read_plan() == measured.read_plan()
        assert linked.trials() == measured.trials()
        assert linked.read_profiles() == measured.read_profiles()
        assert linked.read_predictions() == {}
        trial_id = measured.trial_ids()[0]
        assert linked.raw(trial_id).names() == measured.raw(trial_id).names()
        assert not linked.has_trace(trial_id)

    def test_traces_are_those_of_each_trial(self, measured, tmp_path):
        """
        They are given by one name.
        """
        linked = measured.link_to(tmp_path / "a", ["trace"])

        for trial_id in measured.trial_ids():
            assert linked.read_trace(trial_id) == measured.read_trace(trial_id)
        assert linked.read_profiles() == {}

    def test_an_analysis_is_linked_with_its_run(self, measured, make, tmp_path):
        """
        At the same place in it.
        """
        with new_analysis(measured, make.experiment(), make.trials()[:1], "1"):
            pass
        analysis = measured.analyses()[0]

        linked = analysis.link_to(tmp_path / "a", [])

        assert linked.path == tmp_path / "a" / measured.id / "analyses" / analysis.id
        assert linked.read_plan() == make.trials()[:1]
        assert linked.trial_ids() == measured.trial_ids()
        trial_id = measured.trial_ids()[0]
        with linked.raw(trial_id).open("containers/c_1/syslog") as log:
            assert log.readline() == b"a line\n"


def test_scratch_is_gone_when_the_lock_is(run):
    """
    And is made where somebody asks for it.
    """
    with run.lock():
        (run.scratch / "a").write_text("")
        assert run.scratch == run.path / "incoming/scratch"
    assert not (run.path / "incoming").exists()


def test_a_report_may_go_elsewhere(run, tmp_path):
    """
    Into a folder that need not be there, and with nothing left beside it.
    """
    path = run.write_report("report.md", "é", tmp_path / "out")

    assert path == tmp_path / "out/report.md"
    assert path.read_text() == "é"
    assert [entry.name for entry in path.parent.iterdir()] == ["report.md"]


def test_scores_and_predictions_say_where_they_are_missing(run):
    """
    Each with the command that makes it.
    """
    assert not run.is_scored
    with pytest.raises(DataError) as caught:
        run.read_scores()
    assert parts_of(caught.value) == (
        "scores.json is missing",
        str(run.path / "scores/scores.json"),
        "score again: harness score FILE",
    )


def test_lines_have_their_version(run, make):
    """
    Each line of a file can be read alone.
    """
    run.write_plan(make.trials()[:2])
    run.write_predictions("m", [make.prediction("m")])

    lines = (run.path / "plan.jsonl").read_text().splitlines()
    lines += (run.path / "predictions/m.jsonl").read_text().splitlines()
    assert [json.loads(line)["schema_version"] for line in lines] == [SCHEMA_VERSION] * 3
    assert isinstance(run.read_predictions()["m"][0], Prediction)
