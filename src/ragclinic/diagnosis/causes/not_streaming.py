"""The user waits for the last token although the first was there long before.

How it becomes seconds: the total does not change, but all of it is waiting; the share is the part of P95 during
which the answer was being written and nothing of it could be read.
What deceives:
- The server's spans may show an early first token while a proxy holds it back: the client's clock decides, and
  then the variant is `proxy`.
- First byte over total is near 1 too where prefill takes nearly all of it. So the first byte is set against the
  decode stage: streaming means that it comes near that stage's start.
- `decode-bound`: long answers. They are long with streaming as well; without it, streaming is the first remedy.
- Answers of a few tokens come at once either way.
It prefers to miss a service whose first byte nobody measured at the client.
"""

from typing import NamedTuple

from ragclinic.diagnosis.confidence import from_few, graded
from ragclinic.diagnosis.measuring import MIN_KNOWN, Need, around, bounded
from ragclinic.diagnosis.near import answered
from ragclinic.diagnosis.needs import FIRST_BYTE, GENERATION
from ragclinic.diagnosis.remedies import STREAMING
from ragclinic.diagnosis.say import say
from ragclinic.diagnosis.types import Answer, Budget, Cause, Found, Interval, Missing, NotFound, Remedy
from ragclinic.signals.seen import Request, Seen

LATE = 0.9
"""Share of the decode stage (0..1) that has passed when the first byte reaches the user."""
MOSTLY = 0.5
SURELY = 0.9
"""Weights of the requests around P95 whose first byte is that late."""
WORTH_STREAMING = 0.05
"""Share of P95 (0..1) in decode, below which there is nothing to stream."""

NEEDS = (FIRST_BYTE, GENERATION)


class Measured(NamedTuple):
    """Means over the requests around P95. `asked_to_stream` is the share of calls that asked the LLM to stream."""

    late_share: float
    first_byte_ms: float
    first_token_ms: float
    decode_ms: float
    decode_share: float
    asked_to_stream: float | None
    requests: int


def measure(seen: Seen) -> Measured | Missing:
    """When the first token was there, and when the user got the first byte."""
    near = around(
        seen, Need(FIRST_BYTE, lambda r: r.first_byte_ms), Need(GENERATION, lambda r: r.stage_ms("decode"))
    )
    if isinstance(near, Missing):
        return near
    return Measured(
        late_share=near.mean(_late) or 0.0,
        first_byte_ms=near.mean(lambda r: r.first_byte_ms) or 0.0,
        first_token_ms=near.mean(_first_token_ms) or 0.0,
        decode_ms=near.stage_ms("decode") or 0.0,
        decode_share=near.share(lambda r: r.stage_ms("decode")),
        asked_to_stream=near.mean(lambda r: None if r.streamed is None else float(r.streamed)),
        requests=len(answered(seen)),
    )


def decide(m: Measured) -> Answer:
    """Found where most first bytes come when the answer is written, and writing takes a part of P95."""
    if m.late_share < MOSTLY:
        return NotFound(f"{1 - m.late_share:.0%} of the answers reach the user while they are written")
    if m.decode_share < WORTH_STREAMING:
        return NotFound(f"writing the answer takes {m.decode_share:.1%} of P95: there is nothing to stream")
    proxy = m.asked_to_stream is not None and m.asked_to_stream >= MIN_KNOWN
    evidence = say(
        "Around P95 the first token is there after {token:,.0f} ms and the user gets the first byte after "
        "{byte:,.0f} ms, {decode:,.0f} ms of decode later{why}.",
        "在 P95 附近，首个 token 在 {token:,.0f} ms 时已产生，用户却在 {byte:,.0f} ms 才收到首字节，"
        "其间 decode 用了 {decode:,.0f} ms{why_zh}。",
        token=m.first_token_ms,
        byte=m.first_byte_ms,
        decode=m.decode_ms,
        why=", although the LLM was asked to stream" if proxy else "",
        why_zh="，而调用 LLM 时是要求流式的" if proxy else "",
    )
    variant = "proxy" if proxy else "application"
    return Found(from_few(graded(m.late_share, MOSTLY, SURELY), m.requests), (evidence,), variant)


def share(m: Measured, budget: Budget) -> Interval:
    """The decode that the user spends waiting instead of reading, as part of P95. The total stays."""
    return bounded(m.decode_share * m.late_share, budget, ("decode",))


def remedy(_m: Measured, variant: str | None) -> Remedy:
    """Stream; or stop the proxy from buffering what is streamed."""
    if variant == "proxy":
        return Remedy(
            {},
            say(
                "The application streams and something in between buffers: no buffering and no compression for "
                "text/event-stream (nginx: proxy_buffering off; or answer with X-Accel-Buffering: no).",
                "应用已经在流式输出，中间有一层在缓冲：对 text/event-stream 关闭缓冲和压缩"
                "（nginx：proxy_buffering off，或在响应里加 X-Accel-Buffering: no）。",
            ),
        )
    return Remedy(
        STREAMING,
        say(
            "Pass tokens on as they come: the first text is there after prefill; the total stays.",
            "逐字转发：prefill 之后就有文字可读；总时间不变。",
        ),
    )


def _late(request: Request) -> float | None:
    """1 where the first byte came when the answer was all but written, 0 where before, None where unknown."""
    decode = next((s for s in request.stages if s.name == "decode"), None)
    if decode is None or request.first_byte_ms is None:
        return None
    return float(request.first_byte_ms >= decode.start_ms + LATE * decode.duration_ms)


def _first_token_ms(request: Request) -> float | None:
    decode = next((s for s in request.stages if s.name == "decode"), None)
    return None if decode is None else decode.start_ms


CAUSE = Cause(
    id="not-streaming",
    axis="pipeline",
    needs=NEEDS,
    leads_to=(),
    measure=measure,
    decide=decide,
    share=share,
    remedy=remedy,
)
