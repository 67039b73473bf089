"""
Tests for `harness vectors`.
"""

import json

import pytest

from click.testing import CliRunner

from harness.cli.commands.models import vectors as command

CASE = {
    "name": "N28_F10",
    "input": {"num_segments": 28, "merge_factor": 10},
    "expected": {"first_pass": 10, "merge_passes": 3},
}


def vectors(folder, name="v.json", model="whatif", **changes):
    """
    A vector file of one merge in *folder*.
    """
    path = folder / name
    path.write_text(json.dumps({"model": model, "cases": [CASE | changes]}))
    return str(path)


def run(*args):
    """
    Outcome of `harness vectors`.
    """
    return CliRunner().invoke(command, args)


class TestCheck:
    def test_agreement_is_status_0(self, tmp_path):
        """
        Nothing to tell on stdout.
        """
        done = run("check", vectors(tmp_path))

        assert (done.exit_code, done.stdout) == (0, "")

    def test_mismatch_is_a_line_and_status_1(self, tmp_path):
        """
        File, case, field, got, expected.
        """
        file = vectors(tmp_path, expected={"first_pass": 9})
        done = run("check", file)

        assert done.exit_code == 1
        assert done.stdout == f"{file}: N28_F10: first_pass: got 10, expected 9\n"

    def test_json_is_one_document(self, tmp_path):
        """
        Every mismatch, and how many cases there were; of `compute` every answer.
        """
        file = vectors(tmp_path, expected={"first_pass": 9})
        checked = json.loads(run("check", file, "--json").stdout)
        computed = json.loads(run("compute", file, "--json").stdout)

        found = {"file": file, "case": "N28_F10", "field": "first_pass"}
        assert checked["cases"] == 1
        assert checked["mismatches"] == [{**found, "answer": 10, "expected": 9}]
        assert computed["cases"][0]["output"]["first_pass"] == 10

    @pytest.mark.parametrize("content", [b"\xff", b"no json", b"{}"])
    def test_unreadable_file_is_status_2_and_the_others_are_checked(self, tmp_path, content):
        """
        One bad file does not hide what the next one says.
        """
        bad = tmp_path / "bad.json"
        bad.write_bytes(content)
        done = run("check", str(bad), vectors(tmp_path))

        assert done.exit_code == 2
        assert "bad.json" in done.stderr
        assert "1 cases, 0 mismatches" in done.stderr

    def test_absent_file_is_status_2(self, tmp_path):
        """
        A file that is not there is named.
        """
        done = run("check", str(tmp_path / "none.json"))

        assert done.exit_code == 2
        assert "none.json" in done.stderr

    def test_the_message_for_a_folder_is_in_plain_words(self, tmp_path):
        """
        What is wrong, where, and what to do; nothing of the interpreter's own.
        """
        done = run("check", str(tmp_path))

        assert done.stderr.splitlines()[:3] == [
            f"{tmp_path}: the file cannot be read: Is a directory",
            f"  at:  {tmp_path}",
            "  fix: name a file of test vectors, such as tests/validation/vectors/scheduler.json",
        ]

    def test_kind_without_implementation_is_status_2(self, tmp_path):
        """
        What cannot be checked is not passed over in silence.
        """
        done = run("check", vectors(tmp_path, model="oracle"))

        assert done.exit_code == 2
        assert "no implementation for oracle" in done.stderr

    def test_mismatch_outweighs_an_unreadable_file(self, tmp_path):
        """
        A wrong model is the worse news.
        """
        file = vectors(tmp_path, expected={"first_pass": 9})

        assert run("check", str(tmp_path / "none.json"), file).exit_code == 1

    def test_names_cannot_speak_to_the_terminal(self, tmp_path):
        """
        A file's text is printed without escape sequences.
        """
        file = vectors(tmp_path, name="v.json", expected={"\x1b[31mx": 1})

        assert "\x1b" not in run("check", file).stdout


class TestCompute:
    def test_prints_a_line_of_json_per_case(self, tmp_path):
        """
        File as given, case, output; nothing else on stdout.
        """
        file = vectors(tmp_path)
        done = run("compute", file)

        assert [json.loads(line) for line in done.stdout.splitlines()] == [
            {
                "file": file,
                "case": "N28_F10",
                "output": {
                    "first_pass": 10,
                    "intermediate_merge": 20,
                    "final_merge": 10,
                    "merge_passes": 3,
                },
            }
        ]
        assert done.exit_code == 0

    def test_does_not_look_at_what_is_expected(self, tmp_path):
        """
        Another expectation, or none, has the same output.
        """
        one = run("compute", vectors(tmp_path))
        other = run("compute", vectors(tmp_path, expected="anything"))

        assert one.stdout == other.stdout

    def test_kind_is_told_by_the_input_not_by_the_file(self, tmp_path):
        """
        A file of any name; the accuracy indicator is answered by the scores.
        """
        data = {"actual_s": 100, "prophet_s": 90, "whatif_s": 120}
        done = run("compute", vectors(tmp_path, name="x", model="prophet", input=data))

        output = json.loads(done.stdout)["output"]
        assert output["i_accu_percent"] == pytest.approx(10.0)

    def test_refused_input_is_an_output(self, tmp_path):
        """
        What the model refuses is said in its place, and the run goes on.
        """
        data = {"num_segments": 28, "merge_factor": 1}
        done = run("compute", vectors(tmp_path, input=data))

        assert done.exit_code == 0
        assert json.loads(done.stdout)["output"]["error"] == "ValueError"
