"""Which spans of a batch can be used; the others are counted by kind with the place of the first."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ragclinic.signals.readers.reader import Origin, ReadLog
from ragclinic.signals.readers.spans import Event, SpanColumns

MAX_DURATION_NS = 24 * 3600 * 10**9
"""A span of more than a day is a clock that was set while it ran, not an answer somebody waited for."""


class Check(NamedTuple):
    """One way to be unusable: the kind, the mask of the spans that are, and what to say of one."""

    kind: str
    bad: NDArray[np.bool_]
    say: Callable[[int], str]


def usable(columns: SpanColumns, origin: Origin, log: ReadLog) -> SpanColumns:
    """The spans that can be used; every span is counted in `log`, once."""
    good = np.ones(len(columns), dtype=np.bool_)
    for check in _checks(columns):
        bad = good & check.bad
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            log.reject(check.kind, origin.at(int(columns.line[first])), check.say(first), int(bad.sum()))
            good &= ~bad
    log.keep(int(good.sum()))
    return columns if good.all() else _chosen(columns, good)


def _checks(columns: SpanColumns) -> Iterator[Check]:
    start, end = columns.start_ns, columns.end_ns
    yield Check("no trace id", _no_id(columns.trace_id), lambda _: "no trace id; expected hexadecimal digits")
    yield Check("no span id", _no_id(columns.span_id), lambda _: "no span id; expected hexadecimal digits")
    yield Check("no start time", start <= 0, lambda _: "no start time; expected nanoseconds since 1970")
    yield Check(
        "span not ended", end <= 0, lambda _: "no end time; expected one; the span was exported unfinished"
    )
    yield Check(
        "negative duration",
        end < start,
        lambda i: (
            f"span ends {(start[i] - end[i]) / 1e9:.3g} s before it starts; expected end >= start; "
            "check the exporter's clock"
        ),
    )
    yield Check(
        "longer than a day",
        end - start > MAX_DURATION_NS,
        lambda i: (
            f"span lasts {(end[i] - start[i]) / 1e9:.0f} s; expected less than a day; a clock was set meanwhile"
        ),
    )


def _no_id(ids: pa.Array) -> NDArray[np.bool_]:
    absent = pc.fill_null(pc.match_substring_regex(ids, "^0*$"), True)
    found: NDArray[np.bool_] = absent.to_numpy(zero_copy_only=False)
    return found


def _chosen(columns: SpanColumns, good: NDArray[np.bool_]) -> SpanColumns:
    new_row = np.cumsum(good) - 1
    mask = pa.array(good)
    triples = columns.attributes.where(good[columns.attributes.owner])
    return SpanColumns(
        trace_id=columns.trace_id.filter(mask),
        span_id=columns.span_id.filter(mask),
        parent_id=columns.parent_id.filter(mask),
        name=columns.name.filter(mask),
        start_ns=columns.start_ns[good],
        end_ns=columns.end_ns[good],
        service=columns.service.filter(mask),
        error=columns.error.filter(mask),
        line=columns.line[good],
        attributes=triples._replace(owner=new_row[triples.owner]),
        events=tuple(Event(int(new_row[e.row]), *e[1:]) for e in columns.events if good[e.row]),
    )
