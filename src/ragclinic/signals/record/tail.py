"""Follows a growing log file as a stream, through rotation and truncation, for any reader of lines.

Lines come out whole: a line that is still being written waits for its end. At the start the file's end is
sought, so that only what happens from now on is recorded, unless all of it is asked for.
"""

import io
import os
from collections.abc import Callable
from pathlib import Path

CHUNK_BYTES = 64 * 1024
POLL_S = 0.25

Wait = Callable[[float], bool]
"""Waits some seconds and says whether to stop; `threading.Event.wait` is one."""


class Tail(io.RawIOBase):
    """A file that never ends until `wait` says stop; use it where a reader takes a binary stream."""

    def __init__(self, path: Path, wait: Wait, from_start: bool = False, poll_s: float = POLL_S) -> None:
        self._path, self._wait, self._poll_s = path, wait, poll_s
        self._file: io.BufferedReader | None = None
        self._rest = b""
        self._open(at_end=not from_start)

    def readable(self) -> bool:
        """It is."""
        return True

    def readline(self, size: int | None = -1, /) -> bytes:
        """The next whole line, or the first `size` bytes of a longer one; empty when told to stop."""
        limit = -1 if size is None else size
        while True:
            end = self._rest.find(b"\n") + 1
            if not end and 0 <= limit <= len(self._rest):
                end = limit
            if end:
                end = end if limit < 0 else min(end, limit)
                line, self._rest = self._rest[:end], self._rest[end:]
                return line
            chunk = self._more()
            if not chunk:
                line, self._rest = self._rest, b""
                return line
            self._rest += chunk

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
        super().close()

    def _more(self) -> bytes:
        """What was written next; empty when told to stop."""
        while True:
            chunk = self._file.read(CHUNK_BYTES) if self._file is not None else b""
            if chunk:
                return chunk
            if self._moved():
                self._open(at_end=False)
                continue
            if self._wait(self._poll_s):
                return b""

    def _moved(self) -> bool:
        """Whether the path names another file by now, or the same one cut short."""
        try:
            there = self._path.stat()
        except OSError:
            return False  # between the old file and the new one
        if self._file is None:
            return True
        here = os.fstat(self._file.fileno())
        return (there.st_ino, there.st_dev) != (here.st_ino, here.st_dev) or there.st_size < self._file.tell()

    def _open(self, at_end: bool) -> None:
        if self._file is not None:
            self._file.close()
        try:
            self._file = self._path.open("rb")
        except OSError:
            self._file = None  # not there yet
            return
        if at_end:
            self._file.seek(0, io.SEEK_END)
