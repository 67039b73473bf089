"""The bill of materials: true, complete, and in the wheel."""

import importlib.machinery
import importlib.util
import json
import subprocess
import sys
import zipfile

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "requirements/sbom.cdx.json"


def test_is_that_of_the_pins():
    """
    The committed file is what the pins give now: after a change, `scripts/export-sbom`.
    """
    name = str(ROOT / "scripts/export-sbom")
    loader = importlib.machinery.SourceFileLoader("export_sbom", name)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)

    assert COMMITTED.read_text() == module.text()


def test_what_it_lists():
    """
    Every jar of the Hadoop home stands there with its checksum, and what the wheel needs;
    references are unique, and no address of a registry occurs.
    """
    components = json.loads(COMMITTED.read_text())["components"]
    digests = {each["content"] for one in components for each in one.get("hashes", ())}
    lines = (ROOT / "workloads/hadoop-home/SHA256SUMS").read_text().splitlines()
    references = [each["bom-ref"] for each in components]

    scopes = {component["name"]: component["scope"] for component in components}

    assert {line[:64] for line in lines} <= digests
    assert (scopes["pydantic"], scopes["docker"]) == ("required", "optional")
    assert {"pydantic", "byte-buddy"} <= {each["name"] for each in components}
    assert len(references) == len(set(references))
    assert "://" not in COMMITTED.read_text()


@pytest.mark.process
def test_is_in_the_wheel(tmp_path):
    """
    A wheel carries it among its own data (PEP 770).
    """
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")

    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if ".dist-info/sboms/" in each)
        content = archive.read(name).decode()

    assert content == COMMITTED.read_text()
