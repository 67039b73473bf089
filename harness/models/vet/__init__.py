"""
Vet: how far a finished job is from its ideal, from the times of its records.

    [Kim] J. Kim, W. Baek, J. Lee. "Measuring the Optimality of Hadoop Optimization".

Vet is a measure and predicts nothing: symbols, errata (V01 to V19) with what is done about each,
and worked examples in ``docs/models/vet.md``.  One function is one equation:

    `change_point`  (1)            where ordered unit times leave their line
    `equations`     (2) to (5)     ideal, overhead and vet of a task; buckets (3.6)
                    (6)            vet of a job; Pearson, Kolmogorov-Smirnov
                    (7), (8)       Hill's estimate of the tail
    `assessment`    -              all of it, for the tasks of a job, one after the other;
                                   curves for a drawing, answers to test vectors
                    section 5      does the measure apply: one spill per map

Where the specification says nothing, the flag `negative_overhead` needs an overhead beyond
rounding, and times too large to be squared (above 1e100 s) are refused.
"""
