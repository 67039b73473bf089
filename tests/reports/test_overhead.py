"""
What every report says of the tracer's cost.
"""

import dataclasses
import json

import pytest

from harness.records.trial import Tracing
from harness.reports import REPORTS
from harness.reports.data import ReportData
from harness.reports.method import manifest_table
from harness.reports.overhead import overhead_texts, overheads


def traced_by(data, mode):
    """
    The same run with another mode of tracing.
    """
    asked = data.experiment.model_copy(update={"tracing": Tracing(mode=mode)})
    return dataclasses.replace(data, experiment=asked)


def with_entry(data, entry):
    """
    The same run whose manifest tells of the cost by *entry*.
    """
    return dataclasses.replace(data, manifest={**data.manifest, "tracer_overhead": entry})


def test_a_sentence_for_each_workload_of_the_mode_that_was_used(whole):
    """
    The share with its interval, the tasks that it rests on, and its date.
    """
    texts = overhead_texts(whole)

    assert texts[0] == (
        "Recording spans adds +0.4 % (95 % interval -0.6 to +1.4 %) to the CPU time of a map of"
        " wordcount: 96 tasks with it and 95 without, mixed within the same jobs, on this machine;"
        " measured 2025-12-31."
    )
    assert [("terasort" in t, "+2.0 %" in t) for t in texts] == [(False, False), (True, True)]
    assert ["+2.0 % (95 % interval +1.0 to +3.0 %)" in t for t in overhead_texts(
        traced_by(whole, "units"))] == [True]  # fmt: skip


@pytest.mark.parametrize("mode", ["logs", "off"])
def test_without_the_tracer_there_is_no_cost(whole, mode):
    """
    What ran no tracer paid nothing for it, whatever was measured.
    """
    assert overhead_texts(traced_by(whole, mode)) == [
        "No tracer ran in the tasks, so it cost them nothing."
    ]


@pytest.mark.parametrize(
    "entry",
    [None, [], {}, "much", [1], [{"workload": "wordcount"}], [[]], {"a": [{"share": 1}]}],
    ids=str,
)
def test_what_is_not_known_is_said_with_the_command_that_measures_it(whole, entry):
    """
    An old manifest has no such entry, and one that is none of ours tells nothing.
    """
    (text,) = overhead_texts(with_entry(whole, entry))

    assert "had not been measured" in text
    assert "harness trace selftest --overhead 30" in text


def test_a_cost_of_no_number_is_not_told(whole):
    """
    What cannot be a share is refused with the entry that holds it.
    """
    entry = [{**e, "share": float("nan")} for e in whole.manifest["tracer_overhead"]]

    assert overheads(with_entry(whole, entry)) == []


@pytest.mark.parametrize("name", ["html", "markdown"])
@pytest.mark.parametrize("known", [True, False])
def test_stands_in_every_report(whole, name, known):
    """
    HTML and Markdown have the sentences, known or not.
    """
    manifest = whole.manifest if known else {}
    text = REPORTS[name].render(ReportData(whole.experiment, manifest=manifest))

    assert ("measured 2025-12-31" in text.replace("\\", "")) == known
    assert ("selftest --overhead 30" in text) != known


def test_json_has_the_numbers_of_the_mode(whole):
    """
    As the manifest holds them, which has the other modes, too.
    """
    document = json.loads(REPORTS["json"].render(whole))

    every = document["manifest"]["tracer_overhead"]
    assert document["tracer_overhead"] == [e for e in every if e["mode"] == "spans"]
    assert len(every) == 3


def test_the_table_of_the_manifest_leaves_it_out(whole):
    """
    A list of records in a row of a table is read by nobody.
    """
    assert not [row for row in manifest_table(whole).rows if "tracer" in row[0].text]
