"""Times as logs print them, turned into nanoseconds since the Unix epoch.

Logs seldom say their time zone, and some leave the year out (vLLM, syslog). A time without a zone is read as
UTC, a date without a year is put into the last year that does not lie after the file was written; both leave a
note.
"""

import calendar
import re
from collections.abc import Hashable

from ragclinic.signals.readers.reader import Origin, ReadLog

SECOND_NS = 1_000_000_000
DAY_NS = 86_400 * SECOND_NS
MILLISECONDS_FROM = 1e11
"""An epoch number from here on is milliseconds: as seconds it would be the year 5138."""
LAST_MS = 9.2e12
"""Milliseconds up to which nanoseconds fit into 64 bits (the year 2261)."""

CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
ZONE = r"\s?(?P<zone>Z\b|[+-]\d\d:?\d\d\b)?"
# 2026-12-01T16:20:00.123456789Z, 2026-12-01 16:20:00,123, 2026/12/01 16:20:00.123, 2026/12/01 - 16:20:00
DATED = re.compile(rf"(?P<year>\d{{4}})[-/](?P<month>\d\d)[-/](?P<day>\d\d)(?:[T ]| - ){CLOCK}{ZONE}")
SHORT = re.compile(rf"(?<![\d-])(?P<month>\d\d)-(?P<day>\d\d) {CLOCK}")  # vLLM: 12-01 16:20:00
MONTHS = {name: number for number, name in enumerate(calendar.month_abbr) if name}
SYSLOG = re.compile(rf"\b(?P<month>{'|'.join(MONTHS)}) +(?P<day>\d{{1,2}}) {CLOCK}")

NO_ZONE = "times without a time zone were read as UTC"
NO_YEAR = "times without a year were put into the year in which the file was written"


def find_time(text: str, origin: Origin, log: ReadLog) -> int | None:
    """The first time in a line, in nanoseconds; None where there is none or it is no real date."""
    found = DATED.search(text)
    if found is not None:
        if found["zone"] is None:
            log.note(NO_ZONE)
        return _ns(int(found["year"]), found)
    found = SHORT.search(text) or SYSLOG.search(text)
    if found is None:
        return None
    log.note(NO_YEAR)
    log.note(NO_ZONE)
    return _in_last_year(found, origin.modified_ns or 0)


def epoch_ns(number: float) -> int:
    """Seconds or milliseconds since the epoch, told apart by their size, as nanoseconds.

    Raises:
        ValueError: not a number, or too far from now for 64 bits of nanoseconds.
    """
    if not abs(number) < LAST_MS:
        raise ValueError(f"time {number}; expected seconds or milliseconds since 1970")
    seconds = number / 1000 if abs(number) >= MILLISECONDS_FROM else number
    return round(seconds * 1_000_000) * 1000


class Sweeps:
    """Times for rows that print none: the file's own, and one step more for each sweep over the same series.

    A sweep is one scrape, or one line a device. Where the step is unknown it is a nanosecond: the order stays, but
    nothing per second can be told from it.
    """

    def __init__(self, origin: Origin, log: ReadLog, step_ns: int = 1) -> None:
        self._time_ns = origin.modified_ns or 0
        self._first: Hashable | None = None
        self._log = log
        self._step_ns = step_ns

    def time_ns(self, series: Hashable) -> int:
        """The time of a row of this series: a new sweep begins where the first series comes again."""
        if self._first is None:
            self._first = series
            self._log.note("rows without a time got the time at which the file was written")
        elif series == self._first:
            self._time_ns += self._step_ns
            self._log.note(
                "rows without a time were kept in order; rates per second cannot be told from them"
                if self._step_ns == 1
                else f"rows without a time were taken to be {self._step_ns / SECOND_NS:g} s apart, the default"
            )
        return self._time_ns


def _in_last_year(found: re.Match[str], written_ns: int) -> int | None:
    year = 1970 + int(written_ns / (365.2425 * DAY_NS))
    times = [_ns(y, found) for y in (year + 1, year, year - 1)]
    real = [t for t in times if t is not None]
    return next((t for t in real if t <= written_ns + DAY_NS), real[-1] if real else None)


def _ns(year: int, found: re.Match[str]) -> int | None:
    parts = found.groupdict()
    month = MONTHS.get(parts["month"]) or int(parts["month"])
    day, hour, minute, second = (int(parts[name]) for name in ("day", "hour", "minute", "second"))
    if not (1 <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]):
        return None
    if hour > 23 or minute > 59 or second > 60:
        return None
    seconds = calendar.timegm((year, month, day, hour, minute, second)) - _offset_s(parts.get("zone"))
    if abs(seconds) * 1000 > LAST_MS:
        return None
    return seconds * SECOND_NS + int((parts["fraction"] or "0").ljust(9, "0"))


def _offset_s(zone: str | None) -> int:
    if not zone or zone == "Z":
        return 0
    sign = -1 if zone[0] == "-" else 1
    return sign * (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60)
