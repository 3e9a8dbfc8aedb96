"""What published workload traces have in common: requests with arrival and token counts, and no latencies.

A request becomes a span without duration, so its findings are structural; the times of traces that count from
their own beginning are put after `BASE_NS`.
"""

import hashlib
from collections.abc import Mapping

from ragclinic.signals.readers.reader import Origin, ReadLog
from ragclinic.signals.records import AttributeValue, Span

BASE_NS = 1_767_225_600 * 10**9
"""2026-01-01T00:00:00Z: when a trace that only counts seconds is said to begin."""
MAX_RELATIVE_NS = 10 * 366 * 24 * 3600 * 10**9
NO_LATENCIES = "a workload trace: it holds arrivals and token counts, and no latencies"
RELATIVE = "its times count from its own beginning, which was put at 2026-01-01T00:00:00Z"

WORKLOAD_SIGNALS = ("arrivals", "prompt tokens", "output tokens")


def relative_ns(seconds: float) -> int:
    """A moment of a trace that counts from its own beginning.

    Raises:
        ValueError: it is no such moment.
    """
    if not 0 <= seconds * 1e9 <= MAX_RELATIVE_NS:
        raise ValueError(f"time {seconds}; expected seconds from the trace's beginning, at most ten years")
    return BASE_NS + round(seconds * 1_000_000) * 1000


def request_span(
    origin: Origin,
    time_ns: int,
    prompt_tokens: int,
    output_tokens: int,
    *,
    part: int = 0,
    elapsed_ns: int = 0,
    error: str | None = None,
    more: Mapping[str, AttributeValue | None] | None = None,
) -> Span:
    """A request of a trace as a span; `part` tells apart several on one line.

    Raises:
        ValueError: token counts below zero.
    """
    if prompt_tokens < 0 or output_tokens < 0:
        raise ValueError(f"{prompt_tokens} and {output_tokens} tokens; expected none below zero")
    trace_id = hashlib.blake2b(f"{origin}#{part}".encode("utf-8", "replace"), digest_size=16).hexdigest()
    attributes: dict[str, AttributeValue] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": prompt_tokens,
        "gen_ai.usage.output_tokens": output_tokens,
        **{name: value for name, value in (more or {}).items() if value is not None},
    }
    return Span(
        trace_id,
        trace_id[:16],
        None,
        "request",
        time_ns,
        time_ns + max(0, elapsed_ns),
        error=error,
        attributes=attributes,
    )


def tell(log: ReadLog, relative: bool = True) -> None:
    """Says what a trace like this cannot tell, and what would."""
    log.note(NO_LATENCIES)
    if relative:
        log.note(RELATIVE)
    log.lacks("stages", "record the service itself: ragclinic record, or export its OpenTelemetry spans")
