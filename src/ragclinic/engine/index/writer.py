"""Writes an index, a commit at a time; whenever the process dies, what was committed is there and nothing else.

A commit is: write the segment aside, move it into place, add its line to the journal.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock, Timeout

from ragclinic.engine.embed import Embed
from ragclinic.engine.index import segment
from ragclinic.engine.index.layout import (
    JOURNAL,
    META,
    SEGMENTS,
    IndexMeta,
    Journal,
    SegmentEntry,
    read_journal,
    read_meta,
    removed_line,
    segment_line,
    write_meta,
)
from ragclinic.errors import BadInput

_LOCK = ".lock"
_PARTIAL = ".partial-"
_OUR_NAMES = frozenset({_LOCK, META, JOURNAL, SEGMENTS, f".{META}.tmp"})


class IndexWriter:
    """Opens an index to add to it; use as a context manager. A new folder is made with the first commit only.

    Raises:
        BadInput: the folder holds something else or an index made in another way, or someone is writing to it.
    """

    def __init__(self, folder: Path, meta: IndexMeta) -> None:
        self.folder = folder
        self._meta = meta
        self._lock: FileLock | None = None
        self._is_new = not (folder / META).exists()
        self._journal = Journal((), {}, 0)
        self._damaged: frozenset[str] = frozenset()

    def __enter__(self) -> Self:
        if not self._is_new:
            self._begin()
        elif self.folder.exists() and not (
            self.folder.is_dir() and {path.name for path in self.folder.iterdir()} <= _OUR_NAMES
        ):
            raise BadInput(
                f"{self.folder}: holds something else; expected an index or a new folder; "
                "choose another with --index"
            )
        return self

    def known(self) -> dict[str, str]:
        """The content hash of each document that is there and whole; damaged ones have an empty one."""
        entries = {s.name: s.documents for s in self._journal.segments}
        return {
            doc: "" if name in self._damaged else entries[name][position].content_hash
            for doc, (name, position) in self._journal.live.items()
        }

    def totals(self) -> tuple[int, int, int]:
        """How many documents, chunks and sentences are there."""
        entries = {s.name: s.documents for s in self._journal.segments}
        live = [entries[name][position] for name, position in self._journal.live.values()]
        return len(live), sum(d.chunks for d in live), sum(d.sentences for d in live)

    def commit(self, documents: Sequence[segment.Prepared], embed: Embed) -> None:
        """Embeds the documents and makes them part of the index, in place of earlier ones of the same ids.

        Raises:
            BadInput: the disk is full or cannot be written.
        """
        self._begin()
        number = max((int(s.name) for s in self._journal.segments), default=0) + 1
        folder = self.folder / SEGMENTS / f"{number:06d}"
        partial = folder.with_name(f"{_PARTIAL}{folder.name}")
        try:
            partial.mkdir(parents=True)
            entries = segment.write(partial, documents, embed)
            files = {}
            for path in sorted(partial.iterdir()):
                segment.flush_to_disk(path)
                files[path.name] = segment.size_and_crc(path)
            partial.rename(folder)
            segment.flush_to_disk(folder.parent)
            self._append(segment_line(SegmentEntry(folder.name, files, entries)))
        except OSError as error:
            raise self._unwritable(error) from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def remove(self, documents: Sequence[str]) -> None:
        """Takes documents out of the index."""
        if documents:
            self._begin()
            self._append(removed_line(documents))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Deletes segments that hold no live document any more, and a new folder that got none at all."""
        if self._lock is None:
            return
        live = {name for name, _ in self._journal.live.values()}
        for dead in (s.name for s in self._journal.segments if s.name not in live):
            shutil.rmtree(self.folder / SEGMENTS / dead, ignore_errors=True)
        if self._is_new and not self._journal.segments:
            shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.release()

    def _begin(self) -> None:
        """Takes the lock and clears away what a killed process left; the first time only."""
        if self._lock is not None:
            return
        lock = FileLock(self.folder / _LOCK)
        try:
            (self.folder / SEGMENTS).mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=0)
            if not (self.folder / META).exists():
                write_meta(self.folder, self._meta)
            self._check(read_meta(self.folder))
            self._journal = read_journal(self.folder)
            if (self.folder / JOURNAL).exists():
                os.truncate(self.folder / JOURNAL, self._journal.whole_bytes)
        except Timeout as error:
            raise BadInput(
                f"{self.folder}: another ingest is writing to it; expected to be alone; wait for it to end"
            ) from error
        except OSError as error:
            raise self._unwritable(error) from error
        self._lock = lock
        entries = {s.name: s for s in self._journal.segments}
        for path in (self.folder / SEGMENTS).iterdir():
            if path.name not in entries:
                shutil.rmtree(path, ignore_errors=True)
        live = {name for name, _ in self._journal.live.values()}
        self._damaged = frozenset(
            name for name in live if not segment.is_whole(self.folder / SEGMENTS / name, entries[name])
        )

    def _append(self, line: bytes) -> None:
        with (self.folder / JOURNAL).open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._journal = read_journal(self.folder)

    def _check(self, found: IndexMeta) -> None:
        for name, said in _DIFFERENT.items():
            if getattr(found, name) != getattr(self._meta, name):
                raise BadInput(
                    f"{self.folder}: made with {said} {getattr(found, name)}; "
                    f"expected {getattr(self._meta, name)}; choose another --index or remove the folder"
                )

    def _unwritable(self, error: OSError) -> BadInput:
        return BadInput(
            f"{self.folder}: {error.strerror or error}; expected a folder with room to write to; "
            "free some or choose another --index; what was done so far is kept"
        )


_DIFFERENT: Mapping[str, str] = {
    "embedder": "embedder",
    "tokenizer": "tokenizer",
    "size_tokens": "chunking.size_tokens =",
    "overlap_tokens": "chunking.overlap_tokens =",
    "source": "source",
}
