"""
Each addition by its name, as users meet it; `test_additions.py` runs this with all patches in.
"""

import csv
import dataclasses
import io
import json

import pytest

from harness.base.documents.formats import render_html
from harness.base.errors import SpecError
from harness.base.records.trial import ClusterSpec
from harness.cli import main
from harness.clusters import PROVIDERS
from harness.core.reports import REPORTS
from harness.models.whatif.inputs import COSTS
from harness.nightly.alarms import CAUSES
from harness.observe.profiling import fit_profile
from harness.publish.rules import BundledRun
from harness.tuning.optimizers import search
from harness.tuning.settings import properties_of
from tests.profiling.jobs import grid
from tests.reports.conftest import document, whole  # noqa: F401 - fixtures
from tests.tuning.test_optimizers import PROFILE, job

pytestmark = pytest.mark.process  # a report draws
COMBINING = job(use_combiner=True)


def listed(capsys, kind):
    """
    Names that ``harness list`` shows of a *kind*.
    """
    assert main(["list", kind, "--json"]) == 0
    return [entry["name"] for entry in json.loads(capsys.readouterr().out)]


def test_the_cost_is_fitted_and_asked_for():
    """
    Profiles of jobs that combine have it, and the model takes it from there.
    """
    profile = fit_profile("w", [*grid(), *grid(combine=True)])

    assert "combine_cpu_s_per_spill" in COSTS
    assert "combine_cpu_s_per_spill" in profile.costs


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("metrics", "median_error"),
        ("models", "constant"),
        ("workloads", "copy"),
        ("providers", "solo"),
        ("reports", "csv"),
    ],
)
def test_the_list_has_it(kind, name, capsys):
    """
    ``harness list`` shows what is registered.
    """
    assert name in listed(capsys, kind)


def test_the_command_has_its_help(capsys):
    """
    And its line in the help of all.
    """
    assert main(["largest", "--help"]) == 0
    assert "harness largest experiments/quick.yaml" in capsys.readouterr().out
    assert main(["--help"]) == 0
    assert "  largest " in capsys.readouterr().out


def test_the_section_is_in_the_report(document):  # noqa: F811
    """
    In HTML by its id, in CSV by its caption.
    """
    sections = [each for each in document.sections if each.id == "largest-errors"]
    alone = dataclasses.replace(document, sections=sections, figure=None)

    assert 'id="largest-errors"' in render_html(alone)
    rows = [*csv.reader(io.StringIO(REPORTS["csv"].render(alone)))]
    assert ["Up to 3 cells of each model"] in rows


def test_the_setting_is_tuned():
    """
    Where a combiner runs: a search takes it into account, and writes it as its property.
    """
    name = "combine_min_spills"
    chosen = search(PROFILE, COMBINING, "whatif-mr2", evaluations=400)

    assert name in [setting.name for setting in COMBINING.space()]
    assert name not in [setting.name for setting in job().space()]
    assert chosen.evaluations <= 400
    assert properties_of({name: 5.0}) == {"mapreduce.map.combine.minspills": "5"}


def test_the_rule_and_the_cause_are_in_their_tables():
    """
    Their own tests break the one, and make the other happen.
    """
    assert "R18" in BundledRun.RULES
    assert "phase" in CAUSES


def test_the_provider_refuses_what_it_cannot_make():
    """
    Before anything is started.
    """
    with pytest.raises(SpecError, match="2 workers are more than the one"):
        PROVIDERS["solo"].look(ClusterSpec(workers=2))
