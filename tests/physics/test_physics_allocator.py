from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.physics.allocator import (
    Allocator,
    BufferPool,
    CachingAllocator,
    Event,
    PagePool,
    geometric,
    load_by_layer,
    load_lazily,
    load_whole,
    powers,
    replay,
    snapshot_events,
)
from ragclinic.physics.models import named_model
from ragclinic.physics.precision import weight_type

MIB = 1 << 20
GIB = 1 << 30
MAKERS: dict[str, Callable[[], Allocator]] = {
    "caching": lambda: CachingAllocator(256 * MIB),
    "expandable": lambda: CachingAllocator(256 * MIB, expandable=True),
    "exact": lambda: BufferPool(256 * MIB),
    "buckets": lambda: BufferPool(256 * MIB, powers),
    "given back": lambda: BufferPool(256 * MIB, geometric(1.25), give_back=True),
    "pages": lambda: PagePool(256 * MIB, MIB),
}
EVENTS = st.lists(st.tuples(st.integers(0, 12), st.none() | st.integers(1, 60 * MIB)), max_size=80).map(
    lambda rows: [Event(k, s) for k, s in rows]
)


def test_physics_allocator_sizes_round_as_pytorch_rounds_them() -> None:
    allocator = CachingAllocator(GIB)
    allocator.allocate(1, 1)
    assert allocator.report().allocated_bytes == 512
    assert allocator.report().reserved_bytes == 2 * MIB
    allocator.allocate(2, 3 * MIB)
    assert allocator.report().reserved_bytes == 22 * MIB
    allocator.allocate(3, 31 * MIB)
    assert allocator.report().reserved_bytes == 54 * MIB


def test_physics_allocator_a_freed_block_is_used_again_without_asking_the_device() -> None:
    allocator = CachingAllocator(GIB)
    allocator.allocate(1, 100 * MIB)
    allocator.release(1)
    calls = allocator.report().device_calls
    allocator.allocate(2, 60 * MIB)
    assert allocator.report().device_calls == calls
    assert allocator.report().reserved_bytes == 100 * MIB


def test_physics_allocator_the_smallest_block_that_fits_is_taken() -> None:
    allocator = CachingAllocator(GIB)
    for key, size in ((1, 300), (2, 100), (3, 200)):
        allocator.allocate(key, size * MIB)
    for key in (1, 2, 3):
        allocator.release(key)
    allocator.allocate(4, 90 * MIB)
    assert allocator.report().largest_free_bytes == GIB - 100 * MIB
    allocator.allocate(5, 300 * MIB)  # the 300 MiB block must still be whole
    assert allocator.report().reserved_bytes == 600 * MIB


def test_physics_allocator_freed_neighbours_join() -> None:
    allocator = CachingAllocator(100 * MIB)
    for key in range(5):
        allocator.allocate(key, 4 * MIB)  # five blocks of one 20 MiB segment
    for key in (1, 3, 2):
        allocator.release(key)
    calls = allocator.report().device_calls
    assert allocator.allocate(9, 9 * MIB)
    assert allocator.report().device_calls == calls


def test_physics_allocator_cached_segments_go_back_before_a_request_fails() -> None:
    allocator = CachingAllocator(100 * MIB)
    allocator.allocate(1, 60 * MIB)
    allocator.release(1)
    assert allocator.allocate(2, 80 * MIB)
    assert allocator.report().failures == 0


def test_physics_allocator_free_memory_in_pieces_fails_a_large_request() -> None:
    allocator = CachingAllocator(200 * MIB)
    for key in range(10):
        allocator.allocate(key, 20 * MIB)
    for key in range(9):
        allocator.release(key)
        allocator.allocate(90 + key, 12 * MIB)  # splits the segment and so pins it
    assert not allocator.allocate(50, 60 * MIB)
    report = allocator.report()
    assert report.failures == report.failures_with_room == 1
    assert report.fragmentation_ratio > 0.2


def test_physics_allocator_expandable_segments_serve_what_fixed_ones_cannot() -> None:
    """Growing requests (a cache concatenated token by token) leave fixed segments behind."""

    def grow(allocator: CachingAllocator) -> int:
        for size in range(20, 90, 2):
            allocator.allocate(size, size * MIB)
            allocator.allocate(1000 + size, 2 * MIB)  # something small stays in what was left
            allocator.release(size - 2)
        return allocator.report().peak_reserved_bytes

    assert grow(CachingAllocator(4 * GIB, expandable=True)) < 0.8 * grow(CachingAllocator(4 * GIB))


@pytest.mark.parametrize("name", sorted(MAKERS))
@given(events=EVENTS)
def test_physics_allocator_never_gives_more_than_there_is_and_forgets_nothing(
    name: str, events: list[Event]
) -> None:
    allocator = MAKERS[name]()
    held: dict[int, int] = {}
    for event in events:
        if event.size_bytes is None:
            allocator.release(event.key)
            held.pop(event.key, None)
        elif allocator.allocate(event.key, event.size_bytes):
            held[event.key] = event.size_bytes
        else:
            held.pop(event.key, None)
        report = allocator.report()
        assert sum(held.values()) <= report.allocated_bytes <= report.reserved_bytes <= report.capacity_bytes
        assert 0 <= report.largest_free_bytes <= report.free_bytes
        assert 0 <= report.fragmentation_ratio <= 1
    for key in list(held):
        allocator.release(key)
    assert allocator.report().allocated_bytes == 0


@given(events=EVENTS, expandable=st.booleans())
def test_physics_allocator_the_largest_free_block_is_what_a_request_can_have(
    events: list[Event], expandable: bool
) -> None:
    allocator = CachingAllocator(256 * MIB, expandable)
    replay(allocator, events)
    largest = allocator.report().largest_free_bytes // (2 * MIB) * (2 * MIB)
    if largest >= 10 * MIB:
        assert allocator.allocate(99, largest)


@given(events=EVENTS)
def test_physics_allocator_no_page_is_held_twice(events: list[Event]) -> None:
    pool = PagePool(256 * MIB, MIB)
    replay(pool, events)
    held = [page for key in range(13) for page in pool.pages_of(key)]
    assert len(held) == len(set(held)) == pool.report().allocated_bytes // MIB


def test_physics_allocator_a_pool_by_shape_runs_out_with_memory_idle() -> None:
    exact_shapes, bucketed = BufferPool(100 * MIB), BufferPool(100 * MIB, powers)
    for size in range(10, 20):
        for pool in (exact_shapes, bucketed):
            pool.allocate(1, size * MIB)
            pool.release(1)
    assert exact_shapes.report().failures_with_room > 0
    assert bucketed.report().failures == 0


def test_physics_allocator_prepared_buffers_are_no_misses() -> None:
    pool = BufferPool(100 * MIB, prepared=(10 * MIB, 20 * MIB))
    assert pool.allocate(1, 20 * MIB)
    assert pool.report().misses == 0
    assert pool.allocate(2, 20 * MIB)
    assert pool.report().misses == 1


def test_physics_allocator_loading_by_layer_peaks_lower_and_leaves_larger_blocks() -> None:
    model, weights = named_model("llama-3-8b"), weight_type("awq")
    whole = replay(CachingAllocator(40 * GIB), load_whole(model, weights))
    layered = replay(CachingAllocator(40 * GIB), load_by_layer(model, weights))
    assert layered.allocated_bytes == pytest.approx(whole.allocated_bytes, rel=0.02)
    assert layered.peak_reserved_bytes < 0.6 * whole.peak_reserved_bytes
    assert layered.largest_free_bytes > whole.largest_free_bytes


def test_physics_allocator_a_lazy_load_holds_only_what_was_used() -> None:
    model, weights = named_model("llama-3-8b"), weight_type("awq")
    layered = replay(CachingAllocator(40 * GIB), load_by_layer(model, weights))
    lazy = replay(CachingAllocator(40 * GIB), load_lazily(model, weights, range(1, 17)))
    assert lazy.allocated_bytes < 0.55 * layered.allocated_bytes


def test_physics_allocator_events_of_a_torch_snapshot_are_replayed() -> None:
    trace = [
        {"action": "segment_alloc", "addr": 4096, "size": 20 * MIB},
        {"action": "alloc", "addr": 4096, "size": 3 * MIB},
        {"action": "free_requested", "addr": 4096, "size": 3 * MIB},
        {"action": "free_completed", "addr": 4096, "size": 3 * MIB},
        {"action": "alloc", "addr": 4096, "size": 5 * MIB},
    ]
    assert list(snapshot_events(trace)) == [Event(4096, 3 * MIB), Event(4096, None), Event(4096, 5 * MIB)]
    report = replay(CachingAllocator(GIB), snapshot_events(trace))
    assert report.allocated_bytes == 5 * MIB
    assert report.reserved_bytes == 20 * MIB


def test_physics_allocator_a_broken_snapshot_entry_is_named() -> None:
    with pytest.raises(ValueError, match="entry 0: alloc at None of 5"):
        list(snapshot_events([{"action": "alloc", "size": 5}]))


def test_physics_allocator_buckets_grow_by_their_ratio() -> None:
    bucket = geometric(1.25)
    assert all(size <= bucket(size) <= 1.25 * size + 2 for size in range(1, 5000))
    assert len({bucket(size) for size in range(1, 5000)}) < 45
    assert [powers(n) for n in (1, 2, 3, 1024, 1025)] == [1, 2, 4, 1024, 2048]


def test_physics_allocator_a_pool_that_gives_back_serves_every_shape_in_turn() -> None:
    pool = BufferPool(100 * MIB, give_back=True)
    for size in range(10, 100):
        assert pool.allocate(1, size * MIB)
        pool.release(1)
