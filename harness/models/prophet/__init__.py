"""
MR. Prophet: a job whose tasks overlap their phases.

    [Lv17] Lv, Sun, Wang, Liu. "MR. Prophet", paper 001 of ``docs/models``.

What-If adds the phases of a task.  Here the map function runs beside the spill thread, and copiers
run beside a merger in memory and one on disk.  The paper gives equations for the first (five are
numbered) and Algorithm 1 for the second; all other phases are What-If's under mr2 rules.
Symbols, errata (P01 to P35) with what is done about each, and worked examples in
``docs/models/prophet.md``:

    `map_spill`   section 4: (u1) to (u17), (1) to (5)
    `shuffle`     section 5: Algorithm 1 as an event loop, its inputs, costs of a copy and a merge
    `tasks`       section 6: merge of a map, what follows the shuffle of a reduce; 6.1: the job
    `model`       the model behind the harness's contract: the profile as a cell sees it, answers to
                  vectors

(6), the accuracy indicator, is a score and not a prediction: see `harness.scoring.i_accu`.
"""
