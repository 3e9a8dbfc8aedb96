"""The command line: one file per command, which parses, calls one function below and renders.

A new command is a file here and one line in `COMMANDS`. Errors become exit statuses in `main` alone: 0 healthy,
1 findings above the objective, 2 bad input, 3 not enough evidence.
"""

import sys
from collections.abc import Callable

import typer

from ragclinic.cli.ask import ask
from ragclinic.cli.demo import demo
from ragclinic.cli.diagnose import diagnose
from ragclinic.cli.import_ import import_
from ragclinic.cli.ingest import ingest
from ragclinic.cli.lab import lab
from ragclinic.cli.plan import plan
from ragclinic.cli.verify import verify
from ragclinic.errors import ClinicError

BAD_INPUT = 2
INTERRUPTED = 130

COMMANDS: tuple[tuple[str, str, Callable[..., None]], ...] = (
    ("See it work", "demo", demo),
    ("1 Build and ask", "ingest", ingest),
    ("1 Build and ask", "ask", ask),
    ("2 Find out why", "import", import_),
    ("2 Find out why", "diagnose", diagnose),
    ("3 Prove the cure", "verify", verify),
    ("4 Plan ahead", "plan", plan),
)

app = typer.Typer(
    name="ragclinic",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Find out why your RAG answers in eight seconds, and make it answer in one.\n\n"
        "signals → **diagnose** → prescription → **ask** with it → **verify**. Start with `ragclinic demo`; "
        "with files of your own, `ragclinic diagnose traces/ vllm.log gpu.csv`."
    ),
)
for panel, name, command in COMMANDS:
    app.command(name, rich_help_panel=panel)(command)
app.add_typer(lab, name="lab", rich_help_panel="4 Plan ahead")


def _version(asked: bool) -> None:
    if asked:
        from ragclinic import __version__

        typer.echo(f"ragclinic {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_version, is_eager=True),
) -> None:
    """Hold the options that come before a command; the help text is the application's own."""


def main() -> None:
    """Runs the command line and ends the process with its exit status."""
    try:
        app()
    except ClinicError as error:
        sys.stderr.write(f"ragclinic: {error}\n")
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        sys.stderr.write("ragclinic: interrupted; what was done so far is kept\n")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away, as `head` does
        sys.exit(0)
