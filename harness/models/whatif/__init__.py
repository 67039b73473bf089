"""
What-If: dataflow and time of every phase of a map and of a reduce task, and the job time.

    [Her11] H. Herodotou. "Hadoop Performance Models". Technical report CS-2011-05,
    Duke University, 2011.

94 numbered equations; symbols, rule sets, errata (W01 to W40) with what is done about each, and
worked examples in ``docs/models/whatif.md``.  One function is one equation, or a few that are one
thought; it takes numbers, or arrays with one number per configuration:

    `map_task`      (2) to (36)    read, map, collect, spill, merge
    `shuffle`       (37) to (64)   segments, shuffle files, merges meanwhile
    `reduce_task`   (65) to (89)   merge in three steps, reduce, write
    `evaluation`    (90) to (94)   tasks, stages, job; the counters of section 7; `evaluate` of one
                                   configuration, `evaluate_grid` of very many
    `harness.models.merge`         (21) to (23), (26)
    `inputs`        (1)            ranges and defaults of all inputs
    `model`         -              the model behind the harness's contract, answers to vectors;
                                   the phases as a job history shows them
"""
