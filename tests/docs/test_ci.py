"""
The examples of docs/ci: read as those read them for whom they are, and their shell run.
"""

import os
import re
import shutil
import subprocess

from pathlib import Path

import pytest

from ruamel.yaml import YAML

from harness.nightly.page import open_metrics

CI = Path(__file__).resolve().parents[2] / "docs" / "ci"
MEASURED = {0, 1, 6}  # statuses with which there is a night
STATUSES = (0, 1, 3, 4, 6, 7)
# In the place of the harness, and of make: it ends with $STATUS and leaves what a night leaves.
STAND_IN = """#!/bin/bash
case "$0 $1 $2" in */harness\\ nightly\\ experiments/nightly.yaml) ;; *) exit 0 ;; esac
echo "night of $RESULTS"
case $STATUS in 0 | 1 | 6)
    mkdir -p "$RESULTS/nightly/nightly"
    for name in nightly.html summary.md junit.xml metrics.prom; do
        echo "$name of tonight" > "$RESULTS/nightly/nightly/$name"
    done ;;
esac
exit "$STATUS"
"""


def read(name):
    """
    The YAML file *name*.
    """
    return YAML(typ="safe").load((CI / name).read_text(encoding="utf-8"))


@pytest.fixture
def shell(tmp_path):
    """
    Runs a script as a CI system does, in a folder with stand-ins: its exit status and output.
    """
    for name in ("harness", "make"):
        (tmp_path / name).write_text(STAND_IN, encoding="utf-8")
        (tmp_path / name).chmod(0o755)

    def run(script, status, **variables):
        environment = {
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "RESULTS": str(tmp_path / "results"),
            "STATUS": str(status),
            **variables,
        }
        argv = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        done = subprocess.run(
            argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.stderr == ""
        return done.returncode, done.stdout

    return run


class TestCron:
    def lines(self):
        """
        Settings and jobs of the example.
        """
        text = (CI / "crontab").read_text(encoding="utf-8")
        return [line for line in text.splitlines() if line and not line.startswith("#")]

    def test_lines_are_settings_and_one_job(self):
        """
        A job has five fields of time, and no % that cron would take for the end of a line.
        """
        *settings, job = self.lines()

        assert all(re.fullmatch(r"[A-Z]+=\S+", line) for line in settings)
        assert re.fullmatch(r"[0-5]?\d 1?\d \* \* \* cd [^%]+", job)

    @pytest.mark.process
    @pytest.mark.parametrize("status", STATUSES)
    def test_prints_where_the_status_is_not_0(self, status, shell):
        """
        What a job prints is mailed: the status, and what the harness said.
        """
        command = self.lines()[-1].split(maxsplit=5)[5].replace("cd /opt/harness && ", "")

        _, output = shell(command, status)
        assert output.startswith(
            f"harness nightly: exit status {status}\nnight of" if status else ""
        )
        assert bool(output) == bool(status)


class TestSystemd:
    @pytest.mark.process
    def test_units_are_valid(self, tmp_path):
        """
        Read by systemd itself without a complaint.
        """
        if shutil.which("systemd-analyze") is None:
            pytest.skip("no systemd on this machine")
        for name in ("harness-nightly.service", "harness-nightly.timer"):
            text = (CI / name).read_text(encoding="utf-8")
            text = text.replace("/opt/harness/.venv/bin/harness", shutil.which("true"))
            (tmp_path / name).write_text(text.replace("/opt/harness", "/"), encoding="utf-8")
        paths = sorted(map(str, tmp_path.iterdir()))

        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", *paths],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout + done.stderr) == (0, "")

    def test_each_status_is_one_of_three(self):
        """
        A status is a success, ends the night, or is tried again: none is two of them.
        """
        text = (CI / "harness-nightly.service").read_text(encoding="utf-8")
        values = dict(re.findall(r"^(\w+)=(.*)", text, re.MULTILINE))
        good, final = (
            {*values[key].split()} for key in ("SuccessExitStatus", "RestartPreventExitStatus")
        )

        assert good == {"6"}
        assert {str(status) for status in STATUSES} - good - final == {"0", "3", "4"}


STEP_KEYS = {"name", "id", "if", "uses", "with", "run", "env"}
JOB_KEYS = {"runs-on", "timeout-minutes", "env", "steps"}
GITLAB_KEYS = {
    "rules", "tags", "resource_group", "timeout", "variables", "before_script", "script",
    "allow_failure", "retry", "artifacts",
}  # fmt: skip


class TestGitHub:
    def test_is_a_workflow(self):
        """
        Keys are those of the schema, a step runs or uses, and what it refers to is there.
        """
        workflow = read("github-actions.yml")
        (job,) = workflow["jobs"].values()
        ids = [step["id"] for step in job["steps"] if "id" in step]
        text = (CI / "github-actions.yml").read_text(encoding="utf-8")

        assert workflow.keys() == {"name", "on", "permissions", "concurrency", "jobs"}
        assert job.keys() <= JOB_KEYS
        assert [each["cron"].count(" ") for each in workflow["on"]["schedule"]] == [4]
        assert all(step.keys() <= STEP_KEYS for step in job["steps"])
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])
        assert {*re.findall(r"steps\.(\w+)\.", text)} == {*ids}
        assert {*re.findall(r"env\.(\w+)", text)} == job["env"].keys()

    @pytest.mark.process
    @pytest.mark.parametrize("status", STATUSES)
    def test_shows_a_night_where_there_is_one(self, status, shell, tmp_path):
        """
        The job fails but for 0 and 6; no summary of an earlier night stands for tonight's.
        """
        names = ("GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
        files = {name: str(tmp_path / name) for name in names}
        setup, night, summary = (
            step["run"] for step in read("github-actions.yml")["jobs"]["nightly"]["steps"]
            if "run" in step
        )  # fmt: skip

        assert shell(setup, status, **files)[0] == 0
        ended, output = shell(night, status, **files)
        assert ended == (0 if status == 6 else status)
        assert output.count("::") == (2 if status else 0)
        has_night = Path(files["GITHUB_OUTPUT"]).exists()
        assert has_night == (status in MEASURED)
        if has_night:
            assert Path(files["GITHUB_OUTPUT"]).read_text() == "measured=true\n"
            assert shell(summary, status, **files)[0] == 0
            assert Path(files["GITHUB_STEP_SUMMARY"]).read_text() == "summary.md of tonight\n"


class TestGitLab:
    def test_is_a_pipeline(self):
        """
        Keys are those of the schema; at most two more tries; the report is among the artifacts.
        """
        (job,) = read("gitlab-ci.yml").values()

        assert job.keys() <= GITLAB_KEYS
        assert all(isinstance(line, str) for line in job["before_script"] + job["script"])
        assert job["retry"] == {"max": 2, "exit_codes": [3, 4]}
        assert job["allow_failure"] == {"exit_codes": [6]}
        assert job["artifacts"]["reports"]["junit"].startswith(job["artifacts"]["paths"][0])

    @pytest.mark.process
    @pytest.mark.parametrize("status", STATUSES)
    def test_keeps_a_night_where_there_is_one(self, status, shell, tmp_path):
        """
        It ends with the status of the harness; artifacts are of tonight, or there are none.
        """
        (job,) = read("gitlab-ci.yml").values()

        ended, output = shell("\n".join(job["before_script"] + job["script"]), status)
        assert ended == status
        kept = sorted(path.name for path in tmp_path.glob("nightly/*"))
        names = ["junit.xml", "metrics.prom", "nightly.html", "summary.md"]
        assert kept == (names if status in MEASURED else [])
        assert output.endswith("summary.md of tonight\n") == (status in MEASURED)


def test_every_metric_is_named():
    """
    The page names the metrics that there are, and no others.
    """
    page = (CI / "README.md").read_text(encoding="utf-8")
    written = re.findall(r"^# TYPE (\w+)", open_metrics("n", [], []), re.MULTILINE)

    assert re.findall(r"^\| `(harness_\w+)`", page, re.MULTILINE) == written
