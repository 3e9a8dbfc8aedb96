"""One plan: will it fit, how fast, what breaks first, and what is the cheapest change that keeps the objective."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragclinic.physics.memory import Budget
from ragclinic.physics.plan.cheapest import Change, cheapest_changes
from ragclinic.physics.plan.predict import Break, breaking_load, even_load, trace_load, under_load
from ragclinic.physics.plan.setting import Setting
from ragclinic.physics.simulator import Arrival, Summary

SEARCH_TRACE = 2000
"""Requests of a trace that the search for the breaking load uses; the prediction itself uses all."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer. `summary` is None where nothing can run; `max_users` counts whole contexts held at once."""

    setting: Setting
    memory: Budget
    fits: bool
    max_users: int
    rate_per_s: float
    summary: Summary | None
    breaks_at: Break
    cheapest: tuple[Change, ...]

    @property
    def keeps(self) -> bool:
        """Whether the objective is kept under the asked load."""
        p95 = self.summary.ttft_ms.p95 if self.summary else None
        return self.fits and p95 is not None and p95 <= self.setting.slo_ms


def make_plan(setting: Setting, trace: Sequence[Arrival] | None = None, router: str = "least-loaded") -> Plan:
    """The plan for a setting under its users' load, or under a trace of at least two requests."""
    memory, server = setting.budget(), setting.server()
    load = trace_load(trace) if trace else even_load(setting)
    plan = Plan(
        setting=setting,
        memory=memory,
        fits=memory.fits,
        max_users=memory.sequences * setting.replicas,
        rate_per_s=load.rate_per_s,
        summary=None,
        breaks_at=Break(0.0, _missing(setting, memory)),
        cheapest=(),
    )
    if server is not None:
        search = trace_load(trace[:SEARCH_TRACE]) if trace else load
        plan = replace(
            plan,
            summary=under_load(setting, server, load.at(load.rate_per_s), router),
            breaks_at=breaking_load(setting, server, search, router),
        )
    return plan if plan.keeps or trace else replace(plan, cheapest=cheapest_changes(setting))


def _missing(setting: Setting, memory: Budget) -> str:
    """What fails first where nothing can run, in the order in which a server would meet it."""
    share = f"each of {setting.devices} devices" if setting.devices > 1 else setting.device.name
    if memory.weights_bytes > memory.usable_bytes:
        return (
            f"the weights: {_gb(memory.weights_bytes)} do not fit the {_gb(memory.usable_bytes)} that {share} "
            "has to give"
        )
    if memory.weights_bytes + memory.activations_bytes > memory.usable_bytes:
        return (
            f"working memory: {_gb(memory.weights_bytes)} of weights leave too little for "
            f"{_gb(memory.activations_bytes)} of activations and graphs"
        )
    return (
        f"the KV cache: {_gb(memory.cache_bytes)} are left and one context of {setting.held_tokens:,} tokens "
        f"takes {_gb(memory.sequence_bytes)}"
    )


def _gb(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:,.1f} GB"
