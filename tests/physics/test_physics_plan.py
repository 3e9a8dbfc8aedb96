import time
from dataclasses import replace

import pytest

from ragclinic.physics.hardware import named_device
from ragclinic.physics.models import named_model
from ragclinic.physics.plan import Setting, even_load, make_plan, trace_load, under_load
from ragclinic.physics.precision import kv_type, weight_type
from ragclinic.physics.simulator import LLAMA_CPP, TGI, Arrival, fixed_lengths, poisson


def make_setting(
    model: str = "llama-3-8b", device: str = "a100-80g", context: int = 4096, users: int = 20, weights: str = "f16"
) -> Setting:
    return Setting(
        model=named_model(model),
        device=named_device(device),
        context_tokens=context,
        users=users,
        slo_ms=2000,
        kv=kv_type("f16"),
        weights=weight_type(weights),
    )


def test_physics_plan_a_setting_that_fits_keeps_its_objective_and_says_where_it_breaks() -> None:
    plan = make_plan(make_setting())
    assert plan.fits
    assert plan.keeps
    assert plan.cheapest == ()
    assert plan.breaks_at.requests_per_s is not None
    assert plan.breaks_at.requests_per_s > plan.rate_per_s
    assert plan.max_users > 20


def test_physics_plan_the_breaking_load_is_where_it_says() -> None:
    setting = make_setting()
    at = make_plan(setting).breaks_at.requests_per_s
    server = setting.server()
    assert at is not None
    assert server is not None
    below = under_load(setting, server, even_load(setting).at(at * 0.9)).ttft_ms.p95
    above = under_load(setting, server, even_load(setting).at(at * 1.3)).ttft_ms.p95
    assert below is not None
    assert above is not None
    assert below <= setting.slo_ms < above


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        (make_setting("llama-3-70b", "h100-80g"), r"^the weights: 141.1 GB do not fit the 77.0 GB that h100-80g"),
        (
            make_setting("llama-3-8b", "a10-24g", 131_072),
            r"^the KV cache: .* one context of 131,072 tokens takes 17.2",
        ),
        (make_setting("llama-3-8b", "rtx-4080-16g"), r"^the weights: 16.1 GB do not fit the 15.5 GB"),
        (make_setting("qwen3-8b", "l4-24g", 9200, 2), r"of 8,944 tokens alone takes [\d,]+ ms of prefill"),
        (make_setting("qwen3-8b", "l4-24g", 8192, 2), r"by itself: two that come together break the objective"),
    ],
)
def test_physics_plan_an_impossible_setting_says_what_fails_first(setting: Setting, why: str) -> None:
    import re

    plan = make_plan(setting)
    assert not plan.keeps
    assert plan.breaks_at.requests_per_s == 0
    assert re.search(why, plan.breaks_at.why)


def test_physics_plan_working_memory_that_does_not_fit_is_named() -> None:
    setting = make_setting("llama-3-8b", "rtx-4080-16g", weights="fp8")
    device = replace(setting.device, memory_bytes=10_400_000_000)
    assert make_plan(replace(setting, device=device)).breaks_at.why.startswith("working memory: 9.1 GB of weights")


def test_physics_plan_the_cheapest_changes_keep_the_objective_and_the_dearest_come_last() -> None:
    plan = make_plan(make_setting("llama-3-70b", "h100-80g", 8192, 64))
    assert plan.cheapest
    assert all(c.ttft_p95_ms <= 2000 for c in plan.cheapest)
    assert [c.devices for c in plan.cheapest] == sorted(c.devices for c in plan.cheapest)
    assert plan.cheapest[0].devices == 4


def test_physics_plan_a_lighter_cache_is_tried_before_more_devices() -> None:
    plan = make_plan(make_setting(context=8192, users=64))
    assert not plan.keeps
    assert "--kv-type fp8" in [c.options for c in plan.cheapest]
    assert plan.cheapest[0].devices == 1


def test_physics_plan_a_full_cache_is_why_it_breaks() -> None:
    setting = make_setting("llama-2-7b", "a10-24g", 3000, 5, weights="awq")
    plan = make_plan(replace(setting, output_tokens=1500, slo_ms=60_000))
    assert "KV cache is full" in plan.breaks_at.why


def test_physics_plan_the_batch_limit_is_why_it_breaks() -> None:
    setting = make_setting()
    plan = make_plan(replace(setting, profile=replace(setting.profile, sequences=2)))
    assert "limit of 2 sequences" in plan.breaks_at.why


def test_physics_plan_more_memory_never_lowers_capacity() -> None:
    setting = make_setting(context=8192, users=40)
    sizes = [40, 60, 80, 120]
    users = [
        make_plan(replace(setting, device=replace(setting.device, memory_bytes=g << 30))).max_users for g in sizes
    ]
    assert users == sorted(users)
    assert users[0] < users[-1]


def test_physics_plan_compression_and_replicas_raise_the_breaking_load() -> None:
    setting = make_setting()
    base = make_plan(setting).breaks_at.requests_per_s or 0
    assert (make_plan(replace(setting, compression=0.5)).breaks_at.requests_per_s or 0) > 1.5 * base
    assert (make_plan(replace(setting, replicas=2)).breaks_at.requests_per_s or 0) > 1.5 * base


@pytest.mark.parametrize("profile", [TGI, LLAMA_CPP])
def test_physics_plan_other_servers_are_planned_too(profile: object) -> None:
    assert isinstance(profile, type(TGI))
    plan = make_plan(replace(make_setting(), profile=profile))
    assert plan.summary is not None
    assert plan.summary.errors == 0


def test_physics_plan_a_trace_is_planned_at_its_own_rate() -> None:
    trace = list(poisson(2.0, 400, fixed_lengths(1000, 50), seed=5))
    assert trace_load(trace).rate_per_s == pytest.approx(2.0, rel=0.15)
    plan = make_plan(make_setting(), trace)
    assert plan.rate_per_s == pytest.approx(2.0, rel=0.15)
    assert plan.summary is not None
    assert plan.summary.requests == 400


def test_physics_plan_a_trace_whose_requests_come_at_once_has_a_rate() -> None:
    assert trace_load([Arrival(0, 10, 1), Arrival(0, 10, 1)]).rate_per_s == 2


def test_physics_plan_one_setting_is_answered_within_a_second() -> None:
    start = time.process_time()
    make_plan(make_setting("llama-3-70b", "h100-80g", 8192, 64))
    make_plan(make_setting())
    assert (time.process_time() - start) / 2 < 1.0


def test_physics_plan_a_cpu_needs_no_runtime_of_an_accelerator() -> None:
    cpu, gpu = (make_setting("smollm2-135m", d).budget() for d in ("ryzen-7950x-64g", "a100-80g"))
    assert gpu.activations_bytes - cpu.activations_bytes > 512 << 20
