"""Durations as Go and Rust print them: `1m2.5s`, `541.2ms`, `73.1µs`, `955ns`."""

import re
from collections.abc import Mapping

UNITS_NS: Mapping[str, float] = {
    "h": 3.6e12,
    "m": 6e10,
    "s": 1e9,
    "ms": 1e6,
    "µs": 1e3,
    "μs": 1e3,  # the Greek letter, which looks alike
    "us": 1e3,
    "ns": 1.0,
}
PIECE = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s|µs|μs|us|ns)")
WHOLE = re.compile(rf"(?:{PIECE.pattern})+")
MAX_NS = 7 * 86_400 * 10**9


def duration_ns(text: str) -> int:
    """Nanoseconds.

    Raises:
        ValueError: no duration, or one of more than a week.
    """
    if text.strip() in ("0", "0s"):
        return 0
    if WHOLE.fullmatch(text.strip()) is None:
        raise ValueError(f"{text!r}; expected a duration such as 1m2.5s or 541.2ms")
    found = sum(float(number) * UNITS_NS[unit] for number, unit in PIECE.findall(text))
    if found > MAX_NS:
        raise ValueError(f"{text!r}; expected less than a week")
    return round(found)
