"""
A job on GPUs, with everything that a test does not care about.
"""

from harness.models.spn_gc.phases import PHASES

MIB = 2**20


def parameters(**changes):
    """
    1 GiB in splits of 64 MiB on four nodes; the test job had 256 MiB.
    """
    usual = {
        "input_bytes": 1024 * MIB, "test_input_bytes": 256 * MIB, "split_bytes": 64 * MIB,
        "gpu_block_bytes": 8 * MIB, "num_reduces": 2, "replication": 3, "num_datanodes": 4,
        "disk_read_bps": 1e8, "disk_write_bps": 8e7, "mem_read_bps": 5e9, "mem_write_bps": 4e9,
        "network_bps": 1.1e8, "gpu_h2d_bps": 3e9, "gpu_mem_read_bps": 1e11, "gpu_d2h_bps": 2.5e9,
        "load_s": 3.0, "map_s": 6.0, "map_gpu_s": 20.0, "reduce_s": 5.0, "reduce_gpu_s": 2.0,
        "test_map_bytes": 128.0 * MIB, "test_map_output_bytes": 128.0 * MIB,
        "test_reduce_bytes": 64.0 * MIB, "test_map_spilled_records": 1e6,
    }  # fmt: skip
    return usual | changes


def means(*values):
    """
    Nine phase means; what is not given is 0.
    """
    return dict.fromkeys(PHASES, 0.0) | dict(zip(PHASES, values, strict=False))


SMALL = means(3.0, 0.5, 6.7, 0.6, 0.8, 1.1, 6.6, 23.7, 23.4)
