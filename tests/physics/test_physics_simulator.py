"""The simulator keeps its books: requests, blocks, order, time; and does what the servers are known to do."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragclinic.errors import BadInput
from ragclinic.physics.hardware import named_device
from ragclinic.physics.models import named_model
from ragclinic.physics.precision import kv_type, weight_type
from ragclinic.physics.roofline import StepCost, decode_ms, prefill_ms, step_cost
from ragclinic.physics.simulator import (
    LLAMA_CPP,
    PROFILES,
    SGLANG,
    TGI,
    VLLM,
    Arrival,
    Done,
    Gauge,
    Profile,
    Replica,
    Server,
    bursts,
    fixed_lengths,
    named_profile,
    named_router,
    poisson,
    repeated,
    simulate,
    spread_lengths,
    summarise,
)
from ragclinic.physics.simulator.sequence import Sequence


def make_cost(model: str = "llama-3-8b", device: str = "a100-80g") -> StepCost:
    return step_cost(named_model(model), named_device(device), kv_type("f16"), weight_type("f16"))


COST = make_cost()
SLIDING = make_cost("gemma-2-9b")


def make_server(
    profile: Profile = VLLM, blocks: int = 4000, cost: StepCost = COST, tenant_share: float | None = None
) -> Server:
    return Server(profile, cost, blocks, swap_block_ms=0.05, tenant_share=tenant_share)


def ends(server: Server, arrivals: list[Arrival], replicas: int = 1, router: str = "least-loaded") -> list[Done]:
    events = simulate(server, arrivals, replicas, named_router(router))
    return sorted((e for e in events if isinstance(e, Done)), key=lambda d: d.number)


ARRIVALS = st.lists(
    st.builds(
        lambda gap, prompt, output, prefix, tenant, priority: (gap, prompt, output, prefix, tenant, priority),
        st.floats(0, 2),
        st.integers(1, 700),
        st.integers(1, 200),
        st.integers(0, 3),
        st.sampled_from(["a", "b"]),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=25,
).map(
    lambda rows: [
        Arrival(
            sum(r[0] for r in rows[: i + 1]),
            row[1],
            row[2],
            tuple(row[3] * 100 + k if k < 5 else 10_000 + i * 100 + k for k in range(row[1] // 64)),
            64,
            row[4],
            row[5],
        )
        for i, row in enumerate(rows)
    ]
)
SWAPPING = replace(VLLM, name="vllm-swap", full="swap")
PROFILE = st.sampled_from([VLLM, SGLANG, TGI, LLAMA_CPP, SWAPPING, replace(VLLM, step_tokens=128, sequences=5)])


@settings(max_examples=120, deadline=None)
@given(arrivals=ARRIVALS, profile=PROFILE, tokens=st.integers(950, 3000), replicas=st.integers(1, 3))
def test_physics_simulator_conserves_requests(
    arrivals: list[Arrival], profile: Profile, tokens: int, replicas: int
) -> None:
    found = ends(make_server(profile, tokens // profile.block_tokens), arrivals, replicas)
    assert [d.number for d in found] == list(range(len(arrivals)))
    for done in found:
        assert done.arrival.time_s <= done.scheduled_s <= done.first_s <= done.end_s
        assert done.error is None or profile is LLAMA_CPP
        assert 0 <= done.cached_tokens < done.arrival.prompt_tokens


@settings(max_examples=80, deadline=None)
@given(arrivals=ARRIVALS, profile=PROFILE, tokens=st.integers(950, 3000))
def test_physics_simulator_every_block_has_one_owner_at_every_moment(
    arrivals: list[Arrival], profile: Profile, tokens: int
) -> None:
    blocks = tokens // profile.block_tokens
    replica = Replica(make_server(profile, blocks))
    for number, arrival in enumerate(arrivals):
        replica.advance(arrival.time_s)
        assert sorted(replica.owned_blocks()) == list(range(blocks))
        assert 0 <= replica.gauge(0).used_blocks <= blocks
        replica.submit(Sequence(number, arrival))
    while replica.load:
        replica.advance(replica.clock_s + 0.02)
        assert sorted(replica.owned_blocks()) == list(range(blocks))
    assert replica.gauge(0).used_blocks == 0
    assert len(replica.done) == len(arrivals)


@settings(max_examples=60, deadline=None)
@given(arrivals=ARRIVALS, profile=PROFILE, cost=st.sampled_from([COST, SLIDING]), pause=st.floats(0.001, 0.05))
def test_physics_simulator_runs_of_steps_equal_the_same_steps_one_by_one(
    arrivals: list[Arrival], profile: Profile, cost: StepCost, pause: float
) -> None:
    whole, pieces = (Replica(make_server(profile, 3000 // profile.block_tokens, cost)) for _ in range(2))
    for number, arrival in enumerate(arrivals):
        whole.advance(arrival.time_s)
        while pieces.load and pieces.clock_s < arrival.time_s:
            pieces.advance(min(arrival.time_s, pieces.clock_s + pause))
        whole.submit(Sequence(number, arrival))
        pieces.submit(Sequence(number, arrival))
    whole.advance(math.inf)
    while pieces.load:
        pieces.advance(pieces.clock_s + pause)
    for one, other in zip(whole.done, pieces.done, strict=True):
        assert one.number == other.number
        assert one.end_s == pytest.approx(other.end_s, abs=1e-6)
        assert one.first_s == pytest.approx(other.first_s, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(arrivals=ARRIVALS, profile=PROFILE)
def test_physics_simulator_first_come_is_first_served(arrivals: list[Arrival], profile: Profile) -> None:
    alike = [a._replace(priority=0) for a in arrivals]
    found = ends(make_server(profile, 6000 // profile.block_tokens), alike)
    assert all(one.scheduled_s <= other.scheduled_s for one, other in pairwise(found))


@settings(max_examples=30, deadline=None)
@given(arrivals=ARRIVALS, profile=PROFILE)
def test_physics_simulator_repeats_exactly(arrivals: list[Arrival], profile: Profile) -> None:
    server = make_server(profile, 1500 // profile.block_tokens)
    assert ends(server, arrivals, 2) == ends(server, arrivals, 2)


def test_physics_simulator_a_seed_fixes_the_arrivals() -> None:
    lengths = spread_lengths(100, 10)
    assert list(poisson(2, 50, lengths, seed=3)) == list(poisson(2, 50, lengths, seed=3))
    assert list(poisson(2, 50, lengths, seed=3)) != list(poisson(2, 50, lengths, seed=4))


def test_physics_simulator_poisson_has_its_rate_and_bursts_their_size() -> None:
    arrivals = list(poisson(5, 4000, fixed_lengths(1, 1), seed=1))
    assert arrivals[-1].time_s == pytest.approx(800, rel=0.05)
    assert [a.time_s for a in bursts(3, 10, 7, fixed_lengths(1, 1))] == [0, 0, 0, 10, 10, 10, 20]


def test_physics_simulator_one_request_alone_takes_what_the_roofline_says() -> None:
    done = ends(make_server(), [Arrival(1.0, 1500, 11)])[0]
    assert done.ttft_ms == pytest.approx(prefill_ms(COST, 1500))
    assert done.tpot_ms == pytest.approx(decode_ms(COST, 1, 1504.5), rel=1e-6)


def test_physics_simulator_a_long_prompt_is_computed_in_chunks() -> None:
    done = ends(make_server(), [Arrival(0, 8000, 1)])[0]
    assert done.ttft_ms == pytest.approx(prefill_ms(COST, 8000, chunk_tokens=2048))


def test_physics_simulator_a_cache_that_is_too_small_preempts_and_recomputes() -> None:
    arrivals = [Arrival(0, 1000, 600) for _ in range(4)]
    tight, roomy = ends(make_server(blocks=300), arrivals), ends(make_server(blocks=4000), arrivals)
    assert sum(d.preemptions for d in tight) > 0
    assert sum(d.preemptions for d in roomy) == 0
    assert max(d.end_s for d in tight) > max(d.end_s for d in roomy)
    assert tight[0].preemptions == 0  # the first is never pushed out by later ones


def test_physics_simulator_a_swapped_request_does_not_prefill_again() -> None:
    arrivals = [Arrival(0, 1000, 600) for _ in range(4)]
    swapped = ends(make_server(SWAPPING, 300), arrivals)
    assert sum(d.preemptions for d in swapped) > 0
    assert max(d.end_s for d in swapped) < max(d.end_s for d in ends(make_server(blocks=300), arrivals))


def test_physics_simulator_tgi_reserves_and_so_never_preempts() -> None:
    arrivals = [Arrival(0, 1000, 600) for _ in range(8)]
    found = ends(make_server(TGI, 300), arrivals)
    assert sum(d.preemptions for d in found) == 0
    assert found[-1].scheduled_s > found[0].end_s * 0.9


def test_physics_simulator_admission_by_the_first_chunk_evicts_what_it_admits() -> None:
    """vllm-project/vllm#37307: long prompts admitted on their first chunk push each other out."""
    arrivals = list(poisson(3, 30, fixed_lengths(15_000, 200), seed=1))
    by_chunk = ends(make_server(blocks=4100), arrivals)
    by_prompt = ends(make_server(replace(VLLM, reserve="prompt"), 4100), arrivals)
    assert sum(d.preemptions for d in by_chunk) > 2 * sum(d.preemptions for d in by_prompt)


@pytest.mark.parametrize("profile", [VLLM, SGLANG, LLAMA_CPP])
def test_physics_simulator_a_shared_prefix_is_computed_once(profile: Profile) -> None:
    shared = tuple(range(10))
    arrivals = [Arrival(i * 60.0, 5200, 5, (*shared, 100 + i), 512) for i in range(3)]
    found = ends(make_server(profile, 20_000), arrivals)
    assert [d.cached_tokens for d in found] == [0, 5120, 5120]
    assert found[1].ttft_ms < found[0].ttft_ms / 4


def test_physics_simulator_two_at_once_both_compute_a_prefix_no_cache_holds_yet() -> None:
    arrivals = [Arrival(0, 1100, 5, (1, 2), 512) for _ in range(2)]
    assert [d.cached_tokens for d in ends(make_server(), arrivals)] == [0, 0]


def test_physics_simulator_the_prefix_cache_gives_way_to_running_requests() -> None:
    first = Arrival(0, 1030, 1, (1, 2), 512)
    big = Arrival(10, 4700, 1)
    again = Arrival(20, 1030, 1, (1, 2), 512)
    assert ends(make_server(blocks=300), [first, big, again])[2].cached_tokens == 0
    assert ends(make_server(blocks=600), [first, big, again])[2].cached_tokens == 1024


def test_physics_simulator_priorities_go_first() -> None:
    arrivals = [Arrival(0, 6000, 50), *(Arrival(0.001, 6000, 50, priority=2 - i) for i in range(3))]
    found = ends(make_server(replace(VLLM, sequences=1), 4000), arrivals)
    assert sorted(range(1, 4), key=lambda i: found[i].scheduled_s) == [3, 2, 1]


def test_physics_simulator_a_tenant_over_its_share_waits_and_others_pass() -> None:
    heavy = [Arrival(0, 4000, 400, tenant="heavy") for _ in range(6)]
    light = [Arrival(0.5, 500, 20, tenant="light")]
    free = ends(make_server(blocks=900), [*heavy, *light])[-1]
    shared = ends(make_server(blocks=900, tenant_share=0.5), [*heavy, *light])[-1]
    assert shared.ttft_ms < free.ttft_ms / 3


def test_physics_simulator_a_request_that_can_never_fit_is_turned_away() -> None:
    found = ends(make_server(blocks=10), [Arrival(0, 200, 5), Arrival(0, 100, 5)])
    assert found[0].error == "205 tokens exceed the 160 that the cache holds for one request"
    assert found[1].error is None


def test_physics_simulator_slots_bound_each_request_as_n_ctx_over_n_parallel_does() -> None:
    profile = replace(LLAMA_CPP, slot_tokens=512)
    found = ends(make_server(profile, 2048), [Arrival(0, 600, 5), Arrival(0, 400, 5)])
    assert found[0].error is not None
    assert found[1].error is None


def test_physics_simulator_separate_prefill_stops_the_decodes_of_others() -> None:
    """Prefill batches go first (SGLang, TGI): running answers wait for a long prompt."""
    long_prompt = [Arrival(0, 100, 200), Arrival(0.5, 16_000, 1)]
    alone = ends(make_server(SGLANG, 40_000), long_prompt[:1])[0]
    stopped = ends(make_server(SGLANG, 40_000), long_prompt)[0]
    assert stopped.end_s - alone.end_s > 0.5 * prefill_ms(COST, 16_000) / 1000


@pytest.mark.parametrize("router", ["round-robin", "least-loaded", "prefix-aware"])
def test_physics_simulator_two_replicas_halve_the_queue(router: str) -> None:
    arrivals = list(poisson(6, 200, fixed_lengths(3000, 50), seed=2))
    one, two = (summarise(simulate(make_server(), arrivals, n, named_router(router))) for n in (1, 2))
    assert two.ttft_ms.p95 is not None
    assert one.ttft_ms.p95 is not None
    assert two.ttft_ms.p95 < one.ttft_ms.p95 / 2


def test_physics_simulator_a_prefix_aware_router_finds_the_replica_that_has_it() -> None:
    arrivals = [Arrival(i * 5.0, 5200, 5, (*range(i % 2 * 50, i % 2 * 50 + 10), 1000 + i), 512) for i in range(9)]
    aware, blind = (
        sum(d.cached_tokens for d in ends(make_server(blocks=1000), arrivals, 3, router))
        for router in ("prefix-aware", "round-robin")
    )
    assert aware > blind


def test_physics_simulator_gauges_come_at_their_interval() -> None:
    arrivals = list(poisson(2, 60, fixed_lengths(500, 100), seed=1))
    gauges = [e for e in simulate(make_server(), arrivals, sample_s=5.0) if isinstance(e, Gauge)]
    assert 4 <= len(gauges) <= 10
    assert gauges[-1].running == gauges[-1].waiting == 0
    assert max(g.used_blocks for g in gauges) > 0


def test_physics_simulator_time_that_runs_backwards_is_refused() -> None:
    with pytest.raises(ValueError, match="arrival 1 at 1 s comes after one at 2 s"):
        list(simulate(make_server(), [Arrival(2, 1, 1), Arrival(1, 1, 1)]))


def test_physics_simulator_a_repeated_trace_goes_on_where_it_ended() -> None:
    trace = [Arrival(5.0, 1, 1), Arrival(6.0, 2, 2), Arrival(7.0, 3, 3)]
    assert [(a.time_s, a.prompt_tokens) for a in repeated(trace, 5)] == [(0, 1), (1, 2), (2, 3), (3, 1), (4, 2)]
    assert list(repeated([], 5)) == []


def test_physics_simulator_servers_and_routers_are_found_by_name_or_the_nearest_is_named() -> None:
    assert named_profile("vLLM") is PROFILES["vllm"]
    with pytest.raises(BadInput, match=r"^server vlm: not known; the nearest is vllm"):
        named_profile("vlm")
    with pytest.raises(BadInput, match=r"^router random: not known; the nearest is "):
        named_router("random")


def test_physics_simulator_an_eager_engine_is_bound_by_its_launches() -> None:
    small = named_model("llama-3.2-1b")
    device, kv, weights = named_device("h100"), kv_type("f16"), weight_type("f16")
    eager = step_cost(small, device, kv, weights, graph=False)
    captured = step_cost(small, device, kv, weights)
    slow = ends(make_server(cost=eager), [Arrival(0, 10, 500)])[0]
    fast = ends(make_server(cost=captured), [Arrival(0, 10, 500)])[0]
    assert slow.tpot_ms == pytest.approx(decode_ms(eager, 1, 260), rel=0.01)
    assert fast.tpot_ms < slow.tpot_ms
