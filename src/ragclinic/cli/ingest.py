"""`ragclinic ingest`: a folder of documents becomes an index; can be interrupted and begun again."""

from pathlib import Path
from typing import Annotated

import typer

PART_BYTES = 65_536
"""The bar counts parts of files, so that it moves within a large one too."""
SHOWN = 10
"""Files that could not be read are named, up to so many; the rest are counted."""


def ingest(
    folder: Annotated[Path, typer.Argument(help="Markdown, text, HTML and PDF files, in sub-folders too.")],
    index: Annotated[Path, typer.Option(help="Where the index is, or will be.")] = Path("ragclinic-index"),
    settings: Annotated[Path | None, typer.Option(help="A TOML file of settings, such as a prescription.")] = None,
    chunk_tokens: Annotated[int | None, typer.Option(help="Tokens in a chunk.")] = None,
    overlap_tokens: Annotated[int | None, typer.Option(help="Tokens that two neighbouring chunks share.")] = None,
    max_file_mb: Annotated[float, typer.Option(min=0.001, help="Larger files are left out and named.")] = 50.0,
) -> None:
    """Read a folder of documents into an index, or bring the index up to date.

    Ctrl-C is safe: run the same command again and it goes on. Example: `ragclinic ingest docs --index my-index`
    """
    from rich.console import Console

    from ragclinic.cli.progress import StepProgress
    from ragclinic.engine import settings as engine_settings
    from ragclinic.engine.documents.sources import sources_in
    from ragclinic.engine.embed import open_embedder
    from ragclinic.engine.ingest import ingest as ingest_documents
    from ragclinic.engine.session import local_model, open_tokenizer

    chosen = engine_settings.load(settings) if settings else engine_settings.Settings()
    changes = {"chunking.size_tokens": chunk_tokens, "chunking.overlap_tokens": overlap_tokens}
    chosen = chosen.with_changes({name: value for name, value in changes.items() if value is not None})
    parts = {s.id: 1 + s.size_bytes // PART_BYTES for s in sources_in(folder, max_file_mb, leave_out=index)}
    with StepProgress({"model": "Getting the model's tokenizer", "read": "Reading documents"}) as progress:

        def advance(doc: str, share: float = 1.0) -> None:
            left = parts[doc] - int(share * parts[doc])
            for _ in range(remaining[doc] - left):
                progress.advance(doc)
            remaining[doc] = min(left, remaining[doc])

        remaining = dict(parts)
        progress.step("model")
        tokenizer = open_tokenizer(local_model(chosen))
        progress.step("read", sum(parts.values()))
        embedder = open_embedder(chosen.embedder)
        report = ingest_documents(
            folder, index, chosen.chunking, embedder, tokenizer, advance, max_file_mb, pulse=advance
        )
    talk = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    for refused in report.refused[:SHOWN]:
        talk.print(f"left out {refused.doc}: {refused.reason}")
    if len(report.refused) > SHOWN:
        talk.print(f"... and {len(report.refused) - SHOWN} more")
    done = [f"{report.written} written", f"{report.unchanged} unchanged"]
    done += [f"{report.removed} removed"] if report.removed else []
    done += [f"{len(report.refused)} left out"] if report.refused else []
    typer.echo(
        f"{index}: {report.documents:,} documents, {report.chunks:,} chunks, {report.sentences:,} sentences "
        f"({', '.join(done)})"
    )
