"""
Tests for the JSON, Markdown and terminal reports, and for the tables they share.
"""

import dataclasses
import json
import re
import subprocess
import sys

import pytest

from harness.reports import REPORTS
from harness.reports.data import in_order, insides
from harness.reports.inside import bars
from harness.reports.json_report import render_json
from harness.reports.markdown import escape, render_markdown
from harness.reports.method import flatten, manifest_table, trial_table
from harness.reports.profile_tables import correction_text, scaled, statistics_table
from harness.reports.tables import signed_tone, table
from harness.reports.terminal import render_terminal


class TestJson:
    def test_holds_every_score_exactly(self, whole):
        """
        A script reads back each score as it was computed.
        """
        document = json.loads(render_json(whole))

        assert [{k: v for k, v in s.items() if k != "label"} for s in document["scores"]] == [
            s.model_dump(mode="json") for s in whole.book.scores
        ]

    def test_answers_the_question(self, whole):
        """
        Question, answer, failed trials with evidence, and manifest are there.
        """
        document = json.loads(render_json(whole))

        assert document["schema_version"] == 1
        assert document["question"] == whole.experiment.question
        assert document["answer"]["headline"].startswith("whatif-mr2 is nearest")
        assert [t["evidence"] for t in document["failed_trials"]] == [
            f"trials/{r.trial.id}/raw" for r in whole.trials if r.state != "done"
        ]
        assert document["manifest"] == json.loads(json.dumps(whole.manifest))

    def test_holds_where_the_time_went(self, whole):
        """
        The bars of the HTML report with their sources and estimates, and what logs tell.
        """
        first, second = json.loads(render_json(whole))["inside"]
        (_, inside), _ = insides(whole)
        (bar, *_) = bars(inside.parts)

        assert first["parts"][0] == {
            "kind": "map", "host": "", "tasks": 8, "source": "spans",
            "seconds": dict(bar.seconds), "estimated": ["collect", "map_function"],
            "total_s": bar.total_s,
        }  # fmt: skip
        ratios = {d["name"]: d["ratio"] for d in first["logs_beside_spans"]}
        assert ratios["map_s_per_record"] == pytest.approx(2.0)
        assert second == {
            "trial": whole.timelines[1][0].trial.id, "workload": "terasort",
            "parts": [], "logs_beside_spans": [],
        }  # fmt: skip

    def test_numbers_that_are_none_become_null(self, whole):
        """
        JSON has no infinity; strict parsers must be able to read the report.
        """
        data = dataclasses.replace(whole, manifest={"load": float("inf"), "list": [float("nan")]})

        assert json.loads(render_json(data))["manifest"] == {"load": None, "list": [None]}


class TestMarkdown:
    def test_tables_are_rectangular(self, whole):
        """
        Each row of a table has as many bars as its rule.
        """
        blocks = [b for b in render_markdown(whole).split("\n\n") if b.startswith("|")]
        bars = [{line.replace("\\|", "").count("|") for line in b.splitlines()} for b in blocks]

        assert len(blocks) > 10
        assert all(len(b) == 1 for b in bars)

    def test_holds_every_cell_and_failed_trial(self, whole):
        """
        Scored cells and failed trials all occur.
        """
        text = render_markdown(whole)
        names = {whole.cells[s.cell][1] for s in whole.book.scores}
        names |= {r.trial.id for r in whole.trials if r.state != "done"}

        assert [n for n in names if n not in text] == []

    def test_holds_where_the_time_went(self, whole):
        """
        Each part of the bars is a row, and what logs tell otherwise is another table.
        """
        text = render_markdown(whole)

        assert "## Where the time of a job went" in text
        assert re.search(r"\| map \| worker1 \| blocked: buffer full \| [0-9.]+ \| 6.\d % ", text)
        assert re.search(r"\| map\\_s\\_per\\_record \| .* \| \+100 % \|", text)

    def test_a_link_is_only_text(self):
        """
        Addresses from outside do not become links.
        """
        assert escape("see http://a.b [x](y)") == "see http&#58;//a.b \\[x\\](y)"


class TestTerminal:
    def test_table_of_a_run(self, whole):
        """
        One line per workload and model, the answer, and why trials failed.
        """
        lines = render_terminal(whole).splitlines()
        failed = [r.trial.id for r in whole.trials if r.state != "done"]

        assert lines[0].split("  ")[0] == "workload"
        assert [tuple(line.split()[:2]) for line in lines[1:7]] == [
            (w, m) for w in ("wordcount", "terasort", "all") for m in ("whatif", "whatif-mr2")
        ]
        assert lines[8].startswith("whatif-mr2 is nearest")
        assert [line.split()[0] for line in lines[10:]] == failed

    def test_is_plain_ascii_for_plain_names(self, whole):
        """
        A terminal of any encoding can show it.
        """
        assert render_terminal(whole).isascii()


class TestTables:
    def test_rows_must_fit_their_head(self):
        """
        A row that is too short is a mistake of ours, found where it is made.
        """
        with pytest.raises(ValueError, match="do not fit its 2 columns"):
            table("t", ("a", "b"), "lr", [("only",)])

    @pytest.mark.parametrize(
        ("error", "floor", "tone"),
        [(-0.05, None, "low1"), (0.15, 0.02, "high2"), (0.3, 0.02, "high3"), (0.3, 0.4, "")],
    )
    def test_shade_follows_the_error_beyond_its_noise(self, error, floor, tone):
        """
        Errors inside their noise floor are not shaded.
        """
        assert signed_tone(error, floor) == tone

    def test_costs_are_shown_in_units_that_read_well(self, whole):
        """
        Seconds per byte become nanoseconds, with no digit that the spread denies.
        """
        shown = statistics_table("costs", whole.profiles["wordcount"].costs)
        texts = [tuple(v.text for v in row[:4]) for row in shown.rows[:2]]

        assert texts == [
            ("hdfs_read_s_per_byte", "1.9", "0.3", "ns/B"),
            ("map_cpu_s_per_record", "7.41", "0.18", "\u00b5s/record"),
        ]

    @pytest.mark.parametrize(
        ("name", "unit"),
        [("shuffle_bytes_per_s_compressed", "MiB/s"), ("network_bps", "MiB/s"),
         ("map_startup_s", "s"),
         ("spill_s_per_record_compressed", "µs/record"), ("map_overlap_share", "")],
    )  # fmt: skip
    def test_every_statistic_has_its_unit(self, name, unit):
        """
        Rates are told from times, and compression changes no unit.
        """
        assert scaled(name)[1] == unit

    def test_correction_without_gain_is_said_to_do_nothing(self, whole):
        """
        A coefficient of zero is no correction, and the report says why.
        """
        speed = whole.profiles["terasort"].speed

        assert "shows no gain" in correction_text("terasort", speed)
        assert "no speed was measured" in correction_text("terasort", None)

    def test_manifest_is_shown_in_units_for_people(self, whole):
        """
        Times are dates, bytes have a unit, a command line is one line.
        """
        shown = {row[0].text: row[1].text for row in manifest_table(whole).rows}

        assert shown["started_s"] == "2026-01-01 00:00:00 UTC"
        assert shown["hardware.memory_bytes"] == "24 GiB"
        assert shown["command_line"] == "harness all experiments/quick.yaml"

    def test_empty_mapping_is_a_leaf(self):
        """
        Nothing of a manifest is lost, not even an empty entry.
        """
        assert list(flatten({"a": {}, "b": {"c": None}})) == [("a", {}), ("b.c", None)]


def test_given_order_beats_the_clock(whole):
    """
    Trials stand as the run ordered them; those it does not name follow by their start.
    """
    first, second, third = (r.trial.id for r in whole.trials[:3])
    data = dataclasses.replace(whole, trials=whole.trials[:3], order=(third, first))

    assert [r.trial.id for r in in_order(data)] == [third, first, second]


def test_reports_are_light_until_they_render():
    """
    Listing the reports imports neither matplotlib nor jinja2.
    """
    code = (
        "import sys, harness.reports; print({'matplotlib', 'jinja2', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"


def test_every_report_is_described():
    """
    What `harness list reports` shows is one line for each.
    """
    assert all(r.description and "\n" not in r.description for r in REPORTS.values())


@pytest.mark.parametrize(("device", "told"), [("cpu", True), ("cuda", False), ("", False)])
def test_a_processor_is_never_called_a_gpu(whole, device, told):
    """
    Trials in which it did the work of a device are told, above the tables and in each row.
    """
    trials = [r.model_copy(update={"device": device}) for r in whole.trials]
    data = dataclasses.replace(whole, trials=trials)
    words = "the processor did the work of a device (device=cpu)"
    remarks = {row[-1].text for row in trial_table(data).rows}

    assert (words in render_markdown(data)) == told
    assert (f"device={device}" in remarks) == bool(device)
