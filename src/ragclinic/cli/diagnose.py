"""`ragclinic diagnose`: from a recording to a named cause, with evidence and a prescription."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

HEALTHY, FINDINGS, NOT_ENOUGH = 0, 1, 3


def diagnose(
    source: Annotated[
        list[str], typer.Argument(help="A recording, or any traces, metrics and logs (files, folders, -).")
    ],
    slo_ms: Annotated[float, typer.Option(help="The objective: P95 of the total time.", min=1)] = 8000.0,
    where: Annotated[
        str | None, typer.Option(help="SQL over the root spans, as \"name = 'rag.request'\".")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the diagnosis as JSON.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write an HTML report here.")] = None,
    prescription: Annotated[
        Path | None, typer.Option(help="Where to write the prescription.  [default: in the recording]")
    ] = None,
    fail_on: Annotated[
        list[str] | None, typer.Option(help="Exit 1 only for these causes; may be given several times.")
    ] = None,
    lang: Annotated[Literal["en", "zh"], typer.Option(help="Language of the report.")] = "en",
) -> None:
    """Say why it is slow. Exit status: 0 healthy, 1 findings, 2 bad input, 3 not enough evidence.

    Example: `ragclinic diagnose out/demo/as-found --slo-ms 5000 -o report.html`
    or `ragclinic diagnose traces.jsonl vllm.log`
    """
    from rich.console import Console

    from ragclinic import diagnosis as room
    from ragclinic.cli.bytes_progress import BytesProgress
    from ragclinic.cli.files import write_text
    from ragclinic.diagnosis import prescribe
    from ragclinic.report.html import write_page
    from ragclinic.report.json_ import diagnosis_json, dumps
    from ragclinic.report.terminal import print_diagnosis
    from ragclinic.report.view import build_page
    from ragclinic.signals.recording import is_recording
    from ragclinic.signals.seeing import see

    with BytesProgress() as progress:
        seen = see(source, where, progress=progress).seen
    recording = Path(source[0]) if is_recording(Path(source[0])) and len(source) == 1 else None
    found = room.diagnose(seen, slo_ms)
    next_command = None
    if found.findings:
        path = prescription or (recording / "prescription.toml" if recording else None)
        if path is not None:
            write_text(path, prescribe(seen, found).to_toml(lang))
            next_command = f"ragclinic verify {source[0]} CURED --prescription {path} --index INDEX"
    if output is not None:
        write_page(build_page(seen, found), output, lang)
    if json:
        sys.stdout.write(dumps(diagnosis_json(found)))
    else:
        print_diagnosis(Console(), found, lang, next_command)
    raise typer.Exit(_status(found.verdict, [f.cause for f in found.findings], fail_on))


def _status(verdict: str, causes: list[str], fail_on: list[str] | None) -> int:
    if verdict == "unknown":
        return NOT_ENOUGH
    counted = [c for c in causes if fail_on is None or c in fail_on]
    return FINDINGS if counted else HEALTHY
