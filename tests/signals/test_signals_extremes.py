"""Numbers no sane program prints must not become records that a recording cannot hold."""

import io
import math
import re
from pathlib import Path

import pytest

from ragclinic.signals.readers import READERS
from ragclinic.signals.readers.reader import Origin, ReadLog, ReadOptions
from ragclinic.signals.records import Sample, Span

DATA = Path(__file__).parents[1] / "data"
BY_ID = {reader.id: reader for reader in READERS}
# Binary ones are told from a damaged file before a number is seen; traces have checks and tests of their own.
LEFT_OUT = (
    "nsight",
    "otlp",
    "prometheus-remote",
    "torch-memory-snapshot",
    "jaeger",
    "zipkin",
    "langfuse",
    "langsmith",
)
FILES = [
    (folder.name, path.name)
    for folder in sorted(DATA.iterdir())
    if folder.name in BY_ID and not folder.name.startswith(LEFT_OUT)
    for path in sorted(folder.iterdir())
    if path.name != "golden.json"
]
NUMBER = re.compile(rb"(?<![\w.])\d+(?:\.\d+)?")
EXTREMES = (b"9" * 400, b"9" * 19, b"-1", b"1e308", b"NaN")
TOKENS = 12


@pytest.mark.parametrize(("folder", "name"), FILES)
def test_every_record_fits_into_a_recording_whatever_number_is_printed(folder: str, name: str) -> None:
    data = (DATA / folder / name).read_bytes()
    places = list(NUMBER.finditer(data))
    for found in places[:: max(1, len(places) // TOKENS)]:
        for extreme in EXTREMES:
            changed = data[: found.start()] + extreme + data[found.end() :]
            log = ReadLog()
            origin = Origin("x", modified_ns=1_796_142_000 * 10**9)
            for record in BY_ID[folder].read(io.BytesIO(changed), origin, log, ReadOptions()):
                if isinstance(record, Sample):
                    assert math.isfinite(record.value), record
                    assert abs(record.time_ns) < 2**63, record
                elif isinstance(record, Span):
                    assert record.start_ns <= record.end_ns, record
                    assert max(abs(record.start_ns), abs(record.end_ns)) < 2**63, record
