"""`ragclinic demo`: a real RAG, why it is slow, the cure, and the proof."""

from pathlib import Path
from typing import Annotated, Literal

import typer

TITLES = {
    "en": {
        "model": "Getting the embedded model",
        "ingest": "Building the knowledge base",
        "as-found": "Asking, as most teams do it",
        "treated": "Asking again with the prescription",
        "report": "Writing the report",
    },
    "zh": {
        "model": "准备内置模型",
        "ingest": "建立知识库",
        "as-found": "按常见做法提问",
        "treated": "按处方再问一遍",
        "report": "生成报告",
    },
}


def demo(
    out: Annotated[Path, typer.Option(help="Where recordings, prescription and report go.")] = Path("out/demo"),
    lang: Annotated[Literal["en", "zh"], typer.Option(help="Corpus, questions and report.")] = "en",
    short: Annotated[bool, typer.Option("--short", help="Fewer questions: under three minutes.")] = False,
) -> None:
    """See it work: a real RAG with a real LLM, why it is slow, the cure, and the same questions again.

    Needs no GPU and no account. Example: `ragclinic demo --short --lang zh --out out/zh`
    """
    from rich.console import Console

    from ragclinic.cli.files import write_text
    from ragclinic.cli.progress import StepProgress
    from ragclinic.lab.demo import FULL, SHORT, run_demo
    from ragclinic.report.html import write_page
    from ragclinic.report.json_ import demo_json, dumps
    from ragclinic.report.terminal import print_comparison, print_diagnosis
    from ragclinic.report.view import build_page

    with StepProgress(TITLES[lang]) as progress:
        result = run_demo(out, lang, SHORT if short else FULL, progress)
        progress.step("report")
        page = build_page(result.before, result.diagnosis, result.after, result.comparison)
        write_page(page, out / "report.html", lang)
        figures = demo_json(result.comparison, result.diagnosis.findings)
        write_text(out / "demo.json", dumps(figures))
    console = Console()
    print_diagnosis(console, result.diagnosis, lang)
    print_comparison(console, result.comparison, lang)
    console.print(f"\n{out / 'report.html'}   {out / 'demo.json'}   {out / 'prescription.toml'}", highlight=False)
