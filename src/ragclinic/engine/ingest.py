"""Documents to an index. What is committed stays, so that it can be interrupted at any moment and begun again.

The index mirrors its source: documents that are new or changed are embedded, those that are gone are taken out,
all others are left alone. A file that cannot be read is named with its reason, and the rest goes on; what the
index held of it before stays.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragclinic.engine.chunking import cut
from ragclinic.engine.documents import CannotRead, Document
from ragclinic.engine.documents.sources import MAX_FILE_MB, Source, given_sources, sources_in
from ragclinic.engine.embed import Embed, Embedder, Vectors
from ragclinic.engine.index.layout import IndexMeta
from ragclinic.engine.index.segment import Prepared, prepare
from ragclinic.engine.index.writer import IndexWriter
from ragclinic.engine.settings import ChunkingSettings
from ragclinic.engine.tokenizer import Tokenizer
from ragclinic.errors import BadInput

_COMMIT_CHARS = 32_768
"""Embedded between two commits, at least: one to four seconds of work on a slow core, which a kill loses."""
_COMMIT_SHARE = 0.02
"""Of all that is done: commits grow with the index, or a large one would have thousands of segments."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A document that could not be used, and why, in one line."""

    doc: str
    reason: str


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What an ingest did, and what the index holds now."""

    written: int
    unchanged: int
    removed: int
    refused: tuple[Refused, ...]
    documents: int
    chunks: int
    sentences: int


def ingest(
    source: Path | Iterable[Document],
    out: Path,
    settings: ChunkingSettings,
    embed: Embedder,
    tokenizer: Tokenizer,
    progress: Callable[[str], None] = lambda _doc: None,
    max_file_mb: float = MAX_FILE_MB,
    pulse: Callable[[str, float], None] = lambda _doc, _share: None,
) -> IngestReport:
    """Makes the index in `out` hold the documents of the source, and says what that took.

    `progress` is called with the id of each document that is done; `pulse` while a long one is embedded, with how
    much of it is (0 to 1).

    Raises:
        BadInput: no document can be read (then nothing is written), or `out` is another index or not writable.
        Unreachable: the embedding server does not answer; what was committed stays.
    """
    if isinstance(source, Path):
        sources, made_of = sources_in(source, max_file_mb, leave_out=out), str(source.resolve())
    else:
        sources, made_of = given_sources(source), "given documents"
    meta = IndexMeta(embed.identity, tokenizer.identity, settings.size_tokens, settings.overlap_tokens, made_of)
    refused: list[Refused] = []
    written = 0
    with IndexWriter(out, meta) as writer:
        known = writer.known()
        for batch in _batches(sources, known, settings, tokenizer, refused, progress):
            embed([])  # what is missing for embedding shows before anything is written
            writer.commit(batch, _telling(embed, batch, pulse))
            written += len(batch)
            for document in batch:
                progress(document.id)
        unchanged = len(sources) - written - len(refused)
        if not written and not unchanged:
            raise _nothing_readable(made_of, sources, refused)
        gone = sorted(known.keys() - {s.id for s in sources})
        writer.remove(gone)
        holds, chunks, sentences = writer.totals()
    return IngestReport(written, unchanged, len(gone), tuple(refused), holds, chunks, sentences)


def _batches(
    sources: Iterable[Source],
    known: dict[str, str],
    settings: ChunkingSettings,
    tokenizer: Tokenizer,
    refused: list[Refused],
    progress: Callable[[str], None],
) -> Iterator[list[Prepared]]:
    """New and changed documents, cut up, as many as make a commit; those that cannot be read go to `refused`."""
    batch: list[Prepared] = []
    waiting_chars = done_chars = 0
    for source in sources:
        try:
            loaded = source.load()
            if known.get(source.id) == loaded.content_hash:
                progress(source.id)
                continue
            document = loaded.document()
        except (CannotRead, OSError) as error:
            refused.append(Refused(source.id, _reason(error)))
            progress(source.id)
            continue
        chunks = list(cut(source.id, document.text, settings, tokenizer))
        batch.append(prepare(source.id, document.title, loaded.content_hash, document.text, chunks))
        waiting_chars += len(document.text)
        if waiting_chars >= max(_COMMIT_CHARS, _COMMIT_SHARE * done_chars):
            yield batch
            batch, done_chars, waiting_chars = [], done_chars + waiting_chars, 0
    if batch:
        yield batch


def _telling(embed: Embed, batch: Sequence[Prepared], pulse: Callable[[str, float], None]) -> Embed:
    """An embedder that says how much of the batch is done, by the name of its longest document."""
    longest = max(batch, key=lambda document: len(document.text)).id
    total = sum(len(d.chunks) + len(d.sentences) + len(d.edges) for d in batch)
    done = 0

    def told(texts: Sequence[str]) -> Vectors:
        nonlocal done
        vectors = embed(texts)
        done += len(texts)
        pulse(longest, done / total)
        return vectors

    return told


def _reason(error: CannotRead | OSError) -> str:
    if isinstance(error, CannotRead):
        return str(error)
    return f"{error.strerror or error}; expected a file that can be read; check its permissions"


def _nothing_readable(made_of: str, sources: Sequence[Source], refused: Sequence[Refused]) -> BadInput:
    first = refused[0]
    place = next(source.place for source in sources if source.id == first.doc)
    where = place if len(refused) == 1 else f"{made_of}: none of its {len(refused)} files can be read, as {place}"
    return BadInput(f"{where}: {first.reason}")
