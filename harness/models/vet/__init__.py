"""
Vet: how far a finished job is from its ideal, from the times of its records.

    [Kim] J. Kim, W. Baek, J. Lee. "Measuring the Optimality of Hadoop Optimization".

No model but a measure: specification, errata (V01 to V19) and worked examples in
``docs/models/vet.md``.  One function is one equation:

    `change_point`  (1)            where ordered unit times leave their line
    `task`          (2) to (5)     ideal, overhead and vet of a task; buckets (3.6)
    `job`           (6)            vet of a job; Pearson, Kolmogorov-Smirnov
    `tail`          (7), (8)       Hill's estimate, emplot, bucket view
    `spill`         section 5      does the measure apply: one spill per map
    `assessment`    -              all of it, for the tasks of a job, one after the other
    `curve`         -              a task's units and its ideal, for a drawing

    paper          here                 unit    meaning
    -------------  -------------------  ------  -------------------------------------------------
    X_i            `unit_seconds`       s       time of the i-th unit of records
    n              `n`                  1       units of the task
    Y_i            `ordered`            s       i-th smallest time
    omega          `omega`              1       at least so many units on each side
    t-hat          `change_point`       1       units on the left side
    d              `slope_s`            s       Y_t - Y_{t-1}, the step of the ideal line
    g-hat(r)       `ideal`              s       Y_r up to t, then the line through the last two
    PR             `profiled_real_s`    s       sum of all units
    EI             `estimated_ideal_s`  s       sum of the ideal
    OC             `overhead_s`         s       PR - EI
    vet_task       `vet`                1       PR / EI
    vet_job        `vet_job`            1       mean of vet_task
    H(k), alpha    `mean_log_excess`, `alpha`   mean log excess of the k largest, tail index

Departures from the paper: typing errors are corrected (V01 to V04), undefined cases guarded (V07,
V08, V19 and section 4); the median and the quartiles stand beside the mean (V15), the ratio of
means beside the mean of ratios (V09).  Off unless asked for: `cap_at_observed` and `buckets`, for
on heavy tails the printed estimate is biased towards 1 (V18).  A higher-order polynomial on each
side, which the paper names and does not need, is not made.  Two choices of ours where the
specification is silent: the flag `negative_overhead` needs an overhead beyond rounding, and what
is too large to be squared (above 1e100 s) is refused.
"""

from harness.models.vet.assessment import assess
from harness.models.vet.job import ks_two_sample, pearson, vet_job
from harness.models.vet.spill import single_spill_check
from harness.models.vet.tail import bucket_view, emplot, hill, hill_plot, tail_index
from harness.models.vet.task import vet_task

__all__ = [
    "assess",
    "bucket_view",
    "emplot",
    "hill",
    "hill_plot",
    "ks_two_sample",
    "pearson",
    "single_spill_check",
    "tail_index",
    "vet_job",
    "vet_task",
]
