"""
Typical costs, used only to divide what the trials give as one sum.

Orders of magnitude of one core of a server of the 2020s with warm page cache and a gigabit network
or better.  Only their ratios matter, and only inside a group of costs that the profiling trials
cannot tell apart; what is divided so is marked *assumed* in the profile.
"""

from __future__ import annotations

SOURCE = "typical ratios of harness/profiling/typical.py"

TYPICAL: dict[str, float] = {
    "hdfs_read_s_per_byte": 5e-9,
    "hdfs_write_s_per_byte": 2e-8,
    "local_read_s_per_byte": 3e-9,
    "local_write_s_per_byte": 6e-9,
    "network_s_per_byte": 1e-8,
    "map_cpu_s_per_record": 1e-6,
    "reduce_cpu_s_per_record": 5e-7,
    "combine_cpu_s_per_record": 3e-7,
    "partition_cpu_s_per_record": 5e-8,
    "serde_cpu_s_per_record": 3e-7,
    "sort_cpu_s_per_record": 3e-8,
    "merge_cpu_s_per_record": 3e-7,
    "input_decompress_s_per_byte": 5e-9,
    "map_output_decompress_s_per_byte": 5e-9,
    "map_output_compress_s_per_byte": 1e-8,
    "output_compress_s_per_byte": 1e-8,
    "setup_cpu_s": 1.5,
    "cleanup_cpu_s": 0.2,
}
