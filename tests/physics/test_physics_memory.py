import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.errors import BadInput
from ragclinic.physics.ggml import BY_NAME
from ragclinic.physics.hardware import named_device
from ragclinic.physics.memory import (
    Demand,
    activation_bytes,
    budget,
    layer_kv_bytes,
    llama_cpp_caches,
    llama_cpp_weights,
    sequence_bytes,
    shard,
    state_bytes,
    token_bytes,
    weights_bytes,
)
from ragclinic.physics.models import known_models, named_model
from ragclinic.physics.precision import known_kv_types, known_weight_types, kv_type, weight_type

MODELS = st.sampled_from(sorted(known_models()))
KV = st.sampled_from(known_kv_types())


def test_physics_memory_the_worked_example_is_exact() -> None:
    assert layer_kv_bytes(8, 4096, 32, 128, kv_type("fp16")) == 536_870_912


@pytest.mark.parametrize(
    ("name", "bits"),
    [("f32", 32), ("f16", 16), ("bf16", 16), ("fp8", 8), ("int8", 8), ("q8_0", 8.5), ("q5_1", 6), ("q4_0", 4.5)],
)
def test_physics_memory_kv_types_have_their_exact_bits(name: str, bits: float) -> None:
    assert kv_type(name).element_bytes * 8 == bits


@pytest.mark.parametrize(
    ("model", "per_token"),
    [("llama-2-7b", 524_288), ("llama-3-8b", 131_072), ("llama-3-70b", 327_680), ("deepseek-v3", 70_272)],
)
def test_physics_memory_bytes_of_a_token_are_the_known_ones(model: str, per_token: int) -> None:
    assert token_bytes(named_model(model), kv_type("fp16")) == per_token


def test_physics_memory_fp8_halves_the_cache() -> None:
    model = named_model("llama-3-8b")
    assert token_bytes(model, kv_type("fp8")) * 2 == token_bytes(model, kv_type("fp16"))


def test_physics_memory_blocks_round_up() -> None:
    model = named_model("llama-3-8b")
    kv = kv_type("fp16")
    assert sequence_bytes(model, 17, kv, block_tokens=16) == sequence_bytes(model, 32, kv, block_tokens=1)


def test_physics_memory_a_sliding_layer_stops_growing_at_its_window() -> None:
    model, kv = named_model("mistral-7b-v0.1"), kv_type("fp16")
    assert sequence_bytes(model, 4096, kv) == sequence_bytes(model, 30_000, kv)
    half = named_model("gemma-2-9b")
    growth = sequence_bytes(half, 8192, kv) - sequence_bytes(half, 8191, kv)
    assert growth == token_bytes(half, kv) // 2


def test_physics_memory_a_hybrid_keeps_a_state_whatever_the_length() -> None:
    model, kv = named_model("qwen3-next-80b-a3b"), kv_type("fp16")
    assert sequence_bytes(model, 1, kv) - token_bytes(model, kv) == state_bytes(model) > 70e6
    assert token_bytes(model, kv) == 12 * 2 * 2 * 256 * 2


@given(model=MODELS, kv=KV, context=st.integers(1, 200_000), more=st.integers(0, 5000), block=st.integers(1, 256))
def test_physics_memory_longer_context_never_lowers_bytes(
    model: str, kv: str, context: int, more: int, block: int
) -> None:
    m, k = named_model(model), kv_type(kv)
    assert sequence_bytes(m, context, k, block) <= sequence_bytes(m, context + more, k, block)


@given(model=MODELS, memory=st.integers(1, 400), more=st.integers(0, 100), context=st.integers(16, 32_768))
def test_physics_memory_more_memory_never_fits_fewer(model: str, memory: int, more: int, context: int) -> None:
    demand = Demand(context, 1, kv_type("fp16"), weight_type("fp16"))
    less = budget(named_model(model), demand, memory << 30)
    assert less.sequences <= budget(named_model(model), demand, (memory + more) << 30).sequences


@pytest.mark.parametrize(
    ("weights", "gigabytes"),
    # Llama-3-8B files as published: 16.06 GB in 16 bits, 5.73 GB for AWQ and GPTQ in groups of 128, 4.9 GB Q4_K_M.
    [("bf16", 16.06), ("awq", 5.73), ("gptq", 5.73), ("q4_k_m", 4.91), ("q8_0", 8.53), ("fp8", 9.08)],
)
def test_physics_memory_weights_of_llama_3_8b_are_those_of_the_published_files(
    weights: str, gigabytes: float
) -> None:
    assert weights_bytes(named_model("llama-3-8b"), weight_type(weights)) / 1e9 == pytest.approx(
        gigabytes, abs=0.006
    )


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_physics_memory_every_gguf_type_weighs(name: str) -> None:
    assert weights_bytes(named_model("smollm2-135m"), weight_type(name)) > 0


def test_physics_memory_smaller_groups_weigh_more() -> None:
    model = named_model("llama-3-8b")
    sizes = [weights_bytes(model, weight_type(f"awq-4-g{g}")) for g in (32, 64, 128)]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3


@pytest.mark.parametrize("name", known_weight_types())
def test_physics_memory_every_known_weight_type_is_found_by_name(name: str) -> None:
    assert weight_type(name).linear_bits > 0


def test_physics_memory_unknown_types_list_the_nearest() -> None:
    with pytest.raises(BadInput, match=r"^KV type q8_1: not known; the nearest are q8_0, "):
        kv_type("q8_1")
    with pytest.raises(BadInput, match=r"^weights q4_k_n: not known; the nearest are q4_k_s, q4_k_m"):
        weight_type("q4_k_n")
    with pytest.raises(BadInput, match=r"5 bits in groups of 128; expected 2, 3, 4 or 8 bits"):
        weight_type("awq-5")


def test_physics_memory_a_size_that_no_file_tells_is_not_invented() -> None:
    with pytest.raises(ValueError, match="name a weight type"):
        weights_bytes(named_model("llama-3-8b"), None)


@pytest.mark.parametrize(
    ("context", "slots", "kv", "unified", "mib"),
    # "KV buffer size" of llama.cpp for SmolLM2-135M; docs/physics.md has the whole table and how it was read.
    [(2048, 1, "f16", False, 45.0), (2048, 1, "q8_0", False, 23.90625), (2048, 2, "q4_0", True, 12.65625)],
)
def test_physics_memory_llama_cpp_cells_give_its_printed_buffer(
    context: int, slots: int, kv: str, unified: bool, mib: float
) -> None:
    model = named_model("smollm2-135m")
    assert sum(llama_cpp_caches(model, context, slots, kv_type(kv), unified)) / 2**20 == mib


def test_physics_memory_llama_cpp_pads_each_slot() -> None:
    model, kv = named_model("smollm2-135m"), kv_type("f16")
    assert llama_cpp_caches(model, 1000, 3, kv) == llama_cpp_caches(model, 512 * 3, 3, kv)


def test_physics_memory_llama_cpp_keeps_full_and_sliding_layers_in_two_caches() -> None:
    full, sliding = llama_cpp_caches(named_model("gemma-3-4b"), 8192, 1, kv_type("f16"))
    assert full == 5 * 8192 * 2 * 4 * 256 * 2
    assert sliding == 29 * (1024 + 512) * 2 * 4 * 256 * 2


def test_physics_memory_what_llama_cpp_maps_needs_a_file() -> None:
    with pytest.raises(ValueError, match="not a GGUF file"):
        llama_cpp_weights(named_model("llama-3-8b"), repack=False)


@given(model=MODELS, tensor=st.sampled_from([1, 2, 4, 8]), pipeline=st.integers(1, 4))
def test_physics_memory_shares_are_never_smaller_than_an_even_part(model: str, tensor: int, pipeline: int) -> None:
    whole, kv = named_model(model), kv_type("fp16")
    share = shard(whole, tensor, pipeline)
    devices = tensor * pipeline
    assert token_bytes(share, kv) * devices >= token_bytes(whole, kv)
    assert weights_bytes(share, weight_type("fp16")) <= weights_bytes(whole, weight_type("fp16"))


def test_physics_memory_tensor_parallelism_repeats_what_it_cannot_divide() -> None:
    kv = kv_type("fp16")
    assert token_bytes(shard(named_model("llama-3-70b"), 8), kv) == 327_680 // 8
    assert token_bytes(shard(named_model("llama-3-70b"), 16), kv) == 327_680 // 8  # eight KV heads, no more
    assert token_bytes(shard(named_model("deepseek-v3"), 8), kv) == 70_272  # one latent for all heads


def test_physics_memory_a_70b_model_does_not_fit_one_h100_and_the_budget_says_by_how_much() -> None:
    found = budget(
        named_model("llama-3-70b"),
        Demand(8192, 64, kv_type("fp16"), weight_type("fp16")),
        named_device("h100-80g").memory_bytes,
    )
    assert not found.fits
    assert found.sequences == 0
    assert found.free_bytes < -60e9


def test_physics_memory_the_activation_estimate_is_near_a_published_profile() -> None:
    estimate = activation_bytes(named_model("llama-3-8b"), 8192, 256) / 2**30
    assert estimate == pytest.approx(1.2, rel=0.25)
