"""
Tests for evidence: whatever is changed, removed or added in stored results is named.
"""

import json
import shutil

import pytest

from harness.base.errors import EvidenceError
from harness.core.store.evidence import DISCARDED, Chain
from harness.observe.storage.opener import Opener


def flip(path):
    """
    Change one byte in the middle of a file.
    """
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def edit(path, **changes):
    """
    Change fields of a JSON file, and leave it readable.
    """
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def add(path):
    """
    Put a file where there was none.
    """
    path.write_text("new")


TAMPERED = {
    "a raw log": (lambda run, t: flip(t / "raw/containers/c_1/syslog.gz"), "syslog.gz was changed"),
    "a raw log gone": (lambda run, t: (t / "raw/containers/c_1/syslog.gz").unlink(), "is missing"),
    "a raw log more": (lambda run, t: add(t / "raw/late.gz"), "raw/late.gz was added"),
    "a time": (lambda run, t: edit(t / "trial.json", started_s=1.0), "trial.json was changed"),
    "a table": (lambda run, t: edit(t / "trace/job.json", jobs=[]), "job.json was changed"),
    "a trace gone": (lambda run, t: shutil.rmtree(t / "trace"), "trace/job.json is missing"),
    "a trial gone": (lambda run, t: shutil.rmtree(t), "is missing"),
    "a trial more": (lambda run, t: shutil.copytree(t, t.with_name("copy")), "copy was added"),
    "the hashes": (lambda run, t: edit(t / "evidence.json", measured={"a": "b"}), "was changed"),
    "the hashes gone": (lambda run, t: (t / "evidence.json").unlink(), "evidence.json is missing"),
    "a profile": (
        lambda run, t: edit(run.path / "profiles/wordcount.json", warnings=["x"]),
        "profiles/wordcount.json was changed",
    ),
    "the first seal": (
        lambda run, t: edit(run.path / "predictions/sealed.json", sealed_s=1.0),
        "predictions/sealed.json was changed",
    ),
    "the manifest": (
        lambda run, t: edit(run.path / "manifest.json", harness="9"),
        "manifest.json w",
    ),
    "the scores": (
        lambda run, t: edit(run.path / "scores/scores.json", rankings=[]),
        "scores were changed: harness score FILE makes them again",
    ),
    "the chain gone": (lambda run, t: (run.path / "trials.jsonl").unlink(), "trials.jsonl is miss"),
}


class TestCheck:
    def test_finds_nothing_in_what_was_left_alone(self, measured):
        """
        Also once tables were made again, and another profile was fitted.
        """
        assert measured.check_evidence()

    @pytest.mark.parametrize(("tamper", "named"), TAMPERED.values(), ids=TAMPERED)
    def test_names_what_is_not_as_it_was(self, measured, tamper, named):
        """
        With the exit status of tampered evidence.
        """
        tamper(measured, measured.trial_dir(measured.trial_ids()[0]))

        with pytest.raises(EvidenceError, match=named) as caught:
            measured.check_evidence()
        assert caught.value.exit_status == 7

    def test_names_all_at_once_but_not_thousands(self, measured):
        """
        A dozen names are enough to see what was done.
        """
        for trial in measured.trial_ids():
            for number in range(20):
                add(measured.trial_dir(trial) / f"raw/{number}")

        with pytest.raises(EvidenceError) as caught:
            measured.check_evidence()
        assert len(caught.value.what.splitlines()) == 14
        assert caught.value.what.endswith("and 28 more")

    @pytest.mark.parametrize("number", [0, 2])
    def test_finds_a_line_that_was_changed(self, measured, number):
        """
        Each line has the hash of the line before.
        """
        path = measured.path / "trials.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        lines[number] = lines[number].replace('"stored_s": ', '"stored_s": 1')
        path.write_text("".join(lines))

        with pytest.raises(EvidenceError, match=f"line {number + 2} does not follow"):
            measured.check_evidence()

    @pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 2)])
    def test_finds_two_lines_that_were_exchanged(self, measured, first, second):
        """
        Each is as it was written, and no hash was made anew.
        """
        path = measured.path / "trials.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        lines[first], lines[second] = lines[second], lines[first]
        path.write_text("".join(lines))

        with pytest.raises(EvidenceError, match=f"line {first + 1} does not follow"):
            measured.check_evidence()

    @pytest.mark.parametrize("kind", DISCARDED)
    def test_finds_a_discarded_trial_that_was_removed(self, run, make, kind):
        """
        What warmed the cluster, failed before or was disturbed has a line of its own.
        """
        (trial, *_) = plan = make.trials()
        run.write_plan(plan)
        if kind == "retried":
            make.commit(run, trial, state="failed", reason="r")
        else:
            run.start_trial(trial).discard(kind, make.record(trial))
        make.commit(run, trial)
        run.finish()
        assert run.check_evidence()
        shutil.rmtree(run.path / kind)

        with pytest.raises(EvidenceError, match=f"{kind}/{trial.id}-1 is missing"):
            run.check_evidence()

    @pytest.mark.parametrize(
        "changes", [{"harness": "9"}, {"machine": {"cores": 128}}, {"overrides": ["repeat=9"]}]
    )
    def test_finds_a_manifest_that_was_changed_where_the_end_was_taken_away(
        self, measured, changes
    ):
        """
        Its later lines are cut off with the mark; the first one is still about it.
        """
        path, manifest = measured.path / "trials.jsonl", measured.path / "manifest.json"
        first = manifest.read_bytes()
        kept = path.read_bytes()
        measured.update_manifest(machine={"cores": 2})
        measured.finish()
        assert measured.check_evidence()

        path.write_bytes(kept)
        (measured.path / "finished").unlink()
        manifest.write_bytes(first)
        assert measured.check_evidence()
        edit(manifest, **changes)
        with pytest.raises(EvidenceError, match=r"manifest\.json was changed"):
            measured.check_evidence()

    def test_finds_a_trial_that_was_cut_off_with_its_lines(self, measured):
        """
        The mark of a finished run holds the hash of the last line.
        """
        path = measured.path / "trials.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[:2]))
        shutil.rmtree(measured.trial_dir(measured.trial_ids()[1]))

        with pytest.raises(EvidenceError, match=r"the last lines of trials\.jsonl are missing"):
            measured.check_evidence()

    def test_of_an_earlier_version_there_is_none(self, measured, make):
        """
        Nothing is wrong with such a run, and nothing that is done with it now makes evidence.
        """
        (measured.path / "trials.jsonl").unlink()
        for trial in measured.trial_ids():
            (measured.trial_dir(trial) / "evidence.json").unlink()
        measured.write_trace(measured.trial_ids()[0], [])
        measured.write_profile(make.profile("terasort"))

        assert not measured.check_evidence()


class TestWrite:
    def test_new_tables_are_noted_and_old_logs_are_not(self, measured):
        """
        Tables may be made again at any time; whoever changed a log before is found all the same.
        """
        (trial, other) = measured.trial_ids()
        measured.write_trace(trial, [])
        assert measured.check_evidence()
        flip(measured.trial_dir(other) / "raw/containers/c_1/syslog.gz")
        measured.write_trace(other, [])

        with pytest.raises(EvidenceError, match=f"{other}/raw/containers/c_1/syslog.gz was change"):
            measured.check_evidence()

    def test_a_profile_that_was_edited_is_found_whatever_was_predicted(self, measured, make):
        """
        A new seal does not make it one that the harness fitted; fitted again, it is one.
        """
        edit(measured.path / "profiles/wordcount.json", warnings=["edited"])
        measured.write_predictions("whatif", [make.prediction(job_s=1.0)])
        measured.seal.add()
        measured.seal.check()

        with pytest.raises(EvidenceError, match=r"profiles/wordcount\.json was changed"):
            measured.check_evidence()
        measured.write_profile(make.profile())
        assert measured.check_evidence()

    def test_a_run_with_profiles_of_another_is_sealed_before_its_first_trial(self, run, make):
        """
        The chain begins with the profile and the seal; after a trial both are as they were.
        """
        trials = make.trials()
        run.write_plan(trials)
        run.write_profile(make.profile())
        run.write_predictions("whatif", [make.prediction(job_s=1.0)])
        run.seal.add()
        make.commit(run, trials[0])

        assert run.check_evidence()
        first, *names = [line.name for line in Chain(run.opener).lines().values()]
        assert first == "manifest.json"
        assert names == [
            "profiles/wordcount.json", "predictions/sealed.json", f"trials/{trials[0].id}"
        ]  # fmt: skip

    def test_what_is_stored_again_unchanged_adds_no_line(self, measured, make):
        """
        Steps may be repeated.
        """
        before = (measured.path / "trials.jsonl").read_bytes()
        measured.write_profile(make.profile())
        measured.seal.add()

        assert (measured.path / "trials.jsonl").read_bytes() == before

    def test_a_line_that_was_cut_off_is_written_again(self, measured):
        """
        A loss of power may leave a part of one; what it names has never appeared.
        """
        chain = Chain(measured.opener)
        count = len(chain.lines())
        with chain.path.open("ab") as file:
            file.write(b'{"name": "trials/')
        chain.append("profiles/late.json", "00")

        assert [line.name for line in chain.lines().values()][count:] == ["profiles/late.json"]

    def test_what_another_has_written_meanwhile_is_followed(self, measured):
        """
        Lines of two writers in turn are one chain, as each reads what it has not written.
        """
        first, second = (Chain(Opener(measured.path)) for _ in range(2))
        count = len(first.lines())
        for number, chain in enumerate((first, second, first, first, second), 1):
            chain.append(f"profiles/{number}.json", str(number))
        second.append("profiles/5.json", "5")

        names = [line.name for line in first.lines().values()][count:]
        assert names == [f"profiles/{number}.json" for number in range(1, 6)]

    def test_a_line_that_was_changed_meanwhile_is_found_by_the_next(self, measured):
        """
        Whoever has read the chain once reads it again where it is not as he left it.
        """
        chain = Chain(measured.opener)
        chain.append("profiles/a.json", "1")
        lines = chain.path.read_bytes()
        chain.path.write_bytes(
            lines.replace(b'"profiles/wordcount.json"', b'"profiles/wordcounT.json"')
        )

        with pytest.raises(EvidenceError, match="does not follow from the line before"):
            chain.append("profiles/b.json", "2")

    def test_a_chain_that_was_cut_meanwhile_is_found(self, measured):
        """
        Whole lines are gone, others follow: what they named has no line.
        """
        chain = Chain(measured.opener)
        chain.append("profiles/a.json", "1")
        lines = chain.path.read_bytes().splitlines(keepends=True)
        chain.path.write_bytes(b"".join(lines[:1]))
        chain.append("profiles/b.json", "2")

        assert len(chain.lines()) == 2
        with pytest.raises(EvidenceError, match=r"last lines of trials\.jsonl are missing"):
            measured.check_evidence()

    def test_an_end_that_was_cut_off_meanwhile_is_written_again(self, measured):
        """
        As by a disk that lost the last bytes of a line that was there already.
        """
        chain = Chain(measured.opener)
        chain.append("profiles/a.json", "1")
        content = chain.path.read_bytes()
        chain.path.write_bytes(content[:-5])
        chain.append("profiles/a.json", "1")

        names = [line.name for line in chain.lines().values()]
        assert names.count("profiles/a.json") == 1

    def test_no_line_is_read_for_each_that_is_added(self, tmp_path):
        """
        A thousand jobs write two thousand lines: each costs as much as the first.
        """
        opener = CountingOpener(tmp_path)
        for number in range(50):
            Chain(opener).append(f"trials/{number}", "0", starts=True)

        assert opener.reads <= 1
        assert len(Chain(opener).lines()) == 50

    def test_tables_say_what_they_were_made_from(self, measured):
        """
        The hash of all that was measured, as it stands in the chain.
        """
        trial = measured.trial_ids()[0]
        evidence = json.loads((measured.trial_dir(trial) / "evidence.json").read_text())
        noted = {line.name: line.sha256 for line in Chain(measured.opener).lines().values()}

        assert evidence["made_from"] == noted[f"trials/{trial}"]
        assert evidence["tables"].keys() == {
            "trace/job.json", "trace/attempts.parquet", "trace/counters.parquet"
        }  # fmt: skip

    def test_a_trial_that_never_appeared_is_measured_again(self, run, make, monkeypatch):
        """
        Killed between its line and its folder: it is missing until it is there.
        """
        trial = make.trials()[0]
        with monkeypatch.context() as patched:
            patched.setattr("harness.core.store.trials.rename_durably", killed)
            with pytest.raises(KeyboardInterrupt):
                make.commit(run, trial)
        with pytest.raises(EvidenceError, match=f"trials/{trial.id} is missing"):
            run.check_evidence()

        make.commit(run, trial)
        assert run.check_evidence()


class CountingOpener(Opener):
    """
    One that counts how often a whole file is read.
    """

    reads = 0

    def read(self, path, fix):
        self.reads += 1
        return super().read(path, fix)


def killed(*_):
    """
    Stands for the end of the process.
    """
    raise KeyboardInterrupt
