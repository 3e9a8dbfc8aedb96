import pytest

from ragclinic.signals.meaning import canonical, meaning, state
from ragclinic.signals.vocabulary import STATES


def test_state_ids_are_unique_and_each_has_a_name() -> None:
    ids = [s.id for s in STATES]
    assert len(ids) == len(set(ids))
    assert all(s.aliases for s in STATES)


def test_a_name_with_the_same_labels_means_one_state_only() -> None:
    seen = [(a.name, a.where) for s in STATES for a in s.aliases]
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize(
    ("name", "labels", "id_"),
    [
        ("vllm:kv_cache_usage_perc", {}, "kv_usage_share"),
        ("vllm:gpu_cache_usage_perc", {}, "kv_usage_share"),
        ("vllm:num_preemptions", {}, "preemptions"),
        ("vllm:num_preemptions_total", {}, "preemptions"),
        ("ray_vllm_num_preemptions_total", {}, "preemptions"),
        ("sglang_token_usage", {}, "kv_usage_share"),
        ("llamacpp:prompt_tokens_total", {}, "prompt_tokens_computed"),
        ("vllm:prompt_tokens_total", {}, "prompt_tokens"),
        ("nv_trt_llm_kv_cache_block_metrics", {"kv_cache_block_type": "fraction"}, "kv_usage_share"),
        ("gen_ai_server_time_to_first_token_seconds", {}, "gateway_ttft_s"),
        ("DCGM_FI_DEV_FB_USED", {"gpu": "0"}, "device_memory_used_bytes"),
    ],
)
def test_every_generation_and_spelling_of_a_name_is_known(name: str, labels: dict[str, str], id_: str) -> None:
    found = meaning(name, labels)
    assert found is not None
    assert found.state.id == id_


def test_a_name_whose_label_decides_means_nothing_without_it() -> None:
    assert meaning("nv_trt_llm_kv_cache_block_metrics", {"kv_cache_block_type": "tokens_per"}) is None
    assert meaning("milvus_proxy_sq_latency", {"query_type": "query"}) is None


def test_unknown_names_mean_nothing() -> None:
    assert meaning("up", {}) is None
    assert canonical("up") == "up"


def test_a_histogram_that_is_called_total_is_no_token_counter() -> None:
    assert meaning("vllm:iteration_tokens_total", {}) is None


def test_an_unknown_state_lists_the_known_ones() -> None:
    with pytest.raises(KeyError, match="kv_usage_share"):
        state("kv")
