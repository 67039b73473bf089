"""
SPN-GC: a stochastic Petri net for MapReduce on clusters with GPUs.

    [HCC] Y. Hung, S.-T. Cheng, C.-M. Chen. "Estimation of Job Execution Time in MapReduce
    Framework over GPU clusters".

From one small test job and the rates of the hardware: nine phase means, a net whose transitions
have them as exponential delays, and the mean time of 2000 runs of that net.  Specification, errata
(S01 to S31) and worked examples in ``docs/models/spn-gc.md``; pictures of the net, and what its
exponential delays do, in ``docs/models/spn-gc-net.md``.

    `phases`      (5) to (14)       phase means, both rule sets; ranges and defaults of all inputs
    `net`         (1), (2)          the net as data; with delays (3), (4) for `harness.sim`
    `estimates`   section 4         simulated, expected, with slots
    `model`       -                 the model behind the harness's contract

Two rule sets: ``paper`` is the published model, ``mr2`` the same with Hadoop 3's mechanics.

    paper                      here                                   unit   meaning
    -------------------------  -------------------------------------  -----  ----------------------
    D_input, D_test            `input_bytes`, `test_input_bytes`      B      of job and test job
    D_split                    `split_bytes`                          B      input of a map
    M, R                       `num_maps`, `num_reduces`              1      tasks
    A_j                        `local_read_fraction`                  1      share of local splits
    T_load, T_upload           `load_s`, `upload_s`                   s      once per job
    T_m, T_r                   `map_s`, `reduce_s`                    s      functions, on the CPU
    T_m_GPU                    `map_gpu_s`                            s      on the device (S06)
    (text)                     `reduce_uses_gpu`, `reduce_gpu_s`      -, s   reduce on the GPU
    CPU_test/CPU_i, GPU_...    `cpu_ratio`, `gpu_ratio`               1      test machine / machine
    D_map, D_mapoutput         `test_map_bytes`, `test_map_output_bytes`  B  of all test maps
    D_red                      `test_reduce_bytes`                    B      output of the test job
    Map_spiller_records        `test_map_spilled_records`             1      of all test maps
    D_gpu_block, n             `gpu_block_bytes`, `gpu_blocks_per_split`     for the GPU at once
    Disk_r = HR_i, Disk_w...   `disk_{read,write}_bps`                B/s    one pair (S20)
    Mem_r = MR_i, Mem_w...     `mem_{read,write}_bps`                 B/s    host memory
    D_network = Network_i      `network_bps`                          B/s    a rate (S01)
    GPU_Mem_w                  `gpu_h2d_bps`                          B/s    host to device
    GPU_mem_r in (9)           `gpu_mem_read_bps`                     B/s    device memory (S10)
    GPU_Mem_r in (10), (14)    `gpu_d2h_bps`                          B/s    device to host (S10)
    sort.mb, sort.spill...     `sort_buffer_mb`, `sort_{spill,record}_percent`
    sort.factor                `merge_factor`                         1      files merged at once
    Heap_red                   `reduce_heap_bytes`                    B      heap of a reduce
    shuffle.{buffer,merge}...  `shuffle_{buffer,merge}_percent`       1      of the heap, the buffer
    D_spill                    `spill_total_bytes`                    B      of one map
    D_shuffle                  `shuffle_bytes`                        B      of one reduce
    T_Phase1..9                `t1_load_s` .. `t9_reduce_s`           s      means; rates are 1/T
    (none)                     `sum_of_means_s`                       s      of all nine phases

Departures from the paper, both rule sets: typing errors and contradictions (S01, S02, S10, S14,
S20, S22) are corrected; undefined quantities guarded or fixed (S04, S07, S09, S11, S16, S19, S21,
S24, S30, S31); the net, which the paper draws and does not list, follows from its counts (S23,
`shared_read`; `shared_shuffle` fits them, too, and stands among the estimates).  Under mr2 rules
only: a remote split is streamed (S03), the whole split goes to the device (S05), in all its blocks
(S06), the map's output comes back (S08), each byte is spilled once (S12), merges pass over the data
(S13), the local share of the shuffle is one node's (S15), reduces write once (S17), a reduce's own
blocks and time on the device (S18).  S28 and S29 are as printed.

The net has no slots.  With slots (section 4.2, ours) stand the estimates `scheduler_separate_s`
and `scheduler_shared_s`, whose reduces take their own slots or those that the maps have left.
"""
