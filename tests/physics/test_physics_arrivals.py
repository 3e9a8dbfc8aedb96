"""Published traces become arrivals, a simulation becomes a recording that can be read again."""

import csv
import json
import time
from collections import Counter
from pathlib import Path

import pytest

from ragclinic.errors import BadInput
from ragclinic.physics.hardware import named_device
from ragclinic.physics.models import named_model
from ragclinic.physics.precision import kv_type, weight_type
from ragclinic.physics.roofline import step_cost
from ragclinic.physics.simulator import (
    VLLM,
    Arrival,
    Server,
    azure_arrivals,
    faster,
    fixed_lengths,
    merged,
    mooncake_arrivals,
    named_router,
    percentile,
    poisson,
    repeated,
    simulate,
    summarise,
    to_records,
)
from ragclinic.signals.records import Sample, Span
from ragclinic.signals.requests import build_requests

SHARED = Path(__file__).parents[2].parent / "shared" / "data"


def make_server(blocks: int = 24_000) -> Server:
    cost = step_cost(named_model("llama-3-8b"), named_device("a100-80g"), kv_type("f16"), weight_type("f16"))
    return Server(VLLM, cost, blocks)


def test_physics_arrivals_azure_rows_are_read_from_the_first_moment_on() -> None:
    rows = [
        {"TIMESTAMP": "2023-11-16 18:15:46.6805900", "ContextTokens": "374", "GeneratedTokens": "44"},
        {"TIMESTAMP": "2023-11-16 18:15:50.9951690", "ContextTokens": "396", "GeneratedTokens": "0"},
    ]
    found = list(azure_arrivals(rows, "conv.csv"))
    assert found[0] == Arrival(0.0, 374, 44)
    assert found[1].time_s == pytest.approx(4.314579)
    assert found[1].output_tokens == 1


def test_physics_arrivals_mooncake_rows_keep_their_hashes() -> None:
    row = {"timestamp": 1500, "input_length": 1100, "output_length": 7, "hash_ids": [3, 4, 9]}
    assert list(mooncake_arrivals([row], "m.jsonl")) == [Arrival(1.5, 1100, 7, (3, 4, 9), 512)]


@pytest.mark.parametrize("row", [{}, {"TIMESTAMP": "today", "ContextTokens": "1", "GeneratedTokens": "1"}])
def test_physics_arrivals_a_broken_azure_row_is_named_with_its_line(row: dict[str, str]) -> None:
    with pytest.raises(BadInput, match=r"^conv.csv:2: .*expected TIMESTAMP,ContextTokens,GeneratedTokens"):
        list(azure_arrivals([row], "conv.csv"))


@pytest.mark.parametrize("row", [{}, {"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": ["x"]}])
def test_physics_arrivals_a_broken_mooncake_row_is_named_with_its_line(row: dict[str, object]) -> None:
    with pytest.raises(BadInput, match=r"^m.jsonl:1: .*expected numbers timestamp"):
        list(mooncake_arrivals([row], "m.jsonl"))


def test_physics_arrivals_streams_are_merged_in_order_and_sped_up() -> None:
    one, two = (poisson(1, 20, fixed_lengths(1, 1), seed=s, tenant=str(s)) for s in (1, 2))
    times = [a.time_s for a in merged([one, two])]
    assert times == sorted(times)
    assert [a.time_s for a in faster([Arrival(4, 1, 1)], 2)] == [2]


def test_physics_arrivals_percentiles_interpolate() -> None:
    assert percentile([], 0.5) is None
    assert percentile([3.0], 0.95) == 3.0
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.5
    assert percentile([4.0, 1.0, 3.0, 2.0], 1.0) == 4.0


def test_physics_arrivals_a_simulation_is_read_back_as_requests() -> None:
    arrivals = list(poisson(3, 40, fixed_lengths(2000, 100), seed=1, tenant="library"))
    events = list(simulate(make_server(), arrivals, sample_s=1.0))
    records = list(to_records(events, "vllm", 16, window_tokens=8192))
    requests = build_requests([r for r in records if isinstance(r, Span)])
    assert len(requests) == 40
    first = requests[0]
    assert (first.prompt_tokens, first.output_tokens, first.cached_tokens) == (2000, 100, 0)
    assert (first.tenant, first.window_tokens) == ("library", 8192)
    assert sum(s.duration_ms for s in first.stages) == pytest.approx(first.total_ms, rel=1e-6)
    summary = summarise(events)
    assert summary.total_ms.p95 == pytest.approx(percentile([r.total_ms for r in requests], 0.95), rel=1e-6)
    names = Counter(r.name for r in records if isinstance(r, Sample))
    assert names["vllm:kv_cache_usage_perc"] == names["vllm:num_requests_waiting"] > 3


def test_physics_arrivals_a_request_turned_away_is_an_error_span() -> None:
    events = list(simulate(make_server(blocks=2), [Arrival(0, 100, 5)]))
    spans = [r for r in to_records(events, "llama.cpp", 16) if isinstance(r, Span)]
    assert len(spans) == 1
    assert "exceed" in str(spans[0].error)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the Azure trace is not beside this checkout")
def test_physics_arrivals_the_azure_trace_runs_at_a_hundred_thousand_requests_a_minute() -> None:
    with (SHARED / "azure" / "conv.csv").open(newline="") as file:
        trace = list(azure_arrivals(csv.DictReader(file), "conv.csv"))
    count = 10_000
    start = time.process_time()
    summary = summarise(simulate(make_server(), repeated(trace, count), sample_s=5.0))
    took_s = time.process_time() - start
    assert summary.requests == count
    assert count / took_s * 60 >= 100_000


@pytest.mark.skipif(not SHARED.is_dir(), reason="the Mooncake trace is not beside this checkout")
def test_physics_arrivals_the_mooncake_trace_finds_its_shared_prefixes() -> None:
    with (SHARED / "mooncake" / "conversation_trace.jsonl").open() as file:
        trace = list(mooncake_arrivals((json.loads(line) for _, line in zip(range(800), file, strict=False)), "m"))
    blind, aware = (
        summarise(simulate(make_server(40_000), trace, 8, named_router(r)))
        for r in ("least-loaded", "prefix-aware")
    )
    assert blind.errors == aware.errors == 0
    assert 0.02 < blind.cached_share < aware.cached_share
