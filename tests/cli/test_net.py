"""
Tests for `harness net`.
"""

import json
import subprocess
import sys

from xml.etree import ElementTree as ET

import pytest

from click.testing import CliRunner

from harness.cli.commands.models import net as command
from harness.cli.entry import main


def run(*words):
    """
    What the command does with these words.
    """
    return CliRunner().invoke(command, words)


@pytest.mark.parametrize("variant", ["shared_read", "shared_shuffle"])
def test_prints_the_papers_net(variant):
    """
    Three maps and two reduces, as in the paper's Figure 4: 23 places.
    """
    done = run("--format", "pnml", "--variant", variant)

    elements = ET.fromstring(done.stdout).iter()
    assert (done.exit_code, sum(e.tag.endswith("place") for e in elements)) == (0, 23)


def test_a_program_gets_it_with_its_title():
    """
    As a text in the format that was asked for.
    """
    answer = json.loads(run("--format", "pnml", "--json").stdout)

    assert (answer["format"], answer["title"]) == ("pnml", "SPN-GC, shared_read: 3 maps, 2 reduces")
    assert ET.fromstring(answer["net"]).tag.endswith("pnml")


def test_takes_means_by_phase():
    """
    A phase of no time is immediate, the others have their means.
    """
    done = run("--format", "pnml", "--mean", "t4_gpu_s", "4", "--mean", "t2_read_s", "0")
    nodes = [e for e in ET.fromstring(done.stdout).iter() if e.tag.endswith("}transition")]
    timings = {
        node.get("id"): part.attrib
        for node in nodes
        for part in node.iter()
        if part.tag.endswith("}timing")
    }

    assert timings["gpu_1"] == timings["gpu_3"] == {"kind": "exponential", "mean": "4.0"}
    assert timings["read"]["kind"] == "immediate"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--mean", "t4", "1"], "'t4' is not one of"),
        (["--mean", "t4_gpu_s", "-1"], "invalid value for '--mean'"),
        (["--maps", "0"], "invalid value for '--maps'"),
        (["--maps", "99999999", "--format", "pnml"], "is too large to list"),
    ],
)
def test_says_what_is_wrong(words, complaint, capsys):
    """
    Status 2, and a line that names it.
    """
    assert main(["net", *words]) == 2
    assert complaint in capsys.readouterr().err


READER = """
import sys, warnings
warnings.simplefilter("ignore")
import pm4py
net, start, _ = pm4py.read_pnml(sys.argv[1])
enabled = pm4py.objects.petri_net.semantics.enabled_transitions(net, start)
print(len(net.places), len(net.transitions), len(net.arcs), start, sorted(t.name for t in enabled))
"""


@pytest.mark.process
def test_other_programs_read_the_standard_form(tmp_path):
    """
    pm4py finds the net: its nodes, its arcs, its marking, and what may fire first.
    """
    file = tmp_path / "net.pnml"
    file.write_text(run("--format", "pnml", "--variant", "shared_read").stdout)
    words = [sys.executable, "-c", READER, str(file)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)

    assert done.stdout.strip().splitlines()[-1] == "23 21 47 ['start:1'] ['load']"
