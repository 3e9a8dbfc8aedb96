"""PyTorch's caching allocator: best fit among cached blocks, splitting, segments, and expandable segments.

After `CUDACachingAllocator.cpp` of PyTorch 2.x, from which the constants are. The device gives out whole segments;
a segment is cut into blocks; a freed block is kept, joined with its free neighbours, and handed out again; only
when the device has nothing left are wholly free segments given back to it.
"""

from bisect import bisect_left, insort

from ragclinic.physics.allocator.report import Report

MIN_BLOCK_BYTES = 512
SMALL_BYTES = 1 << 20
SMALL_SEGMENT_BYTES = 2 << 20
LARGE_SEGMENT_BYTES = 20 << 20
OWN_SEGMENT_BYTES = 10 << 20
"""A request of this size or more gets a segment of its own, rounded up to 2 MiB."""
ROUND_LARGE_BYTES = 2 << 20


class _Block:
    """A piece of a segment, linked to its neighbours there."""

    __slots__ = ("address", "after", "before", "free", "segment", "size", "small")

    def __init__(self, address: int, size: int, segment: int, small: bool) -> None:
        self.address = address
        self.size = size
        self.segment = segment
        self.small = small
        self.free = True
        self.before: _Block | None = None
        self.after: _Block | None = None


class CachingAllocator:
    """One stream's allocator on a device of `capacity_bytes`; see the module."""

    def __init__(self, capacity_bytes: int, expandable: bool = False) -> None:
        self._capacity = capacity_bytes
        self._expandable = expandable
        self._held: dict[int, _Block] = {}
        self._blocks: dict[int, _Block] = {}  # free blocks by address
        self._by_size: dict[bool, list[tuple[int, int]]] = {True: [], False: []}  # small? -> (size, address)
        self._last: dict[bool, _Block | None] = {True: None, False: None}  # the end of an expandable segment
        self._next_address = 0
        self._segments = 0
        self._allocated = self._reserved = self._peak_allocated = self._peak_reserved = 0
        self._calls = self._failures = self._failures_with_room = 0

    def allocate(self, key: int, size_bytes: int) -> bool:
        """Takes memory for a key (see `Allocator`)."""
        self.release(key)
        size = max(MIN_BLOCK_BYTES, -(-size_bytes // MIN_BLOCK_BYTES) * MIN_BLOCK_BYTES)
        small = size <= SMALL_BYTES
        block = self._best_fit(size, small) or self._from_device(size, small)
        if block is None:
            self._failures += 1
            self._failures_with_room += self._capacity - self._allocated >= size
            return False
        self._take(block)
        self._split(block, size)
        self._held[key] = block
        self._allocated += block.size
        self._peak_allocated = max(self._peak_allocated, self._allocated)
        return True

    def release(self, key: int) -> None:
        """Gives a key's memory back to the cache (see `Allocator`)."""
        block = self._held.pop(key, None)
        if block is None:
            return
        self._allocated -= block.size
        for neighbour in (block.before, block.after):
            if neighbour is not None and neighbour.free:
                block = self._join(block, neighbour)
        self._put(block)

    def empty_cache(self) -> None:
        """Gives wholly free segments, and of expandable ones free pages, back to the device."""
        for block in list(self._blocks.values()):
            if self._expandable:
                self._unmap(block)
            elif block.before is None and block.after is None:
                self._take(block)
                self._reserved -= block.size
                self._calls += 1

    def report(self) -> Report:
        """The state now (see `Allocator`)."""
        cached = max((pool[-1][0] for pool in self._by_size.values() if pool), default=0)
        returnable = sum(self._returnable(b) for b in self._blocks.values())
        return Report(
            capacity_bytes=self._capacity,
            allocated_bytes=self._allocated,
            reserved_bytes=self._reserved,
            peak_allocated_bytes=self._peak_allocated,
            peak_reserved_bytes=self._peak_reserved,
            largest_free_bytes=max(cached, self._capacity - self._reserved + returnable),
            device_calls=self._calls,
            failures=self._failures,
            failures_with_room=self._failures_with_room,
        )

    def _best_fit(self, size: int, small: bool) -> _Block | None:
        pool = self._by_size[small]
        at = bisect_left(pool, (size, 0))
        return self._blocks[pool[at][1]] if at < len(pool) else None

    def _from_device(self, size: int, small: bool) -> _Block | None:
        for attempt in range(2):
            block = self._grow(size, small) if self._expandable else self._new_segment(size, small)
            if block is not None:
                return block
            if attempt == 0:
                self.empty_cache()
        return None

    def _new_segment(self, size: int, small: bool) -> _Block | None:
        if small:
            wanted = SMALL_SEGMENT_BYTES
        elif size < OWN_SEGMENT_BYTES:
            wanted = LARGE_SEGMENT_BYTES
        else:
            wanted = -(-size // ROUND_LARGE_BYTES) * ROUND_LARGE_BYTES
        if self._reserved + wanted > self._capacity:
            return None
        self._segments += 1
        return self._map(wanted, self._segments, small)

    def _grow(self, size: int, small: bool) -> _Block | None:
        """Maps further pages at the end of the pool's one segment; its free tail counts towards the request."""
        last = self._last[small]
        tail = last if last is not None and last.free else None
        page = SMALL_SEGMENT_BYTES if small else LARGE_SEGMENT_BYTES
        wanted = -(-(size - (tail.size if tail else 0)) // page) * page
        if self._reserved + wanted > self._capacity:
            wanted = -(-(size - (tail.size if tail else 0)) // ROUND_LARGE_BYTES) * ROUND_LARGE_BYTES
            if self._reserved + wanted > self._capacity:
                return None
        block = self._map(wanted, -1 if small else -2, small)
        if last is not None:
            block.before, last.after = last, block
        self._last[small] = block
        return self._with_tail(block, tail)

    def _with_tail(self, block: _Block, tail: _Block | None) -> _Block:
        if tail is None:
            return block
        self._take(block)
        joined = self._join(block, tail)
        self._put(joined)
        return joined

    def _map(self, size: int, segment: int, small: bool) -> _Block:
        block = _Block(self._next_address, size, segment, small)
        self._next_address += size
        self._reserved += size
        self._peak_reserved = max(self._peak_reserved, self._reserved)
        self._calls += 1
        self._put(block)
        return block

    def _split(self, block: _Block, size: int) -> None:
        rest = block.size - size
        enough = rest >= MIN_BLOCK_BYTES if block.small or self._expandable else rest > SMALL_BYTES
        if not enough:
            return
        remaining = _Block(block.address + size, rest, block.segment, block.small)
        remaining.before, remaining.after = block, block.after
        if block.after is not None:
            block.after.before = remaining
        if self._last[block.small] is block:
            self._last[block.small] = remaining
        block.after = remaining
        block.size = size
        self._put(remaining)

    def _join(self, block: _Block, neighbour: _Block) -> _Block:
        """One block of two neighbours, of which the second is in the cache; the earlier one survives."""
        self._take(neighbour)
        first, second = (block, neighbour) if block.address < neighbour.address else (neighbour, block)
        first.size += second.size
        first.after = second.after
        if second.after is not None:
            second.after.before = first
        if self._last[first.small] is second:
            self._last[first.small] = first
        first.free = False
        return first

    def _returnable(self, block: _Block) -> int:
        if self._expandable:
            return block.size // ROUND_LARGE_BYTES * ROUND_LARGE_BYTES
        return block.size if block.before is None and block.after is None else 0

    def _unmap(self, block: _Block) -> None:
        """Gives whole pages of a free block back; addresses are not scarce, so a hole is never mapped again."""
        size = self._returnable(block)
        if not size:
            return
        self._take(block)
        self._reserved -= size
        self._calls += 1
        block.size -= size
        if block.size:
            self._put(block)
            return
        if block.before is not None:
            block.before.after = block.after
        if block.after is not None:
            block.after.before = block.before
        if self._last[block.small] is block:
            self._last[block.small] = block.before

    def _put(self, block: _Block) -> None:
        block.free = True
        self._blocks[block.address] = block
        insort(self._by_size[block.small], (block.size, block.address))

    def _take(self, block: _Block) -> None:
        block.free = False
        del self._blocks[block.address]
        pool = self._by_size[block.small]
        del pool[bisect_left(pool, (block.size, block.address))]
