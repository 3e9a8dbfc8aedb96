"""Prometheus and OpenMetrics text: one scrape of a `/metrics` page, or a file of scrapes one after another.

Formats read: Prometheus text 0.0.4 and OpenMetrics 1.0, as prometheus-client 0.26, vLLM, SGLang, llama.cpp, TGI
and the DCGM exporter write them. Names stay as printed: the library's own family reader would append `_total`
to counters such as `tgi_request_count`, so it is given the series alone, without the `# TYPE` lines.

Times are milliseconds in Prometheus text and seconds in OpenMetrics. Where samples carry none, a line that holds
nothing but a time (`date -Is; curl .../metrics` in a loop) dates what follows; else the file's own time does.
"""

import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import BinaryIO

from ragclinic.signals.readers.clock import Sweeps, epoch_ns, find_time
from ragclinic.signals.readers.lines import lines
from ragclinic.signals.readers.prometheus_lacks import SeenNames
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import Record, Sample

QUOTED = r'"(?:[^"\\]|\\.)*"'
LINE = re.compile(
    rf"(?P<series>[^\s{{}}#]*(?:\s*\{{(?:[^\"{{}}]|{QUOTED})*\}})?)"
    r"\s+(?P<value>[^\s{}]+)(?:\s+(?P<time>-?[\d.]+(?:[eE][+-]?\d+)?))?(?:\s+#\s.*)?"
)
NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
COMMENT = re.compile(rb"^# (?:TYPE|HELP) \S+ \S", re.MULTILINE)
SAMPLE = re.compile(rb"^[a-zA-Z_:][a-zA-Z0-9_:]*(?:\{[^\n]*\})? +[-+.\w]+(?: -?[\d.]+)?\r?$", re.MULTILINE)
# A line of its own that dates the scrape below it: `# 2026-12-01T16:20:00Z`, `=== time: 1796142000 ===`.
MARK = re.compile(
    r"[\s#=*\-]*(?:(?:scraped?|time(?:stamp)?|date|ts|at)[\s:=]*)*(?P<time>\d[\dT:.,+\-/ Z]{9,40}?)[\s#=*\-]*",
    re.I,
)
EPOCH = re.compile(r"\d{10}(?:\d{3}|\.\d+)?")
OWN_COMMENTS = ("# TYPE", "# HELP", "# UNIT", "# EOF")


def sniff(head: bytes) -> float:
    """Sure where `# TYPE` or `# HELP` lines are; less so of lines that only look like samples."""
    if COMMENT.search(head) and SAMPLE.search(head):
        return 0.9
    rows = [row for row in head.splitlines()[:20] if row.strip() and not row.startswith(b"#")]
    looks = sum(1 for row in rows if SAMPLE.fullmatch(row))
    return 0.6 if looks >= 3 and looks >= len(rows) - 2 else 0.0


def parse_line(text: str) -> tuple[str, dict[str, str], float, int | None]:
    """Name, labels, value and time in nanoseconds of one sample line; an exemplar behind it is dropped.

    Raises:
        ValueError: not a sample; the message says what was expected.
    """
    found = LINE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r}; expected name{{labels}} value [time]")
    name, labels = _series(found["series"])
    return name, dict(labels), _number(found["value"]), _time_ns(found["time"])


def read(stream: BinaryIO, origin: Origin, log: ReadLog, _options: ReadOptions) -> Iterator[Record]:
    """One sample a line; a row is a line with a sample, comments are passed over."""
    dated: int | None = None
    sweeps, names = Sweeps(origin, log), SeenNames()
    for here, text in lines(stream, origin, log):
        mark = _mark_time(text, here, log)
        if mark is not None or text.startswith("#"):
            log.skip()
            dated = dated if mark is None else mark
            continue
        try:
            name, labels, value, time_ns = parse_line(text)
        except ValueError as error:
            log.reject("not a sample", here, str(error))
            continue
        if not math.isfinite(value):
            log.reject("value not finite", here, f"{name} is {value}; expected a number")
            continue
        log.keep()
        names.add(name)
        printed = time_ns if time_ns is not None else dated
        undated = sweeps.time_ns((name, tuple(sorted(labels.items())))) if printed is None else printed
        yield Sample(undated, name, value, labels)
    names.say(log)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r}; expected a number") from None


def _time_ns(text: str | None) -> int | None:
    return None if text is None else epoch_ns(_number(text))


@lru_cache(maxsize=65_536)
def _series(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    from prometheus_client.parser import text_string_to_metric_families  # loads a web server, so only when needed

    if NAME.fullmatch(text):
        return text, ()
    try:
        (family,) = text_string_to_metric_families(f"{text} 0")
    except (ValueError, IndexError) as error:
        raise ValueError(f'series {text!r}; expected name{{label="value"}}') from error
    (sample,) = family.samples
    return sample.name, tuple(sample.labels.items())


def _mark_time(text: str, here: Origin, log: ReadLog) -> int | None:
    if text.startswith(OWN_COMMENTS):
        return None
    found = MARK.fullmatch(text)
    if found is None:
        return None
    inner = found["time"].strip()
    if EPOCH.fullmatch(inner):
        return epoch_ns(float(inner))
    return find_time(inner, here, log)


READER = Reader(
    id="prometheus-text",
    versions=("Prometheus text 0.0.4", "OpenMetrics 1.0", "vLLM 0.8 to 0.32", "SGLang 0.4 to 0.5", "TGI 3.3"),
    signals=("kv usage", "queue", "preemptions", "prefix hits", "latency histograms", "device memory", "pcie"),
    sniff=sniff,
    read=read,
)
