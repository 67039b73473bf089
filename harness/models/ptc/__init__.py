"""
Producer-Transporter-Consumer (PTC): job time where the shuffle hides behind the waves of maps.

    [Shi14] J. Shi, J. Zou, J. Lu, Z. Cao, S. Li, C. Wang. "MRTuner: A Toolkit to Enable Holistic
    Optimization for MapReduce Jobs". PVLDB 7(13), 2014.

The producer is the map stage, the transporter copies (network, and the local reads and writes of
what is copied), the consumer is the reduce stage.  Only the first wave of reduces copies while maps
run.  Symbols, errata (R01 to R17) with what is done about each, and worked examples in
``docs/models/mrtuner-ptc.md``.

    `equations`     (1) to (4)   producer, transporter, consumer, job; waves equal or not
    `quantities`    section 4    the times of a wave from tasks, bytes and rates; those from a
                                 profile, with What-If's tasks and bytes
    `model`         -            the model behind the harness's contract, answers to vectors

Two methods: ``wave`` follows the window of the first reduce wave from wave to wave, ``closed`` is
the paper's closed form, which spreads the copying threads' load over waves that have none (R05).
"""
