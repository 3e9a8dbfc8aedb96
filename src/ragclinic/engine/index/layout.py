"""What an index folder holds: `meta.json`, `journal.jsonl` and `segments/`.

    meta.json        what the index was made with: schema, embedder, tokenizer, chunk sizes, source
    journal.jsonl    one line a commit: a segment with its documents, or documents taken away
    segments/000001/ the documents of one commit, never changed once its line is written

The journal is the truth: a segment without a line was never finished, and of two lines about one document the
later one counts.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from ragclinic.errors import BadInput

SCHEMA_VERSION = 1
META, JOURNAL, SEGMENTS = "meta.json", "journal.jsonl", "segments"


@dataclass(frozen=True, slots=True)
class IndexMeta:
    """What an index was made with; everything in it must be the same to add to it."""

    embedder: str
    tokenizer: str
    size_tokens: int
    overlap_tokens: int
    source: str
    schema_version: int = SCHEMA_VERSION


class DocumentEntry(NamedTuple):
    """One document of a segment; `rows` counts its sentences and the parts of sentences at its chunks' edges."""

    id: str
    title: str
    content_hash: str
    chunks: int
    sentences: int
    rows: int


class SegmentEntry(NamedTuple):
    """One commit: the size and the CRC-32 of each file, and the documents in the order of the rows."""

    name: str
    files: Mapping[str, tuple[int, int]]
    documents: tuple[DocumentEntry, ...]


class Journal(NamedTuple):
    """All commits so far. `whole_bytes` is where the last whole line ends: a killed process may leave a part."""

    segments: tuple[SegmentEntry, ...]
    live: Mapping[str, tuple[str, int]]
    whole_bytes: int


def read_meta(folder: Path) -> IndexMeta:
    """What the index in this folder was made with.

    Raises:
        BadInput: there is none, it is damaged, or of another schema.
    """
    path = folder / META
    try:
        fields = json.loads(path.read_text("utf-8"))
        version = fields["schema_version"]
        if version != SCHEMA_VERSION:
            raise BadInput(
                f"{path}: schema {version}; expected {SCHEMA_VERSION}; remove the folder and ingest again"
            )
        return IndexMeta(**fields)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise BadInput(
            f"{folder}: no {META} there; expected an index; make one: ragclinic ingest FOLDER --index {folder}"
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise damaged(path, f"cannot be read ({error})") from error


def write_meta(folder: Path, meta: IndexMeta) -> None:
    """Writes `meta.json` whole or not at all."""
    temporary = folder / f".{META}.tmp"
    temporary.write_text(json.dumps(asdict(meta), ensure_ascii=False, indent=1) + "\n", "utf-8")
    temporary.replace(folder / META)


def read_journal(folder: Path) -> Journal:
    """All whole lines of the journal; none where there is no journal yet.

    Raises:
        BadInput: a line is damaged; the message has its number.
    """
    path = folder / JOURNAL
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        data = b""
    except OSError as error:
        raise damaged(path, error.strerror or str(error)) from error
    whole = data[: data.rfind(b"\n") + 1]
    segments: list[SegmentEntry] = []
    live: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            fields = json.loads(line)
            for doc in fields.get("removed", ()):
                live.pop(doc, None)
            if "segment" in fields:
                segments.append(_segment(fields))
                live.update({d.id: (segments[-1].name, i) for i, d in enumerate(segments[-1].documents)})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise damaged(path, f"line {number} cannot be read") from error
    return Journal(tuple(segments), live, len(whole))


def segment_line(segment: SegmentEntry) -> bytes:
    """The journal's line for a commit."""
    fields = {
        "segment": segment.name,
        "files": segment.files,
        "documents": [d._asdict() for d in segment.documents],
    }
    return _line(fields)


def removed_line(documents: Sequence[str]) -> bytes:
    """The journal's line for documents taken away."""
    return _line({"removed": list(documents)})


def state_of(meta: IndexMeta, contents: Mapping[str, str]) -> str:
    """A name for what an index answers from: the same for the same documents, made the same way."""
    made_with = [meta.embedder, meta.tokenizer, meta.size_tokens, meta.overlap_tokens, meta.schema_version]
    digest = hashlib.sha256(json.dumps([made_with, sorted(contents.items())]).encode())
    return digest.hexdigest()[:16]


def damaged(path: Path, found: str) -> BadInput:
    """The error for a file of an index that is not as it was written."""
    return BadInput(
        f"{path}: {found}; expected it as ingest wrote it; run the same ragclinic ingest again: it makes damaged "
        "segments anew (if it says this again, remove the index folder first)"
    )


def _segment(fields: Mapping[str, object]) -> SegmentEntry:
    name, files, documents = fields["segment"], fields["files"], fields["documents"]
    if not (isinstance(name, str) and isinstance(files, dict) and isinstance(documents, list)):
        raise TypeError
    return SegmentEntry(
        name,
        {file: (size, crc) for file, (size, crc) in files.items()},
        tuple(DocumentEntry(**d) for d in documents),
    )


def _line(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
