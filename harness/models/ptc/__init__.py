"""
Producer-Transporter-Consumer (PTC): job time where the shuffle hides behind the waves of maps.

    [Shi14] J. Shi, J. Zou, J. Lu, Z. Cao, S. Li, C. Wang. "MRTuner: A Toolkit to Enable Holistic
    Optimization for MapReduce Jobs". PVLDB 7(13), 2014.

The producer is the map stage, the transporter copies (network, and the local reads and writes of
what is copied), the consumer is the reduce stage.  Only the first wave of reduces copies while maps
run.  Specification, errata (R01 to R17) and worked examples in ``docs/models/mrtuner-ptc.md``.

    `equations`     (1) to (4)   producer, transporter, consumer, job; waves equal or not
    `quantities`    section 4    the times of a wave from tasks, bytes and rates; those from a
                                 profile, with What-If's tasks and bytes
    `model`         -            the model behind the harness's contract, answers to vectors

Two methods: ``wave`` follows the window of the first reduce wave from wave to wave, ``closed`` is
the paper's closed form, which spreads the copying threads' load over waves that have none (R05).

    paper               here                            unit  meaning
    ------------------  ------------------------------  ----  -------------------------------------
    N_ms, N_rs          `map_slots`, `reduce_slots`     1     tasks at once in the cluster
    m, r                `map_waves`, `reduce_waves`     1     waves of maps, of reduces
    v                   `copy_bps_total`                B/s   network rate of a whole reduce wave
    c                   `map_output_compressed`         -     enters through bytes and task times
    D_s                 `shuffle_bytes_total`           B     copied by the whole job, as stored
    t_map               `map_s`                         s     map stage without any copying
    t_cs                `context_switch_s`              s     what copying threads slow maps down
    t_schedule          `schedule_{map,reduce}_wave_s`  s     start and end of the tasks of a wave
    t_lrw               `local_io_s`, `local_io`        s     reading and writing what is copied
    t_s                 `network_copy_wave_s`           s     copying one map wave's output
    t_reduce            `reduce_s`                      s     all reduce waves, after their shuffle
    B_r                 `reduce_buffer_bytes_per_wave`  B     input that a reduce wave has in memory
    t_ov                `overlap_window_s`              s     maps run and the first wave copies
    D_ov                `overlap_capacity_s`            s     time to copy all that it could then
    t_nov1 (proof)      `leftover_s`                    s     what the window was too short for
    t_nov1 (Figure 4)   `nonoverlap_first_wave_s`       s     the same with the last map wave's part
    t_s2                `rest_transfer_s`               s     copying of all outside the overlap
    T_producer, ...     `producer_s`, `transporter_s`, `consumer_s`, `total_s`      s

Departures from the paper.  The copy that the specification rests on has lost all operators, and
all from section 5.1 on.  Corrected and checked with the five examples of Figure 4: R01 to R04, R06,
R07.  Ours, for lack of text: section 4 (times from cluster and profile, in `quantities`), map-only
jobs, late starts of the reduces (section 7) and what follows from them for the closed form.
"""
