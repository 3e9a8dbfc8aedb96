"""A comparison in the terminal: the verdict, the numbers side by side, the prediction beside the measurement."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ragclinic.diagnosis.compare_types import Comparison
from ragclinic.report import compare_rows
from ragclinic.report.text import Lang, Words, visible

VERDICT_STYLES = {"better": "bold green", "worse": "bold red", "not-shown": "bold yellow"}


def print_comparison(console: Console, comparison: Comparison, lang: Lang = "en") -> None:
    """Print the comparison to the console, at most some twenty lines."""
    words = Words(lang)
    style = VERDICT_STYLES[comparison.verdict]
    console.print(Text(compare_rows.headline(comparison, words), style), highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(words("compare.same_questions", n=str(comparison.questions)))
    for name in (comparison.before.name, comparison.after.name):
        table.add_column(Text(visible(words.name("run", name))), justify="right")
    table.add_column("", justify="right")
    for row in compare_rows.rows(comparison, words):
        table.add_row(*(Text(cell) for cell in row))
    console.print(table, highlight=False)
    lines = [compare_rows.prediction(comparison, words)]
    if comparison.answers is not None:
        lines.append(compare_rows.answers(comparison.answers, words))
    for line in filter(None, lines):
        console.print(Text(line), highlight=False)
