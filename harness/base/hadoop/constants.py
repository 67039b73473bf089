"""Numbers of Hadoop that no configuration of ours tells, each with where it comes from."""

from __future__ import annotations

# Of each record in the sort buffer, beside its key and value: four ints (offsets of value and key,
# partition, length of the value).  METASIZE of MapTask.MapOutputBuffer.
METADATA_BYTES = 16
# The smallest block of our clusters, so that small inputs still have several blocks: their site
# files set it as `dfs.namenode.fs-limits.min-block-size`, in the place of Hadoop's 1 MiB.
LEAST_BLOCK_BYTES = 65536
# HDFS keeps a checksum for each chunk of so many bytes, and a block is a whole number of chunks.
# Default of `dfs.bytes-per-checksum` in HdfsClientConfigKeys.
CHECKSUM_BYTES = 512
# Memory of a task's container where its job says nothing, or -1.  DEFAULT_MAP_MEMORY_MB and
# DEFAULT_REDUCE_MEMORY_MB of MRJobConfig.
TASK_MEMORY_MB = 1024
