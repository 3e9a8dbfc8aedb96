"""Every format that can be read. To add one: a file beside this, its import, its line in `READERS`, a sample.

docs/adding/reader.md shows the steps. The most specific formats stand first; of readers equally sure the first
wins.
"""

from ragclinic.signals.readers import (
    jaeger,
    langfuse,
    langsmith,
    otlp_json,
    otlp_proto,
    zipkin,
)
from ragclinic.signals.readers.reader import Bad, Origin, Reader, ReadLog, ReadOptions, Rows

READERS: tuple[Reader, ...] = (
    otlp_json.READER,
    otlp_proto.READER,
    jaeger.READER,
    zipkin.READER,
    langfuse.READER,
    langsmith.READER,
)

SURE_ENOUGH = 0.5
"""Below this no reader claims an input: a wrong reader costs more than a clear refusal."""


def reader_for(head: bytes) -> Reader | None:
    """The reader that is surest of an input with this beginning, or None."""
    best, certainty = None, SURE_ENOUGH
    for reader in READERS:
        sure = reader.sniff(head)
        if sure > certainty or (best is None and sure >= certainty):
            best, certainty = reader, sure
    return best


__all__ = ["READERS", "Bad", "Origin", "ReadLog", "ReadOptions", "Reader", "Rows", "reader_for"]
