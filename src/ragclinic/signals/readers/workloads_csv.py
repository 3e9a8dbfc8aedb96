"""Workload traces in CSV: Azure's LLM inference traces and BurstGPT.

Read: Azure/AzurePublicDataset @b469a11 (2023: `TIMESTAMP` without a zone, seven decimals; 2024: with one) and
BurstGPT release 1.1 (`Timestamp` in seconds from its beginning) with its later columns `Session ID` and
`Elapsed time` (s).
A BurstGPT row with 0 response tokens is a request that failed.
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO

from ragclinic.signals.readers.fields import number, text, whole
from ragclinic.signals.readers.lines import lines
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.readers.times import iso_ns
from ragclinic.signals.readers.workload import WORKLOAD_SIGNALS, relative_ns, request_span, tell
from ragclinic.signals.records import Record, Span

_AZURE = re.compile(rb"\A\s*\"?TIMESTAMP\"?,\"?ContextTokens\"?,\"?GeneratedTokens")
_BURST = re.compile(
    rb"\A\s*\"?Timestamp\"?,(\"?Session ID\"?,)?(\"?Elapsed time\"?,)?\"?Model\"?,\"?Request tokens"
)
MAX_ELAPSED_S = 86_400.0

Row = Mapping[str, str]


def sniff_azure(head: bytes) -> float:
    """Sure by the header."""
    return 0.97 if _AZURE.match(head) else 0.0


def sniff_burstgpt(head: bytes) -> float:
    """Sure by the header."""
    return 0.97 if _BURST.match(head) else 0.0


def azure_span(row: Row, here: Origin) -> Span:
    """A row of Azure's trace.

    Raises:
        ValueError: it is none; the message says what was found.
    """
    time_ns = iso_ns(row.get("TIMESTAMP", ""))
    if time_ns is None or time_ns <= 0:
        raise ValueError(f"TIMESTAMP is {row.get('TIMESTAMP', '')!r}; expected a date and time")
    return request_span(here, time_ns, _count(row, "ContextTokens"), _count(row, "GeneratedTokens"))


def burstgpt_span(row: Row, here: Origin) -> Span:
    """A row of BurstGPT.

    Raises:
        ValueError: it is none; the message says what was found.
    """
    seconds, elapsed_s = number(row.get("Timestamp")), number(row.get("Elapsed time")) or 0.0
    if seconds is None:
        raise ValueError(f"Timestamp is {row.get('Timestamp', '')!r}; expected seconds")
    if not 0 <= elapsed_s <= MAX_ELAPSED_S:
        raise ValueError(f"Elapsed time is {elapsed_s} s; expected 0 to {MAX_ELAPSED_S:.0f}")
    answer = _count(row, "Response tokens")
    return request_span(
        here,
        relative_ns(seconds),
        _count(row, "Request tokens"),
        answer,
        elapsed_ns=round(elapsed_s * 1e9),
        error=None if answer else "failed: no response tokens",
        more={
            "gen_ai.request.model": text(row, "Model"),
            "session.id": row.get("Session ID") or None,
            "ragclinic.workload.type": text(row, "Log Type"),
        },
    )


def read_azure(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """A row is a request."""
    yield from _rows(stream, origin, log, azure_span)
    tell(log, relative=False)


def read_burstgpt(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """A row is a request."""
    yield from _rows(stream, origin, log, burstgpt_span)
    tell(log)


def _rows(
    stream: BinaryIO, origin: Origin, log: ReadLog, parse: Callable[[Row, Origin], Span]
) -> Iterator[Record]:
    header: list[str] | None = None
    for here, line in lines(stream, origin, log):
        try:
            cells = next(csv.reader([line]), [])
            if header is None:
                header = [cell.strip() for cell in cells]
                continue
            if len(cells) != len(header):
                raise ValueError(f"{len(cells)} cells; expected {len(header)}")
            span = parse(dict(zip(header, cells, strict=True)), here)
        except (ValueError, csv.Error) as error:
            log.reject("unreadable request", here, str(error))
            continue
        log.keep()
        yield span


def _count(row: Row, name: str) -> int:
    if not (row.get(name) or "").strip():
        raise ValueError(f"{name} is empty; expected a number of tokens")
    return whole(row, name)


AZURE_READER = Reader(
    id="azure-llm-trace",
    versions=("AzurePublicDataset 2023", "AzurePublicDataset 2024"),
    signals=WORKLOAD_SIGNALS,
    sniff=sniff_azure,
    read=read_azure,
)
BURSTGPT_READER = Reader(
    id="burstgpt",
    versions=("BurstGPT release 1.1", "with Session ID and Elapsed time"),
    signals=(*WORKLOAD_SIGNALS, "session", "total time"),
    sniff=sniff_burstgpt,
    read=read_burstgpt,
)
