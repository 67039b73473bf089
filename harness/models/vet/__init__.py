"""
Vet: how far a finished job is from its ideal, from the times of its records.

    [Kim] J. Kim, W. Baek, J. Lee. "Measuring the Optimality of Hadoop Optimization".

Vet is a measure and predicts nothing: specification, errata (V01 to V19) and worked examples in
``docs/models/vet.md``.  One function is one equation:

    `change_point`  (1)            where ordered unit times leave their line
    `equations`     (2) to (5)     ideal, overhead and vet of a task; buckets (3.6)
                    (6)            vet of a job; Pearson, Kolmogorov-Smirnov
                    (7), (8)       Hill's estimate of the tail
    `assessment`    -              all of it, for the tasks of a job, one after the other;
                                   curves for a drawing, answers to test vectors
                    section 5      does the measure apply: one spill per map

    paper          here                 unit    meaning
    -------------  -------------------  ------  -------------------------------------------------
    X_i            `unit_seconds`       s       time of the i-th unit of records
    n              `unit_count`         1       units of the task
    Y_i            `ordered`            s       i-th smallest time
    omega          `omega`              1       at least so many units on each side
    t-hat          `split`              1       units on the left side
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
means beside the mean of ratios (V09).  `cap_at_observed` and `buckets` are off unless set, although
on heavy tails the printed estimate is biased towards 1 (V18).  A higher-order polynomial on each
side, which the paper names and does not need, is left out, and so are the pictures of the tail
(Hill plot, emplot, bucket view) beside its index; section 5 serves the flag `multi_spill` alone.
Where the specification says nothing,
the flag `negative_overhead` needs an overhead beyond rounding, and times too large to be squared
(above 1e100 s) are refused.
"""
