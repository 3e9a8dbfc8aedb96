import math

from ragclinic.signals.histogram import Histogram
from ragclinic.signals.records import Sample
from ragclinic.signals.states import Point, gauges, increase, latencies


def test_of_two_generations_printed_at_once_only_the_newest_counts() -> None:
    samples = [
        Sample(1, "vllm:gpu_cache_usage_perc", 0.4, {"engine": "0"}),
        Sample(1, "vllm:kv_cache_usage_perc", 0.5, {"engine": "0"}),
        Sample(2, "vllm:gpu_cache_usage_perc", 0.6, {"engine": "0"}),
    ]
    assert gauges(samples, "kv_usage_share") == {"kv_usage_share": (Point(1, 0.5), Point(2, 0.6))}


def test_the_fullest_engine_counts_where_a_mean_would_hide_it() -> None:
    samples = [Sample(1, "vllm:kv_cache_usage_perc", v, {"engine": e}) for e, v in (("0", 0.1), ("1", 0.99))]
    assert gauges(samples, "kv_usage_share")["kv_usage_share"] == (Point(1, 0.99),)


def test_queues_of_engines_are_added_and_ranks_are_not() -> None:
    samples = [
        Sample(1, "vllm:num_requests_waiting", 3.0, {"engine": "0"}),
        Sample(1, "vllm:num_requests_waiting", 4.0, {"engine": "1"}),
        Sample(2, "sglang:num_queue_reqs", 5.0, {"tp_rank": "0"}),
        Sample(2, "sglang:num_queue_reqs", 5.0, {"tp_rank": "1"}),
    ]
    assert gauges(samples, "requests_waiting")["requests_waiting"] == (Point(1, 7.0), Point(2, 5.0))


def test_a_total_is_not_added_to_its_own_parts() -> None:
    queue = [
        Sample(1, "sglang:num_queue_reqs", v, {"priority": p}) for p, v in (("", 5.0), ("1", 2.0), ("9", 3.0))
    ]
    assert gauges(queue, "requests_waiting")["requests_waiting"] == (Point(1, 5.0),)
    sources = (("device", 60.0), ("host", 40.0), ("total", 100.0))
    cached = [
        Sample(t, "sglang:cached_tokens_total", v * t, {"cache_source": source})
        for t in (1, 2)
        for source, v in sources
    ]
    assert increase(cached, "prompt_tokens_cached") == 100.0
    parts = [s for s in cached if s.labels["cache_source"] != "total"]
    assert increase(parts, "prompt_tokens_cached") == 100.0


def test_a_counter_that_falls_was_restarted() -> None:
    samples = [Sample(t, "vllm:num_preemptions_total", v) for t, v in ((1, 10.0), (2, 12.0), (3, 1.0))]
    assert increase(samples, "preemptions") == 3.0


def test_a_counter_that_was_not_seen_is_unknown_and_not_zero() -> None:
    assert increase([], "preemptions") is None


def test_units_are_converted_to_the_states_own() -> None:
    samples = [Sample(1, "DCGM_FI_DEV_FB_USED", 1024.0), Sample(1, "DCGM_FI_DEV_GPU_UTIL", 50.0)]
    assert gauges(samples, "device_memory_used_bytes", "device_busy_share") == {
        "device_memory_used_bytes": (Point(1, 1024.0**3),),
        "device_busy_share": (Point(1, 0.5),),
    }


def test_latencies_of_engines_are_gathered_and_ranks_count_once() -> None:
    name = "sglang:time_to_first_token_seconds_bucket"
    samples = [
        Sample(1, name, count, {"le": edge, "tp_rank": rank})
        for rank in ("0", "1")
        for edge, count in (("1.0", 3.0), ("+Inf", 4.0))
    ]
    assert latencies(samples, "ttft_s") == Histogram((1.0, math.inf), (3.0, 4.0))


def test_a_latency_in_milliseconds_becomes_seconds_and_other_labels_stay_out() -> None:
    samples = [
        Sample(1, "milvus_proxy_sq_latency_bucket", v, {"le": "8", "query_type": kind})
        for kind, v in (("search", 2.0), ("query", 50.0))
    ]
    assert latencies(samples, "search_s") == Histogram((0.008, math.inf), (2.0, 2.0))
