"""The page of the Python interface, and the notebook that uses it."""

import json
import runpy
import shutil

from pathlib import Path

import pytest

from tests.evaluate.test_flow import scored

PROJECT = Path(__file__).parents[2]


def test_page_is_what_the_docstrings_say():
    """
    After a change of one: ``.venv/bin/python scripts/api > docs/api.md``.
    """
    page = runpy.run_path(str(PROJECT / "scripts" / "api"))["page"]

    assert (PROJECT / "docs" / "api.md").read_text() == page()


def code_cells():
    """
    The code of the notebook's cells; magics (``%``) are Jupyter's.
    """
    notebook = json.loads((PROJECT / "docs" / "notebook.ipynb").read_text())
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            yield "".join(line for line in cell["source"] if not line.startswith("%"))


@pytest.mark.process
def test_notebook_runs(tmp_path, monkeypatch):
    """
    From top to bottom, on a small run of recorded jobs in the place of the demo's.
    """
    made = scored(tmp_path / "made")
    shutil.copytree(made.path.parent, tmp_path / "results" / "demo")
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in code_cells():
        exec(compile(code, "notebook.ipynb", "exec"), names)

    assert names["run"].run.id == made.id


def test_notebook_shows_no_error():
    """
    Its stored outputs are those of a run that went well.
    """
    notebook = json.loads((PROJECT / "docs" / "notebook.ipynb").read_text())
    outputs = [each for cell in notebook["cells"] for each in cell.get("outputs", ())]

    assert [each for each in outputs if each["output_type"] in ("error", "stream")] == []
    assert any("image/png" in each.get("data", ()) for each in outputs)
