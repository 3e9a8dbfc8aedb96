"""Allocators: PyTorch's caching one, pools by shape and bucket, pages; and what loading a model asks of them."""

from ragclinic.physics.allocator.caching import CachingAllocator
from ragclinic.physics.allocator.loads import layer_tensors, load_by_layer, load_lazily, load_whole
from ragclinic.physics.allocator.pools import BufferPool, PagePool, exact, geometric, powers
from ragclinic.physics.allocator.replay import replay, snapshot_events
from ragclinic.physics.allocator.report import Allocator, Event, Report

__all__ = [
    "Allocator",
    "BufferPool",
    "CachingAllocator",
    "Event",
    "PagePool",
    "Report",
    "exact",
    "geometric",
    "layer_tensors",
    "load_by_layer",
    "load_lazily",
    "load_whole",
    "powers",
    "replay",
    "snapshot_events",
]
