"""A plan as JSON and as lines for the terminal."""

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ragclinic.physics.plan import Plan
from ragclinic.physics.simulator import Percentiles, Summary

BAR_WIDTH = 60
GIB = 2**30


def plan_json(plan: Plan) -> dict[str, object]:
    """What `ragclinic plan --json` prints; memory is that of the fullest device."""
    setting, memory, summary = plan.setting, plan.memory, plan.summary
    return {
        "model": setting.model.name,
        "attention": setting.model.attention,
        "device": setting.device.name,
        "devices": setting.devices,
        "context_tokens": setting.context_tokens,
        "users": setting.users,
        "slo_ms": setting.slo_ms,
        "kv_type": setting.kv.name,
        "weights": setting.model.stored_type if setting.stored else setting.weights.name,
        "memory": {
            "device_bytes": setting.device.memory_bytes,
            "usable_bytes": memory.usable_bytes,
            "weights_bytes": memory.weights_bytes,
            "kv_bytes_per_token": memory.kv_bytes_per_token,
            "kv_bytes": memory.kv_bytes,
            "activations_bytes": memory.activations_bytes,
            "free_bytes": memory.free_bytes,
        },
        "fits": plan.fits,
        "max_users": plan.max_users,
        "requests_per_s": plan.rate_per_s,
        "ttft_ms": _percentiles(summary.ttft_ms if summary else None),
        "tpot_ms": _percentiles(summary.tpot_ms if summary else None),
        "cached_share": summary.cached_share if summary else None,
        "errors": summary.errors if summary else None,
        "preemptions": summary.preemptions if summary else None,
        "breaks_at": {"requests_per_s": plan.breaks_at.requests_per_s, "why": plan.breaks_at.why},
        "keeps_objective": plan.keeps,
        "cheapest": [
            {"options": c.options, "devices": c.devices, "ttft_p95_ms": c.ttft_p95_ms} for c in plan.cheapest
        ],
        "basis": "roofline" if setting.rates is None else "calibrated",
    }


def print_plan(console: Console, plan: Plan) -> None:
    """The plan for people."""
    setting = plan.setting
    of = f"{setting.devices} x {setting.device.name}" if setting.devices > 1 else setting.device.name
    console.print(
        Text(f"{setting.model.name} on {of}", style="bold"), Text(f"({setting.model.attention})", style="dim")
    )
    console.print(Group(*_memory_lines(plan)))
    console.print(_table(plan))
    for line in _verdict(plan):
        console.print(line)


def _memory_lines(plan: Plan) -> Iterator[RenderableType]:
    memory, setting = plan.memory, plan.setting
    usable = memory.usable_bytes
    parts = (
        ("weights", memory.weights_bytes, "blue", "█"),
        ("activations", memory.activations_bytes, "magenta", "▓"),
        (f"KV of {setting.users:,} context{'s' * (setting.users > 1)}", memory.kv_bytes, "cyan", "▒"),
    )
    bar, left = Text("["), BAR_WIDTH
    for _, size, colour, mark in parts:
        cells = min(left, round(BAR_WIDTH * size / usable))
        bar.append(mark * cells, style=colour)
        left -= cells
    yield bar + Text("░" * left + "]")
    for name, size, colour, mark in parts:
        yield Text.assemble((mark, colour), f" {name} {size / GIB:,.1f} GiB")
    if memory.free_bytes >= 0:
        yield Text(f"░ free {memory.free_bytes / GIB:,.1f} of {usable / GIB:,.1f} GiB usable on a device")
    else:
        yield Text(f"! {-memory.free_bytes / GIB:,.1f} GiB more than the {usable / GIB:,.1f} usable", style="red")


def _table(plan: Plan) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("", "P50", "P95"):
        table.add_column(heading, justify="left" if not heading else "right")
    rows = (("first token", _ttft(plan.summary)), ("per output token", _tpot(plan.summary)))
    for name, values in rows:
        table.add_row(name, *(f"{v:,.0f} ms" if v is not None else "-" for v in values))
    return table


def _verdict(plan: Plan) -> Iterator[Text]:
    setting = plan.setting
    yield Text(f"at {plan.rate_per_s:,.2f} requests a second; {plan.max_users:,} whole contexts fit at once")
    rate = plan.breaks_at.requests_per_s
    if rate is None:
        yield Text(
            f"The objective of {setting.slo_ms:,.0f} ms does not break: {plan.breaks_at.why}", style="green"
        )
    elif rate > 0:
        yield Text(
            f"The objective of {setting.slo_ms:,.0f} ms breaks at {rate:,.2f} a second: {plan.breaks_at.why}"
        )
    else:
        yield Text(f"It fails at once: {plan.breaks_at.why}", style="red")
    if plan.keeps:
        yield Text("The objective is kept.", style="green")
    for change in plan.cheapest:
        more = f", {change.devices} devices" if change.devices > setting.devices else ""
        yield Text(f"  kept with {change.options}{more}: P95 {change.ttft_p95_ms:,.0f} ms")


def _ttft(summary: Summary | None) -> tuple[float | None, float | None]:
    return (summary.ttft_ms.p50, summary.ttft_ms.p95) if summary else (None, None)


def _tpot(summary: Summary | None) -> tuple[float | None, float | None]:
    return (summary.tpot_ms.p50, summary.tpot_ms.p95) if summary else (None, None)


def _percentiles(values: Percentiles | None) -> dict[str, float | None]:
    return {"p50": values.p50 if values else None, "p95": values.p95 if values else None}
