"""Which requests ask a question again that this service had answered before."""

from collections.abc import Mapping, Sequence

from ragclinic.cache.answers import stands_alone
from ragclinic.signals.seen import Request

DEFAULT_TTL_S = 900.0
"""How long an answer may be given again where no setting tells."""
MIN_QUESTION_TOKENS = 4
"""A shorter question ("yes", "go on") leans on the conversation and means something else in another one."""


def repeats(requests: Sequence[Request], ttl_s: float = DEFAULT_TTL_S) -> Mapping[str, Request]:
    """For each request that an answer cache could have answered, the earlier one with the same question.

    The same question is equal text but for case and punctuation, of the same tenant, after the earlier answer was
    there and within the time to live. Questions that lean on the conversation are no repeats, as in our cache.
    """
    ttl_ns = ttl_s * 1e9
    found: dict[str, Request] = {}
    stored: dict[tuple[str | None, str], Request] = {}
    for request in requests:
        if request.question_key is None or not _stands_alone(request):
            continue
        key = (request.tenant, request.question_key)
        first = stored.get(key)
        ready_ns = first.arrival_ns + first.total_ms * 1e6 if first else 0
        if first is not None and ready_ns <= request.arrival_ns <= ready_ns + ttl_ns:
            found[request.id] = first
        elif first is None or request.arrival_ns > ready_ns + ttl_ns:
            stored[key] = request
    return found


def _stands_alone(request: Request) -> bool:
    if request.question is not None:
        return stands_alone(request.question)
    tokens = request.role_tokens("question")
    return tokens is None or tokens >= MIN_QUESTION_TOKENS
