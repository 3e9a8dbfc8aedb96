"""Nothing is above the objective: the one id of the table that is a verdict and not a finding.

It has no share of P95, no remedy and no prediction, so it is no `Cause` and does not stand in `CAUSES`. Where it
holds, nothing is looked for: every service has some redundancy and some queue, and a tool that names them in a
service that is fast enough teaches people not to listen.
What deceives:
- Failed requests: their time is not an answer's. With more than one in twenty failed, P95 of all requests *is* a
  failed one, and the service is not healthy however fast the others were.
- A handful of requests says nothing of P95, slow or not.
"""

MIN_REQUESTS = 5
"""Fewer answered requests show neither a slow nor a healthy service."""
FAILED_SHARE = 0.05
"""Share of requests (0..1) that may fail with P95 still being an answer's."""


def is_healthy(p95_ms: float, slo_ms: float, answered: int, failed: int) -> bool:
    """Whether P95 is within the objective, over enough requests, with few enough failed.

    >>> is_healthy(900, 8000, answered=100, failed=0), is_healthy(900, 8000, answered=2, failed=0)
    (True, False)
    """
    if answered < MIN_REQUESTS or failed > FAILED_SHARE * (answered + failed):
        return False
    return p95_ms <= slo_ms
