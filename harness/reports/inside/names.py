"""Parts of a task's time: their keys, and what people call them, in the order of a task."""

from __future__ import annotations

# Where the logs alone tell, some parts are known only as a sum; such a part lists what is in it.
PARTS: dict[str, str] = {
    "launch": "launch of the container",
    "jvm": "start of the JVM",
    "init": "initialisation",
    "start": "launch, JVM, initialisation",
    "read": "read",
    "map_function": "map function",
    "collect": "collect",
    "map_loop": "read, map, collect",
    "map_loop_blocked": "read, map, collect, blocked",
    "blocked": "blocked: buffer full",
    "wait_spill": "waiting for the spill thread",
    "spill_sort": "spill: sort",
    "spill_combine": "spill: combine",
    "spill_write": "spill: write",
    "spill": "spill: sort, combine, write",
    "merge": "merge of the spills",
    "wait": "waiting for map outputs",
    "stall": "no memory for a map output",
    "connect": "connecting to a node",
    "copy": "copying",
    "memory_merge": "merge in memory",
    "disk_merge": "merge on disk",
    "last_merges": "merging after the last copy",
    "read_merge": "read with the last merge",
    "reduce_function": "reduce function",
    "output": "write",
    "reduce_loop": "read, reduce, write",
    "commit": "commit",
    "end": "end",
    "other": "other, not told apart",
}

# The same where they are drawn over time: a loop is one piece, whatever is known of what is in it.
DRAWN: dict[str, str] = {
    **PARTS,
    "map_loop": "record loop",
    "wait": "nothing to copy, or no memory for it",
    "reduce_loop": "reduce loop",
    "output": "closing the output",
}
