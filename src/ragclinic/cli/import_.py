"""`ragclinic import`: any files of traces, metrics and logs into a recording."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer


def import_(
    paths: Annotated[
        list[str] | None, typer.Argument(help="Files, folders, or - for standard input.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", help="The new recording.")] = Path("recording"),
    tenant: Annotated[
        str | None, typer.Option(help="The attribute that holds the tenant.  [default: tenant.id, user.id ...]")
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option(help="A field of JSON-lines logs as OURS=THEIRS; may be given several times."),
    ] = None,
    clock_offset: Annotated[
        list[str] | None,
        typer.Option(help="Milliseconds to add to a source's clock as PATH=MS; it is not estimated then."),
    ] = None,
    format_: Annotated[
        str | None, typer.Option("--format", help="Read all inputs as this format instead of recognising it.")
    ] = None,
    content: Annotated[
        Literal["text", "hashed", "off"], typer.Option(help="How much of prompts and chunks is kept.")
    ] = "text",
    list_formats: Annotated[bool, typer.Option("--list-formats", help="List the formats and leave.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the account, or the list, as JSON.")] = False,
    lang: Annotated[Literal["en", "zh"], typer.Option(help="Language of what is printed.")] = "en",
) -> None:
    """Read what you have into a recording that `diagnose` understands. Formats are recognised by content.

    Example: `ragclinic import traces/ vllm.log gpu.csv --out rec`
    """
    from rich.console import Console

    from ragclinic.cli.bytes_progress import BytesProgress
    from ragclinic.context import shingles
    from ragclinic.errors import BadInput
    from ragclinic.report import imported as report
    from ragclinic.signals.content import ContentPolicy
    from ragclinic.signals.importing import ImportOptions, import_paths
    from ragclinic.signals.readers import READERS

    if list_formats:
        if json:
            sys.stdout.write(report.formats_json(READERS))
        else:
            report.print_formats(Console(), READERS, lang)
        return
    if not paths:
        raise BadInput("ragclinic import: no input; expected files, folders or - for standard input; name one")
    options = ImportOptions(
        policy=ContentPolicy(content, shingles),
        tenant=tenant,
        fields=_pairs("--field", field),
        clock_offsets_ms={
            path: _milliseconds(path, ms) for path, ms in _pairs("--clock-offset", clock_offset).items()
        },
        format=format_,
    )
    with BytesProgress() as progress:
        found = import_paths(paths, out, options, progress)
    if json:
        sys.stdout.write(report.import_json(found))
    else:
        report.print_import(Console(), found, lang)


def _pairs(option: str, given: list[str] | None) -> dict[str, str]:
    from ragclinic.errors import BadInput

    pairs: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.rpartition("=")
        if not equals or not name:
            raise BadInput(f"{option} {text}: no '=' in it; expected NAME=VALUE; write it so")
        pairs[name] = value
    return pairs


def _milliseconds(path: str, text: str) -> float:
    from ragclinic.errors import BadInput

    try:
        return float(text)
    except ValueError as error:
        raise BadInput(f"--clock-offset {path}={text}: no number; expected milliseconds; mend it") from error
