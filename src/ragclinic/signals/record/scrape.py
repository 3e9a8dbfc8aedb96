"""Scrapes pages of metrics over HTTP, given or found at the ports where servers usually have them.

A page that does not answer, is too large or is none gives no samples and the reason; nothing is raised, since
the server may just be starting or ending. `instance` is added as a label, as Prometheus does, so that several
servers of one kind stay apart.
"""

import io
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import httpx

from ragclinic.signals.readers import prometheus_text
from ragclinic.signals.readers.reader import HEAD_BYTES, Origin, ReadLog, ReadOptions
from ragclinic.signals.records import Sample

MAX_PAGE_BYTES = 16 * 1024 * 1024
"""The largest pages met in the field have a few megabytes."""
USUAL_PORTS: tuple[tuple[int, str], ...] = (
    (8000, "vLLM"),
    (30000, "SGLang"),
    (8080, "llama.cpp, TGI"),
    (8002, "Triton"),
    (4000, "LiteLLM"),
    (9091, "Milvus"),
    (9121, "Redis exporter"),
    (9400, "DCGM exporter"),
)
PORTS = tuple(port for port, _ in USUAL_PORTS)
PATH = "/metrics"


class Scrape(NamedTuple):
    """What one page gave at one moment. `problem` is None where it could be read; `bad` counts broken lines."""

    url: str
    samples: tuple[Sample, ...] = ()
    problem: str | None = None
    bad: int = 0


def scrape(client: httpx.Client, url: str, time_ns: int) -> Scrape:
    """The samples of a page, at `time_ns` unless they carry a time of their own."""
    try:
        with client.stream("GET", url) as answer:
            if answer.status_code != httpx.codes.OK:
                return Scrape(url, problem=f"HTTP {answer.status_code}; expected 200")
            page = bytearray()
            for chunk in answer.iter_bytes():
                page += chunk
                if len(page) > MAX_PAGE_BYTES:
                    return Scrape(url, problem=f"more than {MAX_PAGE_BYTES} bytes; expected a page of metrics")
    except httpx.HTTPError as error:
        return Scrape(url, problem=f"{type(error).__name__}: {error}; expected a page of metrics")
    if prometheus_text.sniff(bytes(page[:HEAD_BYTES])) == 0:
        return Scrape(url, problem="no metrics on the page; expected Prometheus or OpenMetrics text")
    log = ReadLog()
    records = prometheus_text.read(io.BytesIO(page), Origin(url, modified_ns=time_ns), log, ReadOptions())
    instance = _instance(url)
    samples = tuple(
        Sample(s.time_ns, s.name, s.value, {"instance": instance, **s.labels})
        for s in records
        if isinstance(s, Sample)
    )
    return Scrape(url, samples, bad=log.bad_rows)


def find_local(client: httpx.Client, host: str = "127.0.0.1", ports: Iterable[int] = PORTS) -> list[str]:
    """The addresses on this machine that show a page of metrics."""
    urls = (f"http://{host}:{port}{PATH}" for port in ports)
    return [url for url in urls if scrape(client, url, 0).problem is None]


class Scraper:
    """Asks several pages in turn; a source for a sampler. `problems` holds what is wrong with a page just now."""

    def __init__(self, client: httpx.Client, urls: Iterable[str]) -> None:
        self._client = client
        self.urls = tuple(urls)
        self.problems: dict[str, str] = {}

    def __call__(self, time_ns: int) -> Iterator[Sample]:
        """The samples of all pages that answer."""
        for url in self.urls:
            found = scrape(self._client, url, time_ns)
            if found.problem is None:
                self.problems.pop(url, None)
            else:
                self.problems[url] = found.problem
            yield from found.samples


def _instance(url: str) -> str:
    parts = httpx.URL(url)
    return parts.host if parts.port is None else f"{parts.host}:{parts.port}"
