"""Metrics by name: summaries, tables, the JSON report and `harness list metrics` follow."""

from __future__ import annotations

from functools import partial

from harness.base.records.score import Metric, Speed
from harness.scoring.metrics import calibration as lines
from harness.scoring.metrics import errors

_BOTH: tuple[Speed, ...] = ("raw", "reference")
_RAW: tuple[Speed, ...] = ("raw",)
_REFERENCE: tuple[Speed, ...] = ("reference",)
_of_line = lines.number_of_line
_robust = lines.robust_number

# Title, unit, what is best, how it is computed, what it is; `columns` and `brief`, if any.
METRICS: dict[str, Metric] = {
    "mape": Metric(
        "mean relative error", "share", "lowest", errors.mean_error,
        "|predicted - measured| / measured, mean over the cells (MAPE) with its 95 % interval, or"
        " the range of fewer than six cells; 10 % is good for a model of task phases",
        _BOTH, _BOTH),
    "signed_error": Metric(
        "signed", "signed share", "nearest to 0", partial(errors.mean_of, "signed_error"),
        "mean of the errors with their signs, + where the prediction is too long; near 0 the errors"
        " of the cells have no common direction", _BOTH, _REFERENCE),
    "in_sample": Metric(
        "in-sample", "signed share", "nearest to 0", partial(errors.mean_of, "in_sample_miss"),
        "by how much the model misses the profiling jobs that it learnt from, mean over the cells;"
        " known before anything is scored, + where it predicts too long; above 10 % it has no rank",
        _RAW, _RAW, optional=True),
    "levelled": Metric(
        "levelled", "share", "lowest", errors.levelled_error,
        "mean relative error once each prediction is divided by 1 + its in-sample miss, one number"
        " for a model and a workload; blind, as that is known before anything is scored", _BOTH,
        _REFERENCE, optional=True),
    "worst_error": Metric(
        "worst", "share", "lowest", partial(errors.summary_of, "relative_error", summarise=max),
        "largest relative error of a cell"),
    "noise_floor": Metric(
        "noise floor", "spread", "lowest", errors.noise_floor,
        "standard deviation of the mean of a cell's repeats as a share of it, median over the"
        " cells; errors below it cannot be distinguished from zero", _BOTH),
    "within_noise": Metric(
        "in noise", "cells", "highest", errors.within_noise,
        "cells whose error is smaller than their own noise floor", _RAW, _RAW),
    "i_accu": Metric(
        "I_accu", "points", "highest", partial(errors.mean_of, "i_accu_percent"),
        "error of whatif minus error of the model, mean over the cells, in percentage points;"
        " positive means more accurate than whatif", _RAW),
    "coverage_80": Metric(
        "in 80 %", "cells", "nearest to its level", partial(errors.coverage, "covered_80"),
        "cells whose measured mean lies in the interval predicted at 80 %; many fewer or more say"
        " that the profiling cells are not like the scored ones", _RAW),
    "coverage_90": Metric(
        "in 90 %", "cells", "nearest to its level", partial(errors.coverage, "covered_90"),
        "the same at 90 %, for which it takes nine profiling cells", _RAW),
    "calibration_slope": Metric(
        "slope", "number", "nearest to 1", partial(_of_line, "slope"),
        "slope of measured over predicted times; 1 means no proportional error"),
    "calibration_intercept_s": Metric(
        "intercept", "seconds", "nearest to 0", partial(_of_line, "intercept"),
        "measured time where the predicted one is 0; 0 s means no constant error"),
    "calibration_r2": Metric(
        "R\u00b2", "number", "nearest to 1", partial(_of_line, "r2"),
        "share of the variance of measured times that the line of predicted ones explains"),
    "calibration_exponent": Metric(
        "exponent", "number", "nearest to 1", partial(_of_line, "slope", logarithmic=True),
        "slope between the logarithms of both times; 1: errors do not grow with the size of a job"),
    "calibration_factor": Metric(
        "factor", "seconds", "nearest to 1", partial(_of_line, "intercept", logarithmic=True),
        "measured time of a job that is predicted to take 1 s, by the line between the logarithms;"
        " 1 s with exponent 1 means no proportional error"),
    "robust_slope": Metric(
        "robust slope", "number", "nearest to 1", partial(_robust, "slope"),
        "slope of measured over predicted times by Theil and Sen: a median over all pairs of cells,"
        " which a few odd cells do not move"),
    "robust_intercept_s": Metric(
        "robust intercept", "seconds", "nearest to 0", partial(_robust, "intercept"),
        "measured time where the predicted one is 0, by Theil and Sen"),
    "recalibrated_error": Metric(
        "recalibrated", "share", "lowest", lines.recalibrated_error,
        "mean error once each prediction is corrected by the calibration line of the cells of all"
        " other inputs: what is left when constant and proportional errors are gone"),
    "tau": Metric(
        "tau", "number", "highest", lines.order_of_configurations,
        "Kendall's tau-b over the configurations of one input: 1 where the model has their order, 0"
        " where it says nothing of it; times apart by less than their noise are ties"),
}  # fmt: skip

__all__ = ["METRICS"]
