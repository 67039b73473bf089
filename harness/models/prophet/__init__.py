"""
MR. Prophet: a job whose tasks overlap their phases.

    [Lv17] Lv, Sun, Wang, Liu. "MR. Prophet", paper 001 of ``docs/models``.

What-If adds the phases of a task.  Here the map function runs beside the spill thread, and copiers
run beside a merger in memory and one on disk.  The paper gives equations for the first (five are
numbered) and Algorithm 1 for the second; all other phases are What-If's under mr2 rules.
Specification, errata (P01 to P35) and worked examples in ``docs/models/prophet.md``:

    `map_spill`   section 4: (u1) to (u17), (1) to (5)
    `shuffle`     section 5: Algorithm 1 as an event loop, its inputs, costs of a copy and a merge
    `tasks`       section 6: merge of a map, what follows the shuffle of a reduce; 6.1: the job
    `model`       the model behind the harness's contract: the profile as a cell sees it, answers to
                  vectors

(6), the accuracy indicator, is a score and not a prediction: see `harness.scoring.i_accu`.

    paper            here                               unit      meaning
    ---------------  ---------------------------------  --------  --------------------------------
    mn_d, mib_d      `map_in_{records,bytes}`           rec, B    input of a map task
    mrs_ds, mbs_ds   `map_{records,bytes}_selectivity`  1         output / input; one per machine
    mb_p, st_p       `sort_buffer_mb`, `sort_spill_percent`       sort buffer, spill threshold
    s_cs, c_cs       `{sort,combine}_s_per_record`      s/rec     of a spill; one per machine
    w_cs             `spill_write_s_per_byte`           s/B       per byte of a spill file
    cb_ds            `combine_bytes_selectivity`        1         file / buffer, codec included
    m_cs, mws_cs     `map[_while_spilling]_s_per_record`  s/rec   one call without, with a spill
    nc_p             `parallel_copies`                  1         copiers, one for each host
    mssl_p, mt_p     `shuffle_{segment_limit,merge}_percent`  1   of the shuffle buffer
    sf_p, F          `merge_factor`                     files     merged at once, from 2F - 1 on
    mapOutputs       `groups`                           -         a wave's map outputs of a machine
    T_s[out]         `finish_s`                         s         since the copying started
    rps_d, ns_d      `records_per_spill`, `spill_thread_spills`   full spill; N - 1
    os_c, s_c, ls_c  `one_spill_s`, `spill_s`, `last_spill_s`     seconds of spills
    mws_c            `map_while_one_spill_s`, `map_while_spilling_s`    its two uses (P03)
    mns_c, otms_c    `map_while_not_spilling_s`, `overlap_s`      s
    mas_c            `map_and_spill_s`                  s         (1)
    T_c, T_m, T_d    `{copy,memory_merge,disk_merge}_clock_s`     s

Departures from the paper: typing errors and contradictions (P01 to P03, P08, P09, P11 to P14, P18,
P20) are corrected, undefined cases guarded (P04 to P06, P17, P19, P21, P22, P31, P34, P35), and the
merges of the shuffle are Hadoop's (P15, P16, P32, P33).  A map's measured start is added as the
specification allows (`startup_s`); a reduce's is added likewise, before its copying starts.
"""
