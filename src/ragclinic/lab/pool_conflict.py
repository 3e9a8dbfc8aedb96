"""A buffer pool keyed by shape under dynamic batching: the two fight; a pool that knows shapes ends it.

Refuted by: no failures where both are on, or a shape-aware pool that fails or is slower. Held: Llama-3-8B on an
A100, a queue that is never empty, the same requests. Varied: how batches form, where their buffers come from.
Cost: seconds, no hardware. Limit: contiguous buffers for two batches at a time (one decodes, the next one's is
taken), as engines before paging had; a batch without memory is served again request by request.
"""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ragclinic.lab.experiment import Claim, Experiment, Outcome, Plot, Row
from ragclinic.physics.allocator import Allocator, BufferPool, CachingAllocator, PagePool, geometric
from ragclinic.physics.hardware import named_device
from ragclinic.physics.memory import token_bytes
from ragclinic.physics.models import named_model
from ragclinic.physics.precision import kv_type, weight_type
from ragclinic.physics.roofline import StepCost, decode_ms, prefill_ms, step_cost

REQUESTS, MOST_BATCH, MOST_TOKENS = 600, 16, 6144
MEDIAN_TOKENS, SPREAD, OUTPUT_TOKENS = 1200, 0.7, 64
CACHE_BYTES = 24 << 30
"""What is left for buffers: a card shared with an embedder and a reranker."""
POOL_SHARE = 0.6
"""Of it the pool takes this part at the start, for the shapes seen most in a warm-up; misses go to the rest."""
WARM_UP = 100
PAGE_BYTES = 2 << 20
DEVICE_CALL_MS = 2.0
"""A cudaMalloc or cudaFree stops the device: one to several milliseconds for large blocks."""
FAILED_MS = 50.0
"""What a failed allocation costs: the exception and emptying the cache; the batch is then served one by one."""
BUCKET_RATIO = 1.25
ARRIVING = (1, MOST_BATCH)
"""How many requests are waiting when a batch is formed."""

Batch = tuple[int, int]
"""Requests in it, and the tokens each is padded to."""


class Result(NamedTuple):
    """One variant: requests a second, the share of batches that found no memory, the share with memory idle."""

    name: str
    requests_per_s: float
    failed_share: float
    failed_with_room_share: float
    device_calls: int


class PoolWithFallback:
    """A pool of prepared buffers and, for shapes it does not have, what is left of the memory."""

    def __init__(self, prepared: Sequence[int]) -> None:
        pool_bytes = int(CACHE_BYTES * POOL_SHARE)
        self.pool = BufferPool(pool_bytes, prepared=prepared)
        self.rest = CachingAllocator(CACHE_BYTES - pool_bytes)

    def allocate(self, key: int, size_bytes: int) -> bool:
        """A prepared buffer of exactly this size, or else a new one from the rest."""
        return self.pool.allocate(key, size_bytes) or self.rest.allocate(key, size_bytes)

    def release(self, key: int) -> None:
        """Gives both back."""
        self.pool.release(key)
        self.rest.release(key)


def run(seed: int) -> Outcome:
    """The five variants over the same requests."""
    chance = random.Random(seed)  # noqa: S311
    lengths = [min(MOST_TOKENS, round(chance.lognormvariate(0, SPREAD) * MEDIAN_TOKENS)) for _ in range(REQUESTS)]
    dynamic = _dynamic(lengths, chance)
    fixed = [(MOST_BATCH // 2, MOST_TOKENS)] * -(-REQUESTS // (MOST_BATCH // 2))
    prepared = _prepared([_bytes(b) for b in dynamic[:WARM_UP]])
    variants: dict[str, tuple[list[Batch], Callable[[], tuple[Allocator | PoolWithFallback, ...]]]] = {
        "dynamic batching alone": (dynamic, lambda: (CachingAllocator(CACHE_BYTES),)),
        "pool alone": (fixed, lambda: (BufferPool(CACHE_BYTES),)),
        "both": (dynamic, lambda: (PoolWithFallback(prepared),)),
        "both, buckets given back": (
            dynamic,
            lambda: (BufferPool(CACHE_BYTES, geometric(BUCKET_RATIO), give_back=True),),
        ),
        "both, pages": (dynamic, lambda: (PagePool(CACHE_BYTES, PAGE_BYTES),)),
    }
    cost = step_cost(named_model("llama-3-8b"), named_device("a100-80g"), kv_type("f16"), weight_type("f16"))
    results = [_serve(name, batches, make()[0], cost) for name, (batches, make) in variants.items()]
    rows: list[Row] = [dict(r._asdict()) for r in results]
    return Outcome(tuple(rows), _claims({r.name: r for r in results}), (_plot(results),))


def _dynamic(lengths: Sequence[int], chance: random.Random) -> list[Batch]:
    """Batches of whoever waits, padded to the longest of them."""
    batches, at = [], 0
    while at < len(lengths):
        count = min(chance.randint(*ARRIVING), len(lengths) - at)
        batches.append((count, max(lengths[at : at + count])))
        at += count
    return batches


def _bytes(batch: Batch) -> int:
    count, tokens = batch
    return count * (tokens + OUTPUT_TOKENS) * token_bytes(named_model("llama-3-8b"), kv_type("f16"))


def _prepared(sizes: Sequence[int]) -> list[int]:
    """The sizes of the warm-up, the smallest first: as many different ones as the pool has room for."""
    return sorted(set(sizes))


def _serve(name: str, batches: Sequence[Batch], memory: Allocator | PoolWithFallback, cost: StepCost) -> Result:
    """Runs the batches one after the other, their buffers overlapping by one."""
    time_ms, served, failed = 0.0, 0, 0
    calls = _calls(memory)
    for number, batch in enumerate(batches):
        count, tokens = batch
        fits = memory.allocate(number, _bytes(batch))
        memory.release(number - 1)
        time_ms += (_calls(memory) - calls) * DEVICE_CALL_MS
        calls = _calls(memory)
        served += count
        if fits:
            time_ms += prefill_ms(cost, tokens) * count + OUTPUT_TOKENS * decode_ms(cost, count, tokens)
        else:
            failed += 1
            time_ms += FAILED_MS
            time_ms += count * (prefill_ms(cost, tokens) + OUTPUT_TOKENS * decode_ms(cost, 1, tokens))
    served = min(served, REQUESTS)
    with_room = _failed_with_room(memory)
    return Result(name, served / time_ms * 1000, failed / len(batches), with_room / len(batches), calls)


def _calls(memory: Allocator | PoolWithFallback) -> int:
    if isinstance(memory, PoolWithFallback):
        return memory.pool.report().device_calls + memory.rest.report().device_calls
    return memory.report().device_calls


def _failed_with_room(memory: Allocator | PoolWithFallback) -> int:
    """Failures for which enough memory was free, had it not been kept for other shapes."""
    if isinstance(memory, PoolWithFallback):
        return memory.rest.report().failures
    return memory.report().failures_with_room


def _claims(by_name: dict[str, Result]) -> tuple[Claim, ...]:
    base = by_name["dynamic batching alone"].requests_per_s
    unknown = "the claim names neither model nor lengths, so only the ratios below can be compared"
    claimed: tuple[tuple[str, float | None, float | None, str], ...] = (
        ("dynamic batching alone", 18.4, 0.0, unknown),
        ("pool alone", 12.1, 0.0, "every batch computes the pool's one shape, most of it padding"),
        ("both", 9.7, 37.0, "shapes that were not prepared fight for what the pool left over"),
        ("both, buckets given back", None, None, "few sizes, found again; an idle one makes room for another"),
        ("both, pages", None, None, "any free page serves any shape"),
    )
    found = []
    for name, rate, failures, why in claimed:
        result = by_name[name]
        if name == "dynamic batching alone":
            found.append(Claim(f"{name}: throughput", "req/s", rate, result.requests_per_s, why, comparable=False))
        else:
            ratio = None if rate is None else rate / 18.4 * 100
            found.append(
                Claim(f"{name}: of the first's throughput", "%", ratio, result.requests_per_s / base * 100, why)
            )
        found.append(Claim(f"{name}: out of memory", "%", failures, result.failed_share * 100, why))
    return tuple(found)


def _plot(results: Sequence[Result]) -> Plot:
    return Plot(
        "pool-conflict",
        "Throughput (requests a second) and failed batches (%), by variant in the table's order",
        "variant",
        "req/s, %",
        {
            "requests a second": tuple((float(i), r.requests_per_s) for i, r in enumerate(results, 1)),
            "failed batches, %": tuple((float(i), r.failed_share * 100) for i, r in enumerate(results, 1)),
        },
    )


EXPERIMENT = Experiment(
    id="pool-conflict",
    question="Why do a preallocated pool and dynamic batching lose together what each gains alone?",
    refuted_by="no failures with both on, or a shape-aware pool that is slower than dynamic batching alone",
    run=run,
)
