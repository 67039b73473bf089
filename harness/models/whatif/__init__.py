"""
What-If: dataflow and time of every phase of a map and of a reduce task, and the job time.

    [Her11] H. Herodotou. "Hadoop Performance Models". Technical report CS-2011-05,
    Duke University, 2011.

94 numbered equations; specification, errata (W01 to W40) and worked examples in
``docs/models/whatif.md``.  One function is one equation, or a few that are one thought; it takes
numbers, or arrays with one number per configuration:

    `map_task`      (2) to (36)    read, map, collect, spill, merge
    `shuffle`       (37) to (64)   segments, shuffle files, merges meanwhile
    `reduce_task`   (65) to (89)   merge in three steps, reduce, write
    `evaluation`    (90) to (94)   tasks, stages, job; the counters of section 7; `evaluate` of one
                                   configuration, `evaluate_grid` of very many
    `harness.models.merge`         (21) to (23), (26)
    `inputs`        (1)            ranges and defaults of all inputs
    `model`         -              the model behind the harness's contract, answers to vectors;
                                   the phases as a job history shows them

Three rule sets: ``paper`` is the printed form, ``engine`` what its author's engine computes (mean
spills, setup and cleanup, whole waves), ``mr2`` the same with Hadoop 3's mechanics.

    paper                    here                             unit      meaning
    -----------------------  -------------------------------  --------  --------------------------
    pNumMappers, M           `num_maps`                       1         map tasks
    pNumReducers, R          `num_reduces`                    1         reduce tasks
    pSplitSize               `split_bytes`                    B         input of a map, as stored
    pSortMB, pSpillPerc      `sort_buffer_mb`, `sort_spill_percent`     sort buffer, spill threshold
    pSortRecPerc             `sort_record_percent`            1         share for metadata (paper)
    pSortFactor, F           `merge_factor`                   files     merged at once
    pNumSpillsForComb        `combine_min_spills`             1         spills that make a combine
    pTaskMem                 `reduce_heap_bytes`              B         heap, not container (W17)
    pShuffleInBufPerc        `shuffle_buffer_percent`         1         of the heap
    pShuffleMergePerc        `shuffle_merge_percent`          1         of the shuffle buffer
    (25 %)                   `shuffle_segment_limit_percent`  1         of the shuffle buffer
    pInMemMergeThr           `inmem_merge_segments`           1         segments (paper rules)
    pReducerInBufPerc        `reduce_buffer_percent`          1         kept while reducing
    dsInputPairWidth         `input_record_bytes`             B/record  width of an input record
    dsMapSizeSel, ...RecsSel `map_{bytes,records}_selectivity`      1   output / input of map
    dsCombine...Sel          `combine_{bytes,records}_selectivity`  1   after / before the combiner
    dsReduce...Sel           `reduce_{bytes,records}_selectivity`   1   output / input of reduce
    dsIntermCompressRatio, k `map_output_compression_ratio`   1         compressed / uncompressed
    dsInputCompressRatio     `input_compression_ratio`        1         compressed / uncompressed
    dsOutCompressRatio       `output_compression_ratio`       1         compressed / uncompressed
    dsRecsPerRedGroup        `records_per_reduce_group`       1         records per key
    csHdfs{Read,Write}Cost   `hdfs_{read,write}_s_per_byte`   s/B       stored bytes
    csLocalIO{Read,Write}... `local_{read,write}_s_per_byte`  s/B       stored bytes
    csNetworkCost            `network_s_per_byte`             s/B       compressed bytes
    cs...CPUCost             `{map,reduce,combine,partition,serde,merge}_cpu_s_per_record`
                                                              s/record  records that go in
    csSortCPUCost            `sort_cpu_s_per_record`          s/record  and per log2 level (W39)
    cs...UncomprCPUCost      `..._decompress_s_per_byte`      s/B       compressed bytes (W05)
    cs...ComprCPUCost        `..._compress_s_per_byte`        s/B       uncompressed bytes (W05)
    csSetup, csCleanup...    `setup_cpu_s`, `cleanup_cpu_s`   s/task    not as printed (W04)
    dNumSpills, n            `num_spills`                     1         spills of a map task
    tNumShuffleFiles, q      `num_shuffle_files`              1         files that a shuffle makes
    totalMapTime (90)        `map_task_s`                     s         one map task
    totalReduceTime (91)     `reduce_task_s`                  s         one reduce task
    totalJobTime (94)        `job_s`                          s         the job

Departures from the paper, all rule sets: typing errors and contradictions (W01, W02, W06, W14 to
W16, W22, W33, W36, W39) are corrected, undefined cases guarded (W03, W05, W07, W08, W11, W12, W17,
W19 to W21, W27, W29, W38).  As in the author's engine and under mr2 rules: mean spills (W10), setup
and cleanup (W04), whole waves (W34), costs of each side (W40).  Under mr2 rules only: one sort
buffer (W09), the combiner's test on the number of spills (W13), Hadoop 3's segment limit (W18,
W20), merges on disk by simulation (W23, W24), merge cost before the combiner (W25), share of the
shuffle buffer (W26), evicted segments in the first pass (W28, W32), no intermediate reads in step 3
(W30).  W31, W35 and W37 are as printed.
"""
