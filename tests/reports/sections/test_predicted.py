"""
Tests for `harness.reports.sections.predicted`.
"""

import dataclasses

from harness.reports.sections.predicted import scatter_panel, scored_panels


def test_intervals_and_the_line_stand_beside_the_times(whole):
    """
    What too few profiling cells cannot bound is said to be unbounded.
    """
    intervals = {"job_s": {"80": (10.0, 20.0), "90": None}}
    predictions = [p.model_copy(update={"intervals": intervals}) for p in whole.predictions]
    data = dataclasses.replace(whole, predictions=predictions)

    model, scores, limits = scored_panels(data)[0]
    panel = scatter_panel(data, model, scores, limits)

    assert {row[-2] for row in panel.data.texts()} == {"10.0 to 20.0"}
    assert {row[-1] for row in panel.data.texts()} == {"unbounded"}
    assert "measured = " in panel.caption
