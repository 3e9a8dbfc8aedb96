"""How sure a cause may be: by how far its number lies beyond the threshold, and by how many requests showed it."""

AT_THRESHOLD = 0.6
AT_SURE = 0.95
FEW_REQUESTS = 20
"""Below this many requests P95 is the slowest of them, and one outlier can make a finding."""
FEW_FACTOR = 0.7


def graded(value: float, at: float, sure: float) -> float:
    """Confidence for a value beyond the threshold `at`: 0.6 there, 0.95 from `sure` on, linear between.

    `sure` may lie below `at`, for values that speak the louder the smaller they are.

    >>> graded(0.5, at=0.5, sure=0.9), graded(0.9, at=0.5, sure=0.9), graded(0.1, at=0.5, sure=0.3)
    (0.6, 0.95, 0.95)
    """
    part = min(1.0, max(0.0, (value - at) / (sure - at)))
    return AT_THRESHOLD + (AT_SURE - AT_THRESHOLD) * part


def from_few(confidence: float, requests: int) -> float:
    """The confidence where only so many requests were seen: down to 0.7 of it for a single one.

    >>> from_few(0.9, 20), round(from_few(0.9, 1), 3)
    (0.9, 0.643)
    """
    return confidence * (FEW_FACTOR + (1 - FEW_FACTOR) * min(1.0, requests / FEW_REQUESTS))
