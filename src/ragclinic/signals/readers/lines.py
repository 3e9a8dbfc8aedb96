"""Lines of a stream, bounded: a line of two gigabytes costs one count, not two gigabytes."""

from collections.abc import Iterator
from typing import BinaryIO

from ragclinic.signals.readers.reader import Origin, ReadLog

LINE_BYTES = 8 * 1024 * 1024


def lines(
    stream: BinaryIO, origin: Origin, log: ReadLog, limit_bytes: int = LINE_BYTES
) -> Iterator[tuple[Origin, str]]:
    """The lines with their places, without line ends; empty ones are left out and not counted.

    A line that is too long or not UTF-8 is counted as bad, and the rest is read.
    """
    number = 0
    while raw := stream.readline(limit_bytes + 1):
        number += 1
        here = origin.at(number)
        if len(raw) > limit_bytes and not raw.endswith(b"\n"):
            log.reject("line too long", here, f"more than {limit_bytes} bytes; expected lines of text")
            _finish_line(stream, limit_bytes)
            continue
        try:
            text = raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            log.reject("not UTF-8", here, f"byte 0x{raw[error.start]:02x} at {error.start}; expected UTF-8 text")
            continue
        if text.strip():
            yield here, text


def _finish_line(stream: BinaryIO, step: int) -> None:
    while (raw := stream.readline(step)) and not raw.endswith(b"\n"):
        pass
