"""One vocabulary of states for the metrics of every server and device: which public name means what, in what unit.

A recording keeps the public name of each metric; this table says afterwards what it is. A new generation of a
name is one more entry, the newest first: where a server prints both generations at once (vLLM 0.9 and 0.10 do),
only the newest counts, and nothing is added twice. Versions read are listed in docs/signals-metrics.md.

What the same word means differs between servers, so the meanings are apart here: a prompt token counter that
includes cached tokens (vLLM, SGLang) is another state than one that leaves them out (llama.cpp).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["gauge", "counter", "histogram"]
Across = Literal["max", "sum"]
"""How the engines, devices or pools seen at one moment make one number: a mean would hide a full one."""

MIB = 1024.0 * 1024.0


class Alias(NamedTuple):
    """A public name of a state. `scale` makes the state's unit of it; `where` are labels the sample must have."""

    name: str
    scale: float = 1.0
    where: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """One quantity a diagnosis reads, with its public names, newest generation of each server first."""

    id: str
    unit: str
    kind: Kind
    across: Across
    aliases: tuple[Alias, ...]


# Names are separated by spaces; an `Alias` is written out where the unit or a label is needed too.
def _gauge(id_: str, unit: str, across: Across, *aliases: Alias | str) -> State:
    return State(id_, unit, "gauge", across, _aliases(aliases))


def _counter(id_: str, unit: str, *aliases: Alias | str) -> State:
    return State(id_, unit, "counter", "sum", _aliases(aliases))


def _histogram(id_: str, unit: str, *aliases: Alias | str) -> State:
    return State(id_, unit, "histogram", "sum", _aliases(aliases))


def _aliases(names: Iterable[Alias | str]) -> tuple[Alias, ...]:
    return tuple(a for n in names for a in ([n] if isinstance(n, Alias) else map(Alias, n.split())))


def _trt(name: str, key: str, value: str) -> Alias:
    return Alias(f"nv_trt_llm_{name}_metrics", where=((key, value),))


STATES: tuple[State, ...] = (
    # --- the KV cache -------------------------------------------------------------------------------------------
    _gauge(
        "kv_usage_share",
        "1",
        "max",
        "vllm:kv_cache_usage_perc",  # 0..1 in spite of its name
        "vllm:gpu_cache_usage_perc",
        # Hybrid models have several pools and the fullest limits: token_usage is their maximum where printed.
        "sglang:token_usage sglang:full_token_usage sglang:swa_token_usage sglang:mamba_usage",
        "trtllm_kv_cache_utilization",
        _trt("kv_cache_block", "kv_cache_block_type", "fraction"),
        "llamacpp:kv_cache_usage_ratio",  # gone since llama.cpp #13660
    ),
    _gauge("kv_used_tokens", "tokens", "sum", "ragclinic.kv.used_tokens", "sglang:num_used_tokens"),
    _gauge(
        "kv_total_tokens",
        "tokens",
        "sum",
        "ragclinic.kv.total_tokens sglang:max_total_num_tokens vllm.log.kv_cache_tokens",
    ),
    _counter(
        "preemptions",
        "requests",
        "vllm:num_preemptions_total sglang:num_retracted_requests_total",
    ),
    # What a log line says happened since the line before; a counter and its log must never be added up.
    _gauge(
        "preemptions_since_last",
        "requests",
        "sum",
        "vllm.log.preemptions sglang.log.retracted_reqs sglang:num_retracted_reqs",
    ),
    # Only the ratio of these two is safe: the older pair counted blocks at first, and tokens later.
    _counter("prefix_queries", "tokens", "vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    _counter("prefix_hits", "tokens", "vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
    _gauge(
        "prefix_hit_share",
        "1",
        "max",
        "vllm.log.prefix_cache_hit_rate vllm:gpu_prefix_cache_hit_rate sglang:cache_hit_rate",
    ),
    # --- the queue ----------------------------------------------------------------------------------------------
    _gauge(
        "requests_running",
        "requests",
        "sum",
        "vllm:num_requests_running sglang:num_running_reqs llamacpp:requests_processing",
        "tgi_batch_current_size trtllm_num_requests_running",
        _trt("request", "request_type", "scheduled"),
    ),
    _gauge(
        "requests_waiting",
        "requests",
        "sum",
        "vllm:num_requests_waiting sglang:num_queue_reqs llamacpp:requests_deferred tgi_queue_size",
        "trtllm_num_requests_waiting",
        _trt("request", "request_type", "waiting"),
    ),
    _gauge(
        "requests_waiting_for_memory",
        "requests",
        "sum",
        Alias("vllm:num_requests_waiting_by_reason", where=(("reason", "capacity"),)),
    ),
    _gauge("grammar_queue", "requests", "sum", "sglang:num_grammar_queue_reqs"),
    _gauge("requests_swapped", "requests", "sum", "vllm:num_requests_swapped"),
    # --- tokens -------------------------------------------------------------------------------------------------
    _counter("prompt_tokens", "tokens", "vllm:prompt_tokens_total", "sglang:prompt_tokens_total"),
    _counter(
        "prompt_tokens_computed",
        "tokens",
        Alias("vllm:prompt_tokens_by_source_total", where=(("source", "local_compute"),)),
        Alias("sglang:realtime_tokens_total", where=(("mode", "prefill_compute"),)),
        "llamacpp:prompt_tokens_total",
    ),
    _counter(
        "prompt_tokens_cached",
        "tokens",
        "vllm:prompt_tokens_cached_total",
        "sglang:cached_tokens_total",  # its total stands beside its parts, see states.TOTALS
        "llamacpp:prompt_tokens_cached_total",
    ),
    _counter(
        "output_tokens",
        "tokens",
        "vllm:generation_tokens_total sglang:generation_tokens_total llamacpp:tokens_predicted_total",
    ),
    _gauge(
        "output_tokens_per_s",
        "tokens/s",
        "sum",
        "vllm:avg_generation_throughput_toks_per_s sglang:gen_throughput llamacpp:predicted_tokens_seconds",
    ),
    _gauge(
        "prompt_tokens_per_s",
        "tokens/s",
        "sum",
        "vllm:avg_prompt_throughput_toks_per_s sglang.log.input_throughput llamacpp:prompt_tokens_seconds",
    ),
    # --- latencies ----------------------------------------------------------------------------------------------
    _histogram(
        "ttft_s",
        "s",
        "vllm:time_to_first_token_seconds sglang:time_to_first_token_seconds",
        "trtllm_time_to_first_token_seconds",
    ),
    _histogram(
        "tpot_s",
        "s",
        "vllm:inter_token_latency_seconds vllm:time_per_output_token_seconds",
        "sglang:inter_token_latency_seconds sglang:time_per_output_token_seconds",
        "trtllm_time_per_output_token_seconds tgi_request_mean_time_per_token_duration",
    ),
    _histogram(
        "request_s",
        "s",
        "vllm:e2e_request_latency_seconds sglang:e2e_request_latency_seconds",
        "trtllm_e2e_request_latency_seconds tgi_request_duration",
    ),
    _histogram(
        "queue_s",
        "s",
        "vllm:request_queue_time_seconds sglang:queue_time_seconds trtllm_request_queue_time_seconds",
        "tgi_request_queue_duration",
    ),
    _histogram("prefill_s", "s", "vllm:request_prefill_time_seconds"),
    _histogram("decode_s", "s", "vllm:request_decode_time_seconds"),
    _histogram("inference_s", "s", "vllm:request_inference_time_seconds", "tgi_request_inference_duration"),
    _histogram(
        "prompt_tokens_per_request",
        "tokens",
        "vllm:request_prompt_tokens sglang:prompt_tokens_histogram tgi_request_input_length",
    ),
    _histogram(
        "output_tokens_per_request",
        "tokens",
        "vllm:request_generation_tokens sglang:generation_tokens_histogram tgi_request_generated_tokens",
    ),
    _histogram("computed_tokens_per_request", "tokens", "vllm:request_prefill_kv_computed_tokens"),
    _histogram("grammar_compile_s", "s", "sglang:grammar_compilation_time_seconds"),
    # --- the same requests at a gateway: never added to the server's ---------------------------------------------
    _gauge("gateway_running", "requests", "sum", "litellm_in_flight_requests"),
    _histogram(
        "gateway_ttft_s", "s", "gen_ai.server.time_to_first_token", "litellm_llm_api_time_to_first_token_metric"
    ),
    _histogram(
        "gateway_tpot_s", "s", "gen_ai.server.time_per_output_token", "litellm_deployment_latency_per_output_token"
    ),
    _histogram("gateway_request_s", "s", "gen_ai.server.request.duration", "litellm_request_total_latency_metric"),
    _histogram("gateway_queue_s", "s", "litellm_request_queue_time_seconds"),
    # --- retrieval and the stores behind it ---------------------------------------------------------------------
    _histogram(
        "search_s",
        "s",
        "gen_ai.retrieval.duration",
        Alias("milvus_proxy_sq_latency", 1e-3, (("query_type", "search"),)),
    ),
    _counter("store_cache_hits", "keys", "redis_keyspace_hits_total"),
    _counter("store_cache_misses", "keys", "redis_keyspace_misses_total"),
    _gauge("store_memory_used_bytes", "bytes", "sum", "redis_memory_used_bytes"),
    _gauge("store_memory_limit_bytes", "bytes", "sum", "redis_memory_max_bytes"),
    # --- the device ---------------------------------------------------------------------------------------------
    _gauge(
        "device_memory_used_bytes",
        "bytes",
        "max",
        "hw.gpu.memory.usage",
        Alias("DCGM_FI_DEV_FB_USED", MIB),
        "nv_gpu_memory_used_bytes",
    ),
    _gauge("device_memory_free_bytes", "bytes", "max", "hw.gpu.memory.free", Alias("DCGM_FI_DEV_FB_FREE", MIB)),
    _gauge("device_memory_reserved_bytes", "bytes", "max", Alias("DCGM_FI_DEV_FB_RESERVED", MIB)),
    _gauge(
        "device_memory_limit_bytes",
        "bytes",
        "max",
        "hw.gpu.memory.limit",
        Alias("DCGM_FI_DEV_FB_TOTAL", MIB),
        "nv_gpu_memory_total_bytes",
    ),
    _gauge(
        "device_busy_share",  # some kernel ran; says nothing of how much of the device it filled
        "1",
        "max",
        "hw.gpu.utilization DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        Alias("DCGM_FI_DEV_GPU_UTIL", 0.01),
        "nv_gpu_utilization",
    ),
    _gauge("device_sm_active_share", "1", "max", "DCGM_FI_PROF_SM_ACTIVE"),
    _gauge(
        "device_memory_busy_share",
        "1",
        "max",
        "DCGM_FI_PROF_DRAM_ACTIVE nvidia_smi.utilization.memory",
        Alias("DCGM_FI_DEV_MEM_COPY_UTIL", 0.01),
    ),
    _gauge(
        "device_power_w",
        "W",
        "max",
        "hw.gpu.power.draw DCGM_FI_DEV_POWER_USAGE nv_gpu_power_usage",
    ),
    _gauge("device_power_limit_w", "W", "max", "nvidia_smi.power.limit", "nv_gpu_power_limit"),
    _gauge(
        "device_clock_hz",
        "Hz",
        "max",
        "nvidia_smi.clocks.sm",
        Alias("DCGM_FI_DEV_SM_CLOCK", 1e6),
    ),
    _gauge("device_clock_max_hz", "Hz", "max", "nvidia_smi.clocks.max.sm", Alias("DCGM_FI_DEV_MAX_SM_CLOCK", 1e6)),
    _gauge("device_temperature_c", "Cel", "max", "hw.gpu.temperature", "DCGM_FI_DEV_GPU_TEMP"),
    _gauge("device_throttled", "1", "max", "nvidia_smi.throttled"),
    _gauge("device_vgpu_unlicensed", "1", "max", "nvidia_smi.vgpu.unlicensed"),
    _gauge("device_xid_error", "1", "max", "DCGM_FI_DEV_XID_ERRORS"),
    # --- PCIe: rates in bytes per second, one per direction -----------------------------------------------------
    _gauge(
        "pcie_rx_bytes_per_s",
        "bytes/s",
        "max",
        "nvidia_smi.pcie.rx DCGM_FI_PROF_PCIE_RX_BYTES",
        Alias("DCGM_FI_DEV_PCIE_RX_THROUGHPUT", 1000.0),  # NVML gives kB per second
    ),
    _gauge(
        "pcie_tx_bytes_per_s",
        "bytes/s",
        "max",
        "nvidia_smi.pcie.tx DCGM_FI_PROF_PCIE_TX_BYTES",
        Alias("DCGM_FI_DEV_PCIE_TX_THROUGHPUT", 1000.0),
    ),
    _gauge("pcie_generation", "1", "max", "nvidia_smi.pcie.link.gen.current", "DCGM_FI_DEV_PCIE_LINK_GEN"),
    _gauge("pcie_width", "lanes", "max", "nvidia_smi.pcie.link.width.current", "DCGM_FI_DEV_PCIE_LINK_WIDTH"),
    # --- the allocator of PyTorch -------------------------------------------------------------------------------
    _gauge("allocator_allocated_bytes", "bytes", "max", "torch.cuda.allocated_bytes.all.current"),
    _gauge("allocator_reserved_bytes", "bytes", "max", "torch.cuda.reserved_bytes.all.current"),
    _gauge("allocator_inactive_split_bytes", "bytes", "max", "torch.cuda.inactive_split_bytes.all.current"),
    _gauge("allocator_largest_free_bytes", "bytes", "max", "torch.cuda.largest_free_block_bytes"),
    _counter("allocator_ooms", "events", "torch.cuda.num_ooms"),
    _counter("allocator_retries", "events", "torch.cuda.num_alloc_retries"),
)
