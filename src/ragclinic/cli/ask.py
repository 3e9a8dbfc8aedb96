"""`ragclinic ask`: one answer from an index, streamed, and a line of where its time went."""

from pathlib import Path
from typing import Annotated

import typer


def ask(
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    index: Annotated[Path, typer.Option(help="The folder that `ragclinic ingest` wrote.")] = Path(
        "ragclinic-index"
    ),
    settings: Annotated[Path | None, typer.Option(help="A TOML file of settings, such as a prescription.")] = None,
    record: Annotated[
        Path | None, typer.Option(help="Write a recording of the request to this new folder.")
    ] = None,
) -> None:
    """Ask a question; the answer streams and ends with a line of where the time went.

    Example: `ragclinic ask "How does the with statement work?" --index my-index`
    """
    from ragclinic.engine import settings as engine_settings
    from ragclinic.engine.embed import open_embedder
    from ragclinic.engine.index import Index
    from ragclinic.engine.session import open_engine

    chosen = engine_settings.load(settings) if settings else engine_settings.Settings()
    embedder = open_embedder(chosen.embedder)
    opened = Index.open(index, embedder.identity)
    with open_engine(chosen, opened, embedder, record) as engine:
        answer = engine.ask(question, on_text=lambda text: typer.echo(text, nl=False))
    typer.echo()
    trace = answer.trace
    parts = [
        f"{stage.name} {(stage.end_ns - stage.start_ns) / 1e6:,.0f} ms"
        for stage in trace.stages
        if stage.name != "generate"
    ]
    first_ms = ((trace.first_byte_ns or trace.end_ns) - trace.start_ns) / 1e6
    total_ms = (trace.end_ns - trace.start_ns) / 1e6
    tokens = answer.generation.prompt_tokens if answer.generation else None
    typer.secho(
        f"\n{total_ms:,.0f} ms, first text after {first_ms:,.0f} ms: {', '.join(parts)}"
        + (f"; prompt {tokens:,} tokens" if tokens is not None else ""),
        err=True,
        dim=True,
    )
