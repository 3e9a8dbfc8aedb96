"""ISO times as JSON exports write them."""

from datetime import UTC, datetime

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso_ns(text: str) -> int | None:
    """Nanoseconds since the epoch of an ISO time (UTC where it names no zone), or None where it is none."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    past = (time if time.tzinfo else time.replace(tzinfo=UTC)) - EPOCH
    return ((past.days * 86_400 + past.seconds) * 1_000_000 + past.microseconds) * 1000
