"""Names of what PyTorch's caching allocator reports, and its units.

Keys are those of `torch.cuda.memory_stats()` behind `torch.cuda.`, so that statistics, the printed summary and a
snapshot meet under one name. `torch.cuda.oom` and its companions are what an out-of-memory error says of itself.
"""

from collections.abc import Mapping

PREFIX = "torch.cuda."
ALLOCATED = f"{PREFIX}allocated_bytes.all.current"
RESERVED = f"{PREFIX}reserved_bytes.all.current"
ACTIVE = f"{PREFIX}active_bytes.all.current"
INACTIVE_SPLIT = f"{PREFIX}inactive_split_bytes.all.current"
LARGEST_FREE = f"{PREFIX}largest_free_block_bytes"

OOM = f"{PREFIX}oom"
"""One failed allocation; the value is what was asked for, in bytes."""
OOM_TOTAL = f"{PREFIX}oom.total_bytes"
OOM_FREE = f"{PREFIX}oom.free_bytes"
OOM_ALLOCATED = f"{PREFIX}oom.allocated_bytes"
OOM_UNALLOCATED = f"{PREFIX}oom.reserved_unallocated_bytes"
"""Held by the allocator and not given out: only this much could be fragmentation."""

# PyTorch up to 1.13 wrote KB, MB and GB and meant powers of 1024 as well.
BYTES: Mapping[str, float] = {
    "B": 1.0,
    "bytes": 1.0,
    **{f"{letter}{end}": 1024.0**power for power, letter in enumerate("KMGTP", 1) for end in ("iB", "B")},
}
COUNTS: Mapping[str, float] = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9}
