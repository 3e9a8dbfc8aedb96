from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.physics.hardware import named_device
from ragclinic.physics.models import named_model
from ragclinic.physics.precision import kv_type, weight_type
from ragclinic.physics.roofline import (
    AWQ_GEMM,
    MARLIN,
    Kernel,
    StepCost,
    all_reduce_ms,
    assumed_rates,
    crossover_batch,
    decode_ms,
    graph_gain,
    host_ms,
    launched_ms,
    pairs,
    peer_ms,
    prefill_ms,
    step_cost,
)


def make_cost(
    model: str = "llama-3-8b",
    device: str = "a100-80g",
    weights: str = "f16",
    kv: str = "f16",
    tensor: int = 1,
    kernel: Kernel = MARLIN,
) -> StepCost:
    return step_cost(
        named_model(model), named_device(device), kv_type(kv), weight_type(weights), tensor=tensor, kernel=kernel
    )


def test_physics_roofline_pairs_of_a_prompt_are_the_triangle_and_chunks_add_up() -> None:
    assert pairs(0, 4) == 1 + 2 + 3 + 4
    assert pairs(0, 3) + pairs(3, 4) == pairs(0, 7)


@given(offset=st.integers(0, 300), tokens=st.integers(0, 300), window=st.integers(1, 200))
def test_physics_roofline_pairs_inside_a_window_equal_the_sum(offset: int, tokens: int, window: int) -> None:
    seen = sum(min(offset + i, window) for i in range(1, tokens + 1))
    assert abs(pairs(offset, tokens, window) - seen) <= window


def test_physics_roofline_one_decode_step_reads_all_weights_once() -> None:
    cost = make_cost()
    device = named_device("a100-80g")
    read = (8_030_261_248 - 128_256 * 4096) * 2 / (device.bandwidth_bytes_s * 0.8) * 1000
    assert decode_ms(cost, 1, 0) == pytest.approx(read + cost.rates.host_ms, rel=0.05)


def test_physics_roofline_prefill_is_near_compute_bound_arithmetic() -> None:
    flops = 2 * 7.5e9 * 2048
    expected = flops / (312e12 * 0.65) * 1000
    assert prefill_ms(make_cost(), 2048) == pytest.approx(expected, rel=0.25)


def test_physics_roofline_prefill_grows_faster_than_linearly() -> None:
    cost = make_cost()
    assert prefill_ms(cost, 64_000) > 2.3 * prefill_ms(cost, 32_000)


def test_physics_roofline_cached_tokens_are_not_computed_again() -> None:
    cost = make_cost()
    assert prefill_ms(cost, 8000, cached_tokens=7000) < prefill_ms(cost, 8000) / 3
    assert prefill_ms(cost, 8000, cached_tokens=7000) > prefill_ms(cost, 1000)  # it still attends to them


def test_physics_roofline_chunks_cost_no_less_than_the_whole() -> None:
    cost = make_cost()
    assert prefill_ms(cost, 8000, chunk_tokens=512) > prefill_ms(cost, 8000)


def test_physics_roofline_half_the_cache_bytes_shorten_decode_at_long_contexts() -> None:
    assert decode_ms(make_cost(kv="fp8"), 64, 8000) < 0.7 * decode_ms(make_cost(), 64, 8000)


def test_physics_roofline_a_window_bounds_decode() -> None:
    cost = make_cost("mistral-7b-v0.1")
    assert decode_ms(cost, 8, 4096) == decode_ms(cost, 8, 30_000)


@pytest.mark.parametrize(
    ("kernel", "batch", "speedup", "tolerance"),
    [
        (MARLIN, 1, 3.12, 0.2),
        (MARLIN, 128, 1.01, 0.25),
        (MARLIN, 2048, 0.60, 0.15),
        (AWQ_GEMM, 256, 0.5, 0.15),
    ],
)
def test_physics_roofline_unpacking_reproduces_public_batch_sweeps(
    kernel: Kernel, batch: int, speedup: float, tolerance: float
) -> None:
    base, packed = make_cost("llama-2-13b"), make_cost("llama-2-13b", weights="awq", kernel=kernel)
    found = base.linear_ms(batch, batch) / packed.linear_ms(batch, batch)
    assert found == pytest.approx(speedup, rel=tolerance)


def test_physics_roofline_int4_ends_its_advantage_past_a_batch_that_depends_on_the_kernel() -> None:
    base = make_cost("llama-2-13b")
    awq = crossover_batch(base, make_cost("llama-2-13b", weights="awq", kernel=AWQ_GEMM))
    marlin = crossover_batch(base, make_cost("llama-2-13b", weights="awq", kernel=MARLIN))
    assert awq is not None
    assert marlin is not None
    assert 32 <= awq <= 64
    assert 128 <= marlin <= 256


def test_physics_roofline_int4_makes_the_first_token_later_and_the_others_sooner() -> None:
    base, packed = make_cost("llama-2-13b"), make_cost("llama-2-13b", weights="awq", kernel=AWQ_GEMM)
    assert 2 <= prefill_ms(packed, 1024) / prefill_ms(base, 1024) <= 5
    assert 2 <= decode_ms(base, 1, 512) / decode_ms(packed, 1, 512) <= 3.5


def test_physics_roofline_a_cpu_unpacks_nothing() -> None:
    assert make_cost(device="epyc-9654-768g", weights="q4_0").unpack is None


def test_physics_roofline_two_cards_are_faster_than_one_but_not_twice() -> None:
    one, two = make_cost("llama-2-13b"), make_cost("llama-2-13b", tensor=2)
    assert 1.4 < decode_ms(one, 1, 512) / decode_ms(two, 1, 512) < 2.0


def test_physics_roofline_tensor_parallelism_over_pcie_slows_prefill() -> None:
    """turboderp-org/exllamav2#734: prompt processing falls on two cards without a fast link."""
    linked = named_device("rtx-3090-24g")
    slot = replace(linked, link_bytes_s=None, pcie_generation=3, pcie_lanes=4)
    model, kv, weights = named_model("llama-2-13b"), kv_type("f16"), weight_type("f16")
    slow = step_cost(model, slot, kv, weights, tensor=2)
    assert prefill_ms(slow, 2048) > prefill_ms(step_cost(model, linked, kv, weights, tensor=2), 2048) * 1.5


def test_physics_roofline_transfers_take_bytes_over_rate() -> None:
    device = named_device("a100-80g")
    assert host_ms(device, 26.8e9) == pytest.approx(1000, rel=0.01)
    assert peer_ms(device, 26.8e9) < host_ms(device, 26.8e9) / 9
    assert peer_ms(named_device("l4-24g"), 1e9) == host_ms(named_device("l4-24g"), 1e9)
    assert all_reduce_ms(device, 1, 1e9) == 0
    assert all_reduce_ms(device, 8, 1e9) > all_reduce_ms(device, 2, 1e9)


def test_physics_roofline_a_graph_saves_what_launching_costs_a_small_step() -> None:
    rates = assumed_rates(named_device("h100"))
    assert launched_ms(0.3, 32, rates, graph=False) == pytest.approx(389 * 0.006)
    assert graph_gain(0.3, 32, rates) > 4
    assert graph_gain(50.0, 32, rates) < 1.01


@given(batch=st.integers(1, 200), context=st.integers(0, 20_000), more=st.integers(0, 5000))
def test_physics_roofline_longer_contexts_and_larger_batches_never_take_less(
    batch: int, context: int, more: int
) -> None:
    cost = make_cost()
    assert decode_ms(cost, batch, context) <= decode_ms(cost, batch, context + more)
    assert decode_ms(cost, batch, context) <= decode_ms(cost, batch + 1, context)


def test_physics_roofline_a_mixture_reads_more_experts_as_the_batch_grows() -> None:
    cost = make_cost("mixtral-8x7b", device="h200")
    assert cost.linear_ms(1, 1) < 0.4 * cost.linear_ms(64, 64)
