"""
What-If as its specification writes it (docs/models/whatif.md, 5 to 7): slow, one configuration.

The oracle of `harness.models.whatif`, which works on arrays and solves the simulations.
"""

import math

from dataclasses import MISSING, fields
from types import SimpleNamespace

from harness.models.whatif.inputs import HEAP_BYTES, ClusterSize, Config, Costs, Statistics

MB = 2**20
PARTS = {"statistics": Statistics, "costs": Costs, "config": Config, "cluster": ClusterSize}


def expected_answer(values, rules):
    """
    Every quantity of the job with these fields, all parts in one mapping, by name.
    """
    x = _inputs(values, rules)
    a = {}
    mr2 = rules == "mr2"
    a["map_in_bytes"] = x.split_bytes / x.input_compression_ratio
    a["map_in_records"] = a["map_in_bytes"] / x.input_record_bytes
    a["map_out_bytes"] = a["map_in_bytes"] * x.map_bytes_selectivity
    a["map_out_records"] = a["map_in_records"] * x.map_records_selectivity
    a["map_hdfs_bytes_read"] = x.split_bytes
    a["map_read_s"] = x.split_bytes * (x.hdfs_read_s_per_byte + x.input_decompress_s_per_byte)
    a["map_function_s"] = a["map_in_records"] * x.map_cpu_s_per_record
    around = x.setup_cpu_s + x.cleanup_cpu_s if mr2 else 0.0
    if mr2:
        a["setup_cpu_s"], a["cleanup_cpu_s"] = x.setup_cpu_s, x.cleanup_cpu_s
    if x.num_reduces == 0:
        a["map_hdfs_bytes_written"] = a["map_out_bytes"] * x.output_compression_ratio
        a["map_write_s"] = (
            a["map_out_bytes"] * x.output_compress_s_per_byte
            + a["map_hdfs_bytes_written"] * x.hdfs_write_s_per_byte
        )
        a["map_task_s"] = a["map_read_s"] + a["map_function_s"] + a["map_write_s"] + around
        a["reduce_waves"], a["reduces_s"] = 0, 0.0
    else:
        _spill(a, x, mr2=mr2)
        _merge_spills(a, x, mr2=mr2)
        a["map_task_s"] = around + sum(
            a[name]
            for name in ("map_read_s", "map_function_s", "collect_s", "spill_s", "map_merge_s")
        )
        _shuffle(a, x, mr2=mr2)
        _reduce(a, x, mr2=mr2)
        a["reduce_task_s"] = around + sum(
            a[name]
            for name in ("shuffle_s", "reduce_merge_s", "reduce_function_s", "reduce_write_s")
        )
        slots = x.num_nodes * x.reduce_slots_per_node
        a["reduce_waves"] = math.ceil(x.num_reduces / slots) if mr2 else x.num_reduces / slots
        a["reduces_s"] = a["reduce_waves"] * a["reduce_task_s"]
    slots = x.num_nodes * x.map_slots_per_node
    a["map_waves"] = math.ceil(x.num_maps / slots) if mr2 else x.num_maps / slots
    a["maps_s"] = a["map_waves"] * a["map_task_s"]
    a["job_s"] = a["maps_s"] + a["reduces_s"]
    return a


def merge_queue(sizes, factor):
    """
    Section 6: passes, bytes read by all but the last, fan-in of the last; sorted again and again.
    """
    files, merges, read = sorted(sizes), 0, 0
    while len(files) > factor:
        take = factor
        if merges == 0:
            rest = (len(files) - 1) % (factor - 1)
            take = rest + 1 if rest else factor
        read += sum(files[:take])
        files = sorted([*files[take:], sum(files[:take])])
        merges += 1
    return (merges + 1 if len(sizes) > 1 else 0), read, len(files)


def merge_arrivals(arrivals, factor):
    """
    Hadoop 3's merges on disk, file after file: files left, merges, units merged.
    """
    files, merges, merged_units = [], 0, 0
    for _ in range(arrivals):
        files.insert(0, 1)
        while len(files) >= 2 * factor - 1:
            units = sum(files[:factor])
            files = sorted([*files[factor:], units])
            merges, merged_units = merges + 1, merged_units + units
    return files, merges, merged_units


def _inputs(values, rules):
    """
    All fields, absent ones by their defaults, after Eq. (1).
    """
    x = {
        f.name: f.default
        for part in PARTS.values()
        for f in fields(part)
        if f.default is not MISSING
    }
    x |= {"reduce_heap_bytes": HEAP_BYTES[rules]} | values
    if "combine_bytes_selectivity" not in values:
        x["combine_bytes_selectivity"] = x["combine_records_selectivity"]
    unused = {
        "use_combiner": "combine_",
        "input_compressed": "input_compression input_decompress",
        "map_output_compressed": "map_output_compress map_output_decompress",
        "output_compressed": "output_compress",
    }
    for switch, prefixes in unused.items():
        for name in x:
            if (
                not x[switch]
                and name.startswith(tuple(prefixes.split()))
                and name.endswith(("_selectivity", "_ratio", "_per_record", "_per_byte"))
            ):
                x[name] = 1.0 if name.endswith(("_selectivity", "_ratio")) else 0.0
    return SimpleNamespace(**x, k=x["map_output_compression_ratio"])


def _has_law(x, *, mr2):
    return mr2 and x.use_combiner and x.records_per_combine > 0


def _shares_again(x, outputs, *, mr2):
    """
    What a combiner leaves of so many of its own outputs.
    """
    if _has_law(x, mr2=mr2):
        exponents = x.combine_bytes_exponent, x.combine_records_exponent
        return [math.exp((each - 1) * math.log(max(1, outputs))) for each in exponents]
    return x.combine_bytes_selectivity, x.combine_records_selectivity


def _spill(a, x, *, mr2):
    out, size = a["map_out_records"], a["map_out_bytes"]
    a["map_out_record_bytes"] = w = size / out if out else 0.0
    a["collect_s"] = out * (x.partition_cpu_s_per_record + x.serde_cpu_s_per_record)
    cap = n = records = 0
    if out:
        buffer = x.sort_buffer_mb * MB
        if mr2:
            cap = a["max_buffer_records"] = math.floor(buffer * x.sort_spill_percent / (w + 16))
        else:
            data = buffer * (1 - x.sort_record_percent) * x.sort_spill_percent
            metadata = buffer * x.sort_record_percent * x.sort_spill_percent
            a["max_serialization_records"] = math.floor(data / w) if w else math.inf
            a["max_accounting_records"] = math.floor(metadata / 16)
            cap = min(a["max_serialization_records"], a["max_accounting_records"])
        cap = min(max(1, cap), out)
        n = math.ceil(out / cap)
        records = out / n if mr2 else cap
    a["spill_buffer_records"], a["num_spills"], a["records_per_spill"] = cap, n, records
    a["spill_buffer_bytes"] = records * w
    shares = [x.combine_bytes_selectivity, x.combine_records_selectivity]
    if _has_law(x, mr2=mr2):
        for place, of in enumerate(("bytes", "records")):
            exponent = getattr(x, f"combine_{of}_exponent") - 1
            growth = exponent * math.log(max(1, records) / x.records_per_combine)
            shares[place] = min(max(1.0, shares[place]), shares[place] * math.exp(growth))
    combined_bytes = records * w * shares[0]
    a["spill_file_records"] = records * shares[1]
    a["spill_file_bytes"] = combined_bytes * x.k
    levels = math.log2(max(1.0, records / x.num_reduces))
    a["spill_s"] = n * (
        records * (levels * x.sort_cpu_s_per_record + x.combine_cpu_s_per_record)
        + combined_bytes * x.map_output_compress_s_per_byte
        + a["spill_file_bytes"] * x.local_write_s_per_byte
    )


def _merge_spills(a, x, *, mr2):
    n, factor = a["num_spills"], x.merge_factor
    size, records = a["spill_file_bytes"], a["spill_file_records"]
    a["first_pass_spills"], reads, final, a["merge_passes"] = _merge_functions(n, factor)
    a["intermediate_merge_spills"], a["final_merge_spills"] = reads, final
    again = n > 1 and x.use_combiner and (n if mr2 else final) >= x.combine_min_spills
    a["combine_in_final_merge"] = again
    bytes_share, records_share = _shares_again(x, n, mr2=mr2)
    a["merge_combine_bytes_selectivity"] = bytes_share if again else 1.0
    a["merge_combine_records_selectivity"] = records_share if again else 1.0
    a["map_final_bytes"] = n * size * a["merge_combine_bytes_selectivity"]
    a["map_final_records"] = n * records * a["merge_combine_records_selectivity"]
    a["spilled_records"] = records * (n + reads) + (n > 1) * a["map_final_records"]
    read = size * (x.local_read_s_per_byte + x.map_output_decompress_s_per_byte)
    read += records * x.merge_cpu_s_per_record
    write = x.map_output_compress_s_per_byte / x.k + x.local_write_s_per_byte
    a["map_intermediate_merge_s"] = reads * (read + size * write)
    combining = n * again * records * x.combine_cpu_s_per_record
    a["map_final_merge_s"] = (n > 1) * (n * read + combining + a["map_final_bytes"] * write)
    a["map_merge_s"] = a["map_intermediate_merge_s"] + a["map_final_merge_s"]
    a["combine_in_records"] = x.use_combiner * n * (a["records_per_spill"] + again * records)
    a["combine_out_records"] = x.use_combiner * (n * records + again * a["map_final_records"])
    a["map_local_bytes_read"] = (n > 1) * (reads + n) * size
    a["map_local_bytes_written"] = (n + reads) * size + (n > 1) * a["map_final_bytes"]


def _merge_functions(n, factor):
    """
    First pass, intermediate reads, final merge and passes of *n* equal files: few by the queue.
    """
    rest = (n - 1) % (factor - 1)
    first = n if n <= factor else (rest + 1 if rest else factor)
    if n <= 3000:
        passes, reads, final = merge_queue([1] * n, factor)
        return first, reads, final, passes
    # The complete tree of `harness.models.merge`, in whole numbers.
    level, full = 1, factor
    while n > full * factor:
        level, full = level + 1, full * factor
    return first, level * n - full - (full - n) // (factor - 1), factor, -((1 - n) // (factor - 1))


def _shuffle(a, x, *, mr2):
    compressed = a["segment_compressed_bytes"] = a["map_final_bytes"] / x.num_reduces
    size = a["segment_bytes"] = compressed / x.k
    records = a["segment_records"] = a["map_final_records"] / x.num_reduces
    a["shuffle_bytes"], a["shuffle_records"] = x.num_maps * compressed, x.num_maps * records
    buffer = a["shuffle_buffer_bytes"] = x.shuffle_buffer_percent * x.reduce_heap_bytes
    threshold = a["merge_threshold_bytes"] = x.shuffle_merge_percent * buffer
    limit = x.shuffle_segment_limit_percent * buffer
    in_memory = a["segments_go_to_memory"] = size <= limit if mr2 else size < limit
    s, file_bytes, file_records, q, left = 1, compressed, records, x.num_maps, 0
    if size == 0:
        file_bytes = file_records = 0.0
        q = 0
    elif in_memory:
        s = math.ceil(threshold / size)
        s = s if s * size <= buffer else math.floor(threshold / size)
        if x.inmem_merge_segments > 0 and not mr2:
            s = min(s, x.inmem_merge_segments)
        s = max(1, s)
        bytes_share, records_share = _shares_again(x, s, mr2=mr2)
        file_bytes = s * compressed * bytes_share
        file_records = s * records * records_share
        q, left = divmod(x.num_maps, s)
    a["segments_per_shuffle_file"], a["num_shuffle_files"], a["segments_left_in_memory"] = (
        s,
        q,
        left,
    )
    a["shuffle_file_bytes"], a["shuffle_file_records"] = file_bytes, file_records
    factor = x.merge_factor
    if mr2:
        units, merges, merged_units = merge_arrivals(q, factor)
        a["num_merged_files"] = sum(u > 1 for u in units)
        a["num_unmerged_files"] = sum(u == 1 for u in units)
        a["disk_file_units"] = units
    else:
        merges = 0 if q < 2 * factor - 1 else (q - 2 * factor + 1) // factor + 1
        merged_units = merges * factor
        a["num_merged_files"], a["num_unmerged_files"] = merges, q - factor * merges
        a["merged_file_bytes"], a["merged_file_records"] = (
            factor * file_bytes,
            factor * file_records,
        )
        a["unmerged_file_bytes"], a["unmerged_file_records"] = file_bytes, file_records
    a["num_shuffle_merges"] = merges
    a["ondisk_merge_bytes"] = merged_units * file_bytes
    a["ondisk_merge_records"] = merged_units * file_records
    c = s * records if mr2 else file_records
    a["inmem_merge_s"] = q * file_bytes * x.local_write_s_per_byte + in_memory * (
        a["shuffle_bytes"] * x.map_output_decompress_s_per_byte
        + q * c * (x.merge_cpu_s_per_record + x.combine_cpu_s_per_record)
        + q * file_bytes / x.k * x.map_output_compress_s_per_byte
    )
    a["ondisk_merge_s"] = _rewrite(a["ondisk_merge_bytes"], a["ondisk_merge_records"], x)
    network = a["shuffle_bytes"] * x.network_s_per_byte
    a["shuffle_s"] = network + a["inmem_merge_s"] + a["ondisk_merge_s"]


def _rewrite(size, records, x, read=None):
    reading = x.local_read_s_per_byte + x.map_output_decompress_s_per_byte
    writing = x.map_output_compress_s_per_byte / x.k + x.local_write_s_per_byte
    read = size if read is None else read
    return read * reading + records * x.merge_cpu_s_per_record + size * writing


def _reduce(a, x, *, mr2):
    factor, left, size = x.merge_factor, a["segments_left_in_memory"], a["segment_bytes"]
    one = (a["segment_compressed_bytes"], a["segment_records"])
    on_disk = a["num_disk_files"] = a["num_merged_files"] + a["num_unmerged_files"]
    memory = a["shuffle_buffer_bytes"] if mr2 else x.reduce_heap_bytes
    allowed = a["max_retained_bytes"] = x.reduce_buffer_percent * memory
    kept = a["retained_candidate_bytes"] = left * size
    gone = min(left, math.ceil((kept - allowed) / size)) if kept > allowed else 0
    a["segments_evicted"], a["segments_retained"] = gone, left - gone
    to_file = on_disk < factor
    files = a["files_from_memory"] = int(gone > 0) if to_file else gone
    segments = gone if to_file else int(gone > 0)
    a["file_from_memory_bytes"], a["file_from_memory_records"] = (segments * of for of in one)
    a["step1_bytes"], a["step1_records"] = (to_file * segments * of for of in one)
    writing = x.map_output_compress_s_per_byte / x.k + x.local_write_s_per_byte
    a["step1_s"] = a["step1_records"] * x.merge_cpu_s_per_record + a["step1_bytes"] * writing
    a["step2_files"] = on_disk + files
    if mr2:
        _steps_of_hadoop_3(a, one, factor)
    else:
        sums = [
            a["num_merged_files"] * a[f"merged_file_{of}"]
            + a["num_unmerged_files"] * a[f"unmerged_file_{of}"]
            + files * a[f"file_from_memory_{of}"]
            for of in ("bytes", "records")
        ]
        _, reads, final, _ = _merge_functions(a["step2_files"], factor)
        reads = a["step2_intermediate_reads"] = reads if on_disk else 0
        share = reads / a["step2_files"] if a["step2_files"] else 0.0
        a["step2_bytes"], a["step2_records"] = share * sums[0], share * sums[1]
        a["step3_files"] = a["segments_retained"] + final
        reads = a["step3_intermediate_reads"] = _merge_functions(a["step3_files"], factor)[1]
        share = reads / a["step3_files"] if a["step3_files"] else 0.0
        a["step3_bytes"] = share * a["shuffle_bytes"]
        a["step3_records"] = share * a["shuffle_records"]
        a["reduce_disk_input_bytes"] = sums[0]
    read = a.get("step2_read_bytes", a["step2_bytes"])
    a["step2_s"] = _rewrite(a["step2_bytes"], a["step2_records"], x, read)
    a["step3_s"] = _rewrite(a["step3_bytes"], a["step3_records"], x)
    a["reduce_merge_s"] = a["step1_s"] + a["step2_s"] + a["step3_s"]
    q = a["num_shuffle_files"]
    a["reduce_in_bytes"] = (q * a["shuffle_file_bytes"] + left * one[0]) / x.k
    a["reduce_in_records"] = q * a["shuffle_file_records"] + left * one[1]
    a["reduce_in_groups"] = a["reduce_in_records"] / x.records_per_reduce_group
    out = a["reduce_out_bytes"] = a["reduce_in_bytes"] * x.reduce_bytes_selectivity
    a["reduce_out_records"] = a["reduce_in_records"] * x.reduce_records_selectivity
    a["reduce_function_s"] = (
        a["reduce_disk_input_bytes"]
        * (x.local_read_s_per_byte + x.map_output_decompress_s_per_byte)
        + a["reduce_in_records"] * x.reduce_cpu_s_per_record
    )
    a["reduce_hdfs_bytes_written"] = out * x.output_compression_ratio
    a["reduce_write_s"] = (
        out * x.output_compress_s_per_byte
        + a["reduce_hdfs_bytes_written"] * x.hdfs_write_s_per_byte
    )
    merged = a["ondisk_merge_bytes"] + a["step3_bytes"]
    a["reduce_local_bytes_read"] = merged + read + a["reduce_disk_input_bytes"]
    written = q * a["shuffle_file_bytes"] + a["step1_bytes"] + a["step2_bytes"]
    a["reduce_local_bytes_written"] = merged + written


def _steps_of_hadoop_3(a, one, factor):
    """
    The loop of step 2: the first pass takes the segments that wait in memory.
    """
    file = (a["shuffle_file_bytes"], a["shuffle_file_records"])
    disk = [(units * file[0], units * file[1]) for units in a["disk_file_units"]]
    waiting = [one] * a["segments_evicted"] if a["num_disk_files"] >= factor else []
    if a["files_from_memory"] and not waiting:
        disk.append((a["step1_bytes"], a["step1_records"]))
    passes = reads = 0
    read_bytes = written_bytes = written_records = 0.0
    while len(disk) > factor:
        disk.sort(key=lambda file: file[0])
        rest = (len(disk) - 1) % (factor - 1)
        take = factor if passes or not rest else rest + 1
        taken, disk = disk[:take], disk[take:]
        reads, read_bytes = reads + take, read_bytes + sum(size for size, _ in taken)
        taken, waiting = taken + waiting, []
        merged = sum(size for size, _ in taken), sum(records for _, records in taken)
        written_bytes, written_records = written_bytes + merged[0], written_records + merged[1]
        disk.append(merged)
        passes += 1
    a["step2_passes"], a["step2_intermediate_reads"], a["step2_read_bytes"] = (
        passes,
        reads,
        read_bytes,
    )
    a["step2_bytes"], a["step2_records"] = written_bytes, written_records
    a["step3_files"] = a["segments_retained"] + len(waiting) + len(disk)
    a["step3_intermediate_reads"], a["step3_bytes"], a["step3_records"] = 0, 0.0, 0.0
    a["reduce_disk_input_bytes"] = sum((size for size, _ in disk), 0.0)
