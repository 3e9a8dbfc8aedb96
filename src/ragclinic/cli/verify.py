"""`ragclinic verify`: the same questions before and after, speed and answers both."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from ragclinic.errors import BadInput

BETTER, NOT_BETTER, NOT_ENOUGH = 0, 1, 3


def verify(
    before: Annotated[Path, typer.Argument(help="The recording that was diagnosed.")],
    after: Annotated[
        Path, typer.Argument(help="The recording with the cure; made now where --prescription is given.")
    ],
    prescription: Annotated[
        Path | None, typer.Option(help="Ask the questions of BEFORE again with these settings.")
    ] = None,
    index: Annotated[Path | None, typer.Option(help="The index to ask them from.")] = None,
    gold: Annotated[
        Path | None, typer.Option(help="TOML of [[question]] with text, evidence, answer: counts evidence kept.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write an HTML report here.")] = None,
    slo_ms: Annotated[float, typer.Option(help="The objective: P95 of the total time.", min=1)] = 8000.0,
    lang: Annotated[Literal["en", "zh"], typer.Option(help="Language of the report.")] = "en",
) -> None:
    """Prove the cure on the same questions. Exit status: 0 better, 1 not better, 2 bad input, 3 not shown.

    Example: `ragclinic verify slow cured --prescription slow/prescription.toml --index my-index`
    """
    from rich.console import Console

    from ragclinic.cli.gold import read_gold
    from ragclinic.diagnosis import diagnose, prescribe
    from ragclinic.diagnosis.compare import compare
    from ragclinic.report.html import write_page
    from ragclinic.report.json_ import comparison_json, dumps
    from ragclinic.report.terminal import print_comparison
    from ragclinic.report.view import build_page
    from ragclinic.signals.load import load

    seen = load(before)
    found = diagnose(seen, slo_ms)
    if prescription is not None:
        if index is None:
            raise BadInput("--index: missing; expected with --prescription the index to ask from; add --index DIR")
        _ask_again(before, after, prescription, index, lang)
    again = load(after)
    predicted = prescribe(seen, found).prediction if found.findings else None
    comparison = compare(seen, again, read_gold(gold) if gold else None, predicted=predicted)
    if output is not None:
        write_page(build_page(seen, found, again, comparison), output, lang)
    if json:
        sys.stdout.write(dumps(comparison_json(comparison)))
    else:
        print_comparison(Console(), comparison, lang)
    raise typer.Exit({"better": BETTER, "worse": NOT_BETTER}.get(comparison.verdict, NOT_ENOUGH))


def _ask_again(before: Path, after: Path, prescription: Path, index: Path, lang: str) -> None:
    from ragclinic.cli.progress import StepProgress
    from ragclinic.engine.embed import open_embedder
    from ragclinic.engine.index import Index
    from ragclinic.engine.session import open_engine
    from ragclinic.engine.settings import load as load_settings
    from ragclinic.lab.asking import Inquiry, ask_all
    from ragclinic.signals.load import load

    requests = load(before).requests
    inquiries = [Inquiry(r.question, r.session) for r in requests if r.question is not None]
    if not inquiries:
        raise BadInput(f"{before}: holds no questions; expected a recording with content = text; record it so")
    settings = load_settings(prescription)
    embedder = open_embedder(settings.embedder)
    title = {"en": "Asking again with the prescription", "zh": "按处方再问一遍"}[lang]
    with StepProgress({"again": title}) as progress:
        progress.step("again", len(inquiries))
        with open_engine(settings, Index.open(index, embedder.identity), embedder, after) as engine:
            ask_all(
                engine,
                inquiries,
                settings.llm.slots,
                on_answer=lambda inquiry, seconds: progress.advance(f"{seconds:5.1f} s  {inquiry.text}"),
            )
