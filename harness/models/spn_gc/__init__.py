"""
SPN-GC: a stochastic Petri net for MapReduce on clusters with GPUs.

    [HCC] Y. Hung, S.-T. Cheng, C.-M. Chen. "Estimation of Job Execution Time in MapReduce
    Framework over GPU clusters".

From one small test job and the rates of the hardware: nine phase means, a net whose transitions
have them as exponential delays, and the mean time of 2000 runs of that net.  Symbols, errata (S01
to S31) with what is done about each, and worked examples in ``docs/models/spn-gc.md``; pictures of
the net, and what its exponential delays do, in ``docs/models/spn-gc-net.md``.

    `phases`      (5) to (14)       phase means, both rule sets; ranges and defaults of all inputs
    `net`         (1), (2)          the net as data; with delays (3), (4) for `harness.models.sim`
    `estimates`   section 4         simulated, expected, with slots
    `model`       -                 the model behind the harness's contract

Two rule sets: ``paper`` is the published model, ``mr2`` the same with Hadoop 3's mechanics.
"""
