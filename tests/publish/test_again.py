"""
A bundle that is published again by `harness publish --again`, with what is asked of it afterwards.

The run of it has cells whose ids name a queue, so that they have other ids in every bundle.
"""

import json
import re
import shutil
import subprocess
import sys

from pathlib import Path

import pytest

from harness.base.errors import EvidenceError
from harness.cli import main
from harness.core.reports import REPORTS
from harness.core.store import Run
from harness.core.store.packed import ARCHIVE
from harness.core.store.seal import RunSeal
from harness.core.store.sums import write_sums
from harness.publish import paper, verify
from harness.publish.bundle import publish
from harness.publish.compare import reproduce_bundle
from harness.publish.rules import check
from tests.evaluate import test_flow
from tests.publish.test_verify import contents, rows_of

FACTORS = [*range(3, 19)]
QUEUE = "root.team-x007"
EXPERIMENT = f"""
schema: 1
name: recorded
question: Does the model know the recorded jobs?
cluster: {{workers: 2, site: {{dfs.blocksize: 2m}}}}
workloads: [{{name: terasort, input: 6000000}}]
configuration:
  mapreduce.job.queuename: {QUEUE}
  mapreduce.job.reduces: 2
  mapreduce.task.io.sort.mb: 1
  mapreduce.job.reduce.slowstart.completedmaps: 1.0
  mapreduce.task.io.sort.factor: {FACTORS}
repeat: 2
predict:
  models: [whatif, whatif-mr2, scaling]
  profile_on: {{mapreduce.task.io.sort.factor: [3, 10]}}
"""
# Each kind of question, and how its answer begins.
QUESTIONS = {
    "{how_far: best}": "Of 3 models ",
    "{how_far: whatif}": "whatif is off by ",
    "{nearer: [scaling, whatif]}": "Yes: scaling is off by ",
    "{nearer: [whatif, whatif-mr2, scaling]}": "No: whatif is off by ",
    "{choice: 1}": "scaling, whatif and whatif-mr2 choose equally well: their first choice takes ",
    "{choice: 3}": "scaling, whatif and whatif-mr2 choose equally well: the best of their ",
    "{how_far: best, scope: inputs}": "Of 3 models ",
    "{how_far: best, extrapolate: true}": "Of 3 models ",
    "{moved_since: 20260101T000000Z-0000}": "It cannot be told: what has moved since another run ",
}


def recorded_run(folder, experiment, *, is_sealed=False):
    """
    A run of recorded jobs that has ended; its question is not sealed, as in old runs, or it is.
    """
    add = RunSeal.add
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test_flow, "EXPERIMENT", experiment)
        if not is_sealed:
            patch.setattr(RunSeal, "add", lambda seal, *_asked: add(seal))
        evaluation = test_flow.evaluation(test_flow.fill(folder))
        evaluation.profile()
        evaluation.predict()
        evaluation.score()
    evaluation.run.finish()
    return evaluation.run


@pytest.fixture(scope="module", autouse=True)
def nothing_is_drawn():
    """
    A figure is the word for its kind, the report for a browser one in Markdown; there is no PDF.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(REPORTS, "html", REPORTS["markdown"])
        patch.setattr(paper, "_drawn", lambda _figure, kind: kind.encode())
        patch.setitem(sys.modules, "typst", None)
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """
    The run; not to be changed.
    """
    return recorded_run(tmp_path_factory.mktemp("results"), EXPERIMENT)


@pytest.fixture(scope="module")
def bundle(run, tmp_path_factory):
    """
    Its bundle, made once; not to be changed.
    """
    folder = tmp_path_factory.mktemp("bundles") / "bundle"
    publish([run], folder, licence="CC-BY-4.0")
    return folder


def ask_again(bundle, folder, *words):
    """
    The exit status of `harness publish --again`.
    """
    return main(["publish", "--again", str(bundle), "-o", str(folder), *words])


def first_sentence(folder):
    """
    What the claim of a bundle says of its run.
    """
    text = (folder / "README.md").read_text()
    return re.search(r"<!-- claim -->\n- recorded \([^)]*\): (.*)\n", text)[1]


def differing(bundle, folder):
    """
    What comes out otherwise where all that a bundle allows is made again.
    """
    return {stage: found for stage, found in reproduce_bundle(bundle, folder, "raw") if found}


class TestNewIds:
    def test_are_those_of_a_bundle_that_bears_itself_out(self, run, bundle):
        """
        Of more units than are flipped in all ways: the order of the flips is that of the new ids.
        """
        (copy,) = (bundle / "runs").iterdir()
        ids = json.loads((copy / "originals.json").read_text())["ids"]
        old = {score.cell for score in run.read_scores().scores}
        new = {score.cell for score in Run(copy).read_scores().scores}

        assert len(new) == len(FACTORS) - 2 > 12
        assert {ids[cell] for cell in new} == old
        by_old = sorted(new, key=ids.__getitem__)
        assert by_old != sorted(new)
        shown = verify.check(bundle)
        assert [line.split()[-1] for line in shown[1:]] == ["nearest", "farther", "farther"]
        assert not (copy / "incoming").exists()

    def test_are_those_of_scores_that_come_out_equal(self, bundle, tmp_path):
        """
        Predictions and scores, tables and claim.
        """
        assert differing(bundle, tmp_path / "again") == {}

    def test_leave_the_measured_and_predicted_times(self, run, bundle):
        """
        And the errors: what is drawn alone is another one.
        """
        (copy,) = (bundle / "runs").iterdir()
        ids = json.loads((copy / "originals.json").read_text())["ids"]
        own, published = run.read_scores(), Run(copy).read_scores()

        def rows(scores, names):
            return {
                (names.get(one.cell, one.cell), one.model, one.quantity, one.speed):
                (one.predicted_s, one.measured_s, one.floor, one.relative_error)
                for one in scores.scores
            }  # fmt: skip

        assert rows(published, ids) == rows(own, {})
        assert published.ranking().errors == pytest.approx(own.ranking().errors)

    def test_are_made_the_same_each_time(self, run, bundle, tmp_path):
        """
        Byte by byte.
        """
        publish([run], tmp_path / "bundle", licence="CC-BY-4.0")

        assert contents(tmp_path / "bundle") == contents(bundle)


class TestAgain:
    @pytest.mark.parametrize("question", QUESTIONS)
    def test_what_is_asked_afterwards_is_answered(self, bundle, tmp_path, question):
        """
        By a bundle that its own `verify.py` bears out, whose rules hold, and which comes out equal.
        """
        before = contents(bundle)
        folder = tmp_path / "anew"
        assert ask_again(bundle, folder, "--question", f"recorded={question}") == 0

        sentence = first_sentence(folder)
        assert sentence.startswith(f"Asked afterwards: {QUESTIONS[question]}")
        assert (folder / "verify.py").read_bytes() == Path(verify.__file__).read_bytes()
        assert verify.check(folder)[0].startswith("recorded (")
        assert main(["publish", "--check", str(folder)]) == 0
        assert differing(folder, tmp_path / "made") == {}
        assert contents(bundle) == before
        assert {path.name for path in tmp_path.iterdir()} == {"anew", "made"}

    @pytest.mark.process
    def test_its_own_verify_bears_it_out_alone(self, bundle, tmp_path):
        """
        With nothing but Python; and finds one word that is another.
        """
        folder = tmp_path / "anew"
        asked = "recorded={nearer: [scaling, whatif]}"
        assert ask_again(bundle, folder, "--question", asked) == 0
        command = [sys.executable, "-I", "-S", str(folder / "verify.py")]
        well = subprocess.run(command, check=False, capture_output=True, text=True)
        readme = (folder / "README.md").read_text()
        (folder / "README.md").write_text(readme.replace("Asked afterwards: ", ""))
        wrong = subprocess.run(command, check=False, capture_output=True, text=True)

        assert (well.returncode, well.stderr) == (0, "")
        assert (wrong.returncode, wrong.stdout) == (1, "")
        assert wrong.stderr.startswith("README.md: stored ")

    def test_what_was_measured_and_predicted_stays(self, bundle, tmp_path):
        """
        Byte by byte, and all that is known of the run; scores and the answer are another one's.
        """
        folder = tmp_path / "anew"
        assert ask_again(bundle, folder, "--question", "recorded={how_far: whatif}") == 0

        before, after = contents(bundle), contents(folder)
        changed = {name for name in before if after[name] != before[name]}
        (run_id,) = (path.name for path in (bundle / "runs").iterdir())
        of_run = {name.split("/", 2)[2] for name in changed if name.startswith("runs/")}
        assert after.keys() == before.keys()
        assert of_run == {"scores/scores.json.gz", "trials.jsonl", "finished"}
        assert {name for name in changed if name.startswith("data/")} == {"data/runs.csv"}
        assert not (folder / "runs" / run_id / "incoming").exists()
        (old,), (new,) = (
            [dict(zip(header, row, strict=True)) for row in rows]
            for header, *rows in (rows_of(one["data/runs.csv"]) for one in (before, after))
        )
        assert {name for name in new if new[name] != old[name]} == {"asks"}
        assert (old["asks"], new["asks"]) == ("how_far best", "how_far whatif")
        assert new["asked"] == "afterwards"

    def test_without_a_question_it_answers_what_it_did(self, bundle, tmp_path):
        """
        With its own question; the disclosure and the system are those of the bundle.
        """
        assert ask_again(bundle, tmp_path / "anew") == 0

        assert first_sentence(tmp_path / "anew") == first_sentence(bundle)
        for name in ("system.json", "disclosure.md"):
            assert (tmp_path / "anew" / name).read_bytes() == (bundle / name).read_bytes()

    def test_of_what_was_made_again_it_is_made_again(self, bundle, tmp_path):
        """
        A bundle that answers another question may be asked once more; packed, if asked for.
        """
        first = ["--question", "recorded={how_far: whatif}"]
        assert ask_again(bundle, tmp_path / "one", *first) == 0
        second = ["--question", "recorded={nearer: [scaling, whatif]}", "--pack"]
        assert ask_again(tmp_path / "one", tmp_path / "two", *second) == 0

        assert (tmp_path / "two" / ARCHIVE).is_file()
        assert first_sentence(tmp_path / "two").startswith("Asked afterwards: Yes: scaling ")
        assert main(["publish", "--check", str(tmp_path / "two")]) == 0

    @pytest.mark.parametrize(
        ("question", "error"),
        [
            (
                "other={how_far: best}",
                ("the bundle has no experiment 'other'", "its experiments: recorded"),
            ),
            (
                "recorded={how_far: whatifs}",
                ("there are no predictions of 'whatifs'", "whatif"),
            ),
            (
                "recorded={nearer: [whatif, prophet]}",
                ("there are no predictions of 'prophet'", "whatif"),
            ),
            (
                "recorded={claims: prophet}",
                ("there are no predictions of 'prophet'", "whatif"),
            ),
            (
                "recorded={claims: nobody}",
                ("nothing is known of the paper 'nobody'", "prophet"),
            ),
            ("recorded={nearer: [whatif]}", ("compares one model with none", "{nearer: [")),
            ("recorded={choice: 0}", ("choice", "{how_far: best}")),
            ("recorded", ("'recorded' is no EXPERIMENT=QUESTION", "quick={how_far: whatif}")),
        ],
    )
    def test_a_question_about_what_is_not_there_is_refused(
        self, bundle, tmp_path, capsys, question, error
    ):
        """
        With what is wrong, where, and what to do; nothing is left behind.
        """
        before = contents(bundle)
        assert ask_again(bundle, tmp_path / "anew", "--question", question) == 2

        what, fix = error
        first, where, *rest = capsys.readouterr().err.splitlines()
        assert what in first
        assert where == "  at:  --question"
        assert fix in "\n".join(rest)
        assert [*tmp_path.iterdir()] == []
        assert contents(bundle) == before

    def test_a_folder_that_is_there_is_left_alone(self, bundle, tmp_path, capsys):
        """
        Whatever is in it.
        """
        (tmp_path / "anew").mkdir()
        assert ask_again(bundle, tmp_path / "anew") == 2

        assert "the folder is there already" in capsys.readouterr().err
        assert [*tmp_path.rglob("*")] == [tmp_path / "anew"]

    @pytest.mark.parametrize("name", ["data/measurements.csv", "system.json", "plan.jsonl"])
    def test_a_bundle_that_was_changed_is_refused(self, bundle, tmp_path, capsys, name):
        """
        By its sums, before anything is made of it.
        """
        copy = shutil.copytree(bundle, tmp_path / "copy")
        (path,) = [*copy.glob(name), *copy.glob(f"runs/*/{name}")]
        path.write_bytes(path.read_bytes() + b"\n")
        assert ask_again(copy, tmp_path / "anew") != 0

        assert path.name in capsys.readouterr().err
        assert [*tmp_path.iterdir()] == [copy]

    def test_predictions_that_were_changed_are_refused(self, bundle, tmp_path):
        """
        Though all sums were made anew: they are not those that were sealed.
        """
        copy = shutil.copytree(bundle, tmp_path / "copy")
        (path,) = copy.glob("runs/*/predictions/whatif.jsonl.gz")
        (other,) = copy.glob("runs/*/predictions/scaling.jsonl.gz")
        path.write_bytes(other.read_bytes())
        write_sums(copy)
        assert ask_again(copy, tmp_path / "anew") != 0

        assert [*tmp_path.iterdir()] == [copy]

    def test_a_sealed_question_stays(self, tmp_path, capsys):
        """
        Another one is refused; without one the bundle answers what was sealed, not afterwards.
        """
        run = recorded_run(tmp_path / "results", EXPERIMENT, is_sealed=True)
        publish([run], tmp_path / "bundle")
        asked = ["--question", "recorded={how_far: whatif}"]
        assert (
            ask_again(tmp_path / "bundle", tmp_path / "anew", *asked) == EvidenceError.exit_status
        )
        err = capsys.readouterr().err
        assert "the question was changed after the seal" in err
        assert not (tmp_path / "anew").exists()
        assert not (tmp_path / ".anew.again").exists()

        assert ask_again(tmp_path / "bundle", tmp_path / "anew") == 0
        assert first_sentence(tmp_path / "anew").startswith("Of 3 models ")
        verify.check(tmp_path / "anew")
        assert check(tmp_path / "anew").is_met
