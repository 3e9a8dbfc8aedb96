"""The budget: where the requests around P95 spend their time, stage by stage, summing to P95 exactly.

Time that no stage covers is a stage too, named by where it lies, not by why:

    event-loop    before the application's first stage: the request waits in its socket or its event loop
    connect       between the application's last stage and the LLM server's first
    gateway       after the LLM server's last stage: on its way back, through whatever stands between
    unaccounted   anywhere else, and any of the above too short to be worth a name
"""

from collections.abc import Iterator, Sequence

from ragclinic.diagnosis.near import Near, near_p95
from ragclinic.diagnosis.types import Budget, StageShare
from ragclinic.signals.seen import Request, Stage

SERVER_STAGES = frozenset({"queue", "load", "prefill", "decode", "generate"})
EVENT_LOOP = "event-loop"
CONNECT = "connect"
GATEWAY = "gateway"
UNACCOUNTED = "unaccounted"
NAMED_GAP_SHARE = 0.01
"""A gap below this share of P95 goes to `unaccounted`: every request has some, and they explain nothing."""


def budget(requests: Sequence[Request]) -> Budget | None:
    """The budget of the requests around P95, stages in the order in which they run, or None without requests.

    The weighted means of the stages are scaled by P95 / their sum, since P95 is one point of a distribution and
    they are means around it.
    """
    near = near_p95(requests)
    return None if near is None else budget_of(near)


def budget_of(near: Near) -> Budget:
    """The budget of these requests."""
    spent: dict[str, float] = {}
    begins: dict[str, float] = {}
    for request, weight in zip(near.requests, near.weights, strict=True):
        for stage in with_gaps(request):
            spent[stage.name] = spent.get(stage.name, 0.0) + weight * stage.duration_ms
            begins[stage.name] = begins.get(stage.name, 0.0) + weight * stage.start_ms * stage.duration_ms
    total = sum(spent.values())
    if total <= 0:
        return Budget(near.p95_ms)
    for name in (EVENT_LOOP, CONNECT, GATEWAY):
        if 0 < spent.get(name, 0.0) < NAMED_GAP_SHARE * total:
            spent[UNACCOUNTED] = spent.get(UNACCOUNTED, 0.0) + spent.pop(name)
    named = [name for name in spent if name != UNACCOUNTED and spent[name] > 0]
    order = sorted(named, key=lambda name: (begins[name] / spent[name], name))
    if spent.get(UNACCOUNTED, 0.0) > 0:
        order.append(UNACCOUNTED)
    return Budget(near.p95_ms, tuple(_scaled(order, spent, near.p95_ms / total, near.p95_ms)))


def with_gaps(request: Request) -> Iterator[Stage]:
    """The request's stages and what lies between them, in order; together they are its whole time."""
    position = 0.0
    before: str | None = None
    for stage in request.stages:
        if stage.start_ms > position:
            yield Stage(_gap(before, stage.name), position, stage.start_ms)
        yield stage
        position = max(position, stage.end_ms)
        before = stage.name
    if request.total_ms > position:
        yield Stage(_gap(before, None), position, request.total_ms)


def _gap(before: str | None, after: str | None) -> str:
    """The name of the time between two stages; None is the request's begin or end."""
    if before is None and after is None:
        return UNACCOUNTED
    if before is None:
        return CONNECT if after in SERVER_STAGES else EVENT_LOOP
    if before in SERVER_STAGES:
        return GATEWAY if after is None else UNACCOUNTED
    return CONNECT if after in SERVER_STAGES else UNACCOUNTED


def _scaled(order: Sequence[str], spent: dict[str, float], factor: float, p95_ms: float) -> Iterator[StageShare]:
    left = p95_ms
    largest = max(order, key=lambda name: spent[name])
    for name in order:
        if name != largest:
            left -= spent[name] * factor
    for name in order:
        # The largest takes what rounding left over, so that the sum is P95 to the last bit that a float has.
        ms = left if name == largest else spent[name] * factor
        yield StageShare(name, ms, ms / p95_ms)
