"""
Tests for who writes into a run: one harness at a time, whole files, and nobody where none may.
"""

import ctypes
import os
import shutil
import subprocess
import sys

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from harness.cli import main
from harness.core.store import Run, Store
from tests.evaluate.test_flow import EXPERIMENT, scored

WRITERS = ("collect", "score", "report")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """
    A scored run; not to be changed.
    """
    return scored(tmp_path_factory.mktemp("results"))


@pytest.fixture
def folder(stored, monkeypatch):
    """
    Folder that everybody may look into, with the experiment's file and results of one's own.
    """
    with TemporaryDirectory(prefix="harness-writers-") as place:
        folder = Path(place)
        folder.chmod(0o755)
        (folder / "e.yaml").write_text(EXPERIMENT)
        shutil.copytree(stored.path.parent, folder / "results" / stored.path.parent.name)
        monkeypatch.chdir(folder)
        yield folder


def content(run):
    """
    Every file of a run but the lock.
    """
    files = (path for path in run.path.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(run.path)): path.read_bytes() for path in files}


@pytest.mark.parametrize("command", WRITERS)
def test_one_writer_at_a_time(folder, command, capsys):
    """
    Whatever a second harness would write, it is told which process is at work, and since when.
    """
    run = Store(folder / "results").latest("recorded")
    before = content(run)
    with run.lock():
        assert main([command, "e.yaml"]) == 3

    shown = capsys.readouterr().err
    assert f"run {run.id} is in use by process {os.getpid()} since 20" in shown
    assert content(run) == before


@contextmanager
def plain_rights():
    """
    A time in which files that are read-only are so for us, whoever we are: root's own right to
    write them is put away.
    """
    capabilities = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # the form of today, for this thread
    sets = (ctypes.c_uint32 * 6)()  # twice: effective, permitted, inheritable
    assert capabilities.capget(header, sets) == 0
    effective = sets[0], sets[3]
    sets[0] = sets[3] = 0
    assert capabilities.capset(header, sets) == 0
    try:
        yield
    finally:
        sets[0], sets[3] = effective
        assert capabilities.capset(header, sets) == 0


@pytest.fixture
def read_only(folder):
    """
    The run, which we may read and not write.
    """
    run = Store(folder / "results").latest("recorded")
    for path in [run.path, *run.path.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    with plain_rights():
        yield run
    for path in [run.path, *run.path.rglob("*")]:
        path.chmod(0o755)


@pytest.mark.process
def test_a_run_that_may_only_be_read(read_only, capsys):
    """
    It is reproduced where it is, and its report, its scores and its analyses are kept beside the
    runs; who would change it ends with status 3, the path, and how to go on.
    """
    before = content(read_only)
    assert main(["collect", "e.yaml"]) == 3
    shown = capsys.readouterr().err
    assert "permission denied" in shown
    assert str(Path("results/recorded") / read_only.id / "lock") in shown
    assert "with a copy of the run" in shown
    assert "-o FOLDER" in shown
    for command in ("predict", "score", "report"):
        assert main([command, "e.yaml"]) == 0
        assert "stays as it is" in capsys.readouterr().err
    # The analysis is the newest answer to what the file asks: it is what was scored and reported.
    (report,) = Path("results/readings").glob(f"*/{read_only.id}/analyses/*/report.html")
    assert (report.parent / "scores/scores.json").is_file()

    with TemporaryDirectory(prefix="harness-report-") as place:
        assert main(["report", "e.yaml", "-o", f"{place}/new"]) == 0
        assert main(["reproduce", str(read_only.path), "--given", "predictions"]) == 0
        names = {path.name for path in Path(place, "new").iterdir()}
    assert "scores: equal" in capsys.readouterr().out
    assert names == {"report.html", "report.md", "report.json", "hibench.report"}
    assert content(read_only) == before


@pytest.mark.process
def test_two_score_at_once(folder):
    """
    Both end well, or the later one names the earlier; the scores are whole, and their hash stands
    in the chain.
    """
    code = "import sys; from harness.cli import main; sys.exit(main(['score', 'e.yaml']))"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code], cwd=folder, env=environment, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )
        for _ in range(4)
    ]  # fmt: skip
    ended = [(process.communicate()[1], process.returncode) for process in started]

    assert 0 in {status for _, status in ended}
    assert all(status == 0 or (status == 3 and "is in use by" in text) for text, status in ended)
    run = Run(Store(folder / "results").latest("recorded").path)
    assert run.check_evidence()
    assert run.read_scores().scores
    assert not (run.path / "incoming").exists()
